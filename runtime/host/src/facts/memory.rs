//! Memory, and how its pages are managed.

use super::{Fact, HostFiles, after_colon, chosen, one_line};

pub(super) fn facts(files: &dyn HostFiles) -> Vec<Fact> {
    let info = files.text("/proc/meminfo").unwrap_or_default();
    let pages =
        |name: &str| chosen(&files.text(&format!("/sys/kernel/mm/transparent_hugepage/{name}"))?);
    let huge = after_colon(&info, "HugePages_Total").map(str::to_owned);
    vec![
        ("total_bytes", bytes(&info, "MemTotal")),
        ("available_bytes", bytes(&info, "MemAvailable")),
        ("swap_total_bytes", bytes(&info, "SwapTotal")),
        ("swap_free_bytes", bytes(&info, "SwapFree")),
        ("huge_pages", huge),
        ("transparent_huge_pages", pages("enabled")),
        ("transparent_huge_pages_defrag", pages("defrag")),
        ("swappiness", one_line(files, "/proc/sys/vm/swappiness")),
        (
            "numa_nodes",
            one_line(files, "/sys/devices/system/node/online"),
        ),
    ]
}

/// A row of `/proc/meminfo`, which counts in KiB and calls them kB.
fn bytes(info: &str, name: &str) -> Option<String> {
    let kib: u64 = after_colon(info, name)?
        .strip_suffix(" kB")?
        .trim()
        .parse()
        .ok()?;
    Some(kib.checked_mul(1024)?.to_string())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Given, written};
    use super::*;

    #[test]
    fn memory_is_in_bytes() {
        let files = Given::new(&[
            (
                "/proc/meminfo",
                "MemTotal:       16384000 kB\nMemFree:         1 kB\nMemAvailable:   9000000 kB\n\
                 SwapTotal:             0 kB\nSwapFree: 18446744073709551615 kB\nHugePages_Total:       4\n",
            ),
            (
                "/sys/kernel/mm/transparent_hugepage/enabled",
                "always [madvise] never\n",
            ),
            ("/sys/devices/system/node/online", "0-1\n"),
        ]);
        assert_eq!(
            written(&facts(&files)),
            [
                "total_bytes: 16777216000",
                "available_bytes: 9216000000",
                "swap_total_bytes: 0",
                "swap_free_bytes: -",
                "huge_pages: 4",
                "transparent_huge_pages: madvise",
                "transparent_huge_pages_defrag: -",
                "swappiness: -",
                "numa_nodes: 0-1",
            ]
        );
    }
}
