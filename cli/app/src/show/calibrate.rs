//! The figures of `calibrate`.

use assize_evidence::calibration::{Beside, Calibration, Distribution, Limit, Row};
use assize_units::{DurNs, format_duration};

use super::table::table;
use crate::output::printable;

/// For a person.
pub fn figures(calibration: &Calibration) -> String {
    let mut text = beside(&calibration.host);
    for absent in &calibration.absent {
        text.push_str(&format!(
            "{} is not to be had: {}\n",
            absent.driver,
            printable(&absent.why)
        ));
    }
    let rows = &calibration.rows;
    text.push_str("\nreceive error: a stamp minus the peer's stamp of the same write\n");
    text.push_str(&distributions(rows, |row| row.receive_error));
    text.push_str("\ndispatch lag: a short request's dispatch minus its instant in the schedule\n");
    text.push_str(&distributions(rows, |row| row.dispatch_lag));
    text.push_str("\ncost, and the events/s that were held with an error below 1 ms at p99\n");
    text.push_str(&costs(rows));
    let (failed, early) = rows.iter().fold((0, 0), |(failed, early), row| {
        (failed + row.failed, early + row.early)
    });
    let by_kernel = rows.iter().filter(|row| row.receive.is_kernel());
    let bare: u64 = by_kernel.map(|row| row.receives - row.kernel_stamped).sum();
    if bare > 0 {
        text.push_str(&format!(
            "\n{bare} receives of `kernel` bore no stamp of the kernel and count by the reap's\n"
        ));
    }
    if failed > 0 {
        text.push_str(&format!("\n{failed} requests did not end well\n"));
    }
    if early > 0 {
        text.push_str(&format!(
            "\n{early} stamps were before the peer's own and count as no error\n"
        ));
    }
    text
}

fn beside(host: &Beside) -> String {
    let or_unknown = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".to_owned());
    let steal = match host.steal_permille {
        Some(permille) => format!("{}.{}%", permille / 10, permille % 10),
        None => "unknown".to_owned(),
    };
    format!(
        "processors {}; load average {} before, {} after;\nsteal {steal}; took {}\n\
         kernel: kernel(gather = 500us); recorded: every byte is kept\n",
        or_unknown(&host.online),
        or_unknown(&host.load_before),
        or_unknown(&host.load_after),
        format_duration(host.took_ns)
    )
}

fn name(row: &Row) -> String {
    let recording = if row.recording { "recorded" } else { "" };
    // The gathering time is told once, above.
    let receive = row.receive.word();
    format!("{:8} {receive:6} {recording}", row.driver)
}

fn or_none<T>(value: Option<T>, form: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "none".to_owned(), form)
}

fn distributions(rows: &[Row], of: impl Fn(&Row) -> Option<Distribution>) -> String {
    let mut lines = vec![["", "p50", "p95", "p99", "max"].map(str::to_owned).to_vec()];
    for row in rows {
        let found = of(row);
        let time =
            |pick: fn(Distribution) -> DurNs| or_none(found, |found| format_duration(pick(found)));
        lines.push(vec![
            name(row),
            time(|it| it.p50_ns),
            time(|it| it.p95_ns),
            time(|it| it.p99_ns),
            time(|it| it.max_ns),
        ]);
    }
    table(&lines)
}

fn costs(rows: &[Row]) -> String {
    let heading = ["", "CPU/event", "CPU/request", "held", "limit"];
    let mut lines = vec![heading.map(str::to_owned).to_vec()];
    for row in rows {
        lines.push(vec![
            name(row),
            or_none(row.cpu_per_event_ns, format_duration),
            or_none(row.cpu_per_request_ns, format_duration),
            or_none(row.held, |rate| format!("{rate}/s")),
            limit(row.limit).to_owned(),
        ]);
    }
    table(&lines)
}

fn limit(limit: Limit) -> &'static str {
    match limit {
        Limit::HighestTried => "highest tried",
        Limit::NotHeld => "next not held",
        Limit::Peer => "peer no faster",
        Limit::Time => "time was up",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assize_evidence::calibration::{Absent, CALIBRATION_FORMAT, ReceiveWay};
    use assize_verbs::calibrate::quick_amounts;

    #[test]
    fn figures_fit_eighty_columns() {
        let us = DurNs::from_us;
        let found = Distribution {
            p50_ns: us(6),
            p95_ns: us(57),
            p99_ns: us(72),
            max_ns: us(12_345),
            samples: 3232,
        };
        let calibration = Calibration {
            format: CALIBRATION_FORMAT.into(),
            tool: assize_verbs::TOOL.into(),
            amounts: quick_amounts(),
            rows: vec![Row {
                driver: "epoll".into(),
                receive: ReceiveWay::Kernel { gather: us(500) },
                recording: true,
                receive_error: Some(found),
                early: 2,
                kernel_stamped: 3230,
                receives: 3232,
                dispatch_lag: None,
                cpu_per_event_ns: Some(us(14)),
                cpu_per_request_ns: Some(us(140)),
                held: Some(20_000),
                limit: Limit::NotHeld,
                rungs: Vec::new(),
                failed: 0,
            }],
            absent: vec![Absent {
                driver: "io_uring".into(),
                why: "io_uring_setup: EPERM".into(),
            }],
            host: Beside {
                load_before: Some("0.10 0.20 0.30".into()),
                load_after: None,
                online: Some("0-1".into()),
                cpu: None,
                kernel: None,
                boot_id: None,
                affinity: None,
                memory: None,
                steal_permille: Some(12),
                took_ns: DurNs::from_s(12),
            },
        };
        let text = figures(&calibration);
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        insta::assert_snapshot!(text, @r"
        processors 0-1; load average 0.10 0.20 0.30 before, unknown after;
        steal 1.2%; took 12.0 s
        kernel: kernel(gather = 500us); recorded: every byte is kept
        io_uring is not to be had: io_uring_setup: EPERM

        receive error: a stamp minus the peer's stamp of the same write
                                        p50      p95      p99      max
          epoll    kernel recorded  6.00 µs  57.0 µs  72.0 µs  12.3 ms

        dispatch lag: a short request's dispatch minus its instant in the schedule
                                     p50   p95   p99   max
          epoll    kernel recorded  none  none  none  none

        cost, and the events/s that were held with an error below 1 ms at p99
                                    CPU/event  CPU/request     held          limit
          epoll    kernel recorded    14.0 µs       140 µs  20000/s  next not held

        2 receives of `kernel` bore no stamp of the kernel and count by the reap's

        2 stamps were before the peer's own and count as no error
        ");
    }
}
