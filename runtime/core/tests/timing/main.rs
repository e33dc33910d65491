//! The laws of timing (`docs/timing.md`) against any peer, any cut of its bytes and any driver, on a
//! virtual clock.

mod cases;
mod laws;
mod mutants;
mod noise;
mod setting;
mod stated;
mod world;

use assize_core::Session;
use proptest::prelude::*;

use setting::{Act, DriverActs, Setting};
use world::run;

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..400)
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_law_holds_with_a_punctual_driver(bytes in bytes()) {
        laws::check(&run(&Setting::draw(&bytes)));
    }

    #[test]
    fn every_law_holds_with_a_troubled_driver(bytes in bytes(), driver in bytes()) {
        laws::check(&run(&Setting::draw(&bytes).with_troubled_driver(&driver)));
    }

    #[test]
    fn an_open_load_dispatches_alike_whatever_the_peer_does(bytes in bytes(), other in bytes()) {
        laws::a_peer_moves_no_dispatch(Setting::draw(&bytes), &Setting::draw(&other));
    }

    #[test]
    fn any_cut_of_the_bytes_gives_the_same_exchanges(bytes in bytes()) {
        laws::a_cut_changes_nothing(Setting::draw(&bytes));
    }

    #[test]
    fn a_late_driver_shifts_no_intended_instant(bytes in bytes(), lateness in 1_u64..9_000) {
        let mut setting = Setting::draw(&bytes);
        let punctual = run(&setting);
        setting.driver.lateness = vec![lateness];
        let late = run(&setting);
        let intended = |run: &world::Run| -> Vec<_> {
            let origin = run.origin.unwrap();
            run.exchanges.iter().map(|e| e.intended.unwrap().since(origin)).collect()
        };
        prop_assert_eq!(intended(&punctual), intended(&late));
        for exchange in &late.exchanges {
            let first_wake = late.wakes.iter().find(|wake| Some(**wake) >= exchange.intended);
            prop_assert_eq!(exchange.dispatched.as_ref(), first_wake);
        }
    }

    /// Calls that no driver makes: any connection, any order, clocks that jump both ways.
    #[test]
    fn no_order_of_calls_panics(bytes in bytes(), noise in bytes()) {
        let setting = Setting::draw(&bytes);
        noise::make_calls(&mut Session::new(setting.spec.into()), &noise);
    }
}

proptest! {
    // Each case is as many runs as the answer has bytes.
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases / 8,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_connection_that_dies_at_any_byte_loses_nothing(bytes in bytes(), reset in any::<bool>()) {
        let setting = Setting::draw(&bytes);
        let answer = &setting.answers[0];
        let lens = answer.acts.iter().map(|(_, act)| match act {
            Act::Bytes(bytes) => bytes.len(),
            _ => 0,
        });
        let total = lens.sum::<usize>().min(120);
        for kept in 0..=total {
            let mut setting = setting.clone();
            let acts = &mut setting.answers[0].acts;
            let mut left = kept;
            for (_, act) in acts.iter_mut() {
                if let Act::Bytes(bytes) = act {
                    bytes.truncate(left);
                    left -= bytes.len();
                }
            }
            acts.retain(|(_, act)| matches!(act, Act::Bytes(bytes) if !bytes.is_empty()));
            let after = acts.last().map_or(0, |(after, _)| *after);
            acts.push((after, if reset { Act::Reset } else { Act::Eof }));
            setting.driver = DriverActs::default();
            laws::check(&run(&setting));
        }
    }
}
