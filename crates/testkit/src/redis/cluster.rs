//! A Redis Cluster of local servers.

use super::{RedisServer, StartLimit, command, free_port, pause};

/// The number of hash slots in every Redis Cluster.
const SLOTS: usize = 16_384;

/// Several `redis-server` processes that form a Cluster without replicas.
pub struct RedisCluster {
    nodes: Vec<RedisServer>,
}

impl RedisCluster {
    /// Starts a Cluster of `nodes` servers, which share the slots evenly.
    pub fn start(nodes: usize) -> RedisCluster {
        let start = |_| {
            let bus = free_port().to_string();
            // On a busy machine servers hear from each other late, and are not down for that.
            let patient = ["--cluster-node-timeout", "100000"];
            RedisServer::start_with(&[
                "--cluster-enabled",
                "yes",
                "--cluster-port",
                &bus,
                patient[0],
                patient[1],
            ])
        };
        let cluster = RedisCluster { nodes: (0..nodes).map(start).collect() };
        for (at, node) in cluster.nodes.iter().enumerate() {
            let (first, last) = (SLOTS * at / nodes, SLOTS * (at + 1) / nodes - 1);
            node.command(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()]);
            node.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(at + 1).to_string()]);
        }
        let (first, others) = cluster.nodes.split_first().expect("a Cluster has at least one server");
        let (port, bus) = (first.port().to_string(), &first.options[3]);
        for node in others {
            node.command(&["CLUSTER", "MEET", "127.0.0.1", &port, bus]);
        }
        cluster.wait_until_ready();
        cluster
    }

    /// The servers.
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// One of the servers, to kill or restart it.
    pub fn node_mut(&mut self, at: usize) -> &mut RedisServer {
        &mut self.nodes[at]
    }

    /// Moves the slot of `key` with all its keys to the next server, and returns the number of the slot.
    pub fn move_slot_of(&self, key: &str) -> usize {
        let slot = self.nodes[0].command(&["CLUSTER", "KEYSLOT", key]);
        let from = self.begin_move(&slot);
        let to = (from + 1) % self.nodes.len();
        let keys = self.nodes[from].command(&["CLUSTER", "GETKEYSINSLOT", &slot, "1000"]);
        for key in keys.split_whitespace() {
            self.migrate(key, from, to);
        }
        let id = self.nodes[to].command(&["CLUSTER", "MYID"]);
        for node in [to, from].into_iter().chain((0..self.nodes.len()).filter(|at| *at != to && *at != from))
        {
            self.nodes[node].command(&["CLUSTER", "SETSLOT", &slot, "NODE", &id]);
        }
        slot.parse().unwrap()
    }

    /// Begins to move the slot of `key` and moves only this key. The old server then answers `ASK` for it.
    pub fn half_move_slot_of(&self, key: &str) {
        let slot = self.nodes[0].command(&["CLUSTER", "KEYSLOT", key]);
        let from = self.begin_move(&slot);
        self.migrate(key, from, (from + 1) % self.nodes.len());
    }

    /// Marks a slot as migrating from its server to the next one, and returns the index of its server.
    fn begin_move(&self, slot: &str) -> usize {
        let number: usize = slot.parse().unwrap();
        let share = |at: &usize| {
            let ranges = self.nodes[*at].command(&["CLUSTER", "NODES"]);
            let own = ranges.lines().find(|line| line.contains("myself")).unwrap();
            own.split(' ').skip(8).any(|range| {
                let mut ends = range.split('-').map(|end| end.parse::<usize>().unwrap_or(usize::MAX));
                let first = ends.next().unwrap();
                (first..=ends.next().unwrap_or(first)).contains(&number)
            })
        };
        let from = (0..self.nodes.len()).find(share).expect("every slot has a server");
        let to = (from + 1) % self.nodes.len();
        let [from_id, to_id] = [from, to].map(|at| self.nodes[at].command(&["CLUSTER", "MYID"]));
        self.nodes[to].command(&["CLUSTER", "SETSLOT", slot, "IMPORTING", &from_id]);
        self.nodes[from].command(&["CLUSTER", "SETSLOT", slot, "MIGRATING", &to_id]);
        from
    }

    fn migrate(&self, key: &str, from: usize, to: usize) {
        let port = self.nodes[to].port().to_string();
        self.nodes[from].command(&["MIGRATE", "127.0.0.1", &port, key, "0", "100000"]);
    }

    /// Waits until every server knows all other servers and all slots.
    pub fn wait_until_ready(&self) {
        let known = format!("cluster_known_nodes:{}", self.nodes.len());
        let is_ready = |node: &RedisServer| {
            let info = command(node.port(), &["CLUSTER", "INFO"]).unwrap_or_default();
            let slots = command(node.port(), &["CLUSTER", "SLOTS"]).unwrap_or_default();
            let all = self.nodes.iter().all(|other| slots.contains(&other.port().to_string()));
            info.contains("cluster_state:ok") && info.contains(&known) && all
        };
        let limit = StartLimit::new();
        while limit.is_left() {
            if self.nodes.iter().all(is_ready) {
                return;
            }
            pause();
        }
        panic!("the Cluster did not become ready: a server does not know all servers and slots");
    }
}
