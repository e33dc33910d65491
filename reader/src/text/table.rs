//! Figures down, arms across; and tables beside each other where the terminal is wide.

use super::lines::{Line, Tone, wrapped};
use crate::shown::visible;

/// The column of the figures' names.
const NAMES: usize = 27;
/// An arm's column, with its gap.
const COLUMN: usize = 17;
/// Lines of an arm's name at most.
const HEAD: usize = 3;
/// Between two tables.
const BETWEEN: usize = 4;

/// One table with its title.
pub(super) struct Table {
    title: Line,
    arms: Vec<Vec<String>>,
    rows: Vec<(Line, Vec<String>)>,
}

impl Table {
    /// How many arms stand beside each other within so many columns.
    pub(super) fn columns_within(width: usize) -> usize {
        (width.saturating_sub(NAMES) / COLUMN).max(1)
    }

    pub(super) fn new<'a>(title: Line, arms: impl Iterator<Item = &'a str>) -> Table {
        Table {
            title,
            arms: arms.map(|arm| wrapped(&visible(arm), COLUMN - 1)).collect(),
            rows: Vec::new(),
        }
    }

    pub(super) fn row(&mut self, name: &str, values: Vec<String>) {
        self.rows.push((Line::of(name, Tone::Quiet), values));
    }

    pub(super) fn lines(self) -> Vec<Line> {
        let mut lines = vec![self.title];
        let high = self.arms.iter().map(Vec::len).max().unwrap_or(0).min(HEAD);
        for at in 0..high {
            // Short names stand at the foot of the head, right above their figures.
            let names = self.arms.iter().map(|rows| {
                let rows = &rows[..rows.len().min(high)];
                let text = (at + rows.len())
                    .checked_sub(high)
                    .map_or("", |at| &rows[at]);
                Line::of(text, Tone::Strong)
            });
            lines.push(row(Line::default(), names.collect()));
        }
        for (name, values) in self.rows {
            let values = values
                .iter()
                .map(|value| Line::of(value, Tone::Plain).cut(COLUMN - 1));
            lines.push(row(name.cut(NAMES - 1), values.collect()));
        }
        lines
    }
}

/// Values that end at the right of their columns.
fn row(name: Line, values: Vec<Line>) -> Line {
    let mut line = name;
    for (place, value) in values.into_iter().enumerate() {
        let end = NAMES + (place + 1) * COLUMN;
        line = line.joined(end.saturating_sub(value.width()), value);
    }
    line
}

/// Blocks of lines in rows, as many beside each other as fit.
pub(super) fn beside(blocks: Vec<Vec<Line>>, width: usize) -> Vec<Vec<Line>> {
    let mut rows: Vec<Vec<Line>> = Vec::new();
    let mut used = 0;
    for block in blocks {
        let wide = block.iter().map(Line::width).max().unwrap_or(0);
        let at = used + BETWEEN;
        match rows.last_mut().filter(|_| used > 0 && at + wide <= width) {
            Some(row) => {
                row.resize(row.len().max(block.len()), Line::default());
                for (line, other) in row.iter_mut().zip(block) {
                    *line = std::mem::take(line).joined(at, other);
                }
                used = at + wide;
            }
            None => {
                rows.push(block);
                used = wide;
            }
        }
    }
    rows
}
