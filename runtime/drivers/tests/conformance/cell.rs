//! Cells and scripts as values, and how one is held against every driver.

use assize_core::protocol::http1::Limits;
use assize_core::{CellSpec, ConnectionPolicy, LoadSpec, ReceiveMode, RequestSpec};
use assize_sim::{Act, Script};
use assize_units::{DurNs, OffsetNs};

use crate::observed::{Shown, run};
use crate::peer::Standing;
use crate::{Subject, subjects};

/// A whole streamed answer of `events` events, `[DONE]` among them.
pub fn stream(events: usize) -> Vec<u8> {
    let mut body = String::new();
    for event in 1..events {
        body.push_str(&format!(
            "data: {{\"choices\":[{{\"index\":0,\"text\":\" t{event}\"}}]}}\n\n"
        ));
    }
    body.push_str("data: [DONE]\n\n");
    let mut answer = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
        transfer-encoding: chunked\r\n\r\n"
        .to_vec();
    for event in body.split_inclusive("\n\n") {
        answer.extend(format!("{:x}\r\n{event}\r\n", event.len()).into_bytes());
    }
    answer.extend(b"0\r\n\r\n");
    answer
}

/// A trivial answer that keeps the connection.
pub fn short() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok".to_vec()
}

/// A request with a body of so many bytes.
pub fn request(body: usize) -> RequestSpec {
    RequestSpec {
        target: 0,
        head: format!(
            "POST /v1/completions HTTP/1.1\r\nhost: peer\r\ncontent-length: {body}\r\n\r\n"
        )
        .into_bytes(),
        body: vec![b'x'; body].into(),
        timeout: DurNs::from_s(50),
        connect_timeout: None,
        idle_timeout: None,
    }
}

/// A cell of `requests` equal requests, one after the other, each on a connection of its own.
pub fn cell(requests: usize, request: RequestSpec) -> CellSpec {
    CellSpec {
        requests: vec![request; requests],
        load: LoadSpec::Closed { clients: 1 },
        targets: Vec::new(),
        connections: ConnectionPolicy::Fresh,
        drain: DurNs::from_s(50),
        limits: Limits::default(),
        spin: DurNs::from_us(60),
        receive: ReceiveMode::Reap,
    }
}

/// Connections are kept for as long as a test may take.
pub const KEPT: ConnectionPolicy = ConnectionPolicy::Reuse {
    idle: DurNs::from_s(60),
};

/// All requests at once, or so many milliseconds after the origin.
pub fn open(offsets_ms: &[u64]) -> LoadSpec {
    let offsets = offsets_ms.iter().map(|ms| OffsetNs(ms * 1_000_000));
    LoadSpec::Open {
        offsets: offsets.collect(),
        cap: None,
    }
}

/// A script that is played once.
pub fn once(acts: impl IntoIterator<Item = Act>) -> Script {
    Script {
        acts: acts.into_iter().collect(),
        repeat: false,
    }
}

/// A script that answers each request of a connection so.
pub fn answering(bytes: Vec<u8>) -> Script {
    Script {
        acts: vec![Act::Request, Act::Send(bytes)],
        repeat: true,
    }
}

pub fn at_ms(ms: u64) -> Act {
    Act::At(DurNs::from_ms(ms))
}

/// Runs a cell on every driver, each with a peer of its own that plays `scripts`; all must show the
/// same, and their peers must have heard the same.
pub fn on_all(spec: &CellSpec, scripts: &[Script]) -> Shown {
    on_all_with(spec, &[scripts], Hearing::Same)
}

/// Whether what the peers heard can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hearing {
    /// Yes.
    Same,
    /// No: how much of a request a peer had taken when it ended depends on times.
    Timed,
}

/// Runs a cell on every driver, each with its own peers, one a target.
pub fn on_all_with(spec: &CellSpec, peers: &[&[Script]], hearing: Hearing) -> Shown {
    agree(|subject| {
        let mut standing = stand(subject, peers);
        let mut spec = spec.clone();
        spec.targets = standing.iter().map(|peer| peer.addr().into()).collect();
        let shown = run(subject.driver.as_mut(), spec);
        let heard = match (hearing, standing.as_mut_slice()) {
            (Hearing::Same, [only]) => only.heard(shown.connected()),
            _ => Vec::new(),
        };
        for peer in standing {
            peer.stop();
        }
        (shown, heard.into_iter().map(|heard| heard.bytes).collect())
    })
}

fn stand(subject: &Subject, peers: &[&[Script]]) -> Vec<Box<dyn Standing>> {
    let places = (1..).zip(peers);
    let start = |(place, scripts): (u16, &&[Script])| subject.serve(place, scripts.to_vec());
    places.map(start).collect()
}

/// Runs something on every driver; all must show the same, and must have been heard the same.
pub fn agree(mut on: impl FnMut(&mut Subject) -> (Shown, Vec<Vec<u8>>)) -> Shown {
    let mut first: Option<(String, Shown, Vec<Vec<u8>>)> = None;
    for mut subject in subjects() {
        let name = subject.name();
        let (shown, heard) = on(&mut subject);
        assert!(
            subject.is_virtual() || shown.clocks >= 2,
            "{name}: a bracket at the start and at the end"
        );
        let Some((before, like, like_heard)) = &first else {
            first = Some((name, shown, heard));
            continue;
        };
        let who = format!("{before} and {name}");
        like.assert_same(&shown, &who);
        assert!(*like_heard == heard, "{who}: what their peers heard");
    }
    first.expect("at least one driver").1
}

/// The terminal of a cell's only request.
pub fn only(shown: &Shown) -> &crate::observed::Observed {
    assert_eq!(shown.requests.len(), 1);
    &shown.requests[0]
}
