//! What a run is given: a cell, a peer's behaviour and a driver's, all drawn from bytes, so that a
//! property test and a fuzzer search the same space. Fewer and smaller bytes give a simpler run.

use std::net::SocketAddr;
use std::sync::Arc;

use assize_core::protocol::http1::Limits;
use assize_core::{CellSpec, ConnectionPolicy, LoadSpec, ReceiveMode, RequestSpec};
use assize_units::{DurNs, OffsetNs};

/// All instants of a run are multiples of this, so that deadlines, arrivals and answers often meet.
pub const GRID_NS: u64 = 1_000;

/// A whole run.
#[derive(Clone, Debug)]
pub struct Setting {
    pub spec: CellSpec,
    /// What happens to the connection with a serial, in turn.
    pub connects: Vec<ConnectAct>,
    /// What happens to each request once its send begins.
    pub answers: Vec<Answer>,
    pub driver: DriverActs,
}

/// How connecting goes.
#[derive(Clone, Copy, Debug)]
pub enum ConnectAct {
    Stands { after: u64 },
    Fails { after: u64, errno: i32 },
    Hangs,
}

/// How a send goes, and what comes back; delays count from the submission of the send.
#[derive(Clone, Debug)]
pub struct Answer {
    pub send: SendAct,
    pub acts: Vec<(u64, Act)>,
}

/// How a send goes.
#[derive(Clone, Copy, Debug)]
pub enum SendAct {
    Taken { after: u64 },
    Broken { after: u64, errno: i32 },
    Hangs,
}

/// What a peer does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    Bytes(Vec<u8>),
    Eof,
    Reset,
}

/// How a driver behaves.
#[derive(Clone, Debug, Default)]
pub struct DriverActs {
    /// How late it wakes, in turn; never late where empty.
    pub lateness: Vec<u64>,
    /// Whether it polls outputs after each completion, not only after a batch.
    pub polls_between: bool,
    /// How long a close takes.
    pub close_after: u64,
    /// By how much the stamp of a completion may be behind the last reading of the clock.
    pub behind: u64,
    /// When it is told to stop, from the start.
    pub abort_after: Option<u64>,
}

/// Reads choices from bytes; gives zeroes where they end.
#[derive(Debug)]
pub struct Choices<'a>(pub &'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    fn below(&mut self, n: u8) -> u8 {
        self.byte() % n
    }

    fn grid(&mut self, n: u8) -> u64 {
        u64::from(self.below(n)) * GRID_NS
    }

    fn one_in(&mut self, n: u8) -> bool {
        self.below(n) == n - 1
    }
}

impl Setting {
    /// A run that the bytes choose. Its driver is punctual and its clock never goes backward: see
    /// [`Setting::with_troubled_driver`].
    pub fn draw(bytes: &[u8]) -> Setting {
        let mut choices = Choices(bytes);
        let count = 1 + choices.below(8);
        let load = draw_load(&mut choices, count);
        let connections = match choices.below(4) {
            0 | 1 => ConnectionPolicy::Fresh,
            2 => ConnectionPolicy::Reuse {
                idle: DurNs(choices.grid(12)),
            },
            _ => ConnectionPolicy::Preopened {
                n: u32::from(choices.below(4)),
            },
        };
        let drain = DurNs(GRID_NS + choices.grid(60));
        let targets = 1 + u32::from(choices.one_in(4));
        let connects = (0..4).map(|_| draw_connect(&mut choices)).collect();
        let polls_between = choices.one_in(2);
        let mut requests = Vec::new();
        let mut answers = Vec::new();
        for _ in 0..count {
            requests.push(draw_request(&mut choices, targets));
            answers.push(draw_answer(&mut choices));
        }
        let spec = CellSpec {
            requests,
            load,
            targets: (1..=targets as u16)
                .map(|port| SocketAddr::from(([127, 0, 0, 1], port)).into())
                .collect(),
            connections,
            drain,
            limits: Limits {
                body_bytes: 4_000,
                ..Limits::default()
            },
            spin: DurNs::ZERO,
            receive: ReceiveMode::Reap,
        };
        Setting {
            spec,
            connects,
            answers,
            driver: DriverActs {
                polls_between,
                ..DriverActs::default()
            },
        }
    }

    /// The same with a driver that the bytes make late, slow to close, or told to stop.
    pub fn with_troubled_driver(mut self, bytes: &[u8]) -> Setting {
        let mut choices = Choices(bytes);
        let turns = choices.below(4);
        self.driver.lateness = (0..turns).map(|_| choices.grid(9)).collect();
        self.driver.close_after = choices.grid(4);
        self.driver.behind = choices.grid(3);
        if choices.one_in(4) {
            self.driver.abort_after = Some(u64::from(choices.byte()) * 10 * GRID_NS);
        }
        self
    }

    /// The same with another peer.
    pub fn with_peer_of(mut self, other: &Setting) -> Setting {
        self.connects.clone_from(&other.connects);
        for (place, answer) in self.answers.iter_mut().enumerate() {
            answer.clone_from(&other.answers[place % other.answers.len()]);
        }
        self
    }

