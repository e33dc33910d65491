//! Evidence of a run that was given a calibration.

use assize_evidence::calibration::{
    Amounts, Beside, CALIBRATION_FORMAT, Calibration, Distribution, Limit, ReceiveWay, Row,
};
use assize_evidence::{Journal, JournalEvent, JournalReader, MemoryStore, Store};
use assize_plan::{CompareOp, Hash, Hypothesis, Judgement, Quantity, Receive, ValueUnit};
use assize_reader::page::render_html;
use assize_reader::plot::render_svg_calibration;
use assize_reader::report::{InstrumentError, Report, Standing};
use assize_reader::study::{Analysis, analyze};
use assize_reader::text::render_text;
use assize_reader::verdict::decide;
use assize_reader::verify::{Demands, Refusal};
use assize_units::{DurNs, Ratio};

use crate::rendered::{HOSTILE, assert_harmless, well_formed};
use crate::{USUAL, check, judged, reseal};

const NAME: &str = "calibration.json";

/// Errors of 10 µs at p50 and 40 µs at p99, lags of 2 and 5 µs.
pub fn calibration() -> Calibration {
    let us = DurNs::from_us;
    let distribution = |p50, p99| Distribution {
        p50_ns: us(p50),
        p95_ns: us(p99),
        p99_ns: us(p99),
        max_ns: us(p99),
        samples: 100,
    };
    Calibration {
        format: CALIBRATION_FORMAT.into(),
        tool: "by hand".into(),
        amounts: Amounts {
            streams: 1,
            events: 99,
            gap_ns: us(10),
            requests: 100,
            request_gap_ns: us(10),
            rates: vec![],
            rung_ns: us(10),
            budget_ns: us(10),
        },
        rows: vec![Row {
            driver: "io_uring".into(),
            receive: ReceiveWay::Reap,
            recording: true,
            receive_error: Some(distribution(10, 40)),
            early: 0,
            kernel_stamped: 0,
            receives: 100,
            dispatch_lag: Some(distribution(2, 5)),
            cpu_per_event_ns: None,
            cpu_per_request_ns: None,
            held: None,
            limit: Limit::Time,
            rungs: vec![],
            failed: 0,
        }],
        absent: vec![],
        host: Beside {
            load_before: None,
            load_after: None,
            online: Some("0-1".into()),
            cpu: None,
            kernel: None,
            boot_id: Some("b".into()),
            affinity: None,
            memory: None,
            steal_permille: None,
            took_ns: us(10),
        },
    }
}

/// The evidence as if its run had had this driver and been given this calibration.
pub fn given(store: &MemoryStore, driver: &str, bytes: &[u8]) -> MemoryStore {
    let store = store.copy();
    let read = JournalReader::parse(&store.read("journal.jsonl", 1 << 20).unwrap()).unwrap();
    let mut journal = Journal::new(Vec::new());
    for mut line in read.lines {
        if let JournalEvent::RunStarted {
            driver: name,
            calibration,
            ..
        } = &mut line.event
        {
            driver.clone_into(name);
            *calibration = Some(Hash::of(bytes));
        }
        journal.append(line.t_ns, line.wall, line.event).unwrap();
    }
    store.replace("journal.jsonl", std::mem::take(journal.get_mut()));
    store.replace(NAME, bytes.to_vec());
    reseal(&store);
    store
}

fn usual() -> MemoryStore {
    given(
        &USUAL.evidence(),
        "io_uring",
        calibration().to_json().as_bytes(),
    )
}

fn refused(store: &MemoryStore) -> (&'static str, String) {
    let refused: Refusal = check(store).expect_err("altered evidence");
    (refused.code().id, refused.to_string())
}

#[test]
fn a_calibration_is_read_with_the_evidence() {
    let verified = check(&usual()).unwrap();
    assert!(verified.is_complete());
    let attached = verified.calibration.unwrap();
    assert_eq!(attached.calibration, calibration());
    assert_eq!(verified.run.calibration, Some(attached.hash));
    assert_eq!(attached.differences, []);
    assert_eq!(check(&USUAL.evidence()).unwrap().calibration, None);
}

