//! The command line.

use std::path::PathBuf;

use assize_units::DurNs;
use assize_verbs::bench::{Api, Arrivals};
use assize_verbs::run::CareRequest;
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Pre-declared, frozen experiments on LLM serving endpoints, and their verdicts.
#[derive(Debug, Parser)]
#[command(
    name = "assize",
    version,
    max_term_width = 100,
    disable_help_subcommand = true
)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Check a study; write nothing, send nothing
    Check(Check),
    /// Preview what a study would do, and what each of its rules can conclude
    Plan(PlanArguments),
    /// Compile a study to a plan that nothing can change any more, and print its hash
    Freeze(Freeze),
    /// Execute a plan on this host
    Run(Run),
    /// Check evidence: every hash, every count, and a replay of the raw bytes
    Verify(Verify),
    /// Decide by the frozen rules and show the result
    Report(Report),
    /// Measure one endpoint under one load, without a study file
    Bench(Bench),
    /// Serve the simulated engine on a port of 127.0.0.1
    Sim(Sim),
    /// Look at this host: is it fit to measure on, and what to do about it
    Doctor(Doctor),
    /// Measure the instrument itself here: errors of its stamps, its lag and its cost
    Calibrate(Calibrate),
    /// Run the whole path on simulated engines: about a minute
    Demo(Demo),
    /// Print the page of a diagnostic code
    Explain(Explain),
    /// Print a completion script for a shell
    Completions(Completions),
    #[command(hide = true)]
    Keeper(Keeper),
    #[command(hide = true)]
    Peer,
}

/// Human text or one JSON document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people; may change any day
    Human,
    /// For programs; versioned
    Json,
}

/// Formats of diagnostics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DiagnosticFormat {
    /// For people
    Human,
    /// `assize-diagnostics/1`
    Json,
    /// Workflow annotations
    Github,
}

/// Formats of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// For people
    Human,
    /// `assize-report/1`
    Json,
    /// One row a block, arm and cell
    Csv,
}

#[derive(Debug, Args)]
pub struct Check {
    /// The study file, or a folder with a study.yaml
    pub study: PathBuf,
    /// Form of the diagnostics
    #[arg(long, value_enum, default_value = "human")]
    pub format: DiagnosticFormat,
    /// Exit 1 on warnings too
    #[arg(long)]
    pub deny_warnings: bool,
}

#[derive(Debug, Args)]
pub struct PlanArguments {
    /// The study file, or a folder with a study.yaml
    pub study: PathBuf,
    /// Form of the preview
    #[arg(long, value_enum, default_value = "human")]
    pub format: Format,
}

#[derive(Debug, Args)]
pub struct Freeze {
    /// The study file, or a folder with a study.yaml
    pub study: PathBuf,
    /// The plan's folder; default: NAME.plan in this folder, NAME being the study's
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// Form of the answer
    #[arg(long, value_enum, default_value = "human")]
    pub format: Format,
}

#[derive(Debug, Args)]
pub struct Run {
    /// The plan's folder, NAME.plan
    pub plan: PathBuf,
    /// The evidence's folder; default: NAME.evidence beside the plan
    #[arg(long)]
    pub out: Option<PathBuf>,
    /// The plan's hash, 8 or more digits: consent to the commands and addresses that it names
    #[arg(long, value_name = "HASH")]
    pub approve: Option<String>,
    /// A calibration of this host that goes into the evidence: what `calibrate --format json` wrote
    #[arg(long, value_name = "FILE")]
    pub calibration: Option<PathBuf>,
    #[command(flatten)]
    pub care: Care,
    /// Form of the answer
    #[arg(long, value_enum, default_value = "human")]
    pub format: Format,
}

/// What the client asks of this host.
#[derive(Debug, Args)]
pub struct Care {
    /// CPUs that the client's thread keeps to while a cell runs, such as 1 or 0,2
    #[arg(long, value_name = "CPUS", value_delimiter = ',')]
    pub pin: Vec<u32>,
    /// Keep the client's memory from being paged out
    #[arg(long)]
    pub lock_memory: bool,
}

impl Care {
    pub fn request(&self) -> CareRequest {
        CareRequest {
            cpus: self.pin.clone(),
            lock_memory: self.lock_memory,
        }
    }
}

#[derive(Debug, Args)]
pub struct Verify {
    /// The evidence's folder, NAME.evidence
    pub evidence: PathBuf,
    /// The seal that an outside copy names, 64 hex digits
    #[arg(long, value_name = "HASH")]
    pub seal: Option<String>,
    /// Form of the answer
    #[arg(long, value_enum, default_value = "human")]
    pub format: Format,
}

#[derive(Debug, Args)]
pub struct Report {
    /// The evidence's folder, NAME.evidence
    pub evidence: PathBuf,
    /// The seal that an outside copy names, 64 hex digits
    #[arg(long, value_name = "HASH")]
    pub seal: Option<String>,
    /// Form on standard output
    #[arg(long, value_enum, default_value = "human")]
    pub format: ReportFormat,
    /// Write one self-contained HTML page to this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Exit 1 unless every hypothesis is supported
    #[arg(long, value_name = "VERDICT", value_parser = ["supported"])]
    pub require: Option<String>,
}

