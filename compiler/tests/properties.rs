//! The compiler never fails: whatever the text, it returns, and a plan where there are no errors.

mod support;

use proptest::prelude::*;
use support::studies::{CLOSED, HELLO, OPEN, PAIR};

/// Pieces that a slip of the hand or of the mind puts somewhere.
const PIECES: &[&str] = &[
    "0",
    "-",
    "5%",
    "count",
    "near",
    "in near",
    "of generate",
    "(4)",
    "\n",
    "  ",
    ": ",
    "{",
    "}",
    "[",
    "]",
    ", ",
    "'",
    "for 3s",
    "with cap(2)",
    "then",
    "0/s",
    "99999999999999999999",
    "1/0",
    "max(",
    "p95(",
    "from intended",
    "like: base",
    "abstract: true",
    "é",
];

fn mutated() -> impl Strategy<Value = String> {
    let edit = (
        any::<prop::sample::Index>(),
        0usize..12,
        prop::sample::select(PIECES),
    );
    let base = prop::sample::select(vec![HELLO, CLOSED, OPEN, PAIR]);
    (base, prop::collection::vec(edit, 1..4)).prop_map(|(base, edits)| {
        edits
            .into_iter()
            .fold(base.to_owned(), |text, (at, cut, piece)| {
                let letters: Vec<char> = text.chars().collect();
                let at = at.index(letters.len());
                let before: String = letters[..at].iter().collect();
                let after: String = letters[(at + cut).min(letters.len())..].iter().collect();
                format!("{before}{piece}{after}")
            })
    })
}

/// Two lines change places, or one is left out or doubled.
fn rearranged() -> impl Strategy<Value = String> {
    let base = prop::sample::select(vec![HELLO, CLOSED, OPEN, PAIR]);
    (
        base,
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        0..3,
    )
        .prop_map(|(base, a, b, how)| {
            let mut lines: Vec<&str> = base.lines().collect();
            let (a, b) = (a.index(lines.len()), b.index(lines.len()));
            match how {
                0 => lines.swap(a, b),
                1 => {
                    lines.remove(a);
                }
                _ => lines.insert(b, lines[a]),
            }
            lines.join("\n")
        })
}

fn judge(text: &str) -> Result<(), TestCaseError> {
    let first = support::compiled(text);
    prop_assert_eq!(first.output.is_none(), first.diagnostics.has_errors());
    let shown = support::shown(&first);
    let second = support::compiled(text);
    prop_assert_eq!(shown, support::shown(&second));
    if let (Some(first), Some(second)) = (first.output, second.output) {
        let bytes = first.plan.to_canonical().expect("canonical");
        prop_assert_eq!(&bytes, &second.plan.to_canonical().expect("canonical"));
        prop_assert!(assize_plan::Plan::from_canonical(&bytes).is_ok());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn any_slip_gives_a_plan_or_errors(text in mutated()) {
        judge(&text)?;
    }

    #[test]
    fn any_order_of_lines_gives_a_plan_or_errors(text in rearranged()) {
        judge(&text)?;
    }
}
