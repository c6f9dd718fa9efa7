//! The servers of an endpoint: the one there is, or those of a Cluster.

use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Instant;

use anabranch_engine::retry::{Classified as _, Severity};
use futures_util::future::join_all;

use super::config::RedisConfig;
use super::connection::Failure;
use super::link::{Counters, World};
use super::node::Node;
use super::refresh::Refresh;
use super::sink::Sink;
use super::slots::{self, Redirect};
use crate::source::Error;

/// The most redirects of a Cluster that a trip follows.
const ROUNDS: usize = 5;

/// Commands that go to the servers of their keys.
pub(super) trait Commands: Sync {
    fn len(&self) -> usize;

    /// The slot of the key of a command.
    fn slot(&self, at: usize) -> u16;

    /// Appends a command.
    fn encode(&self, at: usize, out: &mut Vec<u8>);

    /// About how many bytes a command takes.
    fn size(&self) -> usize;

    /// A command and its key, for messages.
    fn name(&self, at: usize) -> String;

    /// The sink for the replies to this many commands.
    fn sink(&self, commands: usize) -> Sink;

    /// True if a command that may have been carried out may be sent again.
    fn may_repeat(&self) -> bool {
        true
    }
}

/// The replies to commands, by server, and the number of trips. Of two replies to a command, the later one counts.
pub(super) struct Answers {
    pub(super) parts: Vec<Part>,
    pub(super) trips: u32,
}

/// The replies of one server.
pub(super) struct Part {
    pub(super) sink: Sink,
    /// The place of the command of each reply; `None` if the server has all of them.
    pub(super) places: Option<Vec<u32>>,
}

impl Part {
    pub(super) fn place(&self, row: u32) -> u32 {
        self.places.as_ref().map_or(row, |places| places[row as usize])
    }
}

/// All servers of an endpoint. Dropping it ends its tasks.
pub(super) struct Servers(Arc<Inner>);

pub(super) struct Inner {
    pub(super) config: Arc<RedisConfig>,
    pub(super) world: World,
    /// The only server, unless it is a Cluster.
    single: Option<Arc<Node>>,
    state: Mutex<State>,
}

pub(super) struct State {
    /// The known servers, the configured ones first.
    pub(super) nodes: Vec<Arc<Node>>,
    pub(super) routes: Option<Arc<Routes>>,
    /// The renewal of the slot map, if one is in progress.
    pub(super) refresh: Option<Refresh>,
}

/// The servers of the slots.
pub(super) struct Routes {
    /// By slot; `None` where a slot has no server.
    by_slot: Vec<Option<Arc<Node>>>,
    pub(super) made: Instant,
}

/// Commands for one server.
struct Group {
    node: Arc<Node>,
    /// Places among the commands; `None` for all of them.
    places: Option<Vec<u32>>,
    asking: bool,
}

impl Servers {
    pub(super) fn new(config: Arc<RedisConfig>, world: World) -> Servers {
        Servers(Arc::new_cyclic(|inner: &Weak<Inner>| {
            let inner = Weak::clone(inner);
            let cluster = config.cluster;
            let on_trouble = move || {
                if let Some(inner) = inner.upgrade().filter(|_| cluster) {
                    inner.refresh_soon();
                }
            };
            let world = World { on_trouble: Arc::new(on_trouble), ..world };
            let nodes: Vec<_> =
                config.servers.iter().map(|address| Node::new(&config, &world, address)).collect();
            let single = (!config.cluster).then(|| Arc::clone(&nodes[0]));
            let state = Mutex::new(State { nodes, routes: None, refresh: None });
            Inner { config, world, single, state }
        }))
    }

    pub(super) fn config(&self) -> &RedisConfig {
        &self.0.config
    }

    pub(super) fn counters(&self) -> &Counters {
        &self.0.world.counters
    }

