//! Plans over HTTP: answers, their forms, failures, and what is kept of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_plan::{Engine, Project, Request, Setup};
use anabranch_recipe::Executor;
use anabranch_server::{PlanSettings, Plans, Service, Settings};
use arrow_array::Array as _;
use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float64Type, Int64Type};
use hyper::Method;
use serde_json::{Value, json};

use crate::http::{Http, JSON};
use crate::support::{Server, TempFolder, TestClock, beside, functions, timed_executor, until};

/// A project in a folder of its own, and a server of its plans.
pub(crate) struct Shop {
    pub(crate) folder: TempFolder,
    pub(crate) http: Http,
    pub(crate) plans: Plans,
}

const KEYS: &str = r#"
key = [
  { key_id = 1, name = "id", type = "int", nullable = false, allow_write = false },
  { key_id = 2, name = "price", type = "float", nullable = true },
  { key_id = 3, name = "title", type = "string", nullable = true },
  { key_id = 4, name = "stock", type = "int", nullable = true },
  { key_id = 5, name = "new", type = "bool", nullable = true },
]"#;
const PARAMS: &str = r#"
[[param]]
param_id = 1
name = "budget"
type = "float"
nullable = false
default = 100.0

[[param]]
param_id = 2
name = "title_like"
type = "string"
nullable = true
"#;
const ENDPOINTS: &str = r#"
[[endpoint]]
endpoint_id = "ep_0001"
name = "catalog"
kind = "redis"
resolver = { type = "static", host = "127.0.0.1", port = 6379 }
policy = {}
"#;
/// Keys that begin with `slow:` never answer, and those that begin with `broken:` fail.
pub(crate) const PROJECT: &str = r#"
[plan]
env = "dev"
test_ops = true

[plan.endpoints.catalog]
source = "memory"
data = ["data.json"]
faults = [{ prefix = "slow:", stall_after = 0 }, { prefix = "broken:", fail_every = 1 }]
"#;
const DATA: &str = r#"{"hashes": {
  "product:101": {"price": "25.0", "title": "kettle", "stock": "3", "new": "true"},
  "product:102": {"price": "40.0", "title": "tea \"pot\"", "stock": "0"},
  "product:103": {"price": "8.5", "title": "bowl"}
}}"#;

/// A plan that looks up candidates under this key, with these settings of the node, and sorts them.
pub(crate) fn plan(name: &str, key: &str, guard: &str) -> String {
    let fields = r#"["price", "title", "stock", "new"]"#;
    format!(
        r#"{{"schema_version": 1, "plan_name": "{name}", "outputs": ["sorted"], "nodes": [
          {{"node_id": "brought", "op": "core::candidates", "inputs": [], "params": {{"columns": []}}}},
          {{"node_id": "items", "op": "core::lookup", "inputs": ["brought"], {guard}
            "params": {{"endpoint": "catalog", "key": "{key}:{{id}}", "fields": {fields}}}}},
          {{"node_id": "sorted", "op": "core::sort", "inputs": ["items"], "params": {{"by": "price"}}}}]}}"#
    )
}

impl Shop {
    pub(crate) async fn start() -> Shop {
        Shop::with(|_| {}).await
    }

    pub(crate) async fn with(set: impl FnOnce(&mut PlanSettings)) -> Shop {
        Shop::of(PROJECT, set).await
    }

    /// A shop with another project file.
    pub(crate) async fn of(project: &str, set: impl FnOnce(&mut PlanSettings)) -> Shop {
        let folder = Shop::files(project);
        let mut settings = Shop::settings(&folder);
        set(&mut settings);
        Shop::serving(folder, settings, Executor::in_memory(functions()).unwrap(), |service| service).await
    }

    pub(crate) fn settings(folder: &TempFolder) -> PlanSettings {
        PlanSettings { watch_every: None, ..PlanSettings::new(folder.path().join("anabranch.toml")) }
    }

