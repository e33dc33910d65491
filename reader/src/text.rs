//! The report on a terminal: the verdicts first, then figures, what is missing, and the seal.

mod lines;
mod table;

use crate::plot;
use crate::report::{ArmCell, FamilyReport, InstrumentError, LoadFacts, Marks, Report};
use crate::shown;
use crate::verdict::{HypothesisVerdict, Verdict};
use crate::verify::SealState;

use lines::{Line, Paper, Tone};
use table::{Table, beside};

/// Breaches and failures that are listed of each kind; the rest is counted.
const LISTED: usize = 20;

/// Paragraphs are never wider: long lines are hard to read.
const PARAGRAPH: usize = 100;

/// Columns of two figures with blanks around the stroke between them.
const PAIR: usize = 16;

/// The narrowest terminal that is written for.
const NARROWEST: usize = 40;

/// The report as text of at most `width` columns, at least 40. Colours are ANSI, only where
/// `colour` is set; foreign text never reaches the terminal as a control character.
pub fn render_text(report: &Report, width: usize, colour: bool) -> String {
    let mut paper = Paper::new(width.max(NARROWEST), colour);
    head(&mut paper, report);
    for family in &report.families {
        verdicts(&mut paper, report, family);
    }
    instrument(&mut paper, report);
    missing(&mut paper, report);
    figures(&mut paper, report);
    failures(&mut paper, report);
    words(&mut paper, report);
    evidence(&mut paper, report);
    paper.finish()
}

fn head(paper: &mut Paper, report: &Report) {
    paper.line(Line::of(&report.study, Tone::Strong));
    if let Some(question) = &report.question {
        let text = format!("\u{201c}{question}\u{201d} (the author\u{2019}s question)");
        paper.paragraph("", &text, Tone::Plain, PARAGRAPH);
    }
    if let Some(text) = shown::unverified(report) {
        paper.paragraph("", &text, Tone::Halt, PARAGRAPH);
    }
}

fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Supported => Tone::Good,
        Verdict::Blocked => Tone::Halt,
        Verdict::NotSupported => Tone::Strong,
        Verdict::NotEvaluated => Tone::Quiet,
    }
}

fn verdicts(paper: &mut Paper, report: &Report, family: &FamilyReport) {
    let verdict = &family.verdict;
    paper.gap();
    let level = shown::value(verdict.level.0, assize_plan::ValueUnit::Share);
    let correction = if verdict.holm { "Holm" } else { "uncorrected" };
    paper.line(
        Line::of("Verdicts, ", Tone::Strong)
            .and(&verdict.name, Tone::Strong)
            .and(&format!(" ({correction}, {level})"), Tone::Quiet),
    );
    let beside = family.marks.iter().zip(&family.instrument);
    for (hypothesis, (marks, instrument)) in verdict.hypotheses.iter().zip(beside) {
        let badge = hypothesis.verdict.words();
        paper.line(Line::of("  ", Tone::Plain).and(badge, tone(hypothesis.verdict)));
        paper.paragraph("    ", &hypothesis.text, Tone::Plain, PARAGRAPH);
        let facts = facts(hypothesis, marks, instrument, verdict.holm);
        paper.paragraph("    ", &facts, Tone::Plain, PARAGRAPH);
        for (words, tone) in [
            (&instrument.words, Tone::Quiet),
            (&instrument.flag, Tone::Halt),
        ] {
            if let Some(words) = words {
                paper.paragraph("    ", words, tone, PARAGRAPH);
            }
        }
        if !hypothesis.reasons.is_empty() {
            let reasons = hypothesis.reasons.join("; ");
            paper.paragraph("    ", &reasons, Tone::Plain, PARAGRAPH);
        }
    }
    if let Some(met) = verdict.expectation_met {
        let (text, tone) = if met {
            ("  expectation met", Tone::Good)
        } else {
            ("  expectation not met", Tone::Halt)
        };
        paper.line(Line::of(text, tone));
    }
    for breach in verdict.breaches.iter().take(LISTED) {
        let text = format!(
            "validity: {} in {} {}, {}, {}: {}",
            breach.text,
            breach.set,
            breach.block,
            shown::label(report, &breach.arm),
            breach.cell,
            breach.found
        );
        paper.paragraph("  ", &text, Tone::Halt, PARAGRAPH);
    }
    let more = verdict.breaches.len().saturating_sub(LISTED);
    if more > 0 {
        paper.line(Line::of(&format!("  {more} more breaches"), Tone::Halt));
    }
}

