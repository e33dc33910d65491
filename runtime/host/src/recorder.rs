//! The recorder: every entry of a cell into `wire.log`, by one copy and a thread that writes.
//!
//! The hot side copies a record into a preallocated 1 MiB segment. A full segment, or one that is a
//! second old, goes over a bounded queue to the writer thread and comes back empty. Nothing blocks
//! and nothing is dropped: where no empty segment is left, the recorder says that it has overflowed
//! and the cell ends as invalid. Memory: [`SEGMENTS`] MiB a cell, whatever its length.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::JoinHandle;

use assize_core::{ConnId, Entry, Sink, Stamp};
use assize_evidence::StoreFile;
use assize_evidence::wire::{
    FileHeader, Payload, RECORD_HEAD_BYTES, RECORD_PAYLOAD_BYTES, RecordHead, SegmentBuffer,
    WireWriter, padded_len,
};
use assize_plan::Hash;
use assize_units::{DurNs, MonoNs};

use crate::claims;
use crate::mask::Secrets;
use crate::render::RenderedCell;

/// Segments of 1 MiB that one cell's recorder has.
pub const SEGMENTS: usize = 24;

/// The longest time that a record stays in memory while others come.
const FLUSH_EVERY: DurNs = DurNs::from_s(1);

/// What happens when the writer cannot keep up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backpressure {
    /// The recorder overflows and the cell ends as invalid: a real clock waits for nobody.
    Overflow,
    /// The recorder waits: a virtual clock stands still meanwhile.
    Wait,
}

/// Takes a cell's entries.
pub struct Recorder {
    segment: SegmentBuffer,
    empty: Receiver<SegmentBuffer>,
    full: Option<SyncSender<SegmentBuffer>>,
    writer: Option<JoinHandle<io::Result<Box<dyn StoreFile>>>>,
    failed: Arc<AtomicBool>,
    overflowed: bool,
    backpressure: Backpressure,
    last_flush: MonoNs,
    rendered: Arc<RenderedCell>,
    address: AddressText,
}

/// How recording ended.
#[derive(Debug)]
pub struct RecorderEnd {
    /// No empty segment was left.
    pub overflowed: bool,
    /// The file could not be written.
    pub error: Option<io::Error>,
}

impl Recorder {
    /// Begins a wire log.
    pub fn new(
        file: Box<dyn StoreFile>,
        header: FileHeader,
        rendered: Arc<RenderedCell>,
        secrets: Secrets,
        backpressure: Backpressure,
    ) -> io::Result<Recorder> {
        let (full, taken) = sync_channel::<SegmentBuffer>(SEGMENTS);
        let (back, empty) = sync_channel::<SegmentBuffer>(SEGMENTS);
        for _ in 1..SEGMENTS {
            back.send(SegmentBuffer::new())
                .expect("the channel has room for every segment");
        }
        let failed = Arc::new(AtomicBool::new(false));
        let mut wire = WireWriter::new(file, header)?;
        let flag = failed.clone();
        let writer = std::thread::Builder::new()
            .name("recorder".into())
            .spawn(move || {
                lower_priority();
                let result = write_all(&mut wire, &taken, &back, &secrets);
                flag.store(result.is_err(), Ordering::Relaxed);
                // After a failure the segments still go round, so that the hot side ends in order.
                while let Ok(mut segment) = taken.recv() {
                    segment.clear();
                    let _ = back.send(segment);
                }
                result?;
                let mut file = wire.into_inner();
                file.sync()?;
                Ok(file)
            })?;
        Ok(Recorder {
            segment: SegmentBuffer::new(),
            empty,
            full: Some(full),
            writer: Some(writer),
            failed,
            overflowed: false,
            backpressure,
            last_flush: header.begun,
            rendered,
            address: AddressText::default(),
        })
    }

