//! A real server that has done what `anabranch demo` does: the example's feed, also from a store that stalls, a graph of
//! recipes, and a dataset. The models are scripted servers of this machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_recipe::{Executor, FileBytes, FilesOutside, RecipeFile, UnknownFunction};
use anabranch_server::PlanSettings;
use anabranch_testkit::{ModelCall, ModelFault, ModelFaultKind, ModelScript, ModelServer};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::datasets::{accepted, submit, with_datasets};
use crate::plans::Shop;
use crate::support::{TempFolder, functions};

/// How long reads take, by the prefix of their key, as `anabranch demo` has it.
const DELAYS: [(&str, u64); 4] = [("follow:", 16), ("recommendation:", 22), ("media:", 20), ("post:", 26)];
/// The reads of the second store that hang, after the first one of each.
const STALLED: [&str; 2] = ["follow:", "recommendation:"];
const STALLED_ENDPOINT: &str = r#"
[[endpoint]]
endpoint_id = "ep_0002"
name = "stalled_store"
kind = "redis"
resolver = { type = "static", host = "127.0.0.1", port = 6379 }
policy = { max_inflight = 64, connect_timeout_ms = 200, request_timeout_ms = 100 }
"#;

/// Money per million tokens, so that the dataset has a cost.
const PRICES: &str =
    "\nprices:\n  writer: {input: 0.15, output: 0.60}\n  judge: {input: 3.00, output: 15.00}\n";
/// A call of a model takes so long, and at most so much longer.
const LATENCY: Duration = Duration::from_millis(8);
const JITTER: Duration = Duration::from_millis(12);
/// More calls at a time are refused, so that there is a limit to find.
const CALLS_MOST: usize = 24;

/// A ticket and its answer per issue of the example.
const TICKETS: [(&str, &str, &str); 8] = [
    (
        "charged twice",
        "My card was charged twice. Please send one of the payments back.",
        "Thank you for telling us. The second payment is on its way back and arrives within three days.",
    ),
    (
        "wrong amount",
        "The invoice says 59.90, but the page said 49.90 when I paid. Which one is right?",
        "The lower price is right. We have refunded the difference of 10.00.",
    ),
    (
        "refund is late",
        "I sent the shoes back two weeks ago and still wait for my refund.",
        "The parcel was registered late, for which we apologise. The refund was sent today.",
    ),
    (
        "parcel is lost",
        "Tracking has not moved for nine days. I think that my parcel is lost.",
        "The carrier has lost it. A new parcel leaves our warehouse this afternoon, at no cost.",
    ),
    (
        "damaged item",
        "The lamp arrived with a cracked shade. The box looked fine.",
        "We are sorry about the lamp. A new shade is on its way; keep the old one.",
    ),
    (
        "wrong address",
        "I moved last month and forgot to change my address. Can you redirect the parcel?",
        "It has not left yet. We have changed the address of this order and of your account.",
    ),
    (
        "cannot log in",
        "The page says that my password is wrong, but I changed it only yesterday.",
        "Your account was locked after five attempts. It is open again; please reset the password.",
    ),
    (
        "change of e-mail",
        "Please change my e-mail address to the one that I write from.",
        "Done. We sent a link to the new address; open it within a day to confirm.",
    ),
];

/// The most runs that are tried for a picture.
const TRIES: usize = 20;

pub(super) struct Demo {
    pub(super) shop: Shop,
    executor: Executor,
    _models: ModelServer,
    _data: TempFolder,
    /// Ended last.
    pub(super) runtime: Runtime,
}

fn example(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(path)
}

fn text(path: &str) -> String {
    std::fs::read_to_string(example(path)).unwrap()
}

