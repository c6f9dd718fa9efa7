//! How much a service takes.

use std::time::Duration;

use crate::guard::AllowedHost;

/// How a service is set up. Everything that a client could make large has a bound here.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The largest message of a gRPC call, in bytes, compressed or not. Default 16 MiB.
    pub message_most: usize,
    /// The largest leaf that Deriva's `PutLeaf` takes in one message, in bytes. Default 256 MiB.
    pub leaf_most: usize,
    /// The most bytes of a blob that is put as a stream. Default 64 GiB.
    pub blob_most: u64,
    /// The most bytes of an HTTP body that is not a blob. Default 16 MiB.
    pub body_most: usize,
    /// The most memory, in bytes, that the values of such a body may take once they are parsed. Default 48 MiB.
    pub body_memory_most: usize,
    /// The most bytes of messages and bodies whose calls are not answered yet, over all connections. Default 512 MiB.
    pub unfinished_most: usize,
    /// How long a request waits for its share of these bytes. Default 10 seconds.
    pub unfinished_wait: Duration,
    /// The most blobs of more than 64 KiB that are put as streams at a time; more wait. Default 128.
    pub uploads_most: usize,
    /// A request that brings fewer than `stall_bytes` while the server waits for it so long is given up, and so is an
    /// archive that its client does not read for so long. Default 20 seconds.
    pub stall_timeout: Duration,
    /// The fewest bytes of a request per `stall_timeout`. Default 1 KiB.
    pub stall_bytes: u64,
    /// A connection without a call for so long is closed. Default 5 minutes.
    pub idle_timeout: Duration,
    /// The most addresses in one call, and in one answer. Default 100,000.
    pub addresses_most: usize,
    /// How many values of one batch are got ahead. Default 16.
    pub ahead: usize,
    /// The most connections at a time. For another one, the connection that is idle for the longest time is closed; if
    /// none is idle, the new one waits. Default 1024.
    pub connections_most: usize,
    /// The most calls at a time on one connection. Default 1024.
    pub calls_most: u32,
    /// The most requests that the server works on at a time; one client has at most half of them. Default 2048.
    pub in_flight_most: usize,
    /// The most requests that wait to be worked on; one client has at most half of them. Default 2048.
    pub queue_most: usize,
    /// How long a request waits to be worked on. Default 5 seconds.
    pub queue_wait: Duration,
    /// The most requests that are not answered, or whose answers are not read to their end; one client has at most half of
    /// them. Default 16384.
    pub open_most: usize,
    /// How long calls under way may take once the server is told to shut down. Default 10 seconds.
    pub grace: Duration,
    /// Hosts that requests may name beside loopback and the address that the server listens on. Default none.
    pub allowed_hosts: Vec<AllowedHost>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            message_most: 16 << 20,
            leaf_most: 256 << 20,
            blob_most: 64 << 30,
            body_most: 16 << 20,
            body_memory_most: 48 << 20,
            unfinished_most: 512 << 20,
            unfinished_wait: Duration::from_secs(10),
            uploads_most: 128,
            stall_timeout: Duration::from_secs(20),
            stall_bytes: 1 << 10,
            idle_timeout: Duration::from_secs(300),
            addresses_most: 100_000,
            ahead: 16,
            connections_most: 1024,
            calls_most: 1024,
            in_flight_most: 2048,
            queue_most: 2048,
            queue_wait: Duration::from_secs(5),
            open_most: 16384,
            grace: Duration::from_secs(10),
            allowed_hosts: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use anabranch_text::{duration, size};

    use super::*;

    /// Each setting has its row in the documentation, with its default.
    #[test]
    fn the_documentation_lists_every_setting() {
        let page = include_str!("../../../docs/serving.md");
        let bytes = |bytes: usize| size::format(bytes as u64);
        // Without `..`, so that a new setting is missed here.
        let Settings {
            message_most,
            leaf_most,
            blob_most,
            body_most,
            body_memory_most,
            unfinished_most,
            unfinished_wait,
            uploads_most,
            stall_timeout,
            stall_bytes,
            idle_timeout,
            addresses_most,
            ahead,
            connections_most,
            calls_most,
            in_flight_most,
            queue_most,
            queue_wait,
            open_most,
            grace,
            allowed_hosts,
        } = Settings::default();
        assert!(allowed_hosts.is_empty());
        for (name, default) in [
            ("message_most", bytes(message_most)),
            ("leaf_most", bytes(leaf_most)),
            ("blob_most", size::format(blob_most)),
            ("body_most", bytes(body_most)),
            ("body_memory_most", bytes(body_memory_most)),
            ("unfinished_most", bytes(unfinished_most)),
            ("unfinished_wait", duration::format(unfinished_wait)),
            ("uploads_most", uploads_most.to_string()),
            ("stall_timeout", duration::format(stall_timeout)),
            ("stall_bytes", size::format(stall_bytes)),
            ("idle_timeout", duration::format(idle_timeout)),
            ("addresses_most", addresses_most.to_string()),
            ("ahead", ahead.to_string()),
            ("connections_most", connections_most.to_string()),
            ("calls_most", calls_most.to_string()),
            ("in_flight_most", in_flight_most.to_string()),
            ("queue_most", queue_most.to_string()),
            ("queue_wait", duration::format(queue_wait)),
            ("open_most", open_most.to_string()),
            ("grace", duration::format(grace)),
            ("allowed_hosts", "none".to_owned()),
        ] {
            let row = format!("| `{name}` | {default} |");
            assert!(page.contains(&row), "docs/serving.md lacks: {row}");
        }
    }
}
