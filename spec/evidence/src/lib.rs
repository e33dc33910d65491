//! The evidence: wire log, journal, exchange records, layout; encode and decode.
//!
//! Everything here is a format, never an interpretation: the runtime writes by it, the reader reads
//! by it, and the two share nothing else. The formats are specified in `docs/evidence-format.md`.

pub mod calibration;
mod exchanges;
mod host;
mod journal;
mod layout;
mod seal;
mod store;
mod terminal;
pub mod wire;

pub use exchanges::{ConnFacts, ExchangeRow, ExchangesError, PeerClose};
pub use host::{HostFacts, NOT_AVAILABLE};
pub use journal::{
    CellCounts, Journal, JournalError, JournalEvent, JournalLine, JournalReader, StopReason,
    UnknownLine,
};
pub use layout::{
    CALIBRATION_FILE, CELL_EXCHANGES, CELL_WIRE, FREEZE_FILE, HOST_FILE, JOURNAL_FILE, OBJECTS_DIR,
    PLAN_FILE, SERVER_LOG, SUMS_FILE, WARMUP_DIR, cell_dir,
};
pub use seal::{Seal, SealError, check_seal, write_seal};
pub use store::{FolderStore, MemoryStore, Store, StoreFile};
pub use terminal::{Phase, Terminal};

/// The format name of the evidence.
pub const EVIDENCE_FORMAT: &str = "assize-evidence/1";
