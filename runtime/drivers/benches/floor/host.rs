//! The state of the host beside each figure.
#![allow(
    clippy::disallowed_methods,
    reason = "a bench reads what the kernel says of the host"
)]

/// Load average and steal since the last look.
#[derive(Debug)]
pub struct Host {
    steal: u64,
    total: u64,
}

impl Host {
    pub fn look() -> Host {
        let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let fields = stat.lines().next().unwrap_or_default().split_whitespace();
        let jiffies: Vec<u64> = fields
            .skip(1)
            .filter_map(|field| field.parse().ok())
            .collect();
        Host {
            steal: jiffies.get(7).copied().unwrap_or(0),
            total: jiffies.iter().take(8).sum(),
        }
    }

    /// `load 1.2, steal 0.3%`.
    pub fn since(&self) -> String {
        let now = Host::look();
        let total = (now.total - self.total).max(1);
        let steal = 100.0 * (now.steal - self.steal) as f64 / total as f64;
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split(' ').next().unwrap_or("?").to_owned();
        format!("load {load}, steal {steal:.1}%")
    }
}
