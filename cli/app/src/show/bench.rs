//! The summary of `bench`.

use assize_plan::Tls;
use assize_reader::metrics::{CellSummary, Latency};
use assize_reader::report::Exact;
use assize_units::{DurNs, Rate, format_duration, format_rate};
use assize_verbs::bench::{Api, Benched, CELL};

use super::table::table;
use super::wrapped::indented;
use crate::output::printable;

/// For a person.
pub fn summary(benched: &Benched, width: usize) -> String {
    let mut text = format!(
        "{} on {} ({}), {}\nprompts sha256 {}\ndriver {}: {}\n",
        printable(&benched.model),
        printable(&benched.base),
        api_name(benched.api),
        benched.load,
        benched.prompts,
        benched.driver.0,
        benched.driver.1,
    );
    if benched.tls == Some(Tls::Insecure) {
        text.push_str("the endpoint's certificate was NOT VERIFIED\n");
    }
    for cell in &benched.analysis.cells {
        let Some(summary) = &cell.summary else {
            continue;
        };
        if cell.cell == CELL {
            text.push('\n');
            text.push_str(&counts(summary));
            text.push('\n');
            text.push_str(&latencies(summary));
            text.push('\n');
            text.push_str(&tokens(summary));
        } else if summary.failed > 0 {
            text.push_str(&format!(
                "\nthe warmup failed: {} of {} requests; nothing was measured\n",
                summary.failed, summary.offered
            ));
        }
        let shown = cell.failed_requests.iter().take(8);
        for failed in shown {
            let status = failed
                .status
                .map(|status| format!(", status {status}"))
                .unwrap_or_default();
            let why = failed.why.map(|why| format!(": {why}")).unwrap_or_default();
            text.push_str(&format!(
                "  failed {}: {} in {}{status}{why}\n",
                printable(&failed.id),
                failed.outcome,
                failed.phase
            ));
        }
        let hidden = (cell.failed_requests.len() + cell.failed_not_listed).saturating_sub(8);
        if hidden > 0 {
            text.push_str(&format!("  and {hidden} more\n"));
        }
    }
    text.push('\n');
    text.push_str(&indented(
        2,
        "Latency is conditional on valid completion; percentiles are nearest-rank. Throughput is valid requests \
         over the whole interval with its drain. One load on one endpoint: no comparison is made.",
        width,
    ));
    text
}

/// For a program.
pub fn json(benched: &Benched) -> serde_json::Value {
    serde_json::json!({
        "format": "assize-bench/1",
        "base": benched.base,
        "model": benched.model,
        "api": api_name(benched.api),
        "load": benched.load,
        "prompts_sha256": benched.prompts,
        "plan": benched.analysis.verified.plan_hash,
        "tls": benched.tls,
        "driver": { "name": benched.driver.0, "why": benched.driver.1 },
        "cells": benched.analysis.cells,
    })
}

fn counts(summary: &CellSummary) -> String {
    let mut text = format!("  {} of {} requests valid", summary.valid, summary.offered);
    if summary.failed > 0 {
        text.push_str(&format!(", {} failed", summary.failed));
        let kinds: Vec<String> = summary
            .failures
            .iter()
            .map(|failure| format!("{} {} in {}", failure.count, failure.outcome, failure.phase))
            .collect();
        text.push_str(&format!(" ({})", kinds.join(", ")));
    }
    if summary.empty_valid > 0 {
        text.push_str(&format!(", {} without a token", summary.empty_valid));
    }
    text.push('\n');
    let rate = |value: Option<Exact>| {
        value.map_or_else(|| "none".to_owned(), |value| format_rate(Rate(value.0)))
    };
    text.push_str(&format!(
        "  {} requests, {} output tokens, over {}\n",
        rate(summary.throughput),
        summary.output_throughput.map_or_else(
            || format!(
                "no rate of ({})",
                summary
                    .output_throughput_absent
                    .unwrap_or("nothing completed")
            ),
            |value| format_rate(Rate(value.0))
        ),
        format_duration(summary.interval_ns),
    ));
    if let (Some(scheduled), Some(sent)) = (summary.scheduled_rate, summary.sent_rate) {
        text.push_str(&format!(
            "  scheduled {}, sent {}, at most {} outstanding\n",
            format_rate(Rate(scheduled.0)),
            format_rate(Rate(sent.0)),
            summary.peak_outstanding
        ));
    }
    text
}

fn latencies(summary: &CellSummary) -> String {
    let heading = ["", "p50", "p95", "p99", "mean", "max", "samples"]
        .map(str::to_owned)
        .to_vec();
    let rows = summary
        .latencies
        .iter()
        .filter(|latency| latency.samples > 0)
        .map(|latency| {
            let time = |value: Exact| format_duration(DurNs(value.0.floor().max(0) as u64));
            vec![
                name(latency),
                time(latency.p50_ns),
                time(latency.p95_ns),
                time(latency.p99_ns),
                time(latency.mean_ns),
                time(latency.max_ns),
                latency.samples.to_string(),
            ]
        });
    table(&std::iter::once(heading).chain(rows).collect::<Vec<_>>())
}

fn name(latency: &Latency) -> String {
    match latency.from {
        Some(from) => format!("{} from {}", latency.name, from.name()),
        None => latency.name.to_owned(),
    }
}

fn tokens(summary: &CellSummary) -> String {
    let coverage = &summary.tokens;
    let events = &summary.events;
    let counted = match coverage.output_tokens {
        Some(tokens) => tokens.to_string(),
        None => "not known".to_owned(),
    };
    let source = match (coverage.usage, coverage.token_ids, coverage.neither) {
        _ if summary.valid == 0 => "of no valid answer".to_owned(),
        (usage, _, 0) if usage == summary.valid => {
            "from usage, which every valid answer has".to_owned()
        }
        (usage, ids, neither) => format!(
            "usage in {usage}, token ids in {ids}, neither in {neither} of {} valid answers",
            summary.valid
        ),
    };
    let mut text = format!(
        "  output tokens {counted}: counted {source}\n  stream events {}, {} of them token-bearing, {} empty, {} with several tokens\n  \
         events that shared a read with another {}, gaps of zero {}\n",
        events.events,
        events.token_bearing,
        events.empty,
        events.multi_token,
        events.coalesced,
        events.zero_gaps,
    );
    if coverage.disagree > 0 {
        text.push_str(&format!(
            "  usage and token ids disagree in {} answers\n",
            coverage.disagree
        ));
    }
    let reasons: Vec<String> = summary
        .finish_reasons
        .iter()
        .map(|reason| format!("{} {}", reason.count, printable(&reason.name)))
        .collect();
    if !reasons.is_empty() {
        text.push_str(&format!("  finish reasons: {}\n", reasons.join(", ")));
    }
    text
}

fn api_name(api: Api) -> &'static str {
    match api {
        Api::Chat => "chat",
        Api::Completions => "completions",
    }
}
