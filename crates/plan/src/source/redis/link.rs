//! A connection that is opened when it is first needed, and again after a failure.
//!
//! The link's own task connects and serves; callers only queue bytes. So an attempt to connect continues even if the
//! callers that wait for it are cancelled, and there is only one attempt at a time.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use anabranch_engine::clock::Clock;
use anabranch_engine::tasks::{AbortOnDrop, Tasks};
use futures_util::future::{Either, select};
use tokio::sync::oneshot;

use super::config::RedisConfig;
use super::connection::{Connection, End, Failure, Outcome, Trip};
use super::dial::Dial;
use super::greeting;
use super::sink::Sink;
use crate::source::Error;

/// The pause after a first failed attempt to connect; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The lifetime after which the end of a connection does not count as a failure.
const LONG_LIFE: Duration = Duration::from_secs(2);

/// Bytes of commands that may wait for a connection.
const MAX_QUEUED_BYTES: usize = 64 << 20;

/// Trips that may wait for a connection.
const MAX_QUEUED_TRIPS: usize = 100_000;

/// The parts of the outside world that connections use.
#[derive(Clone)]
pub(super) struct World {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) tasks: Arc<dyn Tasks>,
    pub(super) dial: Arc<dyn Dial>,
    /// Called when a server is silent or cannot be reached.
    pub(super) on_trouble: Arc<dyn Fn() + Send + Sync>,
    pub(super) counters: Arc<Counters>,
}

/// Counters of connections.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) writes: AtomicU64,
    pub(super) reads: AtomicU64,
    pub(super) connections: AtomicU64,
}

/// One connection to a server, shared by all trips. Dropping it ends its task.
pub(super) struct Link {
    shared: Arc<Shared>,
}

/// The state that callers and the task share.
pub(super) struct Shared {
    pub(super) config: Arc<RedisConfig>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) world: World,
    server: (String, u16),
    state: Mutex<State>,
}

#[derive(Default)]
pub(super) struct State {
    /// Commands that are not sent yet, and the trips they belong to.
    pub(super) bytes: Vec<u8>,
    pub(super) trips: Vec<Trip>,
    /// The number of commands of these trips.
    pub(super) commands: usize,
    /// Wakes the task when something is queued.
    waker: Option<Waker>,
    task: Option<AbortOnDrop>,
    /// Failures since a connection last lived.
    failures: u32,
    /// No attempt before this time, because of this error.
    pause: Option<(Instant, Error)>,
}

impl Link {
    pub(super) fn new(config: &Arc<RedisConfig>, world: &World, server: &(String, u16)) -> Link {
        Link {
            shared: Arc::new(Shared {
                config: Arc::clone(config),
                clock: Arc::clone(&world.clock),
                world: world.clone(),
                server: server.clone(),
                state: Mutex::default(),
            }),
        }
    }

    /// Queues commands with this many replies, which arrive over the channel.
    pub(super) fn send(
        &self,
        mut bytes: Vec<u8>,
        sink: Sink,
        replies: u32,
        asking: bool,
    ) -> Result<oneshot::Receiver<Outcome>, Error> {
        let (done, outcome) = oneshot::channel();
        let sent = self.shared.clock.now();
        let mut state = self.shared.lock();
        if let Some((until, error)) = &state.pause {
            if sent < *until {
                return Err(error.clone());
            }
            state.pause = None;
        }
        if state.bytes.len() + bytes.len() > MAX_QUEUED_BYTES || state.trips.len() >= MAX_QUEUED_TRIPS {
            let message = format!("{} commands wait to be sent", state.trips.len());
            let endpoint = Arc::clone(&self.shared.config.endpoint);
            return Err(Error::Busy { endpoint, message, retry_after: None });
        }
        match state.bytes.is_empty() {
            true => std::mem::swap(&mut state.bytes, &mut bytes),
            false => state.bytes.extend_from_slice(&bytes),
        }
        state.commands += replies as usize;
        state.trips.push(Trip { sink, replies, asking, acknowledgement: asking, sent, done: Some(done) });
        if state.task.is_none() {
            let task = self.shared.world.tasks.spawn(Box::pin(run(Arc::clone(&self.shared))));
            state.task = Some(task);
        }
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(outcome)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let task = self.shared.lock().task.take();
        drop(task);
    }
}