    /// The files of a shop.
    pub(crate) fn files(project: &str) -> TempFolder {
        let folder = TempFolder::new();
        let path = folder.path();
        for (file, text) in [
            ("registry/keys.toml", KEYS),
            ("registry/params.toml", PARAMS),
            ("registry/endpoints.dev.toml", ENDPOINTS),
            ("anabranch.toml", project),
            ("data.json", DATA),
            ("plans/rank.plan.json", &plan("rank", "product", "")),
            ("plans/patient.plan.json", &plan("patient", "slow", "")),
            ("plans/broken.plan.json", &plan("broken", "broken", "")),
            ("plans/guarded.plan.json", &plan("guarded", "slow", r#""timeout_ms": 20, "fallback": "pass","#)),
        ] {
            let file = path.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        folder
    }

    /// A shop on an executor, whose service is set up further.
    pub(crate) async fn serving(
        folder: TempFolder,
        settings: PlanSettings,
        executor: Executor,
        set_up: impl FnOnce(Service) -> Service,
    ) -> Shop {
        Shop::bounded(folder, settings, Settings::default(), executor, set_up).await
    }

    /// The same with other bounds.
    pub(crate) async fn bounded(
        folder: TempFolder,
        settings: PlanSettings,
        bounds: Settings,
        executor: Executor,
        set_up: impl FnOnce(Service) -> Service,
    ) -> Shop {
        let plans = Plans::load(settings, executor.engine().clone()).await.unwrap();
        let service = Service::new(executor.clone(), bounds).with_plans(plans.clone());
        let service = set_up(service);
        let http = Http::on(Server::serving(executor, service).await);
        Shop { folder, http, plans }
    }

    /// A shop whose time stands still until the test advances the clock.
    pub(crate) async fn on_test_time(project: &str, clock: &Arc<TestClock>) -> Shop {
        let folder = Shop::files(project);
        let settings = Shop::settings(&folder);
        Shop::serving(folder, settings, timed_executor(clock), |service| service).await
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join("plans").join(name), text).unwrap();
    }

    pub(crate) async fn run(&self, plan: &str, request: &Value) -> crate::http::Answer {
        self.http.post(&format!("/v1/plans/{plan}/run"), request.to_string()).await
    }

    pub(crate) async fn describe(&self, plan: &str) -> Value {
        self.http.get(&format!("/v1/plans/{plan}"), &[]).await.json()
    }
}

/// At a low rate a trace is due with every request; captures are taken nevertheless.
#[tokio::test]
async fn requests_are_captured_also_when_a_trace_is_due() {
    let project = format!("{PROJECT}\n[plan.captures]\nstore = \"captures\"\none_in = 1\nper_second = 100\n");
    let shop = Shop::of(&project, |_| {}).await;
    assert_eq!(shop.run("rank", &request()).await.status, 200);
    let written = "anabranch_plan_captures_total{became=\"written\"} 1\n";
    until(|| shop.plans.metrics().contains(written)).await;
}

/// Neither answers nor details of runs tell the password of a source, also if the project file is wrong.
#[tokio::test]
async fn passwords_of_sources_are_not_told() {
    let project = |url: &str| {
        format!("[plan]\nenv = \"dev\"\n\n[plan.endpoints.catalog]\nsource = \"redis\"\nurl = \"{url}\"\n")
    };
    // Nobody listens there.
    let shop = Shop::of(&project("redis://reader:s3cr3t-word@127.0.0.1:1/0"), |_| {}).await;
    let traced = shop.http.post("/v1/plans/rank/run?trace=true", request().to_string()).await;
    assert_eq!(traced.status, 502, "{:?}", traced.body);
    let run =
        shop.http.get("/v1/runs?kind=plan", &[]).await.json()["runs"][0]["id"].as_str().unwrap().to_owned();
    let wrong = project("redis://reader:s3cr3t-word@127.0.0.1:no/0");
    std::fs::write(shop.folder.path().join("anabranch.toml"), wrong).unwrap();
    let reload = shop.http.post("/v1/plans/reload", "").await;
    assert_eq!(reload.status, 409, "{:?}", reload.body);
    let mut answers = vec![traced, reload];
    for path in ["/v1/plans", "/v1/plans/rank", "/v1/config", "/v1/status", "/metrics", "/v1/runs"] {
        answers.push(shop.http.get(path, &[]).await);
    }
    for part in ["", "/events", "/timeline.json", "/timeline.html"] {
        answers.push(shop.http.get(&format!("/v1/runs/{run}{part}"), &[]).await);
    }
    for answer in answers {
        let text = String::from_utf8_lossy(&answer.body);
        assert!(!text.contains("s3cr3t-word"), "{text}");
    }
}

pub(crate) fn request() -> Value {
    json!({"user_id": 7, "request_id": "r1", "candidates": [101, 102, 103, 104]})
}

/// The text without the name of the run, which is never the same.
fn without_run_id(text: &str) -> String {
    let (before, rest) = text.split_once("\"engine_request_id\":\"").unwrap();
    let (_, after) = rest.split_once('"').unwrap();
    format!("{before}{after}")
}

/// The answer of the library, as `plan run` writes it.
async fn expected(engine: &Engine, name: &str, request: &str) -> String {
    let plan = engine.plan(name).unwrap();
    let answer = plan.run(Request::parse(request, engine.registries()).unwrap()).await.unwrap();
    let mut line = Vec::new();
    answer.write_json(&engine.registries().keys, &mut line);
    String::from_utf8(line).unwrap() + "\n"
}

#[tokio::test]
async fn answers_are_those_of_plan_run_for_all_examples() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/plans");
    let file = examples.join("anabranch.toml");
    let folder = patient_copy(&examples);
    let project = Project::find(folder.path()).unwrap().unwrap();
    assert!(file.is_file());
    let (config, _) = Setup { project: Some(project), ..Setup::default() }.config().unwrap();
    let engine = Engine::load(config).unwrap();
    let settings =
        PlanSettings { watch_every: None, ..PlanSettings::new(folder.path().join("anabranch.toml")) };
    let executor = Executor::in_memory(functions()).unwrap();
    let shop = Shop::serving(folder, settings, executor, |service| service).await;
    let names = shop.plans.problems();
    assert!(names.len() >= 10 && names.iter().all(|(_, problem)| problem.is_none()), "{names:?}");
    for (name, _) in names {
        for user in [1, 2, 7, 9] {
            let request = json!({"user_id": user, "request_id": "r"});
            let expected = expected(&engine, &name, &request.to_string()).await;
            let answer = shop.run(&name, &request).await;
            let found = String::from_utf8(answer.body.to_vec()).unwrap();
            assert_eq!((answer.status, answer.header("x-request-id")), (200, "r"), "{name}: {found}");
            assert_eq!(without_run_id(&found), without_run_id(&expected), "{name}");
        }
    }
}

/// The examples with time for everything, however busy the machine is.
fn patient_copy(examples: &Path) -> TempFolder {
    let folder = TempFolder::new();
    for part in ["", "plans", "registry"] {
        std::fs::create_dir_all(folder.path().join(part)).unwrap();
        for entry in std::fs::read_dir(examples.join(part)).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            // The sources in TypeScript stay behind: their compiler is tested elsewhere.
            if path.is_file() && !path.to_str().unwrap().ends_with(".plan.ts") {
                let text = std::fs::read_to_string(&path).unwrap();
                let file = folder.path().join(part).join(path.file_name().unwrap());
                std::fs::write(file, anabranch_testkit::patient(&text)).unwrap();
            }
        }
    }
    folder
}

