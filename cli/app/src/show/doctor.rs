//! What `doctor` found.

use assize_verbs::doctor::{Examined, Finding, State};

use super::wrapped::indented;
use crate::output::{Terminal, printable};

/// Columns of the state in front of a finding.
const MARGIN: usize = 15;

/// For a person.
pub fn findings(examined: &Examined, terminal: Terminal) -> String {
    let mut text = String::new();
    for finding in &examined.findings {
        text.push_str(&one(finding, terminal));
    }
    let count = |state| {
        let of = examined.findings.iter().filter(|it| it.state == state);
        of.count()
    };
    text.push_str(&format!(
        "\n{} fine, {} to mind, {} bad, {} not available\n",
        count(State::Fine),
        count(State::Mind),
        count(State::Bad),
        count(State::NotAvailable)
    ));
    text
}

/// What is fine takes one paragraph; the rest says why it matters and what to do.
fn one(finding: &Finding, terminal: Terminal) -> String {
    let (on, off) = match (terminal.stdout_colour, finding.state) {
        (true, State::Bad) => ("\x1b[1;31m", "\x1b[0m"),
        (true, State::Mind) => ("\x1b[33m", "\x1b[0m"),
        _ => ("", ""),
    };
    let width = terminal.width;
    let found = match finding.state {
        State::NotAvailable => finding.name.to_owned(),
        _ => printable(&format!("{}: {}", finding.name, finding.found)),
    };
    let first = indented(MARGIN, &found, width);
    let state = finding.state.name();
    let mut text = format!("{on}{state}{off}{}", &first[state.len()..]);
    if finding.state != State::Fine {
        text.push_str(&indented(MARGIN, finding.why, width));
    }
    if let Some(advice) = finding.advice {
        text.push_str(&indented(MARGIN, &format!("do: {advice}"), width));
    }
    text
}

/// For a program.
pub fn json(examined: &Examined) -> serde_json::Value {
    serde_json::json!({
        "format": "assize-doctor/1",
        "findings": examined.findings,
        "facts": examined.facts,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use assize_verbs::doctor::{Looked, judge};

    fn shown(width: usize) -> String {
        let mut looked = Looked {
            steal_permille: Some(12),
            ..Looked::default()
        };
        looked.facts.set("clock", "source", "hpet");
        looked.facts.set("limits", "open_files", "65536 of 65536");
        let findings_of = Examined {
            findings: judge(&looked)
                .into_iter()
                .filter(|it| ["clock source", "open files", "SMT", "steal"].contains(&it.name))
                .collect(),
            facts: looked.facts,
        };
        let terminal = Terminal {
            stdout_colour: false,
            stderr_colour: false,
            stderr_moves: false,
            can_ask: false,
            width,
        };
        findings(&findings_of, terminal)
    }

    #[test]
    fn findings_at_eighty_columns() {
        insta::assert_snapshot!(shown(80), @r"
        not available  SMT
                       two threads of one core share its units: a client can slow a
                       server that has another processor's number
        bad            clock source: hpet
                       each timestamp reads it; a slow one costs a system call or a
                       microsecond every time
                       do: see dmesg for why a faster clock was given up;
                       clocksource=tsc on the kernel's command line where it is stable
        fine           open files: 65536 of 65536
        mind           steal: 1.2% of the processors' time in the last second
                       time that a hypervisor gave to other guests: everything here
                       stood still meanwhile
                       do: measure on a machine whose processors are its own, or when
                       its neighbours are quiet

        1 fine, 1 to mind, 1 bad, 1 not available
        ");
    }

    #[test]
    fn no_width_is_exceeded() {
        for width in [60, 80, 140] {
            let text = shown(width);
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(width), "{text}");
        }
    }
}
