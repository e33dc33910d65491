//! What a server prints: pumped to its log, the last of it kept for a failure's message.

use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::Secrets;

/// Bytes of one read; as much as a pipe holds.
const READ_BYTES: usize = 64 << 10;
/// Bytes of the end that are kept. A secret longer than what lies between this and
/// [`QUOTE_BYTES`] could be quoted in part.
const TAIL_BYTES: usize = 32 << 10;
/// Most bytes and lines of a quotation.
const QUOTE_BYTES: usize = 2 << 10;
const QUOTE_LINES: usize = 12;

/// Takes a server's output until nobody can write to it any more.
///
/// It never stops taking: where the log cannot be written, the rest is dropped and the error kept,
/// since a server that is blocked by its own log would be measured as a slow one.
pub(super) struct Pump {
    shared: Arc<Mutex<Shared>>,
    done: Receiver<()>,
}

#[derive(Default)]
struct Shared {
    tail: Tail,
    failed: Option<io::Error>,
}

impl Pump {
    /// Starts the thread that moves `from` to `log`.
    pub fn start(from: impl Read + Send + 'static, log: Box<dyn Write + Send>) -> io::Result<Pump> {
        let shared = Arc::new(Mutex::new(Shared::default()));
        let (tell, done) = channel();
        let seen = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("server-log".to_owned())
            .spawn(move || {
                pump(from, log, &seen);
                // The receiver may have stopped waiting.
                let _ = tell.send(());
            })?;
        Ok(Pump { shared, done })
    }

    /// Waits for the end of the output; `false` where something still holds it open.
    pub fn wait(&self, limit: Duration) -> bool {
        // Disconnected means that the thread has ended.
        self.done.recv_timeout(limit) != Err(std::sync::mpsc::RecvTimeoutError::Timeout)
    }

    /// Why the log could not be written, once.
    pub fn take_error(&self) -> Option<io::Error> {
        lock(&self.shared).failed.take()
    }

    /// The last lines, with secrets masked.
    pub fn quote(&self, secrets: &Secrets) -> String {
        lock(&self.shared).tail.quote(secrets)
    }
}

fn lock(shared: &Mutex<Shared>) -> std::sync::MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn pump(mut from: impl Read, mut log: Box<dyn Write + Send>, shared: &Mutex<Shared>) {
    let mut buffer = vec![0; READ_BYTES];
    let mut writable = true;
    loop {
        let taken = match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(taken) => taken,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let bytes = &buffer[..taken];
        lock(shared).tail.push(bytes);
        if writable && let Err(error) = log.write_all(bytes) {
            writable = false;
            lock(shared).failed = Some(error);
        }
    }
    if writable && let Err(error) = log.flush() {
        lock(shared).failed = Some(error);
    }
}

/// The last bytes of a stream.
#[derive(Default)]
struct Tail {
    bytes: Vec<u8>,
}

impl Tail {
    fn push(&mut self, bytes: &[u8]) {
        let kept = &bytes[bytes.len().saturating_sub(TAIL_BYTES)..];
        let surplus = (self.bytes.len() + kept.len()).saturating_sub(TAIL_BYTES);
        self.bytes.drain(..surplus);
        self.bytes.extend_from_slice(kept);
    }

    fn quote(&self, secrets: &Secrets) -> String {
        let mut bytes = self.bytes.clone();
        secrets.mask(&mut bytes);
        let end = &bytes[bytes.len().saturating_sub(QUOTE_BYTES)..];
        let text: String = String::from_utf8_lossy(end)
            .replace("\r\n", "\n")
            .chars()
            .map(printable)
            .collect();
        let lines: Vec<&str> = text
            .lines()
            .map(str::trim_end)
            .filter(|line| !line.is_empty())
            .collect();
        lines[lines.len().saturating_sub(QUOTE_LINES)..].join("\n")
    }
}

/// A progress bar's carriage return begins a line of its own; other control characters could
/// move a terminal's cursor.
fn printable(symbol: char) -> char {
    match symbol {
        '\r' | '\n' => '\n',
        '\t' => ' ',
        _ if symbol.is_control() => '\u{fffd}',
        _ => symbol,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail_of(pieces: &[&[u8]]) -> Tail {
        let mut tail = Tail::default();
        for piece in pieces {
            tail.push(piece);
        }
        tail
    }

    #[test]
    fn a_quotation_holds_the_last_lines() {
        let lines: Vec<String> = (0..40).map(|number| format!("line {number}\n")).collect();
        let quoted = tail_of(&[lines.concat().as_bytes()]).quote(&Secrets::none());
        assert!(quoted.starts_with("line 28\n"), "{quoted}");
        assert!(quoted.ends_with("\nline 39"), "{quoted}");
    }

    #[test]
    fn a_quotation_masks_secrets_across_pieces_and_controls() {
        let tail = tail_of(&[b"key=s3c", b"ret!\r\n10%\r20%\n\x1b[2Jend\xff"]);
        let mut secrets = Secrets::none();
        secrets.insert("KEY", "s3cret".to_owned());
        assert_eq!(
            tail.quote(&secrets),
            "key=******!\n10%\n20%\n\u{fffd}[2Jend\u{fffd}"
        );
    }

    proptest::proptest! {
        #[test]
        fn a_tail_is_bounded_and_true(sizes in proptest::collection::vec(0usize..90_000, 0..6)) {
            let mut tail = Tail::default();
            let mut all = Vec::new();
            for size in sizes {
                let piece: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
                tail.push(&piece);
                all.extend_from_slice(&piece);
            }
            let from = all.len().saturating_sub(TAIL_BYTES);
            proptest::prop_assert_eq!(&tail.bytes, &all[from..]);
        }
    }

    /// Fails from the second write on.
    struct Full(u32);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += 1;
            if self.0 > 1 {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_log_that_cannot_be_written_is_told_and_the_output_still_taken() {
        let output = io::Cursor::new(vec![b'x'; 10 * READ_BYTES]);
        let pump = Pump::start(output, Box::new(Full(0))).unwrap();
        assert!(pump.wait(Duration::from_mins(1)));
        let error = pump.take_error().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(pump.take_error().is_none());
        assert_eq!(pump.quote(&Secrets::none()).len(), QUOTE_BYTES);
    }
}
