//! From figures to verdicts.

use assize_plan::{
    CompareOp, Condition, Correction, Expect, Family, Hypothesis, Interval, Judgement, Measure,
    Plan, Test, Ties, Unit,
};
use assize_stats::effect::{Comparison, Direction, Outcome, Tally, WinRule, paired_effect};
use assize_stats::holm::holm;
use assize_stats::order_statistic::narrowest;
use assize_stats::percentile::median_of_ratios;
use assize_stats::sign::{self, SignTest};
use assize_stats::{Probability, StatsError};
use assize_units::Ratio;

use super::condition::{Holds, evaluate};
use super::{
    BlockEffect, Breach, CellFigures, FamilyVerdict, HypothesisVerdict, MedianRange, UnitState,
    Verdict, measure_text, outcome_name,
};
use crate::metrics::NoFigure;
use crate::report::Exact;

/// Judges every family of the plan.
///
/// `states` has one entry for each unit of the plan, in its order.
pub fn decide(
    plan: &Plan,
    states: &[UnitState],
    cells: &[CellFigures],
) -> Result<Vec<FamilyVerdict>, StatsError> {
    let study = Study {
        plan,
        states,
        cells,
    };
    plan.rules
        .iter()
        .map(|family| study.judge_family(family))
        .collect()
}

struct Study<'a> {
    plan: &'a Plan,
    states: &'a [UnitState],
    cells: &'a [CellFigures],
}

/// A hypothesis before the family's correction.
struct Tested {
    blocks: Vec<BlockEffect>,
    tally: Tally,
    median: Option<Ratio>,
    interval: Option<MedianRange>,
    p: Probability,
    margin_passes: bool,
    /// Whether there is nothing to evaluate, and why.
    unevaluated: Option<String>,
}

