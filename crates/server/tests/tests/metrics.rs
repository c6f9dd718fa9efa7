//! The page of metrics as a whole, on a server that has done everything.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_recipe::Executor;
use hyper::Method;
use serde_json::json;

use crate::datasets::{accepted, demo, ended, submit, with_datasets};
use crate::plans::{PROJECT, Shop, plan};
use crate::support::{TempFolder, beside, functions, soon};

/// The endpoint answers late for some keys, and has a limit.
fn project() -> String {
    let late = r#"faults = [{ prefix = "late:", delay_ms = 1 }, "#;
    format!("{}max_inflight = 64\n", PROJECT.replace("faults = [", late))
}

/// The samples of a page, by name and labels, after a check of the format.
fn samples(page: &str) -> BTreeMap<String, f64> {
    let mut kinds: BTreeMap<&str, &str> = BTreeMap::new();
    let mut described = BTreeSet::new();
    let mut open = "";
    let mut samples = BTreeMap::new();
    assert!(page.ends_with('\n'), "the last line is cut");
    for line in page.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, text) = help.split_once(' ').unwrap();
            assert!(described.insert(name) && !text.is_empty(), "{line}");
            continue;
        }
        if let Some(family) = line.strip_prefix("# TYPE ") {
            let (name, kind) = family.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert!(kinds.insert(name, kind).is_none() && described.contains(name), "{line}");
            open = name;
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
        let name = series.split('{').next().unwrap();
        let is_part = ["_bucket", "_sum", "_count"].iter().any(|part| name.strip_suffix(part) == Some(open));
        let fits = if kinds[open] == "histogram" { is_part } else { name == open };
        assert!(fits, "{line} is not of {open}");
        assert_eq!(kinds[open] == "counter", name.ends_with("_total"), "{line}");
        assert!(labels(series).is_some(), "{line}");
        assert!(samples.insert(series.to_owned(), value).is_none(), "{line} is there twice");
    }
    check_histograms(&kinds, &samples);
    samples
}

/// The names and values of the labels, if they are well-formed.
fn labels(series: &str) -> Option<Vec<(String, String)>> {
    let Some((_, labels)) = series.split_once('{') else { return Some(Vec::new()) };
    let mut rest = labels.strip_suffix('}')?;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (name, value) = rest.split_once("=\"")?;
        let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if name.is_empty() || !name.chars().all(is_word) || found.iter().any(|(known, _)| known == name) {
            return None;
        }
        let mut is_escaped = false;
        let end = value.find(|letter| {
            let ends = letter == '"' && !is_escaped;
            is_escaped = letter == '\\' && !is_escaped;
            ends
        })?;
        found.push((name.to_owned(), value[..end].to_owned()));
        rest = value[end + 1..].strip_prefix(',').unwrap_or(&value[end + 1..]);
    }
    Some(found)
}

/// Buckets do not decrease, and the last one is the count.
fn check_histograms(kinds: &BTreeMap<&str, &str>, samples: &BTreeMap<String, f64>) {
    for (name, _) in kinds.iter().filter(|(_, kind)| **kind == "histogram") {
        let mut buckets: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
        let prefix = format!("{name}_bucket{{");
        for (series, count) in samples.iter().filter(|(series, _)| series.starts_with(&prefix)) {
            let (bound, others): (Vec<_>, Vec<_>) =
                labels(series).unwrap().into_iter().partition(|(label, _)| label == "le");
            let bound = if bound[0].1 == "+Inf" { f64::INFINITY } else { bound[0].1.parse().unwrap() };
            let others: Vec<String> =
                others.iter().map(|(label, value)| format!("{label}=\"{value}\"")).collect();
            buckets.entry(others.join(",")).or_default().push((bound, *count));
        }
        for (labels, mut buckets) in buckets {
            buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
            assert!(buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{name} {labels}: {buckets:?}");
            let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
            let (bound, last) = *buckets.last().unwrap();
            assert!(
                bound.is_infinite() && samples[&format!("{name}_count{labels}")] == last,
                "{name} {labels}"
            );
            assert!(samples[&format!("{name}_sum{labels}")] >= 0.0);
        }
    }
}

/// A plan with a region that is lost, and a fallback that is wanted in any case.
const SPARED: &str = r#"{"schema_version": 1, "plan_name": "spared", "outputs": ["region", "other"], "nodes": [
  {"node_id": "brought", "op": "core::candidates", "inputs": [], "params": {"columns": []}},
  {"node_id": "items", "op": "core::lookup", "inputs": ["brought"],
    "params": {"endpoint": "catalog", "key": "broken:{id}", "fields": ["price"]}},
  {"node_id": "other", "op": "core::lookup", "inputs": ["brought"],
    "params": {"endpoint": "catalog", "key": "product:{id}", "fields": ["price"]}},
  {"node_id": "region", "op": "core::timeout", "inputs": ["items"], "params": {}, "fallback": {"node": "other"}}]}"#;

