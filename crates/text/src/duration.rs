//! Durations as people write them.

use std::time::Duration;

const SECOND: u64 = 1_000_000_000;

/// Units of up to a few seconds, in nanoseconds.
const UNITS: [(u64, &str); 4] = [(1, "ns"), (1_000, "µs"), (1_000_000, "ms"), (SECOND, "s")];

/// From here on, minutes and hours say more than a number of seconds.
pub const LONG: Duration = Duration::from_secs(120);

/// Three digits and a unit: `850 ns`, `12.3 µs`, `4.56 ms`, `1.23 s`, `2m 05s`, `1h 02m`.
///
/// ```
/// use std::time::Duration;
/// assert_eq!(anabranch_text::duration::format(Duration::from_micros(1500)), "1.5 ms");
/// ```
pub fn format(time: Duration) -> String {
    if time.is_zero() {
        return "0".to_owned();
    }
    if time >= LONG {
        return minutes(time);
    }
    let nanos = time.as_nanos() as u64;
    // A value that would be rounded to 1000 is shown in the next unit.
    let (unit, name) = unit(time.saturating_add(time / 2_000));
    let value = nanos as f64 / unit as f64;
    let decimals = match value {
        _ if unit == 1 => 0,
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    let digits = format!("{value:.decimals$}");
    let digits = if decimals == 0 { &digits } else { digits.trim_end_matches('0').trim_end_matches('.') };
    format!("{digits} {name}")
}

/// `2m 05s` or `1h 02m`.
pub fn minutes(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..3_600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3_600, seconds / 60 % 60),
    }
}

/// The largest unit of up to a second that is not longer than `time`: its nanoseconds and its name.
pub fn unit(time: Duration) -> (u64, &'static str) {
    UNITS.into_iter().rfind(|(unit, _)| u128::from(*unit) <= time.as_nanos()).unwrap_or(UNITS[0])
}

/// A number and a unit, with or without a space between them: `50us`, `1.5 ms`, `2s`, `5m`, `24h`; or `0`.
pub fn parse(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    const UNITS: [(&str, f64); 7] =
        [("ns", 1e-9), ("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let parsed = UNITS.iter().find_map(|(unit, seconds)| {
        let number = text.strip_suffix(unit)?;
        let number: f64 = number.strip_suffix(' ').unwrap_or(number).parse().ok()?;
        Duration::try_from_secs_f64(number * seconds).ok()
    });
    parsed.ok_or_else(|| "a duration is a number and a unit: 50us, 1.5ms, 2s, 5m, 24h, or 0".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_digits_and_a_unit() {
        let check = |nanos, text: &str| assert_eq!(format(Duration::from_nanos(nanos)), text);
        check(0, "0");
        check(850, "850 ns");
        check(12_345, "12.3 µs");
        check(999_499, "999 µs");
        check(999_600, "1 ms");
        check(4_560_000, "4.56 ms");
        check(9_999_000, "10 ms");
        check(1_230 * 1_000_000, "1.23 s");
        check(125 * SECOND, "2m 05s");
        check(3_725 * SECOND, "1h 02m");
        assert_eq!(format(Duration::MAX), "5124095576030431h 00m");
    }

    #[test]
    fn durations_are_read_with_their_units() {
        let check = |text, micros| assert_eq!(parse(text), Ok(Duration::from_micros(micros)), "{text}");
        check("50us", 50);
        check("50 µs", 50);
        check("1.5ms", 1500);
        check("100 ms", 100_000);
        check("2s", 2_000_000);
        check("1m", 60_000_000);
        check("1h", 3_600_000_000);
        check("0", 0);
        for wrong in ["", "5", "ms", " ms", "5  s", "-1s", "1d", "infs", "NaNms", "99999999999999999999s"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
