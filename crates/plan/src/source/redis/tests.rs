//! Connections on virtual time, to scripted servers in memory.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use anabranch_rows::{Key, Kind};
use anabranch_testkit::Sim;
use futures_util::future::{BoxFuture, Either, join3, select};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::dial::{Dial, Socket};
use super::link::World;
use super::resp::Decoder;
use super::sink::{Sink, Value};
use super::{Redis, RedisConfig};
use crate::bounds::{Bounds, Budget};
use crate::source::{Error, Fetch, Field, Keys, Pattern, Read, ReadContext, Source};

/// The answer of a server at a port to a command on one of its connections, counted from 0; `None` if it is silent.
type Script = Arc<dyn Fn(u16, usize, &[String]) -> Option<String> + Send + Sync>;

/// A network of scripted servers, which answer at once or never.
#[derive(Clone)]
struct Servers {
    script: Script,
    connections: Arc<Mutex<BTreeMap<u16, usize>>>,
    /// The number of writes so far.
    writes: Arc<Mutex<usize>>,
}

struct ScriptedSocket {
    servers: Servers,
    port: u16,
    number: usize,
    decoder: Decoder,
    received: Vec<u8>,
    replies: VecDeque<u8>,
    reader: Option<Waker>,
}

impl Servers {
    fn new(script: impl Fn(u16, usize, &[String]) -> Option<String> + Send + Sync + 'static) -> Servers {
        Servers { script: Arc::new(script), connections: Arc::default(), writes: Arc::default() }
    }

    fn connections(&self, port: u16) -> usize {
        self.connections.lock().unwrap().get(&port).copied().unwrap_or(0)
    }

    fn redis(&self, sim: &Sim, config: RedisConfig) -> Redis {
        let world = World {
            clock: sim.clock(),
            tasks: sim.tasks(),
            dial: Arc::new(self.clone()),
            on_trouble: Arc::new(|| {}),
            counters: Arc::default(),
        };
        Redis::in_world(config, world)
    }
}

impl Dial for Servers {
    fn dial<'a>(&'a self, _: &'a str, port: u16) -> BoxFuture<'a, io::Result<Box<dyn Socket>>> {
        let mut connections = self.connections.lock().unwrap();
        let count = connections.entry(port).or_default();
        let socket = ScriptedSocket {
            servers: self.clone(),
            port,
            number: *count,
            decoder: Decoder::default(),
            received: Vec::new(),
            replies: VecDeque::new(),
            reader: None,
        };
        *count += 1;
        Box::pin(async move { Ok(Box::new(socket) as Box<dyn Socket>) })
    }
}

