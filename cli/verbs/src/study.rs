//! `check`, `plan`, `freeze`: from a study file to a bundle. Nothing is executed, no socket is opened.

use std::path::{Component, Path, PathBuf};

use assize_codes::{E0702, E1001};
use assize_compiler::freeze::{Circumstances, bundle};
use assize_compiler::{HypothesisPreview, MemoryWorld, World, WorldError, compile};
use assize_host::{SystemWall, Wall};
use assize_plan::{Bundle, Hash, Load};
use assize_study::diagnostic::{Diagnostics, Severity, render_github, render_human, render_json};
use assize_study::source::Sources;
use assize_units::DurNs;
use serde::Serialize;

use crate::problem::Problem;

/// A study that was compiled, or the diagnostics that say why not.
#[derive(Debug)]
pub struct Compiled {
    /// The bundle; none where there are errors.
    pub bundle: Option<Bundle>,
    /// What was found, errors and warnings.
    pub diagnostics: StudyDiagnostics,
    preview: Option<assize_compiler::Preview>,
}

/// Diagnostics with the texts that they point into.
#[derive(Debug)]
pub struct StudyDiagnostics {
    diagnostics: Diagnostics,
    sources: Sources,
}

/// How diagnostics are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiagnosticForm {
    /// For people.
    Human {
        /// With colour.
        colour: bool,
    },
    /// `assize-diagnostics/1`.
    Json,
    /// Workflow annotations.
    Github,
}

impl StudyDiagnostics {
    /// All of them, sorted by place.
    pub fn render(&self, form: DiagnosticForm) -> String {
        match form {
            DiagnosticForm::Human { .. } if self.is_empty() => String::new(),
            DiagnosticForm::Human { colour } => {
                render_human(&self.diagnostics, &self.sources, colour)
            }
            DiagnosticForm::Json => render_json(&self.diagnostics, &self.sources),
            DiagnosticForm::Github => render_github(&self.diagnostics, &self.sources),
        }
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.diagnostics.is_empty()
    }

    /// Whether there is an error among them.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.has_errors()
    }

    /// Errors and warnings.
    pub fn counts(&self) -> (usize, usize) {
        let warnings = self
            .diagnostics
            .iter()
            .filter(|it| it.severity() == Severity::Warning)
            .count();
        (self.diagnostics.error_count(), warnings)
    }

    /// The codes, sorted by place.
    pub fn codes(&self) -> Vec<&'static str> {
        self.diagnostics
            .sorted()
            .iter()
            .map(|it| it.code.id)
            .collect()
    }

    /// The first error as a problem of the command line, for studies that options were made into.
    pub fn first_problem(&self) -> Problem {
        let first = self
            .diagnostics
            .sorted()
            .into_iter()
            .find(|it| it.severity() == Severity::Error);
        match first {
            Some(error) => {
                let problem = Problem::usage(error.code, error.message.clone());
                match error.help.first() {
                    Some(help) => problem.help(help.text.clone()),
                    None => problem,
                }
            }
            None => Problem::usage(E1001, "the options give no study"),
        }
    }
}

/// A study in memory, with the files that it names.
pub struct StudyText<'a> {
    /// The study file's name.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
    /// Files by the path that the study uses.
    pub files: Vec<(String, Vec<u8>)>,
}

/// Compiles a study in memory.
pub fn compile_text(study: &StudyText<'_>) -> Compiled {
    let mut world = MemoryWorld::new().with_file(study.name, study.text);
    for (path, bytes) in &study.files {
        world = world.with_file(path, bytes.clone());
    }
    for (name, text) in assize_modules::ALL {
        world = world.with_module(name, text);
    }
    compiled(study.name, &world)
}

/// Compiles a study file; a folder stands for its `study.yaml`.
pub fn compile_file(path: &Path) -> Result<Compiled, Problem> {
    let path = if path.is_dir() {
        path.join("study.yaml")
    } else {
        path.to_owned()
    };
    let missing = || {
        Problem::world(E0702, format!("{}: no such file", path.display()))
            .help("a study is a YAML file, or a folder with a study.yaml")
    };
    if !path.is_file() {
        return Err(missing());
    }
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .ok_or_else(missing)?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    Ok(compiled(
        &name,
        &FolderWorld {
            root: folder.to_owned(),
        },
    ))
}

fn compiled(name: &str, world: &dyn World) -> Compiled {
    let compiled = compile(name, world);
    let diagnostics = StudyDiagnostics {
        diagnostics: compiled.diagnostics,
        sources: compiled.sources,
    };
    let Some(output) = compiled.output else {
        return Compiled {
            bundle: None,
            diagnostics,
            preview: None,
        };
    };
    let circumstances = Circumstances {
        tool: crate::TOOL.to_owned(),
        study_file: Some(name.to_owned()),
        git: None,
        frozen_at: SystemWall.label(),
    };
    Compiled {
        bundle: Some(bundle(&output, circumstances)),
        diagnostics,
        preview: Some(output.preview),
    }
}

/// The study's folder, and the library.
struct FolderWorld {
    root: PathBuf,
}

