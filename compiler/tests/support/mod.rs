//! A world for tests: the library, a panel of eight texts, server files.

#![allow(dead_code, reason = "each test file takes a part of it")]

pub mod studies;

use assize_compiler::{Compiled, MemoryWorld, Output, compile};
use assize_study::diagnostic::render_human;

/// Eight prompts.
pub fn prompts() -> String {
    let rows: Vec<String> = (0..8)
        .map(|n| format!("{{\"prompt\": \"Say {n}.\"}}"))
        .collect();
    rows.join("\n")
}

/// The world without the study.
pub fn world() -> MemoryWorld {
    let modules = assize_modules::ALL.iter();
    modules
        .fold(MemoryWorld::new(), |world, (name, text)| {
            world.with_module(name, text)
        })
        .with_file("prompts.jsonl", prompts())
        .with_file(
            "servers/sim.yaml",
            "assize: 1\nsim: { step: 8ms, max_seqs: 32 }\n",
        )
        .with_file(
            "servers/vllm.yaml",
            "assize: 1
command: [vllm, serve, model, --port, 8000]
base: http://127.0.0.1:8000/v1
ready: { get: /health, within: 600s }
env: { LOG: quiet, MODE: a }
pass: [HF_HOME]
stop: { signal: INT, within: 20s }
external: [weights.bin]
",
        )
        .with_file("weights.bin", "weights")
}

/// Compiles a study in the world.
pub fn compiled(text: &str) -> Compiled {
    compile("study.yaml", &world().with_file("study.yaml", text))
}

/// The output of a study that has no errors.
pub fn output(text: &str) -> Output {
    let compiled = compiled(text);
    let shown = shown(&compiled);
    compiled.output.unwrap_or_else(|| panic!("{shown}"))
}

/// The diagnostics as a person sees them.
pub fn shown(compiled: &Compiled) -> String {
    render_human(&compiled.diagnostics, &compiled.sources, false)
}

/// The ids of the diagnostics, sorted by place.
pub fn codes(text: &str) -> Vec<&'static str> {
    let compiled = compiled(text);
    compiled
        .diagnostics
        .sorted()
        .iter()
        .map(|diagnostic| diagnostic.code.id)
        .collect()
}
