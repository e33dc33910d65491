//! Texts to tokens. A literal with its unit is one token, and so is a name with its dashes.

use assize_codes as codes;
use assize_units::Ratio;
use nom::IResult;
use nom::Parser;
use nom::branch::alt;
use nom::bytes::complete::{tag, take_while, take_while1};
use nom::combinator::{opt, recognize, verify};
use nom::multi::many0_count;
use nom::sequence::{pair, preceded};

use super::quantity::{Per, Quantity, Unit};
use crate::diagnostic::{Diagnostic, is_hidden};
use crate::source::Span;

/// An expression's text and where its bytes lie in the source.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// The text.
    pub text: &'a str,
    /// The whole scalar in the source, quotes included.
    pub span: Span,
    /// The byte of the source at which the text begins; none where the text was written with
    /// escapes, so that only the whole scalar can be pointed at.
    pub start: Option<u32>,
}

impl Input<'_> {
    /// The place of a range of the text.
    pub(super) fn place(&self, start: usize, end: usize) -> Span {
        match self.start {
            Some(base) => Span::new(self.span.source, base as usize + start, base as usize + end),
            None => self.span,
        }
    }
}

/// A token and its range of the text.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) start: usize,
    pub(super) end: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum TokenKind {
    Quantity(Quantity),
    Name,
    Symbol(&'static str),
}

/// The words that no name may be: those of the grammar that would be ambiguous, and YAML's own.
pub const RESERVED: &[&str] = &[
    "beats", "keeps", "holds", "within", "by", "on", "of", "in", "from", "highest", "where",
    "then", "with", "for", "and", "or", "true", "false", "null", "yes", "no", "off",
];

/// Cuts a text into tokens, or says what it cannot hold.
pub(super) fn tokens(input: &Input<'_>) -> Result<Vec<Token>, Box<Diagnostic>> {
    let mut list = Vec::new();
    let mut rest = input.text;
    loop {
        rest = rest.trim_start_matches([' ', '\t']);
        let start = input.text.len() - rest.len();
        let Some(first) = rest.chars().next() else {
            return Ok(list);
        };
        let (kind, length) = if first.is_ascii_digit() {
            let (quantity, length) = quantity(input, rest, start)?;
            (TokenKind::Quantity(quantity), length)
        } else if first.is_ascii_alphabetic() {
            let (_, word) = word(rest).map_err(|_| stray(input, rest, start))?;
            check_case(input, word, start)?;
            (TokenKind::Name, word.len())
        } else if let Ok((_, symbol)) = symbol(rest) {
            (TokenKind::Symbol(symbol), symbol.len())
        } else {
            return Err(stray(input, rest, start));
        };
        list.push(Token {
            kind,
            start,
            end: start + length,
        });
        rest = &rest[length..];
    }
}

/// `name = letter { letter | digit | "_" } { "-" ( letter | digit | "_" ) { … } }`, in either case
/// here so that a wrong one can be named.
fn word(input: &str) -> IResult<&str, &str> {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    recognize(pair(
        take_while1(part),
        many0_count(pair(tag("-"), take_while1(part))),
    ))
    .parse(input)
}

fn symbol(input: &str) -> IResult<&str, &'static str> {
    let (rest, found) = alt((
        tag("<="),
        tag(">="),
        tag("=="),
        tag("!="),
        recognize(verify(nom::character::complete::anychar, |c| {
            "<>=+-*/(),:".contains(*c)
        })),
    ))
    .parse(input)?;
    let known = [
        "<=", ">=", "==", "!=", "<", ">", "=", "+", "-", "*", "/", "(", ")", ",", ":",
    ];
    let symbol = known.into_iter().find(|known| *known == found);
    Ok((rest, symbol.unwrap_or(":")))
}

