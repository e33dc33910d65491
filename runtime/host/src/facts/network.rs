//! What bounds connections to a server: ports, queues, and how TCP behaves.

use super::{Fact, HostFiles, one_line};

/// A fact and its file under `/proc/sys/net`.
const SETTINGS: [(&str, &str); 12] = [
    ("ephemeral_ports", "ipv4/ip_local_port_range"),
    ("reserved_ports", "ipv4/ip_local_reserved_ports"),
    ("listen_backlog", "core/somaxconn"),
    ("syn_backlog", "ipv4/tcp_max_syn_backlog"),
    ("time_wait_reuse", "ipv4/tcp_tw_reuse"),
    ("time_wait_max", "ipv4/tcp_max_tw_buckets"),
    ("fin_timeout_s", "ipv4/tcp_fin_timeout"),
    ("congestion_control", "ipv4/tcp_congestion_control"),
    ("slow_start_after_idle", "ipv4/tcp_slow_start_after_idle"),
    ("receive_buffer_bytes", "ipv4/tcp_rmem"),
    ("send_buffer_bytes", "ipv4/tcp_wmem"),
    ("busy_poll_us", "core/busy_poll"),
];

pub(super) fn facts(files: &dyn HostFiles) -> Vec<Fact> {
    SETTINGS
        .iter()
        .map(|(name, file)| (*name, one_line(files, &format!("/proc/sys/net/{file}"))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Given, written};
    use super::*;

    #[test]
    fn settings_are_what_their_files_say() {
        let files = Given::new(&[
            ("/proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n"),
            ("/proc/sys/net/ipv4/ip_local_reserved_ports", "\n"),
            ("/proc/sys/net/core/somaxconn", "4096\n"),
        ]);
        assert_eq!(
            written(&facts(&files))[..3],
            [
                "ephemeral_ports: 32768 60999",
                "reserved_ports: none",
                "listen_backlog: 4096"
            ]
        );
    }
}