impl State {
    /// Empties the queue.
    fn take_trips(&mut self) -> Vec<Trip> {
        self.bytes.clear();
        self.commands = 0;
        std::mem::take(&mut self.trips)
    }

    /// Has the task woken when something is queued.
    pub(super) fn wait_with(&mut self, waker: &Waker) {
        match &mut self.waker {
            Some(known) => known.clone_from(waker),
            None => self.waker = Some(waker.clone()),
        }
    }

    /// Pauses, longer each time, and by chance not quite as long as others do.
    fn fail(&mut self, now: Instant, error: &Error) {
        let longest = FIRST_PAUSE.saturating_mul(1 << self.failures.min(10)).min(LONGEST_PAUSE);
        let chance = (RandomState::new().hash_one(self.failures) % 512 + 512) as u32;
        self.failures = self.failures.saturating_add(1);
        self.pause = Some((now + longest * chance / 1024, error.clone()));
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it is held")
    }

    /// Host and port.
    pub(super) fn address(&self) -> String {
        format!("{}:{}", self.server.0, self.server.1)
    }

    async fn wait_for_trips(&self) {
        std::future::poll_fn(|cx| {
            let mut state = self.lock();
            if !state.trips.is_empty() {
                return Poll::Ready(());
            }
            state.wait_with(cx.waker());
            Poll::Pending
        })
        .await;
    }

    /// Connects and greets the server.
    async fn connect(self: &Arc<Self>) -> Result<Connection, Error> {
        let within = self.config.connect_timeout;
        let too_late = self.clock.sleep_until(self.clock.now() + within);
        let connected = Box::pin(async {
            let socket = self.world.dial.dial(&self.server.0, self.server.1).await;
            let socket = socket.map_err(|error| error.to_string())?;
            let mut connection = Connection::new(Arc::clone(self), socket);
            greeting::greet(&mut connection, &self.config).await?;
            Ok(connection)
        });
        let cause = match select(connected, too_late).await {
            Either::Left((Ok(connection), _)) => return Ok(connection),
            Either::Left((Err(cause), _)) => cause,
            Either::Right(_) => format!("it did not answer within {within:?}"),
        };
        let cause = format!("{}: {cause}", self.address()).into();
        Err(Error::Connect { endpoint: Arc::clone(&self.config.endpoint), cause })
    }

    /// Fails everything that is queued, and pauses; whether a read was among it.
    fn fail(&self, error: &Error) -> bool {
        let now = self.clock.now();
        let mut state = self.lock();
        state.fail(now, error);
        let trips = state.take_trips();
        drop(state);
        let mut any_read = false;
        for trip in trips {
            any_read |= !trip.sink.is_probe();
            trip.end(Err(Failure::Error(error.clone())));
        }
        any_read
    }

    /// Notes the end of a connection that was up since then; whether to make another one at once.
    fn ended(&self, end: &End, since: Instant) -> bool {
        let lived = self.clock.now().saturating_duration_since(since);
        if end.silent || lived >= LONG_LIFE {
            self.lock().failures = 0;
        } else {
            let (endpoint, cause) = (Arc::clone(&self.config.endpoint), end.cause.as_str().into());
            self.fail(&Error::Broken { endpoint, cause });
        }
        end.silent
    }
}

/// Connects whenever something is queued, and serves until the connection ends.
async fn run(shared: Arc<Shared>) {
    let ended = LinkTask(shared);
    let shared = &ended.0;
    let mut at_once = false;
    loop {
        if !std::mem::take(&mut at_once) {
            shared.wait_for_trips().await;
        }
        // A failed probe is not a reason for the next one.
        let mut trouble = true;
        match shared.connect().await {
            Err(error) => trouble = shared.fail(&error),
            Ok(connection) => {
                shared.world.counters.connections.fetch_add(1, Ordering::Relaxed);
                let since = shared.clock.now();
                let end = connection.serve().await;
                at_once = shared.ended(&end, since);
            }
        }
        if trouble {
            (shared.world.on_trouble)();
        }
    }
}

/// The task of a link. If it ends with its runtime, the next trip starts another one.
struct LinkTask(Arc<Shared>);

impl Drop for LinkTask {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        let task = state.task.take();
        let trips = state.take_trips();
        drop(state);
        drop((task, trips));
    }
}
