//! Cell by cell: figures with their medians over blocks, counts, and every failure by name.

use maud::{Markup, PreEscaped, html};

use crate::plot;
use crate::report::{ArmCell, LoadFacts, Report};
use crate::shown;
use crate::study::{CellResult, FailedRequest};

/// Failed requests that the page lists; the rest is counted.
const LISTED_FAILURES: usize = 500;

pub(super) fn cells(report: &Report) -> Markup {
    html! {
        section #cells {
            h2 { "Cells" }
            p.note {
                "Medians over the blocks that were run to their end; requests of different blocks \
                 are not pooled. Faint dots are blocks, a filled dot is their median, a ring a \
                 block alone. Percentiles are nearest-rank, over valid completions; lags are over \
                 all attempts."
            }
            @for rows in plot::cells(report) { (cell(rows)) }
        }
    }
}

fn cell(rows: &[ArmCell]) -> Markup {
    let Some(first) = rows.first() else {
        return html! {};
    };
    html! {
        article.cell {
            h3 {
                b { (first.cell) }
                small {
                    (first.set) " \u{b7} " (load(first)) " \u{b7} "
                    (shown::count(u64::from(first.requests))) " requests a block"
                    @if first.excluded { " \u{b7} excluded" }
                    @if !first.wire { " \u{b7} figures rest on claims" }
                }
            }
            div.plots {
                @for figure in plot::shown_figures(rows) {
                    figure { (PreEscaped(plot::inline_blocks(rows, figure))) }
                }
            }
            (super::wide(figures(rows)))
        }
    }
}

fn load(row: &ArmCell) -> String {
    match row.load {
        LoadFacts::Open { cap: None } => "open loop".to_owned(),
        LoadFacts::Open { cap: Some(cap) } => format!("open loop with a cap of {cap}"),
        LoadFacts::Closed { clients } => format!("closed loop, {clients} in flight"),
    }
}

/// Figures down, arms across.
fn figures(rows: &[ArmCell]) -> Markup {
    let origin = rows.first().map(|row| row.load.origin());
    let latencies = origin.map(shown::rows).unwrap_or_default();
    let shows = |name, from, stat| {
        rows.iter()
            .any(|row| row.figure(name, from, stat).is_some())
    };
    let rates = [
        ("throughput", "throughput"),
        ("output_throughput", "output tokens"),
        ("scheduled_rate", "scheduled rate"),
        ("sent_rate", "sent rate"),
    ];
    html! {
        table.figures {
            thead { tr {
                th scope="col" { "median of" }
                @for row in rows { th scope="col" { (row.label) } }
            } }
            tbody {
                tr {
                    th scope="row" { "blocks" }
                    @for row in rows { td { (row.blocks_run) " of " (row.blocks_planned) } }
                }
                @for (name, title) in rates {
                    @if shows(name, None, None) {
                        tr {
                            th scope="row" { (title) }
                            @for row in rows { td { (shown::median(row.figure(name, None, None))) } }
                        }
                    }
                }
                @for (name, from, stats) in latencies {
                    @if shows(name, from, Some(stats[0])) {
                        tr {
                            th scope="row" {
                                (shown::latency_name(name, from)) " "
                                small { (stats[0]) " / " (stats[1]) }
                            }
                            @for row in rows {
                                td {
                                    @let [first, second] = shown::medians(stats.map(|stat| row.figure(name, from, Some(stat))));
                                    span.whole { (first) " /" } " " span.whole { (second) }
                                }
                            }
                        }
                    }
                }
                (sums(rows))
            }
        }
    }
}

/// What is summed over blocks and not a median.
fn sums(rows: &[ArmCell]) -> Markup {
    html! {
        tr.sum {
            th scope="row" { "output tokens, sum" }
            @for row in rows {
                @let (sum, from) = shown::tokens(&row.tokens);
                td { (sum) @if !from.is_empty() { " " small { "from " (from) } } }
            }
        }
        tr {
            th scope="row" { "token-bearing events, sum" }
            @for row in rows {
                td {
                    (shown::count(row.events.token_bearing))
                    @if row.events.multi_token > 0 {
                        " " small { (shown::count(row.events.multi_token)) " of several tokens" }
                    }
                }
            }
        }
        tr {
            th scope="row" { "empty events; zero gaps" }
            @for row in rows {
                td { (shown::count(row.events.empty)) "; " (shown::count(row.events.zero_gaps)) }
            }
        }
        tr {
            th scope="row" { "most in flight" }
            @for row in rows { td { (shown::count(row.peak_outstanding as u64)) } }
        }
    }
}

