//! A calibration that is given to a run.

use std::io::Read as _;
use std::path::Path;

use assize_codes::{E0707, E1001};
use assize_evidence::HostFacts;
use assize_evidence::calibration::{CALIBRATION_LIMIT_BYTES, Calibration};
use assize_host::facts;

use crate::problem::Problem;

/// A calibration with its bytes: a run keeps them as they are.
#[derive(Clone, Debug)]
pub struct Attached {
    bytes: Vec<u8>,
    calibration: Calibration,
}

impl Attached {
    /// Reads a file.
    pub fn open(path: &Path) -> Result<Attached, Problem> {
        let name = path.display().to_string();
        let bytes = read(path)
            .map_err(|error| Problem::usage(E1001, format!("--calibration {name}: {error}")))?;
        Attached::from_bytes(&name, bytes)
    }

    /// The calibration that the file `name` holds.
    pub fn from_bytes(name: &str, bytes: Vec<u8>) -> Result<Attached, Problem> {
        let calibration = Calibration::parse(&bytes).map_err(|error| {
            Problem::refusal(E0707, format!("{name} is no calibration: {error}"))
                .help("assize calibrate --format json > calibration.json")
        })?;
        Ok(Attached { bytes, calibration })
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What makes it doubtful that it holds for this host, one sentence each.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings_on(&facts::gather())
    }

    fn warnings_on(&self, host: &HostFacts) -> Vec<String> {
        self.calibration
            .differences(host)
            .into_iter()
            .map(|it| format!("the calibration may not hold here: {it}"))
            .collect()
    }
}

/// As much of a file as shows that it is too long.
#[expect(clippy::disallowed_methods, reason = "a file that the user named")]
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path)?;
    file.take(CALIBRATION_LIMIT_BYTES + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Status;

    #[test]
    fn what_is_no_calibration_is_refused() {
        let refused = Attached::from_bytes("x.json", b"{}".to_vec()).unwrap_err();
        assert_eq!((refused.code, refused.status), (E0707, Status::No));
        assert!(
            refused.message.starts_with("x.json is no calibration: "),
            "{}",
            refused.message
        );
        let missing = Attached::open(Path::new("no/such/file")).unwrap_err();
        assert_eq!((missing.code, missing.status), (E1001, Status::Usage));
    }

    #[test]
    fn an_endless_file_is_read_no_further_than_it_must_be() {
        let refused = Attached::open(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(refused.code, E0707);
        assert!(refused.message.contains("at most 1048576"));
    }
}
