//! The words of a family: `sign(ties = nonwins)`, `holm(5%)`, `median_order_statistic`.

use assize_codes as codes;
use assize_plan::{Correction, Interval, Test, Ties};
use assize_study::diagnostic::Diagnostic;
use assize_study::expr::{Call, Expr, ExprKind, Value as Written};
use assize_units::Ratio;

use crate::eval::{Evaluator, Kind};

pub(super) fn five_percent() -> Ratio {
    Ratio::new(1, 20).expect("20 is not zero")
}

pub(super) fn ninety_five_percent() -> Ratio {
    Ratio::new(19, 20).expect("20 is not zero")
}

fn unknown_rule(eval: &Evaluator<'_>, call: &Call, what: &str, known: &str) {
    eval.context.report(
        Diagnostic::new(
            codes::E0602,
            call.name.span,
            format!("no {what} is called `{}`", call.name),
        )
        .help(format!("write `{known}`")),
    );
}

pub(super) fn test(eval: &Evaluator<'_>, call: &Call) -> Option<Test> {
    if call.name.text != "sign" {
        unknown_rule(eval, call, "test", "sign(ties = nonwins)");
        return None;
    }
    let bound = eval.bind(&call.name, call.args.as_ref(), call.span, &["ties"], 0)?;
    let Some(written) = bound[0] else {
        return Some(Test::Sign {
            ties: Ties::Nonwins,
        });
    };
    let word = match written {
        Written::Expr(Expr {
            kind: ExprKind::Phrase(phrase),
            ..
        }) => phrase.as_plain_name().map(|name| name.text.as_str()),
        _ => None,
    };
    match word {
        Some("nonwins") => Some(Test::Sign {
            ties: Ties::Nonwins,
        }),
        Some("dropped") => Some(Test::Sign {
            ties: Ties::Dropped,
        }),
        _ => {
            eval.context.report(
                Diagnostic::new(
                    codes::E0602,
                    written.span(),
                    "ties are `nonwins` or `dropped`",
                )
                .help("`nonwins` is never the more favourable"),
            );
            None
        }
    }
}

pub(super) fn correction(eval: &Evaluator<'_>, call: &Call) -> Option<Correction> {
    let make: fn(Ratio) -> Correction = match call.name.text.as_str() {
        "holm" => |alpha| Correction::Holm { alpha },
        "none" => |alpha| Correction::None { alpha },
        _ => {
            unknown_rule(eval, call, "correction", "holm(5%)");
            return None;
        }
    };
    let bound = eval.bind(&call.name, call.args.as_ref(), call.span, &["level"], 0)?;
    match bound[0] {
        None => Some(make(five_percent())),
        Some(written) => share(eval, written, "a level").map(make),
    }
}

pub(super) fn interval(eval: &Evaluator<'_>, call: &Call) -> Option<Interval> {
    if call.name.text != "median_order_statistic" {
        unknown_rule(eval, call, "interval", "median_order_statistic");
        return None;
    }
    let bound = eval.bind(&call.name, call.args.as_ref(), call.span, &["at_least"], 0)?;
    let at_least = match bound[0] {
        None => ninety_five_percent(),
        Some(written) => share(eval, written, "a coverage")?,
    };
    Some(Interval::MedianOrderStatistic { at_least })
}

/// A percent above 0% and below 100%.
fn share(eval: &Evaluator<'_>, written: &Written, what: &str) -> Option<Ratio> {
    let number = eval.argument(written, &[], Kind::SHARE, what)?;
    if number.value.is_positive() && number.value < Ratio::ONE {
        return Some(number.value);
    }
    eval.context.report(Diagnostic::new(
        codes::E0316,
        written.span(),
        format!("{what} is above 0% and below 100%, found {}", number.show()),
    ));
    None
}
