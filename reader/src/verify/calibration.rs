//! The calibration that was given to a run: named by the journal's first line, read strictly.

use assize_evidence::calibration::{CALIBRATION_LIMIT_BYTES, Calibration, HostDifference};
use assize_evidence::{CALIBRATION_FILE, HOST_FILE, HostFacts, Store};
use assize_plan::Hash;

use super::{Refusal, RunFacts, io_refusal};

/// Facts of a host beyond this size are not looked at.
const HOST_LIMIT_BYTES: u64 = 4 << 20;

/// A calibration that was given to a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedCalibration {
    /// The hash of its bytes, as the journal names it.
    pub hash: Hash,
    /// What it says.
    pub calibration: Calibration,
    /// In what the run's host differs from the one that was calibrated.
    pub differences: Vec<HostDifference>,
}

/// Reads the calibration where the journal names one. A file that it does not name is refused: it
/// was not there when the run began.
pub(super) fn open(
    store: &dyn Store,
    names: &[String],
    run: &RunFacts,
) -> Result<Option<AttachedCalibration>, Refusal> {
    let refused = |why: String| Err(Refusal::Calibration(why));
    let is_there = names.iter().any(|name| name == CALIBRATION_FILE);
    let Some(hash) = run.calibration else {
        return if is_there {
            refused("the journal names none".to_owned())
        } else {
            Ok(None)
        };
    };
    if !is_there {
        return refused(format!("it is not there, the journal names {hash}"));
    }
    let bytes = store
        .read(CALIBRATION_FILE, CALIBRATION_LIMIT_BYTES)
        .map_err(|source| io_refusal(CALIBRATION_FILE, source))?;
    let found = Hash::of(&bytes);
    if found != hash {
        return refused(format!(
            "its bytes have the hash {found}, the journal names {hash}"
        ));
    }
    let calibration = match Calibration::parse(&bytes) {
        Ok(calibration) => calibration,
        Err(error) => return refused(error.to_string()),
    };
    let differences = calibration.differences(&host(store, run));
    Ok(Some(AttachedCalibration {
        hash,
        calibration,
        differences,
    }))
}

/// The run's host, as far as it is told. The facts are circumstances: without them nothing differs
/// but the boot, which the journal tells.
fn host(store: &dyn Store, run: &RunFacts) -> HostFacts {
    let bytes = store.read(HOST_FILE, HOST_LIMIT_BYTES).unwrap_or_default();
    let mut facts: HostFacts = serde_json::from_slice(&bytes).unwrap_or_default();
    facts.set("kernel", "boot_id", &run.boot_id);
    facts
}
