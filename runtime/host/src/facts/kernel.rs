//! The kernel, its clock, and its limits on this process.

use super::{Fact, HostFiles, one_line};

/// Parameters of the kernel's command line that bear on latency. No other is recorded: a command
/// line can hold anything.
const PARAMETERS: [&str; 14] = [
    "clocksource",
    "idle",
    "intel_idle.max_cstate",
    "intel_pstate",
    "isolcpus",
    "mitigations",
    "nohz",
    "nohz_full",
    "nosmt",
    "preempt",
    "processor.max_cstate",
    "rcu_nocbs",
    "transparent_hugepage",
    "tsc",
];

pub(super) fn facts(files: &dyn HostFiles) -> Vec<Fact> {
    let line = |name: &str| one_line(files, &format!("/proc/sys/kernel/{name}"));
    vec![
        ("release", line("osrelease")),
        ("version", line("version")),
        ("architecture", line("arch")),
        ("boot_id", line("random/boot_id")),
        (
            "parameters",
            files.text("/proc/cmdline").map(|text| parameters(&text)),
        ),
        ("numa_balancing", line("numa_balancing")),
        ("watchdog", line("watchdog")),
    ]
}

pub(super) fn clock_facts(files: &dyn HostFiles) -> Vec<Fact> {
    let folder = "/sys/devices/system/clocksource/clocksource0";
    let line = |name: &str| one_line(files, &format!("{folder}/{name}_clocksource"));
    vec![
        ("source", line("current")),
        ("available", line("available")),
    ]
}

pub(super) fn limit_facts(files: &dyn HostFiles) -> Vec<Fact> {
    let text = files.text("/proc/self/limits").unwrap_or_default();
    let line = |name: &str| one_line(files, &format!("/proc/sys/{name}"));
    vec![
        ("open_files", limit(&text, "Max open files")),
        ("locked_memory_bytes", limit(&text, "Max locked memory")),
        ("processes", limit(&text, "Max processes")),
        ("real_time_priority", limit(&text, "Max realtime priority")),
        ("system_open_files", line("fs/file-max")),
        ("system_processes", line("kernel/pid_max")),
    ]
}

fn parameters(command_line: &str) -> String {
    let listed = |word: &&str| {
        let name = word.split('=').next().unwrap_or(word);
        PARAMETERS.contains(&name)
    };
    let found: Vec<&str> = command_line
        .split_ascii_whitespace()
        .filter(listed)
        .collect();
    if found.is_empty() {
        return "none that bears on latency".to_owned();
    }
    found.join(" ")
}

/// `soft of hard` of a row of `/proc/self/limits`.
fn limit(text: &str, name: &str) -> Option<String> {
    let row = text.lines().find_map(|line| line.strip_prefix(name))?;
    let mut fields = row.split_ascii_whitespace();
    Some(format!("{} of {}", fields.next()?, fields.next()?))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Given, written};
    use super::*;

    #[test]
    fn a_command_line_gives_listed_parameters_alone() {
        let files = Given::new(&[(
            "/proc/cmdline",
            "root=/dev/sda token=s3cret isolcpus=2-7 nosmt quiet mitigations=off\n",
        )]);
        assert_eq!(
            written(&facts(&files))[4],
            "parameters: isolcpus=2-7 nosmt mitigations=off"
        );
        assert_eq!(
            parameters("quiet isolcpusx=1"),
            "none that bears on latency"
        );
    }

    #[test]
    fn limits_are_soft_of_hard() {
        let files = Given::new(&[
            (
                "/proc/self/limits",
                "Limit                     Soft Limit           Hard Limit           Units     \n\
                 Max processes             63459                63459                processes \n\
                 Max open files            1024                 524288               files     \n\
                 Max locked memory         8388608              unlimited            bytes     \n",
            ),
            ("/proc/sys/fs/file-max", "9223372036854775807\n"),
        ]);
        assert_eq!(
            written(&limit_facts(&files)),
            [
                "open_files: 1024 of 524288",
                "locked_memory_bytes: 8388608 of unlimited",
                "processes: 63459 of 63459",
                "real_time_priority: -",
                "system_open_files: 9223372036854775807",
                "system_processes: -",
            ]
        );
    }

    #[test]
    fn a_clock_has_a_source_and_alternatives() {
        let files = Given::new(&[
            (
                "/sys/devices/system/clocksource/clocksource0/current_clocksource",
                "tsc\n",
            ),
            (
                "/sys/devices/system/clocksource/clocksource0/available_clocksource",
                "tsc hpet acpi_pm \n",
            ),
        ]);
        assert_eq!(
            written(&clock_facts(&files)),
            ["source: tsc", "available: tsc hpet acpi_pm"]
        );
    }
}
