//! The laws of timing (`docs/timing.md`) with a run that the input draws: the same cells, peers, drivers and
//! laws as the property tests of `assize-core`, which own these files.

#[path = "../../../runtime/core/tests/timing/laws.rs"]
pub(crate) mod laws;
#[path = "../../../runtime/core/tests/timing/noise.rs"]
pub(crate) mod noise;
#[path = "../../../runtime/core/tests/timing/setting.rs"]
pub(crate) mod setting;
#[path = "../../../runtime/core/tests/timing/world.rs"]
pub(crate) mod world;
