//! Lines of a pipe, with a deadline.
#![expect(
    clippy::disallowed_methods,
    reason = "a deadline on a pipe between two processes is no part of a measurement"
)]

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Longest line.
const LINE_BYTES: usize = 4 << 20;

/// What has been read of a pipe and is no whole line yet.
#[derive(Default)]
pub(super) struct Lines {
    bytes: Vec<u8>,
}

/// What a pipe had to say.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A line without its end.
    Line(Vec<u8>),
    /// Nobody can write to it any more.
    Closed,
    /// Nothing within the time.
    TimedOut,
}

impl Lines {
    /// Waits for a line until `until`; without one, as long as it takes.
    pub fn next(&mut self, pipe: impl AsFd, until: Option<Instant>) -> io::Result<Next> {
        loop {
            if let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
                let mut line: Vec<u8> = self.bytes.drain(..=end).collect();
                line.pop();
                return Ok(Next::Line(line));
            }
            if self.bytes.len() > LINE_BYTES {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "endless line"));
            }
            if !wait_readable(&pipe, until)? {
                return Ok(Next::TimedOut);
            }
            let mut piece = [0; 4096];
            match rustix::io::read(&pipe, &mut piece) {
                Ok(0) => return Ok(Next::Closed),
                Ok(taken) => self.bytes.extend_from_slice(&piece[..taken]),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn wait_readable(pipe: &impl AsFd, until: Option<Instant>) -> io::Result<bool> {
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = left.map(timespec);
        let mut polled = [PollFd::new(pipe, PollFlags::IN)];
        match poll(&mut polled, timeout.as_ref()) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// A poll's timeout.
pub(super) fn timespec(limit: Duration) -> Timespec {
    Timespec {
        tv_sec: limit.as_secs() as i64,
        tv_nsec: i64::from(limit.subsec_nanos()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_silence_and_the_end_are_told_apart() {
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        let mut lines = Lines::default();
        let now = Some(Instant::now());
        assert_eq!(lines.next(&reader, now).unwrap(), Next::TimedOut);
        rustix::io::write(&writer, b"one\ntwo\nthr").unwrap();
        assert_eq!(
            lines.next(&reader, now).unwrap(),
            Next::Line(b"one".to_vec())
        );
        assert_eq!(
            lines.next(&reader, now).unwrap(),
            Next::Line(b"two".to_vec())
        );
        assert_eq!(lines.next(&reader, now).unwrap(), Next::TimedOut);
        rustix::io::write(&writer, b"ee\n").unwrap();
        assert_eq!(
            lines.next(&reader, None).unwrap(),
            Next::Line(b"three".to_vec())
        );
        drop(writer);
        assert_eq!(lines.next(&reader, None).unwrap(), Next::Closed);
    }
}
