//! The graph of a recipe, and the functions that recipes may name.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use anabranch_content::Address;
use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use tonic::Code;

use crate::failure::Failure;
use crate::service::Shared;
use crate::wire::Target;

/// The most nodes in a response, and the default.
const NODES_MOST: usize = crate::api::NODES_MOST as usize;
const NODES: usize = 1_000;

/// The query of a request for a graph.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GraphQuery {
    most: Option<usize>,
}

/// The recipes and blobs that a value depends on, the nearest first.
pub(super) async fn graph(
    State(shared): State<Arc<Shared>>,
    target: Result<Path<String>, PathRejection>,
    query: Result<Query<GraphQuery>, QueryRejection>,
) -> Result<Response, Failure> {
    let most = query.map_err(|rejection| super::wrong_query(&rejection))?.0.most.unwrap_or(NODES);
    if !(1..=NODES_MOST).contains(&most) {
        let message = format!("`most` is {most}; it may be 1 to {NODES_MOST}");
        return Err(Failure::new(Code::InvalidArgument, message));
    }
    let root = shared.find(&Target::from(&*super::path(target)?)).await?;
    let names: HashMap<Address, String> =
        shared.executor.store().names().await?.into_iter().map(|(name, address)| (address, name)).collect();
    let (mut nodes, mut seen, mut due) = (Vec::new(), HashSet::from([root]), VecDeque::from([root]));
    while nodes.len() < most
        && let Some(address) = due.pop_front()
    {
        let (node, inputs) = node(&shared, address, names.get(&address)).await?;
        nodes.push(node);
        due.extend(inputs.into_iter().filter(|input| seen.insert(*input)));
    }
    if nodes.len() == 1 && nodes[0]["kind"] == "missing" {
        return Err(Failure::new(Code::NotFound, format!("{root} is neither a recipe nor a blob here")));
    }
    let answer = json!({ "root": root.to_string(), "nodes": nodes, "truncated": !due.is_empty() });
    Ok(Json(answer).into_response())
}

async fn node(
    shared: &Shared,
    address: Address,
    name: Option<&String>,
) -> Result<(Value, Vec<Address>), Failure> {
    let store = shared.executor.store();
    let status = store.status(&address).await?;
    let Some(recipe) = shared.executor.resolve(&address).await? else {
        let kind = if status.blob.is_some() { "blob" } else { "missing" };
        let value = if status.blob.is_some() { "stored" } else { "unknown" };
        let node = json!({
            "address": address.to_string(), "kind": kind, "function": null, "name": name, "value": value,
            "size": status.blob.map(|(size, _)| size), "cpu_ms": null, "inputs": [],
        });
        return Ok((node, Vec::new()));
    };
    let value = match &status.memo {
        None => "unknown",
        Some(memo) if store.size(&memo.output).await?.is_some() => "stored",
        Some(_) => "evicted",
    };
    let node = json!({
        "address": address.to_string(), "kind": "recipe", "function": recipe.function.to_string(), "name": name,
        "value": value, "size": status.memo.as_ref().map(|memo| memo.size),
        "cpu_ms": status.memo.as_ref().map(|memo| memo.cost.cpu.as_secs_f64() * 1e3),
        "inputs": recipe.inputs.iter().map(Address::to_string).collect::<Vec<_>>(),
    });
    Ok((node, recipe.inputs))
}

/// The functions that recipes may name.
pub(super) async fn functions(State(shared): State<Arc<Shared>>) -> Response {
    let functions = shared.executor.functions().list().map(|function| {
        let signature = function.signature();
        let param = |param: &anabranch_recipe::Param| {
            json!({
                "name": param.name, "about": param.about, "kind": param.kind.to_string(), "needed": param.is_needed(),
            })
        };
        json!({
            "function": signature.id.to_string(), "about": signature.about,
            "inputs_least": signature.inputs.least, "inputs_most": signature.inputs.most,
            "params": signature.params.iter().map(param).collect::<Vec<_>>(),
            "other_params": signature.other_params,
        })
    });
    Json(json!({ "functions": functions.collect::<Vec<_>>() })).into_response()
}
