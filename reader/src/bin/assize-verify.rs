//! `assize-verify EVIDENCE [--seal HASH] [--json]`: verifies and judges evidence, with nothing of
//! the runtime in the program.
//!
//! Exit status: 0 the evidence is true; 1 it is not; 2 the command line; 4 true, but unsealed or
//! incomplete.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use assize_evidence::FolderStore;
use assize_plan::Hash;
use assize_reader::report::Report;
use assize_reader::study::{AnalysisError, analyze};
use assize_reader::verify::Demands;

const USAGE: &str = "usage: assize-verify EVIDENCE [--seal HASH] [--json]\n";

struct Arguments {
    folder: String,
    demands: Demands,
    is_json: bool,
}

fn main() -> ExitCode {
    let Some(arguments) = parse(std::env::args().skip(1)) else {
        return say_error(USAGE, 2);
    };
    let store = match FolderStore::open_root(Path::new(&arguments.folder)) {
        Ok(store) => store,
        Err(error) => return say_error(&format!("{}: {error}\n", arguments.folder), 1),
    };
    let analysis = match analyze(&store, &arguments.demands) {
        Ok(analysis) => analysis,
        Err(AnalysisError::Refused(refusal)) => {
            return say_error(&format!("error[{}]: {refusal}\n", refusal.code().id), 1);
        }
        Err(error) => return say_error(&format!("error: {error}\n"), 1),
    };
    let report = Report::new(&analysis);
    let text = if arguments.is_json {
        report.to_json()
    } else {
        plain(&report)
    };
    let status = if report.evidence.complete { 0 } else { 4 };
    // A closed pipe is the end of the program, not a fault.
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
    ExitCode::from(status)
}

fn parse(mut given: impl Iterator<Item = String>) -> Option<Arguments> {
    let mut folder = None;
    let mut demands = Demands::default();
    let mut is_json = false;
    while let Some(argument) = given.next() {
        match argument.as_str() {
            "--json" => is_json = true,
            "--seal" => demands.seal = Some(Hash::from_hex(&given.next()?)?),
            _ if argument.starts_with('-') || folder.is_some() => return None,
            _ => folder = Some(argument),
        }
    }
    Some(Arguments {
        folder: folder?,
        demands,
        is_json,
    })
}

fn say_error(text: &str, status: u8) -> ExitCode {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
    ExitCode::from(status)
}

fn plain(report: &Report) -> String {
    let mut lines = vec![
        format!("{}: plan {}", report.study, report.plan),
        report.evidence.seal_words.clone(),
        format!(
            "{} claims of the runtime were replayed and agree.",
            report.evidence.compared
        ),
    ];
    for gap in &report.evidence.gaps {
        let after = gap.after_ns.map(|at| format!(" (after {} ns)", at.0));
        let after = after.unwrap_or_default();
        lines.push(format!("missing: {}: {}{after}", gap.place, gap.what));
    }
    for family in &report.families {
        lines.push(format!("\n{}:", family.verdict.name));
        lines.extend(family.hypothesis_words.iter().map(|it| format!("- {it}")));
        for breach in &family.verdict.breaches {
            lines.push(format!(
                "  breach: {} {} {} {}: {} ({})",
                breach.set, breach.block, breach.arm, breach.cell, breach.text, breach.found
            ));
        }
        lines.extend(family.words.iter().cloned());
    }
    lines.push(String::new());
    lines.extend(report.words.iter().cloned());
    lines.iter().map(|line| visible(line) + "\n").collect()
}

/// Text from outside never reaches a terminal as control characters.
fn visible(line: &str) -> String {
    line.chars()
        .map(|c| match c {
            '\n' => c,
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}
