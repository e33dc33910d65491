//! The report as a page, as plots and on a terminal.

use assize_plan::{CompareOp, Hash, Judgement};
use assize_reader::page::render_html;
use assize_reader::plot::svg_files;
use assize_reader::report::{Exact, Report};
use assize_reader::study::analyze;
use assize_reader::text::render_text;
use assize_reader::verdict::{CellFigures, decide};
use assize_reader::verify::{Demands, SealState, WorldFailure};
use assize_units::Ratio;
use base64::Engine as _;
use sha2::{Digest as _, Sha256};

use crate::builder::{Act, Study};
use crate::{USUAL, judged, usual};

fn one_fails(arm: &str, block: u32, cell: &str, req: u32) -> Act {
    match (arm, block, cell, req) {
        ("slow", 4, "open-near", 2) => Act::Disconnect,
        ("fast", 1, "closed-2", 0) => Act::Busy,
        _ => usual(arm, block, cell, req),
    }
}

const FAILED: Study = Study {
    act: one_fails,
    ..USUAL
};

const KILLED: Study = Study {
    killed_in_unit: Some(5),
    ..USUAL
};

fn report(study: &Study) -> Report {
    Report::new(&judged(study))
}

fn all() -> [Report; 3] {
    [&USUAL, &FAILED, &KILLED].map(report)
}

/// What an evidence folder of ill will could say wherever it says anything.
pub const HOSTILE: &str = "<script>alert(1)</script>\"'&amp;</style><!--\u{1b}[2J\u{1b}]0;x\u{7}\r\n\u{9b}31m\u{202e}\u{0}]]>";

fn hostile() -> Report {
    let mut report = report(&KILLED);
    let put = |text: &mut String| HOSTILE.clone_into(text);
    put(&mut report.study);
    for text in [&mut report.question, &mut report.scope] {
        *text = Some(HOSTILE.to_owned());
    }
    report.words.push(HOSTILE.to_owned());
    put(&mut report.instrument.words);
    report.instrument.doubts.push(HOSTILE.to_owned());
    let evidence = &mut report.evidence;
    for gap in &mut evidence.gaps {
        put(&mut gap.place);
        put(&mut gap.what);
    }
    let run = &mut evidence.run;
    for text in [&mut run.run_id, &mut run.tool, &mut run.driver] {
        put(text);
    }
    put(&mut run.driver_why);
    put(&mut run.started);
    run.failures.push(failure());
    for arm in &mut report.arms {
        put(&mut arm.label);
        put(&mut arm.engine);
        arm.model = Some(HOSTILE.to_owned());
        arm.discloses = Some(HOSTILE.to_owned());
    }
    for unit in &mut report.units {
        put(&mut unit.set);
        put(&mut unit.path);
        unit.cells.iter_mut().for_each(put);
    }
    for row in &mut report.by_arm {
        put(&mut row.set);
        put(&mut row.label);
        row.cell.push_str(HOSTILE);
    }
    for family in &mut report.families {
        family.words.push(HOSTILE.to_owned());
        family.hypothesis_words.iter_mut().for_each(put);
        for instrument in &mut family.instrument {
            instrument.words = Some(HOSTILE.to_owned());
            instrument.flag = Some(HOSTILE.to_owned());
        }
        put(&mut family.verdict.name);
        family.verdict.discloses = Some(HOSTILE.to_owned());
        for hypothesis in &mut family.verdict.hypotheses {
            put(&mut hypothesis.text);
            hypothesis.reasons.iter_mut().for_each(put);
        }
    }
    report
}

fn failure() -> WorldFailure {
    let text = || HOSTILE.to_owned();
    WorldFailure {
        unit: None,
        code: text(),
        operation: text(),
        subject: text(),
        message: text(),
    }
}

