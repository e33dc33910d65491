//! `assize-calibration/1`: what the instrument itself does to a figure, measured on one host.
//!
//! `assize calibrate --format json` prints it, a run may carry one as `calibration.json`, and the
//! reader states its errors beside each effect. `docs/calibrate.md` defines every field.

mod receive;

use std::fmt;

use assize_units::DurNs;
use serde::{Deserialize, Serialize};

use crate::host::HostFacts;

pub use receive::ReceiveWay;

/// The format name of a calibration.
pub const CALIBRATION_FORMAT: &str = "assize-calibration/1";

/// A calibration beyond this size is refused before it is read.
pub const CALIBRATION_LIMIT_BYTES: u64 = 1 << 20;

/// Group and name of the fact which processors the client's thread keeps to.
pub const AFFINITY_FACT: (&str, &str) = ("driver", "cpu affinity in cells");
/// Group and name of the fact whether the client's memory is locked.
pub const MEMORY_FACT: (&str, &str) = ("driver", "memory");

/// Most rows, drivers that are not to be had, rates and tries of a row.
const MOST: usize = 256;
/// Longest text in characters.
const LONGEST_TEXT: usize = 1_000;
/// No time of a calibration is longer.
const LONGEST_TIME: DurNs = DurNs::from_s(86_400);

/// What was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    /// `assize-calibration/1`.
    pub format: String,
    /// The tool and its version.
    pub tool: String,
    /// How much.
    pub amounts: Amounts,
    /// One for each driver, way of receiving and recording.
    pub rows: Vec<Row>,
    /// Drivers that are not to be had.
    pub absent: Vec<Absent>,
    /// The host beside the figures.
    pub host: Beside,
}

/// How much is measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Amounts {
    /// Streams at once.
    pub streams: u32,
    /// Events of each stream.
    pub events: u32,
    /// From one event of a stream to the next.
    pub gap_ns: DurNs,
    /// Short requests, for dispatch lag and cost of a request.
    pub requests: u32,
    /// From one of them to the next.
    pub request_gap_ns: DurNs,
    /// Rates of events a second that are tried one after the other.
    pub rates: Vec<u32>,
    /// How long each is tried.
    pub rung_ns: DurNs,
    /// When so much time has passed, no further rate is tried.
    pub budget_ns: DurNs,
}

/// A driver that is not to be had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Absent {
    /// Which one.
    pub driver: String,
    /// What the system said.
    pub why: String,
}

/// The host, and what else it was doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beside {
    /// Load average over 1, 5 and 15 minutes, before.
    pub load_before: Option<String>,
    /// The same, after.
    pub load_after: Option<String>,
    /// Processors.
    pub online: Option<String>,
    /// The first processor's name.
    #[serde(default)]
    pub cpu: Option<String>,
    /// The kernel's release.
    #[serde(default)]
    pub kernel: Option<String>,
    /// The kernel's boot id.
    #[serde(default)]
    pub boot_id: Option<String>,
    /// The processors that the client's thread kept to.
    #[serde(default)]
    pub affinity: Option<String>,
    /// Whether the client's memory was locked.
    #[serde(default)]
    pub memory: Option<String>,
    /// CPU time that a hypervisor gave to others, in thousandths of all there was.
    pub steal_permille: Option<u64>,
    /// How long it took.
    pub took_ns: DurNs,
}

/// One way of observing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The driver.
    pub driver: String,
    /// Which time a receive carries.
    pub receive: ReceiveWay,
    /// Whether each byte was recorded.
    pub recording: bool,
    /// A receive's stamp minus the peer's stamp of the same write.
    pub receive_error: Option<Distribution>,
    /// Stamps before the peer's own: the two clocks' conversion. They count as no error.
    pub early: u64,
    /// Receives that bore the kernel's stamp, of `receives`.
    pub kernel_stamped: u64,
    /// Receives that brought bytes.
    pub receives: u64,
    /// Dispatched minus intended.
    pub dispatch_lag: Option<Distribution>,
    /// CPU time of the process for each event.
    pub cpu_per_event_ns: Option<DurNs>,
    /// CPU time of the process for each short request.
    pub cpu_per_request_ns: Option<DurNs>,
    /// The highest rate of events a second that was held.
    pub held: Option<u32>,
    /// Why no higher one was.
    pub limit: Limit,
    /// Each try of a rate.
    pub rungs: Vec<Rung>,
    /// Requests that did not end well, in all measurements but that of rates.
    pub failed: u64,
}

/// Nearest-rank percentiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distribution {
    /// Median.
    pub p50_ns: DurNs,
    /// 95th percentile.
    pub p95_ns: DurNs,
    /// 99th percentile.
    pub p99_ns: DurNs,
    /// The largest.
    pub max_ns: DurNs,
    /// How many.
    pub samples: u64,
}