#[test]
fn another_host_is_told() {
    let store = usual();
    let host = r#"{"groups": {"cpu": {"online": "0-7"}, "kernel": {"boot_id": "ignored"}}}"#;
    store.replace("host.json", host.into());
    reseal(&store);
    let attached = check(&store).unwrap().calibration.unwrap();
    let [online] = attached.differences.as_slice() else {
        panic!("the journal tells the boot: {:?}", attached.differences);
    };
    assert_eq!(
        (online.what, online.found.as_str()),
        ("the set of processors", "0-7")
    );
}

#[test]
fn any_other_calibration_than_the_one_given_is_found() {
    let tampered = usual();
    let bytes = tampered.read(NAME, 1 << 20).unwrap();
    let other = String::from_utf8(bytes).unwrap().replace("40000", "41000");
    assert!(Calibration::parse(other.as_bytes()).is_ok());
    tampered.replace(NAME, other.into_bytes());
    assert_eq!(refused(&tampered).0, "E0701");
    // Where nothing is sealed, or all is sealed anew, the journal names it.
    tampered.remove("SHA256SUMS");
    let (code, why) = refused(&tampered);
    assert_eq!(code, "E0809");
    assert!(why.contains("its bytes have the hash "), "{why}");
    reseal(&tampered);
    assert_eq!(refused(&tampered).0, "E0809");

    let missing = usual();
    missing.remove(NAME);
    reseal(&missing);
    let (code, why) = refused(&missing);
    assert_eq!(code, "E0809");
    assert!(why.starts_with("calibration.json: it is not there"));

    let added = USUAL.evidence();
    added.replace(NAME, calibration().to_json().into_bytes());
    reseal(&added);
    let (code, why) = refused(&added);
    assert_eq!(
        (code, why.as_str()),
        ("E0809", "calibration.json: the journal names none")
    );
}

#[test]
fn a_malformed_calibration_is_found() {
    for text in ["", "{}", "{\"format\": \"assize-calibration/2\"}"] {
        let store = given(&USUAL.evidence(), "io_uring", text.as_bytes());
        assert_eq!(refused(&store).0, "E0809", "{text}");
    }
}

fn us(us: i128) -> Ratio {
    Ratio::new(us, 1_000_000).unwrap()
}

/// Whose errors are so many times those of [`calibration`].
fn worse(times: u64) -> Calibration {
    let mut worse = calibration();
    let row = &mut worse.rows[0];
    for it in [&mut row.receive_error, &mut row.dispatch_lag]
        .into_iter()
        .flatten()
    {
        for time in [
            &mut it.p50_ns,
            &mut it.p95_ns,
            &mut it.p99_ns,
            &mut it.max_ns,
        ] {
            time.0 *= times;
        }
    }
    worse
}

fn analyzed(calibration: &Calibration) -> Analysis {
    let text = calibration.to_json();
    let store = given(&USUAL.evidence(), "io_uring", text.as_bytes());
    analyze(&store, &Demands::default()).unwrap()
}

/// The error beside one hypothesis that the usual plan has been given in another form.
fn beside(place: usize, change: impl FnOnce(&mut Hypothesis)) -> InstrumentError {
    let mut analysis = analyzed(&calibration());
    let verified = &mut analysis.verified;
    change(&mut verified.plan.rules[0].hypotheses[place]);
    let figures: Vec<_> = analysis
        .cells
        .iter()
        .map(|cell| assize_reader::verdict::CellFigures {
            unit: cell.unit,
            cell: cell.cell.clone(),
            figures: vec![(
                verified.plan.rules[0].hypotheses[place].measure.clone(),
                // 10 ms and 1 ms a unit.
                Ok(us(10_000 + 1_000 * i128::from(cell.unit))),
            )],
        })
        .collect();
    analysis.families = decide(&verified.plan, &verified.units, &figures).unwrap();
    Report::new(&analysis).families[0].instrument[place].clone()
}