/// Every element is closed in order, every `<` begins a tag and every `&` a known reference.
/// Gives the names of the elements.
pub fn well_formed(markup: &str) -> Vec<String> {
    let mut open: Vec<&str> = Vec::new();
    let mut names = Vec::new();
    let mut rest = markup;
    while let Some(at) = rest.find(['<', '&']) {
        if rest[at..].starts_with('&') {
            let end = rest[at..].find(';').expect("a reference ends") + at;
            let name = &rest[at + 1..end];
            assert!(
                ["lt", "gt", "amp", "quot", "apos"].contains(&name),
                "&{name};"
            );
            rest = &rest[end..];
            continue;
        }
        let end = tag_end(&rest[at..]) + at;
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if tag.eq_ignore_ascii_case("!doctype html") {
            continue;
        }
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "before {:.60}", rest);
            continue;
        }
        let name = tag.split([' ', '/', '\n']).next().unwrap();
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        assert!(!name.is_empty() && name.chars().all(plain), "<{tag}>");
        names.push(name.to_owned());
        if name == "style" {
            let (_, after) = rest.split_once("</style>").expect("the sheet ends");
            rest = after;
        } else if name != "meta" && !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?} stay open");
    names
}

/// The place of the `>` that ends a tag: not one within a quoted attribute.
fn tag_end(tag: &str) -> usize {
    let mut quoted = false;
    let end = tag.char_indices().find(|(_, c)| {
        quoted ^= *c == '"';
        *c == '>' && !quoted
    });
    end.expect("a tag ends").0
}

pub fn assert_harmless(text: &str) {
    let bad = text
        .chars()
        .find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
    assert_eq!(bad, None);
}

#[test]
fn a_page_is_well_formed_and_needs_nothing_else() {
    for report in all() {
        let page = render_html(&report);
        let names = well_formed(&page);
        for never in ["script", "link", "img", "iframe", "base", "object", "form"] {
            assert!(!names.iter().any(|name| name == never), "{never}");
        }
        for never in [
            "http:",
            "https:",
            "url(",
            "@import",
            "javascript:",
            " style=",
        ] {
            assert!(!page.contains(never), "{never}");
        }
        assert_eq!(names.iter().filter(|name| *name == "h1").count(), 1);
    }
}

#[test]
fn the_policy_names_the_one_style_sheet() {
    let page = render_html(&report(&USUAL));
    let (_, rest) = page.split_once("<style>").unwrap();
    let (sheet, _) = rest.split_once("</style>").unwrap();
    let hash = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(sheet));
    let policy = format!("default-src 'none'; style-src 'sha256-{hash}';");
    assert!(page.contains(&policy), "the sheet's hash is {hash}");
}

#[test]
fn a_page_shows_every_verdict_and_every_sentence() {
    for report in all() {
        let page = render_html(&report);
        let shows = |text: &str| {
            let text = maud_escaped(text);
            assert!(page.contains(&text), "{text}");
        };
        shows(report.question.as_ref().unwrap());
        shows(&report.plan.to_string());
        shows(&report.evidence.seal_words);
        report.words.iter().for_each(|words| shows(words));
        for gap in &report.evidence.gaps {
            shows(&gap.place);
            shows(&gap.what);
        }
        for family in &report.families {
            family.words.iter().for_each(|words| shows(words));
            family
                .hypothesis_words
                .iter()
                .for_each(|words| shows(words));
            for hypothesis in &family.verdict.hypotheses {
                shows(&hypothesis.text);
                let badge = format!("<p class=\"badge\">{}</p>", hypothesis.verdict.words());
                assert!(page.contains(&badge), "{badge}");
            }
            for breach in &family.verdict.breaches {
                shows(&breach.found);
            }
        }
        for failed in report.cells.iter().flat_map(|cell| &cell.failed_requests) {
            shows(&failed.id);
        }
        let plots = page
            .matches("<svg class=\"plot\" role=\"img\" viewBox=")
            .count();
        assert_eq!(plots, svg_files(&report).len());
    }
}

fn maud_escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[test]
fn the_same_report_gives_the_same_bytes() {
    let (one, other) = (report(&FAILED), report(&FAILED));
    assert_eq!(render_html(&one), render_html(&other));
    assert_eq!(svg_files(&one), svg_files(&other));
    assert_eq!(render_text(&one, 80, true), render_text(&other, 80, true));
}

