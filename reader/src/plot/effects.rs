//! One hypothesis, block by block: a dot a block, the median, its interval, and the rule's lines.

use assize_plan::ValueUnit;
use assize_units::Ratio;

use super::canvas::{AXIS_HEIGHT, Anchor, Canvas, Ink, Place, Scale, WIDTH, render};
use crate::report::Marks;
use crate::shown;
use crate::verdict::{BlockEffect, HypothesisVerdict};

const LEFT: f64 = 34.0;
const RIGHT: f64 = WIDTH - 14.0;
const TOP: f64 = 36.0;

/// The effects of one hypothesis by block, as an SVG file.
pub fn render_svg_effects(hypothesis: &HypothesisVerdict, marks: &Marks) -> String {
    effects(Place::File, hypothesis, marks)
}

/// As [`render_svg_effects`], for a page that has the style sheet.
pub(crate) fn inline_effects(hypothesis: &HypothesisVerdict, marks: &Marks) -> String {
    effects(Place::Inline, hypothesis, marks)
}

fn effects(place: Place, hypothesis: &HypothesisVerdict, marks: &Marks) -> String {
    let plot = Plot { hypothesis, marks };
    let rows = hypothesis.blocks.len();
    let height = TOP + rows.max(1) as f64 * row_height(rows) + AXIS_HEIGHT;
    let title = format!("{}: {}", plot.axis(), hypothesis.text);
    render(place, height, &title, &plot.description(), |canvas| {
        plot.draw(canvas);
    })
}

/// Rows come closer where there are many.
fn row_height(rows: usize) -> f64 {
    match rows {
        0..=12 => 16.0,
        13..=24 => 12.0,
        _ => 8.0,
    }
}

struct Plot<'a> {
    hypothesis: &'a HypothesisVerdict,
    marks: &'a Marks,
}

