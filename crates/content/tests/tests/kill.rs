//! Real processes, killed at random points: what they had acknowledged is there.
//!
//! The test starts itself again as a child that works on a store and says what was acknowledged; it kills the child
//! after a random number of those, opens the store, and looks.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anabranch_content::{Address, Class, Collect, Config, Context, Cost, NewMemo, Store};
use anabranch_testkit::Rng;
use bytes::Bytes;

use crate::kit::{description, put_derivation};

const CONTEXT: Context<'static> = Context("anabranch tests 2026 killed");

/// Set in the child: its folder, its seed, and whether it collects meanwhile.
const CHILD: &str = "ANABRANCH_KILL_CHILD";

/// How many kills; more with the variable set.
fn kills() -> u64 {
    std::env::var("ANABRANCH_KILLS").map_or(200, |kills| kills.parse().expect("ANABRANCH_KILLS is a number"))
}

#[test]
fn what_was_acknowledged_survives_kills() {
    let folder = Folder::new();
    let mut rng = Rng::new(2026);
    let mut model = Model::default();
    for round in 0..kills() {
        let collects = rng.percent(30);
        let mut child = start(&folder.0, round, collects);
        let after = rng.within(1..60);
        let said = BufReader::new(child.stdout.take().unwrap());
        let mut lines = said.lines();
        for line in lines.by_ref().take(after as usize) {
            model.note(&line.unwrap());
        }
        child.kill().unwrap();
        // What it said before it died counts, as far as whole lines of it arrived.
        for line in lines.map_while(Result::ok).filter(|line| line.ends_with('.')) {
            model.note(&line);
        }
        assert!(!child.wait().unwrap().success());
        if collects {
            model.loose.clear();
        }
        model.check(&folder.0, round);
    }
}

/// Does nothing but in the child.
#[test]
fn child() {
    let Ok(terms) = std::env::var(CHILD) else { return };
    let mut terms = terms.splitn(3, ' ');
    let (seed, collects) = (terms.next().unwrap().parse().unwrap(), terms.next().unwrap() == "true");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(work(Path::new(terms.next().unwrap()), seed, collects));
}

fn start(folder: &Path, seed: u64, collects: bool) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::child", "--nocapture", "--quiet"])
        .env(CHILD, format!("{seed} {collects} {}", folder.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn config() -> Config {
    // Small, so that files, segments and the index all change often.
    Config {
        packed_most: 2000,
        segment_bytes: 64 << 10,
        recent_bytes: 16 << 10,
        cache_bytes: 0,
        ..Config::default()
    }
}

/// Puts, remembers and pins until it is killed.
async fn work(folder: &Path, seed: u64, collects: bool) {
    let store = Store::open(folder, config()).unwrap();
    let callers = (0..4).map(|caller| {
        let store = store.clone();
        async move {
            for step in 0.. {
                act(&store, seed * 1_000_000 + caller * 100_000 + step).await;
            }
        }
    });
    let collector = async {
        loop {
            store.collect(Collect { grace: std::time::Duration::ZERO, ..Collect::default() }).await.unwrap();
            store.clean().await.unwrap();
        }
    };
    match collects {
        true => _ = tokio::join!(futures_util::future::join_all(callers), collector),
        false => _ = futures_util::future::join_all(callers).await,
    }
}

async fn act(store: &Store, seed: u64) {
    let bytes = bytes(seed);
    let mut lease = store.lease();
    let address = Address::of(&bytes);
    lease.hold(address).await.unwrap();
    store.put(bytes.clone(), Class::Acknowledged).await.unwrap();
    match seed % 4 {
        0 => say("loose", seed),
        1 => {
            store.pin(&address).await.unwrap();
            say("pinned", seed);
        }
        2 => {
            store.name(&format!("{}", seed % 20), Some(address)).await.unwrap();
            say("loose", seed);
        }
        _ => {
            let derivation =
                put_derivation(store, CONTEXT, description(seed.to_le_bytes(), &[])).await.unwrap();
            let made = NewMemo {
                derivation,
                output: address,
                size: bytes.len() as u64,
                cost: Cost::default(),
                inputs: &[],
            };
            store.pin(&derivation).await.unwrap();
            store.remember(made, Class::Acknowledged).await.unwrap();
            say("made", seed);
        }
    }
}

/// One write, so that lines arrive whole or not at all.
fn say(what: &str, seed: u64) {
    let line = format!("{what} {seed} .\n");
    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
}

fn bytes(seed: u64) -> Bytes {
    let mut rng = Rng::new(seed);
    let len = if rng.percent(20) { rng.within(2001..20_000) } else { rng.within(0..2000) };
    (0..len.div_ceil(8)).flat_map(|_| rng.bits().to_le_bytes()).collect::<Vec<_>>().into()
}

/// What was acknowledged.
#[derive(Default)]
struct Model {
    /// There unless somebody collects.
    loose: BTreeSet<u64>,
    pinned: BTreeSet<u64>,
    made: BTreeSet<u64>,
}

impl Model {
    fn note(&mut self, line: &str) {
        // The test harness says a few things too.
        let mut words = line.split(' ');
        let (Some(what), Some(Ok(seed))) = (words.next(), words.next().map(str::parse)) else { return };
        match what {
            "loose" => self.loose.insert(seed),
            "pinned" => self.pinned.insert(seed),
            "made" => self.made.insert(seed),
            _ => false,
        };
    }

    fn check(&self, folder: &Path, round: u64) {
        let store = Store::open(folder, config()).unwrap();
        let opened = store.opened();
        assert!(
            opened.rebuilt.is_none() && opened.unreadable.iter().all(|it| it.torn),
            "round {round}: {opened:?}"
        );
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        // All of this child's and the last ones', and every tenth round all there is.
        let due = |seed: u64| seed / 1_000_000 + 3 > round || round % 10 == 9;
        runtime.block_on(async {
            for &seed in self.loose.iter().chain(&self.pinned).chain(&self.made).filter(|seed| due(**seed)) {
                let there = store.get(&Address::of(&bytes(seed))).await.unwrap();
                assert_eq!(there, Some(bytes(seed)), "round {round}: seed {seed}");
            }
            for &seed in self.made.iter().filter(|seed| due(**seed)) {
                let derivation = Address::derive(CONTEXT, &description(seed.to_le_bytes(), &[]));
                let memo = store.recall(&derivation).await.unwrap().expect("what was remembered");
                assert_eq!(memo.output, Address::of(&bytes(seed)), "round {round}: seed {seed}");
                assert!(store.derivation(&derivation).await.unwrap().is_some());
            }
            store.close().await.unwrap();
        });
    }
}

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        Folder(std::env::temp_dir().join(format!("anabranch-kill-{}", std::process::id())))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
