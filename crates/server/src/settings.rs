//! How much a service takes.

use std::time::Duration;

use crate::guard::AllowedHost;

/// How a service is set up. Everything that a client could make large has a bound here.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The largest message of a gRPC call, in bytes, compressed or not. Default 256 MiB.
    pub message_most: usize,
    /// The most bytes of a blob that is put as a stream. Default 64 GiB.
    pub blob_most: u64,
    /// The most bytes of an HTTP body that is not a blob. Default 16 MiB.
    pub body_most: usize,
    /// The most memory, in bytes, that the values of such a body may take once they are parsed. Default 48 MiB.
    pub body_memory_most: usize,
    /// The most addresses in one call, and in one answer. Default 100,000.
    pub addresses_most: usize,
    /// How many values of one batch are got ahead. Default 16.
    pub ahead: usize,
    /// The most connections at a time; more wait to be accepted. Default 1024.
    pub connections_most: usize,
    /// The most calls at a time on one connection. Default 1024.
    pub calls_most: u32,
    /// How long calls under way may take once the server is told to stop. Default 10 seconds.
    pub grace: Duration,
    /// Hosts that requests may name beside loopback and the address that the server listens on. Default none.
    pub allowed_hosts: Vec<AllowedHost>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            message_most: 256 << 20,
            blob_most: 64 << 30,
            body_most: 16 << 20,
            body_memory_most: 48 << 20,
            addresses_most: 100_000,
            ahead: 16,
            connections_most: 1024,
            calls_most: 1024,
            grace: Duration::from_secs(10),
            allowed_hosts: Vec::new(),
        }
    }
}