#[tokio::test]
async fn all_forms_have_the_same_rows() {
    let shop = Shop::start().await;
    let path = "/v1/plans/rank/run";
    let send = |accept: &'static str| async move { accept };
    let whole = shop.run("rank", &request()).await.json();
    let rows = whole["candidates"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    assert_eq!(rows[0], json!({"id": 103, "fields": {"price": 8.5, "title": "bowl"}}));

    let accept = send("application/x-ndjson").await;
    let lines = shop.http.send(Method::POST, path, &[JSON, ("accept", accept)], request().to_string()).await;
    assert_eq!(lines.header("content-type"), accept);
    let mut lines: Vec<Value> = str::from_utf8(&lines.body)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let last = lines.pop().unwrap();
    assert_eq!((&lines, &last["ledger"], &last["request_id"]), (rows, &json!([]), &json!("r1")));

    let accept = send("application/vnd.apache.arrow.stream").await;
    let arrow = shop.http.send(Method::POST, path, &[JSON, ("accept", accept)], request().to_string()).await;
    assert_eq!(arrow.header("content-type"), accept);
    let reader = arrow_ipc::reader::StreamReader::try_new(&arrow.body[..], None).unwrap();
    assert_eq!(reader.schema().metadata()["ledger"], "[]");
    assert_eq!(reader.schema().metadata()["request_id"], "r1");
    let batches: Vec<_> = reader.map(Result::unwrap).collect();
    assert_eq!(batches.len(), 1);
    let ids = batches[0].column_by_name("id").unwrap().as_primitive::<Int64Type>();
    let prices = batches[0].column_by_name("price").unwrap().as_primitive::<Float64Type>();
    let titles = batches[0].column_by_name("title").unwrap().as_string::<i32>();
    let found: Vec<(Value, Value, Value)> = (0..ids.len())
        .map(|row| {
            let title = arrow_array::Array::is_valid(titles, row).then(|| titles.value(row));
            let price = arrow_array::Array::is_valid(prices, row).then(|| prices.value(row));
            (json!(ids.value(row)), json!(price), json!(title))
        })
        .collect();
    let expected: Vec<_> = rows
        .iter()
        .map(|row| (row["id"].clone(), row["fields"]["price"].clone(), row["fields"]["title"].clone()))
        .collect();
    assert_eq!(found, expected);

    let by_output = shop.http.post(&format!("{path}?by_output=true"), request().to_string()).await.json();
    assert_eq!(by_output["outputs"]["sorted"], whole["candidates"]);
    let none =
        shop.http.send(Method::POST, path, &[JSON, ("accept", "text/csv")], request().to_string()).await;
    assert_eq!((none.status, none.error().0.as_str()), (406, "not_acceptable"));
}

/// A plan with two outputs: rows say which one they belong to, and keep the types of their columns.
#[tokio::test]
async fn all_forms_have_the_rows_of_several_outputs() {
    let shop = Shop::start().await;
    let two = plan("two", "product", "").replace(r#"["sorted"]"#, r#"["first", "sorted"]"#);
    let first = r#","params":{"by":"price"}},{"node_id":"first","op":"core::take","inputs":["items"],"params":{"count":2}}]}"#;
    let two = two.replace(r#", "params": {"by": "price"}}]}"#, first);
    shop.write("two.plan.json", &two);
    shop.plans.reload().await.unwrap();
    let path = "/v1/plans/two/run";
    let ask = async |accept: &str| {
        let headers = [JSON, ("accept", accept)];
        let answer = shop.http.send(Method::POST, path, &headers, request().to_string()).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, accept), "{:?}", answer.body);
        answer.body
    };
    let by_output = shop.http.post(&format!("{path}?by_output=true"), request().to_string()).await.json();
    let mut expected = Vec::new();
    for output in ["first", "sorted"] {
        for row in by_output["outputs"][output].as_array().unwrap() {
            expected.push(json!({ "output": output, "id": row["id"], "fields": row["fields"] }));
        }
    }
    assert_eq!(expected.len(), 6);
    let fields = json!({ "price": 25.0, "title": "kettle", "stock": 3, "new": true });
    assert_eq!(expected[0], json!({ "output": "first", "id": 101, "fields": fields }));

    let lines = ask("application/x-ndjson").await;
    let mut lines: Vec<Value> =
        str::from_utf8(&lines).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.pop().unwrap()["ledger"], json!([]));
    assert_eq!(lines, expected);

    let arrow = ask("application/vnd.apache.arrow.stream").await;
    let reader = arrow_ipc::reader::StreamReader::try_new(&arrow[..], None).unwrap();
    let schema = reader.schema();
    let types: Vec<(String, String)> =
        schema.fields().iter().map(|field| (field.name().clone(), field.data_type().to_string())).collect();
    let kinds = [
        ("id", "Int64"),
        ("output", "Utf8"),
        ("price", "Float64"),
        ("title", "Utf8"),
        ("stock", "Int64"),
        ("new", "Boolean"),
    ];
    assert_eq!(types, kinds.map(|(name, kind)| (name.to_owned(), kind.to_owned())));
    let mut found = Vec::new();
    for batch in reader.map(Result::unwrap) {
        let column = |name: &str| batch.column_by_name(name).unwrap();
        let [outputs, titles] = ["output", "title"].map(|name| column(name).as_string::<i32>());
        let [ids, stocks] = ["id", "stock"].map(|name| column(name).as_primitive::<Int64Type>());
        let (prices, new) = (column("price").as_primitive::<Float64Type>(), column("new").as_boolean());
        for row in 0..batch.num_rows() {
            let mut fields = serde_json::Map::new();
            let mut add = |name: &str, value: Value| {
                // Null is a field that is not there.
                if column(name).is_valid(row) {
                    fields.insert(name.to_owned(), value);
                }
            };
            add("price", json!(prices.value(row)));
            add("title", json!(titles.value(row)));
            add("stock", json!(stocks.value(row)));
            add("new", json!(new.value(row)));
            found.push(json!({ "output": outputs.value(row), "id": ids.value(row), "fields": fields }));
        }
    }
    assert_eq!(found, expected);
}

