//! Any bytes where a TLS peer's records are due, in place of its handshake or after it: never a panic,
//! one end, and nothing taken for plaintext.

mod peer;

use std::sync::{Arc, OnceLock};

use assize_core::protocol::http1::Limits;
use assize_core::{
    CellSpec, ConnId, ConnectionPolicy, Entry, LoadSpec, Outgoing, Output, ReceiveMode,
    RequestSpec, Session, Sink, Stamp, Target, Terminal, TlsTarget,
};
use assize_units::{DurNs, MonoNs};

use crate::reads::Input;

/// Feeds the input as what the peer sends, in drawn reads, then an end.
pub fn check(data: &[u8]) {
    let Some(input) = Input::of(data) else {
        return;
    };
    if let Some(version) = input.established {
        return peer::check(&input, version);
    }
    let mut sink = Plaintext::default();
    let mut session = Session::new(Arc::new(cell()));
    let mut now = MonoNs(1_000_000_000);
    session.start(now, &mut sink);
    now = session.origin().expect("nothing is preopened");
    let mut conn = None;
    perform(&mut session, now, &mut sink, &mut conn);
    for read in input.drawn() {
        let Some(open) = conn else { break };
        now = now.after(DurNs(1_000));
        session.handle_received(now.into(), open, read, &mut sink);
        perform(&mut session, now, &mut sink, &mut conn);
    }
    if let Some(open) = conn {
        session.handle_eof(now.into(), open, &mut sink);
        perform(&mut session, now, &mut sink, &mut conn);
    }
    assert!(session.is_done(), "the end of the connection ends the cell");
    assert_eq!(sink.ended, 1, "a request ends once");
    let exchange = &session.exchanges()[0];
    assert_ne!(
        exchange.terminal,
        Some(Terminal::Complete),
        "no peer without a key completes an answer"
    );
    assert_eq!(sink.bytes, 0, "nothing that was not decrypted is plaintext");
}

/// Does what the session asks; sends are accepted at once.
fn perform(session: &mut Session, now: MonoNs, sink: &mut Plaintext, conn: &mut Option<ConnId>) {
    while let Some(output) = session.poll_output(now, sink) {
        match output {
            Output::Connect { conn: new, .. } => {
                *conn = Some(new);
                session.handle_connected(now, new, sink);
            }
            Output::Send { conn, data } => {
                assert!(
                    matches!(data, Outgoing::Records(_)),
                    "no request leaves in the clear"
                );
                session.handle_send_started(now, conn, sink);
                session.handle_sent(now, conn, sink);
            }
            Output::Close {
                conn: old,
                farewell,
            } => {
                *conn = None;
                check_farewell(farewell.as_deref());
                session.handle_closed(now, old, sink);
            }
        }
    }
}

/// Last words are records: of a change of cipher, of an alert, or encrypted.
fn check_farewell(words: Option<&[u8]>) {
    if let Some(words) = words {
        assert!(matches!(words, [20 | 21 | 23, 3, 3, 0, _, ..]), "{words:?}");
    }
}

/// Counts what is said to be plaintext, and the ends.
#[derive(Default)]
struct Plaintext {
    bytes: usize,
    ended: usize,
}

impl Sink for Plaintext {
    fn put(&mut self, _: Stamp, _: Option<ConnId>, _: Option<u32>, entry: Entry<'_>) {
        match entry {
            Entry::Received(bytes) => self.bytes += bytes.len(),
            Entry::Terminal { .. } => self.ended += 1,
            _ => {}
        }
    }

    fn overflowed(&self) -> bool {
        false
    }
}

fn cell() -> CellSpec {
    static PEER: OnceLock<Arc<TlsTarget>> = OnceLock::new();
    let peer = PEER.get_or_init(|| {
        let peer = TlsTarget::insecure("localhost", 1_800_000_000).expect("a plain name");
        Arc::new(peer)
    });
    let addr = "127.0.0.1:443".parse().expect("an address");
    CellSpec {
        requests: vec![RequestSpec {
            target: 0,
            head: b"POST / HTTP/1.1\r\n\r\n".to_vec(),
            body: Arc::from(&b"{}"[..]),
            timeout: DurNs::from_s(1),
            connect_timeout: None,
            idle_timeout: None,
        }],
        load: LoadSpec::Closed { clients: 1 },
        targets: vec![Target {
            addr,
            tls: Some(peer.clone()),
        }],
        connections: ConnectionPolicy::Fresh,
        drain: DurNs::from_s(2),
        limits: Limits::default(),
        spin: DurNs::ZERO,
        receive: ReceiveMode::Reap,
    }
}
