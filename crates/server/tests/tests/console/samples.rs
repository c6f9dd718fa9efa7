//! What the API of the tests has: 10,000 runs, five plans, a closure, a dataset of a million cells.

use serde_json::{Value as Json, json};

pub(crate) const DATASET: &str = "018f3c2afffffe-0007";
/// An id beyond 2^53.
pub(crate) const LARGE_ID: u64 = 9_007_199_254_740_993;
pub(crate) const ROWS: usize = 100_000;
pub(crate) const COLUMNS: [&str; 10] =
    ["topic", "persona", "subject", "ticket", "language", "summary", "verdict", "score", "reply", "check"];
/// A name as machines make them.
pub(crate) const LONG: &str = "related_items_for_returning_users_of_the_north_with_fallbacks_version_two";
const PLANS: [&str; 5] = ["feed", "home", "search", LONG, "notify"];
/// An afternoon of 2026.
const NOW_MS: u64 = 1_794_920_400_000;

pub(crate) fn run_id(number: usize) -> String {
    format!("018f3c2a{:06x}-0007", 0xff_ffff - number)
}

/// The newest first; the second is a dataset that is being built.
pub(crate) fn runs() -> Vec<Json> {
    let run = |number: usize| {
        let state = match number {
            1 => "running",
            _ if number.is_multiple_of(23) => "failed",
            _ if number.is_multiple_of(7) => "degraded",
            _ if number.is_multiple_of(101) => "stopped",
            _ => "complete",
        };
        let (kind, name, rows) = match number {
            1 => ("dataset", "support-tickets", Some(ROWS)),
            _ if number.is_multiple_of(17) => ("recipe", "report.gz", None),
            _ => ("plan", PLANS[number % 5], Some(50)),
        };
        let duration = (state != "running").then(|| 12.25 + (number * 37 % 90) as f64 / 3.0);
        json!({
            "id": run_id(number), "kind": kind, "name": name, "state": state,
            "started_ms": NOW_MS - number as u64 * 7300, "duration_ms": duration,
            "degraded": if state == "degraded" { 3 } else { 0 }, "failures": u8::from(state == "failed"),
            "rows": rows, "has_detail": kind != "recipe",
        })
    };
    (0..10_000).map(run).collect()
}

const NODES: [(&str, &str, &str, &str); 13] = [
    ("n0", "viewer", "io", "core::viewer"),
    ("n1", "follow", "io", "core::follow"),
    ("n2", "recent_items", "io", "core::fanout"),
    ("n3", "popular", "io", "core::lookup"),
    ("n4", "media", "io", "core::media"),
    ("n5", "union", "cpu", "core::union"),
    ("n6", "seen", "io", "core::lookup"),
    ("n7", "anti_join", "cpu", "core::anti_join"),
    ("n8", "score_model", "cpu", "core::score"),
    ("n9", "boost", "cpu", "core::vm"),
    ("n10", "topk", "cpu", "core::topk"),
    ("n11", "hydrate", "io", "core::lookup"),
    ("n12", "select", "cpu", "core::select"),
];

fn edges() -> Json {
    json!([
        ["n0", "n1"],
        ["n1", "n2"],
        ["n0", "n3"],
        ["n1", "n4"],
        ["n2", "n5"],
        ["n3", "n5"],
        ["n4", "n5"],
        ["n0", "n6"],
        ["n5", "n7"],
        ["n6", "n7"],
        ["n7", "n8"],
        ["n8", "n9"],
        ["n9", "n10"],
        ["n10", "n11"],
        ["n11", "n12"],
    ])
}

fn ledger() -> Json {
    json!([
        {"node": "recent", "reason": "timeout", "fallback": "stale", "waited_us": 20_120, "rows": 40, "age_us": 5_400_000},
        {"node": "media", "reason": "error", "fallback": "empty", "waited_us": 9_100, "rows": 0,
         "detail": "catalog: connection reset by peer"},
        {"node": "hydrate", "reason": "shed", "fallback": "empty", "waited_us": 0, "rows": 0},
    ])
}

