//! The pause that a server asks for.

use std::time::Duration;

use hyper::header::{DATE, HeaderMap, RETRY_AFTER};

/// The longest pause that is believed.
const LONGEST: Duration = Duration::from_secs(3600);

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
        let wait = date(after)?.checked_sub(date(text(DATE.as_str())?)?)?;
        Some(Duration::from_secs(u64::try_from(wait).unwrap_or(0)).min(LONGEST))
    })
}

/// Seconds since 1970 of a date such as `Sun, 06 Nov 1994 08:49:37 GMT`.
fn date(text: &str) -> Option<i64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let parts: Vec<&str> = text.split_ascii_whitespace().collect();
    let [_, day, month, year, time, "GMT"] = parts[..] else { return None };
    let day: i64 = day.parse().ok().filter(|day| (1..=31).contains(day))?;
    let month = MONTHS.iter().position(|name| *name == month)? as i64 + 1;
    let year: i64 = year.parse().ok().filter(|year| (1970..10_000).contains(year))?;
    let clock: Vec<i64> = time.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [hours, minutes, seconds] = clock[..] else { return None };
    // Days of the civil calendar, with years that begin in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 719_469;
    Some(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
}