#[test]
fn an_arm_that_nobody_verified_is_named_before_any_figure() {
    let mut report = report(&USUAL);
    let words = "NOT VERIFIED: whoever answered for ";
    assert!(!render_html(&report).contains("NOT VERIFIED"));
    assert!(!render_text(&report, 200, false).contains("NOT VERIFIED"));
    report.arms[1].unverified = true;
    let words = format!("{words}{}, any certificate was taken", report.arms[1].label);
    for text in [render_html(&report), render_text(&report, 200, false)] {
        let place = text.find(&words).expect("it is said");
        assert!(!text[..place].contains("Verdicts"), "before the verdicts");
    }
    assert_eq!(render_html(&report).matches("NOT VERIFIED").count(), 2);
}

#[test]
fn hostile_text_stays_text_on_the_page() {
    let page = render_html(&hostile());
    assert_harmless(&page);
    let names = well_formed(&page);
    assert!(!names.iter().any(|name| name == "script"));
    assert_eq!(page.matches("<style>").count(), 1);
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
}

#[test]
fn hostile_text_stays_text_on_a_terminal() {
    let report = hostile();
    assert_harmless(&render_text(&report, 80, false));
    // With colours, the only escape sequences are those that set them.
    let coloured = render_text(&report, 80, true);
    assert!(coloured.contains('\u{1b}'));
    let ours = [
        "\u{1b}[0m",
        "\u{1b}[1m",
        "\u{1b}[2m",
        "\u{1b}[1;32m",
        "\u{1b}[1;33m",
    ];
    let bare = ours
        .iter()
        .fold(coloured, |text, code| text.replace(code, ""));
    assert_harmless(&bare);
    assert_eq!(bare, render_text(&report, 80, false));
}

#[test]
fn plots_stand_alone() {
    for report in all().into_iter().chain([hostile()]) {
        for file in svg_files(&report) {
            assert_harmless(&file.svg);
            let names = well_formed(&file.svg);
            assert_eq!(names[..3], ["svg", "title", "desc"], "{}", file.name);
            assert_eq!(file.svg.matches("http").count(), 1, "the namespace alone");
            assert!(file.svg.contains(" viewBox=\"0 0 1440 "));
            let plain = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
            assert!(file.name.chars().all(plain), "{}", file.name);
        }
    }
}

#[test]
fn a_plot_tells_its_figures_in_words() {
    let files = svg_files(&report(&FAILED));
    let described = |name: &str| {
        let file = files.iter().find(|file| file.name == name).unwrap();
        let (_, rest) = file.svg.split_once("<desc>").unwrap();
        rest.split_once("</desc>").unwrap().0.to_owned()
    };
    insta::assert_snapshot!(described("effects-1-2.svg"));
    insta::assert_snapshot!(described("cell-2-e2e-from-intended-p95.svg"));
}

/// Of the killed run, block 2 has its effect in closed-2: both arms ran that cell to its end.
#[test]
fn a_plot_has_a_dot_for_each_block() {
    for (report, dots, missing) in [(report(&USUAL), 6, 0), (report(&KILLED), 3, 3)] {
        let files = svg_files(&report);
        let plot = &files
            .iter()
            .find(|file| file.name == "effects-1-1.svg")
            .unwrap()
            .svg;
        assert_eq!(plot.matches("<circle").count(), dots);
        assert_eq!(plot.matches("missing\n").count(), missing);
    }
}

#[test]
fn a_terminal_of_80_columns() {
    let text = render_text(&report(&FAILED), 80, false);
    assert!(text.lines().all(|line| line.chars().count() <= 80));
    insta::assert_snapshot!(text);
}

#[test]
fn a_terminal_of_140_columns() {
    let text = render_text(&report(&USUAL), 140, false);
    assert!(text.lines().all(|line| line.chars().count() <= 140));
    insta::assert_snapshot!(text);
}

#[test]
fn a_killed_run_on_a_terminal() {
    insta::assert_snapshot!(render_text(&report(&KILLED), 80, false));
}