/// Both stages of its fallback are nodes of their own.
const INSTEAD: [&str; 2] = [
    "anabranch_plan_node_seconds_count{plan=\"spared\",node=\"instead of region\"}",
    "anabranch_plan_node_seconds_count{plan=\"spared\",node=\"rows instead of region\"}",
];

/// Samples of the page of a server that has done everything.
const EXPECTED: [(&str, f64); 21] = [
    ("anabranch_values_total", 2.0),
    ("anabranch_memo_hits_total", 1.0),
    ("anabranch_memo_misses_total", 1.0),
    ("anabranch_recipes_computed_total", 1.0),
    ("anabranch_store_lost_total", 0.0),
    ("anabranch_store_damaged_total", 0.0),
    ("anabranch_store_diverged_total", 0.0),
    ("anabranch_store_failures_total", 0.0),
    ("anabranch_store_index_damaged", 0.0),
    ("anabranch_store_index_rebuilt_total", 0.0),
    ("anabranch_store_over_quota", 0.0),
    ("anabranch_plan_limit{endpoint=\"catalog\"}", 64.0),
    ("anabranch_plan_limit_in_flight{endpoint=\"catalog\"}", 1.0),
    ("anabranch_plan_limit_waiting{endpoint=\"catalog\"}", 0.0),
    ("anabranch_plan_read_seconds_count{endpoint=\"catalog\"}", 1.0),
    ("anabranch_plan_served_requests_total{plan=\"rank\",outcome=\"full\"}", 1.0),
    ("anabranch_plan_served_requests_total{plan=\"broken\",outcome=\"failed\"}", 1.0),
    ("anabranch_plan_latency_seconds_count{plan=\"late\"}", 1.0),
    ("anabranch_dataset_calls_total{model=\"writer\"}", 20.0),
    ("anabranch_model_call_seconds_count{model=\"writer\"}", 20.0),
    ("anabranch_datasets_kept", 1.0),
];

/// A server that has run a plan, a recipe and a dataset.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_is_well_formed_and_has_all_that_was_done() {
    let folder = Shop::files(&project());
    std::fs::write(folder.path().join("plans/late.plan.json"), plan("late", "late", "")).unwrap();
    std::fs::write(folder.path().join("plans/spared.plan.json"), SPARED).unwrap();
    let (settings, data) = (Shop::settings(&folder), TempFolder::new());
    let executor = Executor::in_memory(functions()).unwrap();
    let set_up = |service| with_datasets(service, &executor, data.path(), |_| {});
    let shop = Shop::serving(folder, settings, executor.clone(), set_up).await;
    let http = &shop.http;
    let service = http.server.service.clone();
    let _counting = beside(async move { service.count_engine_events().await });
    let request = json!({"user_id": 7, "candidates": [101, 102]});
    for (name, status) in [("rank", 200), ("late", 200), ("broken", 502)] {
        assert_eq!(shop.run(name, &request).await.status, status, "{name}");
    }
    let traced = http.post("/v1/plans/spared/run?trace=true", request.to_string()).await;
    assert_eq!(traced.status, 200, "{:?}", traced.body);
    let leaf = http.blob("leaf").await;
    let recipe = json!({ "function": "concat/1.0.0", "inputs": [leaf, leaf] }).to_string();
    let recipe = http.post("/v1/recipes", recipe).await.json()["address"].as_str().unwrap().to_owned();
    for _ in 0..2 {
        assert_eq!(http.get(&format!("/v1/recipes/{recipe}/value"), &[]).await.body, "leafleaf");
    }
    let id = accepted(&submit(http, &demo(20)).await);
    assert_eq!(ended(http, &id).await["state"], "complete");
    // A plan that waits for its read.
    let waiting = http.send(Method::POST, "/v1/plans/patient/run", &[crate::http::JSON], request.to_string());
    let look = soon(async {
        loop {
            let page = http.get("/metrics", &[]).await;
            assert_eq!(page.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
            let found = samples(std::str::from_utf8(&page.body).unwrap());
            let is_counted = |name: &str, least| found.get(name).is_some_and(|count| *count >= least);
            if is_counted("anabranch_plan_limit_in_flight{endpoint=\"catalog\"}", 1.0)
                && is_counted("anabranch_engine_runs_started_total", 5.0)
                && INSTEAD.iter().all(|series| is_counted(series, 1.0))
                && is_counted("anabranch_model_call_seconds_count{model=\"writer\"}", 1.0)
            {
                return found;
            }
        }
    });
    let found = tokio::select! {
        answer = waiting => panic!("its read is never answered: {:?}", answer.body),
        found = look => found,
    };
    for (name, value) in EXPECTED {
        assert_eq!(found.get(name), Some(&value), "{name}");
    }
    // The tables of limits are several, and have the same numbers.
    assert!(!found.keys().any(|name| name.starts_with("anabranch_engine_limit")), "{found:?}");
}