#[tokio::test]
async fn wrong_requests_are_refused_with_their_reason() {
    let shop = Shop::start().await;
    let check = async |path: &str, body: &str, status: u16, word: &str, message: &str| {
        let answer = shop.http.post(path, body.to_owned()).await;
        let error = answer.error();
        assert_eq!((answer.status, error.0.as_str()), (status, word), "{path} {body:.80}: {}", error.1);
        assert!(error.1.contains(message), "{path} {body:.80}: {}", error.1);
    };
    let run = "/v1/plans/rank/run";
    check("/v1/plans/rnak/run", "{}", 404, "not_found", "did you mean `rank`?").await;
    check("/v1/plans/..%2Frank/run", "{}", 404, "not_found", "there is no plan").await;
    check(run, "", 400, "invalid_argument", "the smallest one is {\"user_id\": 1}").await;
    check(run, "{", 400, "invalid_argument", "Invalid JSON input: line 1").await;
    check(run, "{\"user\": 1}", 400, "invalid_argument", "Invalid request: `user_id` is missing").await;
    check(run, "{\"user_id\": 1, \"plam\": \"x\"}", 400, "invalid_argument", "there is no field `plam`")
        .await;
    let wrong = "{\"user_id\": 1, \"param_overrides\": {\"budget\": \"x\", \"bugdet\": 1}}";
    check(run, wrong, 400, "invalid_argument", "`budget` must be a finite float").await;
    check(&format!("{run}?timeout=soon"), "{}", 400, "invalid_argument", "soon").await;
    check(&format!("{run}?tiemout=1s"), "{}", 400, "invalid_argument", "tiemout").await;
    let giant = format!("{{\"user_id\": 1, \"request_id\": \"{}\"}}", "x".repeat(5 << 20));
    check(run, &giant, 413, "too_large", "more than 4 MiB").await;
    check(run, &"[".repeat(10_000), 400, "invalid_argument", "Invalid JSON input").await;
    check(run, &"[".repeat(3 << 20), 413, "too_large", "as columns, or fewer").await;
    let swollen = format!("{{\"user_id\": 1, \"candidates\": [{}]}}", vec!["{\"\":0}"; 500_000].join(","));
    check(run, &swollen, 413, "too_large", "as columns, or fewer").await;
    for (name, value) in [("request-timeout", "soon"), ("grpc-timeout", "1 s")] {
        let answer = shop.http.send(Method::POST, run, &[JSON, (name, value)], "{\"user_id\": 1}").await;
        let error = answer.error();
        assert_eq!(answer.status, 400);
        assert!(error.1.to_lowercase().contains(name), "{}", error.1);
    }
    // A candidate without rows of its own fails inside of the plan.
    let answer = shop.run("rank", &json!({"user_id": 1})).await;
    assert_eq!((answer.status, answer.error().0.as_str()), (422, "node_failed"));
    let none = Http::start().await.get("/v1/plans", &[]).await;
    assert!(none.error().1.contains("anabranch serve --project FILE"));
}

