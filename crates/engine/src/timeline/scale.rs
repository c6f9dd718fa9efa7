//! Durations as text, and round numbers for an axis.

use std::time::Duration;

const UNITS: [(u64, &str); 4] = [(1, "ns"), (1_000, "µs"), (1_000_000, "ms"), (SECOND, "s")];
const SECOND: u64 = 1_000_000_000;
/// From here on, durations are shown in minutes and hours.
const LONG: u64 = 120 * SECOND;

/// Three digits and a unit: `850 ns`, `12.3 µs`, `4.56 ms`, `1.23 s`, `2m 05s`, `1h 02m`.
pub(super) fn words(time: Duration) -> String {
    let nanos = nanos(time);
    if nanos == 0 {
        return "0".to_owned();
    }
    if nanos >= LONG {
        return long(nanos);
    }
    let (unit, name) = unit(nanos);
    let value = nanos as f64 / unit as f64;
    let decimals = match value {
        _ if unit == 1 => 0,
        value if value < 10.0 => 2,
        value if value < 100.0 => 1,
        _ => 0,
    };
    let digits = format!("{value:.decimals$}");
    let digits = if decimals == 0 { &digits } else { digits.trim_end_matches('0').trim_end_matches('.') };
    format!("{digits} {name}")
}

/// About ten marks for an axis of length `wall`, with their labels.
pub(super) fn ticks(wall: Duration) -> Vec<(Duration, String)> {
    let wall = nanos(wall);
    let step = step(wall / 10);
    let (unit, name) = unit(wall);
    let mark = |at: u64| match at {
        0 => "0".to_owned(),
        at if wall >= LONG => long(at),
        at => {
            let decimals = if step.is_multiple_of(unit) { 0 } else { 1 };
            format!("{:.decimals$} {name}", at as f64 / unit as f64)
        }
    };
    (0..=wall / step).map(|n| (Duration::from_nanos(n * step), mark(n * step))).collect()
}

/// The smallest round duration of at least `nanos`.
fn step(nanos: u64) -> u64 {
    const LONG_STEPS: [u64; 10] = [60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400];
    let decimal = |power: u32| [1, 2, 5].map(|digit| digit * 10_u64.pow(power));
    let short = (0..11).flat_map(decimal).filter(|step| *step <= 20 * SECOND);
    let mut steps = short.chain(LONG_STEPS.map(|seconds| seconds * SECOND));
    let day = 86_400 * SECOND;
    steps.find(|step| *step >= nanos).unwrap_or_else(|| nanos.div_ceil(day) * day)
}

fn unit(nanos: u64) -> (u64, &'static str) {
    UNITS.into_iter().rfind(|(unit, _)| *unit <= nanos).unwrap_or(UNITS[0])
}

fn long(nanos: u64) -> String {
    let seconds = nanos / SECOND;
    match seconds {
        0..3_600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3_600, seconds / 60 % 60),
    }
}

/// A duration in nanoseconds; 64 bits hold five centuries.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