#[test]
fn any_width_is_kept() {
    let report = hostile();
    for width in [0, 40, 41, 60, 99, 250] {
        let text = render_text(&report, width, false);
        let widest = text
            .lines()
            .map(unicode_width::UnicodeWidthStr::width)
            .max();
        assert!(widest.unwrap() <= width.max(40), "{width}: {widest:?}");
    }
}

/// A rule about the candidate's own value shows values, their unit and its bound: no effect.
#[test]
fn a_value_that_holds_is_shown_in_its_unit() {
    let (mut plan, _) = USUAL.plan();
    let hypothesis = &mut plan.rules[0].hypotheses[1];
    hypothesis.control = None;
    hypothesis.judgement = Judgement::Holds {
        op: CompareOp::Le,
        value: Ratio::new(8, 1_000).unwrap(),
    };
    let mut analysis = judged(&USUAL);
    let measure = hypothesis.measure.clone();
    let cells: Vec<CellFigures> = (0..12)
        .map(|unit| CellFigures {
            unit,
            cell: "open-near".to_owned(),
            figures: vec![(measure.clone(), Ok(Ratio::new(7_012, 1_000_000).unwrap()))],
        })
        .collect();
    analysis.families = decide(&plan, &analysis.verified.units, &cells).unwrap();
    analysis.verified.plan = plan;
    let report = Report::new(&analysis);
    let page = render_html(&report);
    assert!(page.contains("<dt>median value</dt><dd>7.01 ms</dd>"));
    let plot = &svg_files(&report)[1].svg;
    assert!(plot.contains("bound 0.008 s") && plot.contains("value by block, s"));
    assert!(!plot.contains("effect"));
    assert!(render_text(&report, 80, false).contains("median value 7.01 ms"));
}

/// By hand: block b's first token comes 5 ms + b · 10 µs after the send, which is 3 µs after the
/// intended instant. Six blocks: the median is the mean of blocks 2 and 3.
#[test]
fn medians_are_over_blocks() {
    let report = report(&USUAL);
    let row = report
        .by_arm
        .iter()
        .find(|row| row.cell == "open-near" && row.arm == "fast")
        .unwrap();
    let from = Some(assize_reader::metrics::Origin::Intended);
    let ttft = row.figure("ttft", from, Some("p95")).unwrap();
    assert_eq!(ttft.blocks.len(), 6);
    assert_eq!(ttft.blocks[5].value, Exact(Ratio::whole(5_053_000)));
    assert_eq!(ttft.median, Some(Exact(Ratio::whole(5_028_000))));
    assert_eq!((row.counts.offered, row.counts.valid), (24, 24));
    assert_eq!(row.tokens.output_tokens, Some(72));
}

#[test]
fn counts_of_a_killed_run_add_up_to_the_plan() {
    let report = report(&KILLED);
    for row in &report.by_arm {
        assert_eq!((row.blocks_planned, row.counts.planned), (6, 24));
        let ran = if row.arm == "fast" { 3 } else { 2 };
        assert_eq!(row.blocks_run, ran, "{} {}", row.arm, row.cell);
        let counts = &row.counts;
        assert_eq!(
            counts.offered,
            counts.valid + counts.failed + counts.missing
        );
        // Block 2 of slow was begun: its requests are offered, and enter no median.
        assert_eq!(counts.offered, 12);
        assert!(row.figures.iter().all(|figure| figure.blocks.len() == ran));
    }
}

#[test]
fn a_demanded_seal_is_said_to_be_so() {
    let store = USUAL.evidence();
    let found = Report::new(&analyze(&store, &Demands::default()).unwrap());
    let SealState::Consistent { seal } = found.evidence.seal else {
        panic!("it is sealed");
    };
    let demands = Demands { seal: Some(seal) };
    let confirmed = Report::new(&analyze(&store, &demands).unwrap());
    let command = |seal: Hash| format!("assize verify EVIDENCE --seal {}", seal.hex());
    assert!(render_html(&found).contains(&command(seal)));
    assert!(!render_html(&found).contains("as demanded"));
    assert!(render_html(&confirmed).contains("as demanded"));
    assert!(render_text(&confirmed, 80, false).contains("(as demanded)"));
}
