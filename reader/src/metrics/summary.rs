//! One cell's figures side by side. Failures stay in every count; latencies are those of valid
//! requests, and say so by their sample counts.

use std::collections::BTreeMap;

use assize_stats::percentile::{p50, p95, p99};
use assize_units::{DurNs, MonoNs, Rate, Ratio};
use serde::Serialize;

use super::figure::mean;
use super::{CellData, Origin, Timeline};
use crate::records::Record;
use crate::report::Exact;

/// A distribution by nearest rank, in nanoseconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// What it is: `ttft`, `e2e` and so on.
    pub name: &'static str,
    /// Where it begins; none where the name says it.
    pub from: Option<Origin>,
    /// Values in the sample.
    pub samples: usize,
    /// The median.
    pub p50_ns: Exact,
    /// The 95th percentile.
    pub p95_ns: Exact,
    /// The 99th percentile.
    pub p99_ns: Exact,
    /// The exact mean.
    pub mean_ns: Exact,
    /// The largest.
    pub max_ns: Exact,
}

/// How many requests failed in one way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FailureCount {
    /// The outcome's name.
    pub outcome: &'static str,
    /// How far the attempt had come.
    pub phase: &'static str,
    /// How many.
    pub count: usize,
}

/// A name and how often it occurred.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamedCount {
    /// The name.
    pub name: String,
    /// How often.
    pub count: usize,
}

/// An output length in tokens and how many valid requests had it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LengthCount {
    /// Tokens.
    pub tokens: u64,
    /// Valid requests.
    pub count: usize,
}

/// Requests waiting or in flight at the end of a quarter of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BacklogQuarter {
    /// The quarter, from 1.
    pub quarter: u8,
    /// Intended by then and not ended.
    pub outstanding: usize,
}

/// What the events of valid requests were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EventTotals {
    /// Events, `[DONE]` included.
    pub events: u64,
    /// Events that bear a token.
    pub token_bearing: u64,
    /// Events that bear none.
    pub empty: u64,
    /// Events known to bear several, by their token ids.
    pub multi_token: u64,
    /// Events completed by the same receive as the event before them.
    pub coalesced: u64,
    /// Gaps between token-bearing events of exactly zero.
    pub zero_gaps: u64,
}

/// How many valid requests have a token count, and how it was come by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TokenCoverage {
    /// Valid requests with usage.
    pub usage: usize,
    /// Valid requests with token ids for every token.
    pub token_ids: usize,
    /// Valid requests with both, where they disagree.
    pub disagree: usize,
    /// Valid requests with neither.
    pub neither: usize,
    /// The sum of output tokens; none where a valid request lacks its count or none is valid.
    pub output_tokens: Option<u64>,
}

/// One cell's figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellSummary {
    /// Requests of the plan.
    pub offered: usize,
    /// Requests that were dispatched.
    pub dispatched: usize,
    /// Requests whose last byte the kernel accepted.
    pub sent: usize,
    /// Valid completions.
    pub valid: usize,
    /// Valid completions without a token.
    pub empty_valid: usize,
    /// Requests that failed.
    pub failed: usize,
    /// Failures by outcome and phase.
    pub failures: Vec<FailureCount>,
    /// Requests without a record, or valid ones without a time that a hypothesis needs.
    pub missing: usize,
    /// Failures consistent with a stale keep-alive reuse; a likeness, not a cause.
    pub stale_reuse_like: usize,
    /// From the origin to the end of the drain.
    pub interval_ns: DurNs,
    /// From the last admission to the end.
    pub drain_ns: Option<DurNs>,
    /// Offered requests a second between the first and the last intended instant.
    pub scheduled_rate: Option<Exact>,
    /// Sent requests a second between the first and the last send.
    pub sent_rate: Option<Exact>,
    /// Valid completions a second of the interval.
    pub throughput: Option<Exact>,
    /// Their output tokens a second.
    pub output_throughput: Option<Exact>,
    /// Why `output_throughput` is absent.
    pub output_throughput_absent: Option<&'static str>,
    /// Distributions over valid requests, and of lags over all attempts.
    pub latencies: Vec<Latency>,
    /// What the events were.
    pub events: EventTotals,
    /// Token counts.
    pub tokens: TokenCoverage,
    /// Finish reasons of valid requests.
    pub finish_reasons: Vec<NamedCount>,
    /// The distribution of output lengths of valid requests.
    pub output_lengths: Vec<LengthCount>,
    /// The most requests admitted and not ended at one instant.
    pub peak_outstanding: usize,
    /// The backlog at the end of each quarter of the schedule.
    pub backlog: Vec<BacklogQuarter>,
}