/// The same with the nodes of the graph, as runs have it.
fn joined_ledger() -> Json {
    let mut ledger = ledger();
    for (entry, stage) in ledger.as_array_mut().unwrap().iter_mut().zip(["n2", "n4", "n11"]) {
        entry["stage"] = stage.into();
        entry["name"] = NODES.iter().find(|(id, ..)| *id == stage).unwrap().1.into();
    }
    // The name of a node with its op.
    ledger[2]["name"] = "hydrate (lookup)".into();
    ledger
}

fn timeline() -> Json {
    let node = |id: &str, times: [f64; 3], critical: bool| {
        json!({"id": id, "queued_ms": times[0], "start_ms": times[1], "end_ms": times[2], "state": "finished",
               "reason": null, "timeout_ms": null, "critical": critical})
    };
    let mut nodes = vec![
        node("n0", [0.0, 0.12, 6.21], true),
        node("n1", [6.21, 6.3, 14.84], true),
        node("n2", [14.84, 16.9, 36.92], true),
        node("n3", [6.21, 6.33, 11.4], false),
        node("n4", [14.84, 15.1, 24.2], false),
        node("n6", [6.21, 6.42, 9.93], false),
        node("n5", [36.92, 36.93, 37.41], true),
        node("n7", [37.41, 37.42, 37.83], true),
        node("n8", [37.83, 38.61, 43.92], true),
        node("n9", [43.92, 43.93, 44.14], true),
        node("n10", [44.14, 44.15, 44.62], true),
        node("n12", [44.62, 44.73, 47.12], true),
    ];
    nodes[2]["state"] = "fell_back".into();
    nodes[2]["reason"] = "timeout".into();
    nodes[2]["timeout_ms"] = 20.into();
    // Soon after its end.
    nodes[3]["timeout_ms"] = 6.into();
    nodes[4]["state"] = "failed".into();
    nodes[4]["reason"] = "catalog: connection reset by peer".into();
    nodes.push(json!({"id": "n11", "queued_ms": 44.62, "start_ms": null, "end_ms": null, "state": "dropped",
                      "reason": "shed: too little time was left", "timeout_ms": null, "critical": false}));
    json!({"wall_ms": 47.2, "nodes": nodes})
}

/// A run with all that is known of it.
pub(crate) fn detail(run: &Json) -> Json {
    let mut all = run.clone();
    let is_plan = run["kind"] == "plan";
    let is_degraded = run["state"] == "degraded";
    let nodes: Vec<Json> =
        NODES.iter().map(|(id, name, kind, _)| json!({"id": id, "name": name, "kind": kind})).collect();
    all["deadline_ms"] = if is_plan { 50.into() } else { Json::Null };
    all["error"] = match run["state"] == "failed" {
        true => "media: catalog: connection reset by peer <img src=x onerror=window.harmed=1>".into(),
        false => Json::Null,
    };
    all["request"] = if is_plan { json!({"user_id": 7}) } else { Json::Null };
    all["ledger"] = if is_degraded { joined_ledger() } else { json!([]) };
    all["graph"] = if is_plan { json!({"nodes": nodes, "edges": edges()}) } else { Json::Null };
    all["timeline"] = if is_plan { timeline() } else { Json::Null };
    all
}

pub(crate) fn status() -> Json {
    json!({
        "blobs": 1203, "blob_bytes": 88_231_002_u64, "recipes": 4120, "memos": 3990, "pins": 3, "names": 12,
        "used_bytes": 102_311_002_u64, "index_bytes": 1, "cache_entries": 812, "cache_bytes": 50_331_648,
        "cache_hits": 1, "cache_misses": 1, "functions": 117, "gets": 10_231, "hits": 9870, "computed": 361,
        "failed": 2, "computing": 1,
        "health": {"fine": false, "lost": 0, "damaged": 2, "diverged": 0, "failures": 0, "index_damaged": false, "index_rebuilt": 0, "over_quota": false},
    })
}

pub(crate) fn plans() -> Json {
    let plan = |(at, name): (usize, &&str)| {
        let problem = "plans/notify.plan.ts:12:7: unknown key `pirce` (did you mean `price`?)";
        json!({
            "name": name, "version": format!("9f3c2a7d41be{at}"), "nodes": 13, "deadline_ms": 50,
            "requests": 128_400 - at * 9000, "in_flight": at * 2, "p50_ms": 14.21 + at as f64,
            "p99_ms": 41.83 + at as f64 * 3.0, "error_rate": if at == 3 { 0.021 } else { 0.0 },
            "degraded_rate": at as f64 * 0.012, "problem": (at == 4).then_some(problem),
            "canary": (at == 1).then(|| json!({"version": "77aa01cc", "share": 0.05})),
        })
    };
    let plans: Vec<Json> = PLANS.iter().enumerate().map(plan).collect();
    json!({"plans": plans})
}

