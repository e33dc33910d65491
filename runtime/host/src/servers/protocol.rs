//! What runner and keeper say to each other: JSON, an object a line.
//!
//! The runner writes one [`Start`] to the keeper's standard input and keeps it open. Its end, by
//! the runner's will or by its death, is the order to stop: there is one way to end and it is the
//! one that a killed runner takes. The keeper answers on its standard output.

use std::ffi::OsString;

use serde::{Deserialize, Serialize};

/// The order to start a server.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Start {
    /// Program and arguments that make a keeper, to be started once more as the launcher.
    pub keeper: Vec<OsString>,
    /// The server's program and arguments.
    pub command: Vec<String>,
    /// Its whole environment. It travels here and not as the keeper's own, so that a preloaded
    /// library is the server's alone.
    pub environment: Vec<(String, OsString)>,
    /// The signal that asks it to end.
    pub stop_signal: String,
    /// How long it may take.
    pub stop_within_ns: u64,
}

/// What a keeper tells.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Told {
    /// The server runs.
    Started {
        /// Its process id.
        pid: u32,
    },
    /// It could not be started; the keeper ends.
    Refused {
        /// Whose fault it is: the server's command, or the keeper's own surroundings.
        by: Refuser,
        /// The system's words.
        message: String,
        /// The system's number, or 0.
        errno: i32,
    },
    /// The server has ended by itself. What it left behind is ended next.
    Ended {
        /// How.
        status: String,
    },
    /// Nothing is left of the server, or no more can be done about it; the keeper ends.
    Gone {
        /// How the server ended.
        status: String,
        /// Whether it was killed.
        killed: bool,
        /// Other processes of its that were killed.
        swept: u32,
        /// Processes that outlived even that.
        left: u32,
    },
}

/// What stood in the way of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Refuser {
    /// The server's command.
    Command,
    /// The keeper.
    Keeper,
}

/// A message as the line that is written.
pub(super) fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("names are texts, so it is an object");
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn an_order_reads_back_with_bytes_that_are_no_text() {
        let start = Start {
            keeper: vec!["assize".into(), "keep".into()],
            command: vec!["serve\n".to_owned()],
            environment: vec![("HOME".to_owned(), OsString::from_vec(vec![b'/', 0xff]))],
            stop_signal: "TERM".to_owned(),
            stop_within_ns: 5,
        };
        let written = line(&start);
        let end = written.iter().position(|byte| *byte == b'\n');
        assert_eq!(end, Some(written.len() - 1));
        assert_eq!(serde_json::from_slice::<Start>(&written).unwrap(), start);
    }
}
