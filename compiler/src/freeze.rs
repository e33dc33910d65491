//! From a compiled study to the bundle that is frozen.

use std::fmt::Write as _;

use assize_plan::{
    Arm, ArmTarget, Bundle, Deeds, FREEZE_FORMAT, Freeze, GitState, Hash, ModuleText,
};
use assize_units::format_duration;

use crate::compile::Output;
use crate::preview::Preview;

/// What surrounds a freeze and decides nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circumstances {
    /// The tool and its version.
    pub tool: String,
    /// The study file's name, without folders.
    pub study_file: Option<String>,
    /// The git state of the study's folder, where it has one.
    pub git: Option<GitState>,
    /// Wall time, RFC 3339, UTC: a label.
    pub frozen_at: String,
}

/// The bundle of a compiled study.
pub fn bundle(output: &Output, circumstances: Circumstances) -> Bundle {
    let bytes = output
        .plan
        .to_canonical()
        .expect("the compiler's plans have no floats and no wide integers");
    let hash = Hash::of(&bytes);
    let mut objects = output.objects.clone();
    let mut keep = |text: &str| {
        let bytes = text.as_bytes().to_vec();
        let hash = Hash::of(&bytes);
        objects.insert(hash, bytes);
        hash
    };
    let study_text = keep(&output.study_text);
    let modules = output
        .modules
        .iter()
        .map(|(name, text)| ModuleText {
            name: name.clone(),
            text: keep(text),
        })
        .collect();
    let mut bundle = Bundle {
        plan: output.plan.clone(),
        hash,
        freeze: Freeze {
            format: FREEZE_FORMAT.to_owned(),
            plan: hash,
            tool: circumstances.tool,
            study_text: Some(study_text),
            study_file: circumstances.study_file,
            modules,
            git: circumstances.git,
            frozen_at: circumstances.frozen_at,
        },
        objects,
        readme: String::new(),
    };
    bundle.readme = readme(&bundle, &output.preview);
    bundle
}

/// The page for a person.
fn readme(bundle: &Bundle, preview: &Preview) -> String {
    let plan = &bundle.plan;
    let deeds = Deeds::of(bundle).expect("the compiler's bundles hold their servers");
    let mut out = String::new();
    let mut line = |text: &str| writeln!(out, "{text}").expect("a string takes all");
    line(&format!("Plan of the study `{}`", plan.study));
    line(&format!("SHA-256 of plan.json: {}", bundle.hash));
    line("");
    if let Some(question) = &plan.question {
        line(&format!("Question: {question}"));
        line("");
    }
    line(&format!(
        "{} units, {} requests; open schedules and settling take {}, and {} closed cells take what the server takes.",
        preview.units,
        preview.requests,
        format_duration(preview.scheduled),
        preview.closed_cells
    ));
    line("");
    for name in &deeds.unverified {
        line(&format!(
            "NOT VERIFIED: any certificate is taken of whoever answers for the arm {name}."
        ));
        line("");
    }
    line("What it does to the world");
    for (arm, (_, base)) in plan.arms.iter().zip(&deeds.addresses) {
        let starts = starts(arm, &deeds);
        line(&format!(
            "  arm {}: {starts}speaks to {}",
            arm.name,
            plain(base)
        ));
    }
    if !deeds.credentials.is_empty() {
        line(&format!(
            "  sends as credentials what these variables hold: {}",
            deeds.credentials.join(", ")
        ));
    }
    line("");
    line("Blocks");
    for set in &preview.sets {
        let excluded = if set.excluded {
            " (excluded: in no test, no validity)"
        } else {
            ""
        };
        line(&format!("  {}: {} blocks{excluded}", set.name, set.blocks));
        line(&format!("    arms: {}", set.arms.join(", ")));
        for (cell, requests) in &set.cells {
            line(&format!("    {cell}: {requests} requests"));
        }
    }
    line("");
    if plan.rules.is_empty() {
        line("Rules: none. The study describes and decides nothing.");
    } else {
        line("Rules");
    }
    for family in &plan.rules {
        line(&format!("  {}", family.name));
        for condition in &family.valid {
            line(&format!("    valid only if: {}", condition.text));
        }
        for hypothesis in preview
            .hypotheses
            .iter()
            .filter(|h| h.family == family.name)
        {
            line(&format!("    {}", hypothesis.text));
            line(&format!(
                "      {} blocks; supported from {} wins on; smallest p {}; chance of a false claim at most {}",
                hypothesis.blocks,
                hypothesis.wins_needed.best_case,
                hypothesis.smallest_p,
                hypothesis.false_positive
            ));
        }
    }
    line("");
    line("Check: `sha256sum -c SHA256SUMS`, and `sha256sum plan.json` against the hash above.");
    out
}

/// What an arm starts before it is spoken to.
fn starts(arm: &Arm, deeds: &Deeds) -> String {
    let Some(command) = deeds.commands.iter().find(|it| it.arm == arm.name) else {
        return match arm.target {
            ArmTarget::Server { .. } => "starts the simulated engine and ".to_owned(),
            ArmTarget::Endpoint { .. } => String::new(),
        };
    };
    let listed = |words: &[String], between: &str| {
        let words: Vec<String> = words.iter().map(|word| plain(word)).collect();
        words.join(between)
    };
    let argv = listed(&command.argv, " ");
    match command.environment.as_slice() {
        [] => format!("starts `{argv}` and "),
        names => format!(
            "starts `{argv}` with the variables {} and ",
            listed(names, ", ")
        ),
    }
}

/// A word as it is, or quoted where a reader could take it for more or less than one.
fn plain(word: &str) -> String {
    let clear = |c: char| c.is_ascii_graphic() && !"`'\"\\".contains(c);
    if !word.is_empty() && word.chars().all(clear) {
        word.to_owned()
    } else {
        format!("{word:?}")
    }
}