/// By hand: 10 + 2 µs and 40 + 5 µs; the arms differ by 2 ms in each block.
#[test]
fn a_latency_from_the_schedule_hangs_on_a_stamp_and_on_a_dispatch() {
    let report = Report::new(&analyzed(&calibration()));
    let e2e = &report.families[0].instrument[1];
    let error = e2e.error.as_ref().unwrap();
    assert_eq!((error.p50.0, error.p99.0), (us(12), us(45)));
    assert_eq!(error.well_above_from.0, us(135));
    assert_eq!(e2e.difference.unwrap().0, us(-2_000));
    assert_eq!(e2e.standing, Standing::WellAbove);
    assert_eq!((e2e.from_line, &e2e.flag), (None, &None));
    insta::assert_snapshot!(e2e.words.as_ref().unwrap(), @"Instrument’s error 12.0 µs at p50, 45.0 µs at p99 (io_uring, reap: receive error 10.0 µs / 40.0 µs, dispatch lag 2.00 µs / 5.00 µs). The median difference, 2.00 ms, is 44 times the p99.");
}

/// By hand: the closed cell is no schedule; the end of its interval is a stamp.
#[test]
fn a_rate_hangs_on_the_end_of_its_window() {
    let analysis = analyzed(&calibration());
    let report = Report::new(&analysis);
    let rate = &report.families[0].instrument[0];
    let error = rate.error.as_ref().unwrap();
    assert_eq!(error.dispatch_lag, None);
    let intervals = analysis
        .cells
        .iter()
        .filter(|it| it.cell == "closed-2")
        .map(|it| it.summary.as_ref().unwrap().interval_ns);
    let window = intervals.min().unwrap();
    assert_eq!(error.window_ns, Some(window));
    let relative = Ratio::new(40_000, i128::from(window.0)).unwrap();
    assert_eq!(error.relative.unwrap().0, relative);
    let blocks = &report.families[0].verdict.hypotheses[0].blocks;
    let rates = blocks.iter().flat_map(|it| [it.candidate, it.control]);
    let highest = rates.map(|it| it.unwrap().0).max().unwrap();
    assert_eq!(error.p99.0, highest.mul(relative).unwrap());
    assert_eq!(rate.unit, ValueUnit::PerSecond);
    insta::assert_snapshot!(rate.words.as_ref().unwrap(), @"Instrument’s error 0.2034 /s at p50, 0.8135 /s at p99 (io_uring, reap: receive error 10.0 µs / 40.0 µs, over 14.0 ms at least: 0.29% at p99). The median difference, 62.90 /s, is 77 times the p99.");
}

#[test]
fn an_effect_that_is_not_well_above_is_flagged_and_no_verdict_is_another() {
    // 3 times 14 and 15 times 45 µs are below and above 2 ms.
    let standing = |times| {
        let analysis = analyzed(&worse(times));
        let same = judged(&USUAL).families == analysis.families;
        assert!(same, "the rules were frozen");
        let report = Report::new(&analysis);
        (report.families[0].instrument[1].standing, report)
    };
    assert_eq!(standing(14).0, Standing::WellAbove);
    let (flagged, report) = standing(15);
    assert_eq!(flagged, Standing::NotWellAbove);
    let flag = report.families[0].instrument[1].flag.as_ref().unwrap();
    insta::assert_snapshot!(flag, @"The median difference, 2.00 ms, is not well above the instrument’s error: less than 3 times its p99, 2.02 ms.");
    assert!(render_html(&report).contains(flag));
    let text = render_text(&report, 100, false);
    assert!(text.contains("is not well above the instrument\u{2019}s error"));
    let (verdicts, _) = text.split_once("\nFigures").unwrap();
    insta::assert_snapshot!("an_effect_that_is_flagged", verdicts);
}

