//! Loads and their stages, and the keys of `let`.

use assize_codes as codes;

use super::parse::{Parsed, Parser};
use super::{Call, LetKey, Load, Param, ParamType, Stage, Value};
use crate::diagnostic::Diagnostic;
use crate::source::Spanned;
use crate::suggest::nearest;

impl Parser<'_> {
    pub(super) fn value(&mut self) -> Parsed<Value> {
        let expr = self.expr()?;
        if !matches!(self.word(), Some("with" | "for" | "then")) {
            return Ok(Value::Expr(expr));
        }
        let span = expr.span;
        let Some(first) = Value::Expr(expr).as_load() else {
            return Err(Box::new(
                Diagnostic::new(
                    codes::E0114,
                    span,
                    format!("`{}` is no arrival process", self.slice(span)),
                )
                .help("a stage begins with a process: `poisson(4/s) for 60s`"),
            ));
        };
        let process = first.stages.into_iter().map(|stage| stage.process).next();
        let Some(process) = process else {
            return Err(self.expected("a stage"));
        };
        let mut stages = vec![self.stage(process)?];
        while self.take_word("then") {
            let process = self.call()?;
            stages.push(self.stage(process)?);
        }
        let end = stages.last().map_or(span, |stage| stage.span);
        Ok(Value::Load(Load {
            stages,
            span: span.to(end),
        }))
    }

    fn stage(&mut self, process: Call) -> Parsed<Stage> {
        let mut span = process.span;
        let mut with = None;
        if self.take_word("with") {
            let call = self.call()?;
            span = span.to(call.span);
            with = Some(call);
        }
        let mut lasts = None;
        if self.take_word("for") {
            let sum = self.sum()?;
            span = span.to(sum.span);
            lasts = Some(sum);
        }
        Ok(Stage {
            process,
            with,
            lasts,
            span,
        })
    }

    pub(super) fn call(&mut self) -> Parsed<Call> {
        let start = self.position();
        let name = self.name("a name")?;
        let args = self.args()?;
        Ok(Call {
            name,
            args,
            span: self.span_from(start),
        })
    }

    pub(super) fn key(&mut self) -> Parsed<LetKey> {
        let start = self.position();
        let name = self.name("a name")?;
        let mut params = Vec::new();
        if self.take_symbol("(") {
            loop {
                params.push(self.param()?);
                if !self.take_symbol(",") {
                    break;
                }
            }
            self.expect_symbol(")")?;
        }
        Ok(LetKey {
            name,
            params,
            span: self.span_from(start),
        })
    }

    fn param(&mut self) -> Parsed<Param> {
        let name = self.name("a parameter")?;
        let place = self.here();
        let word = self.word();
        let found = word.and_then(|word| {
            ParamType::WORDS
                .iter()
                .find(|(known, _)| *known == word)
                .map(|(_, ty)| *ty)
        });
        if let Some(ty) = found {
            self.at += 1;
            return Ok(Param {
                name,
                ty: Spanned::new(ty, place),
            });
        }
        let types: Vec<&str> = ParamType::WORDS.iter().map(|(word, _)| *word).collect();
        let diagnostic = Diagnostic::new(
            codes::E0114,
            place,
            format!("the parameter `{name}` has no type{}", self.found()),
        );
        let near = word.and_then(|word| nearest(word, types.iter().copied()));
        Err(Box::new(match near {
            Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
            None => diagnostic.help(format!("the types are {}", types.join(" "))),
        }))
    }
}