/// One try of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rung {
    /// Events a second.
    pub rate: u32,
    /// Receive error at p99.
    pub p99_ns: Option<DurNs>,
    /// How it went.
    pub outcome: Outcome,
}

/// How a rate went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Every event came, with an error under a millisecond at p99.
    Held,
    /// The error was larger, or events are missing.
    NotHeld,
    /// The peer did not write at that rate.
    PeerBehind,
}

/// Why no higher rate was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// All that were tried were held.
    HighestTried,
    /// The next was not held.
    NotHeld,
    /// The peer could not write faster.
    Peer,
    /// The time for it was over.
    Time,
}

/// A fact in which a host differs from the one that was calibrated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HostDifference {
    /// What differs, in words.
    pub what: &'static str,
    /// What the calibration says.
    pub calibrated: String,
    /// What the host says.
    pub found: String,
}

const BOOT: &str = "the boot";

/// `the kernel was 6.1.0, and is 6.6.0`; of two boots the ids would tell a person nothing.
impl fmt::Display for HostDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.what == BOOT {
            return f.write_str("the host has been started again since, or is another");
        }
        let HostDifference {
            what,
            calibrated,
            found,
        } = self;
        write!(f, "{what} was {calibrated}, and is {found}")
    }
}

/// Why a text is no calibration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrationError {
    /// It is longer than any calibration can be.
    #[error("it has {bytes} bytes, a calibration has at most {CALIBRATION_LIMIT_BYTES}")]
    TooLong {
        /// Its length.
        bytes: u64,
    },
    /// It is no JSON of the right shape.
    #[error(transparent)]
    Shape(#[from] serde_json::Error),
    /// It is of another format.
    #[error("its format is `{0}`, not `{CALIBRATION_FORMAT}`")]
    Format(String),
    /// A value cannot have been measured.
    #[error("{place}: {why}")]
    Value {
        /// Where it stands.
        place: String,
        /// What is wrong with it.
        why: &'static str,
    },
}

impl Calibration {
    /// Reads a calibration strictly: fields that are unknown, times beyond a day and percentiles
    /// out of order are errors.
    pub fn parse(text: &[u8]) -> Result<Calibration, CalibrationError> {
        /// What every format of this family begins with.
        #[derive(Deserialize)]
        struct Named {
            format: String,
        }
        let bytes = text.len() as u64;
        if bytes > CALIBRATION_LIMIT_BYTES {
            return Err(CalibrationError::TooLong { bytes });
        }
        let named: Named = serde_json::from_slice(text)?;
        if named.format != CALIBRATION_FORMAT {
            let shown = named.format.chars().take(40).collect();
            return Err(CalibrationError::Format(shown));
        }
        let found: Calibration = serde_json::from_slice(text)?;
        found.check()?;
        Ok(found)
    }

    /// The calibration as JSON, with a newline at its end.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("plain data has a JSON form");
        text.push('\n');
        text
    }

    /// The row of a driver, a way of receiving and a recording. Every `kernel` is one way: its
    /// gathering does not move the kernel's stamp.
    pub fn row(&self, driver: &str, receive: ReceiveWay, recording: bool) -> Option<&Row> {
        self.rows.iter().find(|row| {
            row.driver == driver
                && row.receive.is_kernel() == receive.is_kernel()
                && row.recording == recording
        })
    }

    /// What tells a host, or its state since it was started, from the one that was calibrated. A
    /// fact that one of the two does not tell makes no difference.
    pub fn differences(&self, host: &HostFacts) -> Vec<HostDifference> {
        let facts = [
            ("the processor", &self.host.cpu, ("cpu", "model")),
            (
                "the set of processors",
                &self.host.online,
                ("cpu", "online"),
            ),
            ("the kernel", &self.host.kernel, ("kernel", "release")),
            (BOOT, &self.host.boot_id, ("kernel", "boot_id")),
            (
                "the set of processors of the client",
                &self.host.affinity,
                AFFINITY_FACT,
            ),
            ("the client's memory", &self.host.memory, MEMORY_FACT),
        ];
        facts
            .into_iter()
            .filter_map(|(what, calibrated, (group, name))| {
                let (calibrated, found) = (calibrated.as_deref()?, host.told(group, name)?);
                (calibrated != found).then(|| HostDifference {
                    what,
                    calibrated: calibrated.to_owned(),
                    found: found.to_owned(),
                })
            })
            .collect()
    }

    fn check(&self) -> Result<(), CalibrationError> {
        let many = [
            ("rows", self.rows.len()),
            ("absent", self.absent.len()),
            ("amounts.rates", self.amounts.rates.len()),
        ];
        for (place, count) in many {
            at_most(place, count)?;
        }
        if self.rows.is_empty() {
            return Err(wrong("rows", "there is none"));
        }
        short("tool", &self.tool)?;
        for absent in &self.absent {
            short("absent.driver", &absent.driver)?;
            short("absent.why", &absent.why)?;
        }
        self.amounts.check()?;
        self.host.check()?;
        for (n, row) in self.rows.iter().enumerate() {
            row.check(&format!("rows[{n}]"))?;
            let same = |other: &Row| {
                (&other.driver, other.receive, other.recording)
                    == (&row.driver, row.receive, row.recording)
            };
            if self.rows[..n].iter().any(same) {
                return Err(wrong(
                    &format!("rows[{n}]"),
                    "a row before it is of the same",
                ));
            }
        }
        Ok(())
    }
}

