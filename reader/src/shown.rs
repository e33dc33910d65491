//! How numbers and foreign text are shown to a person, the same on a page and on a terminal.

use assize_plan::ValueUnit;
use assize_stats::Probability;
use assize_units::{DurNs, NS_PER_S, Ratio, format_duration};

use crate::metrics::Origin;
use crate::report::{ArmFigure, Counts, Exact, FigureUnit, Marks, Report, TokenTotals};

/// Foreign text without a character that a terminal or a browser would obey: controls and those
/// that turn the direction of writing become U+FFFD, line breaks become blanks.
pub(crate) fn visible(text: &str) -> String {
    text.chars()
        .map(|c| if c == '\n' || c == '\t' { ' ' } else { c })
        .map(harmless)
        .collect()
}

/// As [`visible`], but lines stay lines: for a whole document that escapes by itself.
pub(crate) fn visible_lines(text: &str) -> String {
    text.chars()
        .map(|c| if c == '\n' { c } else { harmless(c) })
        .collect()
}

fn harmless(c: char) -> char {
    let turns =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let breaks = matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}');
    if c.is_control() || turns || breaks {
        '\u{fffd}'
    } else {
        c
    }
}

/// Who may have answered in the stead of an arm that nobody verified; nothing where there is none.
pub(crate) fn unverified(report: &Report) -> Option<String> {
    let arms = report.arms.iter().filter(|arm| arm.unverified);
    let labels: Vec<&str> = arms.map(|arm| arm.label.as_str()).collect();
    (!labels.is_empty()).then(|| {
        let labels = labels.join(", ");
        format!("{NOT_VERIFIED}: whoever answered for {labels}, any certificate was taken")
    })
}

/// What is said of an arm whose peer proved nothing.
pub(crate) const NOT_VERIFIED: &str = "NOT VERIFIED";

/// An effect in percent with its sign, `+22.19%`.
pub(crate) fn effect(value: Ratio) -> String {
    let percent = value.as_f64() * 100.0;
    // A rounded zero has no sign to show.
    if percent.abs() < 0.005 {
        return "0.00%".to_owned();
    }
    let text = format!("{percent:+.2}%");
    text.replace('-', "\u{2212}")
}

/// A value in its unit.
pub(crate) fn value(value: Ratio, unit: ValueUnit) -> String {
    let number = |value: Ratio| {
        value
            .to_decimal()
            .filter(|text| text.len() <= 12)
            .unwrap_or_else(|| significant(value.as_f64()))
    };
    match unit {
        ValueUnit::One => number(value),
        ValueUnit::Share => {
            let percent = value.mul(Ratio::whole(100));
            percent.map_or_else(|_| number(value), |percent| format!("{}%", number(percent)))
        }
        ValueUnit::Second => format!("{} s", number(value)),
        ValueUnit::PerSecond => format!("{} /s", number(value)),
        ValueUnit::Byte => format!("{} B", number(value)),
        ValueUnit::Token => format!("{} tokens", number(value)),
    }
}

/// What a hypothesis found: an effect, or a measured value by a few digits of it.
pub(crate) fn found(marks: &Marks, found: Ratio) -> String {
    if marks.is_effect {
        return effect(found);
    }
    amount(found, marks.unit)
}

/// A measured value by a few digits.
pub(crate) fn amount(found: Ratio, unit: ValueUnit) -> String {
    let ns = found.mul(Ratio::whole(i128::from(NS_PER_S)));
    match (unit, ns) {
        (ValueUnit::Second, Ok(ns)) => duration(Exact(ns)),
        (ValueUnit::Second, Err(_)) => format!("{} s", significant(found.as_f64())),
        (ValueUnit::PerSecond, _) => format!("{} /s", significant(found.as_f64())),
        (ValueUnit::Share, _) => format!("{:.2}%", found.as_f64() * 100.0),
        (unit, _) => value(found, unit),
    }
}

/// A difference of two measured values, with its sign.
pub(crate) fn difference(found: Ratio, unit: ValueUnit) -> String {
    let text = amount(found.max(found.neg()), unit);
    match unit {
        _ if found.is_zero() => text,
        // Percent of what is a percentage already would be read as a relative change.
        ValueUnit::Share => format!("{}{} points", sign(found), text.trim_end_matches('%')),
        _ => format!("{}{text}", sign(found)),
    }
}

fn sign(value: Ratio) -> char {
    if value.is_negative() { '\u{2212}' } else { '+' }
}

/// Four significant digits.
pub(crate) fn significant(value: f64) -> String {
    let magnitude = value.abs();
    let decimals = if magnitude >= 1_000.0 || magnitude == 0.0 {
        0
    } else if magnitude >= 100.0 {
        1
    } else if magnitude >= 10.0 {
        2
    } else if magnitude >= 1.0 {
        3
    } else {
        4
    };
    format!("{value:.decimals$}")
}

/// A duration of so many nanoseconds.
pub(crate) fn duration(ns: Exact) -> String {
    let rounded = ns.0.add(Ratio::new(1, 2).unwrap_or(Ratio::ZERO));
    let whole = rounded.map_or_else(|_| ns.0.floor(), Ratio::floor);
    format_duration(DurNs(u64::try_from(whole).unwrap_or_default()))
}

