//! When the requests of an open load are due.

use assize_units::{OffsetNs, Ratio};

use super::{Purpose, Stream, neg_ln_q64, offset_ns};

/// Requests of one cell at most.
pub const MAX_REQUESTS: u32 = 1_000_000;
/// The last offset that a plan can hold: 2^53 − 1 ns, 104 days.
const MAX_OFFSET_NS: u64 = (1 << 53) - 1;
/// The greatest denominator of a rate that is drawn.
const MAX_DENOMINATOR: i128 = 1 << 24;
const NS: u128 = 1_000_000_000;

/// An arrival process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// Exponential gaps; the first arrival is one gap after the origin.
    Poisson {
        /// Arrivals a second.
        rate: Ratio,
    },
    /// Gaps that are sums of `shape` exponentials: their coefficient of variation is 1/√shape.
    Gamma {
        /// Arrivals a second.
        rate: Ratio,
        /// 1/cv².
        shape: u32,
    },
    /// Equal gaps; the first arrival is at the origin.
    Every {
        /// Seconds between arrivals.
        gap: Ratio,
    },
    /// `size` arrivals at once, the first ones at the origin.
    Burst {
        /// Arrivals of one burst.
        size: u32,
        /// Seconds between bursts.
        gap: Ratio,
    },
}

impl Process {
    /// Whether it is drawn.
    pub fn is_drawn(&self) -> bool {
        matches!(self, Process::Poisson { .. } | Process::Gamma { .. })
    }
}

/// How long a stage goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// Until so many have arrived.
    Requests(u32),
    /// For so many seconds; an arrival at the very end belongs to the next stage.
    Seconds(Ratio),
}

/// A part of an open load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The process.
    pub process: Process,
    /// How long it goes on.
    pub span: Span,
}

/// Why a load has no schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArrivalError {
    /// The schedule is longer than a plan can hold.
    #[error("the schedule is longer than 104 days")]
    TooLong,
    /// There are more requests than a cell can have.
    #[error("a cell has at most {MAX_REQUESTS} requests")]
    TooMany,
    /// The denominator of a rate is too great for the draw's fixed point.
    #[error("the rate {0} has a denominator above 2^24: round it, as by floor_to(…, 0.1/s)")]
    Denominator(Ratio),
    /// A rate or a gap is zero or less.
    #[error("a rate, a gap and a duration are above zero")]
    NotPositive,
}

/// The offsets of an open load, in order. Stage `i` draws from the stream `first_stream + i` of the
/// purpose `arrivals`, and begins where the one before it ends.
pub fn arrivals(
    stages: &[Stage],
    block_seed: u128,
    cell: &str,
    first_stream: u32,
) -> Result<Vec<OffsetNs>, ArrivalError> {
    let mut all = Vec::new();
    let mut origin_ns = 0u64;
    for (place, stage) in (first_stream..).zip(stages) {
        let mut gaps = Gaps::new(
            stage.process,
            Stream::new(Purpose::Arrivals, block_seed, cell, place),
        )?;
        let (count, end_ns) = match stage.span {
            Span::Requests(count) => (count, None),
            Span::Seconds(length) => (MAX_REQUESTS, Some(whole_ns(length)?)),
        };
        let mut taken = 0;
        loop {
            if end_ns.is_none() && taken == count {
                break;
            }
            let offset = gaps.next_offset()?;
            if end_ns.is_some_and(|end| offset >= end) {
                break;
            }
            if all.len() == MAX_REQUESTS as usize {
                return Err(ArrivalError::TooMany);
            }
            let offset = origin_ns
                .checked_add(offset)
                .filter(|offset| *offset <= MAX_OFFSET_NS)
                .ok_or(ArrivalError::TooLong)?;
            all.push(OffsetNs(offset));
            taken += 1;
        }
        origin_ns = origin_ns
            .checked_add(end_ns.unwrap_or(0))
            .ok_or(ArrivalError::TooLong)?;
    }
    Ok(all)
}

/// floor(seconds · 10^9).
fn whole_ns(seconds: Ratio) -> Result<u64, ArrivalError> {
    times_ns(1, seconds)
}

/// floor(count · seconds · 10^9): no rounding adds up.
fn times_ns(count: u64, seconds: Ratio) -> Result<u64, ArrivalError> {
    let (num, den) = parts(seconds)?;
    num.checked_mul(NS)
        .and_then(|num| num.checked_mul(count.into()))
        .and_then(|num| u64::try_from(num / den).ok())
        .filter(|ns| *ns <= MAX_OFFSET_NS)
        .ok_or(ArrivalError::TooLong)
}

fn parts(value: Ratio) -> Result<(u128, u128), ArrivalError> {
    if !value.is_positive() {
        return Err(ArrivalError::NotPositive);
    }
    Ok((value.num().unsigned_abs(), value.den().unsigned_abs()))
}

/// The offsets of one process from its own beginning.
struct Gaps {
    process: Process,
    stream: Stream,
    sum: u128,
    next: u64,
}

impl Gaps {
    fn new(process: Process, stream: Stream) -> Result<Gaps, ArrivalError> {
        if let Process::Poisson { rate } | Process::Gamma { rate, .. } = process
            && rate.den() > MAX_DENOMINATOR
        {
            return Err(ArrivalError::Denominator(rate));
        }
        Ok(Gaps {
            process,
            stream,
            sum: 0,
            next: 0,
        })
    }

