//! The plan's data model: what decides the experiment, and nothing else.

use assize_units::{Bytes, DurNs, Ratio};
use serde::{Deserialize, Serialize};

use crate::rules::{Family, Hypothesis, ValueUnit};
use crate::{CanonicalError, Hash, PLAN_FORMAT, to_canonical_json};

/// A frozen plan. Field order here is for the reader of this code; the bytes are canonical.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// `assize-plan/1`.
    pub format: String,
    /// Version of the study language.
    pub language: u32,
    /// The study's name.
    pub study: String,
    /// The author's question, verbatim.
    pub question: Option<String>,
    /// The author's limits of what is claimed, verbatim.
    pub scope: Option<String>,
    /// The plan that this one repeats.
    pub replicates: Option<Hash>,
    /// The definition of the draws, `pcg64-q64/1`.
    pub draw: String,
    /// The driver that must be used.
    pub driver: DriverChoice,
    /// How long before a deadline the driver stops sleeping and spins.
    pub spin_ns: DurNs,
    /// What happens to a block that the client's side of the world broke.
    pub interrupted: Interrupted,
    /// Bytes of one response at most; more is the terminal `too_large`.
    pub max_response_bytes: Bytes,
    /// Named values with their formulas.
    pub values: Vec<NamedValue>,
    /// What is compared.
    pub arms: Vec<Arm>,
    /// The panels of prompts, with what is known of their lengths.
    pub panels: Vec<Panel>,
    /// What is sent; one entry for each class and set of arms that send the same bytes.
    pub requests: Vec<RequestClass>,
    /// How the offsets of open cells were made, so that anybody can make them again.
    pub arrivals: Vec<Arrivals>,
    /// How arms and cells were put in order, with the counts that show the balance.
    pub orders: Vec<OrderTable>,
    /// Server invocations in the order of execution.
    pub units: Vec<Unit>,
    /// The families of hypotheses and their rules.
    pub rules: Vec<Family>,
    /// Sets of arms that may differ only in what is listed.
    pub compare: Vec<Comparison>,
    /// Files named and hashed, not carried.
    pub external: Vec<External>,
    /// What the plan may not exceed.
    pub limits: Limits,
}

/// Why bytes are no plan.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// The JSON does not fit the model.
    #[error("not a plan: {0}")]
    Shape(#[from] serde_json::Error),
    /// The format is of another version.
    #[error("the plan's format is `{0}`, this build reads `{PLAN_FORMAT}`")]
    Format(String),
    /// The bytes mean a plan, but are not its canonical form.
    #[error("the plan's bytes are not canonical")]
    NotCanonical,
    /// A part names another that does not exist.
    #[error("{0}")]
    Dangling(String),
}

impl Plan {
    /// The plan's only byte form.
    pub fn to_canonical(&self) -> Result<Vec<u8>, CanonicalError> {
        to_canonical_json(self)
    }

    /// Reads canonical bytes; other bytes of the same meaning are refused.
    pub fn from_canonical(bytes: &[u8]) -> Result<Plan, PlanError> {
        #[derive(Deserialize)]
        struct Head {
            format: String,
        }
        let head: Head = serde_json::from_slice(bytes)?;
        if head.format != PLAN_FORMAT {
            return Err(PlanError::Format(head.format));
        }
        let plan: Plan = serde_json::from_slice(bytes)?;
        if plan.to_canonical().map_err(|_| PlanError::NotCanonical)? != bytes {
            return Err(PlanError::NotCanonical);
        }
        plan.check()?;
        Ok(plan)
    }