impl Study<'_> {
    fn judge_family(&self, family: &Family) -> Result<FamilyVerdict, StatsError> {
        let tested = family
            .hypotheses
            .iter()
            .map(|hypothesis| self.test(family, hypothesis))
            .collect::<Result<Vec<_>, _>>()?;
        let incomplete_units = self.incomplete_units();
        let (conditions_tried, mut breaches) = self.try_conditions(&family.valid);
        for (hypothesis, tested) in family.hypotheses.iter().zip(&tested) {
            breaches.extend(missing_effects(hypothesis, tested));
        }
        let raw: Vec<Probability> = tested.iter().map(|tested| tested.p.clone()).collect();
        let (level, is_holm) = match family.correct {
            Correction::Holm { alpha } => (alpha, true),
            Correction::None { alpha } => (alpha, false),
        };
        let adjusted: Vec<(Probability, bool)> = if is_holm {
            holm(&raw, level)
                .into_iter()
                .map(|corrected| (corrected.adjusted, corrected.rejected))
                .collect()
        } else {
            raw.iter().map(|p| (p.clone(), p.at_most(level))).collect()
        };
        let state = FamilyState {
            level,
            is_holm,
            is_incomplete: !incomplete_units.is_empty(),
            breaches: breaches.len(),
        };
        let hypotheses: Vec<HypothesisVerdict> = family
            .hypotheses
            .iter()
            .zip(tested)
            .zip(adjusted)
            .map(|((hypothesis, tested), adjusted)| state.judge(hypothesis, tested, adjusted))
            .collect();
        let supported = |it: &HypothesisVerdict| it.verdict == Verdict::Supported;
        let expectation_met = family.expect.map(|expect| match expect {
            // A family that could not be judged has not shown what was expected of it.
            Expect::NoneSupported => hypotheses
                .iter()
                .all(|it| it.verdict == Verdict::NotSupported),
            Expect::AllSupported => hypotheses.iter().all(supported),
        });
        Ok(FamilyVerdict {
            name: family.name.clone(),
            level: Exact(level),
            holm: is_holm,
            conditions_tried,
            breaches,
            incomplete_units,
            hypotheses,
            expectation_met,
            discloses: family.discloses.clone(),
        })
    }

    /// Units of the timed sets, confirmation and descriptive: not excluded ones.
    fn timed_units(&self) -> impl Iterator<Item = &Unit> {
        self.plan.units.iter().filter(|unit| !unit.excluded)
    }

    fn state(&self, unit: &Unit) -> UnitState {
        let state = self.states.get(unit.n as usize);
        state.copied().unwrap_or(UnitState::NotRun)
    }

    fn incomplete_units(&self) -> Vec<String> {
        self.timed_units()
            .filter(|unit| self.state(unit) != UnitState::Complete)
            .map(|unit| unit.path.clone())
            .collect()
    }

    fn figure(&self, unit: &Unit, cell: &str, measure: &Measure) -> Result<Ratio, NoFigure> {
        self.cells
            .iter()
            .find(|it| it.unit == unit.n && it.cell == cell)
            .and_then(|it| it.figures.iter().find(|(named, _)| named == measure))
            .map_or(Err(NoFigure::NoSample), |(_, value)| *value)
    }

    /// Tries each condition over every arm, block and cell that was run to its end.
    fn try_conditions(&self, conditions: &[Condition]) -> (usize, Vec<Breach>) {
        let mut tried = 0;
        let mut breaches = Vec::new();
        for unit in self.timed_units() {
            if self.state(unit) != UnitState::Complete {
                continue;
            }
            for cell in &unit.cells {
                let speaks =
                    |it: &&Condition| it.cell.as_deref().is_none_or(|only| only == cell.name);
                for condition in conditions.iter().filter(speaks) {
                    tried += 1;
                    let figure = |measure: &Measure| self.figure(unit, &cell.name, measure);
                    let found = match evaluate(&condition.node, &figure) {
                        Holds::Yes => continue,
                        Holds::No(figures) => figures
                            .iter()
                            .map(|(measure, value)| format!("{} is {value}", measure_text(measure)))
                            .collect::<Vec<_>>()
                            .join(", "),
                        Holds::Unknown(why) => format!("it cannot be judged: {why}"),
                    };
                    breaches.push(Breach {
                        text: condition.text.clone(),
                        set: unit.set.clone(),
                        block: unit.block,
                        arm: unit.arm.clone(),
                        cell: cell.name.clone(),
                        found,
                    });
                }
            }
        }
        (tried, breaches)
    }

    fn test(&self, family: &Family, hypothesis: &Hypothesis) -> Result<Tested, StatsError> {
        let rule = win_rule(&hypothesis.judgement);
        let pairs = self.pairs(hypothesis);
        let mut unevaluated = pairs
            .is_empty()
            .then(|| "no block runs the cell on every arm of the hypothesis".to_owned());
        let mut blocks = Vec::with_capacity(pairs.len());
        let mut outcomes = Vec::with_capacity(pairs.len());
        for pair in &pairs {
            let (block, outcome) = self.block(hypothesis, rule, pair);
            if !pair.is_complete(self) {
                unevaluated.get_or_insert_with(|| {
                    format!("{} {} was not run to its end", block.set, block.block)
                });
            }
            outcomes.push(outcome);
            blocks.push(block);
        }
        let tally: Tally = outcomes.into_iter().collect();
        let Test::Sign { ties } = family.test;
        let ties = match ties {
            Ties::Nonwins => sign::Ties::Nonwins,
            Ties::Dropped => sign::Ties::Dropped,
        };
        let p = if unevaluated.is_some() {
            Probability::one()
        } else {
            SignTest::new(tally, ties)?.p
        };
        let mut effects: Vec<Ratio> = blocks
            .iter()
            .filter_map(|block| block.effect.map(|effect| effect.0))
            .collect();
        effects.sort_unstable();
        let median = median_of_ratios(&effects);
        let floor = match hypothesis.judgement {
            Judgement::Beats { median_gain } => median_gain,
            _ => None,
        };
        Ok(Tested {
            margin_passes: median.is_some_and(|median| rule.median_passes(median, floor)),
            interval: interval(family.interval, &effects)?,
            blocks,
            tally,
            median,
            p,
            unevaluated,
        })
    }

    /// The matched blocks of a hypothesis: those in which every arm of it runs its cell.
    fn pairs(&self, hypothesis: &Hypothesis) -> Vec<Pair<'_>> {
        let runs = |unit: &&Unit| unit.cells.iter().any(|cell| cell.name == hypothesis.cell);
        let of_arm = |arm: &str, like: &Unit| {
            self.timed_units()
                .filter(runs)
                .find(|unit| unit.arm == arm && unit.set == like.set && unit.block == like.block)
        };
        self.timed_units()
            .filter(runs)
            .filter(|unit| unit.arm == hypothesis.candidate)
            .filter_map(|candidate| match &hypothesis.control {
                None => Some(Pair {
                    candidate,
                    control: None,
                }),
                Some(arm) => Some(Pair {
                    candidate,
                    control: Some(of_arm(arm, candidate)?),
                }),
            })
            .collect()
    }

    fn block(
        &self,
        hypothesis: &Hypothesis,
        rule: WinRule,
        pair: &Pair<'_>,
    ) -> (BlockEffect, Outcome) {
        let value = |unit: &Unit| self.figure(unit, &hypothesis.cell, &hypothesis.measure);
        let candidate = value(pair.candidate);
        let control = pair.control.map(value);
        let effect: Result<Ratio, String> = match control {
            None => candidate.map_err(|why| format!("{}: {why}", hypothesis.candidate)),
            Some(control) => {
                let direction = hypothesis.measure.quantity.higher_is_better();
                match direction {
                    None => Err("the measure has no direction".to_owned()),
                    Some(higher) => {
                        let direction = if higher {
                            Direction::HigherIsBetter
                        } else {
                            Direction::LowerIsBetter
                        };
                        paired_effect(candidate.ok(), control.ok(), direction)
                            .map_err(|why| why.to_string())
                    }
                }
            }
        };
        let outcome = rule.outcome(effect.as_ref().ok().copied());
        let exact = |value: Ratio| Exact(value);
        let block = BlockEffect {
            set: pair.candidate.set.clone(),
            block: pair.candidate.block,
            candidate: candidate.ok().map(exact),
            control: control.and_then(Result::ok).map(exact),
            effect: effect.as_ref().ok().copied().map(exact),
            outcome: outcome_name(outcome),
            why: effect.err(),
        };
        (block, outcome)
    }
}

