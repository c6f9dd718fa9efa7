//! Recipes: add, describe, and compute.

use std::sync::Arc;

use anabranch_recipe::{Draft, DraftInput, Get, UnknownFunction};
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use tonic::Code;

use super::json::{self, Input, OneOrMany, WrittenRecipe};
use crate::deadline;
use crate::failure::Failure;
use crate::observe::CallInfo;
use crate::service::Shared;
use crate::wire::Target;

/// The query of an addition of recipes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AddQuery {
    /// `refuse` or `accept`.
    unknown_function: Option<String>,
}

/// Stores a recipe or a list of recipes.
pub(super) async fn add(
    State(shared): State<Arc<Shared>>,
    query: Result<Query<AddQuery>, QueryRejection>,
    body: Body,
) -> Result<Response, Failure> {
    let unknown =
        match query.map_err(|rejection| super::wrong_query(&rejection))?.0.unknown_function.as_deref() {
            None | Some("refuse") => UnknownFunction::Refuse,
            Some("accept") => UnknownFunction::Accept,
            Some(other) => {
                let message = format!("`unknown_function` is {other:?}; it may be refuse or accept");
                return Err(Failure::new(Code::InvalidArgument, message));
            }
        };
    let written = super::parsed(&shared, body, json::read).await?;
    let (list, one) = match written {
        OneOrMany::One(written) => (vec![written], true),
        OneOrMany::Many(list) => (list, false),
    };
    let mut drafts = Vec::with_capacity(list.len());
    let mut looked_up = 0;
    for written in list {
        drafts.push(draft(&shared, written, &mut looked_up).await?);
    }
    shared.check_drafts(&drafts)?;
    let added = shared.executor.add_all(&drafts, unknown).await?;
    let is_new = added.iter().any(|added| added.new);
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    let mut answer: Vec<_> = added.iter().map(json::added).collect();
    let answer = if one { answer.remove(0) } else { answer.into() };
    Ok((status, Json(answer)).into_response())
}

/// The number of names that are looked up between two yields to other requests: less than a millisecond.
const LOOKUPS: usize = 256;

async fn draft(shared: &Shared, written: WrittenRecipe, looked_up: &mut usize) -> Result<Draft, Failure> {
    let mut inputs = Vec::with_capacity(written.inputs.len());
    for input in written.inputs {
        inputs.push(match input {
            Input::Place(place) => DraftInput::Earlier(place),
            Input::Target(target) => {
                *looked_up += 1;
                if looked_up.is_multiple_of(LOOKUPS) {
                    tokio::task::yield_now().await;
                }
                DraftInput::Address(shared.find(&target).await?)
            }
        });
    }
    Ok(Draft { function: written.function, inputs, params: written.params })
}

#[derive(Debug, Serialize)]
struct RecipeDescription<'a> {
    address: String,
    recipe: json::DescribedRecipe<'a>,
    memo: Option<serde_json::Value>,
}

/// A recipe, and its remembered value if there is one.
pub(super) async fn describe(
    State(shared): State<Arc<Shared>>,
    target: Result<Path<String>, PathRejection>,
) -> Result<Response, Failure> {
    let address = shared.find(&Target::from(&*super::path(target)?)).await?;
    let Some(recipe) = shared.executor.resolve(&address).await? else {
        return Err(Failure::new(Code::NotFound, format!("{address} is not a recipe of this server")));
    };
    let memo = shared.executor.store().status(&address).await?.memo;
    let described = RecipeDescription {
        address: address.to_string(),
        recipe: (&recipe).into(),
        memo: memo.as_ref().map(json::memo),
    };
    Ok(Json(described).into_response())
}

/// The query of a request for a value.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ValueQuery {
    /// A duration such as `500ms`, `1.5s` or `5m`.
    timeout: Option<String>,
}

/// The value of a recipe, computed unless it is stored.
pub(super) async fn value(
    State(shared): State<Arc<Shared>>,
    Extension(call): Extension<CallInfo>,
    target: Result<Path<String>, PathRejection>,
    query: Result<Query<ValueQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let timeout = query.map_err(|rejection| super::wrong_query(&rejection))?.0.timeout;
    let deadline = call.arrival.deadline(deadline::of_request(timeout.as_deref(), &headers)?);
    let name = super::path(target)?;
    let address = shared.find(&Target::from(&*name)).await?;
    let got = shared.value(&name, &address, &Get { deadline, ..Get::default() }).await?;
    let mut answer = super::blobs::answer(&shared, got, &headers, "no-cache").await?;
    // The value of a folder is its listing.
    if answer.status() == StatusCode::OK && shared.executor.folder(&address).await?.is_some() {
        answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    Ok(answer)
}