    /// The same with every read cut into single bytes, at the same instants.
    pub fn cut_fine(mut self) -> Setting {
        for answer in &mut self.answers {
            let mut fine = Vec::new();
            for (after, act) in answer.acts.drain(..) {
                match act {
                    Act::Bytes(bytes) => {
                        let single = bytes.into_iter().map(|byte| Act::Bytes(vec![byte]));
                        fine.extend(single.map(|act| (after, act)));
                    }
                    act => fine.push((after, act)),
                }
            }
            answer.acts = fine;
        }
        self
    }
}

fn draw_load(choices: &mut Choices<'_>, count: u8) -> LoadSpec {
    if choices.one_in(2) {
        return LoadSpec::Closed {
            clients: 1 + u32::from(choices.below(4)),
        };
    }
    let mut offset = 0;
    let offsets = (0..count)
        .map(|_| {
            let due = OffsetNs(offset);
            offset += choices.grid(6);
            due
        })
        .collect();
    let cap = choices.one_in(4).then(|| 1 + u32::from(choices.below(3)));
    LoadSpec::Open { offsets, cap }
}

fn draw_connect(choices: &mut Choices<'_>) -> ConnectAct {
    match choices.below(12) {
        11 => ConnectAct::Hangs,
        10 => ConnectAct::Fails {
            after: choices.grid(4),
            errno: [111, 104, 24, 110][usize::from(choices.below(4))],
        },
        _ => ConnectAct::Stands {
            after: choices.grid(4),
        },
    }
}

fn draw_request(choices: &mut Choices<'_>, targets: u32) -> RequestSpec {
    let limit = |choices: &mut Choices<'_>, most| {
        let given = choices.one_in(3);
        given.then(|| DurNs(GRID_NS + choices.grid(most)))
    };
    RequestSpec {
        target: u32::from(choices.byte()) % targets,
        head: b"POST / HTTP/1.1\r\n\r\n".to_vec(),
        body: Arc::from(vec![b'x'; usize::from(choices.below(5))]),
        timeout: DurNs(40 * GRID_NS - choices.grid(39)),
        connect_timeout: limit(choices, 6),
        idle_timeout: limit(choices, 10),
    }
}

fn draw_answer(choices: &mut Choices<'_>) -> Answer {
    let send = match choices.below(16) {
        15 => SendAct::Hangs,
        14 => SendAct::Broken {
            after: choices.grid(3),
            errno: [32, 104, 105][usize::from(choices.below(3))],
        },
        _ => SendAct::Taken {
            after: choices.grid(3),
        },
    };
    let mut response = draw_response(choices);
    if choices.one_in(4) {
        response.extend_from_slice(&b"HTTP/1.1 500 X\r\n\r\n"[..usize::from(choices.below(19))]);
    }
    if choices.one_in(3) {
        let kept = usize::from(choices.byte()) * response.len() / 255;
        response.truncate(kept);
    }
    let mut acts = Vec::new();
    let mut after = choices.grid(5);
    let mut rest = &response[..];
    while !rest.is_empty() {
        let len = match choices.below(4) {
            0 => rest.len(),
            _ => (1 + usize::from(choices.byte())).min(rest.len()),
        };
        let (piece, others) = rest.split_at(len);
        acts.push((after, Act::Bytes(piece.to_vec())));
        rest = others;
        after += choices.grid(4);
    }
    match choices.below(4) {
        0 | 1 => {}
        2 => acts.push((after, Act::Eof)),
        _ => acts.push((after, Act::Reset)),
    }
    Answer { send, acts }
}

fn draw_response(choices: &mut Choices<'_>) -> Vec<u8> {
    let events = choices.below(5);
    let mut body = String::new();
    for event in 0..events {
        body.push_str(&format!("data: {{\"n\":{event}}}\n\n"));
    }
    body.push_str("data: [DONE]\n\n");
    let stream = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
    let len = body.len();
    let chunks = || -> String {
        let pieces = body.as_bytes().chunks(17);
        let chunks = pieces.map(|piece| {
            let text = String::from_utf8_lossy(piece);
            format!("{:x}\r\n{text}\r\n", piece.len())
        });
        chunks.chain(["0\r\n\r\n".to_owned()]).collect()
    };
    match choices.below(14) {
        0 => format!("{stream}content-length: {len}\r\n\r\n{body}"),
        1 => format!("{stream}transfer-encoding: chunked\r\n\r\n{}", chunks()),
        2 => format!("{stream}\r\n{body}"),
        3 => format!("{stream}connection: close\r\ncontent-length: {len}\r\n\r\n{body}"),
        4 => "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}".to_owned(),
        5 => "HTTP/1.1 204 N\r\n\r\n".to_owned(),
        6 => "HTTP/1.1 307 R\r\nlocation: /x\r\ncontent-length: 1\r\n\r\nx".to_owned(),
        7 => format!(
            "HTTP/1.1 100 C\r\n\r\n{stream}transfer-encoding: chunked\r\n\r\n{}",
            chunks()
        ),
        8 => "HTTP/1.1 200 OK\r\nx y: 1\r\n\r\n".to_owned(),
        9 => format!("{stream}transfer-encoding: chunked\r\n\r\n5\r\ndata:\r\nzz\r\n"),
        10 => "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 1\r\n\r\nx".to_owned(),
        11 => format!("{stream}content-length: 9999\r\n\r\n{}", body.repeat(99)),
        12 => {
            let len = choices.byte();
            return (0..len).map(|_| choices.byte()).collect();
        }
        _ => return Vec::new(),
    }
    .into_bytes()
}
