//! `journal.jsonl`: what happened, in order, each line bound to the one before it by its hash.

use std::io::{self, Write};

use assize_plan::Hash;
use assize_units::MonoNs;
use serde::{Deserialize, Serialize};

use crate::EVIDENCE_FORMAT;

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalLine {
    /// The line's number, from 0.
    pub seq: u64,
    /// SHA-256 of the line before with its newline, in hex; 64 zeros for line 0.
    pub prev: String,
    /// CLOCK_MONOTONIC in ns.
    pub t_ns: MonoNs,
    /// Wall time, RFC 3339, UTC: a label.
    pub wall: String,
    /// What happened.
    #[serde(flatten)]
    pub event: JournalEvent,
}

/// What happened. `kind` names it in JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum JournalEvent {
    /// Line 0.
    RunStarted {
        /// `assize-evidence/1`.
        format: String,
        /// Random, one for each run.
        run_id: String,
        /// The plan's hash.
        plan: Hash,
        /// The tool and its version.
        tool: String,
        /// The kernel's boot id: monotonic times compare only within one.
        boot_id: String,
        /// The driver.
        driver: String,
        /// Why this one.
        driver_why: String,
        /// How consent was given: `approved`, `terminal`, `not needed`, `in process`.
        consent: String,
        /// SHA-256 of the calibration that was given to the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        calibration: Option<Hash>,
    },
    /// A unit begins.
    UnitStarted {
        /// Its number in the plan.
        unit: u32,
    },
    /// Its server is being started.
    ServerStarting {
        /// The unit.
        unit: u32,
        /// The argument vector, or what stands for it.
        command: Vec<String>,
    },
    /// Its server is ready.
    ServerReady {
        /// The unit.
        unit: u32,
        /// Process id, 0 in process.
        pid: u32,
    },
    /// Its server is gone.
    ServerStopped {
        /// The unit.
        unit: u32,
        /// How it ended, in words.
        status: String,
        /// Whether it had to be killed.
        killed: bool,
    },
    /// The warmup begins.
    WarmupStarted {
        /// The unit.
        unit: u32,
    },
    /// The warmup has ended.
    WarmupEnded {
        /// The unit.
        unit: u32,
        /// What came of it.
        counts: CellCounts,
    },
    /// The settle interval before a cell has passed.
    Settled {
        /// The unit.
        unit: u32,
        /// The cell's name.
        cell: String,
    },
    /// A cell begins.
    CellStarted {
        /// The unit.
        unit: u32,
        /// The cell's name.
        cell: String,
    },
    /// A cell has ended.
    CellEnded {
        /// The unit.
        unit: u32,
        /// The cell's name.
        cell: String,
        /// What came of it.
        counts: CellCounts,
    },
    /// Wall clock minus monotonic clock.
    ClockBracket {
        /// CLOCK_REALTIME − CLOCK_MONOTONIC in ns.
        offset_ns: i64,
        /// The distance of the two monotonic readings around it in ns.
        bracket_ns: u64,
    },
    /// A failure of the world that belongs to no request.
    Failure {
        /// The unit, where it belongs to one.
        unit: Option<u32>,
        /// The diagnostic code.
        code: String,
        /// What was being done.
        operation: String,
        /// To what.
        subject: String,
        /// What the system says.
        message: String,
        /// The system's error number, 0 where there is none.
        errno: i32,
    },
    /// A unit was broken off.
    Interrupted {
        /// The unit.
        unit: u32,
        /// Why.
        reason: StopReason,
    },
    /// A unit has ended.
    UnitEnded {
        /// The unit.
        unit: u32,
    },
    /// The run has ended; the seal follows.
    Sealed {
        /// Units that ended.
        units: u32,
        /// Whether every planned unit ended.
        complete: bool,
    },
}

/// Why a unit was broken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// A signal or a person.
    Stopped,
    /// The server never became ready, or ended by itself.
    Server,
    /// A warmup request failed.
    Warmup,
    /// The recorder could not keep up.
    Overflow,
    /// The disk is full or the folder cannot be written.
    Disk,
    /// The wall clock was stepped.
    ClockStep,
    /// The driver could not go on.
    Driver,
}

/// What came of a cell, as the runtime counts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellCounts {
    /// Requests of the plan.
    pub requests: u64,
    /// Requests whose message was complete.
    pub complete: u64,
    /// Requests that ended otherwise.
    pub failed: u64,
    /// Stream events.
    pub events: u64,
    /// Bytes received.
    pub received_bytes: u64,
}

/// Writes the journal.
pub struct Journal<W: Write> {
    out: W,
    seq: u64,
    prev: String,
}

impl<W: Write> Journal<W> {
    /// A journal whose next line is line 0.
    pub fn new(out: W) -> Journal<W> {
        Journal {
            out,
            seq: 0,
            prev: "0".repeat(64),
        }
    }

    /// Appends one line.
    pub fn append(&mut self, t_ns: MonoNs, wall: String, event: JournalEvent) -> io::Result<()> {
        let line = JournalLine {
            seq: self.seq,
            prev: self.prev.clone(),
            t_ns,
            wall,
            event,
        };
        let mut text = serde_json::to_string(&line)?;
        text.push('\n');
        self.out.write_all(text.as_bytes())?;
        self.out.flush()?;
        self.prev = Hash::of(text.as_bytes()).hex();
        self.seq += 1;
        Ok(())
    }

    /// The file below.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }
}

/// A journal that has been read.
#[derive(Debug, Default)]
pub struct JournalReader {
    /// The lines that this build understands.
    pub lines: Vec<JournalLine>,
    /// Lines of a kind that it does not know: counted, never lost.
    pub unknown: Vec<UnknownLine>,
    /// Bytes of a last line without its newline: what a crash cut off.
    pub cut_bytes: usize,
}

