//! `demo`: the whole path on simulated engines, from the study that is embedded here.

use std::path::{Path, PathBuf};

use assize_codes::E0902;
use assize_core::RunControl;
use assize_host::{Programs, RunEvent};
use assize_plan::Bundle;
use assize_reader::study::Analysis;

use crate::plans;
use crate::problem::Problem;
use crate::run::{CareRequest, Ran, RunOptions, run};
use crate::study::{Compiled, StudyText, compile_text};
use crate::verify;

/// The demo's study and what it names.
const FILES: &[(&str, &str)] = &[
    (
        "prompts.jsonl",
        include_str!("../../../examples/demo/prompts.jsonl"),
    ),
    (
        "candidate.yaml",
        include_str!("../../../examples/demo/candidate.yaml"),
    ),
    (
        "baseline.yaml",
        include_str!("../../../examples/demo/baseline.yaml"),
    ),
    (
        "rival.yaml",
        include_str!("../../../examples/demo/rival.yaml"),
    ),
];

/// The demo's study.
pub const STUDY: &str = include_str!("../../../examples/demo/study.yaml");

/// What the demo made.
#[derive(Debug)]
pub struct Demonstrated {
    /// The study file that was written.
    pub study: PathBuf,
    /// The plan's folder.
    pub plan: PathBuf,
    /// The plan.
    pub bundle: Bundle,
    /// How the run ended.
    pub ran: Ran,
    /// What the reader found.
    pub analysis: Analysis,
}

/// The files that the demo's study names.
pub fn files() -> Vec<(String, Vec<u8>)> {
    FILES
        .iter()
        .map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec()))
        .collect()
}

/// Compiles the demo.
pub fn compile() -> Result<Bundle, Problem> {
    let study = StudyText {
        name: "study.yaml",
        text: STUDY,
        files: files(),
    };
    match compile_text(&study) {
        Compiled {
            bundle: Some(bundle),
            ..
        } => Ok(bundle),
        Compiled { diagnostics, .. } => Err(diagnostics.first_problem()),
    }
}

/// Writes the study, freezes it, runs it and verifies it.
pub fn demo(
    out: &Path,
    programs: Programs,
    control: &RunControl,
    show: &mut dyn FnMut(RunEvent<'_>),
) -> Result<Demonstrated, Problem> {
    let bundle = compile()?;
    let study = write_study(out)?;
    let plan = out.join("demo.plan");
    plans::write(&plan, &bundle)?;
    let options = RunOptions {
        out: &out.join("demo.evidence"),
        approve: None,
        ask: None,
        calibration: None,
        programs,
        environment: &|_| None,
        care: CareRequest::default(),
        control,
    };
    let ran = run(&bundle, options, show)?;
    let analysis = verify::verify(&ran.evidence, ran.outcome.seal.map(|seal| seal.hash))?;
    Ok(Demonstrated {
        study,
        plan,
        bundle,
        ran,
        analysis,
    })
}

#[expect(
    clippy::disallowed_methods,
    reason = "the demo writes its study where the user said"
)]
fn write_study(out: &Path) -> Result<PathBuf, Problem> {
    let failed = |path: &Path, error: std::io::Error| {
        Problem::world(E0902, format!("writing {}: {error}", path.display()))
    };
    let folder = out.join("study");
    std::fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
    for (name, text) in FILES.iter().chain(&[("study.yaml", STUDY)]) {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|error| failed(&path, error))?;
    }
    Ok(folder.join("study.yaml"))
}