/// Summarizes one cell.
pub fn summarize(cell: &CellData<'_>) -> CellSummary {
    let all: Vec<&Record> = cell.records.iter().collect();
    let valid: Vec<&Record> = all
        .iter()
        .copied()
        .filter(|record| record.outcome.is_valid())
        .collect();
    let tokens = token_coverage(&valid);
    let short = valid
        .iter()
        .filter(|record| !cell.needs.iter().all(|need| need.is_met(&record.times)))
        .count();
    let interval = cell.interval();
    let rate = |count: u64| Rate::per_interval(count, interval).map(|rate| Exact(rate.0));
    let absent = match tokens.output_tokens {
        Some(_) => None,
        None if valid.is_empty() => Some("no request is valid"),
        None => Some("a valid request lacks its token count"),
    };
    let last_admission = all.iter().filter_map(|record| record.times.admitted).max();
    CellSummary {
        offered: cell.offered,
        dispatched: count(&all, |times| times.dispatched.is_some()),
        sent: count(&all, |times| times.sent.is_some()),
        valid: valid.len(),
        empty_valid: count(&valid, |times| times.tokens.is_empty()),
        failed: all.len() - valid.len(),
        failures: failures(&all),
        missing: cell.unaccounted(true) + short,
        stale_reuse_like: all
            .iter()
            .filter(|record| record.is_like_stale_reuse())
            .count(),
        interval_ns: interval,
        drain_ns: last_admission.map(|last| cell.end.since(last)),
        scheduled_rate: pace(all.iter().map(|record| record.times.intended)),
        sent_rate: pace(all.iter().filter_map(|record| record.times.sent)),
        throughput: rate(valid.len() as u64),
        output_throughput: tokens.output_tokens.and_then(rate),
        output_throughput_absent: absent,
        latencies: latencies(&all, &valid),
        events: event_totals(&valid),
        tokens,
        finish_reasons: finish_reasons(&valid),
        output_lengths: output_lengths(&valid),
        peak_outstanding: peak_outstanding(&all),
        backlog: backlog(cell, &all),
    }
}

fn count(records: &[&Record], is: impl Fn(&Timeline) -> bool) -> usize {
    records.iter().filter(|record| is(&record.times)).count()
}

fn failures(all: &[&Record]) -> Vec<FailureCount> {
    let mut counts: BTreeMap<(&'static str, &'static str), usize> = BTreeMap::new();
    for record in all.iter().filter(|record| !record.outcome.is_valid()) {
        let phase = record.phase.word();
        *counts.entry((record.outcome.name(), phase)).or_default() += 1;
    }
    counts
        .into_iter()
        .map(|((outcome, phase), count)| FailureCount {
            outcome,
            phase,
            count,
        })
        .collect()
}

/// Intervals a second between the first and the last of some instants.
fn pace(instants: impl Iterator<Item = MonoNs> + Clone) -> Option<Exact> {
    let span = instants.clone().max()?.since(instants.clone().min()?);
    let intervals = instants.count() as u64 - 1;
    Rate::per_interval(intervals, span).map(|rate| Exact(rate.0))
}

fn latencies(all: &[&Record], valid: &[&Record]) -> Vec<Latency> {
    let mut found = Vec::new();
    for from in [Origin::Intended, Origin::Started, Origin::Sent] {
        let each: [(&str, fn(&Timeline, Origin) -> Option<DurNs>); 3] = [
            ("ttft", Timeline::ttft),
            ("first_output", Timeline::first_output),
            ("e2e", Timeline::e2e),
        ];
        for (name, time) in each {
            let times = valid.iter().filter_map(|record| time(&record.times, from));
            found.extend(latency(name, Some(from), times.map(whole)));
        }
    }
    let tpots = valid.iter().filter_map(|record| record.times.tpot_ns());
    found.extend(latency("tpot", None, tpots));
    let gaps = valid.iter().flat_map(|record| record.times.gaps());
    found.extend(latency("gap", None, gaps.map(whole)));
    let lags: [(&str, fn(&Timeline) -> Option<DurNs>); 3] = [
        ("dispatch_lag", Timeline::dispatch_lag),
        ("admission_wait", Timeline::admission_wait),
        ("close_delay", Timeline::close_delay),
    ];
    for (name, lag) in lags {
        let times = all.iter().filter_map(|record| lag(&record.times));
        found.extend(latency(name, None, times.map(whole)));
    }
    found
}

