//! A simulated LLM engine: sans-IO core, HTTP host, virtual-clock driver, scripted peer.
//!
//! [`Engine`] is a whole inference server as a state machine: bytes and instants go in, bytes and
//! deadlines come out. It owns no socket and no clock, so one engine serves both a real port
//! (`http::serve`, Linux) and a virtual clock, with the same answers at the same instants. The
//! model behind its times is written down in `docs/sim.md`.

pub mod engine;
#[cfg(target_os = "linux")]
pub mod http;
mod peer;
mod script;
mod virtual_driver;
mod virtual_net;

pub use engine::{
    ConfigError, ConnId, Engine, EngineConfig, EngineOutput, Fault, FaultRule, Percent,
};
pub use peer::{Peer, WriteStamp};
pub use script::{Act, Script, ScriptPeer};
pub use virtual_driver::VirtualDriver;
pub use virtual_net::{ProbeAnswer, Segments, VirtualLink, VirtualNet, WINDOW_BYTES};
