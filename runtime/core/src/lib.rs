//! Sans-IO protocol core: HTTP/1.1, SSE, exchange, load, session.
//!
//! Nothing here has a socket, a clock, a thread or a file. A [`Driver`] owns those: it performs the
//! [`Output`]s of a [`Session`] and tells it what happened, each time with the instant at which it
//! happened. What a session does is a pure function of those calls, so the same cell runs over
//! io_uring, over epoll and in virtual time.
//!
//! ```text
//!  driver ──► handle_connected / sent / received / eof / failed / closed / timeout ──► Session
//!         ◄── poll_output: Connect, Send, Close          poll_timeout: the next deadline ◄──
//! ```
//!
//! A session says everything that happens to a [`Sink`], in order; that is the evidence.

mod cell;
mod driver;
mod exchange;
mod load;
pub mod protocol;
mod session;
mod sink;
mod terminal;
#[cfg(feature = "tls")]
mod tls;
#[cfg(not(feature = "tls"))]
#[path = "tls_absent.rs"]
mod tls;

pub use cell::{CellSpec, ConnectionPolicy, LoadSpec, ReceiveMode, RequestSpec, Target};
pub use driver::{Driver, DriverFacts, DriverFailure, Progress, RunControl};
pub use exchange::{Exchange, PeerEnd, Reuse};
pub use session::{ConnId, ORIGIN_LEAD, Outgoing, Output, Session, SocketOp};
pub use sink::{Entry, NullSink, Sink, Stamp, TimerKind};
pub use terminal::{Phase, Terminal};
pub use tls::TlsTarget;
#[cfg(feature = "tls")]
pub use tls::{TlsSetupError, certificates_from_pem};
