//! The instrument's own error beside each effect, from the calibration that was given to the run.
//!
//! It is words beside a verdict and never a part of it: the rules were frozen before. The error is
//! bounded from above: both arms are seen through one instrument, and what is the same in both
//! cancels in their difference. See `docs/calibrate.md`.

mod words;

use assize_evidence::calibration::{Distribution, HostDifference, ReceiveWay, Row};
use assize_plan::{Cell, Hash, Hypothesis, Judgement, Load, Origin, Quantity, ValueUnit};
use assize_stats::percentile::median_of_ratios;
use assize_units::{DurNs, NS_PER_S, Ratio};
use serde::Serialize;

use super::Exact;
use super::marks::unit_of;
use crate::metrics::CellSummary;
use crate::study::Analysis;
use crate::verdict::{BlockEffect, HypothesisVerdict};

/// An effect is well above the instrument's error from so many times the error's p99 on.
pub const WELL_ABOVE: i128 = 3;

/// What is known of the instrument in a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InstrumentFacts {
    /// The hash of the calibration that was given to the run.
    pub calibration: Option<Hash>,
    /// The tool that made it.
    pub tool: Option<String>,
    /// In what the run's host differs from the one that was calibrated.
    pub differences: Vec<HostDifference>,
    /// What the errors are and where they are from; how to get them where there are none.
    pub words: String,
    /// Why they may not hold, a sentence for each difference.
    pub doubts: Vec<String>,
}

/// A hypothesis' effect in its own unit, and the instrument's error beside it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InstrumentError {
    /// The unit of difference, distance and error.
    pub unit: ValueUnit,
    /// The median over blocks of candidate minus control.
    pub difference: Option<Exact>,
    /// The median over blocks of the candidate minus the line that the rule draws: the control's
    /// figure moved by the margin, or the bound. None where the line is the control's figure.
    pub from_line: Option<Exact>,
    /// The error; none where there is nothing to say.
    pub error: Option<ErrorFigures>,
    /// Why there is none.
    pub absent: Option<String>,
    /// How the two compare.
    pub standing: Standing,
    /// The error in words, or why none is stated; none where no calibration is attached.
    pub words: Option<String>,
    /// That the effect is not well above it.
    pub flag: Option<String>,
}

/// How an effect compares with the instrument's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// At least [`WELL_ABOVE`] times its p99.
    WellAbove,
    /// Less: it may be the instrument's.
    NotWellAbove,
    /// One of the two is not known.
    Unknown,
}

/// The instrument's error of one figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ErrorFigures {
    /// The run's driver.
    pub driver: String,
    /// The cell's way of receiving: `reap` or `kernel`.
    pub receive: &'static str,
    /// The receive error, where the figure hangs on one.
    pub receive_error: Option<Spread>,
    /// The dispatch lag, where the figure begins at an instant of an open loop's schedule.
    pub dispatch_lag: Option<Spread>,
    /// Gaps that a request's error is divided by: of the shortest answer.
    pub gaps: Option<u64>,
    /// The shortest observation interval that a rate is over.
    pub window_ns: Option<DurNs>,
    /// The error at p99 of a rate as a share of it.
    pub relative: Option<Exact>,
    /// The error's median, in the effect's unit.
    pub p50: Exact,
    /// Its 99th percentile.
    pub p99: Exact,
    /// From here on an effect is well above it.
    pub well_above_from: Exact,
}

/// Two percentiles of a calibration's distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// The median.
    pub p50_ns: DurNs,
    /// The 99th percentile.
    pub p99_ns: DurNs,
}

impl Spread {
    /// What is at least each of two.
    fn larger(self, other: Spread) -> Spread {
        Spread {
            p50_ns: self.p50_ns.max(other.p50_ns),
            p99_ns: self.p99_ns.max(other.p99_ns),
        }
    }
}

impl From<Distribution> for Spread {
    fn from(it: Distribution) -> Spread {
        Spread {
            p50_ns: it.p50_ns,
            p99_ns: it.p99_ns,
        }
    }
}

