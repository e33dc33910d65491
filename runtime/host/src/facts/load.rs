//! What else the host was doing.

use super::{Fact, HostFiles, one_line};

pub(super) fn facts(files: &dyn HostFiles) -> Vec<Fact> {
    let average = one_line(files, "/proc/loadavg");
    let stat = files.text("/proc/stat").unwrap_or_default();
    let pressure = |name: &str| some_pressure(&files.text(&format!("/proc/pressure/{name}"))?);
    vec![
        ("average", average.as_deref().and_then(averages)),
        ("running_threads", row(&stat, "procs_running", 0)),
        // proc_stat(5): user nice system idle iowait irq softirq steal.
        ("steal_ticks", row(&stat, "cpu", 7)),
        ("cpu_pressure_percent", pressure("cpu")),
        ("memory_pressure_percent", pressure("memory")),
        ("io_pressure_percent", pressure("io")),
    ]
}

/// The three averages of `0.52 0.58 0.59 1/1034 8931`.
fn averages(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split(' ').take(3).collect();
    (words.len() == 3).then(|| words.join(" "))
}

/// A field of the row that begins with the word `name`.
fn row(stat: &str, name: &str, field: usize) -> Option<String> {
    stat.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        if words.next()? != name {
            return None;
        }
        words.nth(field).map(str::to_owned)
    })
}

/// Share of the last ten seconds in which something waited: `some avg10=0.12 avg60=…`.
fn some_pressure(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    line.split(' ')
        .find_map(|word| word.strip_prefix("avg10="))
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Given, written};
    use super::*;

    #[test]
    fn load_and_steal_of_the_whole_host() {
        let files = Given::new(&[
            ("/proc/loadavg", "0.52 0.58 0.59 1/1034 8931\n"),
            (
                "/proc/stat",
                "cpu  10 20 30 40 50 60 70 80 90 0\ncpu0 1 2 3 4 5 6 7 8 9 0\nprocs_running 3\n",
            ),
            (
                "/proc/pressure/cpu",
                "some avg10=1.25 avg60=0.40 avg300=0.10 total=12\nfull avg10=9.00 avg60=0 total=0\n",
            ),
        ]);
        assert_eq!(
            written(&facts(&files)),
            [
                "average: 0.52 0.58 0.59",
                "running_threads: 3",
                "steal_ticks: 80",
                "cpu_pressure_percent: 1.25",
                "memory_pressure_percent: -",
                "io_pressure_percent: -",
            ]
        );
    }
}
