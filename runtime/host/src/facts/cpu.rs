//! Processors: which, how many of them are ours, and what changes their speed.

use std::collections::BTreeMap;

use super::{Fact, HostFiles, after_colon, on_off, one_line};

const CPUS: &str = "/sys/devices/system/cpu";
/// Processors whose governor is looked at.
const MAX_CPUS: usize = 4096;

pub(super) fn facts(files: &dyn HostFiles) -> Vec<Fact> {
    let line = |path: &str| one_line(files, &format!("{CPUS}/{path}"));
    let info = files.text("/proc/cpuinfo");
    let status = files.text("/proc/self/status");
    let affinity = status.as_deref().and_then(affinity);
    vec![
        ("model", info.as_deref().and_then(model)),
        ("online", line("online")),
        ("isolated", line("isolated")),
        ("affinity", affinity),
        ("frequency_driver", line("cpu0/cpufreq/scaling_driver")),
        ("governor", each(files, "cpufreq/scaling_governor")),
        (
            "energy_preference",
            each(files, "cpufreq/energy_performance_preference"),
        ),
        ("turbo", turbo(files)),
        ("smt", line("smt/control")),
        ("idle_driver", line("cpuidle/current_driver")),
        ("idle_states", idle_states(files)),
    ]
}

/// The first processor's name; where there is none (ARM), its numbers.
fn model(info: &str) -> Option<String> {
    if let Some(name) = after_colon(info, "model name") {
        return Some(name.to_owned());
    }
    let implementer = after_colon(info, "CPU implementer")?;
    let part = after_colon(info, "CPU part")?;
    Some(format!("implementer {implementer}, part {part}"))
}

fn affinity(status: &str) -> Option<String> {
    after_colon(status, "Cpus_allowed_list").map(str::to_owned)
}

/// What the processors say, with how many say it where they do not agree.
fn each(files: &dyn HostFiles, file: &str) -> Option<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let names = files.names(CPUS);
    for name in names.iter().filter(|name| is_cpu(name)).take(MAX_CPUS) {
        if let Some(value) = one_line(files, &format!("{CPUS}/{name}/{file}")) {
            *counts.entry(value).or_default() += 1;
        }
    }
    if counts.len() < 2 {
        return counts.into_keys().next();
    }
    let counted = counts
        .iter()
        .map(|(value, count)| format!("{value} ({count})"));
    Some(counted.collect::<Vec<_>>().join(", "))
}

fn is_cpu(name: &str) -> bool {
    let number = name.strip_prefix("cpu");
    number.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

fn turbo(files: &dyn HostFiles) -> Option<String> {
    if let Some(off) = one_line(files, &format!("{CPUS}/intel_pstate/no_turbo")) {
        let word = match on_off(&off)? {
            "on" => "off",
            _ => "on",
        };
        return Some(word.to_owned());
    }
    let boost = one_line(files, &format!("{CPUS}/cpufreq/boost"))?;
    on_off(&boost).map(str::to_owned)
}

/// The first processor's idle states that are not disabled, from the shallowest.
fn idle_states(files: &dyn HostFiles) -> Option<String> {
    let folder = format!("{CPUS}/cpu0/cpuidle");
    let enabled = |state: &String| {
        let name = one_line(files, &format!("{folder}/{state}/name"))?;
        let disabled = one_line(files, &format!("{folder}/{state}/disable"));
        (disabled.as_deref() != Some("1")).then_some(name)
    };
    let names = files.names(&folder);
    let states: Vec<String> = names.iter().take(64).filter_map(enabled).collect();
    (!states.is_empty()).then(|| states.join(" "))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Given, written};
    use super::*;

    #[test]
    fn a_tuned_intel_host() {
        let files = Given::new(&[
            (
                "/proc/cpuinfo",
                "processor\t: 0\nmodel\t\t: 143\nmodel name\t: Xeon 8480+\n\nprocessor\t: 1\n\
                 model name\t: Xeon 8480+\n",
            ),
            (
                "/proc/self/status",
                "Name:\tx\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\n",
            ),
            ("/sys/devices/system/cpu/online", "0-3\n"),
            ("/sys/devices/system/cpu/isolated", "2-3\n"),
            ("/sys/devices/system/cpu/smt/control", "off\n"),
            ("/sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
            (
                "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver",
                "intel_pstate\n",
            ),
            (
                "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
                "performance\n",
            ),
            (
                "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor",
                "performance\n",
            ),
            (
                "/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor",
                "powersave\n",
            ),
            (
                "/sys/devices/system/cpu/cpuidle/current_driver",
                "intel_idle\n",
            ),
            ("/sys/devices/system/cpu/cpu0/cpuidle/state0/name", "POLL\n"),
            ("/sys/devices/system/cpu/cpu0/cpuidle/state1/name", "C1\n"),
            ("/sys/devices/system/cpu/cpu0/cpuidle/state1/disable", "0\n"),
            ("/sys/devices/system/cpu/cpu0/cpuidle/state2/name", "C6\n"),
            ("/sys/devices/system/cpu/cpu0/cpuidle/state2/disable", "1\n"),
        ]);
        assert_eq!(
            written(&facts(&files)),
            [
                "model: Xeon 8480+",
                "online: 0-3",
                "isolated: 2-3",
                "affinity: 0-1",
                "frequency_driver: intel_pstate",
                "governor: performance (2), powersave (1)",
                "energy_preference: -",
                "turbo: off",
                "smt: off",
                "idle_driver: intel_idle",
                "idle_states: POLL C1",
            ]
        );
    }

    #[test]
    fn an_arm_host_has_numbers_for_a_name_and_boost_for_turbo() {
        let files = Given::new(&[
            (
                "/proc/cpuinfo",
                "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f\n",
            ),
            ("/sys/devices/system/cpu/cpufreq/boost", "1\n"),
        ]);
        let lines = written(&facts(&files));
        assert_eq!(lines[0], "model: implementer 0x41, part 0xd4f");
        assert_eq!(lines[7], "turbo: on");
    }
}
