//! A calibration: receive error and dispatch lag of each way of observing, on one logarithmic axis.

use assize_evidence::calibration::{Beside, Calibration, Distribution, Row};
use assize_units::{DurNs, format_duration};

use super::canvas::{Anchor, Canvas, Ink, Place, WIDTH, cut, render};

const LEFT: f64 = 14.0;
const RIGHT: f64 = WIDTH - 14.0;
/// Two lines about the host, and how to read a row.
const HEAD: f64 = 62.0;
const PANEL_HEAD: f64 = 24.0;
const ROW: f64 = 31.0;
const AXIS: f64 = 40.0;
/// Rows that are drawn; a calibration of this tool has eight.
const MOST_ROWS: usize = 32;

const PANELS: [(&str, fn(&Row) -> Option<Distribution>); 2] = [
    ("receive error: a stamp minus its write", |row| {
        row.receive_error
    }),
    ("dispatch lag: behind the schedule", |row| row.dispatch_lag),
];

/// A calibration as an SVG file: of each way of observing the median, and how far p99 and the
/// largest are from it.
pub fn render_svg_calibration(calibration: &Calibration) -> String {
    let plot = Plot::new(calibration);
    let title = "Calibration: receive error and dispatch lag";
    render(
        Place::File,
        plot.height(),
        title,
        &plot.description(),
        |canvas| plot.draw(canvas),
    )
}

struct Plot<'a> {
    calibration: &'a Calibration,
    rows: &'a [Row],
    scale: LogScale,
}

