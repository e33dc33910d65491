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

/// Seeds of the `tls` target that follow a whole handshake, by the flags of TLS 1.3 or 1.2.
const AFTER_HANDSHAKE: &[(&str, u8, &[u8])] = &[
    ("after_13_nothing", 4, b""),
    ("after_12_nothing", 12, b""),
    ("after_13_record_empty", 4, &[23, 3, 3, 0, 0]),
    ("after_13_record_too_long", 4, &[23, 3, 3, 0xff, 0xff, 0]),
    (
        "after_13_record_forged",
        4,
        &[
            23, 3, 3, 0, 17, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ],
    ),
    (
        "after_12_record_forged",
        12,
        &[
            23, 3, 3, 0, 25, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            0, 0,
        ],
    ),
    ("after_13_record_cut", 4, &[23, 3, 3, 0, 40, 1, 2, 3]),
    ("after_12_record_cut", 12, &[23, 3, 3, 0, 40, 1, 2, 3]),
    ("after_13_alert_close_notify", 4, &[21, 3, 3, 0, 2, 1, 0]),
    ("after_12_alert_close_notify", 12, &[21, 3, 3, 0, 2, 1, 0]),
    ("after_13_alert_fatal", 4, &[21, 3, 3, 0, 2, 2, 40]),
    ("after_12_alert_fatal", 12, &[21, 3, 3, 0, 2, 2, 40]),
    ("after_13_change_cipher_spec", 4, &[20, 3, 3, 0, 1, 1]),
    ("after_12_change_cipher_spec", 12, &[20, 3, 3, 0, 1, 1]),
    (
        "after_13_handshake_in_clear",
        4,
        &[22, 3, 3, 0, 4, 4, 0, 0, 0],
    ),
    ("after_12_hello_request", 12, &[22, 3, 3, 0, 4, 0, 0, 0, 0]),
    ("after_13_heartbeat", 4, &[24, 3, 3, 0, 3, 1, 0, 16]),
    ("after_13_wrong_version", 4, &[23, 9, 9, 0, 1, 0]),
    ("after_13_cleartext", 4, b"HTTP/1.1 200 OK\r\n\r\n"),
    ("after_12_cleartext", 12, b"HTTP/1.1 200 OK\r\n\r\n"),
];

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
    // Without a sanitizer libFuzzer does not see comparisons of text: like the other targets the
    // canary begins from something that is nearly there.
    let folder = root.join("fuzz/corpus/canary");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("one_event"), b"data: a\n\n")?;
    for (name, flags, stream) in AFTER_HANDSHAKE {
        let mut input = vec![7; 8];
        input.push(*flags);
        input.extend_from_slice(stream);
        std::fs::write(root.join("fuzz/corpus/tls").join(name), &input)?;
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
