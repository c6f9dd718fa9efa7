//! How long a caller waits.

use std::time::{Duration, Instant};

use anabranch_recipe::Executor;
use anabranch_text::{duration, quote};
use axum::http::HeaderMap;
use tonic::Code;
use tonic::metadata::MetadataMap;

use crate::failure::Failure;

/// The deadline that a gRPC call has.
pub(crate) fn of_call(metadata: &MetadataMap, executor: &Executor) -> Result<Option<Instant>, Failure> {
    let Some(text) = metadata.get("grpc-timeout") else { return Ok(None) };
    let within = text.to_str().ok().and_then(grpc_timeout).ok_or_else(|| {
        Failure::new(
            Code::InvalidArgument,
            "`grpc-timeout` is no time: up to 8 digits and one of H, M, S, m, u, n",
        )
    })?;
    from_now(within, executor)
}

/// How long a caller of HTTP waits, by its headers: the shorter of `Request-Timeout` (`150ms`, `2s`) and `grpc-timeout`.
pub(crate) fn of_headers(headers: &HeaderMap) -> Result<Option<Duration>, Failure> {
    let text = |name: &'static str| {
        headers.get(name).map(|value| value.to_str().map_err(|_| not_a_time(name, "text that is not ASCII")))
    };
    let own = match text("request-timeout").transpose()? {
        None => None,
        Some(text) => Some(match duration::parse(text) {
            Ok(within) => within,
            Err(problem) => grpc_timeout(text)
                .ok_or_else(|| not_a_time("request-timeout", &format!("{}: {problem}", quote(text))))?,
        }),
    };
    let of_grpc = match text("grpc-timeout").transpose()? {
        None => None,
        Some(text) => Some(grpc_timeout(text).ok_or_else(|| not_a_time("grpc-timeout", &quote(text)))?),
    };
    Ok(own.into_iter().chain(of_grpc).min())
}

fn not_a_time(header: &str, found: &str) -> Failure {
    let message = format!("the header `{header}` is not a time: {found}; write 150ms or 2s");
    Failure::new(Code::InvalidArgument, message)
}

/// So long from now on; a time beyond reckoning is none.
pub(crate) fn from_now(within: Duration, executor: &Executor) -> Result<Option<Instant>, Failure> {
    Ok(executor.engine().clock().now().checked_add(within))
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

/// A duration as people write it: `500ms`, `2s`, `5m`.
pub(crate) fn written(text: &str) -> Result<Duration, Failure> {
    duration::parse(text)
        .map_err(|problem| Failure::new(Code::InvalidArgument, format!("{}: {problem}", quote(text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_grpc() {
        assert_eq!(grpc_timeout("100m"), Some(Duration::from_millis(100)));
        assert_eq!(grpc_timeout("99999999H"), Some(Duration::from_secs(99_999_999 * 3600)));
        for wrong in ["", "m", "1", "123456789S", "+1S", "1 S", "1x", "1\u{e9}"] {
            assert_eq!(grpc_timeout(wrong), None, "{wrong:?}");
        }
    }
}