pub(super) fn counts(report: &Report) -> Markup {
    html! {
        section #counts {
            h2 { "Counts and failures" }
            (super::wide(html! {
                table.counts {
                    thead { tr {
                        th scope="col" { "arm" }
                        th scope="col" { "offered" } th scope="col" { "valid" }
                        th scope="col" { "failed" } th scope="col" { "missing" }
                        th scope="col" { "not begun" }
                    } }
                    @for rows in plot::cells(report) { (count_rows(rows)) }
                }
            }))
            (failures(report))
            (world(report))
        }
    }
}

fn count_rows(rows: &[ArmCell]) -> Markup {
    let number = |value: usize| shown::count(value as u64);
    html! {
        tbody {
            @if let Some(first) = rows.first() {
                tr.group { th colspan="6" scope="rowgroup" {
                    b { (first.cell) } small { (first.set) @if first.excluded { " \u{b7} excluded" } }
                } }
            }
            @for row in rows {
                @let counts = &row.counts;
                tr {
                    th scope="row" { (row.label) }
                    td { (number(counts.offered)) }
                    td {
                        (number(counts.valid))
                        @if counts.empty_valid > 0 { " " small { (number(counts.empty_valid)) " empty" } }
                    }
                    td.some[counts.failed > 0] { (number(counts.failed)) }
                    td.some[counts.missing > 0] { (number(counts.missing)) }
                    td.some[shown::not_begun(counts) > 0] { (number(shown::not_begun(counts))) }
                }
            }
        }
    }
}

fn failures(report: &Report) -> Markup {
    let all: Vec<(&CellResult, &FailedRequest)> = report
        .cells
        .iter()
        .flat_map(|cell| {
            cell.failed_requests
                .iter()
                .map(move |failed| (cell, failed))
        })
        .collect();
    let not_listed: usize = report.cells.iter().map(|cell| cell.failed_not_listed).sum();
    let more = all.len().saturating_sub(LISTED_FAILURES) + not_listed;
    html! {
        h3 { "Failed requests" }
        @if all.is_empty() {
            p { "none" }
        } @else {
            details open[all.len() <= 25] {
                summary { (shown::count((all.len() + not_listed) as u64)) " failed requests by name" }
                (super::wide(html! {
                    table {
                        thead { tr {
                            th { "block" } th { "arm" } th { "cell" } th { "request" }
                            th { "outcome" } th { "phase" } th { "what the bytes show" }
                        } }
                        tbody { @for (cell, failed) in all.iter().take(LISTED_FAILURES) {
                            tr {
                                td { (cell.set) " " (cell.block) }
                                td { (shown::label(report, &cell.arm)) }
                                td { (cell.cell) @if cell.excluded { " " small { "excluded" } } }
                                td.id { (failed.id) }
                                td { (failed.outcome.replace('_', " ")) }
                                td { (failed.phase.replace('_', " ")) }
                                td { (seen(failed)) }
                            }
                        } }
                    }
                }))
                @if more > 0 { p.note { (shown::count(more as u64)) " more in the evidence" } }
            }
        }
    }
}

fn seen(failed: &FailedRequest) -> String {
    let mut parts = Vec::new();
    if let Some(status) = failed.status {
        parts.push(format!("status {status}"));
    }
    parts.extend(failed.why.map(|why| why.replace('_', " ")));
    if failed.stale_reuse_like {
        parts.push("consistent with a stale keep-alive reuse".to_owned());
    }
    parts.join("; ")
}

/// Failures that belong to no request, and units that were broken off.
fn world(report: &Report) -> Markup {
    let run = &report.evidence.run;
    html! {
        @if !run.failures.is_empty() {
            h3 { "Failures outside any request" }
            (super::wide(html! {
                table {
                    thead { tr { th { "unit" } th { "code" } th { "operation" } th { "subject" } th { "message" } } }
                    tbody { @for failure in &run.failures { tr {
                        td { (unit_path(report, failure.unit)) }
                        td { (failure.code) }
                        td { (failure.operation) }
                        td { (failure.subject) }
                        td { (failure.message) }
                    } } }
                }
            }))
        }
    }
}

pub(super) fn unit_path(report: &Report, unit: Option<u32>) -> String {
    unit.and_then(|unit| report.units.iter().find(|it| it.n == unit))
        .map_or_else(|| shown::NONE.to_owned(), |unit| unit.path.clone())
}