    /// Writes what is left and waits until it is on the disk.
    pub fn finish(mut self) -> RecorderEnd {
        if !self.segment.is_empty() {
            let last = std::mem::take(&mut self.segment);
            if let Some(full) = &self.full {
                let _ = full.send(last);
            }
        }
        self.full = None;
        let result = self
            .writer
            .take()
            .map(|writer| writer.join().unwrap_or_else(|_| Err(writer_died())));
        RecorderEnd {
            overflowed: self.overflowed,
            error: result.and_then(Result::err),
        }
    }

    fn push(&mut self, head: RecordHead, payload: &Payload<'_>) {
        if self.overflowed {
            return;
        }
        if !self.segment.push(head, payload) {
            if !self.hand_over(head.t) {
                self.overflowed = true;
                return;
            }
            let fits = self.segment.push(head, payload);
            debug_assert!(fits, "an empty segment takes any record");
        } else if head.t.since(self.last_flush) >= FLUSH_EVERY {
            // Too early to have an empty segment is no overflow: the record is kept and waits.
            self.hand_over(head.t);
        }
    }

    /// Exchanges the segment for an empty one; false where there is none.
    fn hand_over(&mut self, now: MonoNs) -> bool {
        let next = match (self.backpressure, self.empty.try_recv()) {
            (_, Ok(segment)) => segment,
            (Backpressure::Wait, Err(TryRecvError::Empty)) => match self.empty.recv() {
                Ok(segment) => segment,
                Err(_) => return false,
            },
            (_, Err(_)) => return false,
        };
        let full = std::mem::replace(&mut self.segment, next);
        self.last_flush = now;
        self.full
            .as_ref()
            .is_some_and(|queue| queue.try_send(full).is_ok())
    }
}

impl Sink for Recorder {
    fn put(&mut self, at: Stamp, conn: Option<ConnId>, req: Option<u32>, entry: Entry<'_>) {
        let head = RecordHead {
            t: at.mono,
            kernel_ns: at.kernel_ns,
            conn: conn.map(|conn| conn.serial),
            req,
        };
        let payload = match entry {
            Entry::CellStart { origin } => Payload::CellStart {
                origin_ns: origin.0,
            },
            Entry::Dispatch { intended } => Payload::Dispatch {
                intended_ns: intended.0,
            },
            Entry::Admit => Payload::Admit,
            Entry::Connect { addr } => {
                let text = self.address.get(addr);
                self.push(head, &Payload::Connect { addr: &text });
                return;
            }
            Entry::Connected => Payload::Connected,
            Entry::Tls { facts } => Payload::Tls { facts },
            Entry::SendStart => {
                let rendered = self.rendered.clone();
                let (body, sent_head) = rendered.send_record(req.unwrap_or_default());
                self.push(
                    head,
                    &Payload::SendStart {
                        body,
                        head: sent_head,
                    },
                );
                return;
            }
            Entry::Sent { bytes } => Payload::Sent { bytes },
            Entry::Received(bytes) => {
                for part in bytes.chunks(RECORD_PAYLOAD_BYTES) {
                    self.push(head, &Payload::Recv(part));
                }
                return;
            }
            Entry::Eof => Payload::Eof,
            Entry::Failed { op, errno } => Payload::Error {
                op: claims::operation(op),
                errno,
            },
            Entry::Close => Payload::Close,
            Entry::Timer(kind) => Payload::Timer(claims::timer(kind)),
            Entry::Terminal {
                terminal,
                phase,
                status,
                errno,
            } => Payload::Terminal {
                terminal: claims::terminal(terminal),
                phase: claims::phase(phase),
                status,
                errno,
            },
            Entry::Driver(fact) => Payload::Driver { fact },
            Entry::Clock {
                offset_ns,
                bracket_ns,
            } => Payload::Clock {
                offset_ns,
                bracket_ns,
            },
            Entry::CellEnd => Payload::CellEnd,
        };
        self.push(head, &payload);
    }

    fn overflowed(&self) -> bool {
        self.overflowed || self.failed.load(Ordering::Relaxed)
    }
}

/// The text of the address that was asked for last: it is nearly always the same one.
#[derive(Default)]
struct AddressText {
    last: Option<(SocketAddr, Arc<str>)>,
}

