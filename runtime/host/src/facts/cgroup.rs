//! Control groups: how much of the host this process may use, and whether it was held back.

use super::{Fact, HostFiles, one_line};

const ROOT: &str = "/sys/fs/cgroup";
/// Levels of the hierarchy that are looked at.
const MAX_DEPTH: usize = 32;

pub(super) fn facts(files: &dyn HostFiles) -> Vec<Fact> {
    let membership = files.text("/proc/self/cgroup").unwrap_or_default();
    // A host with both versions mounted has its controllers in the first.
    let unified = one_line(files, &format!("{ROOT}/cgroup.controllers")).is_some();
    match (unified, membership.is_empty()) {
        (true, _) => second(files, &membership),
        (false, false) => first(files, &membership),
        (false, true) => named(None, [None, None, None, None, None]),
    }
}

fn named(version: Option<&str>, values: [Option<String>; 5]) -> Vec<Fact> {
    let names = [
        "cpu_quota",
        "cpus",
        "memory_max_bytes",
        "throttled_periods",
        "throttled_us",
    ];
    let mut facts = vec![("version", version.map(str::to_owned))];
    facts.extend(names.into_iter().zip(values));
    facts
}

fn second(files: &dyn HostFiles, membership: &str) -> Vec<Fact> {
    let path = membership
        .lines()
        .find_map(|line| line.strip_prefix("0::"))
        .unwrap_or("/");
    let folders = levels(ROOT, path);
    let line = |folder: &String, name: &str| one_line(files, &format!("{folder}/{name}"));
    let quotas = folders
        .iter()
        .filter_map(|folder| parse_max(&line(folder, "cpu.max")?));
    let memory = folders
        .iter()
        .filter_map(|folder| line(folder, "memory.max")?.parse().ok());
    let own = |name: &str| folders.iter().find_map(|folder| line(folder, name));
    let stat = folders
        .iter()
        .find_map(|folder| files.text(&format!("{folder}/cpu.stat")));
    let counted = |name: &str| after_blank(stat.as_deref()?, name);
    let known = own("cpu.max").is_some();
    named(
        Some("2"),
        [
            tightest(quotas, known),
            own("cpuset.cpus.effective"),
            least(memory, own("memory.max").is_some()),
            counted("nr_throttled"),
            counted("throttled_usec"),
        ],
    )
}

fn first(files: &dyn HostFiles, membership: &str) -> Vec<Fact> {
    let folders = |controller: &str| {
        let path = membership.lines().find_map(|line| {
            let (names, path) = line.split_once(':')?.1.split_once(':')?;
            names
                .split(',')
                .any(|name| name == controller)
                .then_some(path)
        });
        levels(&format!("{ROOT}/{controller}"), path.unwrap_or("/"))
    };
    let line = |folder: &String, name: &str| one_line(files, &format!("{folder}/{name}"));
    let cpu = folders("cpu");
    let quota = |folder: &String| {
        let quota = line(folder, "cpu.cfs_quota_us")?;
        let period = line(folder, "cpu.cfs_period_us")?;
        parse_max(&format!("{quota} {period}"))
    };
    let known = cpu
        .iter()
        .any(|folder| line(folder, "cpu.cfs_quota_us").is_some());
    let memory_folders = folders("memory");
    let limit = |folder: &String| line(folder, "memory.limit_in_bytes")?.parse().ok();
    // What the kernel writes for no limit: the greatest count of whole pages.
    let memory: Vec<u64> = memory_folders.iter().filter_map(limit).collect();
    let limited = memory.iter().copied().filter(|bytes| *bytes < 1 << 62);
    let stat = cpu
        .iter()
        .find_map(|folder| files.text(&format!("{folder}/cpu.stat")));
    let counted = |name: &str| after_blank(stat.as_deref()?, name);
    let throttled_us = counted("throttled_time")
        .and_then(|ns| ns.parse::<u64>().ok())
        .map(|ns| (ns / 1000).to_string());
    let cpus = folders("cpuset")
        .iter()
        .find_map(|folder| line(folder, "cpuset.effective_cpus"));
    named(
        Some("1"),
        [
            tightest(cpu.iter().filter_map(quota), known),
            cpus,
            least(limited, !memory.is_empty()),
            counted("nr_throttled"),
            throttled_us,
        ],
    )
}

