//! Tokens to expressions, by recursive descent: one function for each rule of the grammar.

use assize_codes as codes;

use super::quantity::Quantity;
use super::token::{Input, RESERVED, Token, TokenKind, tokens};
use super::{
    Arg, Args, BinaryOp, Call, CellRef, Expr, ExprKind, Highest, LetKey, Load, Name, Origin,
    Phrase, Sentence, Subset, Turns, Value,
};
use crate::diagnostic::Diagnostic;
use crate::source::{Span, Spanned};

/// What is parsed, or the one thing that is wrong with it.
pub type Parsed<T> = Result<T, Box<Diagnostic>>;

/// The deepest nesting of one expression.
const MAX_DEPTH: usize = 64;
/// The most operators of one expression: each makes its tree one level deeper.
const MAX_OPERATORS: usize = 64;

/// `expr`: a value, a condition or a metric.
pub fn parse_expr(input: Input<'_>) -> Parsed<Expr> {
    whole(input, Parser::expr)
}

/// `value`: an expression or a load, as in `let`.
pub fn parse_value(input: Input<'_>) -> Parsed<Value> {
    whole(input, Parser::value)
}

/// `load`: stages joined by `then`.
pub fn parse_load(input: Input<'_>) -> Parsed<Load> {
    let value = parse_value(input)?;
    value.as_load().ok_or_else(|| {
        Box::new(
            Diagnostic::new(
                codes::E0114,
                value.span(),
                format!("`{}` is no load", input.text.trim()),
            )
            .help("a load is a process with its rate or its clients: `poisson(4/s)`, `closed(32)`"),
        )
    })
}

/// `sentence`: a hypothesis.
pub fn parse_sentence(input: Input<'_>) -> Parsed<Sentence> {
    whole(input, Parser::sentence)
}

/// `name [ args ]`: a rule such as `sign(ties = nonwins)`.
pub fn parse_call(input: Input<'_>) -> Parsed<Call> {
    whole(input, Parser::call)
}

/// `name [ args ]`: a cell or a member of a family.
pub fn parse_cell(input: Input<'_>) -> Parsed<CellRef> {
    parse_call(input).map(|call| CellRef {
        name: call.name,
        args: call.args,
        span: call.span,
    })
}

/// `key`: a name of `let`, with parameters where it is a function.
pub fn parse_key(input: Input<'_>) -> Parsed<LetKey> {
    whole(input, Parser::key)
}

pub(super) fn prefix(text: &str, length: usize) -> String {
    text.chars().take(length).collect()
}

fn whole<'a, T>(input: Input<'a>, rule: impl FnOnce(&mut Parser<'a>) -> Parsed<T>) -> Parsed<T> {
    let tokens = tokens(&input)?;
    let mut parser = Parser {
        input,
        tokens,
        at: 0,
        depth: 0,
        operators: 0,
        of_ends: false,
    };
    let parsed = rule(&mut parser)?;
    match parser.peek() {
        None => Ok(parsed),
        Some(_) => Err(parser.leftover()),
    }
}

pub(super) struct Parser<'a> {
    pub(super) input: Input<'a>,
    tokens: Vec<Token>,
    pub(super) at: usize,
    depth: usize,
    operators: usize,
    /// In `keeps within 2% of fa3` the `of` ends the margin and selects no class.
    pub(super) of_ends: bool,
}

