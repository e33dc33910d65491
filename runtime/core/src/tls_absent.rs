//! What stands for TLS in a build without the feature `tls`: a target that nobody can make.

use std::sync::Arc;

/// No TLS target can be made: this build has no TLS.
#[derive(Clone, Debug)]
pub enum TlsTarget {}

impl TlsTarget {
    /// Whether certificates are verified.
    pub fn is_verified(&self) -> bool {
        match *self {}
    }
}

/// The layer that no connection has.
#[derive(Debug)]
pub(crate) enum TlsLayer {}

/// Why a TLS layer cannot go on, in words.
#[derive(Clone, Debug)]
pub(crate) struct TlsFailure(pub String);

/// No record holds anything.
pub(crate) fn plaintext_within(_: &[u8], _: usize) -> u64 {
    0
}

impl TlsFailure {
    pub fn facts(&self) -> String {
        self.0.clone()
    }
}

impl TlsLayer {
    pub fn start(target: &TlsTarget) -> Result<TlsLayer, TlsFailure> {
        match *target {}
    }

    pub fn receive(&mut self, _: &[u8]) -> Result<(), TlsFailure> {
        match *self {}
    }

    pub fn encrypt(&mut self, _: [&[u8]; 2]) -> Result<usize, TlsFailure> {
        match *self {}
    }

    pub fn farewell(&mut self) -> Option<Arc<[u8]>> {
        match *self {}
    }

    pub fn is_established(&self) -> bool {
        match *self {}
    }

    pub fn is_closed_by_peer(&self) -> bool {
        match *self {}
    }

    pub fn take_plaintext(&mut self) -> Vec<u8> {
        match *self {}
    }

    pub fn reuse_room(&mut self, _: Vec<u8>) {
        match *self {}
    }

    pub fn take_outgoing(&mut self) -> Option<Arc<[u8]>> {
        match *self {}
    }

    pub fn count_sent(&mut self, _: u64) {
        match *self {}
    }

    pub fn handshake_facts(&self) -> String {
        match *self {}
    }

    pub fn close_facts(&self) -> String {
        match *self {}
    }
}