    /// Checks that every reference inside the plan resolves.
    fn check(&self) -> Result<(), PlanError> {
        let dangling = |text: String| Err(PlanError::Dangling(text));
        for (place, unit) in self.units.iter().enumerate() {
            if unit.n as usize != place {
                return dangling(format!("unit {place} is numbered {}", unit.n));
            }
            if self.arm(&unit.arm).is_none() {
                return dangling(format!(
                    "unit {} runs arm `{}`, which the plan does not define",
                    unit.n, unit.arm
                ));
            }
            for cell in unit.warmup.iter().chain(&unit.cells) {
                if let Some(class) = cell
                    .classes
                    .iter()
                    .find(|class| self.class(**class).is_none())
                {
                    return dangling(format!(
                        "cell `{}` sends request class {class}, which does not exist",
                        cell.name
                    ));
                }
            }
        }
        for arm in &self.arms {
            let ArmTarget::Endpoint { base } = &arm.target else {
                continue;
            };
            if base.starts_with("https://") != arm.tls.is_some() {
                return dangling(format!(
                    "arm `{}` speaks to {base}: `tls` belongs to `https`, and `https` needs it",
                    arm.name
                ));
            }
        }
        for (place, class) in self.requests.iter().enumerate() {
            if class.n as usize != place {
                return dangling(format!("request class {place} is numbered {}", class.n));
            }
        }
        for family in &self.rules {
            for Hypothesis {
                text,
                candidate,
                control,
                ..
            } in &family.hypotheses
            {
                for arm in std::iter::once(candidate).chain(control) {
                    if self.arm(arm).is_none() {
                        return dangling(format!(
                            "`{text}` names arm `{arm}`, which the plan does not define"
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// The arm of that name.
    pub fn arm(&self, name: &str) -> Option<&Arm> {
        self.arms.iter().find(|arm| arm.name == name)
    }

    /// The request class of that number.
    pub fn class(&self, n: u32) -> Option<&RequestClass> {
        self.requests.get(n as usize)
    }

    /// Environment variables whose values are secret: keys and headers given by name.
    pub fn secret_names(&self) -> Vec<&str> {
        let arms = self.arms.iter().flat_map(|arm| {
            arm.key_env
                .iter()
                .map(String::as_str)
                .chain(env_names(&arm.headers))
        });
        let classes = self
            .requests
            .iter()
            .flat_map(|class| env_names(&class.headers));
        let mut names: Vec<&str> = arms.chain(classes).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Whether executing the plan starts a program.
    pub fn starts_commands(&self) -> bool {
        self.arms
            .iter()
            .any(|arm| matches!(arm.target, ArmTarget::Server { .. }))
    }

    /// Every object that the plan names.
    pub fn object_hashes(&self) -> Vec<Hash> {
        let mut hashes: Vec<Hash> = Vec::new();
        for arm in &self.arms {
            if let ArmTarget::Server { object } = &arm.target {
                hashes.push(*object);
            }
            if let Some(Tls::Ca(object)) = arm.tls {
                hashes.push(object);
            }
        }
        for class in &self.requests {
            hashes.extend(&class.bodies);
        }
        for cell in self
            .units
            .iter()
            .flat_map(|unit| unit.warmup.iter().chain(&unit.cells))
        {
            hashes.push(cell.load.trace());
        }
        hashes.sort_unstable();
        hashes.dedup();
        hashes
    }
}

fn env_names(headers: &[(String, HeaderText)]) -> impl Iterator<Item = &str> {
    headers.iter().filter_map(|(_, value)| match value {
        HeaderText::Env(name) => Some(name.as_str()),
        HeaderText::Text(_) => None,
    })
}

/// Which driver a plan wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DriverChoice {
    /// io_uring where the kernel and the sandbox permit it, else epoll; the evidence says which.
    Any,
    /// io_uring or a refusal.
    IoUring,
    /// epoll.
    Epoll,
}

/// What happens to a block that was broken by the client's side of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interrupted {
    /// It stays as it is; hypotheses are not evaluated.
    Final,
    /// It is run again whole; the broken one stays in the evidence.
    Rerun,
}

/// A name of the study with its formula and its exact value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedValue {
    /// The name under `let`.
    pub name: String,
    /// The formula as written.
    pub formula: String,
    /// The exact value as numerator and denominator, in the unit beside it.
    pub value: Ratio,
    /// The unit of the value.
    pub unit: ValueUnit,
    /// Pilots or declared figures that the value stands on.
    pub from: Vec<String>,
}

/// One thing that is compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arm {
    /// The study's name for it; also its folder.
    pub name: String,
    /// The name that a report shows.
    pub label: String,
    /// How its answers are to be read.
    pub engine: Engine,
    /// The model name that requests carry.
    pub model: Option<String>,
    /// A server that the run starts, or an endpoint that somebody else runs.
    pub target: ArmTarget,
    /// By what the peer proves who it is; set exactly where the target's base is `https`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// The environment variable that holds the API key.
    pub key_env: Option<String>,
    /// Headers of every request of this arm.
    pub headers: Vec<(String, HeaderText)>,
    /// The author's words about this arm, verbatim.
    pub discloses: Option<String>,
}

/// What the reader must know of an engine's answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Engine {
    /// The library's name for it, `none` where the study names none.
    pub name: String,
    /// Whether a stream must end with `[DONE]`.
    pub done: bool,
}

/// Where an arm's requests go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ArmTarget {
    /// A server object: a command to start, or the simulated engine.
    Server {
        /// The hash of the [`crate::ServerDef`] object.
        object: Hash,
    },
    /// An endpoint that somebody else runs.
    Endpoint {
        /// `http://host:port/base/path`.
        base: String,
    },
}

/// By what the peer of an `https` arm proves who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Tls {
    /// By a certificate that leads to one of these roots.
    Roots(Roots),
    /// By a certificate that leads to one of an object's: PEM text, carried in the bundle.
    Ca(Hash),
    /// By nothing: any certificate is taken.
    Insecure,
}

/// Roots that a plan names and does not carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Roots {
    /// Those of the system that executes the plan.
    System,
}