#[test]
fn without_a_calibration_one_line_says_how_to_get_one() {
    let report = Report::new(&judged(&USUAL));
    let error = &report.families[0].instrument[1];
    assert_eq!(error.difference.unwrap().0, us(-2_000));
    assert_eq!((&error.error, error.standing), (&None, Standing::Unknown));
    assert_eq!((&error.words, &error.flag), (&None, &None));
    let page = render_html(&report);
    let line = "No calibration is attached";
    assert_eq!(page.matches(line).count(), 1);
    assert!(page.contains("run PLAN --calibration"));
    assert_eq!(render_text(&report, 80, false).matches(line).count(), 1);
}

#[test]
fn without_a_row_of_the_run_s_kind_nothing_is_stated() {
    let text = calibration().to_json();
    let store = given(&USUAL.evidence(), "virtual", text.as_bytes());
    let report = Report::new(&analyze(&store, &Demands::default()).unwrap());
    let error = &report.families[0].instrument[1];
    assert_eq!(error.standing, Standing::Unknown);
    assert_eq!(
        error.words.as_ref().unwrap(),
        "No error of the instrument is stated: the calibration has no row of virtual with reap, \
         recorded."
    );
    assert!(render_html(&report).contains("no row of virtual"));

    let mut unrecorded = calibration();
    unrecorded.rows[0].recording = false;
    let report = Report::new(&analyzed(&unrecorded));
    assert_eq!(report.families[0].instrument[0].error, None);

    let mut lagless = calibration();
    lagless.rows[0].dispatch_lag = None;
    let report = Report::new(&analyzed(&lagless));
    let [closed, open] = report.families[0].instrument.as_slice() else {
        panic!("two hypotheses");
    };
    assert!(closed.error.is_some() && open.error.is_none());
}

/// Of a row for each way of receiving, the cell's own is taken.
#[test]
fn the_row_is_that_of_the_cell_s_way_of_receiving() {
    let mut both = calibration();
    let mut kernel = worse(2).rows.remove(0);
    let gather = DurNs::from_us(500);
    kernel.receive = ReceiveWay::Kernel { gather };
    both.rows.push(kernel);
    let mut analysis = analyzed(&both);
    let p99 = |analysis: &Analysis| {
        let report = Report::new(analysis);
        report.families[0].instrument[1]
            .error
            .as_ref()
            .unwrap()
            .p99
            .0
    };
    assert_eq!(p99(&analysis), us(45));
    for unit in &mut analysis.verified.plan.units {
        for cell in &mut unit.cells {
            cell.receive = Receive::Kernel {
                gather_ns: DurNs::from_us(20),
            };
        }
    }
    assert_eq!(p99(&analysis), us(90));
}

/// Candidates are even units of 10 ms and more, controls the odd ones after them: −1 ms in each
/// block. The median control is 16 ms.
#[test]
fn what_is_compared_is_the_distance_that_decides() {
    let usual = beside(1, |_| ());
    assert_eq!(usual.difference.unwrap().0, us(-1_000));
    assert_eq!(usual.standing, Standing::WellAbove);
    // 6.25% of 16 ms are 1 ms: the line is where the candidates are, up to 0.3 ms a block.
    let margin = Ratio::new(1, 16).unwrap();
    let by = beside(1, |it| it.judgement = Judgement::BeatsBy { margin });
    assert_eq!(by.from_line.unwrap().0, Ratio::ZERO);
    assert_eq!(by.standing, Standing::NotWellAbove);
    let keeps = beside(1, |it| it.judgement = Judgement::Keeps { within: margin });
    assert_eq!(keeps.from_line.unwrap().0, us(-2_000));
    assert_eq!(keeps.standing, Standing::WellAbove);
    let holds = beside(1, |it| {
        it.control = None;
        it.judgement = Judgement::Holds {
            op: CompareOp::Le,
            value: us(15_100),
        };
    });
    // The candidates are 10, 12, … 20 ms.
    assert_eq!(holds.from_line.unwrap().0, us(-100));
    assert_eq!(
        (holds.difference, holds.standing),
        (None, Standing::NotWellAbove)
    );
    assert!(
        holds
            .flag
            .unwrap()
            .starts_with("The median distance from the bound, 100 ")
    );
}

