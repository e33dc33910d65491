//! A calibration with tiny amounts ends and has a row for each way of observing. No time is held
//! against a limit.
#![cfg(target_os = "linux")]

use std::io::BufReader;
use std::os::unix::net::UnixStream;

use assize_evidence::calibration::{Amounts, Calibration, Limit};
use assize_units::DurNs;
use assize_verbs::calibrate::{PeerLink, calibrate, serve_peer};
use assize_verbs::run::CareRequest;

#[test]
fn a_tiny_calibration_has_every_row() {
    let (near, far) = UnixStream::pair().unwrap();
    let peer = std::thread::spawn(move || {
        let input = BufReader::new(far.try_clone().unwrap());
        serve_peer(input, far)
    });
    let amounts = Amounts {
        streams: 3,
        events: 4,
        gap_ns: DurNs::from_ms(2),
        requests: 5,
        request_gap_ns: DurNs::from_ms(1),
        rates: vec![1_000],
        rung_ns: DurNs::from_ms(10),
        budget_ns: DurNs::from_s(86_400),
    };
    let found = {
        let mut link = PeerLink::new(near.try_clone().unwrap(), near);
        calibrate(&mut link, amounts, &CareRequest::default()).unwrap()
    };
    peer.join().unwrap().unwrap();

    assert_eq!(found.rows.len() + 4 * found.absent.len(), 8);
    for row in &found.rows {
        let errors = row.receive_error.unwrap();
        // A head and four events on each of three streams.
        assert_eq!(errors.samples, 15, "{row:?}");
        assert!(errors.p50_ns <= errors.p99_ns && errors.p99_ns <= errors.max_ns);
        assert_eq!(row.dispatch_lag.unwrap().samples, 5);
        assert!(row.cpu_per_event_ns > Some(DurNs::ZERO));
        assert!(row.cpu_per_request_ns > Some(DurNs::ZERO));
        assert_eq!(row.failed, 0);
        assert!((1..=3).contains(&row.rungs.len()), "{row:?}");
        assert_eq!(row.held.is_some(), row.limit == Limit::HighestTried);
        // The kernel turns its stamps on late, so there may be fewer than receives.
        assert!(row.kernel_stamped <= row.receives);
        assert!(
            row.receive.is_kernel() || row.kernel_stamped == 0,
            "{row:?}"
        );
    }
    assert!(found.host.boot_id.is_some());
    assert!(found.host.affinity.is_some());
    assert_eq!(found.host.memory.as_deref(), Some("not locked"));
    let read = Calibration::parse(found.to_json().as_bytes()).unwrap();
    assert_eq!(read, found);
}
