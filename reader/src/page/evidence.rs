//! The evidence: what is missing, how it was made, what it holds, and how to verify it.

use maud::{Markup, html};

use crate::report::Report;
use crate::shown;
use crate::verify::SealState;

pub(super) fn evidence(report: &Report) -> Markup {
    let evidence = &report.evidence;
    let run = &evidence.run;
    let yes = |is: bool| if is { "yes" } else { "no" };
    html! {
        section #evidence {
            h2 { "Evidence" }
            (gaps(report))
            dl.facts {
                dt { "requests replayed" }
                dd { (shown::count(evidence.compared)) ", each claim equal to its replay" }
                dt { "prompts in the files" }
                dd { (yes(evidence.has_prompts)) }
                dt { "outputs in the files" }
                dd { (yes(evidence.has_outputs)) }
                dt { "tool" } dd { (run.tool) }
                dt { "driver" } dd { (run.driver) @if !run.driver_why.is_empty() { " \u{b7} " (run.driver_why) } }
                dt { "calibration" }
                @if let Some(hash) = report.instrument.calibration {
                    dd.hash { (hash) }
                } @else { dd { "none" } }
                dt { "run" } dd.id { (run.run_id) }
                dt { "wall time, a label" } dd { (run.started) " to " (run.ended) }
                (strays(report))
            }
            h3 { "To verify" }
            pre { code { (command(report)) } }
            p.note { (evidence.seal_words) }
        }
    }
}

/// What the reader met and could not use, where there is any.
fn strays(report: &Report) -> Markup {
    let cells = || report.cells.iter();
    let counts = [
        (
            "journal lines of unknown kinds",
            report.evidence.run.unknown_lines as u64,
        ),
        (
            "wire-log records of unknown kinds",
            cells().map(|it| it.unknown_records).sum(),
        ),
        (
            "bytes outside any request",
            cells().map(|it| it.stray_bytes).sum(),
        ),
        (
            "facts stated by the driver",
            cells().map(|it| it.driver_facts as u64).sum(),
        ),
    ];
    html! {
        @for (name, count) in counts {
            @if count > 0 { dt { (name) } dd { (shown::count(count)) } }
        }
    }
}

fn gaps(report: &Report) -> Markup {
    let evidence = &report.evidence;
    html! {
        @if !evidence.complete {
            div.gaps #gaps {
                h3 { "What is missing" }
                @if evidence.seal == SealState::Unsealed { p { (evidence.seal_words) } }
                ul {
                    @for gap in &evidence.gaps {
                        li {
                            code { (gap.place) } ": " (gap.what)
                            @if let Some(after) = gap.after_ns { " (last record at " (after.0) " ns)" }
                        }
                    }
                    @for interruption in &evidence.run.interruptions {
                        li { (super::cells::unit_path(report, Some(interruption.unit))) ": broken off, " (reason(interruption.reason)) }
                    }
                }
            }
        }
    }
}

/// The journal's own word for why.
fn reason(reason: assize_evidence::StopReason) -> String {
    let word = serde_json::to_value(reason).ok();
    let word = word.as_ref().and_then(serde_json::Value::as_str);
    word.unwrap_or_default().replace('_', " ")
}

fn command(report: &Report) -> String {
    match report.evidence.seal {
        SealState::Confirmed { seal } | SealState::Consistent { seal } => {
            format!("assize verify EVIDENCE --seal {}", seal.hex())
        }
        SealState::Unsealed => "assize verify EVIDENCE".to_owned(),
    }
}
