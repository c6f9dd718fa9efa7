//! Durations, and round numbers for an axis.

use std::time::Duration;

use anabranch_text::duration;
pub(super) use anabranch_text::duration::format as words;

const SECOND: u64 = 1_000_000_000;

/// About ten marks for an axis of length `wall`, with their labels.
pub(super) fn ticks(wall: Duration) -> Vec<(Duration, String)> {
    let (unit, name) = duration::unit(wall);
    let is_long = wall >= duration::LONG;
    let wall = nanos(wall);
    let step = step(wall / 10);
    let mark = |at: u64| match at {
        0 => "0".to_owned(),
        at if is_long => duration::minutes(Duration::from_nanos(at)),
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

/// A duration in nanoseconds; 64 bits hold five centuries.
pub(super) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
