//! One measure of one cell, exact: what rules are decided by.

use assize_plan::{Measure, Plan, Quantity, Stat, Threshold};
use assize_stats::percentile::{Quantile, nearest_rank};
use assize_units::{DurNs, NS_PER_S, Ratio};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{ToPrimitive as _, Zero as _};

use super::{CellData, Origin, Timeline};
use crate::records::Record;

/// Why a measure has no value in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NoFigure {
    /// No request or event has the time that the measure is about.
    #[error("no valid request has it")]
    NoSample,
    /// A valid request lacks its token count.
    #[error("a valid request lacks its token count")]
    NoTokenCount,
    /// The observation interval is empty.
    #[error("the observation interval is empty")]
    NoInterval,
    /// The measure lacks its statistic, its origin or its thresholds.
    #[error("the measure is incomplete")]
    Incomplete,
    /// The exact value does not fit 128-bit integers.
    #[error("the exact value does not fit 128-bit integers")]
    Overflow,
}

/// A time that a hypothesis needs of each valid request of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// Which time.
    pub quantity: Quantity,
    /// Where it begins; none for `tpot`.
    pub from: Option<Origin>,
}

impl Need {
    /// The times that the plan's hypotheses need in a cell.
    pub fn of_cell(plan: &Plan, cell: &str) -> Vec<Need> {
        let mut needs: Vec<Need> = Vec::new();
        let hypotheses = plan.rules.iter().flat_map(|family| &family.hypotheses);
        for hypothesis in hypotheses.filter(|hypothesis| hypothesis.cell == cell) {
            let measure = &hypothesis.measure;
            let is_latency = matches!(
                measure.quantity,
                Quantity::Ttft | Quantity::FirstOutput | Quantity::E2e | Quantity::Tpot
            );
            let need = Need {
                quantity: measure.quantity,
                from: measure.from.map(Origin::from),
            };
            if is_latency && !needs.contains(&need) {
                needs.push(need);
            }
        }
        needs
    }

    pub(super) fn is_met(self, times: &Timeline) -> bool {
        time_of(times, self.quantity, self.from).is_some()
    }
}

/// The value of `measure` over the cell, in base units: seconds, events a second, a share, a count.
pub fn figure(plan: &Plan, cell: &CellData<'_>, measure: &Measure) -> Result<Ratio, NoFigure> {
    let kept = Kept {
        plan,
        class: measure.class.as_deref(),
    };
    let records = || cell.records.iter().filter(|record| kept.keeps(record));
    let valid = || records().filter(|record| record.outcome.is_valid());
    let count = |number: usize| Ok(Ratio::whole(number as i128));
    match measure.quantity {
        Quantity::Offered => count(records().count() + cell.unaccounted(measure.class.is_none())),
        Quantity::Valid => count(valid().count()),
        Quantity::Failed => count(records().count() - valid().count()),
        Quantity::Missing => {
            let short =
                |record: &&Record| !cell.needs.iter().all(|need| need.is_met(&record.times));
            count(valid().filter(short).count() + cell.unaccounted(measure.class.is_none()))
        }
        Quantity::Throughput => per_second(valid().count() as u64, cell.interval()),
        Quantity::OutputThroughput => per_second(tokens_of(valid())?, cell.interval()),
        Quantity::Goodput => {
            let met = met(valid(), &measure.within)?;
            per_second(met, cell.interval())
        }
        Quantity::Attainment => {
            let met = met(valid(), &measure.within)?;
            let offered = records().count() + cell.unaccounted(measure.class.is_none());
            Ratio::new(i128::from(met), offered as i128).map_err(|_| NoFigure::NoSample)
        }
        Quantity::TokensPerEvent => {
            let events: usize = valid().map(|record| record.times.tokens.len()).sum();
            let tokens = tokens_of(valid())?;
            Ratio::new(i128::from(tokens), events as i128).map_err(|_| NoFigure::NoSample)
        }
        Quantity::Gap => {
            let gaps = valid().flat_map(|record| record.times.gaps()).map(seconds);
            statistic(gaps.collect(), measure.stat)
        }
        Quantity::DispatchLag | Quantity::AdmissionWait => {
            let lags = records().filter_map(|record| match measure.quantity {
                Quantity::DispatchLag => record.times.dispatch_lag(),
                _ => record.times.admission_wait(),
            });
            statistic(lags.map(seconds).collect(), measure.stat)
        }
        Quantity::Ttft | Quantity::FirstOutput | Quantity::E2e | Quantity::Tpot => {
            let from = measure.from.map(Origin::from);
            if measure.quantity.needs_origin() && from.is_none() {
                return Err(NoFigure::Incomplete);
            }
            let times = valid()
                .filter_map(|record| time_of(&record.times, measure.quantity, from))
                .collect();
            statistic(times, measure.stat)
        }
    }
}

