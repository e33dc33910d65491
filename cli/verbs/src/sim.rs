//! `sim`: the simulated engine as an HTTP server.

use std::net::{SocketAddr, TcpListener};

use assize_codes::{E0906, E0910};
use assize_sim::EngineConfig;
use assize_sim::http::{Served, Stop, serve};

use crate::problem::Problem;

/// A simulated engine that listens.
pub struct Listening {
    listener: TcpListener,
    config: EngineConfig,
}

/// Takes the port; port 0 takes a free one.
pub fn listen(port: u16, config: EngineConfig) -> Result<Listening, Problem> {
    config
        .validate()
        .map_err(|error| Problem::usage(E0910, error.to_string()))?;
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let listener = TcpListener::bind(address)
        .map_err(|error| Problem::world(E0906, format!("listening on {address}: {error}")))?;
    Ok(Listening { listener, config })
}

impl Listening {
    /// Where it listens.
    pub fn address(&self) -> Result<SocketAddr, Problem> {
        self.listener
            .local_addr()
            .map_err(|error| Problem::world(E0906, error.to_string()))
    }

    /// Serves until `stop` is thrown.
    pub fn serve(self, stop: &Stop) -> Result<Served, Problem> {
        serve(self.listener, self.config, stop)
            .map_err(|error| Problem::world(E0910, error.to_string()))
    }
}

/// Reads a duration as the command line and server files write it: `8ms`, `1.5s`.
pub fn parse_duration(text: &str) -> Option<assize_units::DurNs> {
    assize_sim::engine::parse_duration(text)
}

/// The engine of a plan's parameters.
pub fn config(sim: &assize_plan::SimServer) -> Result<EngineConfig, Problem> {
    crate::in_process::engine_config(sim).map_err(|why| Problem::usage(E0910, why))
}
