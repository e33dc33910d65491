//! The matrix as CSV: one row a block, arm and cell, failures and all.

use std::fmt::Write as _;

use super::{Exact, Report};
use crate::metrics::{CellSummary, Origin};

const HEADER: &str = "set,block,arm,cell,excluded,state,offered,dispatched,sent,valid,failed,missing,\
    empty_valid,interval_s,throughput_per_s,output_throughput_per_s,\
    ttft_intended_p50_s,ttft_intended_p95_s,ttft_sent_p50_s,ttft_sent_p95_s,\
    e2e_intended_p50_s,e2e_intended_p95_s,e2e_sent_p50_s,e2e_sent_p95_s,\
    tpot_p50_s,tpot_p95_s,dispatch_lag_p99_s,output_tokens,events,token_bearing_events,\
    multi_token_events,coalesced_events,zero_gaps";

/// The matrix. A cell that has no figure is empty; a unit that was not run has a row for each cell.
pub fn matrix_csv(report: &Report) -> String {
    let mut csv = String::from(HEADER);
    csv.push('\n');
    for unit in &report.units {
        for name in &unit.cells {
            let cell = report
                .cells
                .iter()
                .find(|cell| cell.unit == unit.n && cell.cell == *name);
            let state = match unit.state {
                crate::verdict::UnitState::Complete => "complete",
                crate::verdict::UnitState::Interrupted => "interrupted",
                crate::verdict::UnitState::NotRun => "not_run",
            };
            let _ = write!(
                csv,
                "{},{},{},{},{},{state}",
                text(&unit.set),
                unit.block,
                text(&unit.arm),
                text(name),
                unit.excluded
            );
            for column in columns(cell.and_then(|cell| cell.summary.as_ref())) {
                csv.push(',');
                csv.push_str(&column);
            }
            csv.push('\n');
        }
    }
    csv
}

/// The columns from `offered` on.
fn columns(summary: Option<&CellSummary>) -> Vec<String> {
    let Some(cell) = summary else {
        return vec![String::new(); HEADER.split(',').count() - 6];
    };
    let optional = |value: Option<String>| value.unwrap_or_default();
    let rate = |value: Option<Exact>| optional(value.map(|value| number(value.0.as_f64())));
    let latency =
        |name: &str, from: Option<Origin>, pick: fn(&crate::metrics::Latency) -> Exact| {
            let found = cell
                .latencies
                .iter()
                .find(|it| it.name == name && it.from == from);
            optional(found.map(|it| number(pick(it).0.as_f64() / 1e9)))
        };
    let mut columns: Vec<String> = [
        cell.offered,
        cell.dispatched,
        cell.sent,
        cell.valid,
        cell.failed,
        cell.missing,
        cell.empty_valid,
    ]
    .iter()
    .map(ToString::to_string)
    .collect();
    columns.push(number(cell.interval_ns.as_s_f64()));
    columns.push(rate(cell.throughput));
    columns.push(rate(cell.output_throughput));
    for name in ["ttft", "e2e"] {
        for from in [Origin::Intended, Origin::Sent] {
            columns.push(latency(name, Some(from), |it| it.p50_ns));
            columns.push(latency(name, Some(from), |it| it.p95_ns));
        }
    }
    columns.push(latency("tpot", None, |it| it.p50_ns));
    columns.push(latency("tpot", None, |it| it.p95_ns));
    columns.push(latency("dispatch_lag", None, |it| it.p99_ns));
    columns.push(optional(cell.tokens.output_tokens.map(|it| it.to_string())));
    let events = &cell.events;
    let counts = [
        events.events,
        events.token_bearing,
        events.multi_token,
        events.coalesced,
        events.zero_gaps,
    ];
    columns.extend(counts.iter().map(ToString::to_string));
    columns
}

fn number(value: f64) -> String {
    format!("{value}")
}

/// A text field: quoted where it must be, and never the beginning of a spreadsheet's formula.
fn text(value: &str) -> String {
    let value = if value.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        format!("'{value}")
    } else {
        value.to_owned()
    };
    if value.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", value.replace('"', "\"\""))
    } else {
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_outside_stays_text() {
        assert_eq!(text("sweep(4/s)"), "sweep(4/s)");
        assert_eq!(text("grid(4, 128)"), "\"grid(4, 128)\"");
        assert_eq!(text("=1+1"), "'=1+1");
        assert_eq!(text("a\"b"), "\"a\"\"b\"");
    }

    #[test]
    fn a_cell_without_figures_has_every_column() {
        let count = HEADER.split(',').count();
        assert_eq!(columns(None).len() + 6, count);
        assert!(HEADER.split(',').all(|name| name.trim() == name));
    }
}
