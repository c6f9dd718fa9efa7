//! The console with the real server behind it: a plan is run from the page and a dataset cancelled, and their runs looked at.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

use anabranch_recipe::Executor;
use anabranch_server::{Service, Settings};
use anabranch_testkit::{ModelCall, ModelFault, ModelFaultKind, ModelScript, ModelServer};
use serde_json::json;

use super::demo::Demo;
use super::{WIDE, samples, shows, with_browser};
use crate::datasets::{accepted, demo, submit, with_datasets};
use crate::http::Http;
use crate::openapi::verify;
use crate::plans::Shop;
use crate::support::{OpenOnDrop, PATIENCE, Server, TempFolder, functions};

/// The text of a node of the graph.
fn text_of(node: &str) -> String {
    format!(
        "[...document.querySelectorAll('.graph .node')].find((node) => node.textContent.startsWith({node:?})).textContent"
    )
}

#[test]
fn a_real_plan_is_tried_and_its_run_is_shown() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let shop = runtime.block_on(Shop::start());
    let url = shop.http.server.url.clone();
    with_browser(|browser| {
        browser.visit(&format!("{url}/#/plans"), WIDE);
        browser.wait(&shows("4 plans"));
        browser.visit(&format!("{url}/#/plans/guarded"), WIDE);
        browser.wait("document.querySelector('.graph .node')");
        browser.wait("document.querySelector('textarea').value.includes('candidates')");
        browser.click("button.primary");
        browser.wait(&shows("degraded: 1 ledger entry"));
        assert_eq!(browser.complaints(), [] as [String; 0]);
        browser.evaluate("document.querySelector('.answer a').click()");
        browser.wait(&shows("Failures and fallbacks"));
        browser.wait("document.querySelector('.run-timeline .bar.fell_back')");
        browser.wait(&shows("timeout"));
        assert_eq!(browser.complaints(), [] as [String; 0]);
        browser.wait("document.querySelector('[aria-label=Ledger] tbody th').innerText");
        let run = browser.evaluate("location.hash.split('/').at(-1)");
        browser.visit(&format!("{url}/#/runs/{}/timeline", run.as_text().unwrap()), WIDE);
        browser.evaluate("window.ready = 0; addEventListener('message', () => { window.ready += 1; }); true");
        browser.wait("document.querySelector('iframe.file') && frames.length === 1");
        // By itself it is a page with its styles and its script.
        browser.visit(&format!("{url}/v1/runs/{}/timeline.html", run.as_text().unwrap()), WIDE);
        browser.wait("document.querySelector('svg') && getComputedStyle(document.body).fontFamily.includes('system-ui')");
        assert_eq!(browser.complaints(), [] as [String; 0]);
        for page in ["", "runs", "recipes"] {
            browser.visit(&format!("{url}/#/{page}"), WIDE);
            browser.wait("document.querySelector('h1').innerText && document.querySelector('main .panel')");
        }
        browser.visit(&format!("{url}/#/runs"), WIDE);
        browser.wait("document.querySelector('.list-line').innerText.includes('guarded')");
        assert_eq!(browser.complaints(), [] as [String; 0]);
        // A node whose reads fail.
        let request = browser.evaluate("fetch('/v1/plans/broken').then((answer) => answer.json()).then((plan) => JSON.stringify(plan.example_request))");
        let request: serde_json::Value = serde_json::from_str(request.as_text().unwrap()).unwrap();
        assert_eq!(runtime.block_on(shop.run("broken", &request)).status, 502);
        browser.visit(&format!("{url}/#/plans/broken"), WIDE);
        let node = text_of("items");
        browser.wait(&format!("{node}.includes('100% errors')"));
        assert_eq!(browser.complaints(), [] as [String; 0]);
    });
}

