//! The wire log: its bytes, and what a changed or missing byte does.

use assize_evidence::wire::{
    FileHeader, Payload, RECORD_PAYLOAD_BYTES, RecordHead, SegmentBuffer, SocketOp, Timer, WireEnd,
    WireError, WireReader, WireWriter,
};
use assize_evidence::{Phase, Terminal};
use assize_plan::Hash;
use assize_units::MonoNs;
use proptest::prelude::*;

fn header() -> FileHeader {
    FileHeader {
        unit: 4,
        cell: 1,
        plan: Hash::of(b"plan"),
        begun: MonoNs(77),
    }
}

fn head(t: u64) -> RecordHead {
    RecordHead {
        t: MonoNs(t),
        kernel_ns: 0,
        conn: Some(2),
        req: None,
    }
}

/// One of each kind.
fn each() -> Vec<Payload<'static>> {
    vec![
        Payload::CellStart { origin_ns: 5 },
        Payload::Dispatch { intended_ns: 6 },
        Payload::Admit,
        Payload::Connect {
            addr: "127.0.0.1:8000",
        },
        Payload::Connected,
        Payload::Tls {
            facts: "{\"version\":\"1.3\"}",
        },
        Payload::SendStart {
            body: Hash::of(b"{}"),
            head: b"POST /v1/completions HTTP/1.1\r\n\r\n",
        },
        Payload::Sent { bytes: 1234 },
        Payload::Recv(b"data: x\n\n"),
        Payload::Eof,
        Payload::Error {
            op: SocketOp::Receive,
            errno: 104,
        },
        Payload::Close,
        Payload::Timer(Timer::Drain),
        Payload::Terminal {
            terminal: Terminal::Truncated,
            phase: Phase::Stream,
            status: 200,
            errno: -1,
        },
        Payload::Clock {
            offset_ns: -5,
            bracket_ns: 40,
        },
        Payload::Driver { fact: "re-armed" },
        Payload::CellEnd,
    ]
}

fn written(segments: usize) -> Vec<u8> {
    let mut writer = WireWriter::new(Vec::new(), header()).unwrap();
    for segment in 0..segments {
        let mut buffer = SegmentBuffer::new();
        for (place, payload) in each().iter().enumerate() {
            assert!(buffer.push(head((segment * 100 + place) as u64), payload));
        }
        writer.write(&buffer).unwrap();
    }
    writer.into_inner()
}

fn read(bytes: &[u8]) -> Result<(Vec<String>, WireEnd), WireError> {
    let mut reader = WireReader::new(bytes)?;
    let mut records = Vec::new();
    while reader.next_segment(|record| records.push(format!("{record:?}")))? {}
    Ok((records, reader.end().expect("the end is told")))
}

#[test]
fn the_first_bytes_are_those_of_the_format() {
    // docs/evidence-format.md, "wire.log", the vector.
    let mut writer = WireWriter::new(
        Vec::new(),
        FileHeader {
            unit: 1,
            cell: 0,
            plan: Hash([0xab; 32]),
            begun: MonoNs(0x0102_0304),
        },
    )
    .unwrap();
    let mut buffer = SegmentBuffer::new();
    let head = RecordHead {
        t: MonoNs(0x10),
        kernel_ns: 0,
        conn: None,
        req: Some(3),
    };
    assert!(buffer.push(head, &Payload::Dispatch { intended_ns: 0x0e }));
    writer.write(&buffer).unwrap();
    let bytes = writer.into_inner();
    let hex = bytes
        .iter()
        .fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    insta::assert_snapshot!(hex);
}

#[test]
fn what_is_written_is_read() {
    let (records, end) = read(&written(3)).unwrap();
    assert_eq!(end, WireEnd::Clean);
    let due: Vec<String> = (0..3)
        .flat_map(|segment| {
            each().into_iter().enumerate().map(move |(place, payload)| {
                let head = head((segment * 100 + place) as u64);
                format!("{:?}", assize_evidence::wire::Record { head, payload })
            })
        })
        .collect();
    assert_eq!(records, due);
}

#[test]
fn every_changed_byte_is_found() {
    let bytes = written(2);
    let whole = read(&bytes).unwrap();
    for place in 0..bytes.len() {
        for bit in [0x01, 0x80] {
            let mut changed = bytes.clone();
            changed[place] ^= bit;
            // Unit, cell, plan and begin are compared with the plan by the reader of the folder, and
            // the first segment carries the checksum of the whole header.
            assert_ne!(read(&changed).ok(), Some(whole.clone()), "byte {place}");
        }
    }
}

#[test]
fn a_cut_is_told_with_its_place() {
    let bytes = written(2);
    let one = written(1).len();
    for cut in one + 1..bytes.len() {
        let (records, end) = read(&bytes[..cut]).unwrap();
        assert_eq!(records.len(), each().len());
        assert_eq!(
            end,
            WireEnd::Broken {
                seq: 1,
                after: Some(MonoNs(16)),
                cut: true
            }
        );
    }
    assert_eq!(read(&bytes[..one]).unwrap().1, WireEnd::Clean);
    assert!(matches!(read(&bytes[..40]), Err(WireError::CutHeader)));
    assert!(matches!(
        read(b"something else"),
        Err(WireError::NotAWireLog)
    ));
}

#[test]
fn swapped_segments_are_found() {
    let bytes = written(3);
    let len = (bytes.len() - 64) / 3;
    let mut swapped = bytes.clone();
    swapped[64..64 + len].copy_from_slice(&bytes[64 + len..64 + 2 * len]);
    assert_eq!(
        read(&swapped).unwrap().1,
        WireEnd::Broken {
            seq: 0,
            after: None,
            cut: false
        }
    );
}

#[test]
fn a_full_segment_takes_no_more_and_the_largest_record_fits() {
    let mut buffer = SegmentBuffer::new();
    let large = vec![7; RECORD_PAYLOAD_BYTES];
    assert!(buffer.push(head(1), &Payload::Recv(&large)));
    assert!(!buffer.push(head(2), &Payload::Admit));
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(&bytes);
    }

    #[test]
    fn any_payload_comes_back(bytes in proptest::collection::vec(any::<u8>(), 0..3000), t in any::<u64>(), kernel_ns in any::<u64>()) {
        let mut buffer = SegmentBuffer::new();
        let head = RecordHead { t: MonoNs(t), kernel_ns, conn: Some(0), req: Some(1) };
        prop_assert!(buffer.push(head, &Payload::Recv(&bytes)));
        let mut writer = WireWriter::new(Vec::new(), header()).unwrap();
        writer.write(&buffer).unwrap();
        let file = writer.into_inner();
        let mut reader = WireReader::new(file.as_slice()).unwrap();
        let mut found = None;
        reader.next_segment(|record| found = Some((record.head, format!("{:?}", record.payload)))).unwrap();
        prop_assert_eq!(found, Some((head, format!("{:?}", Payload::Recv(&bytes)))));
    }
}
