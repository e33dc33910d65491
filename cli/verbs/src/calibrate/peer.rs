//! The peer: this program once more, which streams over loopback and says when it wrote what.
//!
//! It is spoken to in lines. `serve CONNECTIONS EVENTS BYTES FIRST_NS GAP_NS` is answered with
//! `port N`; `stop` with `stamps COUNT` and as many lines `CONNECTION AT_NS BYTES`. The end of its
//! input ends it.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use assize_sim::http::{Stop, serve_stamped};
use assize_sim::{Act, Script, ScriptPeer, WriteStamp};
use assize_units::{DurNs, MonoNs};

use super::failed;
use super::stamps::NUMBER_HEADER;
use crate::problem::Problem;

/// Most events that one command may ask for, all connections together.
const MAX_EVENTS: u64 = 1 << 20;
/// Longest event.
const MAX_EVENT_BYTES: usize = 64 << 10;
/// Most stamps that an answer may announce.
const MAX_STAMPS: usize = 1 << 22;

/// What a peer streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stream {
    /// Connections that tell their number.
    pub connections: u32,
    /// Events of each answer.
    pub events: u32,
    /// Bytes of an event.
    pub event_bytes: usize,
    /// From the request to the first event.
    pub first: DurNs,
    /// From one event to the next.
    pub gap: DurNs,
}

impl Stream {
    fn to_line(self) -> String {
        format!(
            "serve {} {} {} {} {}",
            self.connections, self.events, self.event_bytes, self.first.0, self.gap.0
        )
    }

    fn parse(line: &str) -> Option<Stream> {
        let mut words = line.strip_prefix("serve ")?.split(' ');
        let stream = Stream {
            connections: words.next()?.parse().ok()?,
            events: words.next()?.parse().ok()?,
            event_bytes: words.next()?.parse().ok()?,
            first: DurNs(words.next()?.parse().ok()?),
            gap: DurNs(words.next()?.parse().ok()?),
        };
        let events = u64::from(stream.connections) * u64::from(stream.events);
        let bounded = events <= MAX_EVENTS && stream.event_bytes <= MAX_EVENT_BYTES;
        (words.next().is_none() && bounded).then_some(stream)
    }

    /// One script a connection, which differ in the number that the head tells.
    fn scripts(self) -> Vec<Script> {
        let plain = Script::stream(self.events, self.event_bytes, self.first, self.gap);
        let numbered = |number: u32| {
            let mut script = plain.clone();
            let head = script.acts.iter_mut().find_map(|act| match act {
                Act::Send(bytes) => Some(bytes),
                _ => None,
            });
            if let Some(head) = head {
                // Before the head's blank line.
                let line = format!("{NUMBER_HEADER}{number}\r\n");
                head.splice(head.len() - 2..head.len() - 2, line.into_bytes());
            }
            script
        };
        (0..self.connections).map(numbered).collect()
    }
}

/// Is a peer until its input ends.
pub fn serve_peer(input: impl BufRead, mut output: impl Write) -> Result<(), Problem> {
    serve_lines(input, &mut output).map_err(|error| failed(&format!("the peer: {error}")))
}

fn serve_lines(input: impl BufRead, output: &mut impl Write) -> io::Result<()> {
    let mut lines = input.lines();
    while let Some(line) = lines.next() {
        let stream = Stream::parse(&line?).ok_or(io::ErrorKind::InvalidInput)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let peer = ScriptPeer::new(stream.scripts());
        let stop = Stop::new()?;
        let served = std::thread::scope(|scope| {
            let serving = scope.spawn(|| serve_stamped(listener, peer, &stop));
            let told = writeln!(output, "port {port}").and_then(|()| output.flush());
            // Whatever comes next, also the end of the input, ends this stream.
            let next = lines.next().transpose();
            stop.stop()?;
            let served = serving
                .join()
                .map_err(|_| io::Error::other("its server panicked"))?;
            told.and(next)?;
            served
        })?;
        let mut text = format!("stamps {}\n", served.stamps.len());
        for WriteStamp { conn, at, bytes } in &served.stamps {
            text.push_str(&format!("{conn} {} {bytes}\n", at.0));
        }
        output.write_all(text.as_bytes())?;
        output.flush()?;
    }
    Ok(())
}

/// The near end of a peer.
pub struct PeerLink {
    to: Box<dyn Write>,
    from: Box<dyn BufRead>,
}

impl PeerLink {
    /// Speaks to a peer whose input is `to` and whose output is `from`.
    pub fn new(to: impl Write + 'static, from: impl io::Read + 'static) -> PeerLink {
        PeerLink {
            to: Box::new(to),
            from: Box::new(BufReader::new(from)),
        }
    }