/// Digits, a fraction, a unit, an interval; everything that touches the digits belongs to them.
fn quantity(
    input: &Input<'_>,
    rest: &str,
    start: usize,
) -> Result<(Quantity, usize), Box<Diagnostic>> {
    let digits = |c: char| c.is_ascii_digit();
    let number: IResult<&str, &str> = recognize(pair(
        take_while1(digits),
        opt(pair(tag("."), take_while1(digits))),
    ))
    .parse(rest);
    let (after, number) = number.map_err(|_| stray(input, rest, start))?;
    check_clock(input, rest, start)?;
    check_form(input, number, after, start)?;

    let (mut after, unit) = unit(input, number, after, start)?;
    let interval: IResult<&str, &str> =
        preceded(tag("/"), take_while1(|c: char| c.is_ascii_alphabetic())).parse(after);
    let mut per = None;
    if let Ok((behind, spelling)) = interval
        && let Some((_, found)) = Per::SPELLINGS.iter().find(|(known, _)| *known == spelling)
        && !behind.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
    {
        per = Some(*found);
        after = behind;
    }
    let length = rest.len() - after.len();
    let too_large = || {
        Box::new(
            Diagnostic::new(
                codes::E0302,
                input.place(start, start + length),
                format!("`{}` is too large or too fine to be exact", &rest[..length]),
            )
            .help("a number has at most 36 digits"),
        )
    };
    let number = Ratio::parse_decimal(number).ok_or_else(too_large)?;
    let quantity = Quantity::new(number, unit, per).map_err(|_| too_large())?;
    Ok((quantity, length))
}

/// `1:30` and `2026-11-30` are a number to the base of sixty, a time, a date or a text, as the
/// reader of YAML likes.
fn check_clock(input: &Input<'_>, rest: &str, start: usize) -> Result<(), Box<Diagnostic>> {
    let length = rest
        .find(|c: char| !c.is_ascii_digit() && !matches!(c, ':' | '-'))
        .unwrap_or(rest.len());
    let written = rest[..length].trim_end_matches([':', '-']);
    let help = if written.contains(':') {
        "write a duration with its unit: `90s`, `1h + 30min`"
    } else if written.matches('-').count() > 1 {
        "subtraction has a space on both sides: `a - b`"
    } else {
        return Ok(());
    };
    Err(Box::new(
        Diagnostic::new(
            codes::E0302,
            input.place(start, start + written.len()),
            format!("`{written}` is a time or a date, and no number"),
        )
        .help(help),
    ))
}

/// A number has one form: no leading zero, underscore, exponent or bare point.
fn check_form(
    input: &Input<'_>,
    number: &str,
    after: &str,
    start: usize,
) -> Result<(), Box<Diagnostic>> {
    let (whole, _) = number.split_once('.').unwrap_or((number, ""));
    let tail: IResult<&str, &str> =
        take_while(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.')).parse(after);
    let tail = tail.map_or("", |(_, tail)| tail);
    let written = format!("{number}{tail}");
    let exponent = tail
        .strip_prefix(['e', 'E'])
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(|c: char| c.is_ascii_digit()));
    let radix = number == "0" && tail.starts_with(['x', 'o', 'b']);
    let why = if whole.len() > 1 && whole.starts_with('0') {
        "a leading zero"
    } else if tail.starts_with('_') {
        "an underscore"
    } else if exponent {
        "an exponent"
    } else if radix {
        "a base other than ten"
    } else if tail.starts_with('.') {
        "a point without a digit on each side"
    } else {
        return Ok(());
    };
    let diagnostic = Diagnostic::new(
        codes::E0302,
        input.place(start, start + written.len()),
        format!("`{written}` has {why}, and a number has one form"),
    );
    let plain = whole.trim_start_matches('0');
    Err(Box::new(if why == "a leading zero" && !plain.is_empty() {
        diagnostic.help(format!("write `{plain}`"))
    } else {
        diagnostic.help("write digits, and a point with digits on both sides: `1000`, `0.5`")
    }))
}

fn unit<'t>(
    input: &Input<'_>,
    number: &str,
    after: &'t str,
    start: usize,
) -> Result<(&'t str, Option<Unit>), Box<Diagnostic>> {
    if let Some(rest) = after.strip_prefix('%') {
        return Ok((rest, Some(Unit::Percent)));
    }
    if let Some(rest) = after.strip_prefix(" tokens")
        && !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '('))
    {
        return Ok((rest, Some(Unit::Tokens)));
    }
    let letters: IResult<&str, &str> =
        take_while(|c: char| c.is_alphanumeric() || c == '_').parse(after);
    let Ok((rest, spelling)) = letters else {
        return Ok((after, None));
    };
    if spelling.is_empty() {
        return Ok((after, None));
    }
    if let Some((_, unit)) = Unit::SPELLINGS.iter().find(|(known, _)| *known == spelling) {
        return Ok((rest, Some(*unit)));
    }
    let span = input.place(start, start + number.len() + spelling.len());
    Err(Box::new(unknown_unit(number, spelling, span)))
}

