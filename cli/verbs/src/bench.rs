//! `bench URL`: one endpoint, one load, one summary, without a study file.
//!
//! The options become a study in memory, which is compiled, frozen, executed and verified as any
//! other: the figures come from the same reader by the same definitions.

use std::path::PathBuf;

use assize_codes::{E1001, E1002};
use assize_core::RunControl;
use assize_evidence::{FolderStore, MemoryStore, Store};
use assize_host::{Base, Programs, RunEvent, SystemWall, Wall, tls_of_endpoint};
use assize_plan::{DriverChoice, Hash, Tls};
use assize_reader::study::Analysis;
use assize_units::{DurNs, Ratio};

use crate::asking::{self, Endpoint};
use crate::problem::{Problem, Status};
use crate::run::{CareRequest, Hands, execute_with, secrets, take_driver};
use crate::study::{Compiled, StudyText, compile_text};
use crate::verify;

/// Which API is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Api {
    /// `/v1/chat/completions`.
    Chat,
    /// `/v1/completions`.
    Completions,
}

/// How an open loop's requests arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Arrivals {
    /// At equal gaps.
    Periodic,
    /// At exponential gaps, drawn from the seed.
    Poisson,
}

/// What is measured.
pub struct BenchOptions<'a> {
    /// `http://host:port`, with or without `/v1`.
    pub url: &'a str,
    /// The panel's bytes, JSONL.
    pub prompts: Vec<u8>,
    /// The model's name; asked of the endpoint where there is none.
    pub model: Option<&'a str>,
    /// Chosen by the prompts where there is none.
    pub api: Option<Api>,
    /// Requests in flight; behind `rate` a limit.
    pub concurrency: Option<u32>,
    /// Requests a second: an open loop.
    pub rate: Option<Ratio>,
    /// How they arrive.
    pub arrivals: Arrivals,
    /// Requests to send.
    pub requests: u32,
    /// Requests before, which enter no figure.
    pub warmup: u32,
    /// Output tokens at most.
    pub max_tokens: u32,
    /// As sent.
    pub temperature: &'a str,
    /// Limit of one request.
    pub timeout: DurNs,
    /// Seed of Poisson arrivals.
    pub seed: u64,
    /// The environment variable of the API key.
    pub key_env: Option<&'a str>,
    /// Certificates (PEM) by which an `https` address is verified, for the system's.
    pub ca: Option<Vec<u8>>,
    /// An `https` address is not verified.
    pub insecure: bool,
    /// What the client asks of this host.
    pub care: CareRequest,
    /// Reads an environment variable.
    pub environment: &'a dyn Fn(&str) -> Option<String>,
    /// Keeps the evidence here.
    pub out: Option<PathBuf>,
    /// Host's programs (none is started by a bench).
    pub programs: Programs,
    /// Stops it, and shows its progress.
    pub control: &'a RunControl,
}

/// A bench that has ended.
#[derive(Debug)]
pub struct Benched {
    /// What the reader found.
    pub analysis: Analysis,
    /// The API's base address.
    pub base: String,
    /// The model.
    pub model: String,
    /// The API.
    pub api: Api,
    /// The load, in the study's words.
    pub load: String,
    /// SHA-256 of the prompts' bytes.
    pub prompts: Hash,
    /// By what the endpoint proved who it is; none in cleartext.
    pub tls: Option<Tls>,
    /// The driver and why.
    pub driver: (String, String),
}

impl Benched {
    /// 1 on any failed request (a failed warmup among them), else 0.
    pub fn status(&self) -> Status {
        let all_valid = self.analysis.cells.iter().all(|cell| {
            cell.summary
                .as_ref()
                .is_some_and(|summary| summary.failed == 0 && summary.valid == summary.offered)
        });
        let measured = self.analysis.cells.iter().any(|cell| cell.cell == CELL);
        if all_valid && measured {
            Status::Done
        } else {
            Status::No
        }
    }
}

/// The name of the measured cell.
pub const CELL: &str = "load";

/// What the study in memory calls the given certificates.
const CA_FILE: &str = "ca.pem";

