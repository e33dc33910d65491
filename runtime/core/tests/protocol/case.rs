//! The case files `tests/fixtures/*http_sse_cases.jsonl`, described in `docs/protocol.md`.

use base64::Engine as _;
use serde::Deserialize;

/// One line of the case file.
#[derive(Clone, Debug, Deserialize)]
pub struct Case {
    pub id: String,
    pub kind: Kind,
    input_b64: Option<String>,
    input_parts: Option<Vec<Part>>,
    pub expect: Expect,
    #[serde(default)]
    pub splits: Vec<Vec<usize>>,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Sse,
    Http,
}

#[derive(Clone, Debug, Deserialize)]
struct Part {
    b64: String,
    n: usize,
}

/// What must come out. `headers` and `retry_after` are the reader's: the runtime keeps no fields.
#[derive(Clone, Debug, Deserialize)]
pub struct Expect {
    pub events: Option<Vec<ExpectEvent>>,
    pub pending_at_eof: Option<bool>,
    pub comments: Option<usize>,
    pub retry_ms: Option<u64>,
    pub accept: Option<Accept>,
    #[serde(default)]
    pub eof_after_input: bool,
    pub status: Option<u16>,
    #[serde(default)]
    pub informational: Vec<u16>,
    pub keep_alive: Option<bool>,
    pub error: Option<String>,
    pub error_ok: Option<String>,
    pub verdict: Option<String>,
    pub openai: Option<ExpectOpenai>,
    pub body_b64: Option<String>,
    pub partial_body_b64: Option<String>,
    pub leftover_b64: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct ExpectEvent {
    pub event: String,
    pub last_event_id: String,
    pub data: Option<String>,
    pub data_len: Option<usize>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct ExpectOpenai {
    pub events: u64,
    pub token_events: u64,
    pub empty_choice_events: u64,
    pub content: String,
    pub reasoning: String,
    pub tool_args: String,
    pub done: bool,
    pub finish_reason: Option<String>,
    pub usage: Option<u64>,
    pub verdict: String,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub enum Accept {
    #[serde(rename = "must_accept")]
    Must,
    #[serde(rename = "must_reject")]
    Never,
    #[serde(rename = "may")]
    May,
}

/// What others have stated or suffered.
pub const GATHERED: &str = include_str!("../fixtures/http_sse_cases.jsonl");

/// What the specifications say besides, with each the section that it is argued from.
pub const OWN: &str = include_str!("../fixtures/own_http_sse_cases.jsonl");

/// The cases of a file, in its order.
pub fn of(file: &str) -> Vec<Case> {
    let cases = file.lines().map(serde_json::from_str);
    cases.map(|case| case.expect("a case")).collect()
}

/// All cases.
pub fn all() -> Vec<Case> {
    [of(GATHERED), of(OWN)].concat()
}

/// The case of this id.
pub fn by_id(id: &str) -> Case {
    let mut cases = all();
    cases.retain(|case| case.id == id);
    cases.pop().expect("a case of this id")
}

pub fn unbase64(text: &str) -> Vec<u8> {
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .expect("base64")
}

impl Case {
    pub fn input(&self) -> Vec<u8> {
        match (&self.input_b64, &self.input_parts) {
            (Some(text), None) => unbase64(text),
            (None, Some(parts)) => parts
                .iter()
                .flat_map(|part| unbase64(&part.b64).repeat(part.n))
                .collect(),
            _ => panic!("{}: either input_b64 or input_parts", self.id),
        }
    }

    /// Read edges to try: none, every byte, the listed ones, and some drawn by a fixed rule.
    pub fn cuts(&self, len: usize) -> Vec<Vec<usize>> {
        let mut cuts = vec![Vec::new(), (1..len).collect()];
        cuts.extend(self.splits.iter().cloned());
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        for round in 1..=16_u64 {
            let mut at = 0_usize;
            let mut edges = Vec::new();
            while at < len {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                at += 1 + (state >> 33) as usize % (len / round as usize + 2);
                edges.push(at);
            }
            cuts.push(edges);
        }
        cuts
    }
}
