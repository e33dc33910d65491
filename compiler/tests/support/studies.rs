//! Whole studies, and their bundles.

use assize_compiler::freeze::{Circumstances, bundle};
use assize_plan::Bundle;

/// An endpoint, four clients, no decision.
pub const HELLO: &str = "\
assize: 1
study: hello
prompts:
  mine: { file: prompts.jsonl }
requests:
  ask: { api: openai/chat, prompt: mine, output: at_most(128) }
arms:
  theirs: { endpoint: http://127.0.0.1:8000/v1, model: llama-3.1-8b }
cells:
  four: { load: closed(4), requests: 64 }
";

/// A closed loop at two widths on a simulated engine, with a batched warmup.
pub const CLOSED: &str = "\
assize: 1
study: widths
use: [std/engines/sim]
prompts:
  ids: { file: ids.jsonl, count: 2, tokens: 3 }
requests:
  generate: { api: openai/completions, prompt: ids, output: exactly(16), body: { temperature: 0 }, timeout: 30s }
arms:
  sim: { engine: sim, server: servers/sim.yaml, model: small, label: Simulated }
warmup: { load: batch(4), stream: false }
settle: 2s
drain: 60s
cells:
  c:
    for: { clients: [1, 8] }
    load: closed(clients)
    requests: 8 * clients
";

/// Drawn arrivals: Poisson, gamma, stages, bursts, and drawn prompts.
pub const OPEN: &str = "\
assize: 1
study: arrivals
seed: 2026101800
prompts:
  drawn: { synthetic: tokens, count: 4, tokens: 5, vocabulary: 1000 }
requests:
  generate: { api: openai/completions, prompt: drawn, output: exactly(8) }
arms:
  theirs: { endpoint: http://127.0.0.1:8000/v1, model: small }
cells:
  near: { load: poisson(14.9/s), requests: 20 }
  even: { load: 'gamma(10/s, cv = 0.5) with cap(8)', requests: 20 }
  steps: { load: poisson(2/s) for 5s then every(250ms) for 1s }
  waves: { load: 'burst(3, 2s)', requests: 7 }
";

/// Two arms, ten blocks, a decision.
pub const PAIR: &str = "\
assize: 1
study: flag-ab
question: Does the flag shorten the tail?
use: [std/engines/vllm, std/rules/paired-sign]
seed: 8
prompts:
  docs: { file: prompts.jsonl, count: 8 }
requests:
  generate: { api: openai/completions, prompt: docs, output: exactly(32), body: { temperature: 0 } }
arms:
  base: { abstract: true, engine: vllm, server: servers/vllm.yaml, model: small, args: [--max-num-seqs, 96] }
  whole: { like: base, args: [--no-chunks] }
  chunked: { like: base, args: [--chunks], env: { MODE: b } }
let:
  slower: 3.2635/s
  near: floor_to(90% * slower, 0.1/s)
  count: max(16, ceil_to(4s * slower, 8))
  tail: p95(e2e from intended)
warmup: { load: closed(2), requests: 4 }
cells:
  full: { load: closed(8), requests: count }
  near: { load: poisson(near), requests: count }
blocks:
  confirmation: { repeat: 10, arm_order: counterbalanced, cells: [full, near], cell_order: alternating }
  observer: { cells: [full], excluded: true }
compare:
  one-flag: { arms: [whole, chunked], differ: [args, env.MODE] }
decide:
  primary:
    like: paired-sign
    valid: [failed == 0, missing == 0, failed in near <= 1% * offered]
    hypotheses:
      - chunked beats whole on tail in near, median gain at least 5%
      - chunked keeps within 1% of whole on throughput in full
";

/// Two request classes in one stream.
pub const MIXED: &str = "\
assize: 1
study: two-classes
seed: 10
prompts:
  short: { file: prompts.jsonl }
  long: { file: ids.jsonl }
requests:
  chat: { api: openai/chat, prompt: short, output: at_most(20) }
  document: { api: openai/completions, prompt: long, output: at_most(40) }
arms:
  theirs: { endpoint: http://127.0.0.1:8000/v1, model: small }
warmup: { load: closed(2), requests: 3, send: chat }
cells:
  mixed: { load: poisson(4/s), send: { document: 30%, chat: 70% }, requests: 20 }
  packed: { load: closed(4), send: { document: 50%, chat: 50% }, requests: 9 }
";

/// The bundle of a study.
pub fn frozen(text: &str) -> Bundle {
    let world = super::world()
        .with_file(
            "ids.jsonl",
            "{\"prompt_token_ids\":[1,2,3]}\n{\"prompt_token_ids\":[4,5,6]}\n",
        )
        .with_file("study.yaml", text);
    let compiled = assize_compiler::compile("study.yaml", &world);
    let shown = super::shown(&compiled);
    let output = compiled.output.unwrap_or_else(|| panic!("{shown}"));
    bundle(
        &output,
        Circumstances {
            tool: "assize 0.1.0".to_owned(),
            study_file: Some("study.yaml".to_owned()),
            git: None,
            frozen_at: "2026-11-30T12:00:00Z".to_owned(),
        },
    )
}
