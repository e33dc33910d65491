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
use assize_reader::text::render_text;
use assize_reader::verify::Demands;

/// The width of the report: this program asks no terminal.
const COLUMNS: usize = 100;

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
        render_text(&report, COLUMNS, false)
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
