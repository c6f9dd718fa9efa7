//! The pause that a server requests.

use std::time::Duration;

use hyper::header::{DATE, HeaderMap, RETRY_AFTER};

use crate::date;

/// The longest pause that is believed.
pub(super) const LONGEST: Duration = Duration::from_secs(3600);

/// The pause in `retry-after-ms` or `retry-after`. A date counts from the server's own `date`, so that clocks need not
/// agree.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let seconds = |text: &str, per_second: f64| {
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0)?;
        Some(Duration::from_secs_f64((number / per_second).min(LONGEST.as_secs_f64())))
    };
    if let Some(pause) = text("retry-after-ms").and_then(|text| seconds(text, 1000.0)) {
        return Some(pause);
    }
    let after = text(RETRY_AFTER.as_str())?;
    seconds(after, 1.0).or_else(|| {
        let wait = date::http(after)? - date::http(text(DATE.as_str())?)?;
        Some(Duration::from_millis(u64::try_from(wait).unwrap_or(0)).min(LONGEST))
    })
}
