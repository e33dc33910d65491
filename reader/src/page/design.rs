//! What was planned: arms, named values, and the order of arms and cells in each block.

use maud::{Markup, html};

use crate::report::{Report, UnitFacts};
use crate::shown;
use crate::verdict::UnitState;

pub(super) fn design(report: &Report) -> Markup {
    html! {
        section #design {
            h2 { "Design" }
            h3 { "Arms" }
            (super::wide(html! {
                table {
                    thead { tr { th { "arm" } th { "name" } th { "engine" } th { "model" } } }
                    tbody { @for arm in &report.arms { tr {
                        th scope="row" { (arm.label) @if arm.unverified { " " small { (shown::NOT_VERIFIED) } } }
                        td { code { (arm.name) } }
                        td { (arm.engine) }
                        td { @if let Some(model) = &arm.model { (model) } @else { (shown::NONE) } }
                    } } }
                }
            }))
            @for arm in &report.arms {
                @if let Some(discloses) = &arm.discloses {
                    h4 { "What the author discloses of " (arm.label) }
                    (super::authors(discloses))
                }
            }
            (values(report))
            (orders(report))
        }
    }
}

fn values(report: &Report) -> Markup {
    html! {
        @if !report.values.is_empty() {
            h3 { "Named values" }
            (super::wide(html! {
                table {
                    thead { tr { th { "name" } th { "value" } th { "formula" } th { "from" } } }
                    tbody { @for value in &report.values { tr {
                        th scope="row" { code { (value.name) } }
                        td.number { (shown::value(value.value.0, value.unit)) }
                        td { code { (value.formula) } }
                        td { (value.from.join(", ")) }
                    } } }
                }
            }))
        }
    }
}

/// One row a block: its arms and its cells as they were run.
fn orders(report: &Report) -> Markup {
    let blocks: Vec<&[UnitFacts]> = report
        .units
        .chunk_by(|a, b| a.set == b.set && a.block == b.block)
        .collect();
    html! {
        h3 { "Blocks" }
        details open[blocks.len() <= 16] {
            summary { (blocks.len()) @if blocks.len() == 1 { " block" } @else { " blocks" } " in the order of the plan" }
            (super::wide(html! {
                table {
                    thead { tr { th { "block" } th { "arms in order" } th { "cells in order" } th { "run" } } }
                    tbody { @for units in &blocks { (order(report, units)) } }
                }
            }))
        }
    }
}

fn order(report: &Report, units: &[UnitFacts]) -> Markup {
    let Some(first) = units.first() else {
        return html! {};
    };
    let arms: Vec<&str> = units
        .iter()
        .map(|it| shown::label(report, &it.arm))
        .collect();
    let same_cells = units.iter().all(|unit| unit.cells == first.cells);
    html! {
        tr {
            th scope="row" { (first.set) " " (first.block) @if first.excluded { " " small { "excluded" } } }
            td { (arms.join(" \u{2192} ")) }
            td {
                @if same_cells {
                    (first.cells.join(" \u{2192} "))
                } @else {
                    @for unit in units {
                        div { (shown::label(report, &unit.arm)) ": " (unit.cells.join(" \u{2192} ")) }
                    }
                }
            }
            td { (state(report, units)) }
        }
    }
}

/// Whether the block was run; arm by arm where they differ.
fn state(report: &Report, units: &[UnitFacts]) -> Markup {
    let word = |state: UnitState| match state {
        UnitState::Complete => "complete",
        UnitState::Interrupted => "interrupted",
        UnitState::NotRun => "not run",
    };
    let Some(first) = units.first() else {
        return html! {};
    };
    let is_short = |unit: &UnitFacts| unit.state != UnitState::Complete;
    html! {
        @if units.iter().all(|unit| unit.state == first.state) {
            span.some[is_short(first)] { (word(first.state)) }
        } @else {
            @for unit in units {
                div.some[is_short(unit)] { (shown::label(report, &unit.arm)) ": " (word(unit.state)) }
            }
        }
    }
}