/// A line of an unknown kind.
#[derive(Debug, PartialEq, Eq)]
pub struct UnknownLine {
    /// Its number.
    pub seq: u64,
    /// Its kind.
    pub kind: String,
}

/// Why a journal is no journal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// A line is no JSON of the right shape.
    #[error("journal.jsonl, line {line}: {why}")]
    Shape {
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// A line does not carry the hash of the line before it.
    #[error(
        "journal.jsonl, line {line}: says that the line before has hash {said}, it has {found}"
    )]
    Chain {
        /// The line, from 1.
        line: usize,
        /// The hash that the line carries.
        said: String,
        /// The hash of the line before.
        found: String,
    },
    /// Line 0 is not the start of a run, or of another format.
    #[error("journal.jsonl begins with {0}, not with the start of a run in `{EVIDENCE_FORMAT}`")]
    Start(String),
}

impl JournalReader {
    /// Reads a journal and checks its chain.
    pub fn parse(text: &[u8]) -> Result<JournalReader, JournalError> {
        #[derive(Deserialize)]
        struct Frame {
            seq: u64,
            prev: String,
            kind: String,
        }
        let mut reader = JournalReader::default();
        let mut prev = "0".repeat(64);
        for (place, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
            if line.last() != Some(&b'\n') {
                reader.cut_bytes = line.len();
                break;
            }
            let number = place + 1;
            let shape = |why: String| JournalError::Shape { line: number, why };
            let frame: Frame =
                serde_json::from_slice(line).map_err(|error| shape(error.to_string()))?;
            if frame.seq != place as u64 {
                return Err(shape(format!("is numbered {}, {place} is due", frame.seq)));
            }
            if frame.prev != prev {
                return Err(JournalError::Chain {
                    line: number,
                    said: frame.prev,
                    found: prev,
                });
            }
            prev = Hash::of(line).hex();
            match serde_json::from_slice::<JournalLine>(line) {
                Ok(known) => reader.lines.push(known),
                Err(error) if KINDS.contains(&frame.kind.as_str()) => {
                    return Err(shape(error.to_string()));
                }
                Err(_) => reader.unknown.push(UnknownLine {
                    seq: frame.seq,
                    kind: frame.kind,
                }),
            }
        }
        match reader.lines.first().map(|line| &line.event) {
            Some(JournalEvent::RunStarted { format, .. }) if format == EVIDENCE_FORMAT => {
                Ok(reader)
            }
            Some(JournalEvent::RunStarted { format, .. }) => {
                Err(JournalError::Start(format!("format `{format}`")))
            }
            Some(other) => Err(JournalError::Start(format!("{other:?}"))),
            None => Err(JournalError::Start("nothing".into())),
        }
    }
}

/// The kinds that this build knows; a line of one of these must have its shape.
const KINDS: &[&str] = &[
    "run_started",
    "unit_started",
    "server_starting",
    "server_ready",
    "server_stopped",
    "warmup_started",
    "warmup_ended",
    "settled",
    "cell_started",
    "cell_ended",
    "clock_bracket",
    "failure",
    "interrupted",
    "unit_ended",
    "sealed",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> JournalEvent {
        JournalEvent::RunStarted {
            format: EVIDENCE_FORMAT.into(),
            run_id: "r".into(),
            plan: Hash::of(b"plan"),
            tool: "assize 0.1.0".into(),
            boot_id: "b".into(),
            driver: "epoll".into(),
            driver_why: "the plan names it".into(),
            consent: "not needed".into(),
            calibration: None,
        }
    }

    fn written() -> Vec<u8> {
        let mut journal = Journal::new(Vec::new());
        let events = [
            start(),
            JournalEvent::UnitStarted { unit: 0 },
            JournalEvent::UnitEnded { unit: 0 },
        ];
        for (place, event) in events.into_iter().enumerate() {
            journal
                .append(MonoNs(place as u64), "2026-11-30T18:00:00Z".into(), event)
                .unwrap();
        }
        journal.out
    }

    #[test]
    fn what_is_written_is_read() {
        let reader = JournalReader::parse(&written()).unwrap();
        assert_eq!(reader.lines.len(), 3);
        assert_eq!(reader.lines[2].event, JournalEvent::UnitEnded { unit: 0 });
    }

    #[test]
    fn any_changed_byte_is_found() {
        let bytes = written();
        let original = JournalReader::parse(&bytes).unwrap();
        // The last line has no line after it that carries its hash; the seal covers it.
        let last = bytes[..bytes.len() - 1]
            .iter()
            .rposition(|byte| *byte == b'\n')
            .unwrap();
        for place in 0..last {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            let found = JournalReader::parse(&changed);
            assert!(
                found.is_err() || found.unwrap().lines != original.lines,
                "byte {place}"
            );
        }
    }

    #[test]
    fn a_cut_last_line_is_counted_and_unknown_kinds_are_kept() {
        let mut bytes = written();
        let prev = Hash::of(
            bytes
                .split_inclusive(|byte| *byte == b'\n')
                .next_back()
                .unwrap(),
        )
        .hex();
        bytes.extend_from_slice(
            format!("{{\"seq\":3,\"prev\":\"{prev}\",\"t_ns\":9,\"wall\":\"w\",\"kind\":\"later\",\"x\":1}}\n{{\"se")
                .as_bytes(),
        );
        let reader = JournalReader::parse(&bytes).unwrap();
        assert_eq!(
            reader.unknown,
            [UnknownLine {
                seq: 3,
                kind: "later".into()
            }]
        );
        assert_eq!(reader.cut_bytes, 4);
    }
}
