//! What a report shows: data that is complete when it is made. Rendering computes nothing.

mod by_arm;
mod exact;
mod instrument;
mod marks;
mod matrix;
mod words;

use assize_plan::{Hash, Plan, Tls};
use serde::Serialize;

use crate::study::{Analysis, CellResult};
use crate::verdict::{FamilyVerdict, UnitState};
use crate::verify::{Gap, RunFacts, SealState};

pub use by_arm::{ArmCell, ArmFigure, BlockFigure, Counts, FigureUnit, LoadFacts, TokenTotals};
pub use exact::Exact;
pub(crate) use exact::probability;
pub use instrument::{
    ErrorFigures, InstrumentError, InstrumentFacts, Spread, Standing, WELL_ABOVE,
};
pub use marks::Marks;
pub use matrix::matrix_csv;
pub use words::{family_words, hypothesis_words, seal_words, study_words};

/// The format name of a report.
pub const REPORT_FORMAT: &str = "assize-report/1";

/// A report, `assize-report/1`.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// `assize-report/1`.
    pub format: &'static str,
    /// The version of the reader that made it.
    pub reader: &'static str,
    /// The study's name.
    pub study: String,
    /// The author's question, verbatim.
    pub question: Option<String>,
    /// The author's limits of what is claimed, verbatim.
    pub scope: Option<String>,
    /// The plan's hash.
    pub plan: Hash,
    /// The plan that this one repeats.
    pub replicates: Option<Hash>,
    /// The evidence and what was checked of it.
    pub evidence: EvidenceFacts,
    /// What is known of the instrument's own error.
    pub instrument: InstrumentFacts,
    /// What is compared.
    pub arms: Vec<ArmFacts>,
    /// Named values with their formulas.
    pub values: Vec<ValueFacts>,
    /// What was run, unit by unit.
    pub units: Vec<UnitFacts>,
    /// Each cell that was begun.
    pub cells: Vec<CellResult>,
    /// Each cell of each arm over its blocks, with medians.
    pub by_arm: Vec<ArmCell>,
    /// The families, judged, each with its generated sentences.
    pub families: Vec<FamilyReport>,
    /// The generated sentences that hold for the whole study.
    pub words: Vec<String>,
}

/// The evidence and what was checked of it.
#[derive(Clone, Debug, Serialize)]
pub struct EvidenceFacts {
    /// The seal.
    pub seal: SealState,
    /// What the seal proves, in words.
    pub seal_words: String,
    /// What the journal says of the run.
    pub run: RunFacts,
    /// Requests whose claims were held against their replay.
    pub compared: u64,
    /// Whether it is sealed and every planned unit was run to its end.
    pub complete: bool,
    /// What is missing.
    pub gaps: Vec<Gap>,
    /// Whether the evidence holds the prompts.
    pub has_prompts: bool,
    /// Whether the evidence holds the outputs.
    pub has_outputs: bool,
}

/// An arm.
#[derive(Clone, Debug, Serialize)]
pub struct ArmFacts {
    /// The study's name for it.
    pub name: String,
    /// The name to show.
    pub label: String,
    /// The engine that its answers are read as.
    pub engine: String,
    /// The model.
    pub model: Option<String>,
    /// The author's words about it, verbatim.
    pub discloses: Option<String>,
    /// It was spoken to by `https`, and any certificate was taken.
    pub unverified: bool,
}

/// A named value of the plan.
#[derive(Clone, Debug, Serialize)]
pub struct ValueFacts {
    /// Its name.
    pub name: String,
    /// Its formula as written.
    pub formula: String,
    /// Its exact value.
    pub value: Exact,
    /// The unit.
    pub unit: assize_plan::ValueUnit,
    /// What it stands on.
    pub from: Vec<String>,
}

/// A unit and how it was executed.
#[derive(Clone, Debug, Serialize)]
pub struct UnitFacts {
    /// Its place in the plan.
    pub n: u32,
    /// The block set.
    pub set: String,
    /// The block.
    pub block: u32,
    /// The arm.
    pub arm: String,
    /// The folder.
    pub path: String,
    /// The names of its cells, in order.
    pub cells: Vec<String>,
    /// Whether it enters neither test nor validity.
    pub excluded: bool,
    /// How it was executed.
    pub state: UnitState,
}

