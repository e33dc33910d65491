//! The committed corpora, a little changed: what a fuzzer does in its first seconds, on stable and the
//! same every time. `ASSIZE_MUTATIONS=1000 cargo test -p assize-props --test mutations` looks longer.
#![allow(
    clippy::disallowed_methods,
    reason = "tests read the committed corpora, and how long to look"
)]

use std::path::Path;

use assize_props::TARGETS;

/// Changes of each input, where nobody says how many.
const USUAL: u64 = 12;

/// Pieces that matter to the grammars, put in anywhere.
const PIECES: &[&[u8]] = &[
    b"\r",
    b"\n",
    b"\r\n",
    b"\n\n",
    b":",
    b" ",
    b"0",
    b"data: [DONE]\n\n",
    b"data",
    b"event: error\n",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\x00",
    b"\\ud83d",
    b"{}",
    b"null",
    b"\"index\":0,",
    b",",
    b"chunked",
    b"Content-Length: 1\r\n",
    b"HTTP/1.1 100 C\r\n\r\n",
    b";a=\"",
    b"ffffffffffffffff",
    b"\"finish_reason\":\"\"",
    b"\"error\":1,",
    b"\"usage\":{},",
    b"\"object\":\"error\",",
];

fn inputs(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../corpus")
        .join(target);
    let entries = std::fs::read_dir(&folder).expect("a corpus");
    let mut paths: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| std::fs::read(path).expect("an input"))
        .collect()
}

fn drawn(state: &mut u64, below: usize) -> usize {
    *state = state
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize % below.max(1)
}

fn mutated(input: &[u8], others: &[Vec<u8>], state: &mut u64) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..=drawn(state, 4) {
        let at = drawn(state, bytes.len());
        let to = (at + 1 + drawn(state, 12)).min(bytes.len());
        match drawn(state, 6) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << drawn(state, 8),
            1 => drop(bytes.drain(at..to)),
            2 => {
                let again = bytes[at..to].to_vec();
                bytes.splice(at..at, again);
            }
            3 => {
                let other = &others[drawn(state, others.len())];
                let from = drawn(state, other.len());
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            _ => {
                let piece = PIECES[drawn(state, PIECES.len())];
                bytes.splice(at..at, piece.iter().copied());
            }
        }
    }
    bytes
}

#[test]
fn inputs_near_the_corpora_hold() {
    let most = std::env::var("ASSIZE_MUTATIONS").ok();
    let most = most.map_or(USUAL, |text| text.parse().expect("a number"));
    for (name, check) in TARGETS
        .iter()
        .filter(|(name, _)| matches!(*name, "http1" | "sse" | "differential" | "tls"))
    {
        let inputs = inputs(name);
        // A handshake costs as much as a hundred streams.
        let most = if *name == "tls" { most / 4 } else { most };
        for (place, input) in inputs.iter().enumerate() {
            let mut state = place as u64;
            for _ in 0..most {
                let changed = mutated(input, &inputs, &mut state);
                let held = std::panic::catch_unwind(|| check(&changed));
                assert!(held.is_ok(), "{name}: {}", changed.escape_ascii());
            }
        }
    }
}