struct Pair<'a> {
    candidate: &'a Unit,
    control: Option<&'a Unit>,
}

impl Pair<'_> {
    fn is_complete(&self, study: &Study<'_>) -> bool {
        std::iter::once(self.candidate)
            .chain(self.control)
            .all(|unit| study.state(unit) == UnitState::Complete)
    }
}

/// An effect that a finished block should have and has not breaches validity.
fn missing_effects(hypothesis: &Hypothesis, tested: &Tested) -> Vec<Breach> {
    if tested.unevaluated.is_some() {
        return Vec::new();
    }
    tested
        .blocks
        .iter()
        .filter_map(|block| {
            Some(Breach {
                text: hypothesis.text.clone(),
                set: block.set.clone(),
                block: block.block,
                arm: hypothesis.candidate.clone(),
                cell: hypothesis.cell.clone(),
                found: format!("no effect: {}", block.why.as_ref()?),
            })
        })
        .collect()
}

/// What every hypothesis of a family shares.
struct FamilyState {
    level: Ratio,
    is_holm: bool,
    is_incomplete: bool,
    breaches: usize,
}

impl FamilyState {
    fn judge(
        &self,
        hypothesis: &Hypothesis,
        tested: Tested,
        (adjusted_p, test_passes): (Probability, bool),
    ) -> HypothesisVerdict {
        let (verdict, reasons) = self.verdict(hypothesis, &tested, &adjusted_p, test_passes);
        HypothesisVerdict {
            text: hypothesis.text.clone(),
            candidate: hypothesis.candidate.clone(),
            control: hypothesis.control.clone(),
            cell: hypothesis.cell.clone(),
            measure: measure_text(&hypothesis.measure),
            blocks: tested.blocks,
            wins: tested.tally.wins,
            ties: tested.tally.ties,
            losses: tested.tally.losses,
            missing: tested.tally.missing,
            median: tested.median.map(Exact),
            interval: tested.interval,
            p: tested.p,
            adjusted_p,
            test_passes,
            margin_passes: tested.margin_passes,
            verdict,
            reasons,
        }
    }