/// The project of the example with its plans, and the feed once more on the store that stalls.
fn project() -> TempFolder {
    let folder = TempFolder::new();
    let write = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    };
    let endpoint = |name: &str, does_stall: bool| {
        let faults = DELAYS.map(|(prefix, delay)| {
            let stall = if does_stall && STALLED.contains(&prefix) { ", stall_after = 1" } else { "" };
            format!("{{ prefix = \"{prefix}\", delay_ms = {delay}{stall} }}")
        });
        let faults = faults.join(", ");
        format!("[plan.endpoints.{name}]\nsource = \"memory\"\ndata = [\"data.json\"]\nfaults = [{faults}]\n")
    };
    let endpoints = endpoint("redis_default", false) + &endpoint("stalled_store", true);
    write("anabranch.toml", &format!("[plan]\nenv = \"dev\"\n{endpoints}"));
    write("data.json", &text("plans/data.json"));
    for name in ["keys", "params", "capabilities", "validation"] {
        write(&format!("registry/{name}.toml"), &text(&format!("plans/registry/{name}.toml")));
    }
    write("registry/endpoints.dev.toml", &(text("plans/registry/endpoints.dev.toml") + STALLED_ENDPOINT));
    for name in ["feed", "new_faces", "trending"] {
        write(&format!("plans/{name}.plan.json"), &text(&format!("plans/plans/{name}.plan.json")));
    }
    let stalled = text("plans/plans/feed.plan.json").replace("\"ep_0001\"", "\"ep_0002\"");
    let stalled = stalled.replace("\"plan_name\": \"feed\"", "\"plan_name\": \"feed_stalled\"");
    write("plans/feed_stalled.plan.json", &stalled);
    folder
}

/// The reply of a model, by the issue in the prompt.
fn reply(call: &ModelCall) -> String {
    let prompt = call.prompt();
    let (_, ticket, answer) = TICKETS
        .iter()
        .find(|(issue, ticket, _)| prompt.contains(issue) || prompt.contains(ticket))
        .expect("every prompt has an issue, or the ticket about it");
    if prompt.starts_with("Judge") {
        let score = |option: &str| json!({"reasoning": "It names the next step.", "score": option});
        return json!({"helpfulness": score("3"), "tone": score("warm")}).to_string();
    }
    if prompt.starts_with("Answer") {
        return (*answer).to_owned();
    }
    // No two tickets are equal.
    static ORDERS: AtomicU64 = AtomicU64::new(8_000);
    format!("Order {}. {ticket}", ORDERS.fetch_add(1, Ordering::Relaxed))
}

/// A model server, and the file that names it.
fn models(data: &Path) -> (ModelServer, PathBuf) {
    // One that the client must not repeat, so that a few cells fail.
    let refused = ModelFault { percent: 1, times: None, kind: ModelFaultKind::Status(400, None) };
    let server = ModelServer::start(ModelScript {
        latency: LATENCY,
        jitter: JITTER,
        limit: Some(CALLS_MOST),
        faults: vec![refused],
        reply: Some(Arc::new(reply)),
        ..ModelScript::default()
    });
    let file = data.join("models.yaml");
    let model = |alias: &str, model: &str| {
        format!(
            "{{alias: {alias}, model: {model}, provider: here, inference_parameters: {{max_parallel_requests: 64}}}}"
        )
    };
    let text = format!(
        "model_configs: [{}, {}]\nproviders: [{{name: here, endpoint: '{}', api_key: some-key}}]\n",
        model("writer", "small"),
        model("judge", "large"),
        server.endpoint()
    );
    std::fs::write(&file, text).unwrap();
    (server, file)
}

impl Demo {
    /// The server before its work.
    pub(super) fn start() -> Demo {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let data = TempFolder::new();
        let (models, models_file) = models(data.path());
        let folder = project();
        let settings =
            PlanSettings { watch_every: None, ..PlanSettings::new(folder.path().join("anabranch.toml")) };
        let executor = Executor::in_memory(functions()).unwrap();
        let shop = runtime.block_on(Shop::serving(folder, settings, executor.clone(), |service| {
            with_datasets(service, &executor, data.path(), |settings| settings.models = Some(models_file))
        }));
        Demo { shop, executor, _models: models, _data: data, runtime }
    }

    pub(super) fn url(&self) -> &str {
        &self.shop.http.server.url
    }

