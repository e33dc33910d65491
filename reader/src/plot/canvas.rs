//! What every plot is drawn with: inks, a scale with its ticks, and the finished element.

use plotters::coord::Shift;
use plotters::coord::ranged1d::Ranged;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::{
    Circle, Color, DrawingArea, IntoDrawingArea, PathElement, RGBColor, Rectangle, SVGBackend,
    ShapeStyle, TextStyle,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontFamily, IntoFont};

use crate::shown::{visible, visible_lines};

/// The variables of every colour, light and dark; shared with the page.
pub(crate) const PALETTE_CSS: &str = include_str!("palette.css");
/// What makes a plot's colours follow the variables.
pub(crate) const PLOT_CSS: &str = include_str!("plot.css");

/// The width of every plot.
pub(super) const WIDTH: f64 = 360.0;

/// Units of drawing for each unit of the plot.
const FINE: f64 = 4.0;

/// What plotters divides a font's size by when it writes SVG.
const FONT_DIVISOR: f64 = 1.24;

/// A colour by its meaning. The numbers are those of `palette.css`, light.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ink {
    /// What everything lies on.
    Paper,
    /// Text and medians.
    Text,
    /// Lesser text.
    Quiet,
    /// Grid lines.
    Grid,
    /// An interval.
    Band,
    /// A block that was won.
    Win,
    /// A block that was not.
    Loss,
    /// What the rule asks for.
    Mark,
    /// An arm by its place in the study.
    Arm(usize),
}

/// Colours of Okabe and Ito that are told apart with every kind of colour vision, in an order that
/// keeps the first four furthest from each other. Further arms begin again; each has its own row.
const ARMS: [RGBColor; 6] = [
    RGBColor(0x00, 0x72, 0xB2),
    RGBColor(0xD5, 0x5E, 0x00),
    RGBColor(0x00, 0x9E, 0x73),
    RGBColor(0xCC, 0x79, 0xA7),
    RGBColor(0xE6, 0x9F, 0x00),
    RGBColor(0x56, 0xB4, 0xE9),
];

impl Ink {
    fn colour(self) -> RGBColor {
        match self {
            Ink::Paper => RGBColor(0xFF, 0xFF, 0xFF),
            Ink::Text => RGBColor(0x1A, 0x1D, 0x21),
            Ink::Quiet => RGBColor(0x5B, 0x62, 0x6B),
            Ink::Grid => RGBColor(0xDF, 0xE2, 0xE6),
            Ink::Band => RGBColor(0xD3, 0xE6, 0xF3),
            Ink::Win => RGBColor(0x00, 0x6F, 0xB0),
            Ink::Loss => RGBColor(0xC9, 0x53, 0x00),
            Ink::Mark => RGBColor(0x8A, 0x4B, 0x7D),
            Ink::Arm(place) => ARMS[place % ARMS.len()],
        }
    }
}

/// Where a text stands from its point.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A drawing of a fixed height.
pub(super) struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

impl Canvas<'_> {
    pub(super) fn line(&self, from: (f64, f64), to: (f64, f64), ink: Ink, width: f64) {
        let style = stroke(ink, width);
        self.put(&PathElement::new(vec![fine(from), fine(to)], style));
    }

    /// A vertical line of dashes.
    pub(super) fn dashes(&self, x: f64, top: f64, bottom: f64, ink: Ink) {
        let (dash, pause) = (4.0, 3.0);
        let mut y = top;
        while y < bottom {
            self.line((x, y), (x, (y + dash).min(bottom)), ink, 1.25);
            y += dash + pause;
        }
    }

    pub(super) fn bar(&self, from: (f64, f64), to: (f64, f64), ink: Ink) {
        let style = ShapeStyle::from(ink.colour()).filled();
        self.put(&Rectangle::new([fine(from), fine(to)], style));
    }

    pub(super) fn dot(&self, at: (f64, f64), radius: f64, ink: Ink, opacity: f64) {
        let style = ShapeStyle::from(ink.colour().mix(opacity)).filled();
        self.put(&Circle::new(fine(at), fine_length(radius), style));
    }

    pub(super) fn ring(&self, at: (f64, f64), radius: f64, ink: Ink) {
        self.put(&Circle::new(
            fine(at),
            fine_length(radius),
            stroke(ink, 1.75),
        ));
    }

    /// One line of text at the height of `at`.
    pub(super) fn text(&self, text: &str, at: (f64, f64), size: f64, ink: Ink, anchor: Anchor) {
        let h_pos = match anchor {
            Anchor::Start => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::End => HPos::Right,
        };
        let style = TextStyle {
            font: (FontFamily::SansSerif, size * FINE * FONT_DIVISOR).into_font(),
            color: ink.colour().to_backend_color(),
            pos: Pos::new(h_pos, VPos::Center),
        };
        self.area
            .draw_text(&visible(text), &style, fine(at))
            .expect("a string takes every drawing");
    }

    fn put<'b, E>(&self, element: &'b E)
    where
        &'b E: plotters::element::PointCollection<'b, (i32, i32)>,
        E: for<'c> plotters::element::Drawable<SVGBackend<'c>>,
    {
        self.area
            .draw(element)
            .expect("a string takes every drawing");
    }
}

fn stroke(ink: Ink, width: f64) -> ShapeStyle {
    let width = (width * FINE).round() as u32;
    ShapeStyle::from(ink.colour()).stroke_width(width)
}

fn fine((x, y): (f64, f64)) -> (i32, i32) {
    ((x * FINE).round() as i32, (y * FINE).round() as i32)
}

fn fine_length(length: f64) -> u32 {
    (length * FINE).round() as u32
}

