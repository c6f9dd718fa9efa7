//! Redis: one server or a Cluster.
//!
//! All requests share a few connections to each server ([`link`]); a trip is a pipeline of one command a key.

mod config;
mod link;
mod slots;
mod rest;
mod servers;
mod decode;
mod trip;
mod fill;

use std::sync::Arc;

use anabranch_engine::clock::Clock;

pub use config::{RedisConfig, RedisTls};
pub use fill::seed;

use super::{Bound, Hedge, Pattern, Read, Source};
use servers::Servers;
use trip::Trip;

/// A source of what a Redis holds. It connects when it is first asked for something.
pub struct Redis {
    servers: Arc<Servers>,
}

impl Redis {
    /// A Redis that is reached as `config` says.
    pub fn new(config: RedisConfig, clock: Arc<dyn Clock>) -> Redis {
        assert!(!config.servers.is_empty(), "a Redis has a server");
        Redis { servers: Arc::new(Servers::new(Arc::new(config), clock)) }
    }
}

impl Source for Redis {
    fn bind(&self, pattern: &Pattern, read: &Read) -> Arc<dyn Bound> {
        Arc::new(Trip::new(Arc::clone(&self.servers), pattern, read))
    }

    fn max_inflight(&self) -> Option<u32> {
        Some(self.servers.config().max_inflight)
    }

    fn hedge(&self) -> Option<Hedge> {
        self.servers.config().hedge
    }
}
