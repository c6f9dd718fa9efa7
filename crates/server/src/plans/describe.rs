//! Plans in the format of lists and pages.

use std::sync::atomic::Ordering;
use std::time::Duration;

use anabranch_engine::NodeId;
use anabranch_plan::registry::{ParamEntry, Shape, Status};
use anabranch_plan::{Kind, Registries, Scalar};
use anabranch_plan_inspect::explain;
use serde_json::{Map, Value, json};

use super::table::{Entry, Table};
use super::version::Version;
use super::{PlanFailure, Plans};

impl Plans {
    /// A summary of all plans.
    pub(crate) fn list(&self) -> Value {
        let table = self.table();
        let plans: Vec<Value> = table.plans.values().map(|entry| summary(entry)).collect();
        json!({"plans": plans, "problem": table.problem})
    }

    /// One plan with its graph, its parameters and its latencies.
    pub(crate) fn describe(&self, name: &str) -> Result<Value, PlanFailure> {
        let entry = self.entry(name)?;
        let table = self.table();
        Ok(described(&entry, &table))
    }
}

pub(super) fn summary(entry: &Entry) -> Value {
    let latency = entry.counts.latency.read();
    let (error_rate, degraded_rate) = entry.counts.rates();
    let current = entry.current.as_deref();
    json!({
        "name": &*entry.name,
        "version": current.map(|version| &version.id),
        "nodes": current.map(|version| version.explanation().nodes.len()),
        "deadline_ms": current.and_then(|version| version.plan.compiled().deadline).map(millis),
        "requests": entry.counts.ended(),
        "in_flight": entry.counts.in_flight(),
        "p50_ms": latency.percentile_ms(0.5),
        "p99_ms": latency.percentile_ms(0.99),
        "error_rate": error_rate,
        "degraded_rate": degraded_rate,
        "canary": canary(entry),
        "problem": entry.problem,
    })
}

fn canary(entry: &Entry) -> Option<Value> {
    let canary = entry.canary.as_ref()?;
    let stats = &canary.version.stats;
    let latency = stats.latency.read();
    let failed = stats.failed.load(Ordering::Relaxed);
    Some(json!({
        "version": canary.version.id,
        "share": canary.share,
        "requests": latency.count,
        "error_rate": failed as f64 / latency.count.max(1) as f64,
        "p99_ms": latency.percentile_ms(0.99),
    }))
}

fn described(entry: &Entry, table: &Table) -> Value {
    let registries = table.engine.registries();
    let latency = entry.counts.latency.read();
    let mut page = json!({
        "name": &*entry.name,
        "version": null,
        "warnings": [],
        "problem": entry.problem,
        "canary": canary(entry),
        "deadline_ms": null,
        "requests": entry.counts.ended(),
        "in_flight": entry.counts.in_flight(),
        "parameters": parameters(registries),
        "graph": null,
        "latency": {
            "p50_ms": latency.percentile_ms(0.5),
            "p90_ms": latency.percentile_ms(0.9),
            "p99_ms": latency.percentile_ms(0.99),
            "count": latency.count,
        },
        "example_request": example(entry, registries),
        "explain": null,
    });
    let Some(version) = &entry.current else { return page };
    let warnings: Vec<String> = version.plan.warnings().iter().map(ToString::to_string).collect();
    page["version"] = version.id.as_str().into();
    page["warnings"] = warnings.into();
    page["deadline_ms"] = version.plan.compiled().deadline.map(millis).into();
    page["graph"] = graph(version);
    page["explain"] = serde_json::to_value(version.explanation()).expect("names and numbers are JSON");
    page
}

/// The parameters that requests may set.
fn settable(registries: &Registries) -> impl Iterator<Item = &ParamEntry> {
    registries.params.iter().filter(|param| param.status == Status::Active && param.allow_write)
}

