//! Which server has a key: the one there is, or a Cluster's.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use anabranch_engine::clock::Clock;
use futures_util::future::join_all;
use redis::{Cmd, Pipeline, ServerError, ServerErrorKind, Value};
use tokio::sync::Semaphore;

use super::config::RedisConfig;
use super::link::Link;
use super::rest::Rests;
use super::slots;
use crate::source::Error;

/// How often a trip follows where a Cluster points, before it gives up.
const ROUNDS: usize = 5;

/// How old a map of the slots must be to be made anew.
const MAP_AGE: Duration = Duration::from_millis(100);

/// Commands that go to the servers of their keys.
pub(super) trait Commands: Sync {
    fn len(&self) -> usize;

    /// The key that decides which server has it.
    fn key(&self, at: usize) -> &str;

    fn command(&self, at: usize) -> Cmd;

    /// Whether a command that may have been carried out may be sent again.
    fn may_repeat(&self) -> bool {
        true
    }
}

/// What commands were answered, in their order, and the trips it took.
pub(super) struct Answers {
    pub(super) values: Vec<Value>,
    pub(super) trips: u32,
}

/// All servers of an endpoint.
pub(super) struct Servers {
    config: Arc<RedisConfig>,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    refreshing: Semaphore,
}

struct State {
    /// The servers we speak with, the configured ones first.
    nodes: Vec<Arc<Node>>,
    routes: Option<Arc<Routes>>,
}

/// Which server has which slot.
struct Routes {
    /// By slot; `None` where a slot has no server.
    by_slot: Vec<Option<Arc<Node>>>,
    made: Instant,
}

struct Node {
    address: (String, u16),
    links: Vec<Link>,
    next: AtomicUsize,
    /// Where reads are hedged: a second trip is of no use on the connection that keeps the first.
    rests: Option<Rests>,
}

/// Commands for one server.
struct Group {
    node: Arc<Node>,
    /// Places among the commands.
    places: Vec<u32>,
    /// Whether the server must be told that its slot is just arriving.
    asking: bool,
}

impl Servers {
    pub(super) fn new(config: Arc<RedisConfig>, clock: Arc<dyn Clock>) -> Servers {
        let nodes = config.servers.iter().map(|address| Node::new(&config, &clock, address)).collect();
        let state = Mutex::new(State { nodes, routes: None });
        Servers { config, clock, state, refreshing: Semaphore::new(1) }
    }

    pub(super) fn config(&self) -> &RedisConfig {
        &self.config
    }

    /// Sends each command where its key is, and follows where a Cluster points.
    pub(super) async fn exchange(&self, commands: &dyn Commands) -> Result<Answers, Error> {
        if self.config.cluster && self.lock().routes.is_none() {
            self.refresh(None).await?;
        }
        let mut values: Vec<Value> = vec![Value::Nil; commands.len()];
        let mut trips = 0;
        let mut routes = self.lock().routes.clone();
        let mut groups = self.by_key(routes.as_ref(), commands, 0..commands.len() as u32);
        for _ in 0..ROUNDS {
            let sent = groups.iter().map(|group| self.send(group, commands));
            let mut elsewhere = Vec::new();
            let mut failed: Option<(Error, Vec<u32>)> = None;
            let outcomes = match &groups[..] {
                [group] => vec![self.send(group, commands).await],
                _ => join_all(sent).await,
            };
            for (group, (outcome, trips_of)) in groups.iter().zip(outcomes) {
                trips += trips_of;
                match outcome {
                    Ok(answers) => {
                        for (place, value) in group.places.iter().zip(answers) {
                            match self.pointer(&value, group)? {
                                Some((node, asking)) => add(&mut elsewhere, &node, *place, asking),
                                None => values[*place as usize] = value,
                            }
                        }
                    }
                    Err(error) => {
                        failed.get_or_insert((error, Vec::new())).1.extend(&group.places);
                    }
                }
            }
            if elsewhere.is_empty() && failed.is_none() {
                return Ok(Answers { values, trips });
            }
            let final_failure = routes.is_none() || !commands.may_repeat();
            if let Some((error, _)) = &failed
                && (final_failure || matches!(error, Error::Timeout { .. }))
            {
                return Err(error.clone());
            }
            let moved = elsewhere.iter().any(|group| !group.asking);
            if (moved || failed.is_some()) && self.refresh(routes.as_ref()).await.is_err() {
                // What has moved has told where to.
                if let Some((error, _)) = failed {
                    return Err(error);
                }
            }
            let before = std::mem::replace(&mut routes, self.lock().routes.clone());
            groups = elsewhere;
            if let Some((error, places)) = failed {
                if same(before.as_ref(), routes.as_ref()) {
                    return Err(error);
                }
                groups.extend(self.by_key(routes.as_ref(), commands, places.into_iter()));
            }
        }
        let cause = "the Cluster kept pointing elsewhere".into();
        Err(Error::Connect { endpoint: Arc::clone(&self.config.endpoint), cause })
    }