/// A hypothesis' figures in one line.
fn facts(
    hypothesis: &HypothesisVerdict,
    marks: &Marks,
    instrument: &InstrumentError,
    holm: bool,
) -> String {
    let show = |value| shown::found(marks, value);
    let mut parts = Vec::new();
    let kind = if marks.is_effect { "effect" } else { "value" };
    if let Some(median) = hypothesis.median {
        parts.push(format!("median {kind} {}", show(median.0)));
    }
    if let Some(difference) = instrument.difference {
        let difference = shown::difference(difference.0, instrument.unit);
        parts.push(format!("median difference {difference}"));
    }
    if let Some(range) = &hypothesis.interval {
        let (lower, upper) = (show(range.lower.0), show(range.upper.0));
        parts.push(format!("interval {lower} to {upper}"));
    }
    let mut won = format!("won {} of {}", hypothesis.wins, hypothesis.blocks.len());
    if hypothesis.ties > 0 {
        won.push_str(&format!(", tied {}", hypothesis.ties));
    }
    if hypothesis.missing > 0 {
        won.push_str(&format!(", missing {}", hypothesis.missing));
    }
    parts.push(won);
    if hypothesis.verdict != Verdict::NotEvaluated {
        let name = if holm { "adjusted p" } else { "p" };
        let p = shown::probability(&hypothesis.adjusted_p);
        parts.push(format!("{name} {p}"));
    }
    parts.join(" \u{b7} ")
}

/// Where the instrument's errors are from, or how to get them.
fn instrument(paper: &mut Paper, report: &Report) {
    if report.families.iter().all(|it| it.instrument.is_empty()) {
        return;
    }
    let facts = &report.instrument;
    paper.gap();
    paper.paragraph("", &facts.words, Tone::Quiet, PARAGRAPH);
    for doubt in &facts.doubts {
        paper.paragraph("", doubt, Tone::Halt, PARAGRAPH);
    }
}

fn missing(paper: &mut Paper, report: &Report) {
    let evidence = &report.evidence;
    if evidence.complete {
        return;
    }
    paper.gap();
    paper.line(Line::of("Incomplete", Tone::Halt));
    if evidence.seal == SealState::Unsealed {
        paper.paragraph("  ", &evidence.seal_words, Tone::Plain, PARAGRAPH);
    }
    for gap in evidence.gaps.iter().take(LISTED) {
        let text = format!("{}: {}", gap.place, gap.what);
        paper.paragraph("  ", &text, Tone::Plain, PARAGRAPH);
    }
    let more = evidence.gaps.len().saturating_sub(LISTED);
    if more > 0 {
        paper.line(Line::of(&format!("  {more} more gaps"), Tone::Halt));
    }
}

fn figures(paper: &mut Paper, report: &Report) {
    paper.gap();
    paper.line(Line::of("Figures", Tone::Strong).and(
        ", medians over the blocks that were run to their end",
        Tone::Quiet,
    ));
    let cells: Vec<Vec<Line>> = plot::cells(report)
        .into_iter()
        .flat_map(|rows| cell(rows, paper.width() - 2))
        .collect();
    for block in beside(cells, paper.width() - 2) {
        paper.gap();
        for line in block {
            paper.line(line.indented("  "));
        }
    }
}

/// A cell's table; several where its arms do not fit beside each other.
fn cell(rows: &[ArmCell], width: usize) -> Vec<Vec<Line>> {
    let Some(first) = rows.first() else {
        return Vec::new();
    };
    let most = Table::columns_within(width);
    rows.chunks(most)
        .map(|arms| {
            let load = match first.load {
                LoadFacts::Open { cap: None } => "open".to_owned(),
                LoadFacts::Open { cap: Some(cap) } => format!("open, cap {cap}"),
                LoadFacts::Closed { clients } => format!("closed, {clients} in flight"),
            };
            let excluded = if first.excluded { ", excluded" } else { "" };
            let about = format!("{}, {load}{excluded}", first.set);
            let title = Line::of(&first.cell, Tone::Strong).and(&format!("  {about}"), Tone::Quiet);
            let mut table = Table::new(title.cut(width), arms.iter().map(|row| row.label.as_str()));
            fill(&mut table, arms);
            table.lines()
        })
        .collect()
}

