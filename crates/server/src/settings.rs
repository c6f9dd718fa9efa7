//! The settings of a service.

use std::time::Duration;

use crate::guard::AllowedHost;

/// The settings of a service. Every size that a client controls has a limit here.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The size limit of a gRPC message in bytes, compressed or not. Default: 16 MiB.
    pub message_most: usize,
    /// The size limit of a leaf in Deriva's `PutLeaf`, which is one message, in bytes. Default: 256 MiB.
    pub leaf_most: usize,
    /// The size limit of a blob that is uploaded as a stream, in bytes. Default: 64 GiB.
    pub blob_most: u64,
    /// The size limit of an HTTP body that is not a blob, in bytes. Default: 16 MiB.
    pub body_most: usize,
    /// The memory limit of the parsed values of such a body, in bytes. Default: 48 MiB.
    pub body_memory_most: usize,
    /// The memory limit of all messages and bodies whose calls are not answered yet, and separately of all responses that
    /// are not read, in bytes. One client has at most half of each. Default: 512 MiB.
    pub unfinished_most: usize,
    /// The time for which a request waits for its share of this memory. Default: 10 seconds.
    pub unfinished_wait: Duration,
    /// The most concurrent uploads of blobs of more than 64 KiB. One client has at most half of them. Further ones
    /// wait. Default: 128.
    pub uploads_most: usize,
    /// The time for which such an upload waits for its slot. Default: 1 minute.
    pub uploads_wait: Duration,
    /// The stall timeout. A request that sends fewer than `stall_bytes` in this waiting time is cancelled, and so is an
    /// archive that its client does not read for this long. A connection whose client does not read another response for
    /// this long is closed. Default: 20 seconds.
    pub stall_timeout: Duration,
    /// The fewest bytes of a request per `stall_timeout`. Default: 1 KiB.
    pub stall_bytes: u64,
    /// The time after which a connection without a call is closed, and a stream of requests for plans (`RunMany`) whose
    /// client sends none is ended. Default: 5 minutes.
    pub idle_timeout: Duration,
    /// The most addresses in one call, and in one response. Default: 100,000.
    pub addresses_most: usize,
    /// The number of values of one batch that are fetched ahead. Default: 16.
    pub ahead: usize,
    /// The most concurrent connections. To accept another one, the connection that has been idle longest is closed, and
    /// one that listens to events only after the others. If none is idle, the new one waits. One client has at most seven
    /// eighths of them. Default: 1024.
    pub connections_most: usize,
    /// The most concurrent calls per connection. Default: 1024.
    pub calls_most: u32,
    /// The most concurrent runs of plans, and as many other requests. One client has at most half of each. Default: 2048.
    pub in_flight_most: usize,
    /// The most runs of plans that wait for a slot, and as many other requests. One client has at most half of each.
    /// Default: 2048.
    pub queue_most: usize,
    /// The time for which a request waits for a slot. Default: 5 seconds.
    pub queue_wait: Duration,
    /// The most requests that are not answered, or whose responses are not read to the end. One client has at most half
    /// of them. Default: 16384.
    pub open_most: usize,
    /// The grace period for calls in flight at shutdown. Default: 10 seconds.
    pub grace: Duration,
    /// The hosts that requests may name besides loopback and the address of the listener. Default: none.
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
            uploads_wait: Duration::from_secs(60),
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

    /// The documentation has a row for each setting, with its default.
    #[test]
    fn the_documentation_lists_every_setting() {
        let page = include_str!("../../../docs/serving.md");
        let bytes = |bytes: usize| size::format(bytes as u64);
        // There is no `..`, so that a new setting does not compile here.
        let Settings {
            message_most,
            leaf_most,
            blob_most,
            body_most,
            body_memory_most,
            unfinished_most,
            unfinished_wait,
            uploads_most,
            uploads_wait,
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
            ("uploads_wait", duration::format(uploads_wait)),
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
