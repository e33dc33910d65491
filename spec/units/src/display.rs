//! Durations, rates and sizes for people: three to four significant digits and a unit.

use crate::{Bytes, DurNs, Rate};

/// `812 ns`, `9.51 µs`, `8.02 ms`, `12.4 s`, `3 min 05 s`.
pub fn format_duration(value: DurNs) -> String {
    let ns = value.0 as f64;
    if value.0 < 1_000 {
        format!("{} ns", value.0)
    } else if ns < 999_500.0 {
        format!("{} µs", digits(ns / 1e3))
    } else if ns < 999_500_000.0 {
        format!("{} ms", digits(ns / 1e6))
    } else if ns < 99.95e9 {
        format!("{} s", digits(ns / 1e9))
    } else {
        let seconds = (value.0 + 500_000_000) / 1_000_000_000;
        if seconds < 3_600 {
            format!("{} min {:02} s", seconds / 60, seconds % 60)
        } else {
            format!("{} h {:02} min", seconds / 3_600, seconds % 3_600 / 60)
        }
    }
}

/// `14.9/s`.
pub fn format_rate(value: Rate) -> String {
    format!("{}/s", digits(value.as_f64()))
}

/// `512 B`, `1.50 KiB`, `64.0 MiB`.
pub fn format_bytes(value: Bytes) -> String {
    let bytes = value.0 as f64;
    match value.0 {
        0..1_024 => format!("{} B", value.0),
        1_024..1_048_576 => format!("{} KiB", digits(bytes / 1024.0)),
        1_048_576..1_073_741_824 => format!("{} MiB", digits(bytes / 1_048_576.0)),
        _ => format!("{} GiB", digits(bytes / 1_073_741_824.0)),
    }
}

/// Three significant digits, four from 1000 on.
fn digits(value: f64) -> String {
    if value >= 99.95 {
        format!("{value:.0}")
    } else if value >= 9.995 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_range_has_its_unit() {
        let shown = |ns| format_duration(DurNs(ns));
        assert_eq!(shown(812), "812 ns");
        assert_eq!(shown(9_512), "9.51 µs");
        assert_eq!(shown(8_016_000), "8.02 ms");
        assert_eq!(shown(12_400_000_000), "12.4 s");
        assert_eq!(shown(185_000_000_000), "3 min 05 s");
        assert_eq!(shown(7_500_000_000_000), "2 h 05 min");
    }

    #[test]
    fn sizes_are_binary() {
        assert_eq!(format_bytes(Bytes(1536)), "1.50 KiB");
        assert_eq!(format_bytes(Bytes(64 << 20)), "64.0 MiB");
    }
}
