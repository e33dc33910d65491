//! `/metrics`: Prometheus text, under the names that vLLM gives the same quantities.

use std::fmt::Write;

use super::config::EngineConfig;
use super::scheduler::Scheduler;

/// The exposition format's media type.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What an engine has done since its start.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Prompt tokens of sequences that have had their first token.
    pub(super) prompt_tokens: u64,
    pub(super) generation_tokens: u64,
    stopped: u64,
    cut: u64,
    aborted: u64,
}

impl Counters {
    /// Counts a finished sequence: `stop`, `length` or `abort`.
    pub(super) fn finished(&mut self, reason: &str) {
        match reason {
            "stop" => self.stopped += 1,
            "length" => self.cut += 1,
            _ => self.aborted += 1,
        }
    }
}

/// The whole page.
pub(super) fn render(config: &EngineConfig, scheduler: &Scheduler, counters: &Counters) -> Vec<u8> {
    let model = &config.model;
    let mut page = String::with_capacity(2048);
    let mut family = |name: &str, kind: &str, help: &str, values: &[(&str, f64)]| {
        let _ = writeln!(page, "# HELP {name} {help}");
        let _ = writeln!(page, "# TYPE {name} {kind}");
        for (label, value) in values {
            let _ = writeln!(
                page,
                "{name}{{engine=\"0\"{label},model_name=\"{model}\"}} {value:?}"
            );
        }
    };
    let used = scheduler.kv_used() as f64;
    let share = match config.kv_tokens {
        0 => 0.0,
        limit => used / limit as f64,
    };
    family(
        "vllm:num_requests_running",
        "gauge",
        "Sequences in the batch.",
        &[("", scheduler.running() as f64)],
    );
    family(
        "vllm:num_requests_waiting",
        "gauge",
        "Sequences that wait for a place in the batch.",
        &[("", scheduler.waiting() as f64)],
    );
    family(
        "vllm:kv_cache_usage_perc",
        "gauge",
        "Share of the key-value cache in use; 1 is all of it, 0 where it has no limit.",
        &[("", share)],
    );
    family(
        "vllm:num_preemptions_total",
        "counter",
        "Sequences taken out of the batch for want of cache.",
        &[("", scheduler.preemptions() as f64)],
    );
    family(
        "vllm:prompt_tokens_total",
        "counter",
        "Prompt tokens of sequences that have had their first token.",
        &[("", counters.prompt_tokens as f64)],
    );
    family(
        "vllm:generation_tokens_total",
        "counter",
        "Tokens generated.",
        &[("", counters.generation_tokens as f64)],
    );
    family(
        "vllm:request_success_total",
        "counter",
        "Finished sequences by reason.",
        &[
            (",finished_reason=\"stop\"", counters.stopped as f64),
            (",finished_reason=\"length\"", counters.cut as f64),
            (",finished_reason=\"abort\"", counters.aborted as f64),
        ],
    );
    page.into_bytes()
}
