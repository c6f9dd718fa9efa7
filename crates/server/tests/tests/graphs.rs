//! Random graphs, put in any order by many callers at once and read meanwhile: no answer is ever wrong.
//!
//! `ANABRANCH_GRAPHS` is how many graphs there are (200 if it is not set), `ANABRANCH_GRAPHS_SEED` the seed of the first;
//! each further graph has the next seed. What fails names its seed: with that and `ANABRANCH_GRAPHS=1` it is the only
//! graph. Which calls meet which is for the machine to decide, so a failure may take several runs to come back.

mod model;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anabranch_content::{Collect, Value};
use anabranch_recipe::{
    Address, DerivaRecipe, Draft, DraftInput, Executor, FunctionId, Invalidate, Reach, UnknownFunction,
};
use anabranch_server::{Client, Code, Settings};
use anabranch_testkit::Rng;
use futures_util::future::join3;
use futures_util::stream::{self, StreamExt as _};

use crate::deriva_wire::{Cascade, CascadeAnswer, Data, Deriva, PutRecipe};
use crate::support::{Server, functions, soon};
use model::{Graph, Kind, Node, Services, Through};

/// Calls under way at a time.
const IN_FLIGHT: usize = 64;

const CONNECTIONS: usize = 4;

fn from_env(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
}

/// The seeds of a third of all graphs: there are three ways to put them.
fn seeds(third: u64) -> std::ops::Range<u64> {
    let (first, count) = (from_env("ANABRANCH_GRAPHS_SEED", 15), from_env("ANABRANCH_GRAPHS", 200));
    let each = count.div_ceil(3);
    // A single graph is looked at in all three ways.
    let first = if count < 3 { first } else { first + third * each };
    first..first + each
}

/// Clients of both services, over several connections.
struct Clients {
    deriva: Vec<Deriva>,
    ours: Vec<Client>,
    turn: AtomicUsize,
}

impl Clients {
    async fn of(server: &Server) -> Clients {
        let (mut deriva, mut ours) = (Vec::new(), Vec::new());
        for _ in 0..CONNECTIONS {
            deriva.push(Deriva(server.channel().await));
            ours.push(server.client().await);
        }
        Clients { deriva, ours, turn: AtomicUsize::new(0) }
    }

    fn next(&self) -> (&Deriva, &Client) {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % CONNECTIONS;
        (&self.deriva[turn], &self.ours[turn])
    }

    async fn put(&self, node: &Node) {
        let (deriva, ours) = self.next();
        let address = match (&node.kind, node.through) {
            (Kind::Leaf, Through::Deriva) => bytes_of(&deriva.leaf(node.value.clone()).await),
            (Kind::Leaf, Through::Ours) => ours.put(node.value.clone()).await.unwrap().address,
            (Kind::Recipe(theirs), Through::Deriva) => put_theirs(deriva, theirs).await,
            (Kind::Recipe(theirs), Through::Ours) => add(ours, theirs).await,
        };
        assert_eq!(address, node.address, "{node:?}");
    }

    /// What one of the services answers under an address.
    async fn get(&self, address: &Address, through: Through) -> Result<Vec<u8>, (Code, String)> {
        let (deriva, ours) = self.next();
        match through {
            Through::Deriva => {
                let got = deriva.get(address.as_bytes()).await;
                got.map_err(|status| (status.code(), status.message().to_owned()))
            }
            Through::Ours => {
                let got = async { ours.get(*address, 0..u64::MAX, None).await?.bytes().await }.await;
                got.map(|bytes| bytes.to_vec())
                    .map_err(|error| (error.code().unwrap_or(Code::Unknown), error.to_string()))
            }
        }
    }
}

fn bytes_of(address: &[u8]) -> Address {
    Address::from_bytes(address.try_into().expect("an address has 32 bytes"))
}

async fn put_theirs(deriva: &Deriva, theirs: &DerivaRecipe) -> Address {
    let request = PutRecipe {
        function_name: theirs.function.name.clone(),
        function_version: theirs.function.version.clone(),
        inputs: theirs.inputs.iter().map(|input| input.as_bytes().to_vec()).collect(),
        params: theirs.params.clone().into_iter().collect(),
    };
    let put: Data = deriva.call("PutRecipe", request).await.unwrap();
    bytes_of(&put.data)
}

async fn add(ours: &Client, theirs: &DerivaRecipe) -> Address {
    let params = theirs.params.iter().map(|(name, text)| (name.clone(), Value::Text(text.clone())));
    let inputs = theirs.inputs.iter().copied().map(DraftInput::Address).collect();
    let draft = Draft { function: theirs.function.clone(), inputs, params: params.collect() };
    ours.add_all(&[draft], UnknownFunction::Refuse).await.unwrap()[0].address
}

/// What a caller does.
#[derive(Clone, Copy)]
enum Step {
    Put(usize),
    /// The answer may be that it is not found yet.
    Get(usize, Through),
    Collect,
    Invalidate(usize),
}