fn unknown_unit(number: &str, spelling: &str, span: Span) -> Diagnostic {
    let at = |message: String| Diagnostic::new(codes::E0301, span, message);
    let meant = match spelling.to_lowercase().as_str() {
        "m" => {
            return at(format!(
                "`{number}{spelling}` could be minutes, milliseconds or metres"
            ))
            .help(format!("write `{number}min` or `{number}ms`"));
        }
        "k" | "g" => {
            return at(format!(
                "`{number}{spelling}` has no unit that says thousands or bytes"
            ))
            .help(format!("write the number out, or a size: `{number}KiB`"));
        }
        "sec" | "secs" | "second" | "seconds" => "s",
        "msec" | "millis" | "millisecond" | "milliseconds" => "ms",
        "mins" | "minute" | "minutes" => "min",
        "hr" | "hrs" | "hour" | "hours" => "h",
        "µs" | "μs" | "usec" => "us",
        "b" | "byte" | "bytes" => "B",
        "ns" => "ns",
        "us" => "us",
        "ms" => "ms",
        "s" => "s",
        "min" => "min",
        "h" => "h",
        "kb" | "kib" => "KiB",
        "mb" | "mib" => "MiB",
        "gb" | "gib" => "GiB",
        "tokens" | "tok" | "token" => " tokens",
        "rps" | "qps" | "hz" => "/s",
        _ => {
            return at(format!("`{number}{spelling}` has no unit that is known"))
                .help("the units are ns us ms s min h, B KiB MiB GiB, tokens, % and /s /min /h");
        }
    };
    at(format!(
        "`{spelling}` is no unit; `{number}{meant}` has one"
    ))
    .help_edit(
        format!("did you mean `{number}{meant}`?"),
        span,
        format!("{number}{meant}"),
    )
}

fn check_case(input: &Input<'_>, word: &str, start: usize) -> Result<(), Box<Diagnostic>> {
    if !word.contains(|c: char| c.is_ascii_uppercase()) {
        return Ok(());
    }
    let span = input.place(start, start + word.len());
    let diagnostic = Diagnostic::new(
        codes::E0201,
        span,
        format!("`{word}` is no name: names are lower case"),
    );
    Err(Box::new(if input.start.is_some() {
        diagnostic.help_edit("write it in lower case", span, word.to_lowercase())
    } else {
        diagnostic.help("write it in lower case")
    }))
}

fn stray(input: &Input<'_>, rest: &str, start: usize) -> Box<Diagnostic> {
    let first = rest.chars().next();
    let length = first.map_or(0, char::len_utf8);
    let shown = match &rest[..length] {
        "\n" => "\\n",
        shown => shown,
    };
    let diagnostic = Diagnostic::new(
        codes::E0114,
        input.place(start, start + length),
        format!("`{shown}` has no meaning in an expression"),
    );
    if first.is_some_and(is_hidden) || shown == "\\n" {
        return Box::new(
            diagnostic.help("it cannot be seen: remove it, or write a plain space in its place"),
        );
    }
    if first.is_some_and(char::is_numeric) {
        return Box::new(diagnostic.help("digits are those of ASCII, from `0` to `9`"));
    }
    Box::new(match shown {
        "." => diagnostic.help("a number has digits on both sides of its point: `0.5`"),
        "−" | "–" => diagnostic.help("subtraction is a plain `-` with a space on both sides"),
        "×" => diagnostic.help("multiplication is `*`"),
        "≤" => diagnostic.help("write `<=`"),
        "≥" => diagnostic.help("write `>=`"),
        "'" | "\"" => diagnostic.help("an expression holds no quoted text; a word stands bare"),
        _ => diagnostic.help("an expression is made of names, numbers with units and operators"),
    })
}