impl Amounts {
    fn check(&self) -> Result<(), CalibrationError> {
        bounded("amounts.gap_ns", self.gap_ns)?;
        bounded("amounts.request_gap_ns", self.request_gap_ns)?;
        bounded("amounts.rung_ns", self.rung_ns)?;
        bounded("amounts.budget_ns", self.budget_ns)
    }
}

impl Beside {
    fn check(&self) -> Result<(), CalibrationError> {
        let texts = [
            ("host.load_before", &self.load_before),
            ("host.load_after", &self.load_after),
            ("host.online", &self.online),
            ("host.cpu", &self.cpu),
            ("host.kernel", &self.kernel),
            ("host.boot_id", &self.boot_id),
            ("host.affinity", &self.affinity),
            ("host.memory", &self.memory),
        ];
        for (place, text) in texts {
            short(place, text.as_deref().unwrap_or_default())?;
        }
        bounded("host.took_ns", self.took_ns)
    }
}

impl Row {
    fn check(&self, place: &str) -> Result<(), CalibrationError> {
        let within = |field: &str| format!("{place}.{field}");
        short(&within("driver"), &self.driver)?;
        at_most(&within("rungs"), self.rungs.len())?;
        let distributions = [
            ("receive_error", self.receive_error),
            ("dispatch_lag", self.dispatch_lag),
        ];
        for (field, distribution) in distributions {
            if let Some(distribution) = distribution {
                distribution.check(&within(field))?;
            }
        }
        for (field, time) in [
            ("cpu_per_event_ns", self.cpu_per_event_ns),
            ("cpu_per_request_ns", self.cpu_per_request_ns),
        ] {
            bounded(&within(field), time.unwrap_or(DurNs::ZERO))?;
        }
        for rung in &self.rungs {
            bounded(&within("rungs"), rung.p99_ns.unwrap_or(DurNs::ZERO))?;
        }
        if self.early > self.receive_error.map_or(0, |it| it.samples) {
            return Err(wrong(&within("early"), "more than there are samples"));
        }
        if self.kernel_stamped > self.receives {
            let why = "more than there are receives";
            return Err(wrong(&within("kernel_stamped"), why));
        }
        let held = self.rungs.iter().filter(|it| it.outcome == Outcome::Held);
        if held.map(|rung| rung.rate).max() != self.held {
            return Err(wrong(&within("held"), "not the highest rung that was held"));
        }
        Ok(())
    }
}

impl Distribution {
    fn check(&self, place: &str) -> Result<(), CalibrationError> {
        let ranks = [self.p50_ns, self.p95_ns, self.p99_ns, self.max_ns];
        if !ranks.is_sorted() {
            return Err(wrong(place, "its percentiles are out of order"));
        }
        if self.samples == 0 {
            return Err(wrong(place, "it has no sample"));
        }
        bounded(place, self.max_ns)
    }
}

fn wrong(place: &str, why: &'static str) -> CalibrationError {
    CalibrationError::Value {
        place: place.to_owned(),
        why,
    }
}

fn at_most(place: &str, count: usize) -> Result<(), CalibrationError> {
    match count {
        0..=MOST => Ok(()),
        _ => Err(wrong(place, "more than 256")),
    }
}

fn short(place: &str, text: &str) -> Result<(), CalibrationError> {
    match text.chars().nth(LONGEST_TEXT) {
        None => Ok(()),
        Some(_) => Err(wrong(place, "longer than 1000 characters")),
    }
}

fn bounded(place: &str, time: DurNs) -> Result<(), CalibrationError> {
    if time <= LONGEST_TIME {
        Ok(())
    } else {
        Err(wrong(place, "longer than a day"))
    }
}