/// Puts the nodes of a graph, with gets in between, and what else is asked for.
fn steps(graph: &Graph, rng: &mut Rng, disturbed: bool) -> Vec<Step> {
    let count = graph.nodes.len() as u64;
    let any = |rng: &mut Rng| rng.within(0..count) as usize;
    let mut steps = Vec::new();
    for node in graph.order(rng) {
        steps.push(Step::Put(node));
        while rng.percent(50) {
            let get = if rng.percent(60) { node } else { any(rng) };
            steps.push(Step::Get(get, graph.services.choose(rng)));
        }
        if disturbed && rng.percent(10) {
            steps.push(Step::Collect);
        }
        if disturbed && rng.percent(20) {
            steps.push(Step::Invalidate(any(rng)));
        }
    }
    steps
}

async fn take(step: Step, graph: &Graph, clients: &Clients) {
    match step {
        Step::Put(node) => clients.put(&graph.nodes[node]).await,
        Step::Get(place, through) => {
            let node = &graph.nodes[place];
            match clients.get(&node.address, through).await {
                Ok(value) => check(graph, place, through, &node.address, &value),
                // It, or something that it reads, was not put yet.
                Err((Code::NotFound, _)) => {}
                Err(error) => panic!("seed {}, node {place} over {through:?}: {error:?}", graph.seed),
            }
        }
        Step::Collect => {
            let (_, ours) = clients.next();
            let grace = Duration::from_secs(300);
            let done = ours.collect(&Collect { grace, ..Collect::default() }).await.unwrap();
            assert_eq!((done.blobs, done.derivations), (0, 0), "all is younger than the grace");
        }
        Step::Invalidate(place) => invalidate(&graph.nodes[place], clients).await,
    }
}

/// Forgets what a node came to, and everything made from it.
async fn invalidate(node: &Node, clients: &Clients) {
    let (deriva, ours) = clients.next();
    match node.through {
        Through::Deriva => {
            let addr = node.address.as_bytes().to_vec();
            let policy = "immediate".to_owned();
            let terms = Cascade { addr, policy, include_root: true, detail_addrs: false };
            deriva.call::<_, CascadeAnswer>("CascadeInvalidate", terms).await.unwrap();
        }
        Through::Ours => {
            let terms = Invalidate { reach: Reach::Dependents, ..Invalidate::default() };
            ours.invalidate(node.address, &terms).await.unwrap();
        }
    }
}

#[track_caller]
fn check(graph: &Graph, place: usize, through: Through, address: &Address, value: &[u8]) {
    let node = &graph.nodes[place];
    assert!(
        value == node.value,
        "seed {}: node {place} of {}, {address} over {through:?}, should be {} and is {}\n{:?}",
        graph.seed,
        graph.nodes.len(),
        shown(&node.value),
        shown(value),
        node.kind,
    );
}

/// The beginning of a value.
fn shown(value: &[u8]) -> String {
    value[..value.len().min(200)].escape_ascii().to_string()
}

/// Takes steps, many at a time.
async fn take_all(steps: &[Step], graph: &Graph, clients: &Clients) {
    let taken = stream::iter(steps).for_each_concurrent(IN_FLIGHT, |&step| take(step, graph, clients));
    soon(taken).await;
}

/// Once all is there, every node has its value where it was put.
async fn check_values(graph: &Graph, clients: &Clients) {
    let looks = graph.nodes.iter().enumerate().map(|(place, node)| (place, node.address, node.through));
    look(looks.collect(), graph, clients).await;
}

/// It also has it under each of its addresses, over both services.
async fn check_aliases(graph: &Graph, clients: &Clients) {
    let mut looks = Vec::new();
    for (place, node) in graph.nodes.iter().enumerate() {
        for address in node.addresses() {
            looks.extend([Through::Deriva, Through::Ours].map(|through| (place, address, through)));
        }
    }
    look(looks, graph, clients).await;
}

async fn look(looks: Vec<(usize, Address, Through)>, graph: &Graph, clients: &Clients) {
    let looked = stream::iter(looks).for_each_concurrent(IN_FLIGHT, |(place, address, through)| async move {
        match clients.get(&address, through).await {
            Ok(value) => check(graph, place, through, &address, &value),
            Err(error) => panic!(
                "seed {}: node {place} of {}, {address} over {through:?}: {error:?}\n{:?}",
                graph.seed,
                graph.nodes.len(),
                graph.nodes[place].kind
            ),
        }
    });
    soon(looked).await;
}

/// Bytes that are a recipe's encoding have Deriva's address of the recipe, whose place they do not take.
async fn shadow(graph: &Graph, clients: &Clients) {
    for node in &graph.nodes {
        if let (Kind::Recipe(theirs), Through::Deriva) = (&node.kind, node.through) {
            let put = clients.next().1.put(theirs.encode()).await.unwrap();
            assert_eq!(put.address, node.address);
        }
    }
}

