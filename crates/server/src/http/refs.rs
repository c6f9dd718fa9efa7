//! Names and their addresses.

use std::sync::Arc;

use anabranch_content::{Address, Error, NameChange};
use axum::Json;
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::header::{IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value as Object, json};
use tonic::Code;

use crate::failure::{Failure, refusal};
use crate::service::Shared;

/// The query of a list of names.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Page {
    after: Option<String>,
    limit: Option<usize>,
}

/// A page of the names that have an address, in order.
pub(super) async fn list(
    State(shared): State<Arc<Shared>>,
    query: Result<Query<Page>, QueryRejection>,
) -> Result<Response, Failure> {
    let Page { after, limit } = query.map_err(|rejection| super::wrong_query(&rejection))?.0;
    if limit == Some(0) {
        return Err(Failure::new(Code::InvalidArgument, "`limit` is 0; it must be 1 or more"));
    }
    let page = shared.names(after.as_deref().unwrap_or_default(), limit.unwrap_or(0)).await?;
    let named = |(name, address): (String, Address)| json!({ "name": name, "address": address.to_string() });
    let refs: Vec<Object> = page.names.into_iter().map(named).collect();
    Ok(Json(json!({ "refs": refs, "next": page.next })).into_response())
}

/// The address of a name, and its earlier addresses.
pub(super) async fn show(
    State(shared): State<Arc<Shared>>,
    name: Result<Path<String>, PathRejection>,
) -> Result<Response, Failure> {
    let name = super::path(name)?;
    let history = shared.executor.store().history(&name).await?;
    match history.last() {
        None => Err(Failure::new(
            Code::NotFound,
            format!("there is no name {name:?}; GET /v1/refs lists all names"),
        )),
        Some(_) => Ok(described(&name, &history)),
    }
}

fn described(name: &str, history: &[NameChange]) -> Response {
    let text = |address: Option<Address>| address.map(|address| address.to_string());
    let step = |named: &NameChange| json!({ "address": text(named.address), "at": named.at.0 });
    let steps: Vec<Object> = history.iter().map(step).collect();
    let now = text(history.last().and_then(|named| named.address));
    Json(json!({ "name": name, "address": now, "history": steps })).into_response()
}

/// The new address of a name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewAddress {
    address: String,
}

/// Points a name to an address.
pub(super) async fn set(
    State(shared): State<Arc<Shared>>,
    name: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    let name = super::path(name)?;
    let address = super::parsed(&shared, body, |text, _| {
        let bad = |message: String| Failure::new(Code::InvalidArgument, message);
        let new: NewAddress = serde_json::from_slice(text)
            .map_err(|error| bad(format!("the body is not {{\"address\": \"...\"}}: {error}")))?;
        new.address.parse().map_err(|problem| bad(format!("`address`: {problem}")))
    })
    .await?;
    if let Some(conflict) = change(&shared, &name, Some(address), &headers).await? {
        return Ok(conflict);
    }
    let history = shared.executor.store().history(&name).await?;
    Ok(described(&name, &history))
}

/// Changes a name if it has the expected address; else the response is the refusal.
async fn change(
    shared: &Shared,
    name: &str,
    address: Option<Address>,
    headers: &HeaderMap,
) -> Result<Option<Response>, Failure> {
    let store = shared.executor.store();
    let done = match expected(headers)? {
        None => store.name(name, address).await,
        Some(expected) => store.name_if(name, address, expected).await,
    };
    if let Err(conflict @ Error::NameConflict { .. }) = &done {
        return Ok(Some(refusal(StatusCode::PRECONDITION_FAILED, "name_conflict", &conflict.to_string())));
    }
    done?;
    Ok(None)
}

/// The expected address of the name: `If-Match: "ADDRESS"`, or none with `If-None-Match: *`.
fn expected(headers: &HeaderMap) -> Result<Option<Option<Address>>, Failure> {
    let bad = |message: &str| Failure::new(Code::InvalidArgument, message);
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default().trim());
    match (text(IF_MATCH), text(IF_NONE_MATCH)) {
        (None, None) => Ok(None),
        (None, Some("*")) => Ok(Some(None)),
        (Some(address), None) => {
            let address = address.trim_matches('"').parse();
            address.map(|it| Some(Some(it))).map_err(|_| bad("`If-Match` is not one quoted address"))
        }
        _ => Err(bad("use either `If-Match: \"ADDRESS\"` or `If-None-Match: *`")),
    }
}

/// Removes the address of a name.
pub(super) async fn remove(
    State(shared): State<Arc<Shared>>,
    name: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let name = super::path(name)?;
    if shared.executor.store().named(&name).await?.is_none() {
        return Err(Failure::new(
            Code::NotFound,
            format!("there is no name {name:?}; GET /v1/refs lists all names"),
        ));
    }
    let conflict = change(&shared, &name, None, &headers).await?;
    Ok(conflict.unwrap_or_else(|| StatusCode::NO_CONTENT.into_response()))
}
