//! A server that is killed again and again under sixty-four clients: every answer is right.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use anabranch_content::{Address, Collect};
use anabranch_recipe::{
    Draft, DraftInput, Event, FunctionId, Invalidate, Notice, Params, Reach, UnknownFunction,
};
use anabranch_server::{Client, ClientError};
use anabranch_testkit::Rng;
use futures_util::future::{join_all, join4};
use tokio::sync::{Notify, watch};

use crate::recipe::empty;
use crate::recipe_served::Server;

const RECIPES: usize = 1_000;
const CLIENTS: usize = 64;
const MEDDLERS: usize = 3;
/// How often the server is killed, and after how many answers each time.
const LIVES: usize = 5;
const ANSWERS: usize = 3_000;

/// What the clients share.
struct Soak {
    /// Recipes, with what they come to.
    menu: Vec<(Address, String)>,
    /// The server of the current life; nothing at the end.
    server: watch::Receiver<Option<Client>>,
    answers: Cell<usize>,
    /// Rings when there were enough of them.
    enough: Notify,
    /// How often each was computed, as the servers told, and forgotten, as they were told.
    computed: RefCell<HashMap<Address, usize>>,
    forgotten: RefCell<HashMap<Address, usize>>,
}

/// Recipes over leaves and over each other.
fn menu(rng: &mut Rng) -> (Vec<String>, Vec<Draft>, Vec<String>) {
    let leaves: Vec<String> = (0..RECIPES / 10).map(|number| format!("leaf {number};")).collect();
    let mut drafts: Vec<Draft> = Vec::new();
    let mut values: Vec<String> = Vec::new();
    while drafts.len() < RECIPES {
        let (function, count) = *rng.choose(&[("identity", 1), ("concat", 2), ("concat", 3), ("repeat", 1)]);
        let mut params = Params::new();
        if function == "repeat" {
            params.insert("count".to_owned(), anabranch_recipe::Value::Int(2));
        }
        let chosen: Vec<usize> =
            (0..count).map(|_| rng.within(0..(leaves.len() + drafts.len()) as u64) as usize).collect();
        let text =
            |place: &usize| leaves.get(*place).unwrap_or_else(|| &values[place - leaves.len()]).clone();
        let input = |place: &usize| match leaves.get(*place) {
            Some(leaf) => DraftInput::Address(Address::of(leaf.as_bytes())),
            None => DraftInput::Earlier(place - leaves.len()),
        };
        let mut value: String = chosen.iter().map(text).collect();
        if function == "repeat" {
            value = value.repeat(2);
        }
        if value.len() <= 4_000 {
            let inputs = chosen.iter().map(input).collect();
            drafts.push(Draft { function: FunctionId::new(function, "1.0.0"), inputs, params });
            values.push(value);
        }
    }
    (leaves, drafts, values)
}

async fn set_up(client: &Client, rng: &mut Rng) -> Vec<(Address, String)> {
    let (leaves, drafts, values) = menu(rng);
    for leaf in leaves {
        client.put(leaf).await.unwrap();
    }
    let added = client.add_all(&drafts, UnknownFunction::Refuse).await.unwrap();
    let addresses: Vec<Address> = added.iter().map(|added| added.address).collect();
    // Holds what it takes to derive them all, and none of their values.
    let inputs = addresses.iter().copied().map(DraftInput::Address).collect();
    let all = Draft { function: FunctionId::new("concat", "1.0.0"), inputs, params: Params::new() };
    let all = client.add_all(&[all], UnknownFunction::Refuse).await.unwrap();
    client.pin(all[0].address).await.unwrap();
    addresses.into_iter().zip(values).collect()
}

impl Soak {
    /// The server of the next life, once this one does not answer; nothing at the end. A server that was only too busy
    /// to answer lives on: after a while it is asked again.
    #[allow(clippy::disallowed_methods, reason = "real sockets need a real bound")]
    async fn next(&self, life: &mut watch::Receiver<Option<Client>>) -> Option<Client> {
        // Whoever sends outlives all who wait.
        let _ = tokio::time::timeout(Duration::from_secs(10), life.changed()).await;
        life.borrow_and_update().clone()
    }

    async fn client(&self, mut rng: Rng) {
        let mut life = self.server.clone();
        let mut server = life.borrow_and_update().clone();
        while let Some(client) = &server {
            let (address, value) = rng.choose(&self.menu);
            let polls = if rng.percent(15) { rng.within(0..4) } else { u64::MAX };
            match for_a_while(ask(client, *address), polls).await {
                Some(Ok(got)) => {
                    assert_eq!(got, *value);
                    self.answers.set(self.answers.get() + 1);
                    if self.answers.get().is_multiple_of(ANSWERS) {
                        self.enough.notify_one();
                    }
                }
                Some(Err(error)) => {
                    assert!(is_down(&error), "{error}");
                    server = self.next(&mut life).await;
                }
                None => {}
            }
        }
    }

    async fn meddler(&self, mut rng: Rng) {
        let mut life = self.server.clone();
        let mut server = life.borrow_and_update().clone();
        let mut puts: Vec<(String, String)> = Vec::new();
        while let Some(client) = &server {
            match self.meddle(client, &mut rng, &mut puts).await {
                Ok(forgotten) => {
                    let mut all = self.forgotten.borrow_mut();
                    forgotten.into_iter().for_each(|address| *all.entry(address).or_default() += 1);
                }
                Err(error) => {
                    assert!(is_down(&error), "{error}");
                    server = self.next(&mut life).await;
                    if let Some(client) = &server {
                        check_puts(client, &puts).await;
                    }
                }
            }
        }
    }

