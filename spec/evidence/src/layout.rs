//! Names inside `NAME.evidence/`.

/// The plan as run, the bundle's own bytes.
pub const PLAN_FILE: &str = "plan.json";
/// The freeze's circumstances, the bundle's own bytes.
pub const FREEZE_FILE: &str = "freeze.json";
/// The bundle's objects.
pub const OBJECTS_DIR: &str = "objects";
/// Facts of the host.
pub const HOST_FILE: &str = "host.json";
/// The calibration that was given to the run, byte for byte, where one was.
pub const CALIBRATION_FILE: &str = "calibration.json";
/// What happened, in order.
pub const JOURNAL_FILE: &str = "journal.jsonl";
/// The list of every file's hash, once sealed.
pub const SUMS_FILE: &str = "SHA256SUMS";
/// What a server printed, in the folder of its unit.
pub const SERVER_LOG: &str = "server.log";
/// The warmup's folder in the folder of its unit.
pub const WARMUP_DIR: &str = "warmup";
/// The wire log in the folder of a cell.
pub const CELL_WIRE: &str = "wire.log";
/// The runtime's claims in the folder of a cell.
pub const CELL_EXCHANGES: &str = "exchanges.jsonl";

/// The folder of a cell: the unit's path and the cell's own.
pub fn cell_dir(unit_path: &str, cell_path: &str) -> String {
    format!("{unit_path}/{cell_path}")
}
