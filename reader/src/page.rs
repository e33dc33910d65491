//! The report as one HTML page that needs nothing else: no script, no file, no address.
//!
//! Markup is by maud, which escapes every text; a character that a browser would obey in some
//! other way is replaced once, over the whole page. The page shows the data of a [`Report`] and
//! the sentences that come with it; it computes nothing and says nothing of its own but names of
//! things.

mod cells;
mod design;
mod evidence;
mod verdicts;

use assize_plan::Hash;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::plot::{PALETTE_CSS, PLOT_CSS};
use crate::report::Report;
use crate::shown::{self, visible_lines};
use crate::verify::SealState;

const PAGE_CSS: &str = include_str!("page/page.css");

/// What the page may load: its own style sheet, named by its hash, and nothing else.
///
/// The hash is of the style sheet; a test says which it is when the sheet has changed.
const POLICY: &str = "default-src 'none'; \
    style-src 'sha256-+jyCchnOuD1yOU7PyQYAy3q5bmbDS0hmUWPK/NbAuOY='; \
    img-src data:; base-uri 'none'; form-action 'none'";

/// The page. The same report gives the same bytes.
pub fn render_html(report: &Report) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (report.study) " \u{b7} Assize report" }
                style { (PreEscaped(style())) }
            }
            body {
                main {
                    (head(report))
                    (verdicts::verdicts(report))
                    (verdicts::effects(report))
                    (cells::cells(report))
                    (cells::counts(report))
                    (design::design(report))
                    (words(report))
                    (evidence::evidence(report))
                }
                footer { p { (report.format) ", made by reader " (report.reader) } }
            }
        }
    };
    visible_lines(&page.into_string())
}

fn style() -> String {
    format!("{PALETTE_CSS}{PLOT_CSS}{PAGE_CSS}")
}

fn head(report: &Report) -> Markup {
    html! {
        header.top {
            p.kicker { "Assize report" }
            h1 { (report.study) }
            @if let Some(question) = &report.question {
                figure.question {
                    blockquote { (question) }
                    figcaption { "the author\u{2019}s question" }
                }
            }
            (chips(report))
            nav {
                a href="#verdicts" { "Verdicts" }
                a href="#effects" { "Effects" }
                a href="#cells" { "Cells" }
                a href="#counts" { "Counts and failures" }
                a href="#design" { "Design" }
                a href="#words" { "Words" }
                a href="#evidence" { "Evidence" }
            }
        }
    }
}

/// What a reader must know before any figure.
fn chips(report: &Report) -> Markup {
    let evidence = &report.evidence;
    let (seal, is_sealed) = match evidence.seal {
        SealState::Confirmed { seal } => (format!("sealed, as demanded: {}", short(seal)), true),
        SealState::Consistent { seal } => (format!("sealed: {}", short(seal)), true),
        SealState::Unsealed => ("not sealed".to_owned(), false),
    };
    let held = |is: bool| if is { "hold" } else { "do not hold" };
    html! {
        ul.chips {
            @if evidence.complete {
                li.good { "complete" }
            } @else {
                li.halt { a href="#gaps" { "incomplete" } }
            }
            @if let Some(text) = shown::unverified(report) {
                li.halt { (text) }
            }
            li { "plan: " (short(report.plan)) }
            li.good[is_sealed].halt[!is_sealed] { (seal) }
            @if let Some(met) = expectation(report) {
                li.good[met].halt[!met] {
                    "expectation " @if met { "met" } @else { "not met" }
                }
            }
            li { "files " (held(evidence.has_prompts)) " prompts" }
            li { "files " (held(evidence.has_outputs)) " outputs" }
        }
    }
}

/// As much of a hash as tells two apart at a glance.
fn short(hash: Hash) -> String {
    hash.hex().chars().take(8).collect()
}

/// Whether everything that the study expects of its families came out.
fn expectation(report: &Report) -> Option<bool> {
    let each = report.families.iter();
    each.filter_map(|family| family.verdict.expectation_met)
        .reduce(|all, one| all && one)
}

fn words(report: &Report) -> Markup {
    html! {
        section #words {
            h2 { "Words" }
            p.note { "Generated from the rules that hold for this study." }
            ul.words { @for sentence in &report.words { li { (sentence) } } }
            @for family in &report.families {
                h3 { "Family " b { (family.verdict.name) } }
                ul.words { @for sentence in &family.words { li { (sentence) } } }
            }
            @if let Some(scope) = &report.scope {
                h3 { "Scope" }
                (authors(scope))
            }
            @for family in &report.families {
                @if let Some(discloses) = &family.verdict.discloses {
                    h3 { "What the author discloses of " b { (family.verdict.name) } }
                    (authors(discloses))
                }
            }
        }
    }
}

/// Words that the study's author wrote, marked as such.
fn authors(text: &str) -> Markup {
    html! {
        figure.author {
            blockquote { (text) }
            figcaption { "the author\u{2019}s words" }
        }
    }
}

/// A table that scrolls by itself where it is wider than the screen.
fn wide(table: Markup) -> Markup {
    html! { div.wide tabindex="0" { (table) } }
}
