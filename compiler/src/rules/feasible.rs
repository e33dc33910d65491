//! What the blocks of a family can show at all.

use assize_codes as codes;
use assize_plan::{Correction, Interval};
use assize_stats::design::Design;
use assize_stats::order_statistic::narrowest;
use assize_study::diagnostic::Diagnostic;
use assize_study::source::Span;
use assize_units::Ratio;

use crate::eval::{Evaluator, Kind, show};

/// Whether any outcome of the blocks can reject: the smallest p against the family's first step.
pub(super) fn feasible(
    eval: &Evaluator<'_>,
    correct: Correction,
    blocks: &[u32],
    spans: &[Span],
) -> Option<()> {
    let (alpha, hypotheses) = level(correct, blocks.len());
    let mut fine = true;
    let mut told: Vec<u32> = Vec::new();
    for (count, span) in blocks.iter().zip(spans) {
        let design = Design {
            blocks: *count,
            hypotheses,
            alpha,
        };
        if told.contains(count) || design.can_reject() != Ok(false) {
            continue;
        }
        told.push(*count);
        fine = false;
        let smallest = design.smallest_p().map(|p| p.as_f64()).unwrap_or(1.0);
        let step = alpha.as_f64() / f64::from(hypotheses);
        let noun = if hypotheses == 1 {
            "hypothesis"
        } else {
            "hypotheses"
        };
        let plural = if *count == 1 { "" } else { "s" };
        let mut diagnostic = Diagnostic::new(
            codes::E0601,
            *span,
            format!(
                "no outcome of {count} block{plural} can reject {hypotheses} {noun} at {}: {count} win{plural} of {count} give {smallest:.4}, the first step is {step:.4}",
                show(alpha, Kind::SHARE)
            ),
        );
        if let Ok(Some(enough)) = design.fewest_blocks() {
            let reached = Design {
                blocks: enough,
                hypotheses,
                alpha,
            };
            let reached = reached.smallest_p().map(|p| p.as_f64()).unwrap_or(1.0);
            diagnostic = diagnostic.help(format!("{enough} blocks reach {reached:.4}"));
        }
        eval.context.report(diagnostic);
    }
    fine.then_some(())
}

/// The family's level and the hypotheses that share it.
pub(crate) fn level(correct: Correction, hypotheses: usize) -> (Ratio, u32) {
    match correct {
        Correction::Holm { alpha } => (alpha, u32::try_from(hypotheses).unwrap_or(u32::MAX)),
        Correction::None { alpha } => (alpha, 1),
    }
}

pub(super) fn covered(eval: &Evaluator<'_>, interval: Interval, blocks: &[u32], span: Span) {
    let Interval::MedianOrderStatistic { at_least } = interval;
    let Some(fewest) = blocks.iter().min() else {
        return;
    };
    if !matches!(narrowest(*fewest, at_least), Ok(None)) {
        return;
    }
    let enough = (*fewest..=10_000).find(|n| matches!(narrowest(*n, at_least), Ok(Some(_))));
    let mut diagnostic = Diagnostic::new(
        codes::W0604,
        span,
        format!(
            "no order statistics of {fewest} blocks cover {}: the report will show no interval",
            show(at_least, Kind::SHARE)
        ),
    );
    if let Some(enough) = enough {
        diagnostic = diagnostic.help(format!(
            "{enough} blocks do, or ask for less: `median_order_statistic(at_least = 90%)`"
        ));
    }
    eval.context.report(diagnostic);
}
