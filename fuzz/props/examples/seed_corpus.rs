//! Writes the seed corpora of the protocol targets from the case files, and drawn ones for the targets
//! that run sessions: `cargo run -p assize-props --example seed_corpus`.
#![allow(
    clippy::disallowed_methods,
    reason = "a tool that writes the committed corpora"
)]

use std::path::Path;

use base64::Engine as _;

/// Longer inputs slow the fuzzer down and show nothing that shorter ones do not.
const LONGEST_BYTES: usize = 1200;

/// Inputs of the targets that draw a run; each is 16 bytes longer than the one before.
const DRAWN_SEEDS: u64 = 32;

fn main() -> std::io::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let fixtures = root.join("runtime/core/tests/fixtures");
    let mut cases = std::fs::read_to_string(fixtures.join("http_sse_cases.jsonl"))?;
    cases += &std::fs::read_to_string(fixtures.join("own_http_sse_cases.jsonl"))?;
    for line in cases.lines() {
        let case: serde_json::Value = serde_json::from_str(line)?;
        let (Some(id), Some(text)) = (case["id"].as_str(), case["input_b64"].as_str()) else {
            continue;
        };
        let stream = base64::engine::general_purpose::STANDARD
            .decode(text)
            .map_err(std::io::Error::other)?;
        if stream.len() > LONGEST_BYTES {
            continue;
        }
        let eof = case["expect"]["eof_after_input"].as_bool() == Some(true);
        let mut input = vec![7; 8];
        input.push(u8::from(eof));
        input.extend_from_slice(&stream);
        let target = if case["kind"] == "http" {
            "http1"
        } else {
            "sse"
        };
        for target in [target, "differential"] {
            let folder = root.join("fuzz/corpus").join(target);
            std::fs::create_dir_all(&folder)?;
            std::fs::write(folder.join(id), &input)?;
        }
    }
    for number in 0..DRAWN_SEEDS {
        let mut state = number;
        let len = 16 + 16 * number as usize;
        let mut input: Vec<u8> = std::iter::repeat_with(|| drawn(&mut state))
            .take(len)
            .collect();
        // Every other one has a punctual driver.
        input[0] *= (number % 2) as u8;
        for target in ["exchange", "session"] {
            let folder = root.join("fuzz/corpus").join(target);
            std::fs::create_dir_all(&folder)?;
            std::fs::write(folder.join(format!("drawn-{number:02}")), &input)?;
        }
    }
    Ok(())
}

/// A byte of Knuth's linear congruential generator: any bytes do, as long as they are the same again.
fn drawn(state: &mut u64) -> u8 {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state >> 56) as u8
}