#[derive(Debug, Args)]
pub struct Bench {
    /// Address of the API: http://host:port, with or without /v1
    pub url: String,
    /// Prompts, one JSON object a line: prompt, messages or prompt_token_ids
    #[arg(long, value_name = "FILE")]
    pub prompts: PathBuf,
    /// The model's name; default: the first that /v1/models tells
    #[arg(long)]
    pub model: Option<String>,
    /// Which API; default: chat where the prompts are messages
    #[arg(long, value_enum)]
    pub api: Option<Api>,
    /// Requests in flight (closed loop); with --rate a limit behind the schedule
    #[arg(long, value_name = "N")]
    pub concurrency: Option<u32>,
    /// Requests a second (open loop), such as 5 or 0.5
    #[arg(long, value_name = "PER_SECOND")]
    pub rate: Option<String>,
    /// How the open loop's requests arrive
    #[arg(long, value_enum, default_value = "periodic")]
    pub arrivals: Arrivals,
    /// Requests to send
    #[arg(long, default_value_t = 64)]
    pub requests: u32,
    /// Requests sent before, which enter no figure
    #[arg(long, default_value_t = 0, value_name = "N")]
    pub warmup: u32,
    /// Output tokens of an answer at most
    #[arg(long, default_value_t = 128, value_name = "N")]
    pub max_tokens: u32,
    /// Sampling temperature, as sent
    #[arg(long, default_value = "0")]
    pub temperature: String,
    /// Limit of one request
    #[arg(long, default_value = "300s", value_parser = duration)]
    pub timeout: DurNs,
    /// Seed of Poisson arrivals
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// The environment variable that holds the API key
    #[arg(long, value_name = "NAME")]
    pub key_env: Option<String>,
    /// Certificates (PEM) by which an https address is verified; default: the system's
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub ca: Option<PathBuf>,
    /// Do not verify an https address; the evidence says so
    #[arg(long)]
    pub insecure: bool,
    /// Keep the evidence in this folder
    #[arg(long)]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub care: Care,
    /// Form of the summary
    #[arg(long, value_enum, default_value = "human")]
    pub format: Format,
}

#[derive(Debug, Args)]
pub struct Sim {
    /// The port on 127.0.0.1; 0 takes a free one
    #[arg(long, default_value_t = 8000)]
    pub port: u16,
    /// The served model's name
    #[arg(long, default_value = "sim")]
    pub model: String,
    /// Prefill cost of a prompt, apart from its tokens
    #[arg(long, default_value = "2ms", value_parser = duration)]
    pub prefill_base: DurNs,
    /// Prefill cost of each prompt token
    #[arg(long, default_value = "20us", value_parser = duration)]
    pub prefill_per_token: DurNs,
    /// One decode step with one sequence
    #[arg(long, default_value = "8ms", value_parser = duration)]
    pub step: DurNs,
    /// What each further sequence adds to a step
    #[arg(long, default_value = "200us", value_parser = duration)]
    pub step_per_seq: DurNs,
    /// Sequences that run at once
    #[arg(long, default_value_t = 64)]
    pub max_seqs: u32,
    /// Tokens in one stream event
    #[arg(long, default_value_t = 1)]
    pub tokens_per_event: u32,
    /// Spread of a step's duration, in millionths
    #[arg(long, default_value_t = 0)]
    pub jitter_ppm: u32,
    /// Seed of jitter and faults
    #[arg(long, default_value_t = 0)]
    pub seed: u32,
    /// For so long every request is answered 503
    #[arg(long, default_value = "0s", value_parser = duration)]
    pub startup: DurNs,
    /// What goes wrong: NAME[(…)]@REQUESTS, such as hang@3 or close_mid_stream(4)@5%; see docs/sim.md
    #[arg(long, value_name = "FAULT@REQUESTS")]
    pub fault: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Doctor {
    /// Form of the findings
    #[arg(long, value_enum, default_value = "human")]
    pub format: Format,
    /// Exit 1 if anything is bad
    #[arg(long)]
    pub strict: bool,
}

#[derive(Debug, Args)]
pub struct Calibrate {
    /// Fewer samples, in about ten seconds
    #[arg(long)]
    pub quick: bool,
    #[command(flatten)]
    pub care: Care,
    /// Draw the errors and lags to this file, one self-contained SVG
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Form of the figures
    #[arg(long, value_enum, default_value = "human")]
    pub format: Format,
}

#[derive(Debug, Args)]
pub struct Demo {
    /// Where plan, evidence and page go; default: assize-demo in this folder
    #[arg(long)]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Explain {
    /// A code such as E0206
    pub code: String,
}

#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub struct Keeper {
    /// What the runner says
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<std::ffi::OsString>,
}

fn duration(text: &str) -> Result<DurNs, String> {
    assize_verbs::sim::parse_duration(text)
        .ok_or_else(|| "a duration is a number with a unit: 250us, 8ms, 1.5s, 2min, 1h".to_owned())
}

impl Sim {
    /// The parameters as a plan holds them.
    pub fn to_plan(&self) -> assize_plan::SimServer {
        assize_plan::SimServer {
            model: self.model.clone(),
            prefill_base_ns: self.prefill_base,
            prefill_per_token_ns: self.prefill_per_token,
            step_ns: self.step,
            step_per_seq_ns: self.step_per_seq,
            max_seqs: self.max_seqs,
            tokens_per_event: self.tokens_per_event,
            jitter_ppm: self.jitter_ppm,
            seed: self.seed,
            startup_ns: self.startup,
            faults: self.fault.clone(),
        }
    }
}