    fn verdict(
        &self,
        hypothesis: &Hypothesis,
        tested: &Tested,
        adjusted_p: &Probability,
        test_passes: bool,
    ) -> (Verdict, Vec<String>) {
        if let Some(why) = &tested.unevaluated {
            return (Verdict::NotEvaluated, vec![why.clone()]);
        }
        if self.is_incomplete {
            let why = "units of the study's timed sets were not run to their end";
            return (Verdict::NotEvaluated, vec![why.to_owned()]);
        }
        if self.breaches > 0 {
            let count = self.breaches;
            let noun = if count == 1 { "breach" } else { "breaches" };
            let why = format!("{count} {noun} of validity in the study's timed cells");
            return (Verdict::Blocked, vec![why]);
        }
        let mut failed = Vec::new();
        if !test_passes {
            let name = if self.is_holm { "adjusted p" } else { "p" };
            let level = percent(self.level);
            let p = adjusted_p.fraction();
            failed.push(format!("the {name} of {p} is above {level}"));
        }
        if !tested.margin_passes {
            failed.push(margin_reason(hypothesis, tested.median));
        }
        if failed.is_empty() {
            (Verdict::Supported, Vec::new())
        } else {
            (Verdict::NotSupported, failed)
        }
    }
}

fn margin_reason(hypothesis: &Hypothesis, median: Option<Ratio>) -> String {
    let Some(median) = median else {
        return "there is no median effect".to_owned();
    };
    let found = percent(median);
    match hypothesis.judgement {
        Judgement::Beats {
            median_gain: Some(floor),
        } => format!("the median effect of {found} is below {}", percent(floor)),
        Judgement::Keeps { within } => {
            let floor = percent(within.neg());
            format!("the median effect of {found} is not above {floor}")
        }
        _ => format!("the median effect is {found}"),
    }
}

/// A share in percent, exact where its decimals end.
pub(crate) fn percent(share: Ratio) -> String {
    let exact = share
        .mul(Ratio::whole(100))
        .ok()
        .and_then(Ratio::to_decimal)
        .filter(|text| text.len() <= 8);
    let text = exact.unwrap_or_else(|| format!("{:.3}", share.as_f64() * 100.0));
    format!("{}%", text.replace('-', "\u{2212}"))
}

fn interval(interval: Interval, sorted: &[Ratio]) -> Result<Option<MedianRange>, StatsError> {
    let Interval::MedianOrderStatistic { at_least } = interval;
    let count = u32::try_from(sorted.len()).unwrap_or(u32::MAX);
    let Some(found) = narrowest(count, at_least)? else {
        return Ok(None);
    };
    Ok(found.ends(sorted).map(|(lower, upper)| MedianRange {
        lower: Exact(lower),
        upper: Exact(upper),
        lower_rank: found.lower_rank,
        upper_rank: found.upper_rank,
        coverage: found.coverage,
    }))
}

fn win_rule(judgement: &Judgement) -> WinRule {
    match *judgement {
        Judgement::Beats { .. } => WinRule::Beats,
        Judgement::BeatsBy { margin } => WinRule::BeatsBy(margin),
        Judgement::Keeps { within } => WinRule::KeepsWithin(within),
        Judgement::Holds { op, value } => WinRule::Holds(comparison(op), value),
    }
}

fn comparison(op: CompareOp) -> Comparison {
    match op {
        CompareOp::Lt => Comparison::Below,
        CompareOp::Le => Comparison::AtMost,
        CompareOp::Eq => Comparison::Equal,
        CompareOp::Ne => Comparison::Unequal,
        CompareOp::Ge => Comparison::AtLeast,
        CompareOp::Gt => Comparison::Above,
    }
}
