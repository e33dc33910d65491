//! What a host serves: the inputs and outputs that an engine and a scripted peer share.

use assize_units::MonoNs;

use crate::engine::{ConnId, Engine, EngineOutput};

/// The server's side of connections as a state machine, with the contract of [`Engine`].
pub trait Peer {
    /// A connection was accepted.
    fn handle_open(&mut self, now: MonoNs, conn: ConnId);
    /// Bytes arrived.
    fn handle_received(&mut self, now: MonoNs, conn: ConnId, bytes: &[u8]);
    /// The client closed or reset a connection.
    fn handle_closed(&mut self, now: MonoNs, conn: ConnId);
    /// Does all that is due until `now`.
    fn handle_timeout(&mut self, now: MonoNs);
    /// The next deadline.
    fn poll_timeout(&self) -> Option<MonoNs>;
    /// The next thing for the host to do.
    fn poll_output(&mut self) -> Option<EngineOutput>;
    /// Takes back the bytes of a send once they are written.
    fn recycle(&mut self, bytes: Vec<u8>) {
        drop(bytes);
    }
}

impl Peer for Engine {
    fn handle_open(&mut self, now: MonoNs, conn: ConnId) {
        Engine::handle_open(self, now, conn);
    }

    fn handle_received(&mut self, now: MonoNs, conn: ConnId, bytes: &[u8]) {
        Engine::handle_received(self, now, conn, bytes);
    }

    fn handle_closed(&mut self, now: MonoNs, conn: ConnId) {
        Engine::handle_closed(self, now, conn);
    }

    fn handle_timeout(&mut self, now: MonoNs) {
        Engine::handle_timeout(self, now);
    }

    fn poll_timeout(&self) -> Option<MonoNs> {
        Engine::poll_timeout(self)
    }

    fn poll_output(&mut self) -> Option<EngineOutput> {
        Engine::poll_output(self)
    }

    fn recycle(&mut self, bytes: Vec<u8>) {
        Engine::recycle(self, bytes);
    }
}

/// One write of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteStamp {
    /// The connection's number, from 0: on a real port in the order of accepting, in a virtual
    /// network in the order of connecting.
    pub conn: u64,
    /// Just before the write.
    pub at: MonoNs,
    /// Bytes of the write.
    pub bytes: u64,
}
