//! Base addresses of APIs: `http://host:port/path`.

use std::net::{SocketAddr, ToSocketAddrs};

/// A base address, split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base {
    /// `host:port` as the `Host` header says it: without the port where it is the scheme's own.
    pub authority: String,
    /// The host alone.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The path without a slash at its end; empty for none.
    pub path: String,
    /// Whether the scheme is `https`.
    pub tls: bool,
}

impl Base {
    /// Splits a base address. Credentials, queries and fragments are refused.
    pub fn parse(text: &str) -> Option<Base> {
        let (tls, rest) = match text.strip_prefix("http://") {
            Some(rest) => (false, rest),
            None => (true, text.strip_prefix("https://")?),
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let plain = |text: &str| {
            text.bytes()
                .all(|b| b.is_ascii_graphic() && !b"@?#\\\"<>".contains(&b))
        };
        if authority.is_empty() || !plain(authority) || !plain(path) {
            return None;
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                (host, port.parse().ok().filter(|port| *port != 0)?)
            }
            _ => (authority, if tls { 443 } else { 80 }),
        };
        let host = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(host);
        if host.is_empty() || host.contains('[') {
            return None;
        }
        Some(Base {
            authority: authority.to_owned(),
            host: host.to_owned(),
            port,
            path: path.trim_end_matches('/').to_owned(),
            tls,
        })
    }

    /// The first address of the host. Asks the system's resolver where the host is a name.
    pub fn resolve(&self) -> std::io::Result<SocketAddr> {
        (self.host.as_str(), self.port)
            .to_socket_addrs()?
            .next()
            .ok_or_else(|| {
                std::io::Error::new(std::io::ErrorKind::NotFound, "the name has no address")
            })
    }

    /// Whether the host is this machine's loopback by its spelling.
    pub fn is_loopback(&self) -> bool {
        self.host == "localhost"
            || self
                .host
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_base() {
        let base = Base::parse("http://127.0.0.1:8000/v1/").unwrap();
        assert_eq!(
            (base.authority.as_str(), base.port, base.path.as_str()),
            ("127.0.0.1:8000", 8000, "/v1")
        );
        assert!(base.is_loopback());
        let base = Base::parse("https://api.example.com").unwrap();
        assert_eq!(
            (base.host.as_str(), base.port, base.tls),
            ("api.example.com", 443, true)
        );
        assert!(!base.is_loopback());
        assert_eq!(Base::parse("http://[::1]:9/v1").unwrap().host, "::1");
        assert_eq!(Base::parse("http://[::1]").unwrap().port, 80);
    }

    #[test]
    fn what_is_no_base_is_refused() {
        for text in [
            "",
            "ftp://x",
            "http://",
            "http://u:p@x/",
            "http://x:0",
            "http://x:99999",
            "http://x/?q",
            "http://x y",
        ] {
            assert_eq!(Base::parse(text), None, "{text}");
        }
    }
}
