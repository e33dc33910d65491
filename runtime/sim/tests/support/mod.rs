//! A client for tests: drives one engine on a virtual clock and reads its answers strictly.
#![allow(dead_code, reason = "each test file uses its own part")]

use assize_sim::{ConnId, Engine, EngineConfig, EngineOutput};
use assize_units::MonoNs;
use serde_json::Value;

/// What one connection received: each write with its instant, and how it was closed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Received {
    pub writes: Vec<(u64, Vec<u8>)>,
    /// The instant, and true for a reset.
    pub closed: Option<(u64, bool)>,
}

impl Received {
    pub fn bytes(&self) -> Vec<u8> {
        self.writes.iter().flat_map(|w| w.1.clone()).collect()
    }
}

pub const CONN: ConnId = ConnId(1);

/// An engine and what its connections received.
pub struct World {
    pub engine: Engine,
    pub received: std::collections::BTreeMap<u64, Received>,
}

impl World {
    pub fn new(config: EngineConfig) -> World {
        let engine = Engine::new(config, MonoNs(0)).expect("a valid configuration");
        World {
            engine,
            received: std::collections::BTreeMap::new(),
        }
    }

    pub fn send(&mut self, at: u64, conn: ConnId, bytes: &[u8]) {
        self.run_until(at);
        if !self.received.contains_key(&conn.0) {
            self.engine.handle_open(MonoNs(at), conn);
            self.received.insert(conn.0, Received::default());
        }
        self.engine.handle_received(MonoNs(at), conn, bytes);
        self.drain(at);
    }

    pub fn run_until(&mut self, end: u64) {
        while let Some(due) = self.engine.poll_timeout()
            && due.0 <= end
        {
            self.engine.handle_timeout(due);
            self.drain(due.0);
        }
    }

    pub fn drain(&mut self, at: u64) {
        while let Some(output) = self.engine.poll_output() {
            match output {
                EngineOutput::Send { conn, bytes } => {
                    let writes = &mut self.received.entry(conn.0).or_default().writes;
                    writes.push((at, bytes));
                }
                EngineOutput::Close { conn, abort } => {
                    self.received.entry(conn.0).or_default().closed = Some((at, abort));
                }
                EngineOutput::Reading { .. } => panic!("an engine reads always"),
            }
        }
    }
}

/// Sends `bytes` at instant 0 on one connection and waits for a virtual hour.
pub fn ask(config: EngineConfig, bytes: &[u8]) -> Received {
    let mut world = World::new(config);
    world.send(0, CONN, bytes);
    world.run_until(3_600_000_000_000);
    world.received.remove(&CONN.0).unwrap_or_default()
}

pub fn post(path: &str, body: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: sim\r\nContent-Type: application/json\r\n\
         X-Request-Id: open-1-00007\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

pub fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: sim\r\n\r\n").into_bytes()
}

/// One answer as a strict client reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The framing is complete.
    pub complete: bool,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }

    /// The payloads of the stream's events.
    pub fn payloads(&self) -> Vec<String> {
        let text = String::from_utf8(self.body.clone()).expect("a UTF-8 body");
        let events = text.split("\n\n").filter(|event| !event.is_empty());
        events
            .filter_map(|event| event.strip_prefix("data: ").map(str::to_owned))
            .collect()
    }

    /// The stream's events before `[DONE]`, which must be last.
    pub fn events(&self) -> Vec<Value> {
        let mut payloads = self.payloads();
        assert_eq!(payloads.pop().as_deref(), Some("[DONE]"));
        let parse = |payload: &String| serde_json::from_str(payload).expect("JSON events");
        payloads.iter().map(parse).collect()
    }
}

/// Reads all answers that `bytes` holds.
pub fn answers(mut bytes: &[u8]) -> Vec<Answer> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let (answer, used) = answer(bytes);
        found.push(answer);
        bytes = &bytes[used..];
    }
    found
}

fn answer(bytes: &[u8]) -> (Answer, usize) {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut head = httparse::Response::new(&mut headers);
    let httparse::Status::Complete(start) = head.parse(bytes).expect("a valid head") else {
        panic!("an incomplete head");
    };
    let text = |value: &[u8]| String::from_utf8(value.to_vec()).expect("ASCII");
    let headers: Vec<(String, String)> = head
        .headers
        .iter()
        .map(|header| (header.name.to_owned(), text(header.value)))
        .collect();
    let mut answer = Answer {
        status: head.code.expect("a status"),
        headers,
        body: Vec::new(),
        complete: true,
    };
    if answer.status == 100 {
        return (answer, start);
    }
    if answer.header("transfer-encoding") == Some("chunked") {
        let used = read_chunks(&bytes[start..], &mut answer);
        return (answer, start + used);
    }
    let length = match answer.header("content-length") {
        Some(length) => length.parse().expect("a length"),
        None => bytes.len() - start,
    };
    let end = (start + length).min(bytes.len());
    answer.body = bytes[start..end].to_vec();
    answer.complete = end == start + length;
    (answer, end)
}

fn read_chunks(bytes: &[u8], answer: &mut Answer) -> usize {
    let mut at = 0;
    loop {
        let rest = &bytes[at..];
        let line = rest.windows(2).position(|w| w == b"\r\n");
        let size = line.and_then(|end| {
            usize::from_str_radix(std::str::from_utf8(&rest[..end]).ok()?, 16).ok()
        });
        let (Some(line), Some(size)) = (line, size) else {
            answer.complete = false;
            return bytes.len();
        };
        let data = at + line + 2;
        let Some(chunk) = bytes.get(data..data + size + 2) else {
            answer.complete = false;
            return bytes.len();
        };
        assert!(chunk.ends_with(b"\r\n"), "a chunk ends with CRLF");
        answer.body.extend_from_slice(&chunk[..size]);
        at = data + size + 2;
        if size == 0 {
            return at;
        }
    }
}

/// Stops a server also when its client panics: a scope would wait for it for ever.
#[cfg(target_os = "linux")]
pub struct StopOnDrop<'a>(pub &'a assize_sim::http::Stop);

#[cfg(target_os = "linux")]
impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.stop().expect("a stop");
    }
}
