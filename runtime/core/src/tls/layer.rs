//! One connection's TLS: ciphertext in, plaintext out, and the other way round.

use std::fmt;
use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncryptError, InsufficientSizeError, UnbufferedStatus,
};
use serde_json::json;

use super::TlsTarget;

/// Ciphertext that may wait for the rest of its record or handshake message. The longest handshake
/// message that rustls takes is 64 KiB; a certificate chain that needs more is refused.
const WAITING_BYTES: usize = 96 << 10;

/// More than an alert takes in any version.
const FAREWELL_BYTES: usize = 256;

/// What a record holds, but for the last of a message: the most that TLS allows.
const FRAGMENT_BYTES: u64 = 1 << 14;

/// The TLS layer of one connection.
pub(crate) struct TlsLayer {
    connection: UnbufferedClientConnection,
    /// Ciphertext of an unfinished record.
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    plaintext: Vec<u8>,
    established: bool,
    peer_closed: bool,
    verified: bool,
    /// It cannot go on.
    failed: bool,
    /// `close_notify` was given to be sent.
    said_goodbye: bool,
    received_bytes: u64,
    sent_bytes: u64,
}

/// Why a TLS layer cannot go on, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TlsFailure(pub String);

impl TlsLayer {
    /// A layer whose first message waits to be sent.
    pub fn start(target: &TlsTarget) -> Result<TlsLayer, TlsFailure> {
        let connection =
            UnbufferedClientConnection::new(Arc::clone(&target.config), target.name.clone())?;
        let mut layer = TlsLayer {
            connection,
            incoming: Vec::new(),
            outgoing: Vec::new(),
            plaintext: Vec::new(),
            established: false,
            peer_closed: false,
            verified: target.is_verified(),
            failed: false,
            said_goodbye: false,
            received_bytes: 0,
            sent_bytes: 0,
        };
        layer.advance()?;
        Ok(layer)
    }

    /// Takes ciphertext; plaintext gathers in the layer, also that before a failure.
    pub fn receive(&mut self, ciphertext: &[u8]) -> Result<(), TlsFailure> {
        self.received_bytes += ciphertext.len() as u64;
        self.incoming.extend_from_slice(ciphertext);
        self.advance()
    }

    /// Encrypts `parts` as one message; the layer must be established. Gives where its records begin
    /// in the ciphertext that waits.
    pub fn encrypt(&mut self, parts: [&[u8]; 2]) -> Result<usize, TlsFailure> {
        let plaintext = parts.concat();
        let status = self.connection.process_tls_records(&mut self.incoming);
        let discard = status.discard;
        let ConnectionState::WriteTraffic(mut traffic) = status.state? else {
            return Err(TlsFailure("a request before the handshake is done".into()));
        };
        let start = self.outgoing.len();
        self.outgoing.resize(start + plaintext.len(), 0);
        let written = loop {
            match traffic.encrypt(&plaintext, &mut self.outgoing[start..]) {
                Ok(written) => break written,
                Err(EncryptError::InsufficientSize(InsufficientSizeError { required_size })) => {
                    self.outgoing.resize(start + required_size, 0);
                }
                Err(error @ EncryptError::EncryptExhausted) => {
                    return Err(TlsFailure(error.to_string()));
                }
            }
        };
        self.outgoing.truncate(start + written);
        self.incoming.drain(..discard);
        Ok(start)
    }

    /// The last records of this side: `close_notify`, or the alert that a failure left. Before the
    /// handshake is done there is nothing to end.
    pub fn farewell(&mut self) -> Option<Arc<[u8]>> {
        if self.failed {
            self.take_alert();
        } else if self.established {
            let status = self.connection.process_tls_records(&mut self.incoming);
            if let Ok(ConnectionState::WriteTraffic(mut traffic)) = status.state {
                let mut alert = [0; FAREWELL_BYTES];
                let written = traffic.queue_close_notify(&mut alert).unwrap_or(0);
                self.outgoing.extend_from_slice(&alert[..written]);
                self.said_goodbye = written > 0;
            }
        }
        self.take_outgoing()
    }

    /// Whether the handshake is done.
    pub fn is_established(&self) -> bool {
        self.established
    }

    /// Whether the peer said that it will send no more.
    pub fn is_closed_by_peer(&self) -> bool {
        self.peer_closed
    }