pub(crate) fn plan(name: &str) -> Json {
    let node = |(at, (id, name, kind, op)): (usize, &(&str, &str, &str, &str))| {
        let waits = *kind == "io";
        json!({
            "id": id, "name": name, "op": op, "level": at, "kind": kind,
            "fallback": match *id { "n2" => Some("stale"), "n11" => Some("empty"), _ => None },
            "timeout_ms": (*id == "n2").then_some(20), "runs": 12_000,
            "p50_ms": if waits { 4.13 + at as f64 * 0.7 } else { 0.213 + at as f64 * 0.05 },
            "p99_ms": if waits { 18.4 + at as f64 } else { 0.91 + at as f64 * 0.1 },
            "error_rate": if *id == "n4" { 0.021 } else { 0.0 },
        })
    };
    let nodes: Vec<Json> = NODES.iter().enumerate().map(node).collect();
    json!({
        "name": name, "version": "9f3c2a7d41be", "warnings": ["media: the endpoint `catalog` has no timeout"],
        "canary": null, "deadline_ms": 50,
        "parameters": [
            {"name": "limit", "kind": "int", "nullable": false, "default": 50},
            {"name": "country", "kind": "string", "nullable": true, "default": null},
            {"name": "diversity", "kind": "float", "nullable": false, "default": 0.3},
            {"name": "debug", "kind": "bool", "nullable": false, "default": false},
            // An integer for JavaScript, and none that it rounds.
            {"name": "ceiling", "kind": "float", "nullable": false, "default": 1e300},
        ],
        "graph": {"nodes": nodes, "edges": edges()},
        "latency": {"p50_ms": 14.21, "p90_ms": 28.84, "p99_ms": 41.83, "count": 128_400},
        "example_request": {"user_id": 1}, "explain": {},
    })
}

pub(crate) fn answer() -> Json {
    let row = |at: usize| {
        let titles = ["Fjord walks", "A loaf in a day", "Night trains", "<b>bold</b> claims"];
        // One that a double cannot hold.
        let id = if at == 0 { LARGE_ID } else { 101 + at as u64 };
        json!({"id": id, "fields": {"title": titles[at % 4], "price": 9.5 + at as f64, "score": 1.0 / (at + 1) as f64}})
    };
    let rows: Vec<Json> = (0..20).map(row).collect();
    json!({"request_id": "r1", "engine_request_id": "e1", "candidates": rows, "ledger": ledger()})
}

/// Names, and the digits of their addresses.
pub(crate) const NAMES: [(&str, &str); 2] = [("report.gz", "07"), ("sales.csv", "a1")];

pub(crate) fn functions() -> Json {
    let function = |function: &str, about: &str| json!({"function": function, "about": about, "inputs_least": 1, "inputs_most": 1, "other_params": false, "params": []});
    json!({"functions": [function("grep/1.0.0", "lines that contain a pattern"), function("sort/1.0.0", "sorted lines")]})
}

pub(crate) fn closure() -> Json {
    let [sales, oslo, sorted, head, gone, report, packed] =
        ["a1", "b2", "c3", "d4", "e5", "f6", "07"].map(|digits| digits.repeat(32));
    let recipe = |address: &str, function: &str, name: Option<&str>, value: &str, inputs: &[&str]| {
        let is_known = value != "unknown";
        json!({"address": address, "kind": "recipe", "function": function, "name": name, "value": value,
               "size": is_known.then_some(20_311), "cpu_ms": is_known.then_some(12.25), "inputs": inputs})
    };
    json!({"root": packed, "truncated": false, "nodes": [
        {"address": sales, "kind": "blob", "function": null, "name": "sales.csv", "value": "stored", "size": 1_830_211, "cpu_ms": null, "inputs": []},
        recipe(&oslo, "grep/1.0.0", Some("oslo"), "stored", &[&sales]),
        recipe(&sorted, "sort/1.0.0", None, "evicted", &[&oslo]),
        recipe(&head, "head/1.0.0", None, "unknown", &[&sorted]),
        {"address": gone, "kind": "missing", "function": null, "name": null, "value": "unknown", "size": null, "cpu_ms": null, "inputs": []},
        recipe(&report, "concat/1.0.0", Some("report"), "unknown", &[&head, &gone, &oslo]),
        recipe(&packed, "gzip/1.0.0", Some("report.gz"), "unknown", &[&report]),
    ]})
}

