//! The sentences of a report. Each is generated from the rule that holds; none says more than it.
//!
//! Nothing here says "no effect", "proves", "equivalent" or "significantly faster".

use std::collections::BTreeSet;

use assize_plan::{Family, Interval, Judgement, Load, Plan, Quantity, Test, Ties};
use assize_units::Ratio;

use crate::verdict::{FamilyVerdict, HypothesisVerdict, Verdict, percent};
use crate::verify::SealState;

/// What the seal proves.
pub fn seal_words(seal: &SealState) -> String {
    match seal {
        SealState::Confirmed { seal } => {
            format!("The evidence is sealed by {seal}, the seal that was demanded.")
        }
        SealState::Consistent { seal } => format!(
            "The evidence is sealed by {seal}. Without an outside copy of the seal this shows \
             consistency, not authorship."
        ),
        SealState::Unsealed => "The evidence is not sealed: it was judged by the checksums of its \
             journal and of its wire logs alone."
            .to_owned(),
    }
}

/// What a hypothesis' verdict is, with its figures.
pub fn hypothesis_words(
    plan: &Plan,
    family: &FamilyVerdict,
    hypothesis: &HypothesisVerdict,
) -> String {
    let label = |name: &str| {
        plan.arm(name)
            .map_or_else(|| name.to_owned(), |arm| arm.label.clone())
    };
    let who = match &hypothesis.control {
        Some(control) => format!(
            "{} against {}",
            label(&hypothesis.candidate),
            label(control)
        ),
        None => label(&hypothesis.candidate),
    };
    let head = format!(
        "{who} on {} in {}: {}.",
        hypothesis.measure,
        hypothesis.cell,
        hypothesis.verdict.words()
    );
    let mut parts = vec![head];
    parts.extend(figures_words(family, hypothesis));
    if !hypothesis.reasons.is_empty() {
        let reasons = hypothesis.reasons.join("; ");
        parts.push(match hypothesis.verdict {
            Verdict::Blocked => {
                format!("The figures are shown and no claim is made: {reasons}.")
            }
            _ => format!("Reason: {reasons}."),
        });
    }
    parts.join(" ")
}

fn figures_words(family: &FamilyVerdict, hypothesis: &HypothesisVerdict) -> Vec<String> {
    let mut parts = Vec::new();
    let is_effect = hypothesis.control.is_some();
    if let Some(median) = hypothesis.median {
        let median = shown(median.0, is_effect);
        let name = if is_effect { "effect" } else { "value" };
        parts.push(match &hypothesis.interval {
            Some(range) => format!(
                "Median {name} {median}, pointwise interval {} to {} (ordered values {} and {} of \
                 {}, coverage {:.4}%).",
                shown(range.lower.0, is_effect),
                shown(range.upper.0, is_effect),
                range.lower_rank,
                range.upper_rank,
                hypothesis.blocks.len(),
                range.coverage.as_f64() * 100.0
            ),
            None => format!(
                "Median {name} {median}; {} blocks allow no interval of the declared coverage.",
                hypothesis.blocks.len()
            ),
        });
    }
    if hypothesis.verdict == Verdict::NotEvaluated {
        return parts;
    }
    let missing = match hypothesis.missing {
        0 => String::new(),
        count => format!(", {count} missing"),
    };
    let p = hypothesis.p.fraction();
    let adjusted = if family.holm {
        format!(
            ", adjusted over the family {}",
            hypothesis.adjusted_p.fraction()
        )
    } else {
        String::new()
    };
    parts.push(format!(
        "Of {} blocks {} won, {} tied, {} lost{missing}; exact one-sided p {p}{adjusted}, level {}.",
        hypothesis.blocks.len(),
        hypothesis.wins,
        hypothesis.ties,
        hypothesis.losses,
        percent(family.level.0)
    ));
    parts
}

fn shown(value: Ratio, is_effect: bool) -> String {
    if is_effect {
        crate::shown::effect(value)
    } else {
        value
            .to_decimal()
            .filter(|text| text.len() <= 12)
            .unwrap_or_else(|| format!("{:.6}", value.as_f64()))
    }
}

/// The sentences that hold for a family.
pub fn family_words(plan: &Plan, family: &Family, verdict: &FamilyVerdict) -> Vec<String> {
    let mut words = Vec::new();
    words.push(
        "The block is the replicate: requests, tokens and scheduler steps are not. Each effect is \
         a ratio within one matched block; positive means improvement."
            .to_owned(),
    );
    words.push(test_words(family));
    words.push(interval_words(family, verdict));
    words.extend(margin_words(family));
    words.extend(measure_words(family));
    if !family.valid.is_empty() {
        let conditions: Vec<&str> = family.valid.iter().map(|it| it.text.as_str()).collect();
        words.push(format!(
            "Validity ({}) was tried {} times, over every arm, block and cell of the sets {}: it \
             {}. One breach blocks every hypothesis of the family.",
            conditions.join(", "),
            verdict.conditions_tried,
            timed_sets(plan).join(", "),
            held_words(verdict.breaches.len()),
        ));
    }
    words.push(
        "\"Not supported\" says that the test or the margin was not passed, and nothing else."
            .to_owned(),
    );
    words
}

fn held_words(breaches: usize) -> String {
    match breaches {
        0 => "held everywhere".to_owned(),
        1 => "did not hold in 1 place".to_owned(),
        count => format!("did not hold in {count} places"),
    }
}