impl World for FolderWorld {
    #[expect(
        clippy::disallowed_methods,
        reason = "the files that a study names are read here, and nowhere else"
    )]
    fn file(&self, path: &str) -> Result<Vec<u8>, WorldError> {
        const LIMIT_BYTES: u64 = 1 << 30;
        let relative = Path::new(path);
        if !relative.components().all(|part| {
            matches!(
                part,
                Component::Normal(_) | Component::ParentDir | Component::CurDir
            )
        }) {
            return Err(WorldError::Forbidden(
                "a path in a study is relative to the study's folder".to_owned(),
            ));
        }
        let full = self.root.join(relative);
        let unreadable = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => WorldError::NotFound,
            _ => WorldError::Unreadable(error.to_string()),
        };
        let facts = std::fs::metadata(&full).map_err(unreadable)?;
        if !facts.is_file() {
            return Err(WorldError::Unreadable("it is no file".to_owned()));
        }
        if facts.len() > LIMIT_BYTES {
            return Err(WorldError::Unreadable(format!(
                "it has {} bytes, the limit is {LIMIT_BYTES}",
                facts.len()
            )));
        }
        std::fs::read(&full).map_err(unreadable)
    }

    fn module(&self, name: &str) -> Option<String> {
        assize_modules::get(name).map(str::to_owned)
    }

    fn module_names(&self) -> Vec<String> {
        let names = assize_modules::ALL.iter();
        names.map(|(name, _)| (*name).to_owned()).collect()
    }
}

/// What a study will do, and what its rules can conclude.
#[derive(Clone, Debug, Serialize)]
pub struct Preview {
    /// `assize-preview/1`.
    pub format: &'static str,
    /// The study's name.
    pub study: String,
    /// The hash that the plan would have.
    pub plan: Hash,
    /// Server invocations, or visits of an endpoint.
    pub units: u32,
    /// Requests in all, warmups among them.
    pub requests: u64,
    /// What schedules and settling take; closed cells, starts and drains come on top.
    pub scheduled_ns: DurNs,
    /// Cells whose length hangs on the server.
    pub closed_cells: u32,
    /// Block sets.
    pub sets: Vec<SetPreview>,
    /// Families.
    pub families: Vec<FamilyPreview>,
}

/// A block set.
#[derive(Clone, Debug, Serialize)]
pub struct SetPreview {
    /// Its name.
    pub name: String,
    /// Whether it enters no figure.
    pub excluded: bool,
    /// Its blocks.
    pub blocks: u32,
    /// Its arms.
    pub arms: Vec<String>,
    /// Its cells.
    pub cells: Vec<CellPreview>,
}

/// A cell.
#[derive(Clone, Debug, Serialize)]
pub struct CellPreview {
    /// Its name.
    pub name: String,
    /// Its load, in words.
    pub load: String,
    /// Requests in one of them.
    pub requests: u32,
}

/// A family of hypotheses.
#[derive(Clone, Debug, Serialize)]
pub struct FamilyPreview {
    /// Its name.
    pub name: String,
    /// What each hypothesis can come to, in sentences.
    pub lines: Vec<String>,
}

/// The preview of a study that compiles.
///
/// # Panics
/// Where the study has errors: there is no plan to preview.
pub fn preview(compiled: &Compiled) -> Preview {
    let (Some(bundle), Some(preview)) = (&compiled.bundle, &compiled.preview) else {
        panic!("a study with errors has no preview");
    };
    let mut families: Vec<FamilyPreview> = Vec::new();
    for hypothesis in &preview.hypotheses {
        let line = hypothesis_line(hypothesis);
        match families
            .iter_mut()
            .find(|family| family.name == hypothesis.family)
        {
            Some(family) => family.lines.push(line),
            None => families.push(FamilyPreview {
                name: hypothesis.family.clone(),
                lines: vec![line],
            }),
        }
    }
    Preview {
        format: "assize-preview/1",
        study: bundle.plan.study.clone(),
        plan: bundle.hash,
        units: preview.units,
        requests: preview.requests,
        scheduled_ns: preview.scheduled,
        closed_cells: preview.closed_cells,
        sets: preview
            .sets
            .iter()
            .map(|set| set_preview(bundle, set))
            .collect(),
        families,
    }
}

fn set_preview(bundle: &Bundle, set: &assize_compiler::SetPreview) -> SetPreview {
    let load = |name: &str| {
        let cells = bundle
            .plan
            .units
            .iter()
            .filter(|unit| unit.set == set.name)
            .flat_map(|unit| &unit.cells);
        match cells
            .into_iter()
            .find(|cell| cell.name == name)
            .map(|cell| &cell.load)
        {
            Some(Load::Closed { clients, .. }) => format!("closed, {clients} clients"),
            Some(Load::Open { cap: None, .. }) => "open".to_owned(),
            Some(Load::Open { cap: Some(cap), .. }) => format!("open, at most {cap} in flight"),
            None => String::new(),
        }
    };
    SetPreview {
        name: set.name.clone(),
        excluded: set.excluded,
        blocks: set.blocks,
        arms: set.arms.clone(),
        cells: set
            .cells
            .iter()
            .map(|(name, requests)| CellPreview {
                name: name.clone(),
                load: load(name),
                requests: *requests,
            })
            .collect(),
    }
}

fn hypothesis_line(it: &HypothesisPreview) -> String {
    let power = it.power.iter().map(|(chance, power)| {
        format!(
            "{:.0}% where a block is won with chance {:.0}%",
            power.as_f64() * 100.0,
            chance.as_f64() * 100.0
        )
    });
    let interval = match &it.interval {
        Some(range) => format!(
            "interval: ordered effects {} and {}, coverage {:.4}%",
            range.lower_rank,
            range.upper_rank,
            range.coverage.as_f64() * 100.0
        ),
        None => "no interval of the declared coverage".to_owned(),
    };
    format!(
        "{}: {} blocks, {} tests share {}%; smallest p {}; {} wins reject in the best case of the correction, {} alone; \
         chance of a false rejection under equality {:.4}%; power {}; {interval}",
        it.text,
        it.blocks,
        it.tests,
        it.level.as_f64() * 100.0,
        it.smallest_p,
        it.wins_needed.best_case,
        it.wins_needed.alone,
        it.false_positive.as_f64() * 100.0,
        power.collect::<Vec<_>>().join(", "),
    )
}