fn parameters(registries: &Registries) -> Vec<Value> {
    let parameter = |param: &ParamEntry| {
        json!({
            "name": param.name,
            "kind": param.type_name(),
            "nullable": param.nullable,
            "default": param.default.as_ref().map(scalar),
            "doc": param.doc,
        })
    };
    settable(registries).map(parameter).collect()
}

/// An example request: user 1, every parameter at its default or at a small value, and two candidates if the plan takes
/// candidates.
fn example(entry: &Entry, registries: &Registries) -> Value {
    let mut overrides = Map::new();
    for param in settable(registries) {
        let value = match (&param.default, param.shape, param.kind) {
            (Some(default), ..) => scalar(default),
            (None, ..) if param.nullable => continue,
            (None, Shape::List, _) => json!([]),
            (None, Shape::One, Kind::Int) => json!(1),
            (None, Shape::One, Kind::Float) => json!(1.0),
            (None, Shape::One, Kind::Bool) => json!(false),
            (None, Shape::One, Kind::Text) => json!(""),
        };
        overrides.insert(param.name.clone(), value);
    }
    let mut request = json!({"user_id": 1});
    if !overrides.is_empty() {
        request["param_overrides"] = Value::Object(overrides);
    }
    let takes_candidates =
        |version: &Version| version.explanation().nodes.iter().any(|node| node.op == "core::candidates");
    if entry.current.as_deref().is_some_and(takes_candidates) {
        request["candidates"] = json!([1, 2]);
    }
    request
}

fn scalar(value: &Scalar) -> Value {
    match value {
        Scalar::Int(value) => (*value).into(),
        Scalar::Float(value) => (*value).into(),
        Scalar::Bool(value) => (*value).into(),
        Scalar::Text(value) => (&**value).into(),
    }
}

/// The stages with their times. A stage is one node of the engine's graph.
fn graph(version: &Version) -> Value {
    let (explanation, compiled) = (version.explanation(), version.plan.compiled());
    let fallback = |stage: usize| {
        let region = compiled.regions.iter().find(|region| region.exit == stage)?;
        let names: Vec<String> = region.stand_ins.iter().map(|stand_in| stand_in.name()).collect();
        Some(names.join(", "))
    };
    let op = |stage: &explain::Stage| {
        let of = |id: &String| explanation.nodes.iter().find(|node| node.id == *id);
        let ops: Vec<&str> = stage.nodes.iter().filter_map(of).map(|node| node.op.as_str()).collect();
        ops.join(" > ")
    };
    let node = |(number, stage): (usize, &explain::Stage)| {
        let stats = &version.stats.nodes[number];
        let latency = stats.latency.read();
        let failed = stats.failed.load(Ordering::Relaxed);
        json!({
            "id": format!("n{number}"),
            "name": stage.name,
            "op": op(stage),
            "nodes": stage.nodes,
            "level": stage.level,
            "kind": kind_word(stage.kind),
            "trips": stage.trips,
            "fallback": fallback(number),
            "timeout_ms": compiled.policies.of(NodeId(number as u32)).timeout.map(millis),
            "p50_ms": latency.percentile_ms(0.5),
            "p99_ms": latency.percentile_ms(0.99),
            "runs": latency.count,
            "error_rate": failed as f64 / latency.count.max(failed).max(1) as f64,
        })
    };
    let nodes: Vec<Value> = explanation.stages.iter().enumerate().map(node).collect();
    let edges = explanation.stages.iter().enumerate().flat_map(|(number, stage)| {
        stage.after.iter().map(move |after| json!([format!("n{}", after.stage), format!("n{number}")]))
    });
    json!({"nodes": nodes, "edges": edges.collect::<Vec<_>>()})
}

/// The kind of a stage, in the words of the console.
pub(super) fn kind_word(kind: explain::Kind) -> &'static str {
    match kind {
        explain::Kind::Wait => "io",
        explain::Kind::Compute => "cpu",
        explain::Kind::Gate => "gate",
        explain::Kind::Timer => "timer",
    }
}

pub(super) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
