//! The plan as run, and its objects.

use std::collections::BTreeMap;
use std::io::Read as _;

use assize_evidence::{
    CELL_EXCHANGES, CELL_WIRE, OBJECTS_DIR, PLAN_FILE, Store, WARMUP_DIR, cell_dir,
};
use assize_plan::{Hash, Plan, TraceObject};
use sha2::{Digest as _, Sha256};

use super::{Refusal, io_refusal};

/// A plan beyond this size is refused.
const PLAN_LIMIT_BYTES: u64 = 256 << 20;
/// A trace beyond this size is refused.
const TRACE_LIMIT_BYTES: u64 = 256 << 20;

/// The plan and what must be known of its objects.
pub(super) struct Frozen {
    pub(super) plan: Plan,
    pub(super) hash: Hash,
    /// The size of each object.
    sizes: BTreeMap<Hash, u64>,
}

impl Frozen {
    /// Reads the plan that the journal names, and hashes each object that it names.
    pub(super) fn open(store: &dyn Store, named: Hash) -> Result<Frozen, Refusal> {
        let bytes = store
            .read(PLAN_FILE, PLAN_LIMIT_BYTES)
            .map_err(|source| io_refusal(PLAN_FILE, source))?;
        let found = Hash::of(&bytes);
        if found != named {
            return Err(Refusal::OtherPlan { named, found });
        }
        let plan = Plan::from_canonical(&bytes)?;
        let mut sizes = BTreeMap::new();
        for hash in plan.object_hashes() {
            sizes.insert(hash, check_object(store, hash)?);
        }
        Ok(Frozen {
            plan,
            hash: found,
            sizes,
        })
    }

    /// The size of an object in bytes.
    pub(super) fn size(&self, hash: Hash) -> Option<u64> {
        self.sizes.get(&hash).copied()
    }

    /// A trace.
    pub(super) fn trace(&self, store: &dyn Store, hash: Hash) -> Result<TraceObject, Refusal> {
        let name = object_name(hash);
        let bytes = store
            .read(&name, TRACE_LIMIT_BYTES)
            .map_err(|source| io_refusal(&name, source))?;
        TraceObject::from_bytes(&bytes).map_err(|error| Refusal::Object {
            hash,
            why: error.to_string(),
        })
    }
}

fn object_name(hash: Hash) -> String {
    format!("{OBJECTS_DIR}/{}", hash.hex())
}

fn check_object(store: &dyn Store, hash: Hash) -> Result<u64, Refusal> {
    let name = object_name(hash);
    let refused = |why: String| Refusal::Object { hash, why };
    let mut file = store
        .open(&name)
        .map_err(|error| refused(error.to_string()))?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    let mut size = 0u64;
    loop {
        let read = file
            .read(&mut buffer)
            .map_err(|source| io_refusal(&name, source))?;
        if read == 0 {
            break;
        }
        size += read as u64;
        hasher.update(&buffer[..read]);
    }
    let found = Hash(hasher.finalize().into());
    if found != hash {
        return Err(refused(format!("its bytes have the hash {found}")));
    }
    Ok(size)
}

/// Refuses wire logs and rows that belong to no cell of the plan.
pub(super) fn refuse_strangers(plan: &Plan, names: &[String]) -> Result<(), Refusal> {
    let mut planned: Vec<String> = Vec::new();
    for unit in &plan.units {
        if unit.warmup.is_some() {
            planned.push(cell_dir(&unit.path, WARMUP_DIR));
        }
        let cells = unit.cells.iter();
        planned.extend(cells.map(|cell| cell_dir(&unit.path, &cell.path)));
    }
    planned.sort_unstable();
    for name in names {
        let Some((folder, file)) = name.rsplit_once('/') else {
            continue;
        };
        let is_cell_file = file == CELL_WIRE || file == CELL_EXCHANGES;
        let is_planned = planned
            .binary_search_by(|it| it.as_str().cmp(folder))
            .is_ok();
        if is_cell_file && !is_planned {
            return Err(Refusal::Accounting {
                place: name.clone(),
                why: "the plan has no such cell".to_owned(),
            });
        }
    }
    Ok(())
}