async fn random_graphs(services: Services, third: u64) {
    let server = Server::start().await;
    let clients = Clients::of(&server).await;
    for seed in seeds(third) {
        let graph = Graph::random(seed, services);
        take_all(&steps(&graph, &mut Rng::new(!seed), false), &graph, &clients).await;
        check_values(&graph, &clients).await;
    }
    for seed in seeds(third) {
        let graph = Graph::random(seed, services);
        check_aliases(&graph, &clients).await;
        if seed % 10 == 0 {
            shadow(&graph, &clients).await;
            check_aliases(&graph, &clients).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_graphs_over_derivas_service() {
    random_graphs(Services::One(Through::Deriva), 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_graphs_over_our_service() {
    random_graphs(Services::One(Through::Ours), 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_graphs_over_both_services() {
    random_graphs(Services::Both, 2).await;
}

/// A recipe and its input are put at the same moment all along a chain, which no recipe survives that is bound to what
/// happens to be there.
async fn long_chains(services: Services) {
    let server = Server::start().await;
    let clients = Clients::of(&server).await;
    let graphs = [0, 1, 2].map(|seed| Graph::chain(seed, 1_000, services));
    for graph in &graphs {
        let steps: Vec<Step> = (0..graph.nodes.len()).map(Step::Put).collect();
        take_all(&steps, graph, &clients).await;
        check_values(graph, &clients).await;
    }
    for graph in &graphs {
        check_aliases(graph, &clients).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_chains_over_derivas_service() {
    long_chains(Services::One(Through::Deriva)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_chains_over_both_services() {
    long_chains(Services::Both).await;
}

/// One client puts a recipe, two ask for it until it is there.
async fn first_answers(through: Through) {
    let server = Server::start().await;
    let clients = Clients::of(&server).await;
    let leaf = bytes_of(&clients.next().0.leaf("all the same").await);
    for number in 0..1_000 {
        let params = [("prefix".to_owned(), format!("{number}: "))].into();
        let theirs =
            DerivaRecipe { function: FunctionId::new("prefix", "1.0.0"), inputs: vec![leaf], params };
        let poll = async || loop {
            match clients.get(&theirs.address(), through).await {
                Err((Code::NotFound, _)) => tokio::task::yield_now().await,
                first => break first.map(|value| value.escape_ascii().to_string()),
            }
        };
        let (_, one, other) = soon(join3(put_theirs(clients.next().0, &theirs), poll(), poll())).await;
        let expected = Ok(format!("{number}: all the same"));
        assert_eq!((&one, &other), (&expected, &expected), "recipe {number}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_answer_of_derivas_service_is_the_value() {
    first_answers(Through::Deriva).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_answer_of_our_service_is_the_value() {
    first_answers(Through::Ours).await;
}

/// A folder that is removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn of(test: &str) -> Folder {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = std::fs::remove_dir_all(&folder);
        Folder(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn start_on(folder: &Folder) -> Server {
    let executor = Executor::open(&folder.0, functions()).await.unwrap();
    Server::on(executor, Settings::default()).await
}

/// Shuts the server and its store down. Clients must be gone, for their connections keep it.
async fn shut_down(mut server: Server) {
    server.stop();
    server.served().await;
    server.executor.store().clone().close().await.unwrap();
}

/// The same on disk, while collections and invalidations run and the server is started again in between.
async fn disturbed_graphs(services: Services, third: u64, test: &str) {
    let folder = Folder::of(test);
    let mut server = start_on(&folder).await;
    let mut clients = Clients::of(&server).await;
    let mut done = Vec::new();
    for seed in seeds(third) {
        let graph = match seed % 8 {
            0 => Graph::chain(seed, 100, services),
            _ => Graph::random(seed, services),
        };
        let mut rng = Rng::new(!seed);
        let steps = steps(&graph, &mut rng, true);
        let half = rng.within(0..steps.len() as u64) as usize;
        for part in [&steps[..half], &steps[half..]] {
            take_all(part, &graph, &clients).await;
            if rng.percent(25) {
                drop(clients);
                shut_down(server).await;
                server = start_on(&folder).await;
                clients = Clients::of(&server).await;
            }
        }
        check_values(&graph, &clients).await;
        done.push(graph);
    }
    for graph in &done {
        check_aliases(graph, &clients).await;
    }
    drop(clients);
    shut_down(server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disturbed_graphs_over_derivas_service() {
    disturbed_graphs(Services::One(Through::Deriva), 0, "graphs_disturbed_deriva").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disturbed_graphs_over_our_service() {
    disturbed_graphs(Services::One(Through::Ours), 1, "graphs_disturbed_ours").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn disturbed_graphs_over_both_services() {
    disturbed_graphs(Services::Both, 2, "graphs_disturbed_both").await;
}