/// A duration in seconds, exact.
pub fn seconds(value: DurNs) -> Ratio {
    Ratio::new(i128::from(value.0), i128::from(NS_PER_S)).unwrap_or(Ratio::ZERO)
}

/// The records that a measure's `of CLASS` keeps.
struct Kept<'a> {
    plan: &'a Plan,
    class: Option<&'a str>,
}

impl Kept<'_> {
    fn keeps(&self, record: &Record) -> bool {
        let Some(wanted) = self.class else {
            return true;
        };
        self.plan
            .class(record.class)
            .is_some_and(|class| class.name == wanted)
    }
}

/// One request's time in seconds.
fn time_of(times: &Timeline, quantity: Quantity, from: Option<Origin>) -> Option<Ratio> {
    match quantity {
        Quantity::Ttft => times.ttft(from?).map(seconds),
        Quantity::FirstOutput => times.first_output(from?).map(seconds),
        Quantity::E2e => times.e2e(from?).map(seconds),
        Quantity::Tpot => times
            .tpot_ns()?
            .div(Ratio::whole(i128::from(NS_PER_S)))
            .ok(),
        _ => None,
    }
}

fn tokens_of<'a>(valid: impl Iterator<Item = &'a Record>) -> Result<u64, NoFigure> {
    let mut is_empty = true;
    let mut sum = 0u64;
    for record in valid {
        is_empty = false;
        let tokens = record.times.output_tokens.ok_or(NoFigure::NoTokenCount)?;
        sum = sum.checked_add(tokens).ok_or(NoFigure::Overflow)?;
    }
    if is_empty {
        return Err(NoFigure::NoSample);
    }
    Ok(sum)
}

/// Valid requests within every threshold, inclusive. A request without a threshold's time misses it.
fn met<'a>(valid: impl Iterator<Item = &'a Record>, within: &[Threshold]) -> Result<u64, NoFigure> {
    if within.is_empty() {
        return Err(NoFigure::Incomplete);
    }
    let meets = |record: &&Record| {
        within.iter().all(|threshold| {
            let from = threshold.from.map(Origin::from);
            time_of(&record.times, threshold.quantity, from)
                .is_some_and(|time| time <= threshold.at_most_s)
        })
    };
    Ok(valid.filter(meets).count() as u64)
}

fn per_second(count: u64, interval: DurNs) -> Result<Ratio, NoFigure> {
    assize_units::Rate::per_interval(count, interval)
        .map(|rate| rate.0)
        .ok_or(NoFigure::NoInterval)
}

fn statistic(mut values: Vec<Ratio>, stat: Option<Stat>) -> Result<Ratio, NoFigure> {
    values.sort_unstable();
    let rank = |quantile| {
        nearest_rank(&values, quantile)
            .map(|(_, value)| *value)
            .ok_or(NoFigure::NoSample)
    };
    match stat.ok_or(NoFigure::Incomplete)? {
        Stat::P50 => rank(Quantile::P50),
        Stat::P95 => rank(Quantile::P95),
        Stat::P99 => rank(Quantile::P99),
        Stat::Max => values.last().copied().ok_or(NoFigure::NoSample),
        Stat::Mean => mean(&values),
    }
}

/// The exact mean. Where the exact value does not fit 128-bit integers (many TPOTs of different
/// lengths), it is rounded down to a whole number of 10⁻¹⁸.
pub(super) fn mean(values: &[Ratio]) -> Result<Ratio, NoFigure> {
    if values.is_empty() {
        return Err(NoFigure::NoSample);
    }
    let exact = |value: &Ratio| BigRational::new(value.num().into(), value.den().into());
    let sum = values
        .iter()
        .fold(BigRational::zero(), |sum, value| sum + exact(value));
    let mean = sum / BigRational::from_integer(BigInt::from(values.len()));
    let fits =
        |mean: &BigRational| Ratio::new(mean.numer().to_i128()?, mean.denom().to_i128()?).ok();
    fits(&mean)
        .or_else(|| {
            let scale = 1_000_000_000_000_000_000i128;
            let scaled = (mean * BigRational::from_integer(scale.into())).floor();
            Ratio::new(scaled.to_integer().to_i128()?, scale).ok()
        })
        .ok_or(NoFigure::Overflow)
}
