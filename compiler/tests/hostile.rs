//! Studies and panels that are odd, endless or hostile: each ends in one error with its place and a
//! way out, never in another meaning, and never without end.

mod support;

use std::fmt::Write as _;

use assize_compiler::compile;
use support::{compiled, output, world};

const BASE: &str = "\
assize: 1
study: pair
seed: 7
prompts:
  mine: { file: prompts.jsonl }
requests:
  ask: { api: openai/chat, prompt: mine, output: at_most(128) }
arms:
  old: { endpoint: http://127.0.0.1:8000/v1, model: small }
let:
  near: 3/s
cells:
  near:
    load: poisson(near)
    requests: 64
";

fn edited(from: &str, to: &str) -> String {
    assert!(BASE.contains(from), "{from}");
    BASE.replacen(from, to, 1)
}

/// The errors of a study: code, place, headline and the first way out.
fn errors(text: &str) -> Vec<String> {
    let found = compiled(text);
    let list = found.diagnostics.sorted();
    list.iter()
        .map(|found_one| {
            let span = found_one.primary.span;
            let source = found.sources.get(span.source).expect("a source");
            let at = source.position(span.start as usize);
            let help = found_one.help.first().map_or("", |help| &help.text);
            format!(
                "{}@{}:{} {} [{help}]",
                found_one.code, at.line, at.column, found_one.message
            )
        })
        .collect()
}

fn only(text: &str) -> String {
    let mut list = errors(text);
    assert_eq!(list.len(), 1, "{list:#?}");
    list.remove(0)
}

#[test]
fn the_base_has_no_errors() {
    assert_eq!(errors(BASE), Vec::<String>::new());
    assert_eq!(
        output(&BASE.replace('\n', "\r\n")).plan,
        output(BASE).plan,
        "both ends of a line mean the same"
    );
}

#[test]
fn scalars_that_readers_of_yaml_disagree_on() {
    let written = [
        "1:30",
        "1:30:00",
        "00:10",
        "2026-11-30",
        "６4",
        "6\u{a0}4",
        "64\u{200b}",
        "٣",
        "\"64\\n\"",
        "\"64\\e[31m\"",
        "{64}",
        "{a: 64}",
    ];
    let mut shown = String::new();
    for value in written {
        let text = edited("requests: 64", &format!("requests: {value}"));
        let _ = writeln!(shown, "{}", only(&text));
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn durations_are_whole_nanoseconds_and_units_keep_their_case() {
    let written = [
        "0.5ns",
        "1.5ns",
        "10s / 3",
        "10MS",
        "10Ms",
        "10S",
        "10\u{a0}ms",
        "0:10",
    ];
    let mut shown = String::new();
    for value in written {
        let text = edited("seed: 7\n", &format!("seed: 7\nsettle: {value}\n"));
        let _ = writeln!(shown, "{}", only(&text));
    }
    insta::assert_snapshot!(shown);
    let rounded = edited("seed: 7\n", "seed: 7\nsettle: floor_to(10s / 3, 1ns)\n");
    assert_eq!(errors(&rounded), Vec::<String>::new());
}

#[test]
fn no_load_is_finer_than_the_clock() {
    let mut shown = String::new();
    for load in [
        "poisson(1000000001/s)",
        "poisson(999999999999999999999999999999999999/s)",
        "every(0.1ns)",
    ] {
        let _ = writeln!(shown, "{}", only(&edited("poisson(near)", load)));
    }
    insta::assert_snapshot!(shown);
    for load in ["poisson(1000000000/s)", "every(1ns)"] {
        assert_eq!(
            errors(&edited("poisson(near)", load)),
            Vec::<String>::new(),
            "{load}"
        );
    }
}

#[test]
fn lines_and_marks() {
    let cases = [
        // Most editors show a comment here, YAML ends it at the carriage return.
        edited("seed: 7\n", "seed: 7\n# note\r!!str settle: 9s\n"),
        BASE.replace('\n', "\r"),
        edited("seed: 7\n", "seed: 7\r\r\n"),
        edited("  mine", "\u{a0} mine"),
        edited("  mine", "\u{2028} mine"),
        edited("seed: 7", "seed:\u{a0}7"),
        edited("seed: 7", "seed:7"),
        edited("seed: 7\n", "seed: 7\nquestion\n"),
        edited("seed: 7\n", "seed: 7\n: 8\n"),
        edited("seed: 7\n", "seed: 7\n\"a\\e[31m\": 8\n").replace("settle", "x"),
        edited("seed: 7\n", "seed: 7\nquestion: 'it's'\n"),
        edited("seed: 7\n", "seed: 7\nquestion: - a\n"),
        edited("seed: 7\n", "seed: 7\nquestion: | a\n  b\n"),
        format!("%YAML 1.1\n---\n{BASE}"),
        format!("%TAG ! tag:example.com,2000:\n---\n{BASE}"),
    ];
    let mut shown = String::new();
    for text in &cases {
        let error = only(text);
        let cut = error.find(" [its keys are").unwrap_or(error.len());
        let _ = writeln!(shown, "{}", &error[..cut]);
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn what_is_endless_ends_in_one_error() {
    let chain = |names: usize, first: &str| {
        (1..names).fold(format!("  near: 3/s\n  a0: {first}\n"), |text, at| {
            text + &format!("  a{at}: a{}\n", at - 1)
        })
    };
    let likes = (1..300).fold(
        "arms:\n  x0: { abstract: true, label: q }\n".to_owned(),
        |text, at| text + &format!("  x{at}: {{ abstract: true, like: x{} }}\n", at - 1),
    );
    let functions = (1..60).fold("  near: 3/s\n  f0(x rate): x\n".to_owned(), |text, at| {
        text + &format!("  f{at}(x rate): f{}(x) + f{}(x)\n", at - 1, at - 1)
    });
    let nested = format!("{}near{}", "min(".repeat(60), ")".repeat(60));
    let deep = (1..30).fold(format!("  near: 3/s\n  d0: {nested}\n"), |text, at| {
        text + &format!(
            "  d{at}: {}\n",
            nested.replace("near", &format!("d{}", at - 1))
        )
    });
    let cases = [
        edited(
            "poisson(near)",
            &format!("poisson({}near)", "near + ".repeat(5_000)),
        ),
        edited(
            "poisson(near)",
            &format!("poisson({}near)", "1 * ".repeat(100_000)),
        ),
        edited(
            "seed: 7\n",
            &format!("seed: 7\nsettle: {}s\n", "9".repeat(100_000)),
        ),
        edited("arms:\n", &likes),
        edited("  near: 3/s\n", &functions).replace("poisson(near)", "poisson(f59(near))"),
        edited("  near: 3/s\n", &chain(300, "a299")).replace("poisson(near)", "poisson(a299)"),
        edited("  near: 3/s\n", &deep).replace("poisson(near)", "poisson(d29)"),
        format!("{BASE}question: {}\n", "[".repeat(50_000)),
    ];
    let mut shown = String::new();
    for text in &cases {
        let error = only(text);
        let (start, end) = error.split_at(error.floor_char_boundary(90));
        let _ = writeln!(shown, "{start}{}", if end.is_empty() { "" } else { "…" });
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn rows_of_a_panel() {
    let row = "{\"prompt\": \"a\"}";
    let panel = |rows: &str| {
        let found = compile(
            "study.yaml",
            &world()
                .with_file("prompts.jsonl", rows)
                .with_file("study.yaml", BASE),
        );
        let list = found.diagnostics.sorted();
        list.iter()
            .map(|one| one.message.clone())
            .collect::<Vec<_>>()
            .join(" ;; ")
    };
    let broken = [
        "",
        "  ",
        "[\"a\", null, null]",
        "{\"messages\": [[\"user\", \"a\"]]}",
        "{\"prompt\": null}",
        "{\"prompt\": null, \"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}",
        "{\"prompt\": \"a\", \"prompt\": \"b\"}",
        "{\"prompt\": \"\\ud800\"}",
        "{\"prompt\": \"a\0\"}",
        "{\"prompt\": 3}",
        "{\"prompt\": \"a\", \"id\": 3}",
        "{\"prompt_token_ids\": [1.0]}",
        "null",
    ];
    let mut shown = String::new();
    for rest in broken {
        let _ = writeln!(shown, "{}", panel(&format!("{row}\n{rest}\n")));
    }
    insta::assert_snapshot!(shown);
    for whole in [
        row.to_owned(),
        format!("\u{feff}{row}\r\n{row}\r\n"),
        format!("{row}\n{{\"prompt\": \"\\ud83d\\ude00 \\u0000\"}}"),
    ] {
        assert_eq!(panel(&whole), "", "{whole:?}");
    }
}