    /// Runs a plan for a user, however long it takes; the id of its run, which has a timeline.
    pub(super) fn run(&self, plan: &str, user: u64) -> String {
        self.try_run(plan, user, "&timeout=60s").expect("a minute is enough")
    }

    /// The run, if the plan answered in its time.
    fn try_run(&self, plan: &str, user: u64, timeout: &str) -> Option<String> {
        let path = format!("/v1/plans/{plan}/run?trace=true{timeout}");
        let answer =
            self.runtime.block_on(self.shop.http.post(&path, json!({ "user_id": user }).to_string()));
        (answer.status == 200).then(|| answer.header("x-run-id").to_owned())
    }

    /// Adds the recipes of the example, with their names.
    pub(super) fn add_recipes(&self) {
        let path = example("recipes/page.toml");
        let file =
            RecipeFile::read(&path, &functions(), UnknownFunction::Refuse, FilesOutside::Refuse).unwrap();
        let store = self.executor.store();
        self.runtime.block_on(async {
            let mut blobs = Vec::new();
            for blob in &file.blobs {
                let bytes = match &blob.bytes {
                    FileBytes::Here(bytes) => bytes.clone(),
                    FileBytes::At(file) => std::fs::read(file.path()).unwrap().into(),
                    FileBytes::Folder(_) => unreachable!("the example has no folders"),
                };
                let address = self.executor.put(bytes).await.unwrap().address;
                store.name(&blob.name, Some(address)).await.unwrap();
                blobs.push(address);
            }
            let drafts = file.drafts(&blobs, &BTreeMap::new(), &BTreeMap::new());
            let added = self.executor.add_all(&drafts, UnknownFunction::Refuse).await.unwrap();
            for (recipe, added) in file.recipes.iter().zip(added) {
                let name = recipe.reference.as_deref().unwrap_or(&recipe.name);
                store.name(name, Some(added.address)).await.unwrap();
            }
        });
    }

    /// Adds recipes that take a while; the last of them.
    fn add_archive(&self) -> String {
        let word = self.runtime.block_on(self.shop.http.blob("anabranch "));
        let recipes = json!([
            {"function": "repeat/1.0.0", "inputs": [word], "params": {"count": 600_000}},
            {"function": "gzip_compress/1.0.0", "inputs": [0]},
            {"function": "sha256/1.0.0", "inputs": [1]},
            {"function": "hex_encode/1.0.0", "inputs": [2]},
        ]);
        let added = self.runtime.block_on(self.shop.http.post("/v1/recipes", recipes.to_string())).json();
        let last = added[3]["address"].as_str().unwrap().to_owned();
        let named = self.executor.store().name("archive", Some(last.parse().unwrap()));
        self.runtime.block_on(named).unwrap();
        "archive".to_owned()
    }

    /// Gets the value of a recipe.
    pub(super) fn get(&self, name: &str) {
        let answer = self.runtime.block_on(self.shop.http.get(&format!("/v1/recipes/{name}/value"), &[]));
        assert_eq!(answer.status, 200, "{:?}", answer.body);
    }

    /// Submits the dataset of the example; its id.
    pub(super) fn submit(&self, rows: u64) -> String {
        let config = text("datasets/support_tickets.yaml") + PRICES;
        let order = json!({ "config": config, "rows": rows, "seed": 1, "name": "support_tickets" });
        accepted(&self.runtime.block_on(submit(&self.shop.http, &order)))
    }

    /// Everything but the dataset; the id of a run with reads that hang.
    pub(super) fn work(&self) -> String {
        (1..=30).for_each(|user| drop(self.run("feed", user)));
        ["new_faces", "trending"].into_iter().for_each(|plan| drop(self.run(plan, 7)));
        self.add_recipes();
        self.get("page");
        self.get("page");
        self.get(&self.add_archive());
        self.run("feed_stalled", 7);
        // With the plan's own deadline, which a busy machine may miss.
        let in_time = (0..TRIES).find_map(|_| self.try_run("feed_stalled", 7, ""));
        in_time.unwrap_or_else(|| self.run("feed_stalled", 7))
    }
}