impl<'a> Parser<'a> {
    pub(super) fn metric(&mut self) -> Parsed<Expr> {
        match self.peek().map(|token| token.kind) {
            Some(TokenKind::Name) => self.named(),
            _ => Err(self.expected("a metric")),
        }
    }

    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        self.enter()?;
        let mut left = self.conj()?;
        while let Some(op) = self.take_op(&[("or", BinaryOp::Or)]) {
            let right = self.conj()?;
            left = self.binary(op, left, right)?;
        }
        self.depth -= 1;
        Ok(left)
    }

    fn conj(&mut self) -> Parsed<Expr> {
        let mut left = self.compare()?;
        while let Some(op) = self.take_op(&[("and", BinaryOp::And)]) {
            let right = self.compare()?;
            left = self.binary(op, left, right)?;
        }
        Ok(left)
    }

    pub(super) fn compare(&mut self) -> Parsed<Expr> {
        let left = self.sum()?;
        let Some(op) = self.take_op(&[
            ("<=", BinaryOp::LessOrEqual),
            (">=", BinaryOp::GreaterOrEqual),
            ("==", BinaryOp::Equal),
            ("!=", BinaryOp::NotEqual),
            ("<", BinaryOp::Less),
            (">", BinaryOp::Greater),
        ]) else {
            return Ok(left);
        };
        let right = self.sum()?;
        self.binary(op, left, right)
    }

    pub(super) fn sum(&mut self) -> Parsed<Expr> {
        let mut left = self.product()?;
        loop {
            self.check_spaces()?;
            let Some(op) = self.take_op(&[("+", BinaryOp::Add), ("-", BinaryOp::Subtract)]) else {
                return Ok(left);
            };
            let right = self.product()?;
            left = self.binary(op, left, right)?;
        }
    }

    fn binary(&mut self, op: Spanned<BinaryOp>, left: Expr, right: Expr) -> Parsed<Expr> {
        self.operators += 1;
        if self.operators > MAX_OPERATORS {
            return Err(Box::new(
                Diagnostic::new(
                    codes::E0113,
                    op.span,
                    format!("the expression has more than {MAX_OPERATORS} operators"),
                )
                .help("give its parts names under `let:`"),
            ));
        }
        let span = left.span.to(right.span);
        Ok(Expr {
            kind: ExprKind::Binary {
                op,
                left: Box::new(left),
                right: Box::new(right),
            },
            span,
        })
    }

    fn product(&mut self) -> Parsed<Expr> {
        let mut left = self.unary()?;
        while let Some(op) = self.take_op(&[("*", BinaryOp::Multiply), ("/", BinaryOp::Divide)]) {
            let right = self.unary()?;
            left = self.binary(op, left, right)?;
        }
        Ok(left)
    }

    fn unary(&mut self) -> Parsed<Expr> {
        let start = self.position();
        if self.take_symbol("-") {
            let inner = self.atom()?;
            return Ok(Expr {
                kind: ExprKind::Negate(Box::new(inner)),
                span: self.span_from(start),
            });
        }
        self.atom()
    }

    fn atom(&mut self) -> Parsed<Expr> {
        let start = self.position();
        match self.peek().map(|token| token.kind) {
            Some(TokenKind::Quantity(quantity)) => {
                self.at += 1;
                self.check_operand(quantity, start)?;
                Ok(Expr {
                    kind: ExprKind::Quantity(quantity),
                    span: self.span_from(start),
                })
            }
            Some(TokenKind::Name) => self.named(),
            Some(TokenKind::Symbol("(")) => {
                self.at += 1;
                let of_ends = std::mem::replace(&mut self.of_ends, false);
                let inner = self.expr()?;
                self.of_ends = of_ends;
                self.expect_symbol(")")?;
                Ok(Expr {
                    kind: inner.kind,
                    span: self.span_from(start),
                })
            }
            Some(TokenKind::Symbol("+")) => Err(Box::new(
                Diagnostic::new(
                    codes::E0302,
                    self.here(),
                    "a number has no sign `+` before it",
                )
                .help("leave the sign out"),
            )),
            _ => Err(self.expected("a value")),
        }
    }

    /// `5 min` and `4 /s`: a unit stands directly behind its number.
    fn check_operand(&self, quantity: Quantity, start: usize) -> Parsed<()> {
        if quantity.unit.is_some() || quantity.per.is_some() {
            return Ok(());
        }
        let Some(word) = self.word() else {
            return Ok(());
        };
        if !super::Unit::SPELLINGS.iter().any(|(unit, _)| *unit == word) {
            return Ok(());
        }
        let span = self.span_from(start).to(self.here());
        let number = self.slice(self.span_from(start));
        Err(Box::new(
            Diagnostic::new(
                codes::E0301,
                span,
                format!("a space parts `{number}` from its unit `{word}`"),
            )
            .help(format!("write `{number}{word}`")),
        ))
    }

    fn named(&mut self) -> Parsed<Expr> {
        let start = self.position();
        if self.take_word("highest") {
            let param = self.name("the parameter of a family")?;
            self.expect_word("in", "and then the family")?;
            let family = self.name("a family of cells")?;
            self.expect_word("where", "and then a condition")?;
            let condition = self.expr()?;
            return Ok(Expr {
                kind: ExprKind::Highest(Box::new(Highest {
                    param,
                    family,
                    condition,
                })),
                span: self.span_from(start),
            });
        }
        let phrase = self.phrase()?;
        Ok(Expr {
            kind: ExprKind::Phrase(Box::new(phrase)),
            span: self.span_from(start),
        })
    }

    fn phrase(&mut self) -> Parsed<Phrase> {
        let name = self.name("a value")?;
        let args = self.args()?;
        let origin = self.origin()?;
        let mut of = None;
        if !self.of_ends && self.take_word("of") {
            of = Some(self.subset()?);
        }
        let mut cell = None;
        if self.take_word("in") {
            let call = self.call()?;
            cell = Some(CellRef {
                name: call.name,
                args: call.args,
                span: call.span,
            });
        }
        Ok(Phrase {
            name,
            args,
            origin,
            of,
            cell,
        })
    }

    fn origin(&mut self) -> Parsed<Option<Spanned<Origin>>> {
        if !self.take_word("from") {
            return Ok(None);
        }
        let place = self.here();
        let origin = match self.word() {
            Some("intended") => Origin::Intended,
            Some("started") => Origin::Started,
            Some("sent") => Origin::Sent,
            _ => {
                return Err(Box::new(
                    Diagnostic::new(
                        codes::E0114,
                        place,
                        format!(
                            "a latency counts `from intended`, `from started` or `from sent`{}",
                            self.found()
                        ),
                    )
                    .help(
                        "`from intended` includes the wait for a free client; `from sent` does not",
                    ),
                ));
            }
        };
        self.at += 1;
        Ok(Some(Spanned::new(origin, place)))
    }

    fn subset(&mut self) -> Parsed<Subset> {
        let place = self.here();
        let turns = match self.word() {
            Some("first") => Some(Turns::First),
            Some("later") => Some(Turns::Later),
            _ => None,
        };
        if let Some(turns) = turns
            && self.word_after(1) == Some("turns")
        {
            self.at += 2;
            return Ok(Subset::Turns(Spanned::new(turns, place)));
        }
        Ok(Subset::Class(self.name("a request class")?))
    }

    pub(super) fn args(&mut self) -> Parsed<Option<Args>> {
        let start = self.position();
        if !self.take_symbol("(") {
            return Ok(None);
        }
        let of_ends = std::mem::replace(&mut self.of_ends, false);
        let mut items = Vec::new();
        if !self.take_symbol(")") {
            loop {
                items.push(self.arg()?);
                if !self.take_symbol(",") {
                    break;
                }
            }
            self.expect_symbol(")")?;
        }
        self.of_ends = of_ends;
        Ok(Some(Args {
            items,
            span: self.span_from(start),
        }))
    }

    fn arg(&mut self) -> Parsed<Arg> {
        let mut name = None;
        if self.word().is_some() {
            match self.tokens.get(self.at + 1).map(|token| token.kind) {
                Some(TokenKind::Symbol("=")) => {
                    name = Some(self.name("an argument")?);
                    self.at += 1;
                }
                Some(TokenKind::Symbol(":")) => {
                    self.at += 1;
                    return Err(Box::new(
                        Diagnostic::new(
                            codes::E0104,
                            self.here(),
                            "an argument is named with `=`, not `:`",
                        )
                        .help("write `sign(ties = nonwins)`"),
                    ));
                }
                _ => {}
            }
        }
        Ok(Arg {
            name,
            value: self.value()?,
        })
    }

    pub(super) fn name(&mut self, what: &str) -> Parsed<Name> {
        let place = self.here();
        let Some(word) = self.word() else {
            return Err(self.expected(what));
        };
        if RESERVED.contains(&word) {
            return Err(Box::new(
                Diagnostic::new(
                    codes::E0202,
                    place,
                    format!("{what} is due here, and `{word}` is a word of the language"),
                )
                .help("choose another name, or complete what stands before it"),
            ));
        }
        if word.len() > 64 {
            return Err(Box::new(Diagnostic::new(
                codes::E0201,
                place,
                format!("`{}…` is longer than 64 letters", prefix(word, 24)),
            )));
        }
        self.at += 1;
        Ok(Name::new(word, place))
    }

    fn enter(&mut self) -> Parsed<()> {
        self.depth += 1;
        if self.depth <= MAX_DEPTH {
            return Ok(());
        }
        Err(Box::new(
            Diagnostic::new(
                codes::E0113,
                self.here(),
                format!("the expression nests deeper than {MAX_DEPTH} levels"),
            )
            .help("give its parts names under `let:`"),
        ))
    }

    /// A sum's operator has a space on both sides: a dash that touches a letter is part of a name.
    fn check_spaces(&self) -> Parsed<()> {
        let Some(token) = self.peek() else {
            return Ok(());
        };
        let TokenKind::Symbol(symbol @ ("+" | "-")) = token.kind else {
            return Ok(());
        };
        let text = self.input.text;
        let spaced = text[..token.start].ends_with(' ') && text[token.end..].starts_with(' ');
        let is_last = self.at + 1 == self.tokens.len();
        if spaced || is_last {
            return Ok(());
        }
        let span = self.here();
        let diagnostic = Diagnostic::new(
            codes::E0114,
            span,
            format!("`{symbol}` has a space on both sides"),
        );
        Err(Box::new(if self.input.start.is_some() {
            let before = text[..token.start].trim_end().len();
            let after = text.len() - text[token.end..].trim_start().len();
            diagnostic.help_edit(
                "put the spaces in",
                self.input.place(before, after),
                format!(" {symbol} "),
            )
        } else {
            diagnostic.help("put the spaces in")
        }))
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    pub(super) fn word(&self) -> Option<&'a str> {
        self.word_after(0)
    }

    fn word_after(&self, skip: usize) -> Option<&'a str> {
        let token = self.tokens.get(self.at + skip)?;
        (token.kind == TokenKind::Name).then(|| &self.input.text[token.start..token.end])
    }

    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let found = self.word() == Some(word);
        self.at += usize::from(found);
        found
    }

    pub(super) fn take_symbol(&mut self, symbol: &str) -> bool {
        let found = matches!(
            self.peek().map(|token| token.kind),
            Some(TokenKind::Symbol(written)) if written == symbol
        );
        self.at += usize::from(found);
        found
    }

    fn take_op(&mut self, ops: &[(&'static str, BinaryOp)]) -> Option<Spanned<BinaryOp>> {
        let place = self.here();
        let token = self.peek()?;
        let written = &self.input.text[token.start..token.end];
        let (_, op) = ops.iter().find(|(symbol, _)| *symbol == written)?;
        self.at += 1;
        Some(Spanned::new(*op, place))
    }

    pub(super) fn expect_word(&mut self, word: &str, then: &str) -> Parsed<()> {
        if self.take_word(word) {
            return Ok(());
        }
        Err(Box::new(
            Diagnostic::new(
                codes::E0115,
                self.here(),
                format!("`{word}` is due here{}", self.found()),
            )
            .help(format!("write `{word}` {then}")),
        ))
    }

    pub(super) fn expect_symbol(&mut self, symbol: &'static str) -> Parsed<()> {
        if self.take_symbol(symbol) {
            return Ok(());
        }
        if self.peek().is_some() {
            return Err(self.leftover());
        }
        Err(self.expected(&format!("`{symbol}`")))
    }

    pub(super) fn expected(&self, what: &str) -> Box<Diagnostic> {
        Box::new(Diagnostic::new(
            codes::E0114,
            self.here(),
            format!("{what} is due here{}", self.found()),
        ))
    }

    /// What cannot follow a complete expression.
    fn leftover(&self) -> Box<Diagnostic> {
        let place = self.here();
        let written = self.slice(place).to_owned();
        let at = |message: String| Diagnostic::new(codes::E0114, place, message);
        Box::new(match written.as_str() {
            "=" => at("a comparison is written `==`; one `=` names an argument".into())
                .help("write `==` to compare"),
            "<" | ">" | "<=" | ">=" | "==" | "!=" => at(format!(
                "`{written}` follows a comparison, and comparisons do not chain"
            ))
            .help("join two comparisons by `and`"),
            ":" => Diagnostic::new(
                codes::E0104,
                place,
                "an argument is named with `=`, not `:`",
            )
            .help("write `sign(ties = nonwins)`"),
            ")" => at("this parenthesis closes nothing".into()).help("remove it"),
            "," => at("a comma parts arguments, and these are no parentheses of arguments".into())
                .help("a list is written with brackets: `[a, b]`"),
            _ => at(format!("`{written}` cannot follow a complete expression"))
                .help("an operator or a comma is missing before it"),
        })
    }

    pub(super) fn found(&self) -> String {
        match self.peek() {
            Some(token) => format!(
                ", and `{}` was found",
                &self.input.text[token.start..token.end]
            ),
            None => ", and the text ends".to_owned(),
        }
    }

    pub(super) fn position(&self) -> usize {
        self.peek()
            .map_or(self.input.text.trim_end().len(), |token| token.start)
    }

    /// The place of the next token, or of the end.
    pub(super) fn here(&self) -> Span {
        match self.peek() {
            Some(token) => self.input.place(token.start, token.end),
            None => {
                let end = self.input.text.trim_end().len();
                self.input.place(end, end)
            }
        }
    }

    /// From a byte of the text to the end of the last token taken.
    pub(super) fn span_from(&self, start: usize) -> Span {
        let end = self
            .at
            .checked_sub(1)
            .and_then(|at| self.tokens.get(at))
            .map_or(start, |token| token.end);
        self.input.place(start, end.max(start))
    }

    pub(super) fn slice(&self, span: Span) -> &'a str {
        let Some(base) = self.input.start else {
            return self.input.text;
        };
        let range =
            (span.start.saturating_sub(base)) as usize..(span.end.saturating_sub(base)) as usize;
        self.input.text.get(range).unwrap_or_default()
    }
}