impl InstrumentFacts {
    pub(super) fn of(analysis: &Analysis) -> InstrumentFacts {
        let attached = analysis.verified.calibration.as_ref();
        let differences = attached.map(|it| it.differences.clone());
        let differences = differences.unwrap_or_default();
        InstrumentFacts {
            calibration: attached.map(|it| it.hash),
            tool: attached.map(|it| it.calibration.tool.clone()),
            words: words::of_calibration(attached.is_some()),
            doubts: differences.iter().map(words::doubt).collect(),
            differences,
        }
    }
}

impl InstrumentError {
    pub(super) fn of(
        analysis: &Analysis,
        hypothesis: &Hypothesis,
        verdict: &HypothesisVerdict,
    ) -> InstrumentError {
        let difference = difference(verdict);
        let from_line = from_line(hypothesis, verdict);
        let (error, absent) = match error(analysis, hypothesis, verdict) {
            Ok(error) => (Some(error), None),
            Err(why) => (None, Some(why)),
        };
        let compared = compared(hypothesis, difference, from_line);
        let standing = match (&error, compared) {
            (Some(error), Some((_, size)))
                if size.is_positive() && size >= error.well_above_from.0 =>
            {
                Standing::WellAbove
            }
            (Some(_), Some(_)) => Standing::NotWellAbove,
            _ => Standing::Unknown,
        };
        let unit = unit_of(hypothesis.measure.quantity);
        let spoken = words::Spoken {
            unit,
            compared,
            standing,
        };
        InstrumentError {
            unit,
            difference: difference.map(Exact),
            from_line: from_line.map(Exact),
            words: match (&error, &absent) {
                (Some(error), _) => Some(spoken.words(error)),
                // That none is attached is said once, for the whole report.
                (None, Some(why)) if analysis.verified.calibration.is_some() => {
                    Some(format!("No error of the instrument is stated: {why}."))
                }
                _ => None,
            },
            flag: error.as_ref().and_then(|error| spoken.flag(error)),
            error,
            absent,
            standing,
        }
    }
}

fn median(of: impl Iterator<Item = Ratio>) -> Option<Ratio> {
    let mut values: Vec<Ratio> = of.collect();
    values.sort_unstable();
    median_of_ratios(&values)
}

/// Candidate and control of each block that has both.
fn pairs(verdict: &HypothesisVerdict) -> impl Iterator<Item = (Ratio, Ratio)> {
    let both = |block: &BlockEffect| Some((block.candidate?.0, block.control?.0));
    verdict.blocks.iter().filter_map(both)
}

fn difference(verdict: &HypothesisVerdict) -> Option<Ratio> {
    median(pairs(verdict).filter_map(|(candidate, control)| candidate.sub(control).ok()))
}

fn from_line(hypothesis: &Hypothesis, verdict: &HypothesisVerdict) -> Option<Ratio> {
    let gain = match hypothesis.judgement {
        Judgement::Beats { .. } => return None,
        Judgement::BeatsBy { margin } => margin,
        Judgement::Keeps { within } => within.neg(),
        Judgement::Holds { value, .. } => {
            let values = verdict.blocks.iter().filter_map(|block| block.candidate);
            return median(values.filter_map(|it| it.0.sub(value).ok()));
        }
    };
    let is_higher_better = hypothesis.measure.quantity.higher_is_better()?;
    let moved = if is_higher_better { gain } else { gain.neg() };
    let factor = Ratio::ONE.add(moved).ok()?;
    let distances = pairs(verdict).filter_map(|(candidate, control)| {
        let line = control.mul(factor).ok()?;
        candidate.sub(line).ok()
    });
    median(distances)
}

/// What is held against the error, by its name and its size: for a claim of an improvement the
/// difference, and what is left of it beyond the margin where that is less; otherwise the distance
/// from the line.
fn compared(
    hypothesis: &Hypothesis,
    difference: Option<Ratio>,
    from_line: Option<Ratio>,
) -> Option<(&'static str, Ratio)> {
    let difference = difference.map(|it| ("The median difference", size(it)));
    let from_margin = from_line.map(|it| ("The median distance from the margin", size(it)));
    match hypothesis.judgement {
        Judgement::Beats { .. } => difference,
        Judgement::BeatsBy { .. } => [difference?, from_margin?]
            .into_iter()
            .min_by_key(|it| it.1),
        Judgement::Keeps { .. } => from_margin,
        Judgement::Holds { .. } => {
            from_line.map(|it| ("The median distance from the bound", size(it)))
        }
    }
}

