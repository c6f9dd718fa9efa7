//! One connection that mends itself.

use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use anabranch_engine::clock::Clock;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared};
use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ErrorKind, IntoConnectionInfo, Pipeline, ProtocolVersion,
    RedisConnectionInfo, RedisError, RedisResult, TlsCertificates, Value,
};

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
    /// The one attempt under way.
    attempt: Option<Attempt>,
}

/// An attempt to connect. All who need the connection drive it together and share its outcome; who gives up leaves it
/// to the next, so that even those who never wait long come to a connection.
#[derive(Clone)]
struct Attempt {
    /// The number of the connection that it makes.
    number: u64,
    since: Instant,
    connected: Shared<BoxFuture<'static, Result<MultiplexedConnection, Error>>>,
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
        Link { config: Arc::clone(config), clock: Arc::clone(clock), address, state: Mutex::default() }
    }

    /// Sends a pipeline and waits for all of its replies. One that a broken connection has swallowed is sent once
    /// more, if its commands may be repeated.
    pub(super) async fn send(&self, pipeline: &Pipeline, may_repeat: bool) -> Result<Vec<Value>, Error> {
        let mut again = may_repeat;
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
        let attempt = match self.known() {
            Ok(known) => return known,
            Err(attempt) => attempt,
        };
        let number = attempt.number;
        let connected = attempt.connected.await;
        let now = self.clock.now();
        let mut state = self.lock();
        // The first to see the outcome notes it.
        if state.attempt.take_if(|attempt| attempt.number == number).is_some() {
            match &connected {
                Ok(connection) => {
                    state.pause = None;
                    state.up = Some(Up { connection: connection.clone(), since: now, silent: None });
                }
                Err(error) => state.fail(now, error),
            }
        }
        Ok((connected?, number))
    }

    /// The connection, or why there is none, if it need not be tried; otherwise the attempt that is under way.
    fn known(&self) -> Result<Result<(MultiplexedConnection, u64), Error>, Attempt> {
        let mut state = self.lock();
        if let Some(up) = &state.up {
            return Ok(Ok((up.connection.clone(), state.number)));
        }
        let now = self.clock.now();
        if let Some((_, error)) = state.pause.as_ref().filter(|(until, _)| now < *until) {
            return Ok(Err(error.clone()));
        }
        // One that nobody waited for has run out of time.
        let fresh =
            |attempt: &&Attempt| now.saturating_duration_since(attempt.since) < self.config.connect_timeout;
        if let Some(attempt) = state.attempt.as_ref().filter(fresh) {
            return Err(attempt.clone());
        }
        state.number += 1;
        let (config, address) = (Arc::clone(&self.config), self.address.clone());
        let connected = async move {
            let connected = connect(&config, &address).await;
            connected.map_err(|error| no_connection(&config, &address, &error))
        };
        let attempt = Attempt { number: state.number, since: now, connected: connected.boxed().shared() };
        state.attempt = Some(attempt.clone());
        Err(attempt)
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
        let error = no_connection(&self.config, &self.address, error);
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it is held")
    }
}

async fn connect(config: &RedisConfig, address: &ConnectionAddr) -> RedisResult<MultiplexedConnection> {
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
    let info = address.clone().into_connection_info()?.set_redis_settings(login);
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

fn no_connection(config: &RedisConfig, address: &ConnectionAddr, error: &RedisError) -> Error {
    let endpoint = Arc::clone(&config.endpoint);
    if error.kind() == ErrorKind::Parse {
        return Error::Malformed {
            endpoint,
            command: "a pipeline".to_owned(),
            found: format!("bytes that are none ({error})"),
            expected: "a RESP3 reply",
        };
    }
    let cause = if error.is_timeout() {
        format!("{address}: not within {:?}", config.connect_timeout)
    } else {
        format!("{address}: {error}")
    };
    Error::Connect { endpoint, cause: cause.into() }
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