fn whole(value: DurNs) -> Ratio {
    Ratio::whole(i128::from(value.0))
}

fn latency(
    name: &'static str,
    from: Option<Origin>,
    values: impl Iterator<Item = Ratio>,
) -> Option<Latency> {
    let mut values: Vec<Ratio> = values.collect();
    values.sort_unstable();
    Some(Latency {
        name,
        from,
        samples: values.len(),
        p50_ns: Exact(*p50(&values)?),
        p95_ns: Exact(*p95(&values)?),
        p99_ns: Exact(*p99(&values)?),
        mean_ns: Exact(mean(&values).ok()?),
        max_ns: Exact(*values.last()?),
    })
}

fn event_totals(valid: &[&Record]) -> EventTotals {
    let mut totals = EventTotals::default();
    for record in valid {
        let events = &record.events;
        totals.events += events.events;
        totals.token_bearing += record.times.tokens.len() as u64;
        totals.empty += events.events - record.times.tokens.len() as u64;
        totals.multi_token += events.multi_token;
        totals.coalesced += events.coalesced;
        let zero = record.times.gaps().filter(|gap| *gap == DurNs::ZERO);
        totals.zero_gaps += zero.count() as u64;
    }
    totals
}

fn token_coverage(valid: &[&Record]) -> TokenCoverage {
    let mut coverage = TokenCoverage::default();
    for record in valid {
        let (usage, ids) = (record.usage_tokens, record.id_tokens);
        coverage.usage += usize::from(usage.is_some());
        coverage.token_ids += usize::from(ids.is_some());
        coverage.neither += usize::from(usage.is_none() && ids.is_none());
        let both = usage.zip(ids);
        coverage.disagree += usize::from(both.is_some_and(|(usage, ids)| usage != ids));
    }
    let counts = valid.iter().map(|record| record.times.output_tokens);
    let sum = counts
        .into_iter()
        .try_fold(0u64, |sum, tokens| sum.checked_add(tokens?));
    coverage.output_tokens = sum.filter(|_| !valid.is_empty());
    coverage
}

fn finish_reasons(valid: &[&Record]) -> Vec<NamedCount> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for finish in valid.iter().flat_map(|record| &record.finishes) {
        *counts.entry(finish.name()).or_default() += 1;
    }
    counts
        .into_iter()
        .map(|(name, count)| NamedCount {
            name: name.to_owned(),
            count,
        })
        .collect()
}

fn output_lengths(valid: &[&Record]) -> Vec<LengthCount> {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for tokens in valid.iter().filter_map(|record| record.times.output_tokens) {
        *counts.entry(tokens).or_default() += 1;
    }
    counts
        .into_iter()
        .map(|(tokens, count)| LengthCount { tokens, count })
        .collect()
}

/// Requests count from their admission to their end; at one instant ends come before admissions.
fn peak_outstanding(all: &[&Record]) -> usize {
    let mut edges: Vec<(MonoNs, i64)> = Vec::with_capacity(all.len() * 2);
    for record in all {
        if let (Some(admitted), Some(end)) = (record.times.admitted, record.times.end) {
            edges.push((admitted, 1));
            edges.push((end, -1));
        }
    }
    edges.sort_unstable();
    let (mut now, mut peak) = (0i64, 0i64);
    for (_, step) in edges {
        now += step;
        peak = peak.max(now);
    }
    usize::try_from(peak).unwrap_or(0)
}

fn backlog(cell: &CellData<'_>, all: &[&Record]) -> Vec<BacklogQuarter> {
    let Some(last) = all.iter().map(|record| record.times.intended).max() else {
        return Vec::new();
    };
    let span = last.since(cell.origin).0;
    (1..=4u8)
        .map(|quarter| {
            let share = u128::from(span) * u128::from(quarter) / 4;
            let instant = cell.origin.after(DurNs(share as u64));
            let waits = |record: &&&Record| {
                record.times.intended <= instant && record.times.end.is_none_or(|end| end > instant)
            };
            BacklogQuarter {
                quarter,
                outstanding: all.iter().filter(waits).count(),
            }
        })
        .collect()
}
