//! Prompts, requests, arms, names and cells.

use assize_codes as codes;

use super::Lowering;
use super::fields::Fields;
use super::shape::Shape;
use super::unsupported::{self, Place};
use crate::ast::{
    Api, Arm, Cell, ClassAmount, ClassLoad, ClassShares, Fact, Facts, Family, Let, PanelSource,
    Prompts, Quota, Request, Section, Share, Think, Turns,
};
use crate::diagnostic::Diagnostic;
use crate::expr::{Arg, Expr, ExprKind, Input, Load, Name, Value, parse_key};
use crate::source::{Span, Spanned};
use crate::tree::{Node, NodeKind};

impl Lowering<'_> {
    pub(super) fn prompts(&mut self, node: &Node, name: &Name) -> Option<Prompts> {
        let fields = self.fields(node, Shape::Prompts, name.span)?;
        self.exclude(
            &fields,
            &["file", "trace", "synthetic"],
            "a panel has one source",
        );
        let source = self.panel_source(&fields)?;
        if source.value == PanelSource::SyntheticTokens {
            for (key, example) in [("count", "64"), ("tokens", "1024")] {
                self.require(&fields, key, example);
            }
        }
        Some(Prompts {
            source,
            format: self.name_of(&fields, "format"),
            count: self.expr_of(&fields, "count"),
            tokens: self.expr_of(&fields, "tokens"),
            vocabulary: self.expr_of(&fields, "vocabulary"),
            tokenizer: self.text_of(&fields, "tokenizer"),
            take: self.expr_of(&fields, "take"),
            turns: self.name_of(&fields, "turns"),
        })
    }

    fn panel_source(&mut self, fields: &Fields<'_>) -> Option<Spanned<PanelSource>> {
        if fields.has("file") {
            let text = self.text_of(fields, "file")?;
            let span = text.span;
            return Some(Spanned::new(PanelSource::File(text), span));
        }
        if fields.has("trace") {
            let text = self.text_of(fields, "trace")?;
            let span = text.span;
            return Some(Spanned::new(PanelSource::Trace(text), span));
        }
        if fields.has("synthetic") {
            let node = fields.get("synthetic")?;
            let words = &[("tokens", ())];
            let word = self.word(node, "`synthetic`", words)?;
            return Some(word.map(|()| PanelSource::SyntheticTokens));
        }
        self.push(
            Diagnostic::new(
                codes::E0109,
                fields.place,
                "a panel of prompts has no source",
            )
            .help("add `file: prompts.jsonl` or `synthetic: tokens`"),
        );
        None
    }

    pub(super) fn request(&mut self, node: &Node, name: &Name) -> Option<Request> {
        let fields = self.fields(node, Shape::Request, name.span)?;
        let is_abstract = self.is_abstract(&fields);
        if !is_abstract && !fields.has("like") {
            self.require(&fields, "api", "openai/completions");
            self.require(&fields, "prompt", "docs");
            self.require(&fields, "output", "exactly(128)");
        }
        Some(Request {
            api: fields
                .get("api")
                .and_then(|node| self.word(node, "`api`", Api::WORDS)),
            prompt: self.name_of(&fields, "prompt"),
            output: fields.get("output").and_then(|node| self.output(node)),
            body: fields.get("body").and_then(|node| self.body(node)),
            timeout: self.expr_of(&fields, "timeout"),
            headers: fields
                .get("headers")
                .map_or(Vec::new(), |node| self.pairs(node, "`headers`")),
            turns: fields
                .get("turns")
                .and_then(|node| self.word(node, "`turns`", &[("scripted", Turns::Scripted)])),
            think: self.expr_of(&fields, "think").map(think),
            like: self.name_of(&fields, "like"),
            is_abstract,
        })
    }

    pub(super) fn arm(&mut self, node: &Node, name: &Name) -> Option<Arm> {
        let fields = self.fields(node, Shape::Arm, name.span)?;
        let is_abstract = self.is_abstract(&fields);
        self.check_same_as(&fields);
        self.exclude(
            &fields,
            &["server", "endpoint"],
            "a server is started, an endpoint is there already",
        );
        self.exclude(
            &fields,
            &["ca", "insecure"],
            "an endpoint is verified by certificates, or not at all",
        );
        let complete = !is_abstract && !fields.has("like") && !fields.has("same_as");
        if complete {
            if !fields.has("server") {
                self.require(&fields, "endpoint", "http://127.0.0.1:8000/v1");
            }
            self.require(&fields, "model", "the name that requests give");
        }
        Some(Arm {
            engine: self.name_of(&fields, "engine"),
            server: self.text_of(&fields, "server"),
            args: self.texts_of(&fields, "args"),
            env: fields
                .get("env")
                .map_or(Vec::new(), |node| self.pairs(node, "`env`")),
            endpoint: self.text_of(&fields, "endpoint"),
            ca: self.text_of(&fields, "ca"),
            insecure: self.flag_of(&fields, "insecure"),
            model: self.text_of(&fields, "model"),
            key: self.text_of(&fields, "key"),
            headers: fields
                .get("headers")
                .map_or(Vec::new(), |node| self.pairs(node, "`headers`")),
            quota: fields.get("quota").and_then(|node| self.quota(node)),
            label: self.text_of(&fields, "label"),
            provenance: fields.get("provenance").and_then(|node| self.facts(node)),
            discloses: self.text_of(&fields, "discloses"),
            like: self.name_of(&fields, "like"),
            same_as: self.name_of(&fields, "same_as"),
            is_abstract,
        })
    }

    fn check_same_as(&mut self, fields: &Fields<'_>) {
        let Some(same_as) = fields.key_span("same_as") else {
            return;
        };
        let others: Vec<(String, Span)> = fields
            .iter()
            .filter(|field| !matches!(field.key.as_str(), "same_as" | "label"))
            .map(|field| (field.key.clone(), field.span))
            .collect();
        for (key, span) in others {
            self.push(
                Diagnostic::new(
                    codes::E0120,
                    span,
                    format!("`{key}` cannot stand beside `same_as`: the arm equals the other in everything but its label"),
                )
                .also(same_as, "says so here")
                .help("remove it, or write `like` for `same_as`"),
            );
        }
    }

    fn quota(&mut self, node: &Node) -> Option<Quota> {
        let fields = self.fields(node, Shape::Quota, node.span)?;
        Some(Quota {
            requests: self.expr_of(&fields, "requests"),
            tokens: self.expr_of(&fields, "tokens"),
            in_flight: self.expr_of(&fields, "in_flight"),
        })
    }

    /// Texts under names, nested as written, sorted by name.
    pub(super) fn facts(&mut self, node: &Node) -> Option<Facts> {
        let list = self.entries(node, "this")?;
        let mut entries = Vec::new();
        for field in list {
            let Some(name) = self.key_name(&field) else {
                continue;
            };
            let fact = field.value.and_then(|value| match value.kind {
                NodeKind::Map(_) => self.facts(value).map(Fact::Facts),
                NodeKind::List(_) => self
                    .texts(value, "this")
                    .map(|texts| Fact::List(texts.value)),
                _ => self.text(value).map(Fact::Text),
            });
            if let Some(fact) = fact {
                entries.push((name, fact));
            }
        }
        entries.sort_by(|a, b| a.0.text.cmp(&b.0.text));
        Some(Facts { entries })
    }

    /// `let`: its keys are names or functions.
    pub(super) fn lets(&mut self, fields: &Fields<'_>) -> Section<Let> {
        let mut section = Section {
            span: fields.key_span("let"),
            entries: Vec::new(),
        };
        let Some(node) = fields.get("let") else {
            return section;
        };
        for field in self.entries(node, "`let`").unwrap_or_default() {
            let plain = self.source.slice(field.span) == field.key;
            let key = parse_key(Input {
                text: &field.key,
                span: field.span,
                start: plain.then_some(field.span.start),
            });
            let Some(key) = self.keep(key) else {
                continue;
            };
            let twice = section
                .get(&key.name.text)
                .map(|first| first.item.key.name.span);
            if let Some(first) = twice {
                self.push(
                    Diagnostic::new(
                        codes::E0108,
                        key.name.span,
                        format!(
                            "`{}` is defined twice; the first is on line {}",
                            key.name,
                            self.line_of(first)
                        ),
                    )
                    .also(first, "the first one")
                    .help("give one of them another name"),
                );
                continue;
            }
            if let Some(value) = field.value.and_then(|value| self.value(value)) {
                section.entries.push(crate::ast::Named {
                    name: key.name.clone(),
                    item: Let { key, value },
                });
            }
        }
        section
    }

    pub(super) fn cell(&mut self, node: &Node, name: &Name) -> Option<Cell> {
        let fields = self.fields(node, Shape::Cell, name.span)?;
        let is_abstract = self.is_abstract(&fields);
        if !is_abstract && !fields.has("like") {
            self.require(&fields, "load", "closed(32)");
        }
        let family = fields.get("for").and_then(|node| self.family(node));
        let mut cell = self.cell_body(&fields);
        cell.family = family;
        cell.like = self.name_of(&fields, "like");
        cell.is_abstract = is_abstract;
        Some(cell)
    }

    pub(super) fn warmup(&mut self, node: &Node, key: Span) -> Option<Cell> {
        let fields = self.fields(node, Shape::Warmup, key)?;
        self.require(&fields, "load", "closed(8)");
        Some(self.cell_body(&fields))
    }

    fn cell_body(&mut self, fields: &Fields<'_>) -> Cell {
        self.exclude(fields, &["requests", "sessions"], "an amount is given once");
        Cell {
            family: None,
            load: fields
                .get("load")
                .and_then(|node| self.class_load(node, fields)),
            requests: fields
                .get("requests")
                .and_then(|node| self.class_amount(node, fields)),
            sessions: self.expr_of(fields, "sessions"),
            send: fields
                .get("send")
                .and_then(|node| self.send(node, fields.shape, fields.key_span("send"))),
            stream: self.flag_of(fields, "stream"),
            settings: self.settings(fields),
            like: None,
            is_abstract: false,
        }
    }

    fn family(&mut self, node: &Node) -> Option<Family> {
        let list = self.entries(node, "`for`")?;
        if list.len() > 2 {
            let span = self.first_line(node.span);
            self.push(
                Diagnostic::new(codes::E0110, span, "a family has one or two parameters")
                    .help("make a family for each value of the third"),
            );
        }
        let mut params = Vec::new();
        for field in list {
            let Some(name) = self.key_name(&field) else {
                continue;
            };
            let values = field
                .value
                .and_then(|value| self.list(value, "the values of a parameter", Self::expr));
            if let Some(values) = values {
                params.push((name, values.value));
            }
        }
        Some(Family { params })
    }

    fn class_load(&mut self, node: &Node, fields: &Fields<'_>) -> Option<ClassLoad> {
        let NodeKind::Map(_) = node.kind else {
            let load = self.load(node)?;
            self.check_processes(&load, fields.shape);
            return Some(ClassLoad::One(load));
        };
        if self.refuse_classes("load", fields) {
            return None;
        }
        let list = self.by_class(node, Self::load)?;
        for (_, load) in &list {
            self.check_processes(load, fields.shape);
        }
        Some(ClassLoad::ByClass(list))
    }

    fn class_amount(&mut self, node: &Node, fields: &Fields<'_>) -> Option<ClassAmount> {
        let NodeKind::Map(_) = node.kind else {
            return self.expr(node).map(ClassAmount::One);
        };
        if self.refuse_classes("requests", fields) {
            return None;
        }
        self.by_class(node, Self::expr).map(ClassAmount::ByClass)
    }

    /// `send` of a cell or of the whole study.
    pub(super) fn send(
        &mut self,
        node: &Node,
        shape: Shape,
        key: Option<Span>,
    ) -> Option<ClassShares> {
        let NodeKind::Map(_) = node.kind else {
            return self.name(node).map(ClassShares::One);
        };
        if let (Some(line), Some(span)) = (unsupported::find(Place::ByClass(shape), "send"), key) {
            self.report_unsupported(line, span);
        }
        let shares = self.by_class(node, Self::expr)?;
        let shares = shares
            .into_iter()
            .map(|(class, share)| Share { class, share })
            .collect();
        Some(ClassShares::Shares(shares))
    }

    /// Values by request class, sorted by class.
    fn by_class<T>(
        &mut self,
        node: &Node,
        mut lower: impl FnMut(&mut Self, &Node) -> Option<T>,
    ) -> Option<Vec<(Name, T)>> {
        let list = self.entries(node, "this")?;
        let mut classes = Vec::new();
        for field in list {
            let Some(name) = self.key_name(&field) else {
                continue;
            };
            if let Some(item) = field.value.and_then(|value| lower(self, value)) {
                classes.push((name, item));
            }
        }
        classes.sort_by(|a, b| a.0.text.cmp(&b.0.text));
        Some(classes)
    }

    /// Whether values by request class are refused here: then nothing in them is looked at.
    fn refuse_classes(&mut self, word: &str, fields: &Fields<'_>) -> bool {
        let line = unsupported::find(Place::ByClass(fields.shape), word);
        let (Some(line), Some(span)) = (line, fields.key_span(word)) else {
            return false;
        };
        self.report_unsupported(line, span);
        true
    }

    fn check_processes(&mut self, load: &Load, shape: Shape) {
        for stage in &load.stages {
            let name = &stage.process.name;
            if let Some(line) = unsupported::find(Place::Process(shape), &name.text) {
                self.report_unsupported(line, name.span);
            }
        }
    }

    /// Whether an entry says `abstract: true`.
    pub(super) fn is_abstract(&mut self, fields: &Fields<'_>) -> bool {
        let flag = self.flag_of(fields, "abstract");
        flag.is_some_and(|flag| flag.value)
    }
}

/// `exponential(8s)` is a distribution; anything else is a duration.
fn think(expr: Expr) -> Think {
    if let ExprKind::Phrase(phrase) = &expr.kind
        && phrase.name.text == "exponential"
        && let Some(args) = &phrase.args
        && let [
            Arg {
                name: None,
                value: Value::Expr(mean),
            },
        ] = args.items.as_slice()
    {
        return Think::Exponential(mean.clone());
    }
    Think::Fixed(expr)
}
