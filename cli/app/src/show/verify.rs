//! What `verify` found.

use assize_reader::report::seal_words;
use assize_reader::study::Analysis;
use assize_units::{DurNs, format_duration};

use crate::output::printable;

/// For a person.
pub fn verified(analysis: &Analysis) -> String {
    let verified = &analysis.verified;
    let mut text = format!(
        "plan {} of study `{}`\n{}\n{} requests replayed from their bytes; every claim agrees\n",
        verified.plan_hash,
        printable(&verified.plan.study),
        seal_words(&verified.seal),
        verified.compared,
    );
    if verified.is_complete() {
        text.push_str("complete: every planned unit ran to its end\n");
    } else {
        text.push_str("incomplete:\n");
        for gap in &verified.gaps {
            let after = gap.after_ns.map(|after| {
                let from = gap
                    .from_segment
                    .map(|seq| format!(" from segment {seq}"))
                    .unwrap_or_default();
                format!(
                    "{from}, after {} of the clock",
                    format_duration(DurNs(after.0))
                )
            });
            text.push_str(&format!(
                "  {}: {}{}\n",
                printable(&gap.place),
                printable(&gap.what),
                after.unwrap_or_default()
            ));
        }
        for interruption in &verified.run.interruptions {
            text.push_str(&format!(
                "  unit {} was broken off: {:?}\n",
                interruption.unit, interruption.reason
            ));
        }
        for failure in &verified.run.failures {
            text.push_str(&format!(
                "  {}: {} {}: {}\n",
                printable(&failure.code),
                printable(&failure.operation),
                printable(&failure.subject),
                printable(&failure.message)
            ));
        }
    }
    text
}

/// For a program.
pub fn json(analysis: &Analysis) -> serde_json::Value {
    let verified = &analysis.verified;
    serde_json::json!({
        "format": "assize-verify/1",
        "plan": verified.plan_hash,
        "study": verified.plan.study,
        "seal": verified.seal,
        "complete": verified.is_complete(),
        "compared": verified.compared,
        "gaps": verified.gaps,
        "run": verified.run,
    })
}
