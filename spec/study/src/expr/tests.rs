//! The grammar by example, and its errors by code.

use super::*;
use crate::source::SourceId;

fn input(text: &str) -> Input<'_> {
    Input {
        text,
        span: Span::new(SourceId(0), 0, text.len()),
        start: Some(0),
    }
}

/// An expression with every grouping in parentheses.
fn show(expr: &Expr) -> String {
    match &expr.kind {
        ExprKind::Quantity(quantity) => {
            let percent = if quantity.is_percent() { "%" } else { "" };
            format!("{}{percent}", quantity.base)
        }
        ExprKind::Phrase(phrase) => show_phrase(phrase),
        ExprKind::Highest(highest) => format!(
            "highest {} in {} where {}",
            highest.param,
            highest.family,
            show(&highest.condition)
        ),
        ExprKind::Negate(inner) => format!("-{}", show(inner)),
        ExprKind::Binary { op, left, right } => {
            format!("({} {} {})", show(left), op.value.symbol(), show(right))
        }
    }
}

fn show_phrase(phrase: &Phrase) -> String {
    let mut out = phrase.name.text.clone();
    out += &show_args(phrase.args.as_ref());
    if let Some(origin) = &phrase.origin {
        out += &format!(" from {:?}", origin.value);
    }
    match &phrase.of {
        Some(Subset::Class(class)) => out += &format!(" of {class}"),
        Some(Subset::Turns(turns)) => out += &format!(" of {:?} turns", turns.value),
        None => {}
    }
    if let Some(cell) = &phrase.cell {
        out += &format!(" in {}{}", cell.name, show_args(cell.args.as_ref()));
    }
    out
}

fn show_args(args: Option<&Args>) -> String {
    let Some(args) = args else {
        return String::new();
    };
    let shown: Vec<String> = args
        .items
        .iter()
        .map(|arg| {
            let name = arg
                .name
                .as_ref()
                .map_or(String::new(), |name| format!("{name} = "));
            match &arg.value {
                Value::Expr(expr) => name + &show(expr),
                Value::Load(load) => name + &show_load(load),
            }
        })
        .collect();
    format!("({})", shown.join(", "))
}

fn show_load(load: &Load) -> String {
    let stages: Vec<String> = load
        .stages
        .iter()
        .map(|stage| {
            let mut out = format!(
                "{}{}",
                stage.process.name,
                show_args(stage.process.args.as_ref())
            );
            if let Some(with) = &stage.with {
                out += &format!(" with {}{}", with.name, show_args(with.args.as_ref()));
            }
            if let Some(lasts) = &stage.lasts {
                out += &format!(" for {}", show(lasts));
            }
            out
        })
        .collect();
    stages.join(" then ")
}

fn expr(text: &str) -> String {
    match parse_expr(input(text)) {
        Ok(expr) => show(&expr),
        Err(fault) => fault.code.id.to_owned(),
    }
}

#[test]
fn operators_bind_as_the_grammar_says() {
    assert_eq!(expr("a + b * 2 - c"), "((a + (b * 2)) - c)");
    assert_eq!(expr("-a / b"), "(-a / b)");
    assert_eq!(expr("(a + b) * 2"), "((a + b) * 2)");
    assert_eq!(
        expr("a <= b and c == d or e"),
        "(((a <= b) and (c == d)) or e)"
    );
    assert_eq!(expr("a-b - c"), "(a-b - c)");
}

#[test]
fn literals_are_exact_and_in_base_units() {
    assert_eq!(expr("0.1/s"), "0.1");
    assert_eq!(expr("90%"), "0.9%");
    assert_eq!(expr("500us"), "0.0005");
    assert_eq!(expr("2h"), "7200");
    assert_eq!(expr("300/min"), "5");
    assert_eq!(expr("64MiB"), "67108864");
    assert_eq!(expr("100000 tokens/min"), "5000/3");
    assert_eq!(expr("1 / 2s"), "(1 / 2)");
}

#[test]
fn metrics_take_origin_class_and_cell_in_this_order() {
    assert_eq!(
        expr("p95(ttft from intended) of chat in near"),
        "p95(ttft from Intended) of chat in near"
    );
    assert_eq!(
        expr("p95(ttft from intended) of later turns in sweep(4/s, 8)"),
        "p95(ttft from Intended) of Later turns in sweep(4, 8)"
    );
    assert_eq!(
        expr("highest rate in sweep where attainment(e2e from sent <= 1s) >= 99%"),
        "highest rate in sweep where (attainment((e2e from Sent <= 1)) >= 0.99%)"
    );
    assert_eq!(
        expr("floor_to(80% * pilot(base, whole, throughput), 0.1/s)"),
        "floor_to((0.8% * pilot(base, whole, throughput)), 0.1)"
    );
}