    /// Sends each command to the server of its key, and follows the redirects of a Cluster.
    pub(super) async fn exchange(&self, commands: &dyn Commands) -> Result<Answers, Error> {
        let inner = &self.0;
        let Some(node) = &inner.single else { return inner.exchange(commands).await };
        let group = Group { node: Arc::clone(node), places: None, asking: false };
        let (sink, trips) = inner.send(&group, commands).await;
        let part = Part { sink: sink?, places: None };
        if let Some(redirect) = part.sink.redirects.first() {
            let message = format!(
                "{} (the server belongs to a Cluster: write redis-cluster:// in the URL, or cluster = true)",
                redirect.message
            );
            let (endpoint, command) =
                (Arc::clone(&inner.config.endpoint), commands.name(redirect.row as usize));
            return Err(Error::Refused { endpoint, command, message });
        }
        Ok(Answers { parts: vec![part], trips })
    }

    /// An error that a server answered to a command.
    pub(super) fn refused(&self, command: String, message: String) -> Error {
        let error = self.0.config.refused(command, message);
        if let Severity::Throttled { .. } = error.severity()
            && self.0.config.cluster
        {
            self.0.refresh_soon();
        }
        error
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        let refresh = self.0.lock().refresh.take();
        drop(refresh);
    }
}

