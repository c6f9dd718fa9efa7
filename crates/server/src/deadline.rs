//! How long a caller waits.

use std::time::{Duration, Instant};

use anabranch_recipe::Executor;
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

/// A time as people write it: `500ms`, `2s`, `5m`.
pub(crate) fn written(text: &str) -> Result<Duration, Failure> {
    let number = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = &text[number.len()..];
    let millis = match unit {
        "ms" => Some(1),
        "s" => Some(1000),
        "m" => Some(60_000),
        _ => None,
    };
    let count: Option<u64> = number.parse().ok();
    let millis = count.zip(millis).and_then(|(count, millis)| count.checked_mul(millis));
    millis.map(Duration::from_millis).ok_or_else(|| {
        Failure::new(
            Code::InvalidArgument,
            format!("{text:?} is no time; write a whole number and ms, s or m, as in `500ms`"),
        )
    })
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

    #[test]
    fn times_of_people() {
        assert_eq!(written("500ms").unwrap(), Duration::from_millis(500));
        assert_eq!(written("2m").unwrap(), Duration::from_secs(120));
        for wrong in ["", "5", "ms", "1.5s", "-1s", "1h", "99999999999999999999s", "18446744073709551615m"] {
            assert!(written(wrong).is_err(), "{wrong:?}");
        }
    }
}
