//! The spend of a build on the command line: prices, budgets, and counts that a server agrees with.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anabranch_testkit::{ModelCall, ModelScript, ModelServer};
use expect_test::expect;
use serde_json::Value;

use crate::binary::{in_folder, soon};
use crate::dataset::{shown, with_config};

const POEMS: &str = "
run: {buffer_size: 10}
columns:
  - {name: n, column_type: sampler, sampler_type: uuid}
  - {name: poem, column_type: llm-text, model_alias: writer, prompt: 'A poem about {{ n }}'}
  - {name: title, column_type: llm-text, model_alias: writer, prompt: 'A title of {{ poem }}'}
";

/// One call per row, all of the same size.
const LINES: &str = "
columns:
  - {name: n, column_type: sampler, sampler_type: uuid}
  - {name: line, column_type: llm-text, model_alias: writer, prompt: 'A line about {{ n }}'}
";

/// Calls in flight at the same time.
const PARALLEL: usize = 8;

struct Case {
    folder: PathBuf,
    server: ModelServer,
}

impl Case {
    fn new(test: &str, config: &str, prices: &str) -> Case {
        let script = ModelScript { latency: Duration::from_millis(1), ..ModelScript::default() };
        let case = Case { folder: with_config(test, config), server: ModelServer::start(script) };
        let models = format!(
            "model_configs: [{{alias: writer, model: small, provider: here, \
             inference_parameters: {{max_parallel_requests: {PARALLEL}}}}}]\n\
             providers: [{{name: here, endpoint: '{}', api_key: some-key}}]\n{prices}\n",
            case.server.endpoint()
        );
        std::fs::write(case.folder.join("models.yaml"), models).unwrap();
        case
    }

    fn build(&self, rows: &str, flags: &[&str]) -> crate::binary::CommandOutput {
        let build =
            ["dataset", "build", "poems.yaml", "--rows", rows, "--out", "out", "--models", "models.yaml"];
        in_folder(&self.folder, &[&build[..], flags].concat(), "")
    }

