//! Verdicts in plain sight, then each hypothesis' effects block by block.

use maud::{Markup, PreEscaped, html};

use crate::plot::inline_effects;
use crate::report::{FamilyReport, InstrumentError, Marks, Report};
use crate::shown;
use crate::verdict::{Breach, HypothesisVerdict, Verdict};
use crate::verify::SealState;

/// Breaches that the page lists; the rest is counted.
const LISTED_BREACHES: usize = 200;

pub(super) fn verdicts(report: &Report) -> Markup {
    html! {
        section #verdicts {
            h2 { "Verdicts" }
            div.first {
                div.families {
                    @for family in &report.families { (self::family(report, family)) }
                    (instrument(report))
                    @if report.families.is_empty() { p { "The plan has no rule." } }
                }
                (identity(report))
            }
        }
    }
}

/// What this is a report of, to be compared with an outside copy.
fn identity(report: &Report) -> Markup {
    let seal = match report.evidence.seal {
        SealState::Confirmed { seal } | SealState::Consistent { seal } => Some(seal),
        SealState::Unsealed => None,
    };
    let is_compared = matches!(report.evidence.seal, SealState::Confirmed { .. });
    html! {
        aside.identity {
            dl {
                dt { "Plan" }
                dd.hash { (report.plan) }
                @if let Some(parent) = report.replicates {
                    dt { "Replicates" }
                    dd.hash { (parent) }
                }
                dt { "Seal" }
                @if let Some(seal) = seal { dd.hash { (seal) } } @else { dd { "none" } }
                @if seal.is_some() {
                    dt { "Seal compared with an outside copy" }
                    dd { @if is_compared { "yes, equal" } @else { "no" } }
                }
            }
        }
    }
}

fn family(report: &Report, family: &FamilyReport) -> Markup {
    let verdict = &family.verdict;
    let level = shown::value(verdict.level.0, assize_plan::ValueUnit::Share);
    html! {
        div.family {
            h3 {
                b { (verdict.name) }
                small {
                    @if verdict.holm { "Holm, " (level) } @else { "uncorrected, " (level) }
                    " \u{b7} "
                    @match verdict.breaches.len() {
                        0 => { "no breach in " },
                        1 => { "1 breach in " },
                        count => { (count) " breaches in " },
                    }
                    (verdict.conditions_tried) " trials of validity"
                    @if let Some(met) = verdict.expectation_met {
                        " \u{b7} expectation " @if met { "met" } @else { "not met" }
                    }
                }
            }
            @let beside = family.marks.iter().zip(&family.instrument);
            @for (hypothesis, (marks, instrument)) in verdict.hypotheses.iter().zip(beside) {
                (card(report, verdict.holm, hypothesis, marks, instrument))
            }
            (breaches(report, &verdict.breaches))
        }
    }
}

fn card(
    report: &Report,
    holm: bool,
    hypothesis: &HypothesisVerdict,
    marks: &Marks,
    instrument: &InstrumentError,
) -> Markup {
    let class = match hypothesis.verdict {
        Verdict::Supported => "is-supported",
        Verdict::Blocked => "is-blocked",
        Verdict::NotSupported => "is-not-supported",
        Verdict::NotEvaluated => "is-not-evaluated",
    };
    let value = |value: Option<crate::report::Exact>| {
        value.map_or_else(|| shown::NONE.to_owned(), |it| shown::found(marks, it.0))
    };
    let range = hypothesis.interval.as_ref();
    html! {
        article.verdict.(class) {
            p.badge { (hypothesis.verdict.words()) }
            p.claim { (hypothesis.text) }
            dl.numbers {
                div.main {
                    dt { "median " @if marks.is_effect { "effect" } @else { "value" } }
                    dd { (value(hypothesis.median)) }
                }
                div {
                    dt { "interval" }
                    dd {
                        @if let Some(range) = range {
                            (shown::found(marks, range.lower.0)) " to " (shown::found(marks, range.upper.0))
                        } @else { (shown::NONE) }
                    }
                }
                div {
                    dt { "blocks won" }
                    dd {
                        (hypothesis.wins) " of " (hypothesis.blocks.len())
                        @if hypothesis.ties > 0 { ", " (hypothesis.ties) " tied" }
                        @if hypothesis.missing > 0 { ", " (hypothesis.missing) " missing" }
                    }
                }
                div {
                    dt { @if holm { "p, adjusted" } @else { "p" } }
                    dd {
                        @if hypothesis.verdict == Verdict::NotEvaluated { (shown::NONE) }
                        @else { (shown::probability(&hypothesis.adjusted_p)) }
                    }
                }
                @if let Some(difference) = instrument.difference {
                    div {
                        dt { "median difference" }
                        dd { (shown::difference(difference.0, instrument.unit)) }
                    }
                }
            }
            @if !hypothesis.reasons.is_empty() {
                p.reasons { (hypothesis.reasons.join("; ")) }
            }
            @if let Some(words) = &instrument.words { p.lags { (words) } }
            @if let Some(flag) = &instrument.flag { p.doubt { (flag) } }
            (lags(report, hypothesis))
        }
    }
}