    async fn meddle(
        &self,
        client: &Client,
        rng: &mut Rng,
        puts: &mut Vec<(String, String)>,
    ) -> Result<Vec<Address>, ClientError> {
        let address = rng.choose(&self.menu).0;
        let detail = 10_000;
        match rng.within(0..4) {
            0 => {
                let terms = Invalidate { detail, ..Invalidate::default() };
                Ok(client.invalidate(address, &terms).await?.addresses)
            }
            1 => {
                let terms = Invalidate { reach: Reach::Dependents, detail, ..Invalidate::default() };
                Ok(client.invalidate(address, &terms).await?.addresses)
            }
            2 => {
                let terms = Collect { grace: Duration::ZERO, detail, ..Collect::default() };
                Ok(client.collect(&terms).await?.removed)
            }
            _ => {
                let (name, text) = (format!("put {:x}", rng.bits()), format!("text {}", rng.bits()));
                client.set_ref(&name, Some(Address::of(text.as_bytes()))).await?;
                client.put(text.clone()).await?;
                puts.push((name, text));
                Ok(Vec::new())
            }
        }
    }

    async fn listen(&self) {
        let mut life = self.server.clone();
        let mut server = life.borrow_and_update().clone();
        while let Some(client) = &server {
            if let Ok(mut events) = client.events().await {
                while let Some(Ok(heard)) = events.next().await {
                    match heard {
                        Notice::Event(Event::Computed { address, .. }) => {
                            *self.computed.borrow_mut().entry(address).or_default() += 1;
                        }
                        Notice::Event(_) => {}
                        // On a machine too busy to listen, the count is too low.
                        Notice::Lost(_) => {}
                    }
                }
            }
            server = self.next(&mut life).await;
        }
    }
}

async fn ask(client: &Client, address: Address) -> Result<String, ClientError> {
    let bytes = client.get(address, 0..u64::MAX, None).await?.bytes().await?;
    Ok(String::from_utf8(bytes.to_vec()).unwrap())
}

/// What was acknowledged is there after a crash.
async fn check_puts(client: &Client, puts: &[(String, String)]) {
    for (name, text) in puts {
        let Ok(address) = client.find(name).await.inspect_err(|error| assert!(is_down(error), "{error}"))
        else {
            return;
        };
        match ask(client, address).await {
            Ok(got) => assert_eq!(got, *text),
            Err(error) => return assert!(is_down(&error), "{error}"),
        }
    }
}

/// Whether a call failed because the server is gone.
fn is_down(error: &ClientError) -> bool {
    use anabranch_server::Code;
    matches!(error, ClientError::Connect { .. })
        || matches!(error.code(), Some(Code::Unavailable | Code::Unknown | Code::Cancelled | Code::Internal))
            && !error.to_string().contains("went away")
}

/// Polls a future so many times at most; then it is dropped.
async fn for_a_while<T>(work: impl Future<Output = T>, polls: u64) -> Option<T> {
    let mut work = pin!(work);
    let mut left = polls;
    std::future::poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending if left == 0 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}

#[test]
fn a_server_that_is_killed_answers_rightly() {
    let folder = empty("recipe_soak");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut rng = Rng::new(64);
    runtime.block_on(async {
        let process = Server::begin_with(&folder, &["--anonymous", "admin"]);
        let first = Client::connect(&process.url).await.unwrap();
        let menu = set_up(&first, &mut rng).await;
        let (lives, server) = watch::channel(Some(first));
        let (computed, forgotten) = Default::default();
        let soak = Soak { menu, server, answers: Cell::new(0), enough: Notify::new(), computed, forgotten };
        let seeds: Vec<Rng> = (0..CLIENTS + MEDDLERS).map(|_| Rng::new(rng.bits())).collect();
        let clients = join_all(seeds[..CLIENTS].iter().map(|rng| soak.client(rng.clone())));
        let meddlers = join_all(seeds[CLIENTS..].iter().map(|rng| soak.meddler(rng.clone())));
        let killer = async {
            let mut process = process;
            for life in 1..=LIVES {
                soak.enough.notified().await;
                process.end(rustix::process::Signal::KILL);
                process = Server::begin_with(&folder, &["--anonymous", "admin"]);
                let client = Client::connect(&process.url).await.unwrap();
                lives.send_replace((life < LIVES).then_some(client));
            }
            process
        };
        let (_, _, (), process) = join4(clients, meddlers, soak.listen(), killer).await;
        let (computed, forgotten) = (soak.computed.take(), soak.forgotten.take());
        assert!(!computed.is_empty());
        for (address, computed) in &computed {
            // With each life may go a memo not yet written, and what each meddler was about to be told.
            let may = 1 + forgotten.get(address).copied().unwrap_or(0) + LIVES * (1 + MEDDLERS);
            assert!(*computed <= may, "{address} was computed {computed} times, which may be {may}");
        }
        let client = Client::connect(&process.url).await.unwrap();
        for (address, value) in &soak.menu {
            assert_eq!(ask(&client, *address).await.unwrap(), *value);
        }
    });
    std::fs::remove_dir_all(&folder).unwrap();
}