fn size(value: Ratio) -> Ratio {
    value.max(value.neg())
}

/// Which of the instrument's errors a figure hangs on.
struct Parts {
    receive: bool,
    lag: bool,
}

fn parts(hypothesis: &Hypothesis, is_open: bool) -> Result<Parts, String> {
    let measure = &hypothesis.measure;
    let is_scheduled = is_open && measure.from.is_none_or(|from| from == Origin::Intended);
    match measure.quantity {
        Quantity::Throughput | Quantity::OutputThroughput | Quantity::Goodput => Ok(Parts {
            receive: true,
            lag: is_open,
        }),
        Quantity::Ttft | Quantity::FirstOutput | Quantity::E2e => Ok(Parts {
            receive: true,
            lag: is_scheduled,
        }),
        Quantity::Tpot | Quantity::Gap | Quantity::AdmissionWait => Ok(Parts {
            receive: true,
            lag: false,
        }),
        Quantity::DispatchLag => Ok(Parts {
            receive: false,
            lag: true,
        }),
        Quantity::Attainment => Err(
            "a share counts requests, and a request within the error of \
             its threshold may fall on either side"
                .to_owned(),
        ),
        Quantity::Offered
        | Quantity::Valid
        | Quantity::Failed
        | Quantity::Missing
        | Quantity::TokensPerEvent => Err("a count hangs on no stamp".to_owned()),
    }
}

/// A cell that a hypothesis stands on: as planned and as run.
type Stands<'a> = (&'a Cell, &'a CellSummary);

fn error(
    analysis: &Analysis,
    hypothesis: &Hypothesis,
    verdict: &HypothesisVerdict,
) -> Result<ErrorFigures, String> {
    let cells = cells(analysis, hypothesis, verdict);
    let is_open = |cell: &Cell| matches!(cell.load, Load::Open { .. });
    let parts = parts(hypothesis, cells.iter().any(|(cell, _)| is_open(cell)))?;
    let (receive, rows) = rows(analysis, &cells)?;
    let spread = |name: &str, of: fn(&Row) -> Option<Distribution>| {
        let each = rows.iter().map(|row| {
            let found = of(row).map(Spread::from);
            found.ok_or_else(|| format!("the calibration has no {name} of {}", row.driver))
        });
        each.reduce(|one, other| Ok(one?.larger(other?)))
            .transpose()
    };
    let receive_error = if parts.receive {
        spread("receive error", |row| row.receive_error)?
    } else {
        None
    };
    let dispatch_lag = if parts.lag {
        spread("dispatch lag", |row| row.dispatch_lag)?
    } else {
        None
    };
    let [p50, p99] = [|it: Spread| it.p50_ns, |it: Spread| it.p99_ns].map(|pick| {
        let parts = [receive_error, dispatch_lag].into_iter().flatten();
        // Both are at most a day.
        DurNs(parts.map(|spread| pick(spread).0).sum())
    });
    let scale = Scale::of(hypothesis.measure.quantity, &cells, verdict)?;
    let wide = || "the error does not fit 128-bit integers".to_owned();
    let (p50, p99) = (scale.apply(p50), scale.apply(p99));
    let (p50, p99) = p50.zip(p99).ok_or_else(wide)?;
    let well_above_from = p99.mul(Ratio::whole(WELL_ABOVE)).map_err(|_| wide())?;
    Ok(ErrorFigures {
        driver: analysis.verified.run.driver.clone(),
        receive,
        receive_error,
        dispatch_lag,
        gaps: scale.gaps(),
        window_ns: scale.window(),
        relative: scale.relative(p99).map(Exact),
        p50: Exact(p50),
        p99: Exact(p99),
        well_above_from: Exact(well_above_from),
    })
}

