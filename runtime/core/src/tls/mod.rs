//! TLS between a driver's bytes and HTTP/1.1, sans-IO like the rest: a layer takes ciphertext and
//! gives plaintext, and gives ciphertext that a driver must send.
//!
//! Time and roots are given by who makes a [`TlsTarget`]. Nothing is resumed: every connection makes
//! a whole handshake, so that no request profits from one before it, and no session key or ticket
//! outlives its connection or is stored.

mod layer;
mod target;

pub(crate) use layer::{TlsFailure, TlsLayer, plaintext_within};
pub use target::{TlsSetupError, TlsTarget, certificates_from_pem};
