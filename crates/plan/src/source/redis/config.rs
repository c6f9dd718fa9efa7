//! How to reach a Redis.

use std::sync::Arc;
use std::time::Duration;

use crate::registry::Endpoint;
use crate::source::Hedge;

/// How to reach a Redis, and what may be asked of it.
#[derive(Clone)]
pub struct RedisConfig {
    /// What errors call it.
    pub endpoint: Arc<str>,
    /// Host and port; of a Cluster any of its nodes, several if one may be down.
    pub servers: Vec<(String, u16)>,
    /// Whether it is known to be a Cluster. One that is not known to be is noticed when it first points elsewhere.
    pub cluster: bool,
    /// How to encrypt, if it is done.
    pub tls: Option<RedisTls>,
    /// Who we are, where the server asks.
    pub username: Option<String>,
    /// What proves it.
    pub password: Option<String>,
    /// Which of a server's databases; a Cluster has just 0.
    pub database: u32,
    /// Connections to each server, shared by all requests.
    pub connections: usize,
    /// The longest to wait for a connection.
    pub connect_timeout: Duration,
    /// The longest to wait for a trip's reply.
    pub response_timeout: Duration,
    /// Trips in flight at a time.
    pub max_inflight: u32,
    /// Commands in a trip; what has more makes several, one after the other.
    pub pipeline: usize,
    /// When a late read is sent a second time, if that is done; of several connections the next one takes it.
    pub hedge: Option<Hedge>,
}

/// How to encrypt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedisTls {
    /// Certificates, as PEM, of who may vouch for the server; without them those that the machine trusts.
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
        }
    }

    /// What the registry says about an endpoint.
    pub fn from_endpoint(endpoint: &Endpoint) -> RedisConfig {
        let mut config = RedisConfig::new(endpoint.host.clone(), endpoint.port);
        config.endpoint = endpoint.id.as_str().into();
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

/// Everything but what is secret.
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