/// A header's value: literal text, or the name of an environment variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeaderText {
    /// The value itself.
    Text(String),
    /// The environment variable that holds it; the value reaches no file.
    Env(String),
}

/// A panel of prompts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Panel {
    /// The study's name for it.
    pub name: String,
    /// How many prompts it has.
    pub prompts: u32,
    /// Whether its token ids were drawn.
    pub synthetic: bool,
    /// What is known of the prompts' lengths.
    pub tokens: Option<PanelTokens>,
}

/// The lengths of a panel's prompts, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PanelTokens {
    /// The shortest.
    pub fewest: u32,
    /// The longest.
    pub most: u32,
    /// Whether the plan's own token ids prove it; else the author declared it.
    pub proved: bool,
}

/// One class of requests as rendered for a set of arms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestClass {
    /// Its place in the plan.
    pub n: u32,
    /// The study's name for it.
    pub name: String,
    /// The arms that send these bytes.
    pub arms: Vec<String>,
    /// `POST`.
    pub method: String,
    /// The path with the endpoint's own path before it.
    pub path: String,
    /// Headers in the order of sending.
    pub headers: Vec<(String, HeaderText)>,
    /// The exact bodies, one object a prompt.
    pub bodies: Vec<Hash>,
    /// Whether a stream is asked for.
    pub stream: bool,
    /// Prompts in one request: 1, but for a batched warmup call.
    pub choices: u32,
    /// What the answer must be.
    pub expect: Expectation,
    /// From admission to the end of the message.
    pub timeout_ns: DurNs,
    /// Limit of connecting, where the plan gives one.
    pub connect_timeout_ns: Option<DurNs>,
    /// Limit of the silence between two events, where the plan gives one.
    pub idle_timeout_ns: Option<DurNs>,
}

/// What a valid answer must have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// The forced output length in tokens, for each choice.
    pub output_tokens: Option<u64>,
}

/// One server invocation of one arm: what happens between its start and its stop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unit {
    /// Its place in the order of execution.
    pub n: u32,
    /// The block set.
    pub set: String,
    /// The block's number in its set.
    pub block: u32,
    /// The seed of the block's draws, as decimal text.
    pub block_seed: String,
    /// The arm.
    pub arm: String,
    /// The unit's folder in the evidence.
    pub path: String,
    /// Whether the set enters no test and no validity.
    pub excluded: bool,
    /// Whether the server is started afresh for this unit (arms with a server only).
    pub restart: bool,
    /// The warmup before the first cell.
    pub warmup: Option<Cell>,
    /// The cells in order.
    pub cells: Vec<Cell>,
}

/// One load on one arm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// The name as the study writes it, `sweep(4/s)`.
    pub name: String,
    /// The name as a folder, `sweep.4-per-s`.
    pub path: String,
    /// Request classes that the trace's `classes` refer to.
    pub classes: Vec<u32>,
    /// When requests are sent.
    pub load: Load,
    /// How many requests.
    pub requests: u32,
    /// Request `i` has the id `<prefix>-<i, five digits or more>`.
    pub id_prefix: String,
    /// Quiet time before the cell.
    pub settle_ns: DurNs,
    /// Limit of the drain, from the last admission.
    pub drain_ns: DurNs,
    /// When connections are made.
    pub connections: Connections,
    /// What is written of the answers.
    pub record: RecordLevel,
    /// Which time a receive carries.
    pub receive: Receive,
}

impl Cell {
    /// The id of a request: `<prefix>-<index, five digits or more>`.
    pub fn request_id(&self, index: usize) -> String {
        format!("{}-{index:05}", self.id_prefix)
    }
}