/// A text that is cut to `most` characters.
pub(super) fn cut(text: &str, most: usize) -> String {
    let mut short: String = text.chars().take(most).collect();
    if short.len() < text.len() {
        short.pop();
        short.push('\u{2026}');
    }
    short
}

/// Values along the width, with the ticks below.
pub(super) struct Scale {
    coord: RangedCoordf64,
    left: f64,
    right: f64,
    ticks: Vec<f64>,
}

impl Scale {
    /// A scale that shows every value, with a little room at both ends.
    pub(super) fn of(values: impl Iterator<Item = f64>, left: f64, right: f64) -> Scale {
        let (low, high) = values
            .filter(|value| value.is_finite())
            .fold((f64::MAX, f64::MIN), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        let (low, high) = if low > high { (0.0, 1.0) } else { (low, high) };
        let middle = f64::midpoint(low, high);
        // One value alone, or several that agree, get room in proportion to themselves.
        let least = (middle.abs() * 0.02).max(1e-9);
        let half = ((high - low) / 2.0).max(least) * 1.08;
        let coord = RangedCoordf64::from(middle - half..middle + half);
        let ticks = coord.key_points(6);
        Scale {
            coord,
            left,
            right,
            ticks,
        }
    }

    pub(super) fn x(&self, value: f64) -> f64 {
        let ends = (
            fine_length(self.left) as i32,
            fine_length(self.right) as i32,
        );
        f64::from(self.coord.map(&value, ends)) / FINE
    }

    /// Grid lines, tick labels and the axis' name.
    pub(super) fn draw(&self, canvas: &Canvas<'_>, top: f64, bottom: f64, name: &str) {
        let decimals = self.decimals();
        for tick in &self.ticks {
            let x = self.x(*tick);
            canvas.line((x, top), (x, bottom), Ink::Grid, 1.0);
            // A rounded zero has no sign.
            let value = if tick.abs() < 1e-12 { 0.0 } else { *tick };
            let label = format!("{value:.decimals$}").replace('-', "\u{2212}");
            canvas.text(&label, (x, bottom + 11.0), 11.0, Ink::Quiet, Anchor::Middle);
        }
        let middle = f64::midpoint(self.left, self.right);
        let name = cut(name, 54);
        canvas.text(
            &name,
            (middle, bottom + 28.0),
            11.5,
            Ink::Quiet,
            Anchor::Middle,
        );
    }

    /// Decimals that tell one tick from the next.
    fn decimals(&self) -> usize {
        let step = self
            .ticks
            .windows(2)
            .map(|pair| pair[1] - pair[0])
            .fold(f64::MAX, f64::min);
        (0..9)
            .find(|decimals| {
                let scaled = step * 10f64.powi(*decimals);
                (scaled - scaled.round()).abs() < 0.01 && scaled.round() >= 1.0
            })
            .unwrap_or(2) as usize
    }
}

/// Room that [`Scale::draw`] takes below its bottom.
pub(super) const AXIS_HEIGHT: f64 = 38.0;

/// Whether a plot stands in a page that has the style sheet, or alone in a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Inline,
    File,
}

/// Draws a plot and gives it its name and its description.
pub(super) fn render(
    place: Place,
    height: f64,
    title: &str,
    description: &str,
    draw: impl FnOnce(&Canvas<'_>),
) -> String {
    let size = (fine_length(WIDTH), fine_length(height));
    let mut drawn = String::new();
    {
        let canvas = Canvas {
            area: SVGBackend::with_string(&mut drawn, size).into_drawing_area(),
        };
        draw(&canvas);
        canvas.area.present().expect("a string takes every drawing");
    }
    // The element that plotters opens has a fixed size and no name: ours takes its place.
    let content = drawn.split_once(">\n").map_or("", |(_, content)| content);
    let (attributes, style) = match place {
        Place::Inline => (String::new(), String::new()),
        Place::File => (
            format!(
                " xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
                 font-family=\"system-ui, sans-serif\""
            ),
            format!("<style>{PALETTE_CSS}{PLOT_CSS}</style>\n"),
        ),
    };
    let name = maud::html! { title { (title) } desc { (description) } }.into_string();
    visible_lines(&format!(
        "<svg class=\"plot\" role=\"img\" viewBox=\"0 0 {} {}\"{attributes}>\n{name}\n{style}{content}",
        size.0, size.1
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_palette_knows_every_ink() {
        let inks = [
            Ink::Paper,
            Ink::Text,
            Ink::Quiet,
            Ink::Grid,
            Ink::Band,
            Ink::Win,
            Ink::Loss,
            Ink::Mark,
        ];
        let arms = (0..ARMS.len()).map(Ink::Arm);
        for ink in inks.into_iter().chain(arms) {
            let RGBColor(r, g, b) = ink.colour();
            let number = format!("#{r:02X}{g:02X}{b:02X}");
            assert!(PALETTE_CSS.contains(&number), "{number} is no variable");
            let is_ruled = ["fill", "stroke"]
                .iter()
                .any(|name| PLOT_CSS.contains(&format!("[{name}=\"{number}\"]")));
            assert!(is_ruled, "{number} has no rule");
        }
    }

    #[test]
    fn a_long_text_is_cut() {
        assert_eq!(cut("short", 5), "short");
        assert_eq!(cut("longer", 5), "long\u{2026}");
        assert_eq!(cut("ééééé", 5), "ééééé");
    }

    #[test]
    fn a_scale_shows_one_value_and_none() {
        for values in [vec![], vec![5.0], vec![5.0, 5.0], vec![f64::NAN, 0.0]] {
            let scale = Scale::of(values.into_iter(), 10.0, 350.0);
            assert!((2..=6).contains(&scale.ticks.len()), "{:?}", scale.ticks);
        }
    }
}
