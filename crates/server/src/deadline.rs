//! The timeout of a request: `grpc-timeout`, `Request-Timeout` and `?timeout=`, parsed in one place.

use std::time::{Duration, Instant};

use anabranch_text::{duration, quote};
use axum::extract::Query;
use axum::http::{HeaderMap, Uri};
use serde::Deserialize;
use tonic::Code;

use crate::failure::Failure;
use crate::observe::CallInfo;

/// The deadline of a gRPC call.
pub(crate) fn of_call<T>(request: &tonic::Request<T>) -> Result<Option<Instant>, Failure> {
    let within = of_headers(request.metadata().as_ref())?;
    let call = request.extensions().get::<CallInfo>().expect("every request is observed");
    Ok(call.arrival.deadline(within))
}

/// The timeout of an HTTP request: the shortest of `?timeout=`, `Request-Timeout` and `grpc-timeout`.
pub(crate) fn of_request(query: Option<&str>, headers: &HeaderMap) -> Result<Option<Duration>, Failure> {
    let in_query = query.map(written).transpose()?;
    Ok(in_query.into_iter().chain(of_headers(headers)?).min())
}

/// The timeout that a client gave in any of these ways. A malformed one is reported by the handler.
pub(crate) fn of_client(uri: &Uri, headers: &HeaderMap) -> Option<Duration> {
    let has_timeout = uri.query().is_some_and(|query| query.contains("timeout"));
    let query = has_timeout.then(|| Query::<TimeoutQuery>::try_from_uri(uri).ok()).flatten();
    let of_query = query.and_then(|query| query.0.timeout).and_then(|text| written(&text).ok());
    of_query.into_iter().chain(of_headers(headers).ok().flatten()).min()
}

/// The part of a query that all routes with a timeout share.
#[derive(Deserialize)]
struct TimeoutQuery {
    timeout: Option<String>,
}

/// The timeout in the headers, such as `Request-Timeout: 150ms` or `grpc-timeout: 150m`.
pub(crate) fn of_headers(headers: &HeaderMap) -> Result<Option<Duration>, Failure> {
    let bad = |message: &str| Failure::new(Code::InvalidArgument, message);
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let of_grpc = text("grpc-timeout").map(|text| {
        let problem = "`grpc-timeout` is not a time: up to 8 digits and one of H, M, S, m, u, n";
        grpc_timeout(text).ok_or_else(|| bad(problem))
    });
    let of_http = text("request-timeout").map(|text| {
        duration::parse(text)
            .map_err(|problem| bad(&format!("`Request-Timeout` is {}: {problem}", quote(text))))
    });
    Ok(of_grpc.transpose()?.into_iter().chain(of_http.transpose()?).min())
}

fn grpc_timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(count * 3600),
        "M" => Duration::from_secs(count * 60),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return None,
    })
}

/// Parses a duration such as `500ms`, `2s` or `5m`.
pub(crate) fn written(text: &str) -> Result<Duration, Failure> {
    duration::parse(text)
        .map_err(|problem| Failure::new(Code::InvalidArgument, format!("{}: {problem}", quote(text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_time_counts() {
        let mut headers = HeaderMap::new();
        headers.insert("request-timeout", "150ms".parse().unwrap());
        headers.insert("grpc-timeout", "90m".parse().unwrap());
        let of = |query, headers: &HeaderMap| of_request(query, headers).unwrap();
        assert_eq!(of(Some("2s"), &headers), Some(Duration::from_millis(90)));
        assert_eq!(of(Some("20ms"), &headers), Some(Duration::from_millis(20)));
        assert_eq!(of(None, &HeaderMap::new()), None);
        headers.insert("request-timeout", "soon".parse().unwrap());
        assert!(of_request(None, &headers).unwrap_err().message.contains("`Request-Timeout` is `soon`"));
    }

    #[test]
    fn a_client_may_give_its_timeout_anywhere() {
        let none = HeaderMap::new();
        let of = |uri: &str, headers: &HeaderMap| of_client(&uri.parse().unwrap(), headers);
        assert_eq!(of("/v1/plans/a/run?trace=true&timeout=150ms", &none), Some(Duration::from_millis(150)));
        assert_eq!(of("/v1/plans/a/run?timeout=soon", &none), None);
        let headers = HeaderMap::from_iter([("request-timeout".parse().unwrap(), "20ms".parse().unwrap())]);
        assert_eq!(of("/?timeout=150ms", &headers), Some(Duration::from_millis(20)));
        assert_eq!(of("/", &none), None);
    }

    #[test]
    fn times_of_grpc() {
        assert_eq!(grpc_timeout("100m"), Some(Duration::from_millis(100)));
        assert_eq!(grpc_timeout("99999999H"), Some(Duration::from_secs(99_999_999 * 3600)));
        for wrong in ["", "m", "1", "123456789S", "+1S", "1 S", "1x", "1\u{e9}"] {
            assert_eq!(grpc_timeout(wrong), None, "{wrong:?}");
        }
    }
}