fn fill(table: &mut Table, arms: &[ArmCell]) {
    let each = |of: &dyn Fn(&ArmCell) -> String| arms.iter().map(of).collect::<Vec<_>>();
    table.row(
        "blocks run",
        each(&|row| format!("{} of {}", row.blocks_run, row.blocks_planned)),
    );
    for (name, title) in [
        ("throughput", "throughput"),
        ("output_throughput", "output tokens"),
    ] {
        table.row(
            title,
            each(&|row| shown::median(row.figure(name, None, None))),
        );
    }
    let origin = arms.first().map(|row| row.load.origin());
    for (name, from, stats) in origin.map(shown::rows).unwrap_or_default() {
        let shows = arms
            .iter()
            .any(|row| row.figure(name, from, Some(stats[0])).is_some());
        if !shows {
            continue;
        }
        let title = format!(
            "{} {}/{}",
            shown::latency_name(name, from),
            stats[0],
            stats[1]
        );
        let pair = |row: &ArmCell| {
            let figures = stats.map(|stat| row.figure(name, from, Some(stat)));
            let medians = shown::medians(figures);
            let roomy = medians.join(" / ");
            // Two units beside each other need the blanks' room.
            if roomy.chars().count() > PAIR {
                medians.join("/")
            } else {
                roomy
            }
        };
        table.row(&title, each(&pair));
    }
    let number = |value: usize| shown::count(value as u64);
    table.row("offered", each(&|row| number(row.counts.offered)));
    table.row("valid", each(&|row| number(row.counts.valid)));
    table.row("failed", each(&|row| number(row.counts.failed)));
    table.row("missing", each(&|row| number(row.counts.missing)));
    if arms.iter().any(|row| shown::not_begun(&row.counts) > 0) {
        table.row(
            "not begun",
            each(&|row| number(shown::not_begun(&row.counts))),
        );
    }
    let sources: Vec<String> = each(&|row| shown::tokens(&row.tokens).1);
    let agree = sources.windows(2).all(|pair| pair[0] == pair[1]);
    let title = match sources.first() {
        Some(from) if agree && !from.is_empty() => format!("tokens from {from}"),
        _ => "tokens".to_owned(),
    };
    table.row(&title, each(&|row| shown::tokens(&row.tokens).0));
    if !agree {
        table.row("tokens from", sources);
    }
    table.row(
        "token-bearing events",
        each(&|row| shown::count(row.events.token_bearing)),
    );
}

fn failures(paper: &mut Paper, report: &Report) {
    let all: Vec<_> = report
        .cells
        .iter()
        .flat_map(|cell| {
            cell.failed_requests
                .iter()
                .map(move |failed| (cell, failed))
        })
        .collect();
    let not_listed: usize = report.cells.iter().map(|cell| cell.failed_not_listed).sum();
    let world = &report.evidence.run.failures;
    if all.is_empty() && world.is_empty() {
        return;
    }
    paper.gap();
    paper.line(Line::of("Failures", Tone::Strong));
    for (cell, failed) in all.iter().take(LISTED) {
        let mut text = format!(
            "{} {}, {}, {}: {}: {}, {}",
            cell.set,
            cell.block,
            shown::label(report, &cell.arm),
            cell.cell,
            failed.id,
            failed.outcome.replace('_', " "),
            failed.phase.replace('_', " ")
        );
        if failed.stale_reuse_like {
            text.push_str(" (consistent with a stale keep-alive reuse)");
        }
        paper.paragraph("  ", &text, Tone::Plain, PARAGRAPH);
    }
    let more = all.len().saturating_sub(LISTED) + not_listed;
    if more > 0 {
        paper.line(Line::of(
            &format!("  {more} more failed requests"),
            Tone::Halt,
        ));
    }
    for failure in world.iter().take(LISTED) {
        let text = format!(
            "{}: {} {}: {}",
            failure.code, failure.operation, failure.subject, failure.message
        );
        paper.paragraph("  ", &text, Tone::Plain, PARAGRAPH);
    }
}

fn words(paper: &mut Paper, report: &Report) {
    paper.gap();
    paper.line(Line::of("Words", Tone::Strong));
    let of_families = report.families.iter().flat_map(|family| &family.words);
    let mut said: Vec<&String> = Vec::new();
    for sentence in of_families.chain(&report.words) {
        // Families of one rule say the same.
        if said.contains(&sentence) {
            continue;
        }
        said.push(sentence);
        paper.paragraph("  ", sentence, Tone::Plain, PARAGRAPH);
    }
}

fn evidence(paper: &mut Paper, report: &Report) {
    let evidence = &report.evidence;
    let held = |is: bool| if is { "yes" } else { "no" };
    paper.gap();
    paper.line(Line::of("Evidence", Tone::Strong));
    let rows = [
        ("plan", report.plan.to_string()),
        (
            "seal",
            match evidence.seal {
                SealState::Confirmed { seal } => format!("{seal} (as demanded)"),
                SealState::Consistent { seal } => seal.to_string(),
                SealState::Unsealed => "none".to_owned(),
            },
        ),
        (
            "replayed",
            format!("{} requests", shown::count(evidence.compared)),
        ),
        (
            "driver",
            format!("{} ({})", evidence.run.driver, evidence.run.driver_why),
        ),
        (
            "calibration",
            report
                .instrument
                .calibration
                .map_or_else(|| "none".to_owned(), |hash| hash.to_string()),
        ),
        (
            "files hold",
            format!(
                "prompts: {}, outputs: {}",
                held(evidence.has_prompts),
                held(evidence.has_outputs)
            ),
        ),
    ];
    for (name, value) in rows {
        paper.pair(name, 12, &value);
    }
    if evidence.seal != SealState::Unsealed {
        paper.paragraph("  ", &evidence.seal_words, Tone::Quiet, PARAGRAPH);
    }
}