/// A plan's nodes with their latencies, and a run with its events.
#[test]
fn the_pages_show_what_a_real_server_did() {
    let demo = Demo::start();
    demo.add_recipes();
    let url = demo.url().to_owned();
    with_browser(|browser| {
        let run = demo.run("feed", 7);
        browser.visit(&format!("{url}/#/plans/feed"), WIDE);
        browser.wait(&format!("/p50 [\\d.]+ .*p99 [\\d.]+ /.test({})", text_of("viewer")));
        browser
            .wait("[...document.querySelectorAll('.tiles > div')].at(-1).textContent === 'Nodes17run as 11'");
        browser.visit(&format!("{url}/#/runs/{run}"), WIDE);
        browser.wait("document.querySelectorAll('.events-box tbody tr').length > 0");
        browser.wait("document.querySelectorAll('.run-timeline .bar').length > 5");
        // Boxes have the names of nodes without their ops, so that the graph fits into its panel.
        browser.wait(
            "[...document.querySelectorAll('.graph text.n')].some((name) => name.textContent === 'followed')",
        );
        let panel = "document.querySelector('.graph-scroll')";
        assert_eq!(browser.evaluate(&format!("{panel}.scrollWidth <= {panel}.clientWidth")), true.into());
        browser.visit(&format!("{url}/#/recipes"), WIDE);
        browser.wait(&shows("10 names"));
        let states = "[...document.querySelectorAll('[aria-label=\"Parts of the closure\"] .chip')].map((chip) => chip.innerText).sort().join()";
        let page = format!("{url}/#/recipes/page.gz");
        browser.visit(&page, WIDE);
        let blobs = "blob,".repeat(4);
        browser.wait(&format!("{states} === '{blobs}{}'", ["not computed"; 6].join(",")));
        demo.get("page");
        browser.visit(&page, WIDE);
        browser.wait(&format!("{states} === '{blobs}not computed,{}'", ["stored"; 5].join(",")));
        assert_eq!(
            browser.evaluate("document.querySelectorAll('.graph .node.stored').length").to_json(),
            "5"
        );
        assert_eq!(browser.complaints(), [] as [String; 0]);
    });
}

/// The run of a recipe, while it is computed and afterwards.
#[test]
fn a_real_recipe_is_shown_while_it_is_computed() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let gate = crate::support::Gate::default();
    let _open = OpenOnDrop(gate.clone());
    let http = Arc::new(Http::on(runtime.block_on(Server::with(gate.functions(), Settings::default()))));
    let blob = runtime.block_on(http.blob(vec![1; 4096]));
    let recipes = json!([
        {"function": "gate/1.0.0", "inputs": [blob], "params": {}},
        {"function": "sha256/1.0.0", "inputs": [0]},
    ]);
    let added = runtime.block_on(http.post("/v1/recipes", recipes.to_string())).json();
    let target = added[1]["address"].as_str().unwrap().to_owned();
    let get = {
        let (http, path) = (Arc::clone(&http), format!("/v1/recipes/{target}/value"));
        runtime.spawn(async move { http.get(&path, &[]).await.status })
    };
    let url = http.server.url.clone();
    with_browser(|browser| {
        browser.visit(&format!("{url}/#/runs?kind=recipe"), WIDE);
        browser.wait("document.querySelector('.list-line').innerText.includes('running')");
        browser.evaluate("location.hash = document.querySelector('.list-line a').hash");
        browser.wait("document.querySelector('button.danger') && document.querySelector('main .chip').innerText === 'running'");
        gate.open();
        browser.wait(&shows("computed with 2 recipes"));
        browser.wait("document.querySelector('main .chip').innerText === 'complete'");
        assert_eq!(browser.evaluate("document.querySelectorAll('.graph .node').length").to_json(), "3");
        browser.wait("document.querySelectorAll('.run-timeline .bar').length >= 2");
        browser.wait("document.querySelectorAll('.events-box tbody tr').length > 0");
        assert_eq!(runtime.block_on(get).unwrap(), 200);
        browser.visit(&format!("{url}/#/recipes/{target}"), WIDE);
        browser.wait("document.querySelectorAll('.graph .node.stored').length === 2");
        assert_eq!(browser.complaints(), [] as [String; 0]);
    });
}

const POEMS: &str = "
columns:
  - {name: id, column_type: sampler, sampler_type: uuid, params: {}}
  - {name: poem, column_type: llm-text, model_alias: writer, prompt: 'A poem about {{ id }}.'}
";

/// The replies of a model that come at once. Further ones wait until the gate is opened.
const REPLIES: usize = 12;

/// The number of calls so far, and whether the gate is open.
type Gate = Arc<(Mutex<(usize, bool)>, Condvar)>;

/// A model server that answers so many calls, and the others when the gate is open.
fn gated(replies: usize, text: &'static str) -> (ModelServer, Gate) {
    let gate = Gate::default();
    let waits = Arc::clone(&gate);
    let reply = move |_: &ModelCall| {
        let mut state = waits.0.lock().unwrap();
        state.0 += 1;
        if state.0 > replies {
            drop(waits.1.wait_timeout_while(state, PATIENCE, |(_, open)| !*open).unwrap());
        }
        text.to_owned()
    };
    let model = ModelServer::start(ModelScript { reply: Some(Arc::new(reply)), ..ModelScript::default() });
    (model, gate)
}

