//! Each kind of hypothesis, over figures given by hand.

use assize_plan::{
    CompareOp, Correction, Expect, Hypothesis, Judgement, Measure, Plan, Quantity, Ties,
};
use assize_reader::metrics::NoFigure;
use assize_reader::verdict::{CellFigures, FamilyVerdict, UnitState, Verdict, decide};
use assize_units::Ratio;

use crate::USUAL;

fn throughput() -> Measure {
    Measure {
        quantity: Quantity::Throughput,
        stat: None,
        from: None,
        class: None,
        within: Vec::new(),
    }
}

/// The plan of six blocks with one hypothesis on the throughput in closed-2, tested at 5%.
fn plan(judgement: Judgement) -> Plan {
    let (mut plan, _) = USUAL.plan();
    let is_value = matches!(judgement, Judgement::Holds { .. });
    let family = &mut plan.rules[0];
    family.valid.clear();
    family.correct = Correction::None {
        alpha: Ratio::new(5, 100).unwrap(),
    };
    family.hypotheses = vec![Hypothesis {
        text: "as given".to_owned(),
        candidate: "fast".to_owned(),
        control: (!is_value).then(|| "slow".to_owned()),
        measure: throughput(),
        cell: "closed-2".to_owned(),
        judgement,
    }];
    plan
}

/// Judges figures in thousandths of an event a second, one pair for each block.
fn judge(plan: &Plan, figures: &[(i128, i128)]) -> FamilyVerdict {
    let pairs = figures
        .iter()
        .map(|(fast, slow)| (Some(*fast), Some(*slow)));
    judge_optional(plan, &pairs.collect::<Vec<_>>())
}

fn judge_optional(plan: &Plan, figures: &[(Option<i128>, Option<i128>)]) -> FamilyVerdict {
    let value = |figure: Option<i128>| {
        figure.map_or(Err(NoFigure::NoSample), |it| {
            Ok(Ratio::new(it, 1_000).unwrap())
        })
    };
    let cells: Vec<CellFigures> = figures
        .iter()
        .flat_map(|(fast, slow)| [*fast, *slow])
        .zip(0..)
        .map(|(figure, unit)| CellFigures {
            unit,
            cell: "closed-2".to_owned(),
            figures: vec![(throughput(), value(figure))],
        })
        .collect();
    let states = vec![UnitState::Complete; plan.units.len()];
    decide(plan, &states, &cells).unwrap().remove(0)
}

fn percent(value: i128) -> Ratio {
    Ratio::new(value, 100).unwrap()
}

#[test]
fn a_median_below_its_screen_is_not_supported_though_the_test_passes() {
    let plan = plan(Judgement::Beats {
        median_gain: Some(percent(5)),
    });
    let family = judge(&plan, &[(1_040, 1_000); 6]);
    let hypothesis = &family.hypotheses[0];
    assert!(hypothesis.test_passes && !hypothesis.margin_passes);
    assert_eq!(hypothesis.verdict, Verdict::NotSupported);
    assert_eq!(hypothesis.reasons, ["the median effect of 4% is below 5%"]);
    // Exactly on the screen is enough.
    let family = judge(&plan, &[(1_050, 1_000); 6]);
    assert_eq!(family.hypotheses[0].verdict, Verdict::Supported);
}

#[test]
fn superiority_by_a_margin_is_another_rule() {
    let plan = plan(Judgement::BeatsBy { margin: percent(5) });
    let family = judge(&plan, &[(1_050, 1_000); 6]);
    let hypothesis = &family.hypotheses[0];
    assert_eq!((hypothesis.wins, hypothesis.ties), (0, 6));
    assert_eq!(hypothesis.verdict, Verdict::NotSupported);
    let family = judge(&plan, &[(1_051, 1_000); 6]);
    assert_eq!(family.hypotheses[0].verdict, Verdict::Supported);
}

#[test]
fn keeping_within_a_margin_asks_it_of_the_median_too() {
    let plan = plan(Judgement::Keeps { within: percent(2) });
    let family = judge(&plan, &[(990, 1_000); 6]);
    assert_eq!(family.hypotheses[0].verdict, Verdict::Supported);
    let family = judge(&plan, &[(980, 1_000); 6]);
    let hypothesis = &family.hypotheses[0];
    assert!(!hypothesis.margin_passes);
    assert_eq!(hypothesis.verdict, Verdict::NotSupported);
}

#[test]
fn a_value_holds_by_the_test_and_not_on_average() {
    let plan = plan(Judgement::Holds {
        op: CompareOp::Ge,
        value: Ratio::ONE,
    });
    let family = judge(&plan, &[(1_000, 0); 6]);
    let hypothesis = &family.hypotheses[0];
    assert_eq!(
        (hypothesis.wins, hypothesis.p.fraction()),
        (6, "1/64".to_owned())
    );
    assert_eq!(hypothesis.verdict, Verdict::Supported);
    assert_eq!(hypothesis.median.unwrap().0, Ratio::ONE);
    let mut figures = [(9_000, 0); 6];
    figures[0].0 = 999;
    let family = judge(&plan, &figures);
    let hypothesis = &family.hypotheses[0];
    assert_eq!((hypothesis.wins, hypothesis.losses), (5, 1));
    assert_eq!(hypothesis.verdict, Verdict::NotSupported);
}

/// "A zero or missing denominator makes the block's effect missing: a nonwin, and a breach of
/// validity."
#[test]
fn a_missing_effect_blocks() {
    let plan = plan(Judgement::Beats { median_gain: None });
    for slow in [None, Some(0)] {
        let mut figures = vec![(Some(2_000), Some(1_000)); 6];
        figures[3].1 = slow;
        let family = judge_optional(&plan, &figures);
        let hypothesis = &family.hypotheses[0];
        assert_eq!((hypothesis.wins, hypothesis.missing), (5, 1));
        assert_eq!(family.breaches.len(), 1);
        assert_eq!(hypothesis.verdict, Verdict::Blocked);
    }
}

#[test]
fn a_dropped_tie_is_no_trial() {
    let mut plan = plan(Judgement::Beats { median_gain: None });
    let mut figures = [(2_000, 1_000); 6];
    figures[0] = (1_000, 1_000);
    let p = |plan: &Plan| judge(plan, &figures).hypotheses[0].p.fraction();
    assert_eq!(p(&plan), "7/64");
    plan.rules[0].test = assize_plan::Test::Sign {
        ties: Ties::Dropped,
    };
    assert_eq!(p(&plan), "1/32");
}

#[test]
fn what_is_expected_of_a_family_is_told() {
    let mut plan = plan(Judgement::Beats { median_gain: None });
    plan.rules[0].expect = Some(Expect::NoneSupported);
    let met = |figures| judge(&plan, figures).expectation_met;
    assert_eq!(met(&[(1_000, 1_000); 6]), Some(true));
    assert_eq!(met(&[(1_100, 1_000); 6]), Some(false));
}
