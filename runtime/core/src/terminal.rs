//! How a request ended, from head and framing alone.

/// The one terminal state of a request. Meaning is the reader's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Terminal {
    /// The HTTP message is complete.
    Complete,
    /// The connection was refused or the address cannot be reached.
    Refused,
    /// Connecting took longer than the plan or the system allows.
    ConnectTimeout,
    /// The TLS layer failed.
    Tls,
    /// The peer reset the connection.
    Reset,
    /// The peer closed before a response head was complete.
    Disconnected,
    /// The request took longer than its limit.
    RequestTimeout,
    /// No event came for longer than the limit of silence.
    IdleTimeout,
    /// The cell's drain limit was reached.
    DrainTimeout,
    /// A complete answer that points elsewhere; never followed.
    Redirect,
    /// The response head is not HTTP/1.1.
    MalformedHead,
    /// The body's framing is broken.
    MalformedFraming,
    /// The peer closed inside the body.
    Truncated,
    /// The response is larger than the plan allows.
    TooLarge,
    /// A complete answer with a content coding although identity was asked for.
    Encoded,
    /// The request was never admitted.
    NotDispatched,
    /// The client's side of the world failed: descriptors, ports, memory, recorder.
    ClientFault,
}

/// How far a request had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Not admitted yet.
    Queued,
    /// Connecting.
    Connect,
    /// Connected, not all bytes accepted by the kernel.
    Send,
    /// Sent, no byte of a response.
    BeforeHead,
    /// Inside the response head.
    Head,
    /// Inside the body.
    Stream,
    /// `[DONE]` was seen, the message is not complete.
    AfterFinish,
    /// The message is complete.
    Ended,
}