impl AddressText {
    fn get(&mut self, address: SocketAddr) -> Arc<str> {
        match &self.last {
            Some((known, text)) if *known == address => text.clone(),
            _ => {
                let text: Arc<str> = Arc::from(address.to_string());
                self.last = Some((address, text.clone()));
                text
            }
        }
    }
}

fn write_all(
    wire: &mut WireWriter<Box<dyn StoreFile>>,
    taken: &Receiver<SegmentBuffer>,
    back: &SyncSender<SegmentBuffer>,
    secrets: &Secrets,
) -> io::Result<()> {
    let mut held: Option<SegmentBuffer> = None;
    while let Ok(mut segment) = taken.recv() {
        if !secrets.is_empty() {
            let open = mask_segments(held.as_mut(), &mut segment, secrets);
            if let Some(before) = held.take() {
                write_one(wire, before, back)?;
            }
            if open {
                held = Some(segment);
                continue;
            }
        }
        write_one(wire, segment, back)?;
    }
    match held {
        Some(last) => write_one(wire, last, back),
        None => Ok(()),
    }
}

fn write_one(
    wire: &mut WireWriter<Box<dyn StoreFile>>,
    mut segment: SegmentBuffer,
    back: &SyncSender<SegmentBuffer>,
) -> io::Result<()> {
    let result = wire.write(&segment);
    segment.clear();
    let _ = back.send(segment);
    result
}

/// Masks secrets in received bytes, also where one is cut over records or over two segments. True
/// where a connection's last bytes could be the beginning of a secret, so that this segment must
/// wait for the next.
fn mask_segments(
    mut before: Option<&mut SegmentBuffer>,
    segment: &mut SegmentBuffer,
    secrets: &Secrets,
) -> bool {
    let mut streams: BTreeMap<u32, Vec<(bool, usize, usize)>> = BTreeMap::new();
    if let Some(before) = before.as_deref_mut() {
        collect_received(before.bytes_mut(), true, &mut streams);
    }
    collect_received(segment.bytes_mut(), false, &mut streams);
    let mut open = false;
    for pieces in streams.values() {
        let mut stream = Vec::new();
        let mut places = Vec::new();
        for (is_before, start, len) in pieces.iter().copied() {
            let bytes = match (is_before, before.as_deref_mut()) {
                (true, Some(before)) => before.bytes_mut(),
                _ => segment.bytes_mut(),
            };
            stream.extend_from_slice(&bytes[start..start + len]);
            places.extend((start..start + len).map(|place| (is_before, place)));
        }
        for place in secrets.find(&stream).into_iter().flatten() {
            let (is_before, place) = places[place];
            match (is_before, before.as_deref_mut()) {
                (true, Some(before)) => before.bytes_mut()[place] = b'*',
                _ => segment.bytes_mut()[place] = b'*',
            }
        }
        open |= secrets.open_end(&stream) > 0;
    }
    open
}

/// Where the received bytes of each connection are in a segment's payload.
fn collect_received(
    bytes: &[u8],
    is_before: bool,
    streams: &mut BTreeMap<u32, Vec<(bool, usize, usize)>>,
) {
    let word =
        |place: usize| u32::from_le_bytes(bytes[place..place + 4].try_into().expect("four bytes"));
    let mut place = 0;
    while place < bytes.len() {
        let len = word(place + 4) as usize;
        if bytes[place] == assize_evidence::wire::Kind::Recv as u8 {
            streams.entry(word(place + 24)).or_default().push((
                is_before,
                place + RECORD_HEAD_BYTES,
                len,
            ));
        }
        place += padded_len(len);
    }
}

/// The writer gives way to the reactor where the system permits it.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), 10);
}

fn writer_died() -> io::Error {
    io::Error::other("the recorder's thread ended")
}

impl RenderedCell {
    /// The hash of the body and the head, credentials masked, of a request.
    fn send_record(&self, req: u32) -> (Hash, &[u8]) {
        (self.body_of(req), self.masked_head(req))
    }
}