/// The cells when 42,000 rows have begun: a staircase from the first column to the last.
pub(crate) fn cells() -> Vec<u8> {
    let state = |row: usize, column: usize| match row + column * 900 {
        lag if lag >= 42_700 => 0,
        lag if lag >= 42_000 => 1,
        _ if (row * 31 + column * 7).is_multiple_of(997) => 3,
        _ if row.is_multiple_of(211) && column > 4 => 5,
        _ if row.is_multiple_of(13) && column == 8 => 4,
        _ => 2,
    };
    (0..ROWS).flat_map(|row| (0..COLUMNS.len()).map(move |column| state(row, column))).collect()
}

/// The dataset, as its page and its progress events have it.
pub(crate) fn dataset(state: &str) -> Json {
    let mut dataset = progress(state, 42_000, 184.0);
    let sample = |second: u32| {
        let now = progress(state, 42_000, f64::from(second));
        let models = now["models"].as_array().unwrap();
        let sum = |name: &str| models.iter().map(|model| model[name].as_f64().unwrap()).sum::<f64>();
        let pace = 1_500.0 + 200.0 * (f64::from(second) / 17.0).sin();
        json!([second, pace.round(), sum("in_flight"), sum("limit"), now["cost"]])
    };
    dataset["history"] = (1..=184).map(sample).collect();
    dataset["event"] = 0.into();
    dataset
}

/// A page that tells what it may do, as a timeline or a report.
pub(crate) const FILE: &str = "<!doctype html><html><head><style>p { color: rgb(1, 2, 3) }</style></head><body><p>A file</p><script>\
    let kept; try { kept = sessionStorage.length; } catch { kept = 'refused'; }\
    parent.postMessage({ color: getComputedStyle(document.querySelector('p')).color, kept, origin: self.origin,\
      theme: document.documentElement.dataset.theme ?? 'system' }, '*');</script></body></html>";

pub(crate) fn progress(state: &str, done: usize, elapsed: f64) -> Json {
    let column = |(at, name): (usize, &&str)| {
        json!({"name": name, "kind": if at < 2 { "sampler" } else { "llm_text" }, "finished": done.saturating_sub(at * 900),
               "failed": at * 12, "skipped": if at == 8 { 3200 } else { 0 }, "retried": at * 40,
               "cells_per_second": 210.5 - at as f64 * 9.0})
    };
    let columns: Vec<Json> = COLUMNS.iter().enumerate().map(column).collect();
    let wave = 48.0 + 8.0 * (elapsed / 9.0).sin();
    json!({
        "id": DATASET, "name": "support-tickets", "state": state, "rows": ROWS, "rows_done": done, "rows_dropped": 199,
        "columns": columns, "errors": {"rate_limited": 42, "timeout": 31},
        "models": [
            {"name": "openai/small", "limit": wave.round(), "in_flight": (wave - 3.0).round(), "cooling_ms": null, "calls": 120_411, "refused": 42},
            {"name": "local/judge", "limit": 12, "in_flight": 12, "cooling_ms": 1200, "calls": 40_210, "refused": 3},
        ],
        "usage": {"openai/small": {"input_tokens": 8_123_000, "output_tokens": 2_011_000}},
        "cost": 0.171 * elapsed, "elapsed_seconds": elapsed, "left_seconds": 255.0, "run": DATASET,
        "config": "columns:\n  - name: topic\n",
    })
}

pub(crate) fn rows() -> Vec<Json> {
    vec![json!({"topic": "billing", "ticket": "My card was charged twice.", "score": 4}); 2]
}

pub(crate) fn errors() -> Json {
    json!({"errors": [{"row": 31, "column": "ticket", "class": "timeout", "message": "no reply within 30 s"}], "next": null})
}