/// The cells of the blocks that have an effect, of every arm of the hypothesis.
fn cells<'a>(
    analysis: &'a Analysis,
    hypothesis: &Hypothesis,
    verdict: &HypothesisVerdict,
) -> Vec<Stands<'a>> {
    let counts = |set: &str, block: u32| {
        let found = verdict
            .blocks
            .iter()
            .find(|it| it.set == set && it.block == block);
        found.is_some_and(|it| it.effect.is_some())
    };
    let is_arm =
        |arm: &String| *arm == hypothesis.candidate || hypothesis.control.as_ref() == Some(arm);
    analysis
        .cells
        .iter()
        .filter(|it| !it.excluded && it.cell == hypothesis.cell)
        .filter(|it| is_arm(&it.arm) && counts(&it.set, it.block))
        .filter_map(|it| {
            let unit = analysis.verified.plan.units.get(it.unit as usize)?;
            let planned = unit.cells.iter().find(|cell| cell.name == it.cell)?;
            Some((planned, it.summary.as_ref()?))
        })
        .collect()
}

/// The calibration's rows of the run's driver and the cells' ways of receiving. A run always
/// records.
fn rows<'a>(
    analysis: &'a Analysis,
    cells: &[Stands<'_>],
) -> Result<(&'static str, Vec<&'a Row>), String> {
    let Some(attached) = &analysis.verified.calibration else {
        return Err("no calibration is attached".to_owned());
    };
    let driver = &analysis.verified.run.driver;
    let mut word = None;
    let mut rows: Vec<&Row> = Vec::new();
    for (cell, _) in cells {
        let way = ReceiveWay::from(cell.receive);
        let row = attached.calibration.row(driver, way, true).ok_or_else(|| {
            let way = way.word();
            format!("the calibration has no row of {driver} with {way}, recorded")
        })?;
        word = word.or(Some(way.word()));
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    let word = word.ok_or("no block has an effect")?;
    Ok((word, rows))
}

/// From an error of stamps to an error of the figure.
enum Scale {
    /// The figure is a difference of stamps.
    Time,
    /// A mean over so many gaps between two stamps.
    Gaps(u64),
    /// A rate, at most so high, over at least so long.
    Rate { highest: Ratio, window: DurNs },
}

impl Scale {
    fn of(
        quantity: Quantity,
        cells: &[Stands<'_>],
        verdict: &HypothesisVerdict,
    ) -> Result<Scale, String> {
        match quantity {
            Quantity::Throughput | Quantity::OutputThroughput | Quantity::Goodput => {
                let intervals = cells.iter().map(|(_, summary)| summary.interval_ns);
                let window = intervals.filter(|it| *it > DurNs::ZERO).min();
                let blocks = verdict.blocks.iter();
                let rates = blocks.flat_map(|block| [block.candidate, block.control]);
                let highest = rates.flatten().map(|rate| rate.0).max();
                let (highest, window) = highest.zip(window).ok_or("no block has an effect")?;
                Ok(Scale::Rate { highest, window })
            }
            // Of the shortest answer that has a TPOT: no request's error is larger.
            Quantity::Tpot => {
                let lengths = cells.iter().flat_map(|(_, it)| &it.output_lengths);
                let shortest = lengths.map(|it| it.tokens).filter(|it| *it > 1).min();
                Ok(Scale::Gaps(shortest.map_or(1, |tokens| tokens - 1)))
            }
            _ => Ok(Scale::Time),
        }
    }

    /// The error of the figure, in its base unit.
    fn apply(&self, error: DurNs) -> Option<Ratio> {
        let over = |den: i128| Ratio::new(i128::from(error.0), den).ok();
        let second = i128::from(NS_PER_S);
        match self {
            Scale::Time => over(second),
            Scale::Gaps(gaps) => over(second.checked_mul(i128::from(*gaps))?),
            Scale::Rate { highest, window } => over(i128::from(window.0))?.mul(*highest).ok(),
        }
    }

    fn gaps(&self) -> Option<u64> {
        match self {
            Scale::Gaps(gaps) => Some(*gaps),
            _ => None,
        }
    }

    fn window(&self) -> Option<DurNs> {
        match self {
            Scale::Rate { window, .. } => Some(*window),
            _ => None,
        }
    }

    fn relative(&self, error: Ratio) -> Option<Ratio> {
        match self {
            Scale::Rate { highest, .. } => error.div(*highest).ok(),
            _ => None,
        }
    }
}