impl ScriptedSocket {
    fn answer(&mut self, command: &Value) {
        let Value::List(words) = command else { panic!("{command:?} is a command") };
        let word = |word: &Value| match word {
            Value::Text(bytes) => String::from_utf8(bytes.clone()).unwrap(),
            other => panic!("{other:?} is a word"),
        };
        let words: Vec<String> = words.iter().map(word).collect();
        let hello = "%2\r\n+server\r\n+redis\r\n+proto\r\n:3\r\n".to_owned();
        let reply = match &*words[0] {
            "HELLO" => (self.servers.script)(self.port, self.number, &words).map(|_| hello),
            _ => (self.servers.script)(self.port, self.number, &words),
        };
        self.replies.extend(reply.iter().flat_map(|reply| reply.bytes()));
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

impl AsyncRead for ScriptedSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.replies.is_empty() {
            self.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        while to.remaining() > 0
            && let Some(byte) = self.replies.pop_front()
        {
            to.put_slice(&[byte]);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ScriptedSocket {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        *self.servers.writes.lock().unwrap() += 1;
        self.received.extend_from_slice(bytes);
        let received = std::mem::take(&mut self.received);
        let mut start = 0;
        self.decoder.begin(1 << 20);
        loop {
            let mut sink = Sink::values();
            let (used, complete) = self.decoder.feed(&received[start..], &mut sink).unwrap();
            start += used;
            if !complete {
                break;
            }
            self.answer(&sink.into_values()[0]);
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn country() -> Read {
    Read::Fields(Arc::new([Field { name: "country".into(), key: Key(2000), kind: Kind::Text }]))
}

fn ok() -> Option<String> {
    Some("$2\r\nUS\r\n".to_owned())
}

/// Makes one read, cancelled after `cut`. Returns `None` if it was not answered.
async fn ask(sim: &Sim, redis: &Redis, cut: Duration) -> Option<Result<(), Error>> {
    let bound = redis.bind(&Pattern::of_id("user:"), &country());
    let Fetch::Later(reply) =
        bound.fetch(Keys::Ids(vec![1]), ReadContext { budget: &Arc::default(), trace: None })
    else {
        panic!("it takes a trip")
    };
    match select(reply, sim.clock().sleep_until(sim.clock().now() + cut)).await {
        Either::Left((reply, _)) => Some(reply.map(|_| ())),
        Either::Right(_) => None,
    }
}

/// Reads with a deadline of 50 ms, one after the other, until ten in a row are answered; the time it took.
async fn until_whole(sim: &Sim, redis: &Redis) -> Duration {
    let began = sim.clock().now();
    let mut in_a_row = 0;
    while in_a_row < 10 {
        let whole = matches!(ask(sim, redis, Duration::from_millis(50)).await, Some(Ok(())));
        in_a_row = if whole { in_a_row + 1 } else { 0 };
        sim.clock().sleep_until(sim.clock().now() + Duration::from_millis(1)).await;
        let took = sim.clock().now() - began;
        assert!(took < Duration::from_secs(60), "it is never whole again");
    }
    sim.clock().now() - began
}

#[test]
fn a_silent_peer_is_replaced_although_every_read_is_cut_early() {
    for seed in 0..20 {
        let sim = Sim::new(seed);
        // A load balancer has lost the first two connections.
        let servers = Servers::new(|_, number, words| match &*words[0] {
            "HELLO" => ok(),
            _ => ok().filter(|_| number >= 2),
        });
        let redis = servers.redis(&sim, RedisConfig::new("a", 1));
        let took = sim.block_on(until_whole(&sim, &redis));
        assert!(took < Duration::from_secs(2), "{took:?}");
        assert_eq!(servers.connections(1), 4);
    }
}

#[test]
fn a_dead_server_of_a_cluster_is_replaced_although_every_read_is_cut_early() {
    for seed in 0..20 {
        let sim = Sim::new(seed);
        let dead = Arc::new(AtomicBool::new(false));
        let died = Arc::clone(&dead);
        let servers = Servers::new(move |port, _, words| {
            let dead = died.load(Ordering::SeqCst);
            if dead && port == 1 {
                return None;
            }
            match &*words[0] {
                "CLUSTER" => {
                    let owner = if dead { 2 } else { 1 };
                    Some(format!("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$1\r\na\r\n:{owner}\r\n"))
                }
                "HGET" if port != 1 && !dead => Some("-MOVED 1 a:1\r\n".to_owned()),
                _ => ok(),
            }
        });
        let config = RedisConfig {
            servers: vec![("a".to_owned(), 2), ("a".to_owned(), 1)],
            cluster: true,
            ..RedisConfig::new("a", 1)
        };
        let redis = servers.redis(&sim, config);
        sim.block_on(async {
            until_whole(&sim, &redis).await;
            assert_eq!(servers.connections(1), 2);
            dead.store(true, Ordering::SeqCst);
            let took = until_whole(&sim, &redis).await;
            assert!(took < Duration::from_secs(2), "{took:?}");
        });
        drop(redis);
        assert_eq!(sim.settle().tasks, 0, "dropping the source ends its tasks");
    }
}

#[test]
fn a_first_map_is_read_although_the_first_server_is_dead_and_every_read_is_cut_early() {
    let sim = Sim::new(1);
    let servers = Servers::new(|port, _, words| match (port, &*words[0]) {
        (1, _) => None,
        (_, "CLUSTER") => Some("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$1\r\na\r\n:2\r\n".to_owned()),
        _ => ok(),
    });
    let nodes = vec![("a".to_owned(), 2), ("a".to_owned(), 1)];
    let config = RedisConfig { servers: nodes, cluster: true, ..RedisConfig::new("a", 1) };
    let redis = servers.redis(&sim, config);
    let took = sim.block_on(until_whole(&sim, &redis));
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[test]
fn trips_that_are_ready_together_leave_in_one_write() {
    let sim = Sim::new(1);
    let servers = Servers::new(|_, _, _| ok());
    let redis = servers.redis(&sim, RedisConfig { connections: 1, ..RedisConfig::new("a", 1) });
    sim.block_on(async {
        let bound = redis.bind(&Pattern::of_id("user:"), &country());
        let fetch = |id| match bound
            .fetch(Keys::Ids(vec![id]), ReadContext { budget: &Arc::default(), trace: None })
        {
            Fetch::Later(reply) => reply,
            Fetch::Ready(_) => panic!("it takes a trip"),
        };
        let replies = futures_util::future::join_all((0..100).map(fetch)).await;
        assert!(replies.iter().all(Result::is_ok));
    });
    assert_eq!(*servers.writes.lock().unwrap(), 2, "a greeting, and all trips");
}

#[test]
fn a_server_that_drips_is_given_up() {
    let sim = Sim::new(1);
    let begun = AtomicBool::new(false);
    // A reply that grows by a byte per command, and is never complete.
    let servers = Servers::new(move |_, number, words| match &*words[0] {
        "HELLO" => ok(),
        _ if number > 0 => ok(),
        _ if begun.swap(true, Ordering::SeqCst) => Some("x".to_owned()),
        _ => Some("$1000000\r\n".to_owned()),
    });
    let redis = servers.redis(&sim, RedisConfig { connections: 1, ..RedisConfig::new("a", 1) });
    let took = sim.block_on(until_whole(&sim, &redis));
    assert!(took > Duration::from_secs(2) && took < Duration::from_secs(11), "{took:?}");
}

/// The number of turns that another task gets while a list of this many ids is read. The whole reply arrives at once.
fn turns_beside_a_reply(ids: usize) -> u32 {
    let sim = Sim::new(1);
    let servers = Servers::new(move |_, _, words| match &*words[0] {
        "LRANGE" => Some(format!("*{ids}\r\n{}", "$9\r\n123456789\r\n".repeat(ids))),
        _ => ok(),
    });
    let redis = servers.redis(&sim, RedisConfig { connections: 1, ..RedisConfig::new("a", 1) });
    let bound = redis.bind(&Pattern::of_id("follow:"), &Read::List { limit: ids as u32 });
    let Fetch::Later(reply) =
        bound.fetch(Keys::Ids(vec![1]), ReadContext { budget: &Arc::default(), trace: None })
    else {
        panic!("a trip")
    };
    let mut turns = 0;
    let other = std::future::poll_fn(|cx| {
        turns += 1;
        cx.waker().wake_by_ref();
        Poll::<()>::Pending
    });
    let Either::Left((reply, _)) = sim.block_on(select(reply, other)) else { panic!("it has no end") };
    assert!(reply.is_ok(), "{reply:?}");
    turns
}

#[test]
fn a_large_reply_is_decoded_in_slices_between_which_others_have_their_turn() {
    let (small, large) = (turns_beside_a_reply(10), turns_beside_a_reply(200_000));
    // A turn ends once it has read 64 KiB; its last read may be as long again. So 3 MB take at least 22 turns.
    assert!(large >= small + 22, "{small} turns beside a small reply, {large} beside a large one");
}

#[test]
fn a_busy_server_gets_further_commands_in_one_write() {
    const MANY: usize = 600;
    let sim = Sim::new(1);
    let asked = AtomicUsize::new(0);
    // The first command after the many is answered together with all of them.
    let servers = Servers::new(move |_, _, words| match &*words[0] {
        "HELLO" => ok(),
        _ => match asked.fetch_add(1, Ordering::SeqCst) {
            ..MANY => None,
            MANY => Some(ok()?.repeat(MANY + 1)),
            _ => ok(),
        },
    });
    let timeout = Duration::from_millis(100);
    let config = RedisConfig { connections: 1, response_timeout: timeout, ..RedisConfig::new("a", 1) };
    let redis = servers.redis(&sim, config);
    sim.block_on(async {
        let bound = redis.bind(&Pattern::of_id("user:"), &country());
        let fetch = |ids: std::ops::Range<i64>| {
            let Fetch::Later(reply) =
                bound.fetch(Keys::Ids(ids.collect()), ReadContext { budget: &Arc::default(), trace: None })
            else {
                panic!("it takes a trip")
            };
            reply
        };
        let clock = sim.clock();
        let began = clock.now();
        let later = async |millis| {
            clock.sleep_until(began + Duration::from_millis(millis)).await;
            fetch(0..1).await
        };
        let (many, one, another) = join3(fetch(0..MANY as i64), later(1), later(2)).await;
        // They left when the many were late, although the server had answered nothing.
        assert!(matches!(many, Err(Error::Timeout { .. })), "{many:?}");
        assert!(one.is_ok() && another.is_ok());
        assert!(clock.now() >= began + timeout);
    });
    assert_eq!(*servers.writes.lock().unwrap(), 3, "a greeting, the many, and both others at once");
}

#[test]
fn replies_over_the_budget_are_not_kept() {
    let budget = Arc::new(Budget::new(Bounds { rows: 10, bytes: 8 << 10 }));
    let mut sink = Sink::of(&country(), 1_000, budget.reply());
    let text = format!("$100\r\n{}\r\n", "x".repeat(100));
    let mut decoder = Decoder::default();
    decoder.begin(1 << 20);
    for _ in 0..1_000 {
        assert_eq!(decoder.feed(text.as_bytes(), &mut sink), Ok((text.len(), true)));
        sink.end_reply();
    }
    assert!(sink.fault.is_some() && sink.is_nothing());
    assert_eq!(sink.rows(), 1_000, "all replies are counted");
}
