//! The hosts that a request may name in `Host`, `:authority` and `Origin`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use axum::http::uri::Authority;

/// A host, besides loopback and the listener's address, that clients may use for this server: `NAME` or `NAME:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedHost {
    host: String,
    /// `None` means any port.
    port: Option<u16>,
}

/// The text is not the name of a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a host name or an IP address, with or without a port, as in recipes.example or [fd00::1]:7421"
)]
pub struct NotAHost;

impl FromStr for AllowedHost {
    type Err = NotAHost;

    fn from_str(text: &str) -> Result<AllowedHost, NotAHost> {
        let bare_ip = text.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv6());
        let HostPort { host, port } = match bare_ip {
            true => HostPort { host: text.to_ascii_lowercase(), port: None },
            false => HostPort::parse(text).ok_or(NotAHost)?,
        };
        Ok(AllowedHost { host, port })
    }
}

impl fmt::Display for AllowedHost {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.host.contains(':'), self.port) {
            (_, None) => write!(out, "{}", self.host),
            (true, Some(port)) => write!(out, "[{}]:{port}", self.host),
            (false, Some(port)) => write!(out, "{}:{port}", self.host),
        }
    }
}

/// The host and port of a `Host` or `Origin` header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostPort {
    /// Lower case, without the brackets of an IPv6 address and without a dot at the end.
    host: String,
    port: Option<u16>,
}

impl HostPort {
    pub(super) fn parse(text: &str) -> Option<HostPort> {
        let authority: Authority = text.parse().ok()?;
        let host = authority.host();
        // A malformed port would otherwise be taken for a missing one.
        let has_port = text.len() > host.len();
        if text.contains('@') || host.is_empty() || has_port != authority.port_u16().is_some() {
            return None;
        }
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        Some(HostPort { host, port: authority.port_u16() })
    }

    /// The host and port of an origin, `http://HOST:PORT`. The default is the port of the scheme.
    pub(super) fn of_origin(origin: &str) -> Option<HostPort> {
        let (scheme, rest) = origin.split_once("://")?;
        let HostPort { host, port } = HostPort::parse(rest)?;
        let port = port.or(match scheme {
            "http" => Some(80),
            "https" => Some(443),
            _ => None,
        })?;
        Some(HostPort { host, port: Some(port) })
    }

    /// The same host, with this port if it has none.
    pub(super) fn or_port(self, port: u16) -> HostPort {
        HostPort { port: self.port.or(Some(port)), ..self }
    }

    /// Whether an origin is this host.
    pub(super) fn is_origin(&self, origin: &HostPort) -> bool {
        self == origin
    }

    fn ip(&self) -> Option<IpAddr> {
        Some(self.host.parse::<IpAddr>().ok()?.to_canonical())
    }

    pub(super) fn is_loopback(&self) -> bool {
        self.host == "localhost" || self.ip().is_some_and(|ip| ip.is_loopback())
    }
}

/// The hosts of a server.
#[derive(Debug)]
pub(crate) struct Hosts {
    allowed: Vec<AllowedHost>,
    /// The IP addresses that the server listens on.
    bound: Mutex<Vec<IpAddr>>,
}

impl Hosts {
    pub(crate) fn new(allowed: Vec<AllowedHost>) -> Hosts {
        Hosts { allowed, bound: Mutex::default() }
    }

    /// Records that the server listens on this IP address from now on.
    pub(crate) fn bind(&self, ip: IpAddr) {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner).push(ip.to_canonical());
    }

    pub(super) fn is_configured(&self, host: &HostPort) -> bool {
        let fits = |allowed: &AllowedHost| {
            allowed.host == host.host && (allowed.port.is_none() || allowed.port == host.port)
        };
        self.allowed.iter().any(fits)
    }

    /// Whether a request may name this host. A server on all addresses (`0.0.0.0`, `[::]`) does not know its own IP
    /// addresses, so it accepts all of them. That is safe, because only a name can be pointed here by DNS.
    pub(super) fn is_ours(&self, host: &HostPort) -> bool {
        let is_bound = |ip: IpAddr| {
            let bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
            bound.iter().any(|own| own.is_unspecified() || *own == ip)
        };
        host.is_loopback() || self.is_configured(host) || host.ip().is_some_and(is_bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(hosts: &Hosts, ours: &[&str], foreign: &[&str]) {
        for (list, expected) in [(ours, true), (foreign, false)] {
            for text in list {
                let is_ours = HostPort::parse(text).is_some_and(|host| hosts.is_ours(&host));
                assert_eq!(is_ours, expected, "{text}");
            }
        }
    }

    #[test]
    fn loopback_is_always_ours() {
        let ours = ["localhost", "LOCALHOST:1", "localhost.:7421", "127.0.0.1:80", "127.9.9.9", "[::1]:7421"];
        let foreign = [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "10.0.0.1:7421",
            "0.0.0.0",
            "user@localhost",
            "localhost:x",
            "localhost:99999",
            "",
        ];
        check(&Hosts::new(Vec::new()), &ours, &foreign);
    }

    #[test]
    fn the_bound_address_and_configured_hosts_are_ours() {
        let allowed = ["recipes.example", "other.example:7421", "fd00::1"].map(|host| host.parse().unwrap());
        let hosts = Hosts::new(allowed.to_vec());
        hosts.bind("10.0.0.1".parse().unwrap());
        let ours = ["10.0.0.1:7421", "Recipes.Example:1", "other.example:7421", "[fd00::1]:2"];
        check(&hosts, &ours, &["10.0.0.2", "other.example", "other.example:80", "x.recipes.example"]);
        hosts.bind("::".parse().unwrap());
        check(&hosts, &["10.0.0.2", "[fd00::2]"], &["evil.example"]);
    }

    #[test]
    fn origins() {
        let of = |origin: &str| HostPort::of_origin(origin);
        let host = HostPort::parse("recipes.example").unwrap().or_port(80);
        assert!(host.is_origin(&of("http://recipes.example").unwrap()));
        assert!(!host.is_origin(&of("https://recipes.example").unwrap()));
        assert!(!host.is_origin(&of("http://recipes.example:7421").unwrap()));
        for none in ["null", "", "file://", "chrome-extension://abc", "http://a/b"] {
            assert_eq!(of(none), None, "{none}");
        }
    }
}