impl Inner {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it is held")
    }

    /// Exchanges with a Cluster.
    async fn exchange(self: &Arc<Self>, commands: &dyn Commands) -> Result<Answers, Error> {
        if self.lock().routes.is_none() {
            self.refreshed(None).await?;
        }
        let mut answers = Answers { parts: Vec::new(), trips: 0 };
        let mut routes = self.lock().routes.clone();
        let mut groups = self.by_slot(routes.as_deref(), commands, 0..commands.len() as u32);
        for _ in 0..ROUNDS {
            let outcomes = join_all(groups.iter().map(|group| self.send(group, commands))).await;
            let mut next = Vec::new();
            let mut failed: Option<(Error, Vec<u32>)> = None;
            for (group, (outcome, trips)) in std::mem::take(&mut groups).into_iter().zip(outcomes) {
                answers.trips += trips;
                match outcome {
                    Ok(mut sink) => {
                        let redirects = std::mem::take(&mut sink.redirects);
                        let part = Part { sink, places: group.places };
                        for redirect in redirects {
                            let place = part.place(redirect.row);
                            add(&mut next, &self.node_of(&redirect, &group.node), place, redirect.asking);
                        }
                        answers.parts.push(part);
                    }
                    Err(error) => {
                        let places = group.places.unwrap_or_default();
                        failed.get_or_insert((error, Vec::new())).1.extend(places);
                    }
                }
            }
            if next.iter().any(|group: &Group| !group.asking) {
                self.refresh_soon();
            }
            if let Some((error, places)) = failed {
                let before = routes.clone();
                routes = self.routes_after(&error, before.as_ref(), commands).await?;
                next.extend(self.by_slot(routes.as_deref(), commands, places.into_iter()));
            }
            if next.is_empty() {
                return Ok(answers);
            }
            groups = next;
        }
        let message = "the servers of the Cluster kept pointing to one another".to_owned();
        Err(Error::Busy { endpoint: Arc::clone(&self.config.endpoint), message, retry_after: None })
    }

    /// The servers of the slots after a failure, if they have changed; otherwise the failure.
    async fn routes_after(
        self: &Arc<Self>,
        error: &Error,
        before: Option<&Arc<Routes>>,
        commands: &dyn Commands,
    ) -> Result<Option<Arc<Routes>>, Error> {
        let unreachable = matches!(error, Error::Connect { .. } | Error::Broken { .. });
        if !unreachable || !commands.may_repeat() {
            self.refresh_soon();
            return Err(error.clone());
        }
        if self.refreshed(before).await.is_err() {
            return Err(error.clone());
        }
        let routes = self.lock().routes.clone();
        match (before, &routes) {
            (Some(before), Some(routes)) if Arc::ptr_eq(before, routes) => Err(error.clone()),
            _ => Ok(routes),
        }
    }

    /// Commands by the server of their slot.
    fn by_slot(
        &self,
        routes: Option<&Routes>,
        commands: &dyn Commands,
        places: impl Iterator<Item = u32>,
    ) -> Vec<Group> {
        let any = Arc::clone(&self.lock().nodes[0]);
        let mut groups = Vec::new();
        for place in places {
            let slot = usize::from(commands.slot(place as usize));
            let node = routes.and_then(|routes| routes.by_slot[slot].as_ref()).unwrap_or(&any);
            add(&mut groups, node, place, false);
        }
        groups
    }

    /// Sends the commands of a group, in as many trips as needed. If the connection breaks, this is retried once, if
    /// the commands may be repeated.
    async fn send(&self, group: &Group, commands: &dyn Commands) -> (Result<Sink, Error>, u32) {
        let (mut trips, mut again) = (0, commands.may_repeat());
        loop {
            match self.send_once(group, commands, &mut trips).await {
                Err(Error::Broken { .. }) if again => again = false,
                outcome => return (outcome, trips),
            }
        }
    }

    async fn send_once(
        &self,
        group: &Group,
        commands: &dyn Commands,
        trips: &mut u32,
    ) -> Result<Sink, Error> {
        let count = group.places.as_ref().map_or(commands.len(), Vec::len);
        let place = |at: usize| group.places.as_ref().map_or(at, |places| places[at] as usize);
        let link = group.node.next_link();
        let mut sink = commands.sink(count);
        let mut first = 0;
        while first < count {
            let last = count.min(first + self.config.pipeline.max(1));
            let mut bytes = Vec::with_capacity((last - first) * commands.size());
            for at in first..last {
                if group.asking {
                    bytes.extend_from_slice(b"*1\r\n$6\r\nASKING\r\n");
                }
                commands.encode(place(at), &mut bytes);
            }
            *trips += 1;
            let sent = group.node.send(link, bytes, sink, (last - first) as u32, group.asking).await;
            sink = sent.map_err(|failure| match failure {
                Failure::Error(error) => error,
                Failure::Malformed { row, found } => Error::Malformed {
                    endpoint: Arc::clone(&self.config.endpoint),
                    command: commands.name(place(row as usize)),
                    found: found.0.into_owned(),
                    expected: "a reply of the protocol RESP",
                },
            })?;
            first = last;
        }
        Ok(sink)
    }

    /// The server that a redirect points to.
    fn node_of(&self, redirect: &Redirect, from: &Node) -> Arc<Node> {
        let host = if redirect.host.is_empty() { from.address.0.as_str() } else { &redirect.host };
        self.node(host, redirect.port)
    }

    /// The server with this address.
    fn node(&self, host: &str, port: u16) -> Arc<Node> {
        let mut state = self.lock();
        if let Some(node) = state.nodes.iter().find(|node| node.address.0 == host && node.address.1 == port) {
            return Arc::clone(node);
        }
        let node = Node::new(&self.config, &self.world, &(host.to_owned(), port));
        state.nodes.push(Arc::clone(&node));
        node
    }

    /// Takes a new map of the slots. Servers that it does not name are forgotten, unless they are configured.
    pub(super) fn install(&self, ranges: &[slots::Range]) {
        let mut by_slot = vec![None; usize::from(slots::COUNT)];
        let mut used = Vec::new();
        for range in ranges {
            let node = self.node(&range.address.0, range.address.1);
            by_slot[usize::from(range.first)..=usize::from(range.last)].fill(Some(Arc::clone(&node)));
            used.push(node);
        }
        let routes = Arc::new(Routes { by_slot, made: self.world.clock.now() });
        let configured = self.config.servers.len();
        let mut forgotten = Vec::new();
        let mut state = self.lock();
        let mut place = 0;
        state.nodes.retain(|node| {
            place += 1;
            let kept = place <= configured || used.iter().any(|used| Arc::ptr_eq(used, node));
            if !kept {
                forgotten.push(Arc::clone(node));
            }
            kept
        });
        let before = state.routes.replace(routes);
        // Their tasks end here, which must not happen under the lock.
        drop(state);
        drop((forgotten, before));
    }
}

/// Adds a command to the group of its server.
fn add(groups: &mut Vec<Group>, node: &Arc<Node>, place: u32, asking: bool) {
    let fits = |group: &&mut Group| Arc::ptr_eq(&group.node, node) && group.asking == asking;
    match groups.iter_mut().find(fits) {
        Some(group) => group.places.get_or_insert_default().push(place),
        None => groups.push(Group { node: Arc::clone(node), places: Some(vec![place]), asking }),
    }
}
