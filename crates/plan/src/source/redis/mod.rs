//! Redis: one server or a Cluster.
//!
//! All requests share a few connections to each server; a trip is a pipeline of one command per key. From the outside
//! in: [`trip`] makes commands of keys, [`servers`] sends them to the servers of their keys, [`link`] keeps a connection
//! up, [`connection`] owns its socket, [`resp`] decodes replies into the [`sink`] of their trip.

mod config;
mod resp;
mod sink;
mod encode;
mod dial;
mod connection;
mod greeting;
mod link;
mod rest;
mod node;
mod slots;
mod refresh;
mod servers;
mod trip;
mod fill;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_engine::clock::Clock;
use anabranch_engine::tasks::TokioTasks;

pub use config::{RedisConfig, RedisTls};
pub use fill::seed;

use super::{Bound, Hedge, Pattern, Read, Source};
use crate::bounds::Budget;
use dial::Network;
use link::{Counters, World};
use servers::Servers;
use trip::BoundRead;

/// Decodes any bytes as replies to a read of four keys, in pieces of this length.
pub(super) fn decode_any(bytes: &[u8], piece: usize, read: &Read) {
    let (mut decoder, mut sink) =
        (resp::Decoder::default(), sink::Sink::of(read, 4, Arc::<Budget>::default().reply()));
    decoder.begin(1 << 20);
    let mut start = 0;
    let mut end = 0;
    while sink.rows() < 4 {
        match decoder.feed(&bytes[start..end], &mut sink) {
            Ok((used, true)) => {
                start += used;
                sink.end_reply();
            }
            Ok((used, false)) if end < bytes.len() => {
                start += used;
                end = bytes.len().min(end + piece);
            }
            Ok(_) | Err(_) => return,
        }
    }
    sink.into_data().assert_rows(4);
}

/// Counters of a [`Redis`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RedisCounts {
    /// Writes to sockets.
    pub writes: u64,
    /// Reads of sockets.
    pub reads: u64,
    /// The number of connections that were opened.
    pub connections: u64,
}

/// A source that reads from Redis. It connects when it is first read from.
pub struct Redis {
    servers: Arc<Servers>,
}

impl Redis {
    /// A Redis that is reached as `config` says.
    pub fn new(config: RedisConfig, clock: Arc<dyn Clock>) -> Redis {
        let network = Network::new(config.tls.clone(), 2 * config.allowed_silence());
        let world = World {
            clock,
            tasks: Arc::new(TokioTasks),
            dial: Arc::new(network),
            on_trouble: Arc::new(|| {}),
            counters: Arc::default(),
        };
        Redis::in_world(config, world)
    }

    /// The number of writes and reads of sockets, and of connections made, so far.
    pub fn counts(&self) -> RedisCounts {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Counters { writes, reads, connections } = self.servers.counters();
        RedisCounts { writes: count(writes), reads: count(reads), connections: count(connections) }
    }

    fn in_world(config: RedisConfig, world: World) -> Redis {
        assert!(!config.servers.is_empty(), "a Redis has a server");
        Redis { servers: Arc::new(Servers::new(Arc::new(config), world)) }
    }
}

impl Source for Redis {
    fn bind(&self, pattern: &Pattern, read: &Read) -> Arc<dyn Bound> {
        Arc::new(BoundRead::new(Arc::clone(&self.servers), pattern, read))
    }

    fn max_inflight(&self) -> Option<u32> {
        Some(self.servers.config().max_inflight)
    }

    fn hedge(&self) -> Option<Hedge> {
        self.servers.config().hedge
    }
}
