//! What stands between this process and the machine: seccomp, containers, hypervisors.

use super::{Fact, HostFiles, after_colon, one_line};

pub(super) fn facts(files: &dyn HostFiles) -> Vec<Fact> {
    let status = files.text("/proc/self/status").unwrap_or_default();
    let seccomp = after_colon(&status, "Seccomp").and_then(seccomp_mode);
    let filters = after_colon(&status, "Seccomp_filters").map(str::to_owned);
    let privileges = after_colon(&status, "NoNewPrivs").map(str::to_owned);
    let ring = one_line(files, "/proc/sys/kernel/io_uring_disabled");
    let virtual_flag = files.text("/proc/cpuinfo").as_deref().map(is_virtual);
    vec![
        ("seccomp", seccomp.map(str::to_owned)),
        ("seccomp_filters", filters),
        ("no_new_privileges", privileges),
        (
            "io_uring",
            ring.as_deref().and_then(io_uring).map(str::to_owned),
        ),
        ("container", container(files)),
        ("virtual_machine", virtual_flag.map(str::to_owned)),
        ("product", one_line(files, "/sys/class/dmi/id/product_name")),
    ]
}

/// proc_pid_status(5).
fn seccomp_mode(number: &str) -> Option<&'static str> {
    match number {
        "0" => Some("off"),
        "1" => Some("strict"),
        "2" => Some("filter"),
        _ => None,
    }
}

/// Documentation/admin-guide/sysctl/kernel.rst.
fn io_uring(number: &str) -> Option<&'static str> {
    match number {
        "0" => Some("permitted"),
        "1" => Some("permitted to a group"),
        "2" => Some("disabled"),
        _ => None,
    }
}

/// Signs of a container. Their absence proves nothing.
fn container(files: &dyn HostFiles) -> Option<String> {
    let mut signs = Vec::new();
    for (path, sign) in [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")] {
        if files.text(path).is_some() {
            signs.push(sign);
        }
    }
    let groups = files.text("/proc/1/cgroup");
    let named = groups.as_deref().unwrap_or_default();
    for sign in ["kubepods", "docker", "lxc", "libpod", "containerd"] {
        if named.contains(sign) && !signs.contains(&sign) {
            signs.push(sign);
        }
    }
    if !signs.is_empty() {
        return Some(signs.join(" "));
    }
    groups.map(|_| "no sign of one".to_owned())
}

/// A hypervisor sets a processor flag that no processor has of itself.
fn is_virtual(info: &str) -> &'static str {
    let flags = after_colon(info, "flags").unwrap_or_default();
    if flags.split(' ').any(|flag| flag == "hypervisor") {
        "yes"
    } else {
        "no sign of one"
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Given, written};
    use super::*;

    #[test]
    fn a_container_on_a_virtual_machine() {
        let files = Given::new(&[
            (
                "/proc/self/status",
                "Name:\tassize\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n",
            ),
            ("/proc/sys/kernel/io_uring_disabled", "2\n"),
            ("/.dockerenv", ""),
            ("/proc/1/cgroup", "0::/kubepods/burstable/pod1\n"),
            ("/proc/cpuinfo", "flags\t\t: fpu sse hypervisor lahf_lm\n"),
        ]);
        assert_eq!(
            written(&facts(&files)),
            [
                "seccomp: filter",
                "seccomp_filters: 1",
                "no_new_privileges: 1",
                "io_uring: disabled",
                "container: docker kubepods",
                "virtual_machine: yes",
                "product: -",
            ]
        );
    }
}