impl Plot<'_> {
    /// The number on the axis.
    fn on_axis(&self, value: Ratio) -> f64 {
        match self.marks.unit {
            ValueUnit::Share => value.as_f64() * 100.0,
            _ => value.as_f64(),
        }
    }

    fn shown(&self, value: Ratio) -> String {
        shown::found(self.marks, value)
    }

    /// A value that the rule names, exact.
    fn asked(&self, value: Ratio) -> String {
        if self.marks.is_effect {
            shown::effect(value)
        } else {
            shown::value(value, self.marks.unit)
        }
    }

    fn axis(&self) -> &'static str {
        if self.marks.is_effect {
            return "effect by block, % (positive means improvement)";
        }
        match self.marks.unit {
            ValueUnit::Share => "value by block, %",
            ValueUnit::Second => "value by block, s",
            ValueUnit::PerSecond => "value by block, 1/s",
            ValueUnit::Byte => "value by block, B",
            ValueUnit::Token => "value by block, tokens",
            ValueUnit::One => "value by block",
        }
    }

    /// The line that the rule draws, with its name; zero has a line of its own.
    fn mark(&self) -> Option<(&'static str, Ratio)> {
        if !self.marks.is_effect {
            return Some(("bound", self.marks.win_at.0));
        }
        if !self.marks.win_at.0.is_zero() {
            return Some(("margin", self.marks.win_at.0));
        }
        self.marks.median_at.map(|least| ("screen", least.0))
    }

    fn description(&self) -> String {
        let hypothesis = self.hypothesis;
        let mut parts = vec![format!(
            "{} blocks: {} won, {} tied, {} lost, {} missing.",
            hypothesis.blocks.len(),
            hypothesis.wins,
            hypothesis.ties,
            hypothesis.losses,
            hypothesis.missing
        )];
        if let Some(median) = hypothesis.median {
            parts.push(format!("Median {}.", self.shown(median.0)));
        }
        if let Some(range) = &hypothesis.interval {
            parts.push(format!(
                "Interval {} to {}.",
                self.shown(range.lower.0),
                self.shown(range.upper.0)
            ));
        }
        if let Some((name, value)) = self.mark() {
            parts.push(format!("Dashed: {name} {}.", self.asked(value)));
        }
        let each = hypothesis.blocks.iter().map(|block| {
            let effect = block.effect.map(|effect| self.shown(effect.0));
            format!("{} {}", block.block, effect.as_deref().unwrap_or("missing"))
        });
        parts.push(format!(
            "By block: {}.",
            each.collect::<Vec<_>>().join("; ")
        ));
        parts.join(" ")
    }

    fn draw(&self, canvas: &Canvas<'_>) {
        let blocks = &self.hypothesis.blocks;
        let high = row_height(blocks.len());
        let bottom = TOP + blocks.len().max(1) as f64 * high;
        let scale = self.scale();
        if let Some(range) = &self.hypothesis.interval {
            let from = scale.x(self.on_axis(range.lower.0));
            let to = scale.x(self.on_axis(range.upper.0));
            canvas.bar((from, TOP), (to.max(from + 1.0), bottom), Ink::Band);
        }
        scale.draw(canvas, TOP, bottom, self.axis());
        if self.marks.is_effect {
            let zero = scale.x(0.0);
            canvas.line((zero, TOP), (zero, bottom), Ink::Quiet, 1.25);
        }
        if let Some((name, value)) = self.mark() {
            let x = scale.x(self.on_axis(value));
            canvas.dashes(x, TOP - 4.0, bottom, Ink::Mark);
            let label = format!("{name} {}", self.asked(value));
            label_at(canvas, &label, x, TOP - 12.0, Ink::Mark);
        }
        if let Some(median) = self.hypothesis.median {
            let x = scale.x(self.on_axis(median.0));
            canvas.line((x, TOP - 4.0), (x, bottom), Ink::Text, 2.0);
            let label = format!("median {}", self.shown(median.0));
            label_at(canvas, &label, x, TOP - 27.0, Ink::Text);
        }
        // Labels of close rows would run into each other.
        let every = if high < 10.0 { 5 } else { 1 };
        for (row, block) in blocks.iter().enumerate() {
            let y = TOP + (row as f64 + 0.5) * high;
            if row % every == 0 {
                let label = block.block.to_string();
                canvas.text(&label, (LEFT - 8.0, y), 10.5, Ink::Quiet, Anchor::End);
            }
            self.dot(canvas, &scale, block, y, (high / 2.0 - 1.0).min(4.5));
        }
        canvas.text(
            "block",
            (LEFT - 8.0, TOP - 8.0),
            10.0,
            Ink::Quiet,
            Anchor::End,
        );
    }

    fn scale(&self) -> Scale {
        let hypothesis = self.hypothesis;
        let effects = hypothesis.blocks.iter().filter_map(|block| block.effect);
        let ends = hypothesis.interval.iter();
        let ends = ends.flat_map(|range| [range.lower, range.upper]);
        let values = effects.chain(ends).map(|value| value.0);
        let marks = self.mark().map(|(_, value)| value);
        let zero = self.marks.is_effect.then_some(Ratio::ZERO);
        let all = values.chain(marks).chain(zero);
        Scale::of(all.map(|value| self.on_axis(value)), LEFT, RIGHT)
    }

    fn dot(&self, canvas: &Canvas<'_>, scale: &Scale, block: &BlockEffect, y: f64, radius: f64) {
        let Some(effect) = block.effect else {
            // Lines of the plot would run through the word.
            canvas.bar((LEFT + 2.0, y - 5.5), (LEFT + 49.0, y + 5.5), Ink::Paper);
            let at = (LEFT + 6.0, y);
            canvas.text("missing", at, 10.5, Ink::Loss, Anchor::Start);
            return;
        };
        let at = (scale.x(self.on_axis(effect.0)), y);
        match block.outcome {
            "win" => canvas.dot(at, radius, Ink::Win, 1.0),
            "tie" => canvas.ring(at, radius, Ink::Quiet),
            _ => canvas.ring(at, radius, Ink::Loss),
        }
    }
}

/// A label above a line that stays inside the plot.
fn label_at(canvas: &Canvas<'_>, text: &str, x: f64, y: f64, ink: Ink) {
    let half = text.chars().count() as f64 * 3.1;
    let (x, anchor) = if x - half < LEFT + 2.0 {
        ((x - 4.0).max(LEFT + 2.0), Anchor::Start)
    } else if x + half > RIGHT + 8.0 {
        ((x + 4.0).min(RIGHT + 8.0), Anchor::End)
    } else {
        (x, Anchor::Middle)
    };
    canvas.text(text, (x, y), 11.5, ink, anchor);
}