/// The file that names models, each at a server of its own.
fn models_file(data: &Path, models: &[(&str, &ModelServer)]) -> PathBuf {
    let model = |(alias, _): &(&str, &ModelServer)| {
        format!(
            "{{alias: {alias}, model: {alias}, provider: {alias}, inference_parameters: {{max_parallel_requests: 4}}}}"
        )
    };
    let provider = |(alias, server): &(&str, &ModelServer)| {
        format!("{{name: {alias}, endpoint: '{}', api_key: some-key}}", server.endpoint())
    };
    let all =
        |one: &dyn Fn(&(&str, &ModelServer)) -> String| models.iter().map(one).collect::<Vec<_>>().join(", ");
    let file = data.join("models.yaml");
    std::fs::write(&file, format!("model_configs: [{}]\nproviders: [{}]\n", all(&model), all(&provider)))
        .unwrap();
    file
}

/// A server that builds datasets with the models of a file.
async fn with_models(data: &Path, models: PathBuf) -> Http {
    let executor = Executor::in_memory(functions()).unwrap();
    let service = Service::new(executor.clone(), Settings::default());
    let service = with_datasets(service, &executor, data, |settings| settings.models = Some(models));
    Http::on(Server::serving(executor, service).await)
}

#[test]
fn a_real_dataset_fills_while_one_looks_is_cancelled_and_reported() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let data = TempFolder::new();
    let (writer, gate) = gated(REPLIES, "a poem");
    let models = models_file(data.path(), &[("writer", &writer)]);
    let http = runtime.block_on(with_models(data.path(), models));
    let url = http.server.url.clone();
    let order = json!({ "config": POEMS, "rows": 40, "name": "poems" });
    let id = accepted(&runtime.block_on(submit(&http, &order)));
    with_browser(|browser| {
        let count = |state: u8, count: usize| {
            format!("document.querySelector('[data-state=\"{state}\"]').innerText === '{count}'")
        };
        browser.visit(&format!("{url}/#/datasets/{id}"), WIDE);
        // All ids, and the poems that came; four calls are under way.
        browser.wait(&count(2, 40 + REPLIES));
        browser.wait(&count(1, 4));
        browser.click("button.danger");
        browser.wait("document.querySelector('button.danger').innerText.startsWith('Really')");
        browser.click("button.danger");
        browser.wait(&shows("stopping"));
        gate.0.lock().unwrap().1 = true;
        gate.1.notify_all();
        browser.wait("document.querySelector('main .chip').innerText === 'stopped' && !document.querySelector('button.danger')");

        // One that is submitted while the list is looked at, and is built to its end.
        browser.visit(&format!("{url}/#/datasets"), WIDE);
        browser.wait(&shows("1 dataset"));
        let built = accepted(&runtime.block_on(submit(&http, &demo(200))));
        browser.wait(&shows("200 of 200"));
        browser.visit(&format!("{url}/#/datasets/{built}"), WIDE);
        browser.wait(&count(2, 400));
        browser.wait(&shows("tea"));
        let report = "[...document.querySelectorAll('a.button')].find((link) => link.innerText === 'Report')";
        browser.wait(report);
        browser.evaluate(&format!("{report}.click()"));
        browser.wait("document.querySelector('iframe.file') && frames.length === 1");
        // By itself, too.
        browser.visit(&format!("{url}/v1/datasets/{built}/report"), WIDE);
        browser.wait("document.body.innerText.includes('poem')");
        assert_eq!(browser.complaints(), [] as [String; 0]);
        // The fake API of the other tests tells nothing of a dataset that this one does not.
        let real = runtime.block_on(http.get(&format!("/v1/datasets/{built}"), &[])).json();
        let sample = samples::dataset("running");
        for (real, sample) in [
            (&real, &sample),
            (&real["columns"][0], &sample["columns"][0]),
            (&real["models"][0], &sample["models"][0]),
        ] {
            let invented: Vec<_> =
                sample.as_object().unwrap().keys().filter(|name| real.get(name).is_none()).collect();
            assert_eq!(invented, [] as [&String; 0], "{real}");
        }
    });
}

/// Poems with prices, some of which cannot be had, and a title each. All titles but one come at once.
const TITLED: &str = "
prices:
  writer: {input: 1.0, output: 2.0}
columns:
  - {name: id, column_type: sampler, sampler_type: uuid, params: {}}
  - {name: poem, column_type: llm-text, model_alias: writer, prompt: 'A poem about {{ id }}.', on_error: keep_null}
  - {name: title, column_type: llm-text, model_alias: namer, prompt: 'A title for {{ id }}.'}
";

/// Rows are written in groups of 1,000. While one row is not ready, one of two groups is written.
const GROUPED: usize = 1_001;

