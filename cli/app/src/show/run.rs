//! What `run` and `demo` say when they have ended.

use std::path::Path;

use assize_plan::Bundle;
use assize_verbs::Status;
use assize_verbs::demo::Demonstrated;
use assize_verbs::run::Ran;

/// A run, for a person.
pub fn ran(ran: &Ran) -> String {
    let outcome = &ran.outcome;
    let mut text = format!(
        "{} of {} units ended; {} requests, {} complete, {} otherwise\ndriver {}: {}\n",
        outcome.units_ended,
        outcome.units_planned,
        outcome.counts.requests,
        outcome.counts.complete,
        outcome.counts.failed,
        ran.driver.0,
        ran.driver.1,
    );
    if let Some(reason) = outcome.stopped {
        text.push_str(&format!("broken off: {}\n", reason_words(reason)));
    }
    match outcome.seal {
        Some(seal) => text.push_str(&format!(
            "evidence {}\nseal {} over {} files\nverify it with: assize verify {} --seal {}\n",
            ran.evidence.display(),
            seal.hash,
            seal.files,
            ran.evidence.display(),
            seal.hash,
        )),
        None => text.push_str(&format!(
            "evidence {}, not sealed\n",
            ran.evidence.display()
        )),
    }
    text
}

/// A run, for a program.
pub fn json(ran: &Ran, bundle: &Bundle) -> serde_json::Value {
    let outcome = &ran.outcome;
    serde_json::json!({
        "format": "assize-run/1",
        "plan": bundle.hash,
        "evidence": ran.evidence.display().to_string(),
        "seal": outcome.seal.map(|seal| seal.hash),
        "driver": { "name": ran.driver.0, "why": ran.driver.1 },
        "units": { "planned": outcome.units_planned, "ended": outcome.units_ended },
        "requests": outcome.counts,
        "complete": outcome.is_complete(),
        "stopped": outcome.stopped,
        "failure": outcome.failure.as_ref().map(|failure| serde_json::json!({
            "code": failure.code.id,
            "kind": failure.code.kind.word(),
            "operation": failure.operation,
            "subject": failure.subject,
            "message": failure.message,
            "errno": failure.errno,
        })),
    })
}

/// Where the demo's artefacts are.
pub fn demonstrated(made: &Demonstrated, page: &Path) -> String {
    let state = if made.ran.status() == Status::Done {
        "verified"
    } else {
        "incomplete"
    };
    format!(
        "\nstudy     {}\nplan      {}  ({})\nevidence  {}  ({state})\npage      {}\n",
        made.study.display(),
        made.plan.display(),
        made.bundle.hash,
        made.ran.evidence.display(),
        page.display(),
    )
}

fn reason_words(reason: assize_evidence::StopReason) -> &'static str {
    use assize_evidence::StopReason;
    match reason {
        StopReason::Stopped => "it was asked to stop",
        StopReason::Server => "a server was not to be had",
        StopReason::Warmup => "a warmup request failed",
        StopReason::Overflow => "the recorder could not keep up",
        StopReason::Disk => "the evidence could not be written",
        StopReason::ClockStep => "the wall clock was stepped, or the machine slept",
        StopReason::Driver => "the driver could not go on",
    }
}
