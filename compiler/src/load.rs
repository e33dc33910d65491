//! Loads: from `poisson(near) with cap(64)` to stages of an arrival process.

use assize_codes as codes;
use assize_study::diagnostic::Diagnostic;
use assize_study::expr::{Call, Load as WrittenLoad, Stage as WrittenStage, Value as Written};
use assize_study::source::Span;
use assize_units::Ratio;

use crate::draw::{MAX_REQUESTS, Process};
use crate::eval::{Evaluator, Kind, Locals, Value};

/// The names of processes.
pub(crate) const PROCESSES: &[&str] = &[
    "poisson", "every", "gamma", "uniform", "burst", "ramp", "replay", "merge", "closed", "batch",
];

/// Clients of a closed loop at most.
const MAX_CLIENTS: u32 = 65_536;

/// When requests are sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Load {
    /// By a schedule.
    Open {
        stages: Vec<OpenStage>,
        /// Requests in flight behind the schedule at most.
        cap: Option<u32>,
    },
    /// By so many clients.
    Closed { clients: u32 },
    /// One call with so many prompts.
    Batch { prompts: u32 },
}

/// A stage of an open load.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct OpenStage {
    pub process: Process,
    /// Seconds, where `for` says so.
    pub lasts: Option<Ratio>,
    pub span: Span,
}

