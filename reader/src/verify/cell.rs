//! One cell: its wire log replayed, its rows held against the replay.

use assize_evidence::wire::{NONE, WireEnd, WireReader};
use assize_evidence::{
    CELL_EXCHANGES, CELL_WIRE, CellCounts, ExchangeRow, Store, WARMUP_DIR, cell_dir,
};
use assize_plan::{Cell, Unit};

use super::plan::Frozen;
use super::stage::Stage;
use super::{CellReading, Gap, Refusal, io_refusal, wire_gap};

/// The rows of one cell beyond this size are refused.
const ROWS_LIMIT_BYTES: u64 = 1 << 30;

/// A cell in its place.
pub(super) struct Scene<'a> {
    pub(super) store: &'a dyn Store,
    pub(super) frozen: &'a Frozen,
    pub(super) unit: &'a Unit,
    pub(super) cell: &'a Cell,
    /// The cell's place in its unit; none for the warmup.
    pub(super) place: Option<usize>,
    /// What the journal says came of it.
    pub(super) counts: Option<CellCounts>,
    /// Whether the unit was run to its end, so that nothing of it may be missing.
    pub(super) is_complete: bool,
}

/// A cell that was replayed.
pub(super) struct ReplayedCell {
    pub(super) reading: CellReading,
    pub(super) compared: u64,
}