impl<'a> Plot<'a> {
    fn new(calibration: &'a Calibration) -> Plot<'a> {
        let rows = &calibration.rows[..calibration.rows.len().min(MOST_ROWS)];
        let found = rows
            .iter()
            .flat_map(|row| PANELS.iter().filter_map(|(_, of)| of(row)));
        Plot {
            calibration,
            rows,
            scale: LogScale::of(found.flat_map(|it| [it.p50_ns, it.max_ns])),
        }
    }

    fn panel_height(&self) -> f64 {
        PANEL_HEAD + self.rows.len() as f64 * ROW + AXIS
    }

    fn height(&self) -> f64 {
        HEAD + PANELS.len() as f64 * self.panel_height()
    }

    fn description(&self) -> String {
        let mut parts = host_lines(&self.calibration.host).to_vec();
        for (name, of) in PANELS {
            let rows = self.rows.iter().map(|row| match of(row) {
                None => format!("{}: none", label(row)),
                Some(it) => format!(
                    "{}: p50 {}, p99 {}, largest {}",
                    label(row),
                    format_duration(it.p50_ns),
                    format_duration(it.p99_ns),
                    format_duration(it.max_ns)
                ),
            });
            parts.push(format!("{name}. {}", rows.collect::<Vec<_>>().join("; ")));
        }
        parts.join(". ") + "."
    }

    fn draw(&self, canvas: &Canvas<'_>) {
        for (line, text) in host_lines(&self.calibration.host).iter().enumerate() {
            let at = (LEFT, 12.0 + line as f64 * 15.0);
            canvas.text(&cut(text, 62), at, 10.5, Ink::Quiet, Anchor::Start);
        }
        let key = "dot: p50 \u{b7} bar: to p99 \u{b7} line: to the largest \u{b7} right: p50 / p99";
        canvas.text(key, (LEFT, 46.0), 10.5, Ink::Quiet, Anchor::Start);
        for (place, (name, of)) in PANELS.into_iter().enumerate() {
            let top = HEAD + place as f64 * self.panel_height();
            self.panel(canvas, top, name, of);
        }
    }

    fn panel(
        &self,
        canvas: &Canvas<'_>,
        top: f64,
        name: &str,
        of: fn(&Row) -> Option<Distribution>,
    ) {
        canvas.text(name, (LEFT, top + 8.0), 12.5, Ink::Text, Anchor::Start);
        let rows_top = top + PANEL_HEAD;
        let bottom = rows_top + self.rows.len() as f64 * ROW;
        self.scale.name_ticks(canvas, bottom);
        let mut drivers: Vec<&str> = Vec::new();
        for (place, row) in self.rows.iter().enumerate() {
            if !drivers.contains(&row.driver.as_str()) {
                drivers.push(&row.driver);
            }
            // Each driver has its colour, in the order in which they come.
            let ink = Ink::Arm(drivers.len() - 1);
            let y = rows_top + place as f64 * ROW;
            // Between the texts, not through them.
            self.scale.grid(canvas, y + 15.0, y + ROW - 2.0);
            let name = cut(&label(row), 40);
            canvas.text(&name, (LEFT, y + 9.0), 11.0, Ink::Text, Anchor::Start);
            let found = of(row);
            let figures = found.map_or_else(
                || "none".to_owned(),
                |it| {
                    let (p50, p99) = (format_duration(it.p50_ns), format_duration(it.p99_ns));
                    format!("{p50} / {p99}")
                },
            );
            canvas.text(&figures, (RIGHT, y + 9.0), 11.0, Ink::Text, Anchor::End);
            if let Some(found) = found {
                self.range(canvas, found, y + 22.0, ink);
            }
        }
    }

    fn range(&self, canvas: &Canvas<'_>, found: Distribution, y: f64, ink: Ink) {
        let [p50, p99, max] = [found.p50_ns, found.p99_ns, found.max_ns].map(|it| self.scale.x(it));
        canvas.line((p50, y), (max, y), ink, 1.0);
        canvas.line((max, y - 3.0), (max, y + 3.0), ink, 1.0);
        canvas.line((p50, y), (p99, y), ink, 4.0);
        canvas.dot((p50, y), 4.5, ink, 1.0);
    }
}

fn label(row: &Row) -> String {
    let recorded = if row.recording { ", recorded" } else { "" };
    format!("{} {}{recorded}", row.driver, row.receive.word())
}

/// What the host was, and what else it did.
fn host_lines(host: &Beside) -> [String; 2] {
    let or = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
    let steal = host.steal_permille.map_or_else(String::new, |permille| {
        format!(", steal {}.{}%", permille / 10, permille % 10)
    });
    [
        format!(
            "{} \u{b7} processors {} \u{b7} kernel {}",
            or(&host.cpu),
            or(&host.online),
            or(&host.kernel)
        ),
        format!(
            "load {} before, {} after{steal}",
            or(&host.load_before),
            or(&host.load_after)
        ),
    ]
}

/// Whole decades of nanoseconds along the width.
struct LogScale {
    low: i32,
    high: i32,
}

impl LogScale {
    fn of(times: impl Iterator<Item = DurNs>) -> LogScale {
        let (low, high) = times
            .map(decades)
            .fold((f64::MAX, f64::MIN), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        if low > high {
            return LogScale { low: 3, high: 6 };
        }
        let low = low.floor() as i32;
        LogScale {
            low,
            high: (high.ceil() as i32).max(low + 1),
        }
    }

    fn x(&self, time: DurNs) -> f64 {
        let share = (decades(time) - f64::from(self.low)) / f64::from(self.high - self.low);
        // The outermost dots stay whole.
        let (left, right) = (LEFT + 6.0, RIGHT - 6.0);
        left + share * (right - left)
    }

    fn ticks(&self) -> impl Iterator<Item = DurNs> {
        (self.low..=self.high).map(|decade| DurNs(10u64.saturating_pow(decade.unsigned_abs())))
    }

    fn grid(&self, canvas: &Canvas<'_>, top: f64, bottom: f64) {
        for time in self.ticks() {
            let x = self.x(time);
            canvas.line((x, top), (x, bottom), Ink::Grid, 1.0);
        }
    }

    fn name_ticks(&self, canvas: &Canvas<'_>, bottom: f64) {
        // Of many decades every other is named, so that no name touches the next.
        let every = if self.high - self.low > 7 { 2 } else { 1 };
        for time in self.ticks().step_by(every) {
            let at = (self.x(time), bottom + 9.0);
            canvas.text(&short(time), at, 11.0, Ink::Quiet, Anchor::Middle);
        }
    }
}

/// The decimal logarithm; what took no time stands at one nanosecond.
fn decades(time: DurNs) -> f64 {
    (time.0.max(1) as f64).log10()
}

/// A power of ten of nanoseconds.
fn short(time: DurNs) -> String {
    match time.0 {
        ns @ 0..1_000 => format!("{ns} ns"),
        ns @ 1_000..1_000_000 => format!("{} \u{b5}s", ns / 1_000),
        ns @ 1_000_000..1_000_000_000 => format!("{} ms", ns / 1_000_000),
        ns => format!("{} s", ns / 1_000_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decade_is_everywhere_as_wide() {
        let scale = LogScale::of([2_000, 90_000_000].map(DurNs).into_iter());
        assert_eq!((scale.low, scale.high), (3, 8));
        let x = |ns| scale.x(DurNs(ns));
        assert!((x(1_000) - (LEFT + 6.0)).abs() < 1e-9);
        assert!((x(100_000_000) - (RIGHT - 6.0)).abs() < 1e-9);
        let widths = [x(20_000) - x(2_000), x(7_000_000) - x(700_000)];
        assert!((widths[0] - widths[1]).abs() < 1e-9, "{widths:?}");
    }

    #[test]
    fn nothing_and_no_time_have_a_scale() {
        let none = LogScale::of(std::iter::empty());
        assert_eq!((none.low, none.high), (3, 6));
        let zero = LogScale::of([0, 0].map(DurNs).into_iter());
        assert_eq!((zero.low, zero.high), (0, 1));
        let one = LogScale::of([1_000, 1_000].map(DurNs).into_iter());
        assert_eq!((one.low, one.high), (3, 4));
        assert!(zero.x(DurNs(0)).is_finite());
    }

    #[test]
    fn a_power_of_ten_is_short() {
        let said =
            [1, 100, 1_000, 1_000_000, 100_000_000, 10_000_000_000].map(|ns| short(DurNs(ns)));
        assert_eq!(said, ["1 ns", "100 ns", "1 µs", "1 ms", "100 ms", "10 s"]);
    }
}
