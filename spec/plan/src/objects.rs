//! The objects that a plan names by hash: traces and server definitions. (Bodies are plain bytes.)

use std::collections::BTreeMap;

use assize_units::{DurNs, OffsetNs};
use serde::{Deserialize, Serialize};

use crate::{Hash, SERVER_FORMAT, TRACE_FORMAT, to_canonical_json};

/// Why an object's bytes are not what the plan needs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// The JSON does not fit the model.
    #[error("not a {expected} object: {source}")]
    Shape {
        /// The format that was expected.
        expected: &'static str,
        /// What the JSON reader says.
        source: serde_json::Error,
    },
    /// The format is of another kind or version.
    #[error("the object's format is `{found}`, expected `{expected}`")]
    Format {
        /// The format that was expected.
        expected: &'static str,
        /// The format that was found.
        found: String,
    },
    /// The parts of a trace do not agree.
    #[error("the trace is broken: {0}")]
    Trace(&'static str),
}

/// When each request of a cell is due, which prompt it sends and of which class it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceObject {
    /// `assize-trace/1`.
    pub format: String,
    /// Offsets from the cell's origin, not falling; none in a closed load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offsets_ns: Option<Vec<OffsetNs>>,
    /// For each request, a place in the `bodies` of its class.
    pub prompts: Vec<u32>,
    /// For each request, a place in the cell's `classes`; none where there is one class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classes: Option<Vec<u32>>,
}

impl TraceObject {
    /// Canonical bytes and their hash.
    pub fn to_object(&self) -> (Hash, Vec<u8>) {
        let bytes = to_canonical_json(self)
            .expect("offsets below 2^53 ns (104 days) have a canonical form");
        (Hash::of(&bytes), bytes)
    }

    /// Reads and checks an object's bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<TraceObject, ObjectError> {
        let trace: TraceObject =
            serde_json::from_slice(bytes).map_err(|source| ObjectError::Shape {
                expected: TRACE_FORMAT,
                source,
            })?;
        if trace.format != TRACE_FORMAT {
            return Err(ObjectError::Format {
                expected: TRACE_FORMAT,
                found: trace.format,
            });
        }
        if let Some(offsets) = &trace.offsets_ns {
            if offsets.len() != trace.prompts.len() {
                return Err(ObjectError::Trace("as many offsets as prompts are due"));
            }
            if offsets.windows(2).any(|pair| pair[0] > pair[1]) {
                return Err(ObjectError::Trace("an offset is before the one above it"));
            }
        }
        if trace
            .classes
            .as_ref()
            .is_some_and(|classes| classes.len() != trace.prompts.len())
        {
            return Err(ObjectError::Trace("as many classes as prompts are due"));
        }
        Ok(trace)
    }

    /// Requests in the trace.
    pub fn len(&self) -> usize {
        self.prompts.len()
    }

    /// Whether the trace has no request.
    pub fn is_empty(&self) -> bool {
        self.prompts.is_empty()
    }

    /// The place in the cell's `classes` of request `index`.
    pub fn class_of(&self, index: usize) -> u32 {
        self.classes.as_ref().map_or(0, |classes| classes[index])
    }
}

/// A server that the run starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerDef {
    /// `assize-server/1`.
    pub format: String,
    /// `http://host:port/base/path` of its API.
    pub base: String,
    /// The path that answers 2xx once it is ready.
    pub ready_path: String,
    /// How long it may take to be ready.
    pub ready_within_ns: DurNs,
    /// What is started.
    pub kind: ServerKind,
}

/// What a server definition starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ServerKind {
    /// A program.
    Command {
        /// The argument vector; never a shell string.
        command: Vec<String>,
        /// Variables that are set.
        env: BTreeMap<String, String>,
        /// Names of variables that are passed on from the runner's environment.
        pass: Vec<String>,
        /// The signal that asks it to end, `TERM`.
        stop_signal: String,
        /// How long it may take to end before it is killed.
        stop_within_ns: DurNs,
    },
    /// The simulated engine: `assize` itself started again, or in process under the virtual driver.
    Sim(SimServer),
}

/// Parameters of the simulated engine. Definitions: `docs/sim.md`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimServer {
    /// The served model's name.
    pub model: String,
    /// Prefill cost of a prompt, apart from its tokens.
    pub prefill_base_ns: DurNs,
    /// Prefill cost of each prompt token.
    pub prefill_per_token_ns: DurNs,
    /// One decode step with one sequence.
    pub step_ns: DurNs,
    /// What each further sequence adds to a step.
    pub step_per_seq_ns: DurNs,
    /// Sequences that run at once.
    pub max_seqs: u32,
    /// Tokens in one stream event.
    pub tokens_per_event: u32,
    /// Spread of a step's duration, in millionths; drawn from `seed`.
    pub jitter_ppm: u32,
    /// The seed of jitter and faults.
    pub seed: u32,
    /// From start to the first good answer of `/health`.
    pub startup_ns: DurNs,
    /// Faults in the words of `assize sim --fault`.
    pub faults: Vec<String>,
}

impl ServerDef {
    /// Canonical bytes and their hash.
    pub fn to_object(&self) -> (Hash, Vec<u8>) {
        let bytes = to_canonical_json(self)
            .expect("durations below 2^53 ns (104 days) have a canonical form");
        (Hash::of(&bytes), bytes)
    }

    /// Reads an object's bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<ServerDef, ObjectError> {
        let server: ServerDef =
            serde_json::from_slice(bytes).map_err(|source| ObjectError::Shape {
                expected: SERVER_FORMAT,
                source,
            })?;
        if server.format != SERVER_FORMAT {
            return Err(ObjectError::Format {
                expected: SERVER_FORMAT,
                found: server.format,
            });
        }
        Ok(server)
    }
}
