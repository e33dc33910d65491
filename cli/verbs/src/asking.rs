//! One question to an endpoint outside of any plan: a GET by the same protocol core and the same
//! drivers that measure, with TLS where the address asks for it.

use std::sync::Arc;

use assize_codes::{E0904, E0912};
use assize_core::protocol::http1::{Event, Limits, ResponseParser};
use assize_core::{
    CellSpec, ConnId, ConnectionPolicy, Driver, Entry, Exchange, LoadSpec, PeerEnd, ReceiveMode,
    RequestSpec, RunControl, Session, Sink, Stamp, Target, Terminal, TlsTarget,
};
use assize_host::Base;
use assize_units::DurNs;

use crate::problem::Problem;

/// From asking to the whole answer.
const LIMIT: DurNs = DurNs::from_s(10);
/// Bytes of an answer's body.
const LIMIT_BYTES: u64 = 4 << 20;
/// Bytes that are kept of an answer, its framing included.
const KEPT_BYTES: usize = 16 << 20;

/// Whom to ask, and as whom.
pub(crate) struct Endpoint<'a> {
    /// The address.
    pub base: &'a Base,
    /// By what the peer proves who it is; none in cleartext.
    pub tls: Option<TlsTarget>,
    /// The API key.
    pub key: Option<&'a str>,
}

/// Asks `GET path` below the base; gives status and body.
pub(crate) fn get(
    driver: &mut dyn Driver,
    endpoint: Endpoint<'_>,
    path: &str,
) -> Result<(u16, Vec<u8>), Problem> {
    let base = endpoint.base;
    let host = &base.authority;
    let unreachable = |why: String| Problem::world(E0904, format!("{host}: {why}"));
    let addr = base
        .resolve()
        .map_err(|error| unreachable(error.to_string()))?;
    let spec = CellSpec {
        requests: vec![request(&endpoint, path)],
        load: LoadSpec::Closed { clients: 1 },
        targets: vec![Target {
            addr,
            tls: endpoint.tls.map(Arc::new),
        }],
        connections: ConnectionPolicy::Fresh,
        drain: LIMIT,
        limits: limits(),
        spin: DurNs::ZERO,
        receive: ReceiveMode::Reap,
    };
    let mut session = Session::new(Arc::new(spec));
    let mut heard = Heard::default();
    driver
        .run_cell(&mut session, &mut heard, &RunControl::default())
        .map_err(|failure| unreachable(failure.to_string()))?;
    let exchange = &session.exchanges()[0];
    match exchange.terminal {
        Some(Terminal::Complete) => Ok((exchange.status, body(&heard.bytes))),
        Some(Terminal::Redirect | Terminal::Encoded) => Ok((exchange.status, Vec::new())),
        Some(Terminal::Tls) => {
            let why = heard.tls_failure.unwrap_or_default();
            Err(Problem::world(E0912, format!("{host}: {why}")))
        }
        _ => Err(unreachable(why(exchange))),
    }
}

fn request(endpoint: &Endpoint<'_>, path: &str) -> RequestSpec {
    let Base {
        path: below,
        authority,
        ..
    } = endpoint.base;
    let key = endpoint
        .key
        .map(|key| format!("authorization: Bearer {key}\r\n"));
    let head = format!(
        "GET {below}{path} HTTP/1.1\r\nhost: {authority}\r\naccept: application/json\r\n\
         accept-encoding: identity\r\n{}\r\n",
        key.unwrap_or_default()
    );
    RequestSpec {
        target: 0,
        head: head.into_bytes(),
        body: Arc::from([]),
        timeout: LIMIT,
        connect_timeout: None,
        idle_timeout: None,
    }
}

fn limits() -> Limits {
    Limits {
        body_bytes: LIMIT_BYTES,
        ..Limits::default()
    }
}

/// The body of an answer that the session found to be whole.
fn body(mut answer: &[u8]) -> Vec<u8> {
    let mut parser = ResponseParser::new(limits());
    let mut body = Vec::new();
    while let Ok(Some(event)) = parser.poll(&mut answer) {
        match event {
            Event::Body(bytes) => body.extend_from_slice(bytes),
            Event::End(_) => break,
            Event::Interim { .. } | Event::Head(_) => {}
        }
    }
    body
}

/// Why no whole answer came, for a person.
fn why(exchange: &Exchange) -> String {
    if exchange.errno != 0 {
        return std::io::Error::from_raw_os_error(exchange.errno).to_string();
    }
    let text = match exchange.terminal {
        Some(Terminal::MalformedHead | Terminal::MalformedFraming) => {
            "its answer is not HTTP/1.1, or not strictly so"
        }
        Some(Terminal::TooLarge) => "its answer is too long",
        Some(Terminal::Truncated) => "its answer was cut",
        _ if exchange.peer_end == Some(PeerEnd::Eof) => "it closed without an answer",
        _ => "no whole answer came within 10 s",
    };
    text.to_owned()
}

/// What came.
#[derive(Default)]
struct Heard {
    bytes: Vec<u8>,
    tls_failure: Option<String>,
    overflowed: bool,
}

impl Sink for Heard {
    fn put(&mut self, _: Stamp, _: Option<ConnId>, _: Option<u32>, entry: Entry<'_>) {
        match entry {
            Entry::Received(bytes) if self.bytes.len() + bytes.len() > KEPT_BYTES => {
                self.overflowed = true;
            }
            Entry::Received(bytes) => self.bytes.extend_from_slice(bytes),
            Entry::Tls { facts } => {
                let facts: serde_json::Value = serde_json::from_str(facts).unwrap_or_default();
                if let Some(error) = facts["error"].as_str() {
                    self.tls_failure = Some(error.to_owned());
                }
            }
            _ => {}
        }
    }

    fn overflowed(&self) -> bool {
        self.overflowed
    }
}