/// Where the instrument's errors are from, or how to get them.
fn instrument(report: &Report) -> Markup {
    let facts = &report.instrument;
    let is_beside = report.families.iter().any(|it| !it.instrument.is_empty());
    html! {
        @if is_beside {
            p.note { (facts.words) }
            @for doubt in &facts.doubts { p.doubt { (doubt) } }
        }
    }
}

/// The instrument's own lag in the cells that the effect stands on.
fn lags(report: &Report, hypothesis: &HypothesisVerdict) -> Markup {
    let mut sets: Vec<&str> = Vec::new();
    for block in &hypothesis.blocks {
        if !sets.contains(&block.set.as_str()) {
            sets.push(&block.set);
        }
    }
    let arms = [Some(&hypothesis.candidate), hypothesis.control.as_ref()];
    let rows: Vec<_> = arms
        .into_iter()
        .flatten()
        .flat_map(|arm| {
            report.by_arm.iter().filter(|row| {
                row.arm == *arm && row.cell == hypothesis.cell && sets.contains(&row.set.as_str())
            })
        })
        .filter_map(|row| {
            let p50 = row.figure("dispatch_lag", None, Some("p50"))?;
            let p99 = row.figure("dispatch_lag", None, Some("p99"))?;
            Some((row, shown::median(Some(p50)), shown::median(Some(p99))))
        })
        .collect();
    html! {
        @if !rows.is_empty() {
            p.lags {
                "dispatch lag p50 / p99: "
                @for (place, (row, p50, p99)) in rows.iter().enumerate() {
                    @if place > 0 { " \u{b7} " }
                    (row.label) " " (p50) " / " (p99)
                }
            }
        }
    }
}

fn breaches(report: &Report, breaches: &[Breach]) -> Markup {
    let more = breaches.len().saturating_sub(LISTED_BREACHES);
    html! {
        @if !breaches.is_empty() {
            details.breaches open[breaches.len() <= 4] {
                summary { (breaches.len()) " where validity does not hold" }
                (super::wide(html! {
                    table {
                        thead { tr { th { "block" } th { "arm" } th { "cell" } th { "condition" } th { "found" } } }
                        tbody {
                            @for breach in breaches.iter().take(LISTED_BREACHES) {
                                tr {
                                    td { (breach.set) " " (breach.block) }
                                    td { (shown::label(report, &breach.arm)) }
                                    td { (breach.cell) }
                                    td { (breach.text) }
                                    td { (breach.found) }
                                }
                            }
                        }
                    }
                }))
                @if more > 0 { p.note { (more) " more in the report\u{2019}s JSON" } }
            }
        }
    }
}

pub(super) fn effects(report: &Report) -> Markup {
    let families = report.families.iter();
    let count: usize = families.map(|family| family.marks.len()).sum();
    html! {
        section #effects {
            h2 { "Effects by block" }
            ul.legend {
                li { (key("dot")) "block won" }
                li { (key("ring-loss")) "lost" }
                li { (key("ring-tie")) "tied" }
                li { (key("median")) "median" }
                li { (key("band")) "pointwise interval" }
                li { (key("dashed")) "what the rule asks" }
            }
            div.plots.two[count == 2 || count == 4] {
                @for family in &report.families {
                    @let sentences = family.hypothesis_words.iter().zip(&family.marks);
                    @for (hypothesis, (words, marks)) in family.verdict.hypotheses.iter().zip(sentences) {
                        figure {
                            p.claim { (hypothesis.text) }
                            (PreEscaped(inline_effects(hypothesis, marks)))
                            figcaption { (words) }
                        }
                    }
                }
            }
        }
    }
}

fn key(class: &str) -> Markup {
    html! { span.key.(class) aria-hidden="true" {} }
}