    /// Commands by the server that has their key.
    fn by_key(
        &self,
        routes: Option<&Arc<Routes>>,
        commands: &dyn Commands,
        places: impl ExactSizeIterator<Item = u32>,
    ) -> Vec<Group> {
        let any = Arc::clone(&self.lock().nodes[0]);
        let Some(routes) = routes else {
            return vec![Group { node: any, places: places.collect(), asking: false }];
        };
        let mut groups = Vec::new();
        for place in places {
            let slot = slots::of(commands.key(place as usize).as_bytes());
            let node = routes.by_slot[usize::from(slot)].as_ref().unwrap_or(&any);
            add(&mut groups, node, place, false);
        }
        groups
    }

    /// Sends the commands of a group, in as many trips as it takes.
    async fn send(&self, group: &Group, commands: &dyn Commands) -> (Result<Vec<Value>, Error>, u32) {
        let link = group.node.next_link();
        let mut values = Vec::with_capacity(group.places.len());
        let mut trips = 0;
        for places in group.places.chunks(self.config.pipeline.max(1)) {
            let mut pipeline = Pipeline::with_capacity(places.len());
            for place in places {
                if group.asking {
                    pipeline.cmd("ASKING");
                }
                pipeline.add_command(commands.command(*place as usize));
            }
            trips += 1;
            match group.node.send(link, &pipeline, commands.may_repeat()).await {
                Ok(mut answers) if group.asking => {
                    let mut at = 0;
                    answers.retain(|_| {
                        at += 1;
                        at % 2 == 0
                    });
                    values.append(&mut answers);
                }
                Ok(mut answers) => values.append(&mut answers),
                Err(error) => return (Err(error), trips),
            }
        }
        (Ok(values), trips)
    }

    /// Where an answer points, if it does. An answer that is "not now" is an error.
    fn pointer(&self, value: &Value, group: &Group) -> Result<Option<(Arc<Node>, bool)>, Error> {
        let Value::ServerError(error) = value else { return Ok(None) };
        let asking = match error.kind() {
            Some(ServerErrorKind::Moved) => false,
            Some(ServerErrorKind::Ask) => true,
            Some(
                ServerErrorKind::BusyLoading
                | ServerErrorKind::ClusterDown
                | ServerErrorKind::MasterDown
                | ServerErrorKind::TryAgain,
            ) => {
                let endpoint = Arc::clone(&self.config.endpoint);
                return Err(Error::Connect { endpoint, cause: said(error).into() });
            }
            _ => return Ok(None),
        };
        // `3999 127.0.0.1:6381`; a server that does not know its own name leaves out the host.
        let address = error.details().and_then(|details| details.split_once(' ')?.1.rsplit_once(':'));
        let Some((host, Ok(port))) = address.map(|(host, port)| (host, port.parse::<u16>())) else {
            return Ok(None);
        };
        let host = if host.is_empty() { group.node.address.0.as_str() } else { host };
        Ok(Some((self.node(host, port), asking)))
    }