/// A family with its sentences.
#[derive(Clone, Debug, Serialize)]
pub struct FamilyReport {
    /// The verdicts.
    #[serde(flatten)]
    pub verdict: FamilyVerdict,
    /// One sentence for each hypothesis, in the same order.
    pub hypothesis_words: Vec<String>,
    /// Where each hypothesis' rule draws its lines, in the same order.
    pub marks: Vec<Marks>,
    /// The instrument's error beside each hypothesis' effect, in the same order.
    pub instrument: Vec<InstrumentError>,
    /// The sentences that hold for the family.
    pub words: Vec<String>,
}

impl Report {
    /// Makes the report of an analysis.
    pub fn new(analysis: &Analysis) -> Report {
        let verified = &analysis.verified;
        let plan = &verified.plan;
        Report {
            format: REPORT_FORMAT,
            reader: env!("CARGO_PKG_VERSION"),
            study: plan.study.clone(),
            question: plan.question.clone(),
            scope: plan.scope.clone(),
            plan: verified.plan_hash,
            replicates: plan.replicates,
            evidence: EvidenceFacts {
                seal: verified.seal,
                seal_words: seal_words(&verified.seal),
                run: verified.run.clone(),
                compared: verified.compared,
                complete: verified.is_complete(),
                gaps: verified.gaps.clone(),
                has_prompts: true,
                has_outputs: holds_outputs(plan),
            },
            instrument: InstrumentFacts::of(analysis),
            arms: arms(plan),
            values: values(plan),
            units: units(plan, &verified.units),
            cells: analysis.cells.clone(),
            by_arm: by_arm::by_arm(plan, &verified.units, &analysis.cells),
            families: analysis
                .families
                .iter()
                .zip(&plan.rules)
                .map(|(verdict, rules)| FamilyReport {
                    hypothesis_words: verdict
                        .hypotheses
                        .iter()
                        .map(|hypothesis| hypothesis_words(plan, verdict, hypothesis))
                        .collect(),
                    marks: rules.hypotheses.iter().map(Marks::of).collect(),
                    instrument: rules
                        .hypotheses
                        .iter()
                        .zip(&verdict.hypotheses)
                        .map(|(rule, it)| InstrumentError::of(analysis, rule, it))
                        .collect(),
                    words: family_words(plan, rules, verdict),
                    verdict: verdict.clone(),
                })
                .collect(),
            words: study_words(plan),
        }
    }

    /// The report as JSON, with a newline at its end.
    pub fn to_json(&self) -> String {
        let mut text =
            serde_json::to_string_pretty(self).expect("a report is plain data with text keys");
        text.push('\n');
        text
    }
}

fn holds_outputs(plan: &Plan) -> bool {
    let cells = plan.units.iter().flat_map(|unit| &unit.cells);
    cells
        .into_iter()
        .any(|cell| cell.record == assize_plan::RecordLevel::Wire)
}

fn arms(plan: &Plan) -> Vec<ArmFacts> {
    plan.arms
        .iter()
        .map(|arm| ArmFacts {
            name: arm.name.clone(),
            label: arm.label.clone(),
            engine: arm.engine.name.clone(),
            model: arm.model.clone(),
            discloses: arm.discloses.clone(),
            unverified: arm.tls == Some(Tls::Insecure),
        })
        .collect()
}

fn values(plan: &Plan) -> Vec<ValueFacts> {
    plan.values
        .iter()
        .map(|value| ValueFacts {
            name: value.name.clone(),
            formula: value.formula.clone(),
            value: Exact(value.value),
            unit: value.unit,
            from: value.from.clone(),
        })
        .collect()
}

fn units(plan: &Plan, states: &[UnitState]) -> Vec<UnitFacts> {
    plan.units
        .iter()
        .zip(states)
        .map(|(unit, state)| UnitFacts {
            n: unit.n,
            set: unit.set.clone(),
            block: unit.block,
            arm: unit.arm.clone(),
            path: unit.path.clone(),
            cells: unit.cells.iter().map(|cell| cell.name.clone()).collect(),
            excluded: unit.excluded,
            state: *state,
        })
        .collect()
}
