//! The vectors of docs/plan-format.md, computed and looked up in the page.

use assize_compiler::design::counterbalanced;
use assize_compiler::draw::{Process, Purpose, Span, Stage, Stream, arrivals, neg_ln_q64};
use assize_units::Ratio;

const PAGE: &str = include_str!("../../docs/plan-format.md");

fn ratio(num: i128, den: i128) -> Ratio {
    Ratio::new(num, den).unwrap()
}

/// The line of the page that begins with `start` says `end`.
fn page_says(start: &str, end: &str) {
    let found = PAGE
        .lines()
        .any(|line| line.contains(start) && line.contains(end));
    assert!(found, "no line has both {start:?} and {end:?}");
}

fn joined<T: ToString>(items: &[T], by: &str) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(by)
}

#[test]
fn streams() {
    let mut stream = Stream::new(Purpose::Arrivals, 7, "near", 0);
    let words: Vec<String> = (0..3)
        .map(|_| format!("`{:016x}`", stream.next_u64()))
        .collect();
    page_says("| `arrivals` 7 `near` 0 |", &words.join(" "));
    let mut stream = Stream::new(Purpose::Synthetic, 7, "drawn", 0);
    let below: Vec<u64> = (0..6).map(|_| stream.below(1000)).collect();
    page_says(
        "`synthetic` 7 `drawn` 0 below 1000: ",
        &joined(&below, ", "),
    );
    for (n, word) in [(2, "two"), (3, "three")] {
        let mut items: Vec<u32> = (0..n).collect();
        Stream::new(Purpose::ArmOrder, 7, "", 0).shuffle(&mut items);
        page_says(
            "`arm-order` 7 (no cell) 0",
            &format!("of {word} {}", joined(&items, " ")),
        );
    }
}

#[test]
fn exponentials() {
    for (name, word) in [
        ("0", 0),
        ("1", 1),
        ("2^63 − 1", (1 << 63) - 1),
        ("12345678901234567890", 12_345_678_901_234_567_890),
        ("2^64 − 2", u64::MAX - 1),
        ("2^64 − 1", u64::MAX),
    ] {
        page_says(&format!("| {name} |"), &format!("| {} |", neg_ln_q64(word)));
    }
}

#[test]
fn offsets() {
    let requests = |process, count| {
        vec![Stage {
            process,
            span: Span::Requests(count),
        }]
    };
    let poisson = |num, den| Process::Poisson {
        rate: ratio(num, den),
    };
    let gamma = Process::Gamma {
        rate: ratio(10, 1),
        shape: 4,
    };
    let stages = vec![
        Stage {
            process: poisson(2, 1),
            span: Span::Seconds(ratio(2, 1)),
        },
        Stage {
            process: Process::Every { gap: ratio(1, 4) },
            span: Span::Seconds(ratio(1, 2)),
        },
    ];
    for (load, cell, seed, stages) in [
        ("poisson(14.9/s)", "near", 7, requests(poisson(149, 10), 4)),
        ("gamma(10/s, cv = 0.5)", "near", 7, requests(gamma, 3)),
        ("then every(250ms)", "near", 7, stages),
        (
            "poisson(4/s)",
            "sweep(4/s)",
            2_026_101_800,
            requests(poisson(4, 1), 3),
        ),
    ] {
        let drawn: Vec<u64> = arrivals(&stages, seed, cell, 0)
            .unwrap()
            .iter()
            .map(|o| o.0)
            .collect();
        page_says(load, &format!("| {} |", joined(&drawn, ", ")));
    }
}

#[test]
fn orders() {
    for n in [2, 3] {
        let turns: Vec<usize> = (0..6).map(|block| block % 2).collect();
        let rows: Vec<String> = counterbalanced(n, &turns)
            .iter()
            .map(|row| joined(row, " "))
            .collect();
        page_says(&format!("| {n} |"), &rows.join(" · "));
    }
}
