//! What a cell is, as the runtime needs it: rendered bytes, instants, limits. Host makes it of a plan.

use std::net::SocketAddr;
use std::sync::Arc;

use assize_units::{DurNs, OffsetNs};

use crate::protocol::http1::Limits;
use crate::tls::TlsTarget;

/// One cell: everything that a session needs, rendered before the cell starts.
#[derive(Clone, Debug)]
pub struct CellSpec {
    /// The requests, in the order of the plan.
    pub requests: Vec<RequestSpec>,
    /// When they are sent.
    pub load: LoadSpec,
    /// Where connections are made to; requests name a place here.
    pub targets: Vec<Target>,
    /// When connections are made.
    pub connections: ConnectionPolicy,
    /// Limit of the drain, from the last admission.
    pub drain: DurNs,
    /// Limits of one response.
    pub limits: Limits,
    /// How long before a deadline a driver stops sleeping and spins.
    pub spin: DurNs,
    /// Which time a receive carries.
    pub receive: ReceiveMode,
}

/// A place that connections are made to.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its address.
    pub addr: SocketAddr,
    /// Whom it must prove to be; cleartext where there is none.
    pub tls: Option<Arc<TlsTarget>>,
}

impl From<SocketAddr> for Target {
    /// Cleartext.
    fn from(addr: SocketAddr) -> Self {
        Target { addr, tls: None }
    }
}

/// One request, rendered.
#[derive(Clone, Debug)]
pub struct RequestSpec {
    /// A place in [`CellSpec::targets`].
    pub target: u32,
    /// The exact head, with its blank line.
    pub head: Vec<u8>,
    /// The exact body.
    pub body: Arc<[u8]>,
    /// From admission to the end of the message.
    pub timeout: DurNs,
    /// Limit of connecting, TLS handshake included, where there is one.
    pub connect_timeout: Option<DurNs>,
    /// Limit of the silence between two events, where there is one.
    pub idle_timeout: Option<DurNs>,
}

impl RequestSpec {
    /// Bytes on the wire.
    pub fn wire_len(&self) -> u64 {
        (self.head.len() + self.body.len()) as u64
    }
}

/// When the requests of a cell are sent.
#[derive(Clone, Debug)]
pub enum LoadSpec {
    /// Request `i` is due at `offsets[i]`, whatever the answers do.
    Open {
        /// Offsets from the origin, not falling; as many as requests.
        offsets: Vec<OffsetNs>,
        /// A declared limit of requests in flight; the wait behind it is admission wait.
        cap: Option<u32>,
    },
    /// All are due at the origin; `clients` are in flight.
    Closed {
        /// Requests in flight at most.
        clients: u32,
    },
}

/// When connections are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionPolicy {
    /// A new one for every request.
    Fresh,
    /// The one that was idle last is used again if it was idle for at most this long.
    Reuse {
        /// The bound of the idle time.
        idle: DurNs,
    },
    /// So many are opened to each target before the origin, and used again without bound.
    Preopened {
        /// How many.
        n: u32,
    },
}

/// Which time a receive carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiveMode {
    /// The reading of the clock when the completion was reaped.
    Reap,
    /// The kernel's receive stamp beside it; completions may gather before they are reaped.
    Kernel {
        /// The longest gathering time.
        gather: DurNs,
    },
}