/// When a cell's requests are sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Load {
    /// At the trace's offsets, whatever the answers do.
    Open {
        /// The hash of the [`crate::TraceObject`].
        trace: Hash,
        /// A declared limit of requests in flight behind the schedule.
        cap: Option<u32>,
    },
    /// `clients` in flight; the next is admitted at the end of one before it.
    Closed {
        /// The hash of the [`crate::TraceObject`] (which has no offsets).
        trace: Hash,
        /// Requests in flight at most.
        clients: u32,
    },
}

impl Load {
    /// The trace's hash.
    pub fn trace(&self) -> Hash {
        match self {
            Load::Open { trace, .. } | Load::Closed { trace, .. } => *trace,
        }
    }

    /// Whether dispatch depends on the clock alone.
    pub fn is_open(&self) -> bool {
        matches!(self, Load::Open { .. })
    }
}

/// How the offsets of one open cell were made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arrivals {
    /// The cell's name as the study writes it.
    pub cell: String,
    /// The stages, each beginning where the one before it ends.
    pub stages: Vec<ArrivalStage>,
}

/// One stage of an open load; exactly one of `requests` and `lasts_s` is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArrivalStage {
    /// The process.
    pub process: ArrivalProcess,
    /// How many arrive in it.
    pub requests: Option<u32>,
    /// How many seconds it lasts.
    pub lasts_s: Option<Ratio>,
}

/// An arrival process. Definitions: `docs/plan-format.md`, "Draws".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ArrivalProcess {
    /// Exponential gaps.
    Poisson {
        /// Arrivals a second.
        rate: Ratio,
    },
    /// Gaps that are sums of `shape` exponentials.
    Gamma {
        /// Arrivals a second.
        rate: Ratio,
        /// Exponentials in one gap.
        shape: u32,
    },
    /// Equal gaps from the origin on.
    Every {
        /// Seconds between arrivals.
        gap_s: Ratio,
    },
    /// `size` at once, from the origin on.
    Burst {
        /// Arrivals of one burst.
        size: u32,
        /// Seconds between bursts.
        gap_s: Ratio,
    },
}

/// When connections are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Connections {
    /// A new one for every request.
    Fresh,
    /// An idle one is used again if it was idle for at most this long.
    Reuse {
        /// The bound of the idle time.
        idle_ns: DurNs,
    },
    /// This many are opened before the cell's origin and used again without bound.
    Preopened {
        /// How many.
        n: u32,
    },
}

/// What is written of the answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordLevel {
    /// Every received byte.
    Wire,
    /// Times and the runtime's classification of events: claims.
    Events,
}

/// Which time a receive carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Receive {
    /// The reading of the monotonic clock when the completion was reaped.
    Reap,
    /// The kernel's receive stamp; completions may gather before they are reaped.
    Kernel {
        /// The longest gathering time.
        gather_ns: DurNs,
    },
}

/// How one block set was put in order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderTable {
    /// The block set.
    pub set: String,
    /// Blocks in the set.
    pub blocks: u32,
    /// `counterbalanced`, `rotating`, `fixed` or `shuffled`.
    pub arm_order: String,
    /// `alternating`, `rotating`, `fixed` or `shuffled`.
    pub cell_order: String,
    /// For each block, the arms in order.
    pub arms: Vec<Vec<String>>,
    /// For each block, the cells in order.
    pub cells: Vec<Vec<String>>,
    /// Largest minus smallest count of (arm, position).
    pub position_spread: u32,
    /// Largest minus smallest count of (arm, position, order of the cells).
    pub position_in_cell_order_spread: u32,
    /// Largest minus smallest count of immediate successions of two arms.
    pub succession_spread: u32,
}

/// A set of arms that may differ only in what is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// The study's name for it.
    pub name: String,
    /// The arms.
    pub arms: Vec<String>,
    /// The keys in which they may differ.
    pub differ: Vec<String>,
}

/// A file that is named and hashed, not carried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct External {
    /// Its path as the study gives it.
    pub path: String,
    /// Its hash at freezing.
    pub hash: Hash,
    /// Its size at freezing.
    pub bytes: Bytes,
}

/// What the plan may not exceed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Planned time.
    pub duration_ns: Option<DurNs>,
    /// Planned requests.
    pub requests: Option<u64>,
    /// Planned output tokens.
    pub output_tokens: Option<u64>,
}