#[test]
fn each_measure_hangs_on_its_own_errors() {
    let of = |quantity, from| {
        let change = |it: &mut Hypothesis| {
            it.measure.quantity = quantity;
            it.measure.from = from;
        };
        beside(1, change)
    };
    let p99 = |quantity, from| of(quantity, from).error.unwrap().p99.0;
    let (intended, sent) = (
        Some(assize_plan::Origin::Intended),
        Some(assize_plan::Origin::Sent),
    );
    assert_eq!(p99(Quantity::Ttft, intended), us(45));
    assert_eq!(p99(Quantity::Ttft, sent), us(40));
    assert_eq!(p99(Quantity::Gap, None), us(40));
    assert_eq!(p99(Quantity::DispatchLag, None), us(5));
    // Answers of three tokens have two gaps.
    assert_eq!(p99(Quantity::Tpot, None), us(20));
    for counted in [
        Quantity::Attainment,
        Quantity::Failed,
        Quantity::TokensPerEvent,
    ] {
        let counted = of(counted, None);
        assert_eq!((counted.error, counted.standing), (None, Standing::Unknown));
        assert!(
            counted
                .words
                .unwrap()
                .starts_with("No error of the instrument is stated: a ")
        );
    }
}

#[test]
fn a_calibration_of_another_boot_is_said_to_be_so() {
    let mut other = calibration();
    other.host.boot_id = Some("x".into());
    let report = Report::new(&analyzed(&other));
    let doubt = "The calibration may not hold for this run: the host has been started again since, \
                 or is another.";
    assert_eq!(report.instrument.doubts, [doubt]);
    assert!(render_html(&report).contains(doubt));
    assert!(render_text(&report, 100, false).contains(doubt));
}

/// One bar from p50 to p99 and one dot for each figure that there is; its place is its logarithm.
#[test]
fn a_calibration_is_drawn() {
    let mut two = calibration();
    let mut epoll = worse(100).rows.remove(0);
    "epoll".clone_into(&mut epoll.driver);
    epoll.dispatch_lag = None;
    two.rows.push(epoll);
    let svg = render_svg_calibration(&two);
    assert_eq!(well_formed(&svg)[..3], ["svg", "title", "desc"]);
    assert_eq!(svg.matches("http").count(), 1, "the namespace alone");
    let places: Vec<f64> = svg
        .split("<circle cx=\"")
        .skip(1)
        .map(|rest| rest.split_once('"').unwrap().0.parse().unwrap())
        .collect();
    // 10 µs, 1 ms, 2 µs; drawn at four times the size.
    let [near, far, lag] = places.as_slice() else {
        panic!("three dots: {places:?}");
    };
    let decade = (far - near) / 2.0;
    assert!(
        (near - lag - 5f64.log10() * decade).abs() < 1.5,
        "{places:?}"
    );
    let (_, described) = svg.split_once("<desc>").unwrap();
    let (described, _) = described.split_once("</desc>").unwrap();
    insta::assert_snapshot!(described, @"unknown · processors 0-1 · kernel unknown. load unknown before, unknown after. receive error: a stamp minus its write. io_uring reap, recorded: p50 10.0 µs, p99 40.0 µs, largest 40.0 µs; epoll reap, recorded: p50 1.00 ms, p99 4.00 ms, largest 4.00 ms. dispatch lag: behind the schedule. io_uring reap, recorded: p50 2.00 µs, p99 5.00 µs, largest 5.00 µs; epoll reap, recorded: none.");
    for shown in [
        "10.0 µs / 40.0 µs",
        "1.00 ms / 4.00 ms",
        "none",
        "epoll reap, recorded",
    ] {
        assert!(svg.contains(shown), "{shown}");
    }

    let mut hostile = two;
    hostile.host.cpu = Some(HOSTILE.into());
    HOSTILE.clone_into(&mut hostile.rows[0].driver);
    let svg = render_svg_calibration(&hostile);
    assert_harmless(&svg);
    well_formed(&svg);
}
