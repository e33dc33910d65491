//! `docs/language.md` is held against the code: its keys, what it says is missing, its examples.

use assize_study::diagnostic::{Diagnostics, render_human};
use assize_study::lower::{Shape, UNSUPPORTED, parse_document};
use assize_study::source::{Source, Sources};

const REFERENCE: &str = include_str!("../../../docs/language.md");

/// Whether a word stands in code marks, alone or among others.
fn names(text: &str, word: &str) -> bool {
    text.split('`').skip(1).step_by(2).any(|code| {
        code.split([' ', ':', '{', '}', ','])
            .any(|part| part == word)
    })
}

#[test]
fn every_key_that_this_build_takes_is_in_the_reference() {
    for shape in [
        Shape::Study,
        Shape::Module,
        Shape::Limits,
        Shape::Prompts,
        Shape::Request,
        Shape::Arm,
        Shape::Cell,
        Shape::Warmup,
        Shape::Blocks,
        Shape::Compare,
        Shape::Decision,
        Shape::Engine,
        Shape::EngineOutput,
        Shape::Server,
        Shape::Ready,
        Shape::Stop,
        Shape::Sim,
    ] {
        for key in shape.keys() {
            assert!(names(REFERENCE, key), "`{key}` of {}", shape.describe());
        }
    }
}

#[test]
fn what_is_missing_is_said() {
    let (_, missing) = REFERENCE
        .split_once("## Not in this version")
        .expect("the section");
    for line in UNSUPPORTED {
        assert!(names(missing, line.word), "`{}`", line.word);
        assert!(!line.advice.is_empty());
    }
}

#[test]
fn the_examples_read_without_a_diagnostic() {
    let examples: Vec<&str> = REFERENCE
        .split("```yaml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert!(!examples.is_empty());
    for example in examples {
        let mut sources = Sources::new();
        let id = sources.add(Source::new("docs/language.md", example));
        let mut diagnostics = Diagnostics::new();
        let source = sources.get(id).expect("just added");
        parse_document(source, id, &mut diagnostics);
        let shown = render_human(&diagnostics, &sources, false);
        assert!(diagnostics.is_empty(), "{shown}");
    }
}