    /// Takes the plaintext that came.
    pub fn take_plaintext(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.plaintext)
    }

    /// Gives back the room of [`TlsLayer::take_plaintext`].
    pub fn reuse_room(&mut self, mut plaintext: Vec<u8>) {
        plaintext.clear();
        self.plaintext = plaintext;
    }

    /// Takes the ciphertext that waits to be sent.
    pub fn take_outgoing(&mut self) -> Option<Arc<[u8]>> {
        let outgoing = std::mem::take(&mut self.outgoing);
        (!outgoing.is_empty()).then(|| outgoing.into())
    }

    /// Counts ciphertext that the kernel accepted.
    pub fn count_sent(&mut self, bytes: u64) {
        self.sent_bytes += bytes;
    }

    /// What the handshake agreed on, as JSON.
    pub fn handshake_facts(&self) -> String {
        json!({
            "event": "handshake",
            "version": self.connection.protocol_version().map(|version| format!("{version:?}")),
            "cipher": self.connection.negotiated_cipher_suite().map(|suite| format!("{:?}", suite.suite())),
            "alpn": self.connection.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned()),
            "verified": self.verified,
        })
        .to_string()
    }

    /// What went through in all, as JSON.
    pub fn close_facts(&self) -> String {
        json!({
            "event": "close",
            "close_notify": self.peer_closed,
            "close_notify_offered": self.said_goodbye,
            "ciphertext_received_bytes": self.received_bytes,
            "ciphertext_sent_bytes": self.sent_bytes,
        })
        .to_string()
    }

    /// The alert that a failure left with rustls, if it left one. Nothing more is read: what came is
    /// no longer to be trusted.
    fn take_alert(&mut self) {
        while self.connection.wants_write() {
            let status = self.connection.process_tls_records(&mut []);
            let Ok(ConnectionState::EncodeTlsData(mut data)) = status.state else {
                return;
            };
            if encode(&mut self.outgoing, |room| data.encode(room)).is_err() {
                return;
            }
        }
    }

    fn advance(&mut self) -> Result<(), TlsFailure> {
        let mut start = 0;
        let result = loop {
            match self.step(start) {
                Ok((discard, more)) => {
                    start += discard;
                    if !more {
                        break Ok(());
                    }
                }
                Err(failure) => break Err(failure),
            }
        };
        self.incoming.drain(..start);
        self.failed = result.is_err();
        result?;
        if self.incoming.len() > WAITING_BYTES {
            self.failed = true;
            return Err(TlsFailure("a record or message is too long".into()));
        }
        Ok(())
    }

    /// One state of rustls: how many bytes it has done with, and whether another may follow.
    fn step(&mut self, start: usize) -> Result<(usize, bool), TlsFailure> {
        let UnbufferedStatus { mut discard, state } = self
            .connection
            .process_tls_records(&mut self.incoming[start..]);
        let more = match state? {
            ConnectionState::ReadTraffic(mut traffic) => {
                while let Some(record) = traffic.next_record() {
                    let record = record?;
                    self.plaintext.extend_from_slice(record.payload);
                    discard += record.discard;
                }
                true
            }
            ConnectionState::EncodeTlsData(mut data) => {
                encode(&mut self.outgoing, |room| data.encode(room))?;
                true
            }
            ConnectionState::TransmitTlsData(data) => {
                data.done();
                true
            }
            ConnectionState::PeerClosed => {
                self.peer_closed = true;
                true
            }
            ConnectionState::WriteTraffic(_) => {
                self.established = true;
                false
            }
            ConnectionState::BlockedHandshake | ConnectionState::Closed => false,
            _ => return Err(TlsFailure("the peer sent early data".into())),
        };
        Ok((discard, more))
    }
}

/// Bytes of a message that the first `accepted` bytes of its records hold for certain, the last
/// record counted as full.
pub(crate) fn plaintext_within(records: &[u8], accepted: usize) -> u64 {
    let (mut end, mut whole) = (0, 0);
    while let Some([_, _, _, high, low]) = records.get(end..end + 5) {
        end += 5 + usize::from(u16::from_be_bytes([*high, *low]));
        if end > accepted {
            break;
        }
        whole += 1;
    }
    whole * FRAGMENT_BYTES
}

fn encode(
    outgoing: &mut Vec<u8>,
    mut write: impl FnMut(&mut [u8]) -> Result<usize, EncodeError>,
) -> Result<(), TlsFailure> {
    let start = outgoing.len();
    loop {
        match write(&mut outgoing[start..]) {
            Ok(written) => {
                outgoing.truncate(start + written);
                return Ok(());
            }
            Err(EncodeError::InsufficientSize(InsufficientSizeError { required_size })) => {
                outgoing.resize(start + required_size, 0);
            }
            Err(error @ EncodeError::AlreadyEncoded) => return Err(TlsFailure(error.to_string())),
        }
    }
}

impl TlsFailure {
    /// As JSON.
    pub fn facts(&self) -> String {
        json!({ "event": "failed", "error": self.0 }).to_string()
    }
}

impl From<rustls::Error> for TlsFailure {
    fn from(error: rustls::Error) -> Self {
        TlsFailure(error.to_string())
    }
}

impl fmt::Debug for TlsLayer {
    /// Says nothing of keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsLayer")
            .field("established", &self.established)
            .field("peer_closed", &self.peer_closed)
            .field("received_bytes", &self.received_bytes)
            .field("sent_bytes", &self.sent_bytes)
            .finish_non_exhaustive()
    }
}
