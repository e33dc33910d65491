//! Secrets are masked before anything reaches a file: each byte becomes `*`, lengths never change.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

/// The values that may reach no file, by the name of their environment variable.
#[derive(Clone, Default)]
pub struct Secrets {
    values: BTreeMap<String, String>,
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

impl Secrets {
    /// None.
    pub fn none() -> Secrets {
        Secrets::default()
    }

    /// Adds a value; an empty one hides nothing and is left out.
    pub fn insert(&mut self, name: &str, value: String) {
        if !value.is_empty() {
            self.values.insert(name.to_owned(), value);
        }
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// Whether there is nothing to hide.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Masks every occurrence in place.
    pub fn mask(&self, bytes: &mut [u8]) {
        for range in self.find(bytes) {
            bytes[range].fill(b'*');
        }
    }

    /// Where secrets are.
    pub(crate) fn find(&self, bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
        let mut found = Vec::new();
        for secret in self.values.values().map(String::as_bytes) {
            for start in 0..bytes.len().saturating_sub(secret.len() - 1) {
                if bytes[start] == secret[0] && bytes[start..].starts_with(secret) {
                    found.push(start..start + secret.len());
                }
            }
        }
        found
    }

    /// Length of the longest end of `bytes` that could be the beginning of a secret.
    pub(crate) fn open_end(&self, bytes: &[u8]) -> usize {
        let open = |secret: &[u8]| {
            (1..secret.len().min(bytes.len() + 1))
                .rev()
                .find(|len| bytes.ends_with(&secret[..*len]))
                .unwrap_or(0)
        };
        self.values
            .values()
            .map(|secret| open(secret.as_bytes()))
            .max()
            .unwrap_or(0)
    }
}

/// Masks a stream of text on its way to a file, also where a secret is cut over two writes.
pub struct MaskingWriter<W: Write> {
    out: W,
    secrets: Secrets,
    held: Vec<u8>,
}

impl<W: Write> MaskingWriter<W> {
    /// Masks what goes to `out`.
    pub fn new(out: W, secrets: Secrets) -> MaskingWriter<W> {
        MaskingWriter {
            out,
            secrets,
            held: Vec::new(),
        }
    }
}

impl<W: Write> Write for MaskingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(bytes);
        self.secrets.mask(&mut self.held);
        let ready = self.held.len() - self.secrets.open_end(&self.held);
        self.out.write_all(&self.held[..ready])?;
        self.held.drain(..ready);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<W: Write> Drop for MaskingWriter<W> {
    fn drop(&mut self) {
        // Nothing more can come, so what was held is no secret. A failure here has no one to hear it.
        let _ = self.out.write_all(&self.held);
        let _ = self.out.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets() -> Secrets {
        let mut secrets = Secrets::none();
        secrets.insert("KEY", "sk-abcabd".into());
        secrets
    }

    #[test]
    fn a_secret_is_masked_wherever_it_is_cut() {
        let text = b"Bearer sk-abcabd, sk-abc, sk-sk-abcabd";
        for first in 0..text.len() {
            for second in first..text.len() {
                let mut out = Vec::new();
                let mut writer = MaskingWriter::new(&mut out, secrets());
                for part in [&text[..first], &text[first..second], &text[second..]] {
                    writer.write_all(part).unwrap();
                }
                drop(writer);
                assert_eq!(out, b"Bearer *********, sk-abc, sk-*********");
            }
        }
    }

    #[test]
    fn a_secret_is_not_shown_by_debug() {
        assert_eq!(format!("{:?}", secrets()), "{\"KEY\"}");
    }
}
