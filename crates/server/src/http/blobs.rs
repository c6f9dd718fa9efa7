//! Blobs and values of recipes: ranges, entity tags, streams.

use std::ops::Range;
use std::sync::Arc;

use anabranch_content::Address;
use anabranch_recipe::{Error, FetchedValue, Get};
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, IF_NONE_MATCH, IF_RANGE,
    LOCATION, RANGE,
};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde_json::json;
use tonic::Code;

use crate::failure::{Failure, refusal};
use crate::observe::CallInfo;
use crate::pieces::upload;
use crate::service::Shared;

/// Stores the body, up to the size limit.
pub(super) async fn put(
    State(shared): State<Arc<Shared>>,
    Extension(CallInfo { caller, .. }): Extension<CallInfo>,
    body: Body,
) -> Result<Response, Failure> {
    let put = shared.executor.put_stream(upload(&shared, &caller, body.into_data_stream())).await?;
    let status = if put.new { StatusCode::CREATED } else { StatusCode::OK };
    let address = put.address.to_string();
    let location = [(LOCATION, format!("/v1/blobs/{address}"))];
    let body = Json(json!({ "address": address, "size": put.len, "new": put.new }));
    Ok((status, location, body).into_response())
}

/// The bytes of a blob. Unlike the value of a recipe, they never change.
pub(super) async fn get(
    State(shared): State<Arc<Shared>>,
    address: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let address = super::path(address)?;
    let address: Address = address
        .parse()
        .map_err(|problem| Failure::new(Code::InvalidArgument, format!("{address:?}: {problem}")))?;
    if shared.executor.store().size(&address).await?.is_none() {
        let message = format!(
            "{address} is not a blob of this server; a recipe's value is at /v1/recipes/{address}/value"
        );
        return Err(Failure::new(Code::NotFound, message));
    }
    let got = shared.executor.get(&address, &Get::default()).await?;
    answer(&shared, got, &headers, "public, max-age=31536000, immutable").await
}

/// A value, or the part of it that the headers ask for, or "not modified".
pub(super) async fn answer(
    shared: &Shared,
    got: FetchedValue,
    headers: &HeaderMap,
    caching: &'static str,
) -> Result<Response, Failure> {
    let tag = format!("\"{}\"", got.output);
    let common =
        [(ETAG, tag.clone()), (CACHE_CONTROL, caching.to_owned()), (ACCEPT_RANGES, "bytes".to_owned())];
    if text(headers, IF_NONE_MATCH).is_some_and(|wanted| is_listed(wanted, &tag)) {
        return Ok((StatusCode::NOT_MODIFIED, common).into_response());
    }
    let same = text(headers, IF_RANGE).is_none_or(|wanted| wanted == tag);
    let wanted =
        text(headers, RANGE).filter(|_| same).map_or(WantedRange::All, |range| parse(range, got.size));
    let size = got.size;
    match wanted {
        WantedRange::All => {
            let about = [(CONTENT_LENGTH, size.to_string()), (CONTENT_TYPE, BYTES.to_owned())];
            Ok((common, about, stream(got)).into_response())
        }
        WantedRange::Part(range) => {
            let terms = Get { range: range.clone(), ..Get::default() };
            let part = shared.executor.get(&got.output, &terms).await?;
            let about = [
                (CONTENT_LENGTH, (range.end - range.start).to_string()),
                (CONTENT_TYPE, BYTES.to_owned()),
                (CONTENT_RANGE, format!("bytes {}-{}/{size}", range.start, range.end - 1)),
            ];
            Ok((StatusCode::PARTIAL_CONTENT, common, about, stream(part)).into_response())
        }
        WantedRange::Beyond => Ok(WantedRange::refused(size)),
    }
}

const BYTES: &str = "application/octet-stream";

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

fn stream(mut got: FetchedValue) -> Body {
    match got.whole() {
        Some(bytes) => Body::from(bytes),
        None => Body::from_stream(futures_util::TryStreamExt::map_err(got.into_stream(), BodyError)),
    }
}