#[test]
fn a_real_dataset_shows_rows_errors_and_charts_while_it_is_built() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let data = TempFolder::new();
    let faults = vec![ModelFault { percent: 2, times: None, kind: ModelFaultKind::Status(400, None) }];
    let writer = ModelServer::start(ModelScript { faults, ..ModelScript::default() });
    let (namer, gate) = gated(GROUPED - 1, "a title");
    let models = models_file(data.path(), &[("writer", &writer), ("namer", &namer)]);
    let http = runtime.block_on(with_models(data.path(), models));
    let order = json!({ "config": TITLED, "rows": GROUPED, "name": "titled" });
    let id = accepted(&runtime.block_on(submit(&http, &order)));
    with_browser(|browser| {
        browser.visit(&format!("{}/#/datasets/{id}", http.server.url), WIDE);
        browser.wait(&shows("a title"));
        browser.wait("+document.querySelector('section[aria-label=Errors] .legend b').innerText > 0");
        for (chart, lines) in [("Throughput", 1), ("Calls and limit", 2), ("Spend", 1)] {
            let drawn = format!(
                "[...document.querySelectorAll('svg[aria-label={chart:?}] path.line')].filter((line) => /L/.test(line.getAttribute('d'))).length"
            );
            browser.wait(&format!("{drawn} === {lines}"));
        }
        assert_eq!(browser.evaluate("document.querySelector('main .chip').innerText"), "running".into());
        gate.0.lock().unwrap().1 = true;
        gate.1.notify_all();
        browser.wait("document.querySelector('main .chip').innerText === 'complete'");
        browser.wait("document.querySelectorAll('[aria-label=Errors] tbody tr').length > 0");
        assert_eq!(browser.complaints(), [] as [String; 0]);
    });
}

const SIDES: &str = "columns:
  - {name: side, column_type: sampler, sampler_type: category, params: {values: [left, right]}}
";

#[test]
fn a_real_dataset_of_a_million_cells_fills_while_one_looks() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let data = TempFolder::new();
    let http = runtime.block_on(crate::datasets::start(data.path(), |_| {}));
    // Samplers are drawn a row at a time and are one column of the grid.
    let column =
        |at: usize| format!("  - {{name: e{at}, column_type: expression, expr: '{{{{ side }}}}{at}'}}\n");
    let config = format!("{SIDES}{}", (1..10).map(column).collect::<String>());
    let order = json!({ "config": config, "rows": 100_000, "name": "million" });
    with_browser(|browser| {
        browser.visit(&format!("{}/#/datasets", http.server.url), WIDE);
        let id = accepted(&runtime.block_on(submit(&http, &order)));
        browser.visit(&format!("{}/#/datasets/{id}", http.server.url), WIDE);
        browser.wait("document.querySelector('[data-state=\"2\"]')?.innerText === '1,000,000'");
        browser.wait("document.querySelector('main .chip').innerText === 'complete'");
        browser.evaluate("document.querySelector('.grid-scroll').focus()");
        browser.press("ArrowRight");
        browser.press("ArrowRight");
        browser.wait("document.querySelector('.readout').innerText === 'row 1 · side · finished'");
        assert_eq!(browser.complaints(), [] as [String; 0]);
    });
}

/// The answers of the fake API have the shapes of the real API's document.
#[tokio::test]
async fn the_samples_have_the_shapes_of_the_document() {
    let server = Server::start().await;
    let (_, document) = crate::guard::send(&server, "GET /openapi.json", &[], b"").await;
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    let runs = samples::runs();
    for (path, sample) in [
        ("/v1/runs", json!({"runs": runs, "next": null})),
        ("/v1/runs/{id}", samples::detail(&runs[7])),
        ("/v1/runs/{id}", samples::detail(&runs[23])),
        ("/v1/status", samples::status()),
        ("/v1/plans", samples::plans()),
        ("/v1/plans/{name}", samples::plan("feed")),
        ("/v1/refs", super::fake::names(2, "")),
        ("/v1/functions", samples::functions()),
        ("/v1/recipes/{target}/graph", samples::closure()),
        ("/v1/datasets", json!({"datasets": [samples::dataset("running")]})),
        ("/v1/datasets/{id}", samples::dataset("running")),
        ("/v1/datasets/{id}/rows", json!({"rows": samples::rows(), "next": null})),
        ("/v1/datasets/{id}/errors", samples::errors()),
    ] {
        verify(&document, "get", path, 200, &sample);
    }
    verify(&document, "post", "/v1/plans/{name}/run", 200, &samples::answer());
}