    /// Makes the map of the slots anew, unless it is no longer `seen` or was made just now.
    async fn refresh(&self, seen: Option<&Arc<Routes>>) -> Result<(), Error> {
        let _only = self.refreshing.acquire().await.expect("it is never closed");
        let current = self.lock().routes.clone();
        if !same(current.as_ref(), seen) {
            return Ok(());
        }
        if current.is_some_and(|routes| self.clock.now().duration_since(routes.made) < MAP_AGE) {
            return Ok(());
        }
        let nodes = self.lock().nodes.clone();
        let mut failure = None;
        // The latest known first: servers that were configured may be gone.
        for node in nodes.iter().rev() {
            let mut pipeline = Pipeline::new();
            pipeline.cmd("CLUSTER").arg("SLOTS");
            let answer = match node.send(node.next_link(), &pipeline, true).await {
                Ok(mut answers) => answers.pop().unwrap_or(Value::Nil),
                Err(error) => {
                    failure.get_or_insert(error);
                    continue;
                }
            };
            match slots::map(&answer, &node.address.0) {
                Ok(ranges) => {
                    self.install(&ranges);
                    return Ok(());
                }
                Err(message) => {
                    failure.get_or_insert(Error::Refused {
                        endpoint: Arc::clone(&self.config.endpoint),
                        command: "CLUSTER SLOTS".to_owned(),
                        message,
                    });
                }
            }
        }
        Err(failure.expect("there is at least one server, and it did not answer"))
    }

    fn install(&self, ranges: &[slots::Range]) {
        let mut by_slot = vec![None; usize::from(slots::COUNT)];
        let mut used = Vec::new();
        for range in ranges {
            let node = self.node(&range.address.0, range.address.1);
            by_slot[usize::from(range.first)..=usize::from(range.last)].fill(Some(Arc::clone(&node)));
            used.push(node);
        }
        let routes = Arc::new(Routes { by_slot, made: self.clock.now() });
        let configured = self.config.servers.len();
        let mut state = self.lock();
        let mut place = 0;
        state.nodes.retain(|node| {
            place += 1;
            place <= configured || used.iter().any(|used| Arc::ptr_eq(used, node))
        });
        state.routes = Some(routes);
    }

    /// The server with this address.
    fn node(&self, host: &str, port: u16) -> Arc<Node> {
        let mut state = self.lock();
        if let Some(node) = state.nodes.iter().find(|node| node.address.0 == host && node.address.1 == port) {
            return Arc::clone(node);
        }
        let node = Node::new(&self.config, &self.clock, &(host.to_owned(), port));
        state.nodes.push(Arc::clone(&node));
        node
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics while it is held")
    }
}

impl Node {
    fn new(config: &Arc<RedisConfig>, clock: &Arc<dyn Clock>, address: &(String, u16)) -> Arc<Node> {
        let links: Vec<Link> =
            (0..config.connections.max(1)).map(|_| Link::new(config, clock, address)).collect();
        let rests = config.hedge.map(|_| Rests::new(clock, links.len()));
        Arc::new(Node { address: address.clone(), links, next: AtomicUsize::new(0), rests })
    }

    /// Its connections, one after the other, but for those that rest.
    fn next_link(&self) -> usize {
        let link = self.next.fetch_add(1, Ordering::Relaxed) % self.links.len();
        self.rests.as_ref().map_or(link, |rests| rests.pass_over(link))
    }

    async fn send(&self, link: usize, pipeline: &Pipeline, may_repeat: bool) -> Result<Vec<Value>, Error> {
        let outing = self.rests.as_ref().map(|rests| rests.begin(link));
        let answers = self.links[link].send(pipeline, may_repeat).await;
        if let Some(outing) = outing {
            if answers.is_ok() { outing.answered() } else { outing.failed() }
        }
        answers
    }
}

/// Adds a command to the group of its server.
fn add(groups: &mut Vec<Group>, node: &Arc<Node>, place: u32, asking: bool) {
    let fits = |group: &&mut Group| Arc::ptr_eq(&group.node, node) && group.asking == asking;
    match groups.iter_mut().find(fits) {
        Some(group) => group.places.push(place),
        None => groups.push(Group { node: Arc::clone(node), places: vec![place], asking }),
    }
}

fn same(a: Option<&Arc<Routes>>, b: Option<&Arc<Routes>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (None, None) => true,
        _ => false,
    }
}

/// An error as the server wrote it.
pub(super) fn said(error: &ServerError) -> String {
    match error.details() {
        Some(details) => format!("{} {details}", error.code()),
        None => error.code().to_owned(),
    }
}