/// An error while a body is sent. It ends the body before its announced length.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct BodyError(Error);

/// Whether a list of entity tags has this one. A weak tag may match, because equal tags mean equal bytes.
fn is_listed(list: &str, tag: &str) -> bool {
    list.split(',').map(str::trim).any(|one| one == "*" || one.strip_prefix("W/").unwrap_or(one) == tag)
}

/// The part of some bytes that a request wants.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WantedRange {
    All,
    Part(Range<u64>),
    Beyond,
}

impl WantedRange {
    /// The range that the headers name, of `size` bytes without a tag.
    pub(super) fn of(headers: &HeaderMap, size: u64) -> WantedRange {
        // A tag that the client has cannot be that of these bytes.
        let range = text(headers, RANGE).filter(|_| !headers.contains_key(IF_RANGE));
        range.map_or(WantedRange::All, |range| parse(range, size))
    }

    /// The refusal of a range behind the last byte.
    pub(super) fn refused(size: u64) -> Response {
        let message = format!("the range begins after the last of {size} bytes");
        let refusal = refusal(StatusCode::RANGE_NOT_SATISFIABLE, "range_not_satisfiable", &message);
        ([(CONTENT_RANGE, format!("bytes */{size}"))], refusal).into_response()
    }
}

/// Parses one range of bytes. If it is malformed or there are several, the response has all bytes, as HTTP allows.
fn parse(range: &str, size: u64) -> WantedRange {
    let Some((first, last)) = range.strip_prefix("bytes=").and_then(|range| range.split_once('-')) else {
        return WantedRange::All;
    };
    let number = |text: &str| -> Option<u64> {
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
    };
    match (number(first), number(last)) {
        (None, Some(0)) if first.is_empty() => WantedRange::Beyond,
        (None, Some(_)) if first.is_empty() && size == 0 => WantedRange::Beyond,
        (None, Some(count)) if first.is_empty() => WantedRange::Part(size.saturating_sub(count)..size),
        (Some(first), Some(last)) if last < first => WantedRange::All,
        (Some(first), Some(_)) if first >= size => WantedRange::Beyond,
        (Some(first), None) if last.is_empty() && first >= size => WantedRange::Beyond,
        (Some(first), Some(last)) => WantedRange::Part(first..last.saturating_add(1).min(size)),
        (Some(first), None) if last.is_empty() => WantedRange::Part(first..size),
        _ => WantedRange::All,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        let part = |range| WantedRange::Part(range);
        for (range, size, wanted) in [
            ("bytes=0-4", 10, part(0..5)),
            ("bytes=5-", 10, part(5..10)),
            ("bytes=-3", 10, part(7..10)),
            ("bytes=-30", 10, part(0..10)),
            ("bytes=8-100", 10, part(8..10)),
            ("bytes=0-18446744073709551615", 10, part(0..10)),
            ("bytes=10-", 10, WantedRange::Beyond),
            ("bytes=10-12", 10, WantedRange::Beyond),
            ("bytes=-0", 10, WantedRange::Beyond),
            ("bytes=0-", 0, WantedRange::Beyond),
            ("bytes=-1", 0, WantedRange::Beyond),
            ("bytes=4-2", 10, WantedRange::All),
            ("bytes=0-1,3-4", 10, WantedRange::All),
            ("bytes=a-b", 10, WantedRange::All),
            ("bytes=-", 10, WantedRange::All),
            ("lines=0-1", 10, WantedRange::All),
        ] {
            assert_eq!(parse(range, size), wanted, "{range} of {size}");
        }
    }

    #[test]
    fn tags() {
        let tag = "\"aa\"";
        assert!(is_listed("\"aa\"", tag) && is_listed("\"bb\", W/\"aa\"", tag) && is_listed("*", tag));
        assert!(!is_listed("\"bb\"", tag) && !is_listed("", tag) && !is_listed("aa", tag));
    }
}