#[test]
fn loads_have_stages() {
    let load = |text: &str| match parse_load(input(text)) {
        Ok(load) => show_load(&load),
        Err(fault) => fault.code.id.to_owned(),
    };
    assert_eq!(load("closed(32)"), "closed(32)");
    assert_eq!(
        load("ramp(1/s, peak, 60s) for 60s then poisson(peak) with cap(64) for 240s"),
        "ramp(1, peak, 60) for 60 then poisson(peak) with cap(64) for 240"
    );
    assert_eq!(
        load("merge(poisson(1/s) for 5s, every(5s))"),
        "merge(poisson(1) for 5, every(5))"
    );
    assert_eq!(load("gamma(4/s, cv = 0.5)"), "gamma(4, cv = 0.5)");
    assert_eq!(load("5 for 2s"), "E0114");
    assert_eq!(load("5"), "E0114");
}

#[test]
fn the_four_sentences() {
    let claim = |text: &str| parse_sentence(input(text)).map(|sentence| sentence.claim);
    let Ok(Claim::Beats {
        control,
        metric,
        gain,
    }) = claim("a beats b on tail in near, median gain at least 5%")
    else {
        panic!("a sentence of the first form");
    };
    assert_eq!(
        (control.text.as_str(), show(&metric)),
        ("b", "tail in near".to_owned())
    );
    assert_eq!(gain.as_ref().map(show).as_deref(), Some("0.05%"));

    let Ok(Claim::BeatsBy { margin, .. }) = claim("a beats b by 5% on tail in near") else {
        panic!("a sentence of the second form");
    };
    assert_eq!(show(&margin), "0.05%");

    let Ok(Claim::KeepsWithin {
        margin, control, ..
    }) = claim("a keeps within slack of b on throughput in c(16)")
    else {
        panic!("a sentence of the third form");
    };
    assert_eq!(
        (show(&margin).as_str(), control.text.as_str()),
        ("slack", "b")
    );

    let Ok(Claim::Holds { condition }) =
        claim("a holds attainment(ttft from intended <= 2s) in c >= 95%")
    else {
        panic!("a sentence of the fourth form");
    };
    assert!(
        matches!(condition.kind, ExprKind::Binary { op, .. } if op.value == BinaryOp::GreaterOrEqual)
    );
}

#[test]
fn keys_of_let_take_typed_parameters() {
    let key = parse_key(input("share_of(share percent, pace rate)")).expect("a key");
    assert_eq!(key.name.text, "share_of");
    let types: Vec<ParamType> = key.params.iter().map(|param| param.ty.value).collect();
    assert_eq!(types, [ParamType::Percent, ParamType::Rate]);
    assert!(parse_key(input("f(x)")).is_err());
}

#[test]
fn errors_have_their_codes() {
    let cases = [
        ("5m", "E0301"),
        ("10k", "E0301"),
        ("5 min", "E0301"),
        ("5sec", "E0301"),
        ("1_000", "E0302"),
        ("010", "E0302"),
        ("1e3", "E0302"),
        ("0x10", "E0302"),
        ("5.", "E0302"),
        ("+5", "E0302"),
        (".5", "E0114"),
        ("a -b", "E0114"),
        ("a- b", "E0114"),
        ("a < b < c", "E0114"),
        ("a = b", "E0114"),
        ("sign(ties: nonwins)", "E0104"),
        ("a b", "E0114"),
        ("f(a", "E0114"),
        ("a)", "E0114"),
        ("a, b", "E0114"),
        ("", "E0114"),
        ("Near", "E0201"),
        ("a + then", "E0202"),
        ("e2e from started_at", "E0114"),
        ("\"x\"", "E0114"),
    ];
    for (text, code) in cases {
        assert_eq!(expr(text), code, "{text}");
    }
    assert_eq!(
        expr(&format!("{}1{}", "(".repeat(80), ")".repeat(80))),
        "E0113"
    );
    assert_eq!(expr(&"9".repeat(40)), "E0302");
}

#[test]
fn carets_stand_under_the_fault() {
    let fault = |text: &str| {
        let fault = parse_expr(input(text)).expect_err("a fault");
        text.get(fault.primary.span.range()).map(str::to_owned)
    };
    assert_eq!(fault("2s + 5m * 3").as_deref(), Some("5m"));
    assert_eq!(fault("max(a, b) c").as_deref(), Some("c"));
    assert_eq!(fault("2s + Near").as_deref(), Some("Near"));
}

#[test]
fn names_have_one_form() {
    for name in ["a", "closed-32", "out_put", "a-1"] {
        assert!(parse_name(input(name)).is_ok(), "{name}");
    }
    for name in ["", "A", "1a", "a--b", "-a", "a-", "a b", "é", "then", "yes"] {
        assert!(parse_name(input(name)).is_err(), "{name}");
    }
    assert!(parse_name(input(&"a".repeat(65))).is_err());
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in ".{0,60}") {
        let _ = parse_value(input(&text));
        let _ = parse_sentence(input(&text));
        let _ = parse_key(input(&text));
        let _ = parse_name(input(&text));
    }

    #[test]
    fn no_run_of_words_makes_the_parser_panic(
        words in proptest::collection::vec(proptest::sample::select(vec![
            "a", "beats", "on", "(", ")", ",", "5%", "4/s", "for", "then", "with", "of", "in",
            "from", "sent", "highest", "where", "keeps", "within", "holds", "-", "+", "*", "<=", "=",
        ]), 0..24)
    ) {
        let text = words.join(" ");
        let _ = parse_value(input(&text));
        let _ = parse_sentence(input(&text));
    }
}
