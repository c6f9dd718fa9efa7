//! One connection that mends itself.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use anabranch_engine::Clock;
use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ErrorKind, IntoConnectionInfo, Pipeline, ProtocolVersion,
    RedisConnectionInfo, RedisError, RedisResult, TlsCertificates, Value,
};
use tokio::sync::Semaphore;

use super::config::RedisConfig;
use crate::source::Error;

/// The pause after a first failed attempt to connect; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// The longest pause, and how long a connection must live not to count as a failure.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// How long a server may leave every trip without reply before its connection is given up. It may be a half-open
/// one, from which nothing will come any more.
const PATIENCE: Duration = Duration::from_secs(1);

/// One connection to a server, shared by all trips. It is made when it is first needed, and again when it broke.
pub(super) struct Link {
    config: Arc<RedisConfig>,
    clock: Arc<dyn Clock>,
    address: ConnectionAddr,
    state: Mutex<State>,
    /// Held by who connects, so that there is one attempt at a time and the others share its outcome.
    connecting: Semaphore,
}

#[derive(Default)]
struct State {
    up: Option<Up>,
    /// Counts connections, to tell a failure of this one from one of those before it.
    number: u64,
    /// Failures since a connection last lived.
    failures: u32,
    /// No attempt before this time, because of this.
    pause: Option<(Instant, Error)>,
}

struct Up {
    connection: MultiplexedConnection,
    since: Instant,
    /// The time of a first trip without reply, with none answered after it.
    silent: Option<Instant>,
}

impl Link {
    pub(super) fn new(
        config: &Arc<RedisConfig>,
        clock: &Arc<dyn Clock>,
        (host, port): &(String, u16),
    ) -> Link {
        let (host, port) = (host.clone(), *port);
        let address = match &config.tls {
            None => ConnectionAddr::Tcp(host, port),
            Some(_) => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
        };
        Link {
            config: Arc::clone(config),
            clock: Arc::clone(clock),
            address,
            state: Mutex::default(),
            connecting: Semaphore::new(1),
        }
    }

    /// Sends a pipeline and waits for all of its replies. One that a broken connection has swallowed is sent once
    /// more: all commands may be repeated.
    pub(super) async fn send(&self, pipeline: &Pipeline) -> Result<Vec<Value>, Error> {
        let mut again = true;
        loop {
            let (mut connection, number) = self.connection().await?;
            match connection.send_packed_commands(pipeline, 0, pipeline.len()).await {
                Ok(values) => {
                    self.answered(number);
                    return Ok(values);
                }
                Err(error) if error.is_timeout() => {
                    self.unanswered(number);
                    let after = self.config.response_timeout;
                    return Err(Error::Timeout { endpoint: Arc::clone(&self.config.endpoint), after });
                }
                Err(error) => {
                    let error = self.broken(number, &error);
                    if !again {
                        return Err(error);
                    }
                    again = false;
                }
            }
        }
    }

    async fn connection(&self) -> Result<(MultiplexedConnection, u64), Error> {
        if let Some(known) = self.known() {
            return known;
        }
        let _only = self.connecting.acquire().await.expect("it is never closed");
        if let Some(known) = self.known() {
            return known;
        }
        let connected = self.connect().await;
        let now = self.clock.now();
        let mut state = self.lock();
        match connected {
            Ok(connection) => {
                state.number += 1;
                state.pause = None;
                state.up = Some(Up { connection: connection.clone(), since: now, silent: None });
                Ok((connection, state.number))
            }
            Err(error) => {
                let error = self.no_connection(&error);
                state.fail(now, &error);
                Err(error)
            }
        }
    }

    /// The connection, or why there is none, if it need not be tried.
    fn known(&self) -> Option<Result<(MultiplexedConnection, u64), Error>> {
        let state = self.lock();
        if let Some(up) = &state.up {
            return Some(Ok((up.connection.clone(), state.number)));
        }
        match &state.pause {
            Some((until, error)) if self.clock.now() < *until => Some(Err(error.clone())),
            _ => None,
        }
    }

    async fn connect(&self) -> RedisResult<MultiplexedConnection> {
        let config = &self.config;
        let mut login = RedisConnectionInfo::default()
            .set_protocol(ProtocolVersion::RESP3)
            .set_skip_set_lib_name()
            .set_db(i64::from(config.database));
        if let Some(username) = &config.username {
            login = login.set_username(username);
        }
        if let Some(password) = &config.password {
            login = login.set_password(password);
        }
        let info = self.address.clone().into_connection_info()?.set_redis_settings(login);
        let info = info.set_tcp_settings(TcpSettings::default().set_nodelay(true));
        let client = match config.tls.as_ref().and_then(|tls| tls.authorities.clone()) {
            None => Client::open(info)?,
            root_cert => Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert })?,
        };
        let timeouts = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(config.connect_timeout))
            .set_response_timeout(Some(config.response_timeout));
        client.get_multiplexed_async_connection_with_config(&timeouts).await
    }

    fn answered(&self, number: u64) {
        let mut state = self.lock();
        if state.number == number
            && let Some(up) = &mut state.up
        {
            up.silent = None;
        }
    }

    fn unanswered(&self, number: u64) {
        let now = self.clock.now();
        let patience = PATIENCE.max(2 * self.config.response_timeout);
        let mut state = self.lock();
        if state.number != number {
            return;
        }
        let Some(up) = &mut state.up else { return };
        let since = *up.silent.get_or_insert(now);
        if now.saturating_duration_since(since) >= patience {
            // Trips still under way keep their hold of it.
            state.up = None;
        }
    }

    /// Notes that a connection broke, and says so.
    fn broken(&self, number: u64, error: &RedisError) -> Error {
        let now = self.clock.now();
        let error = self.no_connection(error);
        let mut state = self.lock();
        if state.number == number
            && let Some(up) = state.up.take()
        {
            if now.saturating_duration_since(up.since) >= LONGEST_PAUSE {
                state.failures = 0;
            } else {
                state.fail(now, &error);
            }
        }
        error
    }

    fn no_connection(&self, error: &RedisError) -> Error {
        let endpoint = Arc::clone(&self.config.endpoint);
        if error.kind() == ErrorKind::Parse {
            return Error::Malformed {
                endpoint,
                command: "a pipeline".to_owned(),
                found: format!("bytes that are none ({error})"),
                expected: "a RESP3 reply",
            };
        }
        let cause = if error.is_timeout() {
            format!("{}: not within {:?}", self.address, self.config.connect_timeout)
        } else {
            format!("{}: {error}", self.address)
        };
        Error::Connect { endpoint, cause: cause.into() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it is held")
    }
}

impl State {
    /// Pauses, longer each time, and by chance not quite as long as others do.
    fn fail(&mut self, now: Instant, error: &Error) {
        let longest = FIRST_PAUSE.saturating_mul(1 << self.failures.min(10)).min(LONGEST_PAUSE);
        let chance = (RandomState::new().hash_one(self.failures) % 512 + 512) as u32;
        self.failures = self.failures.saturating_add(1);
        self.pause = Some((now + longest * chance / 1024, error.clone()));
    }
}
