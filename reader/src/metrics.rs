//! Figures from times: the definitions of docs/metrics, and nothing that needs a parser.

mod figure;
mod summary;
mod timeline;

use assize_units::{DurNs, MonoNs};

use crate::records::Record;

pub use figure::{Need, NoFigure, figure, seconds};
pub use summary::{
    BacklogQuarter, CellSummary, EventTotals, FailureCount, Latency, LengthCount, NamedCount,
    TokenCoverage, summarize,
};
pub use timeline::{Origin, Timeline};

/// One cell's records and what must be known beside them.
#[derive(Clone, Copy, Debug)]
pub struct CellData<'a> {
    /// Requests of the plan.
    pub offered: usize,
    /// The instant of offset 0.
    pub origin: MonoNs,
    /// The last terminal event: the end of the drain and of the observation interval.
    pub end: MonoNs,
    /// The accounted requests, at most one for each of the plan, in the plan's order.
    pub records: &'a [Record],
    /// The times that hypotheses need of each valid request.
    pub needs: &'a [Need],
}

impl CellData<'_> {
    /// From the origin to the end of the drain.
    pub fn interval(&self) -> DurNs {
        self.end.since(self.origin)
    }

    /// Requests of the plan without a record; they belong to no class.
    fn unaccounted(&self, of_all_classes: bool) -> usize {
        if of_all_classes {
            self.offered.saturating_sub(self.records.len())
        } else {
            0
        }
    }
}

impl From<assize_plan::Origin> for Origin {
    fn from(origin: assize_plan::Origin) -> Origin {
        match origin {
            assize_plan::Origin::Intended => Origin::Intended,
            assize_plan::Origin::Started => Origin::Started,
            assize_plan::Origin::Sent => Origin::Sent,
        }
    }
}