fn test_words(family: &Family) -> String {
    let Test::Sign { ties } = family.test;
    let ties = match ties {
        Ties::Nonwins => "a tie is a block that was not won",
        Ties::Dropped => "a tie is no trial",
    };
    let correction = match family.correct {
        assize_plan::Correction::Holm { alpha } => format!(
            "Holm's correction holds {} over {}",
            percent(alpha),
            hypotheses_of(family)
        ),
        assize_plan::Correction::None { alpha } => format!(
            "nothing is corrected: each of {} is tested at {}",
            hypotheses_of(family),
            percent(alpha)
        ),
    };
    format!("Exact one-sided sign test over matched blocks; {ties}; {correction}.")
}

fn hypotheses_of(family: &Family) -> String {
    match family.hypotheses.len() {
        1 => "1 hypothesis".to_owned(),
        count => format!("{count} hypotheses"),
    }
}

fn interval_words(family: &Family, verdict: &FamilyVerdict) -> String {
    let Interval::MedianOrderStatistic { at_least } = family.interval;
    let there = verdict.hypotheses.iter().any(|it| it.interval.is_some());
    let adjustment = if verdict.holm {
        " The adjustment applies to the tests, not to the intervals."
    } else {
        ""
    };
    if there {
        format!(
            "Intervals are pointwise, by order statistics of the median, with a coverage of at \
             least {} under the independent-block model.{adjustment}",
            percent(at_least)
        )
    } else {
        format!(
            "No interval is shown: the number of blocks attains no coverage of {}.",
            percent(at_least)
        )
    }
}

fn margin_words(family: &Family) -> Vec<String> {
    let mut words = BTreeSet::new();
    for hypothesis in &family.hypotheses {
        match hypothesis.judgement {
            Judgement::Beats {
                median_gain: Some(_),
            } => {
                words.insert(
                    "The screen of the median effect is separate from the test and from the \
                     interval.",
                );
            }
            Judgement::Keeps { .. } => {
                words.insert(
                    "Keeping within a margin means passing this finite test of it, no more.",
                );
            }
            Judgement::Holds { .. } => {
                words.insert(
                    "A value that holds was met in the tested blocks; it is no service-level \
                     guarantee.",
                );
            }
            Judgement::Beats { median_gain: None } | Judgement::BeatsBy { .. } => {}
        }
    }
    words.into_iter().map(str::to_owned).collect()
}

fn measure_words(family: &Family) -> Vec<String> {
    let mut words = BTreeSet::new();
    for hypothesis in &family.hypotheses {
        match hypothesis.measure.quantity {
            Quantity::Ttft | Quantity::FirstOutput | Quantity::E2e | Quantity::Tpot => {
                words.insert("Latency is conditional on valid completion.");
            }
            Quantity::Gap => {
                words.insert(
                    "A gap lies between two events. An event with several tokens hides the times \
                     of those inside it.",
                );
            }
            Quantity::Throughput | Quantity::OutputThroughput => {
                words.insert(
                    "Throughput is over the whole interval with its drain: a finite-load \
                     trade-off, not a maximum sustainable rate.",
                );
            }
            Quantity::Goodput | Quantity::Attainment => {
                words.insert(
                    "Goodput counts valid requests within every threshold, inclusive; it is no \
                     service-level guarantee.",
                );
            }
            _ => {}
        }
    }
    words.into_iter().map(str::to_owned).collect()
}

/// The sentences that hold for the whole study.
pub fn study_words(plan: &Plan) -> Vec<String> {
    let mut words = Vec::new();
    let tested: BTreeSet<&str> = plan
        .rules
        .iter()
        .flat_map(|family| &family.hypotheses)
        .map(|hypothesis| hypothesis.cell.as_str())
        .collect();
    let timed = || plan.units.iter().filter(|unit| !unit.excluded);
    let untested: BTreeSet<&str> = timed()
        .flat_map(|unit| &unit.cells)
        .map(|cell| cell.name.as_str())
        .filter(|name| !tested.contains(name))
        .collect();
    if !untested.is_empty() {
        let names: Vec<&str> = untested.into_iter().collect();
        words.push(format!(
            "Descriptive cells enter no test: {}.",
            names.join(", ")
        ));
    }
    let excluded: BTreeSet<&str> = plan
        .units
        .iter()
        .filter(|unit| unit.excluded)
        .map(|unit| unit.set.as_str())
        .collect();
    if !excluded.is_empty() {
        let names: Vec<&str> = excluded.into_iter().collect();
        words.push(format!(
            "Excluded sets enter neither test nor validity: {}. An observer check does not \
             establish that observing costs nothing.",
            names.join(", ")
        ));
    }
    let closed = timed()
        .flat_map(|unit| &unit.cells)
        .any(|cell| matches!(cell.load, Load::Closed { .. }));
    if closed {
        words.push("Client concurrency is not the server's batch size.".to_owned());
    }
    let warms = plan.units.iter().any(|unit| unit.warmup.is_some());
    if warms {
        words.push("Warmup requests are recorded apart and enter no figure.".to_owned());
    }
    words.push(
        "Counts of failures cover every request of the plan; nothing was retried. No arm is \
         ranked."
            .to_owned(),
    );
    words
}

fn timed_sets(plan: &Plan) -> Vec<&str> {
    let sets: BTreeSet<&str> = plan
        .units
        .iter()
        .filter(|unit| !unit.excluded)
        .map(|unit| unit.set.as_str())
        .collect();
    sets.into_iter().collect()
}
