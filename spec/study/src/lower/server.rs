//! Server files.

use assize_codes as codes;

use super::Lowering;
use super::fields::Fields;
use super::shape::Shape;
use crate::ast::{
    Ready, ServerFile, ServerKind, ServerProcess, Signal, SimKey, SimSetting, SimSettings, SimUnit,
    Stop,
};
use crate::diagnostic::Diagnostic;
use crate::expr::{Dimension, Expr, ExprKind};
use crate::source::{Span, Spanned};
use crate::tree::Node;

impl Lowering<'_> {
    pub(super) fn server_file(&mut self, node: &Node) -> Option<ServerFile> {
        let place = self.first_line(node.span);
        let fields = self.fields(node, Shape::Server, place)?;
        let version = self.version(&fields);
        let kind = if let Some(key) = fields.key_span("sim") {
            self.exclude(
                &fields,
                &["command", "sim"],
                "a server is a process or the simulated engine",
            );
            self.only_sim(&fields, key);
            let sim = fields.get("sim").and_then(|node| self.sim(node, key));
            sim.map(ServerKind::Sim)
        } else {
            self.process(&fields)
                .map(|process| ServerKind::Process(Box::new(process)))
        };
        Some(ServerFile {
            version: version?,
            kind: kind?,
        })
    }

    /// Beside `sim` no key of a process means anything.
    fn only_sim(&mut self, fields: &Fields<'_>, sim: Span) {
        let others: Vec<(String, Span)> = fields
            .iter()
            .filter(|field| !matches!(field.key.as_str(), "assize" | "sim" | "command"))
            .map(|field| (field.key.clone(), field.span))
            .collect();
        for (key, span) in others {
            self.push(
                Diagnostic::new(
                    codes::E0120,
                    span,
                    format!(
                        "`{key}` belongs to a process, and this file describes the simulated engine"
                    ),
                )
                .also(sim, "says so here")
                .help("remove it"),
            );
        }
    }

    fn process(&mut self, fields: &Fields<'_>) -> Option<ServerProcess> {
        self.require(
            fields,
            "command",
            "[vllm, serve, my-model, --port, \"8000\"]",
        );
        self.require(fields, "base", "http://127.0.0.1:8000/v1");
        self.require(fields, "ready", "{ get: /health, within: 600s }");
        let command = fields
            .get("command")
            .and_then(|node| self.texts(node, "`command`"));
        let base = self.text_of(fields, "base");
        let ready = fields.get("ready").and_then(|node| self.ready(node));
        let env = fields
            .get("env")
            .map_or(Vec::new(), |node| self.pairs(node, "`env`"));
        let pass = self.texts_of(fields, "pass");
        let stop = fields
            .get("stop")
            .and_then(|node| self.stop(node))
            .unwrap_or_default();
        let external = self.texts_of(fields, "external");
        let command = command?;
        if command.value.is_empty() {
            self.push(
                Diagnostic::new(codes::E0122, command.span, "`command` names no program")
                    .help("write the program and its arguments"),
            );
            return None;
        }
        Some(ServerProcess {
            command,
            base: base?,
            ready: ready?,
            env,
            pass,
            stop,
            external,
        })
    }

    fn ready(&mut self, node: &Node) -> Option<Ready> {
        let fields = self.fields(node, Shape::Ready, node.span)?;
        self.require(&fields, "get", "/health");
        self.require(&fields, "within", "600s");
        let get = self.text_of(&fields, "get");
        let within = self.literal(&fields, "within", SimUnit::Of(Dimension::DURATION));
        Some(Ready {
            get: get?,
            within: within?,
        })
    }

    fn stop(&mut self, node: &Node) -> Option<Stop> {
        let fields = self.fields(node, Shape::Stop, node.span)?;
        Some(Stop {
            signal: fields
                .get("signal")
                .and_then(|node| self.word(node, "`signal`", Signal::WORDS)),
            within: self.literal(&fields, "within", SimUnit::Of(Dimension::DURATION)),
        })
    }

    fn sim(&mut self, node: &Node, span: Span) -> Option<SimSettings> {
        let fields = self.fields(node, Shape::Sim, span)?;
        let keys: Vec<(SimKey, Span)> = fields
            .iter()
            .filter_map(|field| {
                let key = SimKey::WORDS.iter().find(|(word, _)| *word == field.key)?;
                Some((key.1, field.span))
            })
            .collect();
        let mut entries = Vec::new();
        for (key, key_span) in keys {
            if let Some(value) = self.literal(&fields, key.word(), key.unit()) {
                entries.push(SimSetting {
                    key: Spanned::new(key, key_span),
                    value,
                });
            }
        }
        entries.sort_by_key(|entry| entry.key.value.word());
        Some(SimSettings { span, entries })
    }

    /// A literal of a wanted measure: a server file has no names that an expression could use.
    fn literal(&mut self, fields: &Fields<'_>, key: &str, unit: SimUnit) -> Option<Expr> {
        let expr = self.expr_of(fields, key)?;
        let found = match &expr.kind {
            ExprKind::Quantity(quantity) => Some(*quantity),
            _ => None,
        };
        let (fits, want, example) = match unit {
            SimUnit::Of(dimension) => (
                found.is_some_and(|found| found.dimension() == dimension && !found.is_percent()),
                "a duration",
                "8ms",
            ),
            SimUnit::Count => (
                found.is_some_and(|found| {
                    found.dimension() == Dimension::NONE
                        && !found.is_percent()
                        && found.number.is_whole()
                        && u64::try_from(found.number.num()).is_ok()
                }),
                "a whole number",
                "64",
            ),
            SimUnit::Percent => (
                found.is_some_and(crate::expr::Quantity::is_percent),
                "a percent",
                "5%",
            ),
        };
        if fits {
            return Some(expr);
        }
        let written = self.source.slice(expr.span).to_owned();
        self.push(
            Diagnostic::new(
                codes::E0303,
                expr.span,
                format!("`{key}` is {want}, and `{written}` is none"),
            )
            .help(format!("write {want}, such as `{example}`")),
        );
        None
    }
}