/// A figure's median.
pub(crate) fn median(figure: Option<&ArmFigure>) -> String {
    let median = figure.and_then(|figure| Some((figure.median?, figure.unit)));
    match median {
        None => NONE.to_owned(),
        Some((value, FigureUnit::PerSecond)) => format!("{} /s", significant(value.0.as_f64())),
        Some((value, FigureUnit::Ns)) => duration(value),
    }
}

/// What stands where there is no figure.
pub(crate) const NONE: &str = "\u{2013}";

/// A probability: its fraction where that is short, and its decimals, which say if they are rounded.
pub(crate) fn probability(p: &Probability) -> String {
    let fraction = p.fraction();
    let decimals = decimals(p.as_f64());
    let is_whole = (p.as_f64() * 1e4).fract() == 0.0;
    let sign = if is_whole { '=' } else { '\u{2248}' };
    if fraction == "1/1" {
        "1".to_owned()
    } else if fraction.len() <= 9 {
        format!("{fraction} {sign} {decimals}")
    } else {
        decimals
    }
}

fn decimals(value: f64) -> String {
    if value >= 0.001 {
        format!("{value:.4}")
    } else {
        format!("{value:.2e}")
    }
}

/// A count with thin groups of three digits.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 * 2);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// The latencies that a cell's table shows: name, origin where it needs one, and two statistics.
pub(crate) fn rows(origin: Origin) -> Vec<(&'static str, Option<Origin>, [&'static str; 2])> {
    let tail = ["p50", "p95"];
    let mut rows = vec![("ttft", Some(origin), tail), ("e2e", Some(origin), tail)];
    if origin != Origin::Sent {
        rows.push(("ttft", Some(Origin::Sent), tail));
        rows.push(("e2e", Some(Origin::Sent), tail));
    }
    rows.push(("tpot", None, tail));
    rows.push(("dispatch_lag", None, ["p50", "p99"]));
    rows.push(("admission_wait", None, ["p50", "p99"]));
    rows
}

/// Two medians; a unit that they share is said by the second alone.
pub(crate) fn medians(figures: [Option<&ArmFigure>; 2]) -> [String; 2] {
    let [first, second] = figures.map(median);
    let parts = first.split_once(' ').zip(second.split_once(' '));
    match parts {
        Some(((number, unit), (_, other))) if unit == other && !unit.contains(' ') => {
            [number.to_owned(), second]
        }
        _ => [first, second],
    }
}

/// A latency's name with its origin, `ttft from intended`.
pub(crate) fn latency_name(name: &str, from: Option<Origin>) -> String {
    let name = name.replace('_', " ");
    match from {
        Some(from) => format!("{name} from {}", from.name()),
        None => name,
    }
}

/// Requests of the plan whose cell was never begun.
pub(crate) fn not_begun(counts: &Counts) -> usize {
    counts.planned.saturating_sub(counts.offered)
}

/// Output tokens, and where the counts are from.
pub(crate) fn tokens(tokens: &TokenTotals) -> (String, String) {
    let sum = tokens.output_tokens.map_or_else(
        || NONE.to_owned(),
        |sum| {
            if tokens.usage + tokens.token_ids == 0 {
                NONE.to_owned()
            } else {
                count(sum)
            }
        },
    );
    let mut from = Vec::new();
    if tokens.usage > 0 {
        from.push("usage".to_owned());
    }
    if tokens.token_ids > 0 {
        from.push("token ids".to_owned());
    }
    if tokens.disagree > 0 {
        from.push(format!("{} disagree", tokens.disagree));
    }
    if tokens.neither > 0 {
        from.push(format!("{} without a count", tokens.neither));
    }
    (sum, from.join(", "))
}

/// The name that an arm is shown by.
pub(crate) fn label<'a>(report: &'a Report, arm: &'a str) -> &'a str {
    report
        .arms
        .iter()
        .find(|it| it.name == arm)
        .map_or(arm, |it| it.label.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_a_terminal_obeys_is_left() {
        let hostile = "a\u{1b}[31mred\u{7}\r\n\u{202e}tfel\u{9b}1m\u{0}";
        let shown = visible(hostile);
        assert!(!shown.chars().any(char::is_control));
        assert!(!shown.contains('\u{202e}'));
        assert!(visible_lines("a\nb\u{1b}").ends_with("\nb\u{fffd}"));
    }

    #[test]
    fn effects_have_a_sign_and_zero_has_none() {
        let ratio = |num, den| Ratio::new(num, den).unwrap();
        assert_eq!(effect(ratio(2_000, 9_014)), "+22.19%");
        assert_eq!(effect(ratio(-1, 40)), "\u{2212}2.50%");
        assert_eq!(effect(ratio(-1, 1_000_000)), "0.00%");
    }

    #[test]
    fn a_rounded_probability_says_so() {
        let shown = |num: u32, den: u32| probability(&Probability::new(num, den).unwrap());
        assert_eq!(shown(1, 2), "1/2 = 0.5000");
        assert_eq!(shown(11, 1_024), "11/1024 \u{2248} 0.0107");
        assert_eq!(shown(1, 4_096), "1/4096 \u{2248} 2.44e-4");
        assert_eq!(shown(1, 1), "1");
    }

    #[test]
    fn values_have_their_unit() {
        let ratio = |num, den| Ratio::new(num, den).unwrap();
        assert_eq!(value(ratio(149, 10), ValueUnit::PerSecond), "14.9 /s");
        assert_eq!(value(ratio(9, 10), ValueUnit::Share), "90%");
        assert_eq!(value(ratio(1, 3), ValueUnit::Second), "0.3333 s");
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
    }
}