#[tokio::test]
async fn a_client_that_goes_away_stops_its_run() {
    let shop = Arc::new(Shop::start().await);
    let own = Arc::clone(&shop);
    let call = beside(async move { own.run("patient", &request()).await });
    let counted = |shop: &Shop, line: &str| shop.plans.metrics().contains(&format!("{line}\n"));
    until(|| counted(&shop, "anabranch_plan_served_in_flight{plan=\"patient\"} 1")).await;
    drop(call);
    until(|| counted(&shop, "anabranch_plan_served_in_flight{plan=\"patient\"} 0")).await;
    assert!(counted(&shop, "anabranch_plan_served_requests_total{plan=\"patient\",outcome=\"dropped\"} 1"));
}

#[tokio::test]
async fn descriptions_have_graph_times_and_an_example_that_runs() {
    let shop = Shop::start().await;
    let answer = shop.run("rank", &request()).await;
    assert_eq!(answer.status, 200);
    let page = shop.describe("rank").await;
    assert_eq!(page["name"], "rank");
    assert_eq!(page["version"].as_str().unwrap().len(), 12);
    assert_eq!(answer.header("x-plan-version"), page["version"]);
    assert_eq!(page["latency"]["count"], 1);
    let names: Vec<&Value> =
        page["parameters"].as_array().unwrap().iter().map(|param| &param["name"]).collect();
    assert_eq!(names, [&json!("budget"), &json!("title_like")]);
    let nodes = page["graph"]["nodes"].as_array().unwrap();
    let items = nodes.iter().find(|node| node["op"] == "core::lookup").unwrap();
    assert_eq!(
        (&items["kind"], &items["runs"], &items["error_rate"]),
        (&json!("io"), &json!(1), &json!(0.0))
    );
    assert!(items["p50_ms"].is_number() && !page["graph"]["edges"].as_array().unwrap().is_empty());
    assert_eq!(page["explain"]["plan"], "rank");
    let guarded = shop.describe("guarded").await;
    let nodes = guarded["graph"]["nodes"].as_array().unwrap();
    let items = nodes.iter().find(|node| node["op"] == "core::lookup").unwrap();
    assert_eq!((&items["fallback"], &items["timeout_ms"]), (&json!("pass"), &json!(20.0)));
    let again = shop.run("rank", &page["example_request"]).await;
    assert_eq!(again.status, 200, "{}", page["example_request"]);
}

