//! One server and the connections to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::config::RedisConfig;
use super::connection::Failure;
use super::link::{Link, World};
use super::rest::Rests;
use super::sink::Sink;
use crate::source::Error;

/// A server, and the connections to it that all trips share.
pub(super) struct Node {
    pub(super) address: (String, u16),
    config: Arc<RedisConfig>,
    links: Vec<Link>,
    next: AtomicUsize,
    /// Set if reads are hedged: a second trip is useless on the connection that delays the first.
    rests: Option<Rests>,
}

impl Node {
    pub(super) fn new(config: &Arc<RedisConfig>, world: &World, address: &(String, u16)) -> Arc<Node> {
        let links: Vec<Link> =
            (0..config.connections.max(1)).map(|_| Link::new(config, world, address)).collect();
        let rests = config.hedge.map(|_| Rests::new(&world.clock, links.len()));
        let (next, config) = (AtomicUsize::new(0), Arc::clone(config));
        Arc::new(Node { address: address.clone(), config, links, next, rests })
    }

    /// The next connection, round-robin, without those that rest.
    pub(super) fn next_link(&self) -> usize {
        let link = self.next.fetch_add(1, Ordering::Relaxed) % self.links.len();
        self.rests.as_ref().map_or(link, |rests| rests.pass_over(link))
    }

    /// Sends commands over one connection and waits for this many replies.
    pub(super) async fn send(
        &self,
        link: usize,
        bytes: Vec<u8>,
        sink: Sink,
        replies: u32,
        asking: bool,
    ) -> Result<Sink, Failure> {
        let outing = self.rests.as_ref().map(|rests| rests.begin(link));
        let outcome = match self.links[link].send(bytes, sink, replies, asking) {
            Ok(outcome) => outcome.await.unwrap_or_else(|_| Err(Failure::Error(self.shut_down()))),
            Err(error) => Err(Failure::Error(error)),
        };
        if let Some(outing) = outing {
            if outcome.is_ok() { outing.answered() } else { outing.failed() }
        }
        outcome
    }

    fn shut_down(&self) -> Error {
        let cause = "its runtime was shut down".into();
        Error::Broken { endpoint: Arc::clone(&self.config.endpoint), cause }
    }
}