impl Evaluator<'_> {
    /// The value of a load.
    pub fn load(&self, written: &WrittenLoad, locals: &Locals) -> Option<Load> {
        let parts: Vec<Option<Load>> = written
            .stages
            .iter()
            .map(|stage| self.stage(stage, locals))
            .collect();
        let parts: Vec<Load> = parts.into_iter().collect::<Option<_>>()?;
        if let [only] = parts.as_slice() {
            return Some(only.clone());
        }
        let mut stages = Vec::new();
        let mut caps = Vec::new();
        for (part, stage) in parts.into_iter().zip(&written.stages) {
            let Load::Open { stages: more, cap } = part else {
                self.context.report(
                    Diagnostic::new(codes::E0502, stage.span, "only an open load has stages")
                        .help("let a closed loop stand alone"),
                );
                return None;
            };
            stages.extend(more);
            caps.extend(cap.map(|cap| (cap, stage.span)));
        }
        if let Some(other) = caps.iter().find(|(cap, _)| *cap != caps[0].0) {
            self.context.report(
                Diagnostic::new(
                    codes::E0502,
                    other.1,
                    "the stages of one load have two caps",
                )
                .also(caps[0].1, "the other one"),
            );
            return None;
        }
        Some(Load::Open {
            stages,
            cap: caps.first().map(|(cap, _)| *cap),
        })
    }

    /// A written argument as a load.
    pub fn load_argument(&self, written: &Written, locals: &Locals, what: &str) -> Option<Load> {
        match self.written(written, locals)? {
            Value::Load(load) => Some(load),
            other => {
                self.context.report(Diagnostic::new(
                    codes::E0312,
                    written.span(),
                    format!("{what} needs a load, found {}", other.describe()),
                ));
                None
            }
        }
    }

    fn stage(&self, stage: &WrittenStage, locals: &Locals) -> Option<Load> {
        let load = self.process(&stage.process, locals)?;
        let lasts = match &stage.lasts {
            None => None,
            Some(expr) => Some((
                self.number(expr, locals, Kind::DURATION, "`for`")?,
                expr.span,
            )),
        };
        if let Some(with) = &stage.with {
            return self.limited(load, with, lasts.map(|(number, _)| number.value), locals);
        }
        match (load, lasts) {
            (load, None) => Some(load),
            (Load::Open { mut stages, cap }, Some((number, span))) => {
                let [only] = stages.as_mut_slice() else {
                    self.context.report(Diagnostic::new(
                        codes::E0502,
                        span,
                        "`for` belongs to one stage, and this load has several",
                    ));
                    return None;
                };
                if only.lasts.is_some() {
                    self.context.report(Diagnostic::new(
                        codes::E0502,
                        span,
                        "the stage has a `for` already",
                    ));
                    return None;
                }
                if !number.value.is_positive() {
                    self.context
                        .report(Diagnostic::new(codes::E0316, span, "`for` is above zero"));
                    return None;
                }
                only.lasts = Some(number.value);
                Some(Load::Open { stages, cap })
            }
            (_, Some((_, span))) => {
                self.context.report(
                    Diagnostic::new(
                        codes::E0502,
                        span,
                        "`for` belongs to an open load: a closed loop ends with its requests",
                    )
                    .help("give `requests:`"),
                );
                None
            }
        }
    }

    fn limited(
        &self,
        load: Load,
        with: &Call,
        lasts: Option<Ratio>,
        locals: &Locals,
    ) -> Option<Load> {
        if with.name.text == "think" {
            self.later(
                with.span,
                "think",
                "leave it out: a client sends its next request when one has ended",
            );
            return None;
        }
        let (
            Load::Open {
                mut stages,
                cap: None,
            },
            "cap",
        ) = (load, with.name.text.as_str())
        else {
            self.context.report(
                Diagnostic::new(
                    codes::E0502,
                    with.span,
                    format!("`{}` does not go with this load", with.name),
                )
                .help("an open load may have one `with cap(n)`"),
            );
            return None;
        };
        let bound = self.bind(&with.name, with.args.as_ref(), with.span, &["n"], 1)?;
        let cap = self.argument_count(bound[0]?, locals, "a cap", MAX_CLIENTS)?;
        if let (Some(lasts), [only]) = (lasts, stages.as_mut_slice()) {
            only.lasts = Some(lasts);
        }
        Some(Load::Open {
            stages,
            cap: Some(cap),
        })
    }

    fn process(&self, call: &Call, locals: &Locals) -> Option<Load> {
        let name = call.name.text.as_str();
        let bind = |params: &[&str], required| {
            self.bind(&call.name, call.args.as_ref(), call.span, params, required)
        };
        let open = |process| {
            let stage = OpenStage {
                process,
                lasts: None,
                span: call.span,
            };
            Some(Load::Open {
                stages: vec![stage],
                cap: None,
            })
        };
        match name {
            "poisson" => {
                let rate = self.rate(bind(&["rate"], 1)?[0]?, locals)?;
                open(Process::Poisson { rate })
            }
            "uniform" => {
                let rate = self.rate(bind(&["rate"], 1)?[0]?, locals)?;
                open(Process::Every {
                    gap: Ratio::ONE.div(rate).ok()?,
                })
            }
            "every" => {
                let gap =
                    self.positive(bind(&["gap"], 1)?[0]?, locals, Kind::DURATION, "the gap")?;
                open(Process::Every { gap })
            }
            "gamma" => {
                let bound = bind(&["rate", "cv"], 2)?;
                let rate = self.rate(bound[0]?, locals)?;
                let shape = self.shape(bound[1]?, locals)?;
                open(Process::Gamma { rate, shape })
            }
            "burst" => {
                let bound = bind(&["n", "gap"], 2)?;
                let size = self.argument_count(bound[0]?, locals, "a burst", MAX_REQUESTS)?;
                let gap = self.positive(bound[1]?, locals, Kind::DURATION, "the gap")?;
                open(Process::Burst { size, gap })
            }
            "closed" => {
                let clients =
                    self.argument_count(bind(&["n"], 1)?[0]?, locals, "`closed`", MAX_CLIENTS)?;
                Some(Load::Closed { clients })
            }
            "batch" => {
                let prompts =
                    self.argument_count(bind(&["n"], 1)?[0]?, locals, "`batch`", 4_096)?;
                Some(Load::Batch { prompts })
            }
            "ramp" | "merge" | "replay" => {
                self.later(
                    call.name.span,
                    name,
                    "use stages of `poisson(rate) for …` joined by `then`",
                );
                None
            }
            _ => self.named_load(call, locals),
        }
    }

    fn named_load(&self, call: &Call, locals: &Locals) -> Option<Load> {
        let phrase = assize_study::expr::Phrase {
            name: call.name.clone(),
            args: call.args.clone(),
            origin: None,
            of: None,
            cell: None,
        };
        let written = Written::Expr(assize_study::expr::Expr {
            kind: assize_study::expr::ExprKind::Phrase(Box::new(phrase)),
            span: call.span,
        });
        self.load_argument(&written, locals, "`load`")
    }

    fn rate(&self, written: &Written, locals: &Locals) -> Option<Ratio> {
        self.positive(written, locals, Kind::RATE, "a load")
    }

    fn positive(
        &self,
        written: &Written,
        locals: &Locals,
        kind: Kind,
        what: &str,
    ) -> Option<Ratio> {
        let number = self.argument(written, locals, kind, what)?;
        if number.value.is_positive() {
            return self.in_clock(number.value, written, kind, what);
        }
        self.context.report(Diagnostic::new(
            codes::E0316,
            written.span(),
            format!(
                "{what} needs {} above zero, found {}",
                kind.describe(),
                number.show()
            ),
        ));
        None
    }

    /// The clock counts whole nanoseconds: no rate is above one in each, no gap below one.
    fn in_clock(&self, value: Ratio, written: &Written, kind: Kind, what: &str) -> Option<Ratio> {
        let per_second = Ratio::whole(1_000_000_000);
        let limit = if kind == Kind::RATE && value > per_second {
            "a rate up to 1000000000/s"
        } else if kind == Kind::DURATION && value < Ratio::new(1, 1_000_000_000).ok()? {
            "a duration from 1ns on"
        } else {
            return Some(value);
        };
        self.context.report(
            Diagnostic::new(
                codes::E0316,
                written.span(),
                format!("{what} needs {limit}: the clock counts nanoseconds"),
            )
            .help("`burst(n, gap)` sends n requests at one instant"),
        );
        None
    }

    pub fn argument_count(
        &self,
        written: &Written,
        locals: &Locals,
        what: &str,
        most: u32,
    ) -> Option<u32> {
        let number = self.argument(written, locals, Kind::NUMBER, what)?;
        self.whole(number.value, written.span(), what, 1, most)
    }

    /// 1/cv², a whole number.
    fn shape(&self, written: &Written, locals: &Locals) -> Option<u32> {
        let cv = self.positive(written, locals, Kind::NUMBER, "`cv`")?;
        let shape = cv.mul(cv).and_then(|square| Ratio::ONE.div(square)).ok();
        let shape = shape
            .filter(|shape| shape.is_whole())
            .and_then(|shape| u32::try_from(shape.num()).ok())
            .filter(|shape| (1..=10_000).contains(shape));
        if shape.is_none() {
            self.context.report(
                Diagnostic::new(
                    codes::E0503,
                    written.span(),
                    format!(
                        "`gamma` draws sums of exponentials: 1/cv² must be whole, and cv is {cv}"
                    ),
                )
                .help("cv = 1, 0.5, 0.25, 0.2 and 0.1 are such values; 1 is `poisson`"),
            );
        }
        shape
    }
}
