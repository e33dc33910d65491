//! `report EVIDENCE`: the verdict as data; what a pipeline may demand of it.

use assize_reader::report::Report;
use assize_reader::study::Analysis;
use assize_reader::verdict::Verdict;

use crate::problem::Status;

/// The report of an analysis.
pub fn report(analysis: &Analysis) -> Report {
    Report::new(analysis)
}

/// The status of a report: `--require supported` turns verdicts into a no; an `expect` of the study
/// that was not met is told apart.
pub fn status(analysis: &Analysis, require_supported: bool) -> Status {
    let verdicts = || {
        analysis
            .families
            .iter()
            .flat_map(|family| &family.hypotheses)
            .map(|it| it.verdict)
    };
    let unmet = analysis
        .families
        .iter()
        .any(|family| family.expectation_met == Some(false));
    if unmet {
        Status::Incomplete
    } else if require_supported
        && (verdicts().next().is_none() || verdicts().any(|it| it != Verdict::Supported))
    {
        Status::No
    } else {
        Status::Done
    }
}