impl Scene<'_> {
    /// Replays the cell; `None` where nothing of it is there.
    pub(super) fn replay(
        &self,
        names: &[String],
        gaps: &mut Vec<Gap>,
    ) -> Result<Option<ReplayedCell>, Refusal> {
        let folder = self.folder();
        let wire = format!("{folder}/{CELL_WIRE}");
        let rows = format!("{folder}/{CELL_EXCHANGES}");
        let is_there = |name: &String| names.binary_search(name).is_ok();
        if !is_there(&wire) {
            self.missing(gaps, &wire, "the cell was never begun")?;
            return Ok(None);
        }
        let mut stage = Stage::new(self)?;
        let end = self.read_wire(&wire, &mut stage)?;
        let open = stage.conversations.len() + stage.undispatched();
        if let Some(gap) = wire_gap(&wire, end, open) {
            if self.is_complete {
                return Err(self.accounting(format!("{wire}: {}", gap.what)));
            }
            gaps.push(gap);
        } else if !stage.ended {
            let what = format!("the cell has no end; {open} requests have none");
            self.missing(gaps, &wire, &what)?;
        }
        let compared = if is_there(&rows) {
            self.compare(&rows, &stage, gaps)?
        } else {
            self.missing(gaps, &rows, "the runtime's claims")?;
            0
        };
        self.compare_counts(&stage, compared > 0)?;
        Ok(Some(ReplayedCell {
            reading: stage.into_reading(),
            compared,
        }))
    }

    pub(super) fn folder(&self) -> String {
        let name = match self.place {
            Some(_) => self.cell.path.as_str(),
            None => WARMUP_DIR,
        };
        cell_dir(&self.unit.path, name)
    }

    fn missing(&self, gaps: &mut Vec<Gap>, place: &str, what: &str) -> Result<(), Refusal> {
        if self.is_complete {
            return Err(
                self.accounting(format!("{place}: missing although the unit ended: {what}"))
            );
        }
        gaps.push(Gap {
            place: place.to_owned(),
            what: what.to_owned(),
            from_segment: None,
            after_ns: None,
        });
        Ok(())
    }

    pub(super) fn accounting(&self, why: String) -> Refusal {
        Refusal::Accounting {
            place: self.folder(),
            why,
        }
    }

    fn read_wire(&self, file: &str, stage: &mut Stage<'_>) -> Result<WireEnd, Refusal> {
        let input = self
            .store
            .open(file)
            .map_err(|source| io_refusal(file, source))?;
        let wrong = |source| Refusal::Wire {
            file: file.to_owned(),
            source,
        };
        let mut reader = WireReader::new(std::io::BufReader::new(input)).map_err(wrong)?;
        let header = *reader.header();
        let cell = self.place.map_or(NONE, |place| place as u32);
        let facts = [
            ("unit", u64::from(header.unit), u64::from(self.unit.n)),
            ("cell", u64::from(header.cell), u64::from(cell)),
        ];
        for (field, claimed, replayed) in facts {
            if claimed != replayed {
                return Err(self.disagreement(file, field, claimed, replayed));
            }
        }
        if header.plan != self.frozen.hash {
            return Err(self.disagreement(file, "plan", header.plan, self.frozen.hash));
        }
        loop {
            let mut refused = None;
            let more = reader
                .next_segment(|record| {
                    if refused.is_none() {
                        refused = stage.take(&record).err();
                    }
                })
                .map_err(wrong)?;
            if let Some(refusal) = refused {
                return Err(refusal);
            }
            if !more {
                break;
            }
        }
        stage.unknown_records = reader.unknown_records();
        Ok(reader.end().unwrap_or(WireEnd::Clean))
    }

    fn disagreement(
        &self,
        place: &str,
        field: &str,
        claimed: impl ToString,
        replayed: impl ToString,
    ) -> Refusal {
        Refusal::Disagreement {
            place: place.to_owned(),
            field: field.to_owned(),
            claimed: claimed.to_string(),
            replayed: replayed.to_string(),
        }
    }

    /// One row for each planned request, in order, each field as the replay gives it. Where the unit
    /// was broken off, the rows may be cut: what is there is compared, what is not is told.
    fn compare(&self, file: &str, stage: &Stage<'_>, gaps: &mut Vec<Gap>) -> Result<u64, Refusal> {
        let mut text = self
            .store
            .read(file, ROWS_LIMIT_BYTES)
            .map_err(|source| io_refusal(file, source))?;
        if !self.is_complete {
            let whole = text
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |end| end + 1);
            text.truncate(whole);
        }
        let rows = ExchangeRow::parse_all(&text)
            .map_err(|error| self.accounting(format!("{file}: {error}")))?;
        if rows.len() != stage.total() {
            let what = format!("{} rows for {} planned requests", rows.len(), stage.total());
            if rows.len() > stage.total() {
                return Err(self.accounting(what));
            }
            self.missing(gaps, file, &what)?;
        }
        for (claimed, replayed) in rows.iter().zip(&stage.rows) {
            let Some(replayed) = replayed else {
                if !self.is_complete {
                    continue;
                }
                return Err(self.accounting(format!(
                    "request {} has a row and no terminal record",
                    claimed.req
                )));
            };
            if claimed == replayed {
                continue;
            }
            let place = format!(
                "{}, request {} ({})",
                self.folder(),
                replayed.req,
                replayed.id
            );
            return Err(first_difference(&place, claimed, replayed));
        }
        Ok(rows.len() as u64)
    }

    /// The journal's counts against the replay's, where the cell is whole.
    fn compare_counts(&self, stage: &Stage<'_>, is_compared: bool) -> Result<(), Refusal> {
        let Some(claimed) = self.counts else {
            if self.is_complete {
                return Err(self.accounting("the journal has no end of the cell".to_owned()));
            }
            return Ok(());
        };
        if !is_compared {
            return Ok(());
        }
        let rows = || stage.rows.iter().flatten();
        let complete = rows()
            .filter(|row| row.terminal == assize_evidence::Terminal::Complete)
            .count() as u64;
        let pairs = [
            ("requests", claimed.requests, stage.total() as u64),
            ("complete", claimed.complete, complete),
            ("failed", claimed.failed, rows().count() as u64 - complete),
            (
                "events",
                claimed.events,
                rows().map(|row| u64::from(row.events)).sum(),
            ),
            (
                "received_bytes",
                claimed.received_bytes,
                rows().map(|row| row.received_bytes).sum(),
            ),
        ];
        for (field, claimed, replayed) in pairs {
            if claimed != replayed {
                let place = format!("journal.jsonl, {}", self.folder());
                return Err(self.disagreement(&place, field, claimed, replayed));
            }
        }
        Ok(())
    }
}

/// The first field in which a claim differs from the replay.
pub(super) fn first_difference(
    place: &str,
    claimed: &ExchangeRow,
    replayed: &ExchangeRow,
) -> Refusal {
    let value = |row: &ExchangeRow| serde_json::to_value(row).unwrap_or_default();
    let (claimed, replayed) = (value(claimed), value(replayed));
    let field = claimed
        .as_object()
        .into_iter()
        .flatten()
        .find(|(name, value)| replayed.get(name.as_str()) != Some(value));
    let (name, value) = field.map_or(("row", &claimed), |(name, value)| (name.as_str(), value));
    Refusal::Disagreement {
        place: place.to_owned(),
        field: name.to_owned(),
        claimed: value.to_string(),
        replayed: replayed.get(name).unwrap_or(&replayed).to_string(),
    }
}
