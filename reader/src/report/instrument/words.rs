//! The instrument's error in words.

use assize_evidence::calibration::HostDifference;
use assize_plan::ValueUnit;
use assize_units::{Ratio, format_duration};

use super::{ErrorFigures, Spread, Standing, WELL_ABOVE};
use crate::shown;

/// What the errors are and where they are from; how to get them where there are none.
pub(super) fn of_calibration(is_attached: bool) -> String {
    if is_attached {
        format!(
            "The instrument\u{2019}s error is from the calibration that was given to the run, for \
             its driver and way of receiving. An effect is well above it from {WELL_ABOVE} times \
             its p99 on. It changes no verdict: the rules were frozen."
        )
    } else {
        "No calibration is attached, so the instrument\u{2019}s own error is not known. For the \
         next run: assize calibrate --format json > calibration.json, then assize run PLAN \
         --calibration calibration.json."
            .to_owned()
    }
}

/// Why the errors may not hold.
pub(super) fn doubt(difference: &HostDifference) -> String {
    format!("The calibration may not hold for this run: {difference}.")
}

/// What is said of an effect and the error.
pub(super) struct Spoken {
    pub(super) unit: ValueUnit,
    /// What is held against the error, by its name and its size.
    pub(super) compared: Option<(&'static str, Ratio)>,
    pub(super) standing: Standing,
}

impl Spoken {
    pub(super) fn words(&self, error: &ErrorFigures) -> String {
        let amount = |value: Ratio| shown::amount(value, self.unit);
        let mut parts = Vec::new();
        parts.extend(error.receive_error.map(|it| spread("receive error", it)));
        parts.extend(error.dispatch_lag.map(|it| spread("dispatch lag", it)));
        if let Some(gaps) = error.gaps {
            parts.push(format!("over {gaps} gaps of the shortest answer"));
        }
        if let Some(window) = error.window_ns {
            let relative = error.relative.map_or(0.0, |it| it.0.as_f64() * 100.0);
            let window = format_duration(window);
            parts.push(format!("over {window} at least: {relative:.2}% at p99"));
        }
        let mut text = format!(
            "Instrument\u{2019}s error {} at p50, {} at p99 ({}, {}: {}).",
            amount(error.p50.0),
            amount(error.p99.0),
            error.driver,
            error.receive,
            parts.join(", ")
        );
        if let Some((name, size)) = self.compared
            && self.standing == Standing::WellAbove
        {
            let size_text = amount(size);
            text.push_str(&match size.div(error.p99.0) {
                Ok(times) => format!(
                    " {name}, {size_text}, is {} times the p99.",
                    whole_or_tenths(times)
                ),
                Err(_) => format!(" {name} is {size_text}."),
            });
        }
        text
    }

    pub(super) fn flag(&self, error: &ErrorFigures) -> Option<String> {
        let (name, size) = self.compared?;
        if self.standing != Standing::NotWellAbove {
            return None;
        }
        Some(format!(
            "{name}, {}, is not well above the instrument\u{2019}s error: less than {WELL_ABOVE} \
             times its p99, {}.",
            shown::amount(size, self.unit),
            shown::amount(error.well_above_from.0, self.unit)
        ))
    }
}

fn spread(name: &str, it: Spread) -> String {
    let (p50, p99) = (format_duration(it.p50_ns), format_duration(it.p99_ns));
    format!("{name} {p50} / {p99}")
}

/// Rounded down: what is said is not more than there is.
fn whole_or_tenths(times: Ratio) -> String {
    let tenths = times.mul(Ratio::whole(10)).map_or(0, Ratio::floor);
    if tenths >= 100 {
        (tenths / 10).to_string()
    } else {
        format!("{}.{}", tenths / 10, tenths % 10)
    }
}
