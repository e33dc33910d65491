//! `verify EVIDENCE`: integrity and independent replay.

use std::path::Path;

use assize_codes::E0808;
use assize_evidence::FolderStore;
use assize_plan::Hash;
use assize_reader::study::{Analysis, AnalysisError, analyze};
use assize_reader::verify::Demands;

use crate::problem::{Problem, Status};

/// Verifies an evidence folder and judges it.
pub fn verify(folder: &Path, seal: Option<Hash>) -> Result<Analysis, Problem> {
    let store = FolderStore::open_root(folder).map_err(|error| {
        Problem::world(E0808, format!("{}: {error}", folder.display()))
            .help("evidence is the folder that `assize run` wrote: NAME.evidence")
    })?;
    read(&store, seal)
}

/// Verifies evidence wherever it lies.
pub fn read(store: &dyn assize_evidence::Store, seal: Option<Hash>) -> Result<Analysis, Problem> {
    analyze(store, &Demands { seal }).map_err(|error| match error {
        AnalysisError::Refused(refusal) => Problem::refusal(refusal.code(), refusal.to_string()),
        other => Problem::refusal(E0808, other.to_string()),
    })
}

/// The status of a verification that found no fault.
pub fn status(analysis: &Analysis) -> Status {
    if analysis.verified.is_complete() {
        Status::Done
    } else {
        Status::Incomplete
    }
}