#[tokio::test]
async fn runs_are_recorded_and_some_are_kept() {
    let shop = Shop::start().await;
    let traced = shop.http.post("/v1/plans/rank/run?trace=true", request().to_string()).await;
    let id = traced.header("x-run-id").to_owned();
    let run = shop.http.get(&format!("/v1/runs/{id}"), &[]).await.json();
    assert_eq!(
        (&run["kind"], &run["name"], &run["state"]),
        (&json!("plan"), &json!("rank"), &json!("complete"))
    );
    assert_eq!((&run["rows"], &run["request"]), (&json!(4), &request()));
    let nodes = run["timeline"]["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), run["graph"]["nodes"].as_array().unwrap().len());
    assert!(nodes.iter().all(|node| node["state"] == "finished"), "{nodes:?}");

    let failed = shop.run("broken", &request()).await;
    assert_eq!(failed.status, 502);
    let listed = shop.http.get("/v1/runs?state=failed", &[]).await.json();
    let run = &listed["runs"][0];
    assert_eq!((&run["name"], &run["has_detail"]), (&json!("broken"), &json!(true)));
    let run = shop.http.get(&format!("/v1/runs/{}", run["id"].as_str().unwrap()), &[]).await.json();
    assert!(run["error"].as_str().unwrap().contains("items"));
    // Requests may be personal, so they are not kept unasked.
    assert_eq!(run["request"], Value::Null);
}

/// Monitoring has the times of the nodes of traced requests, as a histogram.
#[tokio::test]
async fn the_times_of_nodes_are_a_histogram() {
    let shop = Shop::start().await;
    assert!(!shop.plans.metrics().contains("anabranch_plan_node_seconds_bucket"), "no node has run");
    for _ in 0..3 {
        assert_eq!(shop.http.post("/v1/plans/rank/run?trace=true", request().to_string()).await.status, 200);
    }
    let page = shop.describe("rank").await;
    let nodes = page["graph"]["nodes"].as_array().unwrap();
    let items = nodes.iter().find(|node| node["op"] == "core::lookup").unwrap();
    let (labels, runs) = (format!("{{plan=\"rank\",node={}", items["name"]), &items["runs"]);
    assert_eq!(*runs, 3);
    let metrics = shop.plans.metrics();
    assert!(metrics.contains("# TYPE anabranch_plan_node_seconds histogram\n"), "{metrics}");
    let buckets: Vec<(f64, u64)> = metrics
        .lines()
        .filter_map(|line| line.strip_prefix(&format!("anabranch_plan_node_seconds_bucket{labels},le=\"")))
        .filter_map(|line| line.split_once("\"} "))
        .map(|(edge, count)| (edge.replace("+Inf", "inf").parse().unwrap(), count.parse().unwrap()))
        .collect();
    assert!(buckets.len() > 10 && buckets.is_sorted(), "{buckets:?}");
    assert!(buckets.is_sorted_by_key(|(_, count)| *count), "{buckets:?}");
    assert_eq!(buckets.last(), Some(&(f64::INFINITY, 3)));
    assert!(metrics.contains(&format!("anabranch_plan_node_seconds_count{labels}}} 3\n")), "{metrics}");
    let sum = metrics.lines().find_map(|line| {
        line.strip_prefix(&format!("anabranch_plan_node_seconds_sum{labels}}} "))?.parse::<f64>().ok()
    });
    assert!(sum.is_some_and(|sum| sum > 0.0), "{metrics}");
}