    fn metadata(&self) -> Value {
        read(&self.folder.join("out/metadata.json"))
    }
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_build_stops_at_its_calls_and_goes_on_with_more() {
    let case = Case::new("dataset_spend_calls", LINES, "prices: {small: {input: 1000, output: 2000}}");
    let said = case.build("40", &["--max-calls", "30"]);
    expect![[r#"
        stderr: stopped after TIME
        stderr:   the budget of 30 calls (--max-calls) is spent
        stderr:   spent so far: 30 calls, 360 tokens in, 150 out, $0.66
        stderr: on disk: 30 of 40 rows in out/parquet-files, the replies to all 30 answered calls of this run in out/journal
        stderr: raise --max-calls and run the command again to go on
        exit 1
    "#]].assert_eq(&shown(&said, &case.folder));
    assert_eq!(case.server.paid(), 30);
    let done = case.build("40", &["--max-calls", "40"]);
    expect![[r#"
        poems: 40 of 40 rows, seed 0, in TIME
          continued: 0 rows were on disk, 30 replies came from the journal
          rows    out/parquet-files
          errors  none

          alias   model  calls  reused  tokens in  tokens out  cost
          ------  -----  -----  ------  ---------  ----------  -----
          writer  small     40      30        480         200  $0.88
          in this run: 10 calls, 120 tokens in, 50 out, $0.22
        exit 0
    "#]]
    .assert_eq(&shown(&done, &case.folder));
    assert_eq!(case.server.paid(), 40);
    let metadata = case.metadata();
    let usage = &metadata["models"]["writer"];
    let number = |name: &str| usage[name].as_f64().unwrap();
    let cost = (number("input_tokens") * 1000.0 + number("output_tokens") * 2000.0) / 1e6;
    assert!((number("cost") - cost).abs() < 1e-9, "{usage}");
    assert_eq!(metadata["spent"]["line"]["calls"], 40);
}

#[test]
fn a_budget_that_is_spent_stops_at_once() {
    let case = Case::new("dataset_spend_spent", POEMS, "");
    let first = case.build("40", &["--max-calls", "30"]);
    let on_disk = |said: &crate::binary::CommandOutput| {
        let line = said.stderr.lines().find(|line| line.starts_with("on disk: ")).unwrap().to_owned();
        line.split(" rows").next().unwrap().to_owned()
    };
    assert_eq!((first.code, case.server.paid()), (1, 30), "{}", first.stderr);
    let again = case.build("40", &["--max-calls", "30", "--json"]);
    assert_eq!((again.code, case.server.paid()), (1, 30), "no call: {}", again.stderr);
    assert_eq!(on_disk(&again), on_disk(&first), "the same rows are there");
    let end: Value = serde_json::from_str(again.stdout.lines().last().unwrap()).unwrap();
    assert_eq!((&end["budget"], &end["status"]), (&"--max-calls".into(), &"stopped".into()));
    assert_eq!(end["models"]["writer"]["calls"], 30);
    let status = in_folder(&case.folder, &["dataset", "status", "out"], "");
    let told = status.stdout.lines().filter(|line| line.contains("reason") || line.starts_with("next"));
    expect![[r#"
          reason  the budget of 30 calls (--max-calls) is spent
        next: raise --max-calls and run the command again to continue"#]]
    .assert_eq(&told.collect::<Vec<_>>().join("\n"));
    let done = case.build("40", &["--max-calls", "80"]);
    assert_eq!((done.code, case.server.paid()), (0, 80), "{}", done.stderr);
}

#[test]
fn money_and_tokens_stop_within_the_calls_in_flight() {
    let case = Case::new("dataset_spend_money", POEMS, "prices: {small: {input: 1000, output: 2000}}");
    let said = case.build("400", &["--max-cost", "2.50"]);
    assert_eq!(said.code, 1, "{}", said.stderr);
    assert!(said.stderr.contains("the budget of $2.50 (--max-cost) is spent"), "{}", said.stderr);
    let usage = |case: &Case| case.metadata()["models"]["writer"].clone();
    let number = |name: &str| usage(&case)[name].as_f64().unwrap();
    let (cost, calls) = (number("cost"), number("calls"));
    let window = PARALLEL as f64 * cost / calls;
    assert!((2.5 - window..2.5 + window).contains(&cost), "{cost} for {calls} calls");
    let paid = case.server.paid();
    assert_eq!(paid as f64, calls);
    let most = (number("input_tokens") + number("output_tokens")) as u64 + 1_000;
    let said = case.build("400", &["--max-tokens", &most.to_string()]);
    assert_eq!(said.code, 1, "{}", said.stderr);
    let tokens = number("input_tokens") + number("output_tokens");
    let window = PARALLEL as f64 * tokens / number("calls");
    assert!((most as f64 - window..most as f64 + window).contains(&tokens), "{tokens} of {most}");
    assert!(case.server.paid() > paid && case.server.paid() as f64 == number("calls"));
}

#[test]
fn money_without_a_price_is_refused_before_it_is_spent() {
    let case = Case::new("dataset_spend_unpriced", POEMS, "prices: {large: {input: 1}}");
    let said = case.build("40", &["--max-cost", "1"]);
    expect![[r#"
        stderr: warning: models.yaml:3:10: no model is called `large`, so its price is not used
        stderr:   3 | prices: {large: {input: 1}}
        stderr:     |          ^^^^^
        stderr:   help: name an alias, a model or provider/model of: writer (here/small)
        stderr: error: --max-cost needs the price of every model; the price of `writer` (here/small) is missing: add it under `prices:` of the configuration or the models file, such as `prices: {ALIAS: {input: 0.15, output: 0.60}}` for money per million tokens
        exit 1
    "#]].assert_eq(&shown(&said, &case.folder));
    assert_eq!(case.server.paid(), 0);
    assert!(!case.folder.join("out").exists());
}

/// Whether an event reports money that was spent.
fn has_spent(event: &Value) -> bool {
    event["event"] == "progress" && event["cost"].as_f64() > Some(0.0) && event["calls"].as_u64() > Some(0)
}

#[test]
fn progress_is_in_the_events() {
    let case = Case::new("dataset_spend_events", POEMS, "prices: {small: {input: 1000, output: 2000}}");
    // The replies behind the first ones come once a report has the cost of those.
    let (events, replies) = (case.folder.join("out/events.jsonl"), AtomicUsize::new(0));
    let is_report = |line: &str| serde_json::from_str(line).is_ok_and(|event| has_spent(&event));
    let reports = move || std::fs::read_to_string(&events).unwrap_or_default().lines().any(is_report);
    let reply = move |_: &ModelCall| {
        if replies.fetch_add(1, Ordering::Relaxed) >= PARALLEL {
            soon(|| reports().then_some(()));
        }
        "a poem".to_owned()
    };
    let slow = ModelServer::start(ModelScript { reply: Some(Arc::new(reply)), ..ModelScript::default() });
    let models = std::fs::read_to_string(case.folder.join("models.yaml")).unwrap();
    let models = models.replace(&case.server.endpoint(), &slow.endpoint());
    std::fs::write(case.folder.join("models.yaml"), models).unwrap();
    let said = case.build("24", &[]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    let text = std::fs::read_to_string(case.folder.join("out/events.jsonl")).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let progress: Vec<&Value> = events.iter().filter(|event| event["event"] == "progress").collect();
    assert!(!progress.is_empty(), "{text}");
    let names: Vec<&String> = progress[0].as_object().unwrap().keys().collect();
    expect![[r#"["at_ms", "calls", "cells", "cost", "dropped", "event", "failed", "input_tokens", "limits", "output_tokens", "reused", "rows"]"#]].assert_eq(&format!("{names:?}"));
    // The first reports may come before the first reply.
    assert!(progress.iter().any(|report| has_spent(report)), "{text}");
    assert!(progress.iter().any(|report| report["limits"][0]["name"] == "here/small"), "{text}");
}
