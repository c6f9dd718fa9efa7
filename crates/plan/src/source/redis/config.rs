//! The settings of a Redis source.

use std::sync::Arc;
use std::time::Duration;

use crate::registry::Endpoint;
use crate::source::{Error, Hedge};

/// The shortest silence after which a connection is closed.
const SILENCE: Duration = Duration::from_secs(1);

/// The address of a Redis, and the limits of reads.
#[derive(Clone)]
pub struct RedisConfig {
    /// Its name in messages.
    pub endpoint: Arc<str>,
    /// Host and port. For a Cluster, any of its nodes; several if one may be down.
    pub servers: Vec<(String, u16)>,
    /// Whether it is a Cluster. Redirects to other servers are followed only then, because a server that may redirect
    /// its clients anywhere could make them send their password there.
    pub cluster: bool,
    /// The TLS settings, if the connection is encrypted.
    pub tls: Option<RedisTls>,
    /// The user name, if the server requires one.
    pub username: Option<String>,
    /// The password, if the server requires one.
    pub password: Option<String>,
    /// The number of the database. A Cluster has only 0.
    pub database: u32,
    /// Connections to each server, shared by all requests.
    pub connections: usize,
    /// The timeout of connecting.
    pub connect_timeout: Duration,
    /// The timeout of a trip's reply.
    pub response_timeout: Duration,
    /// The most concurrent trips.
    pub max_inflight: u32,
    /// Commands in a trip; a read of more keys makes several trips, one after the other.
    pub pipeline: usize,
    /// The hedging of late reads, if enabled. If there are several connections, the next one is used.
    pub hedge: Option<Hedge>,
    /// The size limit of the replies of one trip, in bytes.
    pub max_reply_bytes: usize,
    /// Whether a value that cannot be read, or a key of another type, fails the read. Otherwise it is null, or left out
    /// of its list, and counted in [`Reply::malformed`](crate::source::Reply::malformed).
    pub strict_values: bool,
}

/// TLS settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedisTls {
    /// The certificates of trusted authorities, as PEM. Default: the system's.
    pub authorities: Option<Vec<u8>>,
}

impl RedisConfig {
    /// One server, and everything else as usual.
    pub fn new(host: impl Into<String>, port: u16) -> RedisConfig {
        let host = host.into();
        RedisConfig {
            endpoint: format!("{host}:{port}").into(),
            servers: vec![(host, port)],
            cluster: false,
            tls: None,
            username: None,
            password: None,
            database: 0,
            connections: 2,
            connect_timeout: Duration::from_secs(1),
            response_timeout: Duration::from_secs(1),
            max_inflight: 64,
            pipeline: 1_000,
            hedge: None,
            max_reply_bytes: 64 << 20,
            strict_values: false,
        }
    }

    /// The time for which a server may leave its oldest command without any reply before the connection is closed. The
    /// connection may be half-open, so that nothing arrives any more.
    pub fn allowed_silence(&self) -> Duration {
        SILENCE.max(self.response_timeout)
    }

    /// An error of a server. Some say that it cannot answer now.
    pub(super) fn refused(&self, command: String, message: String) -> Error {
        let endpoint = Arc::clone(&self.endpoint);
        match message.split(' ').next() {
            Some("LOADING" | "BUSY" | "CLUSTERDOWN" | "MASTERDOWN" | "TRYAGAIN" | "OOM") => {
                Error::Busy { endpoint, message, retry_after: None }
            }
            _ => Error::Refused { endpoint, command, message },
        }
    }

    /// The description of an endpoint in the registry.
    pub fn from_endpoint(endpoint: &Endpoint) -> RedisConfig {
        let mut config = RedisConfig::new(endpoint.host.clone(), endpoint.port);
        config.endpoint = endpoint.name.as_str().into();
        config.connect_timeout = endpoint.connect_timeout.unwrap_or(config.connect_timeout);
        config.response_timeout = endpoint.request_timeout.unwrap_or(config.response_timeout);
        config.max_inflight = endpoint.max_inflight.unwrap_or(config.max_inflight);
        config
    }

    /// Reads `host:port`, or `redis://user:password@host:port/database`. `rediss` encrypts; `redis-cluster` and
    /// `rediss-cluster` may name several nodes, `host:port,host:port`. In user names and passwords `%40` is an `@`.
    pub fn parse_url(url: &str) -> Result<RedisConfig, String> {
        let (scheme, rest) = url.split_once("://").unwrap_or(("redis", url));
        let (cluster, tls) = match scheme {
            "redis" => (false, false),
            "rediss" => (false, true),
            "redis-cluster" => (true, false),
            "rediss-cluster" => (true, true),
            other => {
                return Err(format!(
                    "`{other}://` is not known; use redis://, rediss://, redis-cluster:// or rediss-cluster://"
                ));
            }
        };
        let (login, rest) = match rest.rsplit_once('@') {
            Some((login, rest)) => (Some(login), rest),
            None => (None, rest),
        };
        let (hosts, database) = rest.split_once('/').unwrap_or((rest, ""));
        let servers = hosts.split(',').map(server).collect::<Result<Vec<_>, _>>()?;
        if servers.len() > 1 && !cluster {
            return Err("several servers are a Cluster: use redis-cluster://".to_owned());
        }
        let mut config = RedisConfig::new(servers[0].0.clone(), servers[0].1);
        (config.servers, config.cluster, config.tls) = (servers, cluster, tls.then(RedisTls::default));
        config.database = match database {
            "" => 0,
            text => text.parse().map_err(|_| format!("`{text}` is no number of a database"))?,
        };
        if cluster && config.database != 0 {
            return Err("a Cluster has no other database than 0".to_owned());
        }
        if let Some(login) = login {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            config.username = (!user.is_empty()).then(|| decoded(user)).transpose()?;
            config.password = (!password.is_empty()).then(|| decoded(password)).transpose()?;
        }
        Ok(config)
    }
}

/// Shows everything except for secrets.
impl std::fmt::Debug for RedisConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisConfig")
            .field("endpoint", &self.endpoint)
            .field("servers", &self.servers)
            .field("cluster", &self.cluster)
            .field("tls", &self.tls.is_some())
            .field("username", &self.username)
            .field("password", &self.password.as_ref().map(|_| "..."))
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

/// A host and its port, 6379 if none is named. IPv6 addresses stand in brackets.
fn server(text: &str) -> Result<(String, u16), String> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => {
            (host, port.parse().map_err(|_| format!("`{port}` in `{text}` is no port"))?)
        }
        _ => (text, 6379),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() || port == 0 {
        return Err(format!("`{text}` is no host and port; `127.0.0.1:6379` is"));
    }
    Ok((host.to_owned(), port))
}

/// Without the `%40` of URLs.
fn decoded(text: &str) -> Result<String, String> {
    let wrong = || "a `%` in a user name or password stands before two hexadecimal digits".to_owned();
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, tail @ ..] = rest {
        rest = tail;
        if *byte != b'%' {
            bytes.push(*byte);
            continue;
        }
        let digits = tail.get(..2).and_then(|two| str::from_utf8(two).ok()).ok_or_else(wrong)?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| wrong())?);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).map_err(|_| "a user name or password is not UTF-8".to_owned())
}
