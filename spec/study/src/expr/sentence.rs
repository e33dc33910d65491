//! The four sentences of a hypothesis.

use assize_codes as codes;

use super::parse::{Parsed, Parser};
use super::{Claim, ExprKind, Sentence};
use crate::diagnostic::Diagnostic;

impl Parser<'_> {
    pub(super) fn sentence(&mut self) -> Parsed<Sentence> {
        let start = self.position();
        let candidate = self.name("an arm")?;
        let claim = match self.word() {
            Some("beats") => self.beats()?,
            Some("keeps") => self.keeps()?,
            Some("holds") => self.holds()?,
            _ => {
                return Err(Box::new(
                    Diagnostic::new(
                        codes::E0115,
                        self.here(),
                        format!("a hypothesis goes on with `beats`, `keeps` or `holds`{}", self.found()),
                    )
                    .help("write `A beats B on METRIC in CELL`, `A keeps within 2% of B on METRIC in CELL` or `A holds METRIC in CELL >= VALUE`"),
                ));
            }
        };
        Ok(Sentence {
            candidate,
            claim,
            span: self.span_from(start),
        })
    }

    fn beats(&mut self) -> Parsed<Claim> {
        self.at += 1;
        let control = self.name("the other arm")?;
        if self.take_word("by") {
            let margin = self.sum()?;
            self.expect_word("on", "and then the metric")?;
            let metric = self.metric()?;
            return Ok(Claim::BeatsBy {
                control,
                margin,
                metric,
            });
        }
        self.expect_word("on", "and then the metric")?;
        let metric = self.metric()?;
        let mut gain = None;
        if self.take_symbol(",") {
            for word in ["median", "gain", "at", "least"] {
                self.expect_word(word, "as in `, median gain at least 5%`")?;
            }
            gain = Some(self.sum()?);
        }
        Ok(Claim::Beats {
            control,
            metric,
            gain,
        })
    }

    fn keeps(&mut self) -> Parsed<Claim> {
        self.at += 1;
        self.expect_word("within", "and then a margin")?;
        self.of_ends = true;
        let margin = self.sum();
        self.of_ends = false;
        let margin = margin?;
        self.expect_word("of", "and then the other arm")?;
        let control = self.name("the other arm")?;
        self.expect_word("on", "and then the metric")?;
        let metric = self.metric()?;
        Ok(Claim::KeepsWithin {
            margin,
            control,
            metric,
        })
    }

    fn holds(&mut self) -> Parsed<Claim> {
        self.at += 1;
        let condition = self.compare()?;
        if !matches!(&condition.kind, ExprKind::Binary { op, .. } if op.value.is_comparison()) {
            return Err(Box::new(
                Diagnostic::new(
                    codes::E0115,
                    condition.span,
                    "`holds` wants a comparison, and this is a value",
                )
                .help("say what must be reached: `holds attainment(ttft from intended <= 2s) in steady >= 95%`"),
            ));
        }
        Ok(Claim::Holds { condition })
    }
}
