//! Settings of a cell: its own, else those at top level, else the defaults.

use assize_plan::{Connections, Receive, RecordLevel};
use assize_study::ast::{
    Cache, CellSettings, Connections as WrittenConnections, Receive as WrittenReceive, Record,
};
use assize_study::expr::Expr;
use assize_study::source::Spanned;
use assize_units::DurNs;

use crate::eval::{Evaluator, Value};

const DEFAULT_DRAIN: DurNs = DurNs(300_000_000_000);
/// An idle connection is kept for as long as a plan can say.
const UNBOUNDED: DurNs = DurNs((1 << 53) - 1);

/// The settings of one cell.
pub(super) struct Resolved {
    pub settle: DurNs,
    pub drain: DurNs,
    pub timeout: Option<DurNs>,
    pub connections: Connections,
    pub record: RecordLevel,
    pub receive: Receive,
}

/// The settings of a cell: its own, else those at top level, else the defaults.
pub(super) fn settings(
    eval: &Evaluator<'_>,
    top: &CellSettings,
    own: &CellSettings,
    locals: &[(String, Value)],
) -> Option<Resolved> {
    let duration = |own: &Option<Expr>, top: &Option<Expr>, what: &str| {
        own.as_ref()
            .map(|expr| eval.duration(expr, locals, what))
            .or_else(|| top.as_ref().map(|expr| eval.duration(expr, &[], what)))
    };
    let settle = duration(&own.settle, &top.settle, "`settle`").unwrap_or(Some(DurNs(0)));
    let drain = duration(&own.drain, &top.drain, "`drain`").unwrap_or(Some(DEFAULT_DRAIN));
    let timeout = duration(&own.timeout, &top.timeout, "`timeout`");
    if let Some(Spanned {
        value: Cache::Cold | Cache::Primed,
        span,
    }) = own.cache.as_ref().or(top.cache.as_ref())
    {
        eval.later(
            *span,
            "cache",
            "leave it out: `as_left` is the state that the cell before left",
        );
    }
    let connections = match own
        .connections
        .as_ref()
        .or(top.connections.as_ref())
        .map(|c| &c.value)
    {
        None | Some(WrittenConnections::Fresh) => Some(Connections::Fresh),
        Some(WrittenConnections::Reuse { idle: None }) => {
            Some(Connections::Reuse { idle_ns: UNBOUNDED })
        }
        Some(WrittenConnections::Reuse { idle: Some(idle) }) => eval
            .duration(idle, locals, "`idle`")
            .map(|idle_ns| Connections::Reuse { idle_ns }),
    };
    let record = match own.record.as_ref().or(top.record.as_ref()).map(|r| r.value) {
        None | Some(Record::Wire) => RecordLevel::Wire,
        Some(Record::Events) => RecordLevel::Events,
    };
    let receive = match own
        .receive
        .as_ref()
        .or(top.receive.as_ref())
        .map(|r| &r.value)
    {
        None | Some(WrittenReceive::Reap) => Some(Receive::Reap),
        Some(WrittenReceive::Kernel { gather: None }) => Some(Receive::Kernel {
            gather_ns: DurNs(0),
        }),
        Some(WrittenReceive::Kernel {
            gather: Some(gather),
        }) => eval
            .duration(gather, locals, "`gather`")
            .map(|gather_ns| Receive::Kernel { gather_ns }),
    };
    Some(Resolved {
        settle: settle?,
        drain: drain?,
        timeout: match timeout {
            None => None,
            Some(found) => Some(found?),
        },
        connections: connections?,
        record,
        receive: receive?,
    })
}
