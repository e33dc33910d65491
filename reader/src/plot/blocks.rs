//! One figure of one cell: a row for each arm, every block a faint dot, the median a filled one.

use super::canvas::{AXIS_HEIGHT, Anchor, Canvas, Ink, Place, Scale, WIDTH, cut, render};
use crate::report::{ArmCell, ArmFigure, BlockFigure, FigureUnit};
use crate::shown;

const LEFT: f64 = 14.0;
const RIGHT: f64 = WIDTH - 18.0;
const TOP: f64 = 4.0;
const ROW: f64 = 44.0;

/// The figures of a cell that are plotted: throughput, and the 95th percentiles of TTFT and E2E
/// from the origin that fits the load. The first arm that has one stands for all.
pub fn shown_figures(rows: &[ArmCell]) -> Vec<&ArmFigure> {
    let Some(first) = rows.first() else {
        return Vec::new();
    };
    let origin = Some(first.load.origin());
    let wanted = [
        ("throughput", None, None),
        ("ttft", origin, Some("p95")),
        ("e2e", origin, Some("p95")),
    ];
    wanted
        .into_iter()
        .filter_map(|(name, from, stat)| rows.iter().find_map(|row| row.figure(name, from, stat)))
        .collect()
}

/// A figure of one cell by arm and block, as an SVG file. `rows` are the arms of one cell; `like`
/// names the figure.
pub fn render_svg_blocks(rows: &[ArmCell], like: &ArmFigure) -> String {
    blocks(Place::File, rows, like)
}

/// As [`render_svg_blocks`], for a page that has the style sheet.
pub(crate) fn inline_blocks(rows: &[ArmCell], like: &ArmFigure) -> String {
    blocks(Place::Inline, rows, like)
}

fn blocks(place: Place, rows: &[ArmCell], like: &ArmFigure) -> String {
    let plot = Plot::new(rows, like);
    let height = TOP + rows.len() as f64 * ROW + AXIS_HEIGHT;
    let cell = rows.first().map_or("", |row| row.cell.as_str());
    let title = format!("{} by block in {cell}", plot.name);
    render(place, height, &title, &plot.description(), |canvas| {
        plot.draw(canvas);
    })
}

struct Plot<'a> {
    rows: Vec<(&'a ArmCell, Option<&'a ArmFigure>)>,
    name: String,
    unit: &'static str,
    divisor: f64,
}

impl<'a> Plot<'a> {
    fn new(rows: &'a [ArmCell], like: &ArmFigure) -> Plot<'a> {
        let rows: Vec<_> = rows
            .iter()
            .map(|row| (row, row.figure(like.name, like.from, like.stat)))
            .collect();
        let largest = rows
            .iter()
            .flat_map(|(_, figure)| figure.iter().flat_map(|it| &it.blocks))
            .map(|block| block.value.0.as_f64())
            .fold(0.0, f64::max);
        let (unit, divisor) = match like.unit {
            FigureUnit::PerSecond => ("1/s", 1.0),
            FigureUnit::Ns if largest >= 1e9 => ("s", 1e9),
            FigureUnit::Ns if largest >= 1e6 => ("ms", 1e6),
            FigureUnit::Ns => ("\u{b5}s", 1e3),
        };
        let name = shown::latency_name(like.name, like.from);
        let name = match like.stat {
            Some(stat) => format!("{stat} of {name}"),
            None => name,
        };
        Plot {
            rows,
            name,
            unit,
            divisor,
        }
    }

    fn on_axis(&self, block: &BlockFigure) -> f64 {
        block.value.0.as_f64() / self.divisor
    }

    fn description(&self) -> String {
        let each = self.rows.iter().map(|(row, figure)| match figure {
            None => format!("{}: none.", row.label),
            Some(figure) => format!(
                "{}: median {} over {} blocks.",
                row.label,
                shown::median(Some(figure)),
                figure.blocks.len()
            ),
        });
        each.collect::<Vec<_>>().join(" ")
    }

    fn draw(&self, canvas: &Canvas<'_>) {
        let bottom = TOP + self.rows.len() as f64 * ROW;
        let figures = self.rows.iter().filter_map(|(_, figure)| *figure);
        let values = figures.flat_map(|figure| &figure.blocks);
        let scale = Scale::of(values.map(|block| self.on_axis(block)), LEFT, RIGHT);
        let axis = format!("{}, {}", self.name, self.unit);
        scale.draw(canvas, TOP, bottom, &axis);
        for (place, (row, figure)) in self.rows.iter().enumerate() {
            let top = TOP + place as f64 * ROW;
            let label = cut(&row.label, 34);
            canvas.text(
                &label,
                (LEFT - 8.0, top + 11.0),
                12.0,
                Ink::Text,
                Anchor::Start,
            );
            let median = shown::median(*figure);
            let end = (RIGHT + 10.0, top + 11.0);
            canvas.text(&median, end, 12.0, Ink::Text, Anchor::End);
            if let Some(figure) = figure {
                self.dots(canvas, &scale, figure, Ink::Arm(place), top + 30.0);
            }
        }
    }

    fn dots(&self, canvas: &Canvas<'_>, scale: &Scale, figure: &ArmFigure, ink: Ink, y: f64) {
        canvas.line((LEFT, y), (RIGHT, y), Ink::Grid, 1.0);
        // A block alone is no median of several: it stays hollow.
        if let [only] = figure.blocks.as_slice() {
            canvas.ring((scale.x(self.on_axis(only)), y), 5.0, ink);
            return;
        }
        for (place, block) in figure.blocks.iter().enumerate() {
            // Equal values stay apart; the height says nothing else.
            let lift = [-4.0, 0.0, 4.0][place % 3];
            let at = (scale.x(self.on_axis(block)), y + lift);
            canvas.dot(at, 3.5, ink, 0.4);
        }
        if let Some(median) = figure.median {
            let x = scale.x(median.0.as_f64() / self.divisor);
            canvas.dot((x, y), 6.0, ink, 1.0);
        }
    }
}
