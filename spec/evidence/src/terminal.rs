//! How a request ended and how far it had come, as the evidence spells it.

use serde::{Deserialize, Serialize};

macro_rules! coded {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $code:literal $word:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$vmeta])* #[serde(rename = $word)] $variant,)* }

        impl $name {
            /// Every one, in the order of its code.
            pub const ALL: &[$name] = &[$($name::$variant,)*];

            /// The byte in the wire log.
            pub fn code(self) -> u8 {
                match self { $($name::$variant => $code,)* }
            }

            /// The one with that byte.
            pub fn from_code(code: u8) -> Option<$name> {
                match code { $($code => Some($name::$variant),)* _ => None }
            }

            /// The word in JSON and in reports.
            pub fn word(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

coded! {
    /// The one terminal state of a request, from head and framing alone.
    Terminal {
        /// The HTTP message is complete.
        Complete = 0 "complete",
        /// The connection was refused or the address cannot be reached.
        Refused = 1 "refused",
        /// Connecting took too long.
        ConnectTimeout = 2 "connect_timeout",
        /// The TLS layer failed.
        Tls = 3 "tls",
        /// The peer reset the connection.
        Reset = 4 "reset",
        /// The peer closed before a response head was complete.
        Disconnected = 5 "disconnected",
        /// The request took longer than its limit.
        RequestTimeout = 6 "request_timeout",
        /// No event came for longer than the limit of silence.
        IdleTimeout = 7 "idle_timeout",
        /// The cell's drain limit was reached.
        DrainTimeout = 8 "drain_timeout",
        /// A complete answer that points elsewhere.
        Redirect = 9 "redirect",
        /// The response head is not HTTP/1.1.
        MalformedHead = 10 "malformed_head",
        /// The body's framing is broken.
        MalformedFraming = 11 "malformed_framing",
        /// The peer closed inside the body.
        Truncated = 12 "truncated",
        /// The response is larger than the plan allows.
        TooLarge = 13 "too_large",
        /// A complete answer with a content coding.
        Encoded = 14 "encoded",
        /// The request was never admitted.
        NotDispatched = 15 "not_dispatched",
        /// The client's side of the world failed.
        ClientFault = 16 "client_fault",
    }
}

coded! {
    /// How far a request had come.
    Phase {
        /// Not admitted.
        Queued = 0 "queued",
        /// Connecting.
        Connect = 1 "connect",
        /// Connected, not all bytes accepted by the kernel.
        Send = 2 "send",
        /// Sent, no byte of a response.
        BeforeHead = 3 "before_head",
        /// Inside the response head.
        Head = 4 "head",
        /// Inside the body.
        Stream = 5 "stream",
        /// `[DONE]` was seen, the message is not complete.
        AfterFinish = 6 "after_finish",
        /// The message is complete.
        Ended = 7 "ended",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_dense_and_words_agree_with_json() {
        for (place, terminal) in Terminal::ALL.iter().enumerate() {
            assert_eq!(usize::from(terminal.code()), place);
            assert_eq!(Terminal::from_code(terminal.code()), Some(*terminal));
            assert_eq!(serde_json::to_value(terminal).unwrap(), terminal.word());
        }
        for (place, phase) in Phase::ALL.iter().enumerate() {
            assert_eq!(usize::from(phase.code()), place);
            assert_eq!(Phase::from_code(phase.code()), Some(*phase));
        }
        assert_eq!(Terminal::from_code(17), None);
    }
}
