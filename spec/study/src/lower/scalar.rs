//! Scalars, each typed by its place.

use assize_codes as codes;

use super::Lowering;
use crate::ast::{Cache, CellSettings, Connections, HttpCall, Output, Receive, Record, Text};
use crate::diagnostic::Diagnostic;
use crate::expr::{
    Arg, Call, CellRef, Expr, ExprKind, Input, Load, Name, Parsed, Sentence, Value, parse_call,
    parse_cell, parse_expr, parse_load, parse_name, parse_sentence, parse_value,
};
use crate::source::Spanned;
use crate::suggest::nearest;
use crate::tree::{Node, NodeKind, Scalar, Style};

use super::fields::Fields;

impl Lowering<'_> {
    /// A text of any style.
    pub(super) fn text(&mut self, node: &Node) -> Option<Text> {
        let scalar = self.scalar(node, "a text is due here")?;
        Some(Spanned::new(scalar.text.clone(), node.span))
    }

    /// Texts in a list.
    pub(super) fn texts(&mut self, node: &Node, what: &str) -> Option<Spanned<Vec<Text>>> {
        self.list(node, what, Self::text)
    }

    /// Texts under texts, sorted by key.
    pub(super) fn pairs(&mut self, node: &Node, what: &str) -> Vec<(Text, Text)> {
        let mut pairs = Vec::new();
        for field in self.entries(node, what).unwrap_or_default() {
            let value = field.value.and_then(|value| self.text(value));
            if let Some(value) = value {
                pairs.push((Spanned::new(field.key, field.span), value));
            }
        }
        pairs.sort_by(|a, b| a.0.value.cmp(&b.0.value));
        pairs
    }

    /// A name.
    pub(super) fn name(&mut self, node: &Node) -> Option<Name> {
        self.read(node, "a name is due here", parse_name)
    }

    /// Names in a list.
    pub(super) fn names(&mut self, node: &Node, what: &str) -> Option<Spanned<Vec<Name>>> {
        self.list(node, what, Self::name)
    }

    /// An expression.
    pub(super) fn expr(&mut self, node: &Node) -> Option<Expr> {
        self.read(node, "an expression is due here", parse_expr)
    }

    /// An expression or a load.
    pub(super) fn value(&mut self, node: &Node) -> Option<Value> {
        self.read(node, "an expression is due here", parse_value)
    }

    /// A load.
    pub(super) fn load(&mut self, node: &Node) -> Option<Load> {
        self.read(node, "a load is due here", parse_load)
    }

    /// A hypothesis.
    pub(super) fn sentence(&mut self, node: &Node) -> Option<Sentence> {
        self.read(node, "a hypothesis is due here", parse_sentence)
    }

    /// A rule.
    pub(super) fn call(&mut self, node: &Node) -> Option<Call> {
        self.read(node, "a rule is due here", parse_call)
    }

    /// A cell or a member of a family.
    pub(super) fn cell_ref(&mut self, node: &Node) -> Option<CellRef> {
        self.read(node, "a cell is due here", parse_cell)
    }

    /// `true` or `false`.
    pub(super) fn flag(&mut self, node: &Node) -> Option<Spanned<bool>> {
        let scalar = self.scalar(node, "`true` or `false` is due here")?;
        let flag = match (scalar.style, scalar.text.as_str()) {
            (Style::Plain, "true") => true,
            (Style::Plain, "false") => false,
            _ => {
                let written = self.source.slice(node.span).to_owned();
                let meant = match scalar.text.to_lowercase().as_str() {
                    "true" | "yes" | "on" | "y" | "1" => Some("true"),
                    "false" | "no" | "off" | "n" | "0" => Some("false"),
                    _ => None,
                };
                let diagnostic = Diagnostic::new(
                    codes::E0117,
                    node.span,
                    format!("`{written}` is neither `true` nor `false`"),
                );
                self.push(match meant {
                    Some(meant) => {
                        diagnostic.help_edit(format!("write `{meant}`"), node.span, meant)
                    }
                    None => diagnostic,
                });
                return None;
            }
        };
        Some(Spanned::new(flag, node.span))
    }

    /// A word of a closed set.
    pub(super) fn word<T: Copy>(
        &mut self,
        node: &Node,
        what: &str,
        words: &[(&'static str, T)],
    ) -> Option<Spanned<T>> {
        let scalar = self.scalar(node, &format!("{what} is a word"))?;
        if let Some((_, found)) = words.iter().find(|(word, _)| *word == scalar.text) {
            return Some(Spanned::new(*found, node.span));
        }
        let text = scalar.text.clone();
        self.unknown_word(
            node,
            &text,
            what,
            &words.iter().map(|(word, _)| *word).collect::<Vec<_>>(),
        );
        None
    }

    fn unknown_word(&mut self, node: &Node, text: &str, what: &str, words: &[&str]) {
        let diagnostic = Diagnostic::new(
            codes::E0116,
            node.span,
            format!("`{text}` is no word of {what}"),
        );
        let choice = format!("it is one of {}", words.join(", "));
        self.push(match nearest(text, words.iter().copied()) {
            Some(near) => diagnostic.note(choice).help_edit(
                format!("did you mean `{near}`?"),
                node.span,
                near,
            ),
            None => diagnostic.help(choice),
        });
    }

    /// A whole number that fits 64 bits.
    pub(super) fn whole(&mut self, node: &Node, what: &str) -> Option<Spanned<u64>> {
        let expr = self.expr(node)?;
        if let ExprKind::Quantity(quantity) = &expr.kind
            && quantity.unit.is_none()
            && quantity.per.is_none()
            && quantity.number.is_whole()
            && let Ok(value) = u64::try_from(quantity.number.num())
        {
            return Some(Spanned::new(value, node.span));
        }
        let written = self.source.slice(node.span).to_owned();
        self.push(
            Diagnostic::new(
                codes::E0303,
                node.span,
                format!("{what} is a whole number below 2^64, and `{written}` is none"),
            )
            .help("write digits alone"),
        );
        None
    }

    /// The value of `connections`.
    pub(super) fn connections(&mut self, node: &Node) -> Option<Spanned<Connections>> {
        let call = self.call(node)?;
        let connections = match call.name.text.as_str() {
            "fresh" => {
                self.no_arguments(&call)?;
                Connections::Fresh
            }
            "reuse" => Connections::Reuse {
                idle: self.only_argument(&call, "idle"),
            },
            other => {
                self.unknown_word(node, other, "`connections`", &["fresh", "reuse"]);
                return None;
            }
        };
        Some(Spanned::new(connections, node.span))
    }

    /// The value of `receive`.
    pub(super) fn receive(&mut self, node: &Node) -> Option<Spanned<Receive>> {
        let call = self.call(node)?;
        let receive = match call.name.text.as_str() {
            "reap" => {
                self.no_arguments(&call)?;
                Receive::Reap
            }
            "kernel" => Receive::Kernel {
                gather: self.only_argument(&call, "gather"),
            },
            other => {
                self.unknown_word(node, other, "`receive`", &["reap", "kernel"]);
                return None;
            }
        };
        Some(Spanned::new(receive, node.span))
    }

    /// The value of `output`.
    pub(super) fn output(&mut self, node: &Node) -> Option<Spanned<Output>> {
        let call = self.call(node)?;
        let wrap: fn(Expr) -> Output = match call.name.text.as_str() {
            "exactly" => Output::Exactly,
            "at_most" => Output::AtMost,
            other => {
                self.unknown_word(node, other, "`output`", &["exactly", "at_most"]);
                return None;
            }
        };
        let expr = match call.args.as_ref().map(|args| args.items.as_slice()) {
            Some(
                [
                    Arg {
                        name: None,
                        value: Value::Expr(expr),
                    },
                ],
            ) => expr.clone(),
            _ => {
                self.push(
                    Diagnostic::new(
                        codes::E0114,
                        call.span,
                        format!("`{}` takes one number of tokens", call.name),
                    )
                    .help(format!("write `{}(128)`", call.name)),
                );
                return None;
            }
        };
        Some(Spanned::new(wrap(expr), node.span))
    }

    fn no_arguments(&mut self, call: &Call) -> Option<()> {
        let Some(args) = &call.args else {
            return Some(());
        };
        self.push(
            Diagnostic::new(
                codes::E0114,
                args.span,
                format!("`{}` takes no arguments", call.name),
            )
            .help("leave the parentheses out"),
        );
        None
    }

    /// The one named argument that a setting takes, where parentheses were written.
    fn only_argument(&mut self, call: &Call, key: &str) -> Option<Expr> {
        let args = call.args.as_ref()?;
        if let [
            Arg {
                name: Some(name),
                value: Value::Expr(expr),
            },
        ] = args.items.as_slice()
            && name.text == key
        {
            return Some(expr.clone());
        }
        self.push(
            Diagnostic::new(
                codes::E0114,
                args.span,
                format!("`{}` takes one argument, `{key}`", call.name),
            )
            .help(format!(
                "write `{}({key} = …)`, or no parentheses",
                call.name
            )),
        );
        None
    }

    /// A method and a path.
    pub(super) fn http_call(&mut self, node: &Node) -> Option<Spanned<HttpCall>> {
        let text = self.text(node)?;
        let parts: Vec<&str> = text.value.split_whitespace().collect();
        if let [method @ ("GET" | "POST"), path] = parts.as_slice()
            && path.starts_with('/')
        {
            let call = HttpCall {
                method: (*method).to_owned(),
                path: (*path).to_owned(),
            };
            return Some(Spanned::new(call, node.span));
        }
        self.push(
            Diagnostic::new(
                codes::E0116,
                node.span,
                format!("`{}` is no method and path", text.value),
            )
            .help("write `POST /path` or `GET /path`"),
        );
        None
    }

    /// The settings that a cell and the top level share, and the cell's own.
    pub(super) fn settings(&mut self, fields: &Fields<'_>) -> CellSettings {
        CellSettings {
            settle: self.expr_of(fields, "settle"),
            drain: self.expr_of(fields, "drain"),
            timeout: self.expr_of(fields, "timeout"),
            connections: fields
                .get("connections")
                .and_then(|node| self.connections(node)),
            cache: fields
                .get("cache")
                .and_then(|node| self.word(node, "`cache`", Cache::WORDS)),
            record: fields
                .get("record")
                .and_then(|node| self.word(node, "`record`", Record::WORDS)),
            receive: fields.get("receive").and_then(|node| self.receive(node)),
        }
    }

    /// The expression under a key.
    pub(super) fn expr_of(&mut self, fields: &Fields<'_>, key: &str) -> Option<Expr> {
        fields.get(key).and_then(|node| self.expr(node))
    }

    /// The text under a key.
    pub(super) fn text_of(&mut self, fields: &Fields<'_>, key: &str) -> Option<Text> {
        fields.get(key).and_then(|node| self.text(node))
    }

    /// The texts under a key.
    pub(super) fn texts_of(&mut self, fields: &Fields<'_>, key: &str) -> Vec<Text> {
        fields
            .get(key)
            .and_then(|node| self.texts(node, &format!("`{key}`")))
            .map_or(Vec::new(), |list| list.value)
    }

    /// The name under a key.
    pub(super) fn name_of(&mut self, fields: &Fields<'_>, key: &str) -> Option<Name> {
        fields.get(key).and_then(|node| self.name(node))
    }

    /// The flag under a key.
    pub(super) fn flag_of(&mut self, fields: &Fields<'_>, key: &str) -> Option<Spanned<bool>> {
        fields.get(key).and_then(|node| self.flag(node))
    }

    fn scalar<'t>(&mut self, node: &'t Node, want: &str) -> Option<&'t Scalar> {
        if let NodeKind::Scalar(scalar) = &node.kind {
            return Some(scalar);
        }
        self.wrong_kind(node, want);
        None
    }

    /// A scalar on one line, read by a rule of the expression language.
    fn read<T>(
        &mut self,
        node: &Node,
        want: &str,
        rule: impl FnOnce(Input<'_>) -> Parsed<T>,
    ) -> Option<T> {
        let scalar = self.scalar(node, want)?;
        let start = match scalar.style {
            Style::Plain => Some(node.span.start),
            Style::Quoted => Some(node.span.start + 1),
            Style::Escaped => None,
            Style::Multiline => {
                let span = self.first_line(node.span);
                self.push(
                    Diagnostic::new(
                        codes::E0119,
                        span,
                        format!("{want}, and it stands on one line"),
                    )
                    .help("write it on one line; give its parts names under `let:` where it is too long"),
                );
                return None;
            }
        };
        let parsed = rule(Input {
            text: &scalar.text,
            span: node.span,
            start,
        });
        self.keep(parsed)
    }
}