    /// Has it listen; the address.
    pub(super) fn serve(&mut self, stream: Stream) -> Result<SocketAddr, Problem> {
        self.say(&stream.to_line())?;
        let port = self.answer("port ")?;
        Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }

    /// Has it end its stream; when it wrote what.
    pub(super) fn stop(&mut self) -> Result<Vec<WriteStamp>, Problem> {
        self.say("stop")?;
        let count: usize = self.answer("stamps ")?;
        if count > MAX_STAMPS {
            return Err(failed("the peer announces more stamps than it can have"));
        }
        let mut stamps = Vec::with_capacity(count);
        for _ in 0..count {
            let line = self.line()?;
            stamps.push(parse_stamp(&line).ok_or_else(|| unexpected(&line))?);
        }
        Ok(stamps)
    }

    fn say(&mut self, line: &str) -> Result<(), Problem> {
        let said = writeln!(self.to, "{line}").and_then(|()| self.to.flush());
        said.map_err(|error| failed(&format!("the peer does not listen: {error}")))
    }

    fn line(&mut self) -> Result<String, Problem> {
        let mut line = String::new();
        match self.from.read_line(&mut line) {
            Ok(0) => Err(failed("the peer ended early")),
            Ok(_) => Ok(line),
            Err(error) => Err(failed(&format!("the peer does not answer: {error}"))),
        }
    }

    fn answer<T: std::str::FromStr>(&mut self, word: &str) -> Result<T, Problem> {
        let line = self.line()?;
        let value = line
            .strip_prefix(word)
            .and_then(|rest| rest.trim_end().parse().ok());
        value.ok_or_else(|| unexpected(&line))
    }
}

fn unexpected(line: &str) -> Problem {
    failed(&format!("the peer answers {:?}", line.trim_end()))
}

fn parse_stamp(line: &str) -> Option<WriteStamp> {
    let mut words = line.trim_end().split(' ');
    Some(WriteStamp {
        conn: words.next()?.parse().ok()?,
        at: MonoNs(words.next()?.parse().ok()?),
        bytes: words.next()?.parse().ok()?,
    })
}

/// A peer in a process of its own, ended when this is dropped.
pub struct PeerProcess(Child);

impl PeerProcess {
    /// Starts `program peer`.
    pub fn start(program: &Path) -> Result<(PeerProcess, PeerLink), Problem> {
        let mut child = Command::new(program)
            .arg("peer")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| failed(&format!("starting {}: {error}", program.display())))?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(to), Some(from)) => Ok((PeerProcess(child), PeerLink::new(to, from))),
            _ => unreachable!("both were asked for as pipes"),
        }
    }
}

impl Drop for PeerProcess {
    fn drop(&mut self) {
        // It may have ended by itself, and nothing of it is kept.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: Stream = Stream {
        connections: 2,
        events: 3,
        event_bytes: 40,
        first: DurNs(5),
        gap: DurNs(7),
    };

    #[test]
    fn a_command_is_read_as_it_was_written() {
        assert_eq!(STREAM.to_line(), "serve 2 3 40 5 7");
        assert_eq!(Stream::parse("serve 2 3 40 5 7"), Some(STREAM));
        for wrong in [
            "",
            "serve 2 3 40 5",
            "serve 2 3 40 5 7 9",
            "serve -2 3 40 5 7",
            "serve 4000000000 4000000000 40 5 7",
            "serve 1 1 9999999 5 7",
        ] {
            assert_eq!(Stream::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn each_script_tells_its_number_in_a_whole_head() {
        for (number, script) in STREAM.scripts().iter().enumerate() {
            let Act::Send(head) = &script.acts[1] else {
                panic!("the head comes first");
            };
            let head = String::from_utf8(head.clone()).unwrap();
            assert!(head.ends_with(&format!("\r\nx-connection: {number}\r\n\r\n")));
        }
    }

    #[test]
    fn the_end_of_the_input_ends_a_peer_and_its_stream() {
        let mut output = Vec::new();
        serve_peer(&b"serve 1 1 40 0 0\n"[..], &mut output).unwrap();
        let output = String::from_utf8(output).unwrap();
        assert!(output.starts_with("port ") && output.ends_with("stamps 0\n"));
        assert!(serve_peer(&b"sing\n"[..], Vec::new()).is_err());
    }

    #[test]
    fn what_a_peer_may_not_answer_is_a_failure() {
        for answer in ["", "port x\n", "stamps 1\n"] {
            let mut link = PeerLink::new(io::sink(), answer.as_bytes());
            assert!(link.serve(STREAM).is_err());
        }
        for answer in [
            "stamps 2\n0 1 2\n",
            "stamps 1\n0 1\n",
            "stamps 99999999999\n",
        ] {
            let mut link = PeerLink::new(io::sink(), answer.as_bytes());
            assert!(link.stop().is_err());
        }
    }
}