/// The group's folder and those above it: any of them may hold the limit. In a container the
/// path is the host's and only the root exists.
fn levels(root: &str, path: &str) -> Vec<String> {
    let mut levels = Vec::new();
    let mut rest = path.trim_end_matches('/');
    // A path that leads out of its root is no group of ours.
    while !rest.is_empty() && !path.contains("..") && levels.len() < MAX_DEPTH {
        levels.push(format!("{root}{rest}"));
        rest = rest.rfind('/').map_or("", |end| &rest[..end]);
    }
    levels.push(root.to_owned());
    levels
}

/// `quota period` in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Quota {
    quota_us: u64,
    period_us: u64,
}

/// `200000 100000`; `None` for `max 100000` and for the first version's `-1 100000`.
fn parse_max(text: &str) -> Option<Quota> {
    let (quota, period) = text.split_once(' ')?;
    let quota_us = quota.parse().ok()?;
    let period_us = period.parse().ok().filter(|period| *period > 0)?;
    Some(Quota {
        quota_us,
        period_us,
    })
}

fn tightest(quotas: impl Iterator<Item = Quota>, known: bool) -> Option<String> {
    let product = |a: Quota, b: Quota| u128::from(a.quota_us) * u128::from(b.period_us);
    match quotas.min_by(|a, b| product(*a, *b).cmp(&product(*b, *a))) {
        Some(quota) => Some(format!("{} us in {} us", quota.quota_us, quota.period_us)),
        None => known.then(|| "unlimited".to_owned()),
    }
}

fn least(limits: impl Iterator<Item = u64>, known: bool) -> Option<String> {
    match limits.min() {
        Some(bytes) => Some(bytes.to_string()),
        None => known.then(|| "unlimited".to_owned()),
    }
}

/// What follows `name` and a blank in a text of such lines.
fn after_blank(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(' ')?;
        (key == name).then(|| value.trim().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Given, written};
    use super::*;

    #[test]
    fn the_tightest_quota_above_counts() {
        let files = Given::new(&[
            ("/proc/self/cgroup", "0::/pods/a\n"),
            ("/sys/fs/cgroup/cgroup.controllers", "cpu memory\n"),
            ("/sys/fs/cgroup/pods/a/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/pods/a/memory.max", "max\n"),
            ("/sys/fs/cgroup/pods/a/cpuset.cpus.effective", "0-3\n"),
            (
                "/sys/fs/cgroup/pods/a/cpu.stat",
                "usage_usec 5\nnr_periods 9\nnr_throttled 2\nthrottled_usec 1700\n",
            ),
            ("/sys/fs/cgroup/pods/cpu.max", "250000 100000\n"),
            ("/sys/fs/cgroup/pods/memory.max", "1073741824\n"),
        ]);
        assert_eq!(
            written(&facts(&files)),
            [
                "version: 2",
                "cpu_quota: 250000 us in 100000 us",
                "cpus: 0-3",
                "memory_max_bytes: 1073741824",
                "throttled_periods: 2",
                "throttled_us: 1700",
            ]
        );
    }

    #[test]
    fn the_first_version_has_other_names_for_the_same() {
        let files = Given::new(&[
            (
                "/proc/self/cgroup",
                "4:memory:/docker/x\n3:cpuset:/\n2:cpu,cpuacct:/docker/x\n0::/\n",
            ),
            ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n"),
            ("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"),
            (
                "/sys/fs/cgroup/cpu/cpu.stat",
                "nr_periods 0\nnr_throttled 0\nthrottled_time 3999\n",
            ),
            (
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
            ("/sys/fs/cgroup/cpuset/cpuset.effective_cpus", "0-1\n"),
        ]);
        assert_eq!(
            written(&facts(&files)),
            [
                "version: 1",
                "cpu_quota: unlimited",
                "cpus: 0-1",
                "memory_max_bytes: unlimited",
                "throttled_periods: 0",
                "throttled_us: 3",
            ]
        );
    }

    #[test]
    fn a_path_is_walked_to_its_root_and_not_out_of_it() {
        assert_eq!(levels("/r", "/a/b"), ["/r/a/b", "/r/a", "/r"]);
        assert_eq!(levels("/r", "/"), ["/r"]);
        assert_eq!(levels("/r", "/../x"), ["/r"]);
    }

    #[test]
    fn quotas_are_compared_as_shares() {
        let quotas = ["300000 100000", "50000 10000", "max 5", "x", "1 0"];
        let parsed = quotas.iter().filter_map(|text| parse_max(text));
        assert_eq!(tightest(parsed, true).unwrap(), "300000 us in 100000 us");
    }
}
