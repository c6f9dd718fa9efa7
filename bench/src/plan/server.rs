//! A Redis of one's own.

use std::time::Duration;

use anabranch_testkit::RedisServer;

/// A `redis-server` on a free port of this machine; it ends with its owner.
pub(super) struct Server {
    redis: RedisServer,
    process: String,
    version: String,
}

impl Server {
    pub(super) fn start() -> Server {
        let redis = RedisServer::start();
        let info = redis.command(&["INFO", "server"]);
        let said = |name: &str| {
            let word = info.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix(':'));
            word.unwrap_or("(unknown)").to_owned()
        };
        let (process, version) = (said("process_id"), said("redis_version"));
        Server { redis, process, version }
    }

    pub(super) fn port(&self) -> u16 {
        self.redis.port()
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// The number of reads of connections so far.
    pub(super) fn reads(&self) -> u64 {
        let info = self.redis.command(&["INFO", "stats"]);
        let count = info.split_whitespace().find_map(|word| word.strip_prefix("total_reads_processed:"));
        count.and_then(|count| count.parse().ok()).unwrap_or(0)
    }

    /// CPU time of the thread that does the work of a Redis.
    pub(super) fn cpu_time(&self) -> Duration {
        let text = std::fs::read_to_string(format!("/proc/{}/schedstat", self.process)).unwrap_or_default();
        let nanos = text.split_whitespace().next().and_then(|nanos| nanos.parse().ok());
        Duration::from_nanos(nanos.unwrap_or(0))
    }
}
