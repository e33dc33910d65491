//! The frozen plan: data model, canonical bytes, hash, bundle.
//!
//! A plan holds only what decides the experiment. [`Plan::to_canonical`] gives its only byte form
//! (RFC 8785, integers alone) and the SHA-256 of those bytes is the plan's name everywhere. A
//! [`Bundle`] is the plan with every object it names, as it lies in `NAME.plan/`.
//!
//! The formats are specified in `docs/plan-format.md`.

mod bundle;
mod canonical;
mod deeds;
mod hash;
mod model;
mod objects;
mod rules;

pub use bundle::{
    Bundle, BundleRefusal, Files, Freeze, GitState, ModuleText, read_folder, write_folder,
};
pub use bundle::{README_FILE, SUMS_FILE, parse_sums, render_sums, safe_name};
pub use canonical::{CanonicalError, MAX_SAFE_INTEGER, to_canonical_json};
pub use deeds::{Command, Deeds};
pub use hash::Hash;
pub use model::{
    Arm, ArmTarget, ArrivalProcess, ArrivalStage, Arrivals, Cell, Comparison, Connections,
    DriverChoice, Engine, Expectation, External, HeaderText, Interrupted, Limits, Load, NamedValue,
    OrderTable, Panel, PanelTokens, Plan, PlanError, Receive, RecordLevel, RequestClass, Roots,
    Tls, Unit,
};
pub use objects::{ObjectError, ServerDef, ServerKind, SimServer, TraceObject};
pub use rules::{
    CompareOp, Condition, Correction, Expect, Family, Hypothesis, Interval, Judgement, Measure,
    Node, Origin, Quantity, Stat, Test, Threshold, Ties, ValueUnit,
};

/// The format name of a plan.
pub const PLAN_FORMAT: &str = "assize-plan/1";
/// The format name of a trace object.
pub const TRACE_FORMAT: &str = "assize-trace/1";
/// The format name of a server object.
pub const SERVER_FORMAT: &str = "assize-server/1";
/// The format name of `freeze.json`.
pub const FREEZE_FORMAT: &str = "assize-freeze/1";
/// The name of the draws' definition (`docs/plan-format.md`, "Draws").
pub const DRAW: &str = "pcg64-q64/1";