/// Measures.
pub fn bench(
    options: BenchOptions<'_>,
    show: &mut dyn FnMut(RunEvent<'_>),
) -> Result<Benched, Problem> {
    let base = api_base(options.url)?;
    let key = match options.key_env {
        None => None,
        Some(name) => Some(
            (options.environment)(name)
                .filter(|value| !value.is_empty())
                .ok_or_else(|| {
                    Problem::world(
                        assize_codes::E0905,
                        format!("the environment variable {name} is not set"),
                    )
                })?,
        ),
    };
    let model = match options.model {
        Some(model) => model.to_owned(),
        None => first_model(&options, &base, key.as_deref())?,
    };
    let api = options.api.unwrap_or_else(|| api_of(&options.prompts));
    let load = load_text(&options)?;
    let text = study_text(&options, &base, &model, api, &load);
    let mut files = vec![("prompts.jsonl".to_owned(), options.prompts.clone())];
    files.extend(options.ca.clone().map(|ca| (CA_FILE.to_owned(), ca)));
    let compiled = compile_text(&StudyText {
        name: "bench",
        text: &text,
        files,
    });
    let bundle = match compiled {
        Compiled {
            bundle: Some(bundle),
            ..
        } => bundle,
        Compiled { diagnostics, .. } => return Err(diagnostics.first_problem()),
    };
    let secrets = secrets(&bundle, options.environment)?;
    let mut driver = take_driver(bundle.plan.driver, &options.care)?;
    let facts = driver.facts();
    let store: Box<dyn Store> = match &options.out {
        None => Box::new(MemoryStore::new()),
        Some(folder) => Box::new(FolderStore::create_root(folder).map_err(|error| {
            Problem::world(
                assize_codes::E0902,
                format!("{}: {error}", folder.display()),
            )
        })?),
    };
    let hands = Hands {
        programs: options.programs,
        store: store.as_ref(),
        secrets: &secrets,
        control: options.control,
        consent: "in process",
        calibration: None,
    };
    let outcome = execute_with(&bundle, driver.as_mut(), hands, show);
    if let Some(failure) = outcome.failure {
        return Err(failure.into());
    }
    let analysis = verify::read(store.as_ref(), None)?;
    Ok(Benched {
        analysis,
        base,
        model,
        api,
        load,
        tls: bundle.plan.arms.first().and_then(|arm| arm.tls),
        prompts: Hash::of(&options.prompts),
        driver: (facts.name, facts.why),
    })
}

/// Adds `/v1` where the address has no path.
fn api_base(url: &str) -> Result<String, Problem> {
    let bad = || {
        Problem::usage(E1001, format!("{url} is no address of an API"))
            .help("http://host:port or http://host:port/v1, without credentials, query or fragment")
    };
    let base = Base::parse(url).ok_or_else(bad)?;
    let url = url.trim_end_matches('/');
    Ok(if base.path.is_empty() {
        format!("{url}/v1")
    } else {
        url.to_owned()
    })
}

/// Chat where the first row has messages.
fn api_of(prompts: &[u8]) -> Api {
    let first = prompts
        .split(|byte| *byte == b'\n')
        .find(|line| !line.trim_ascii().is_empty());
    let row = first.and_then(|line| serde_json::from_slice::<serde_json::Value>(line).ok());
    if row.is_some_and(|row| row.get("messages").is_some()) {
        Api::Chat
    } else {
        Api::Completions
    }
}

fn load_text(options: &BenchOptions<'_>) -> Result<String, Problem> {
    let Some(rate) = options.rate else {
        return Ok(format!("closed({})", options.concurrency.unwrap_or(1)));
    };
    let rate = rate
        .to_decimal()
        .filter(|_| rate.is_positive())
        .ok_or_else(|| {
            Problem::usage(
                E1001,
                "--rate is a number of requests a second above 0, such as 5 or 0.5",
            )
        })?;
    let schedule = match options.arrivals {
        Arrivals::Periodic => format!("every(1 / {rate}/s)"),
        Arrivals::Poisson => format!("poisson({rate}/s)"),
    };
    Ok(match options.concurrency {
        None => schedule,
        Some(limit) => format!("{schedule} with cap({limit})"),
    })
}

fn study_text(options: &BenchOptions<'_>, base: &str, model: &str, api: Api, load: &str) -> String {
    // A JSON string is a double-quoted YAML scalar.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let api = match api {
        Api::Chat => "openai/chat",
        Api::Completions => "openai/completions",
    };
    let key = options
        .key_env
        .map(|name| format!(", key: {}", quoted(name)))
        .unwrap_or_default();
    let trust = match (&options.ca, options.insecure) {
        (_, true) => ", insecure: true".to_owned(),
        (Some(_), false) => format!(", ca: {CA_FILE}"),
        (None, false) => String::new(),
    };
    let warmup = match options.warmup {
        0 => String::new(),
        count => {
            let clients = options.concurrency.unwrap_or(1).min(count);
            format!("warmup: {{ load: closed({clients}), requests: {count} }}\n")
        }
    };
    format!(
        "assize: 1\nstudy: bench\nseed: {seed}\n\
         prompts:\n  panel: {{ file: prompts.jsonl }}\n\
         requests:\n  ask:\n    api: {api}\n    prompt: panel\n    output: at_most({max_tokens})\n    \
         body: {{ temperature: {temperature} }}\n    timeout: {timeout}\n\
         arms:\n  endpoint: {{ endpoint: {base}, model: {model}{key}{trust} }}\n\
         {warmup}drain: {timeout}\n\
         cells:\n  {CELL}:\n    load: {load}\n    requests: {requests}\n",
        seed = options.seed,
        max_tokens = options.max_tokens,
        temperature = options.temperature,
        timeout = assize_sim::engine::write_duration(options.timeout),
        base = quoted(base),
        model = quoted(model),
        requests = options.requests,
    )
}

/// The first model that the endpoint tells.
fn first_model(
    options: &BenchOptions<'_>,
    base: &str,
    key: Option<&str>,
) -> Result<String, Problem> {
    let no_model = |why: &str| {
        Problem::world(E1002, format!("{base}/models tells no model: {why}"))
            .help("give the name that the server serves: --model NAME")
    };
    let parts = Base::parse(base).ok_or_else(|| no_model("not an address"))?;
    let wall_ns = SystemWall.unix_ns();
    let tls = tls_of_endpoint(&parts, options.ca.as_deref(), options.insecure, wall_ns)?;
    let mut driver = take_driver(DriverChoice::Any, &options.care)?;
    let endpoint = Endpoint {
        base: &parts,
        tls,
        key,
    };
    let (status, body) = asking::get(driver.as_mut(), endpoint, "/models")?;
    if status != 200 {
        return Err(no_model(&format!("status {status}")));
    }
    let answer: serde_json::Value =
        serde_json::from_slice(&body).map_err(|error| no_model(&error.to_string()))?;
    let id = answer["data"][0]["id"]
        .as_str()
        .ok_or_else(|| no_model("its answer has no data[0].id"))?;
    Ok(id.to_owned())
}
