//! Any bytes after a handshake with a real peer, and after the beginning of its answer.

use std::io::{Read, Write};
use std::sync::{Arc, OnceLock};

use assize_core::{ConnId, Output, Session, Terminal};
use assize_units::{DurNs, MonoNs};
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection};

use super::{Plaintext, cell, check_farewell};
use crate::reads::{Input, TlsVersion};

/// What the peer says itself: an answer that its end alone would complete.
const BEGINNING: &[u8] = b"HTTP/1.1 200 OK\r\n\r\nhalf";

/// Feeds the input as what follows the beginning of an answer, in drawn reads, then an end.
pub(super) fn check(input: &Input<'_>, version: TlsVersion) {
    let mut sink = Plaintext::default();
    let mut session = Session::new(Arc::new(cell()));
    let mut now = MonoNs(1_000_000_000);
    session.start(now, &mut sink);
    now = session.origin().expect("nothing is preopened");
    let (conn, mut server) = begin(&mut session, now, &mut sink, version);
    server.writer().write_all(BEGINNING).expect("a buffer");
    let beginning = written(&mut server);
    session.handle_received(now.into(), conn, &beginning, &mut sink);
    assert_eq!(sink.bytes, BEGINNING.len());
    for read in input.drawn() {
        now = now.after(DurNs(1_000));
        session.handle_received(now.into(), conn, read, &mut sink);
    }
    session.handle_eof(now.into(), conn, &mut sink);
    while let Some(output) = session.poll_output(now, &mut sink) {
        // Whatever records the client answers with: nobody reads them any more.
        if let Output::Close { conn, farewell } = output {
            check_farewell(farewell.as_deref());
            session.handle_closed(now, conn, &mut sink);
        }
    }
    assert!(session.is_done(), "the end of the connection ends the cell");
    assert_eq!(sink.ended, 1, "a request ends once");
    assert!(
        matches!(
            session.exchanges()[0].terminal,
            Some(Terminal::Tls | Terminal::Truncated)
        ),
        "nobody without the keys completes an answer"
    );
    assert_eq!(
        sink.bytes,
        BEGINNING.len(),
        "nothing that the peer did not encrypt is plaintext"
    );
}

/// Brings the one request to a peer.
fn begin(
    session: &mut Session,
    now: MonoNs,
    sink: &mut Plaintext,
    version: TlsVersion,
) -> (ConnId, ServerConnection) {
    let mut server = ServerConnection::new(config(version)).expect("a plain server");
    let mut open = None;
    let mut heard = Vec::new();
    loop {
        match session.poll_output(now, sink) {
            Some(Output::Connect { conn, .. }) => {
                open = Some(conn);
                session.handle_connected(now, conn, sink);
            }
            Some(Output::Send { conn, data }) => {
                session.handle_send_started(now, conn, sink);
                let sent = data.parts(session.spec()).0.to_vec();
                session.handle_sent(now, conn, sink);
                server.read_tls(&mut sent.as_slice()).expect("from memory");
                let state = server.process_new_packets().expect("a client of rustls");
                let mut plaintext = vec![0; state.plaintext_bytes_to_read()];
                server
                    .reader()
                    .read_exact(&mut plaintext)
                    .expect("it is there");
                heard.extend(plaintext);
                let answer = written(&mut server);
                session.handle_received(now.into(), conn, &answer, sink);
            }
            Some(Output::Close { .. }) => panic!("nothing has gone wrong"),
            None => break,
        }
    }
    assert_eq!(heard, b"POST / HTTP/1.1\r\n\r\n{}");
    (open.expect("one request, one connection"), server)
}

fn written(server: &mut ServerConnection) -> Vec<u8> {
    let mut bytes = Vec::new();
    while server.wants_write() {
        server.write_tls(&mut bytes).expect("to memory");
    }
    bytes
}

/// The client verifies nobody, so a certificate of its own is enough for the peer.
fn config(version: TlsVersion) -> Arc<ServerConfig> {
    static CONFIGS: OnceLock<[Arc<ServerConfig>; 2]> = OnceLock::new();
    let configs = CONFIGS.get_or_init(|| {
        let names = vec!["localhost".to_owned()];
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(names).expect("a plain name");
        let certificate = params.self_signed(&key).expect("a certificate");
        [&rustls::version::TLS12, &rustls::version::TLS13].map(|version| {
            let provider = Arc::new(rustls::crypto::ring::default_provider());
            let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
            let config = ServerConfig::builder_with_provider(provider)
                .with_protocol_versions(&[version])
                .expect("a version that there is")
                .with_no_client_auth()
                .with_single_cert(vec![certificate.der().clone()], key)
                .expect("key and certificate fit");
            Arc::new(config)
        })
    });
    let [older, newer] = configs;
    Arc::clone(match version {
        TlsVersion::V12 => older,
        TlsVersion::V13 => newer,
    })
}
