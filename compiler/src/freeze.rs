//! From a compiled study to the bundle that is frozen.

use std::fmt::Write as _;

use assize_plan::{Bundle, FREEZE_FORMAT, Freeze, GitState, Hash, ModuleText, Plan, Tls};
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
    Bundle {
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
        readme: readme(&output.plan, hash, &output.preview),
    }
}

/// The page for a person.
fn readme(plan: &Plan, hash: Hash, preview: &Preview) -> String {
    let mut out = String::new();
    let mut line = |text: &str| writeln!(out, "{text}").expect("a string takes all");
    line(&format!("Plan of the study `{}`", plan.study));
    line(&format!("SHA-256 of plan.json: {hash}"));
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
    for arm in plan
        .arms
        .iter()
        .filter(|arm| arm.tls == Some(Tls::Insecure))
    {
        let name = &arm.name;
        line(&format!(
            "NOT VERIFIED: any certificate is taken of whoever answers for the arm {name}."
        ));
        line("");
    }
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
