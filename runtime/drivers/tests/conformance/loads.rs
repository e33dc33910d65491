//! Bursts, stops, and what a driver does beside its sockets.

use std::sync::atomic::Ordering;

use assize_core::{ConnectionPolicy, LoadSpec, ReceiveMode, RunControl, Terminal};
use assize_drivers::UringDriver;
use assize_units::{DurNs, OffsetNs};

use crate::cell::{KEPT, answering, cell, on_all, once, open, request, stream};
use crate::observed::{run, run_with};
use crate::{Subject, subjects};

#[test]
fn a_burst_of_256_requests() {
    for connections in [ConnectionPolicy::Fresh, KEPT] {
        let mut spec = cell(256, request(200));
        spec.load = open(&[0; 256]);
        spec.connections = connections;
        let shown = on_all(&spec, &[answering(stream(4))]);
        assert!(shown.all_complete());
        for observed in &shown.requests {
            assert_eq!((observed.events, observed.nth), (4, Some(0)));
        }
    }
}

#[test]
fn kernel_stamps_gathered_or_not() {
    for gather in [DurNs::ZERO, DurNs::from_us(500)] {
        let mut spec = cell(16, request(10));
        spec.load = LoadSpec::Open {
            offsets: (0..16).map(|place| OffsetNs(place * 1_000_000)).collect(),
            cap: None,
        };
        spec.receive = ReceiveMode::Kernel { gather };
        for mut subject in subjects() {
            let mut stamped = || {
                let mut spec = spec.clone();
                let peer = subject.serve(1, vec![answering(stream(6))]);
                spec.targets = vec![peer.addr().into()];
                let shown = run(subject.driver.as_mut(), spec);
                assert!(shown.all_complete());
                assert_eq!(shown.bytes, vec![stream(6); 16]);
                (shown.stamped_receives, shown.receives)
            };
            if stamped_by_nobody(&mut stamped) {
                assert!(subject.is_virtual(), "{}", subject.name());
            }
        }
    }
}

/// The kernel switches its stamps on in the background, and a loaded host may be late with it:
/// what must hold is that a cell after that has every receive stamped.
fn stamped_by_nobody(cell: &mut impl FnMut() -> (usize, usize)) -> bool {
    (0..5).all(|_| {
        let (stamped, receives) = cell();
        stamped != receives
    })
}

#[test]
fn a_control_that_stops_ends_the_cell() {
    let control = RunControl::default();
    control.stop.store(true, Ordering::Relaxed);
    for mut subject in subjects() {
        let mut spec = cell(3, request(10));
        let peer = subject.serve(1, vec![once([])]);
        spec.targets = vec![peer.addr().into()];
        let shown = run_with(subject.driver.as_mut(), spec, &control);
        assert_eq!(shown.terminals(), [Terminal::NotDispatched; 3]);
        assert_eq!(control.progress.ended.load(Ordering::Relaxed), 3);
    }
}

#[test]
fn a_driver_runs_one_cell_after_another() {
    for mut subject in subjects() {
        for place in 1..4 {
            let mut spec = cell(8, request(10));
            spec.load = LoadSpec::Closed { clients: 4 };
            let peer = subject.serve(place, vec![answering(stream(3))]);
            spec.targets = vec![peer.addr().into()];
            let shown = run(subject.driver.as_mut(), spec);
            assert!(shown.all_complete());
        }
    }
}

#[test]
fn a_driver_that_only_spins_sees_every_completion() {
    let mut spec = cell(8, request(10));
    spec.load = LoadSpec::Closed { clients: 4 };
    spec.spin = DurNs::from_s(100);
    let shown = on_all(&spec, &[answering(stream(3))]);
    assert!(shown.all_complete());
}

#[test]
fn buffers_that_run_out_lose_nothing() {
    let gather = DurNs::ZERO;
    for receive in [ReceiveMode::Reap, ReceiveMode::Kernel { gather }] {
        let Ok(driver) = UringDriver::with_buffers("a test", 2) else {
            eprintln!("skipped: io_uring is not to be had here");
            return;
        };
        let mut subject = Subject::on_loopback(driver);
        let mut spec = cell(8, request(10));
        spec.load = LoadSpec::Closed { clients: 8 };
        spec.receive = receive;
        let peer = subject.serve(1, vec![answering(stream(2_000))]);
        spec.targets = vec![peer.addr().into()];
        let shown = run(subject.driver.as_mut(), spec);
        assert!(shown.all_complete());
        assert!(shown.bytes == vec![stream(2_000); 8]);
        assert!(shown.drivers.contains(&"receive: armed again".to_owned()));
    }
}