    fn next_offset(&mut self) -> Result<u64, ArrivalError> {
        let place = self.next;
        self.next += 1;
        match self.process {
            Process::Poisson { rate } => self.drawn(rate, 1),
            Process::Gamma { rate, shape } => self.drawn(rate, shape),
            Process::Every { gap } => times_ns(place, gap),
            Process::Burst { size, gap } => times_ns(place / u64::from(size.max(1)), gap),
        }
    }

    fn drawn(&mut self, rate: Ratio, shape: u32) -> Result<u64, ArrivalError> {
        let (num, den) = parts(rate)?;
        for _ in 0..shape {
            self.sum += neg_ln_q64(self.stream.next_u64());
        }
        num.checked_mul(shape.into())
            .and_then(|num| offset_ns(self.sum, num, den))
            .filter(|ns| *ns <= MAX_OFFSET_NS)
            .ok_or(ArrivalError::TooLong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ratio(num: i128, den: i128) -> Ratio {
        Ratio::new(num, den).unwrap()
    }

    fn offsets(process: Process, span: Span, seed: u128) -> Vec<u64> {
        let stage = Stage { process, span };
        arrivals(&[stage], seed, "near", 0)
            .unwrap()
            .into_iter()
            .map(|offset| offset.0)
            .collect()
    }

    #[test]
    fn equal_gaps_do_not_drift() {
        let third = Process::Every { gap: ratio(1, 3) };
        let drawn = offsets(third, Span::Requests(4), 0);
        assert_eq!(drawn, [0, 333_333_333, 666_666_666, 1_000_000_000]);
    }

    #[test]
    fn bursts_come_together() {
        let burst = Process::Burst {
            size: 2,
            gap: ratio(1, 2),
        };
        assert_eq!(
            offsets(burst, Span::Requests(5), 0),
            [0, 0, 500_000_000, 500_000_000, 1_000_000_000]
        );
    }

    #[test]
    fn an_arrival_at_the_end_of_a_stage_is_the_next_ones() {
        let stages = [
            Stage {
                process: Process::Every { gap: ratio(1, 1) },
                span: Span::Seconds(ratio(2, 1)),
            },
            Stage {
                process: Process::Every { gap: ratio(1, 2) },
                span: Span::Seconds(ratio(1, 1)),
            },
        ];
        let drawn: Vec<u64> = arrivals(&stages, 0, "c", 0)
            .unwrap()
            .iter()
            .map(|o| o.0)
            .collect();
        assert_eq!(drawn, [0, 1_000_000_000, 2_000_000_000, 2_500_000_000]);
    }

    #[test]
    fn a_schedule_beyond_the_format_is_refused() {
        let days = Process::Every {
            gap: ratio(100 * 86_400, 1),
        };
        let stage = Stage {
            process: days,
            span: Span::Requests(3),
        };
        assert_eq!(arrivals(&[stage], 0, "c", 0), Err(ArrivalError::TooLong));
        let fast = Process::Every {
            gap: ratio(1, 1_000_000_000),
        };
        let stage = Stage {
            process: fast,
            span: Span::Seconds(ratio(1, 1)),
        };
        assert_eq!(arrivals(&[stage], 0, "c", 0), Err(ArrivalError::TooMany));
        let stopped = Process::Poisson { rate: Ratio::ZERO };
        let stage = Stage {
            process: stopped,
            span: Span::Requests(1),
        };
        assert_eq!(
            arrivals(&[stage], 0, "c", 0),
            Err(ArrivalError::NotPositive)
        );
    }

    #[test]
    fn the_gaps_have_the_mean_and_the_spread_of_their_process() {
        for (process, cv) in [
            (Process::Poisson { rate: ratio(10, 1) }, 1.0),
            (
                Process::Gamma {
                    rate: ratio(10, 1),
                    shape: 4,
                },
                0.5,
            ),
        ] {
            let drawn = offsets(process, Span::Requests(20_000), 7);
            let gaps: Vec<f64> = std::iter::once(drawn[0])
                .chain(drawn.windows(2).map(|pair| pair[1] - pair[0]))
                .map(|ns| ns as f64 / 1e9)
                .collect();
            let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
            let variance =
                gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
            assert!((mean - 0.1).abs() < 0.003, "{mean}");
            assert!(
                (variance.sqrt() / mean - cv).abs() < 0.03,
                "{}",
                variance.sqrt() / mean
            );
        }
    }

    proptest! {
        #[test]
        fn offsets_do_not_fall_and_a_longer_draw_goes_on_from_a_shorter(
            seed in any::<u64>(), num in 1i128..1000, den in 1i128..100, n in 1u32..60
        ) {
            let process = Process::Poisson { rate: ratio(num, den) };
            let long = offsets(process, Span::Requests(n + 7), seed.into());
            prop_assert!(long.is_sorted());
            prop_assert_eq!(&long[..n as usize], &offsets(process, Span::Requests(n), seed.into())[..]);
        }

        #[test]
        fn a_span_of_time_keeps_what_arrives_in_it(seed in any::<u64>(), s in 1i128..20) {
            let process = Process::Poisson { rate: ratio(5, 1) };
            let within = offsets(process, Span::Seconds(ratio(s, 1)), seed.into());
            let more = offsets(process, Span::Requests(within.len() as u32 + 1), seed.into());
            prop_assert_eq!(&within[..], &more[..within.len()]);
            prop_assert!(*more.last().unwrap() >= s as u64 * 1_000_000_000);
        }
    }
}
