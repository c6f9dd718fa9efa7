//! The timeout of a request: `grpc-timeout`, `Request-Timeout` and `?timeout=`, parsed in one place.

use std::time::{Duration, Instant};

use anabranch_text::{duration, quote};
use axum::http::HeaderMap;
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
    fn times_of_grpc() {
        assert_eq!(grpc_timeout("100m"), Some(Duration::from_millis(100)));
        assert_eq!(grpc_timeout("99999999H"), Some(Duration::from_secs(99_999_999 * 3600)));
        for wrong in ["", "m", "1", "123456789S", "+1S", "1 S", "1x", "1\u{e9}"] {
            assert_eq!(grpc_timeout(wrong), None, "{wrong:?}");
        }
    }
}
