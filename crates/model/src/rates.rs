//! Rate limits that servers report in the headers of replies.

use std::time::Duration;

use crate::date;

/// The rate limits of a model at the time of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    pub requests: Option<RateWindow>,
    pub tokens: Option<RateWindow>,
}

/// One rate limit: the remaining part, and the time at which all of it is available again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateWindow {
    /// The size of the whole window, at least 1.
    pub limit: Option<u64>,
    pub remaining: u64,
    /// The time after the reply when the whole window is available, at most a day.
    pub full_after: Option<Duration>,
}

/// The headers of one window.
struct Names {
    limit: &'static str,
    remaining: &'static str,
    reset: &'static str,
}

const OPENAI_REQUESTS: Names = Names {
    limit: "x-ratelimit-limit-requests",
    remaining: "x-ratelimit-remaining-requests",
    reset: "x-ratelimit-reset-requests",
};
const OPENAI_TOKENS: Names = Names {
    limit: "x-ratelimit-limit-tokens",
    remaining: "x-ratelimit-remaining-tokens",
    reset: "x-ratelimit-reset-tokens",
};
const ANTHROPIC_REQUESTS: Names = Names {
    limit: "anthropic-ratelimit-requests-limit",
    remaining: "anthropic-ratelimit-requests-remaining",
    reset: "anthropic-ratelimit-requests-reset",
};
const ANTHROPIC_TOKENS: Names = Names {
    limit: "anthropic-ratelimit-tokens-limit",
    remaining: "anthropic-ratelimit-tokens-remaining",
    reset: "anthropic-ratelimit-tokens-reset",
};
const ANTHROPIC_INPUT: Names = Names {
    limit: "anthropic-ratelimit-input-tokens-limit",
    remaining: "anthropic-ratelimit-input-tokens-remaining",
    reset: "anthropic-ratelimit-input-tokens-reset",
};
const ANTHROPIC_OUTPUT: Names = Names {
    limit: "anthropic-ratelimit-output-tokens-limit",
    remaining: "anthropic-ratelimit-output-tokens-remaining",
    reset: "anthropic-ratelimit-output-tokens-reset",
};
const PLAIN: Names =
    Names { limit: "x-ratelimit-limit", remaining: "x-ratelimit-remaining", reset: "x-ratelimit-reset" };

const DAY: Duration = Duration::from_secs(24 * 3600);

/// The longest wait that a server can mean; larger numbers of seconds are points in time, counted from 1970.
const YEAR_SECONDS: f64 = 366.0 * 86_400.0;

/// Larger points in time are in milliseconds.
const LARGEST_TIME_SECONDS: f64 = 1e11;

impl Rates {
    /// The limits in the headers that `header` finds by their names in lower case: OpenAI's, Anthropic's, and plain
    /// `x-ratelimit-remaining`. A value that makes no sense counts as missing.
    pub fn read<'a>(header: impl Fn(&'static str) -> Option<&'a str>) -> Option<Rates> {
        let window = |names| RateWindow::read(&header, &names);
        let requests =
            window(OPENAI_REQUESTS).or_else(|| window(ANTHROPIC_REQUESTS)).or_else(|| window(PLAIN));
        let tokens = window(OPENAI_TOKENS).or_else(|| window(ANTHROPIC_TOKENS)).or_else(|| {
            let parts = [window(ANTHROPIC_INPUT), window(ANTHROPIC_OUTPUT)];
            parts.into_iter().flatten().min_by(|one, other| one.share_left().total_cmp(&other.share_left()))
        });
        (requests.is_some() || tokens.is_some()).then_some(Rates { requests, tokens })
    }

    /// The time until every exhausted window is full, if the server reported one.
    pub(crate) fn exhausted_for(&self) -> Option<Duration> {
        let windows = [self.requests, self.tokens].into_iter().flatten();
        let pauses = windows.filter(|window| window.remaining == 0).filter_map(|window| window.full_after);
        // A reset in the past does not explain the request that was refused just now.
        pauses.max().filter(|pause| !pause.is_zero())
    }
}

impl RateWindow {
    fn read<'a>(header: &impl Fn(&'static str) -> Option<&'a str>, names: &Names) -> Option<RateWindow> {
        let remaining = header(names.remaining)?.trim().parse().ok()?;
        let limit = header(names.limit).and_then(|text| text.trim().parse().ok());
        if limit == Some(0) {
            return None;
        }
        let now = || header("date").and_then(|text| date::http(text.trim()));
        let full_after = header(names.reset).and_then(|text| wait(text.trim(), now));
        Some(RateWindow { limit, remaining, full_after })
    }

    /// From 0 to 1.
    fn share_left(&self) -> f64 {
        self.remaining as f64 / self.limit.unwrap_or(self.remaining).max(1) as f64
    }
}

/// The time until a reset: a number of seconds, a duration with units, or a point in time, which counts from the server's own
/// `now`, so that clocks need not agree.
fn wait(text: &str, now: impl FnOnce() -> Option<i64>) -> Option<Duration> {
    let at = match text.parse::<f64>() {
        Ok(number) if !number.is_finite() || number < 0.0 => return None,
        Ok(number) if number <= YEAR_SECONDS => return at_most_a_day(number),
        Ok(number) if number <= LARGEST_TIME_SECONDS => (number * 1000.0) as i64,
        Ok(number) => number as i64,
        Err(_) => match seconds(text) {
            Some(seconds) => return at_most_a_day(seconds),
            None => date::rfc3339(text)?,
        },
    };
    let wait = at.checked_sub(now()?)? as f64 / 1000.0;
    // A little in the past is a reset that just came; more of it cannot be meant.
    (wait > -DAY.as_secs_f64()).then(|| at_most_a_day(wait.max(0.0))).flatten()
}

/// A long wait is cut to a day; one that cannot be meant is ignored.
fn at_most_a_day(seconds: f64) -> Option<Duration> {
    (seconds <= YEAR_SECONDS).then(|| Duration::from_secs_f64(seconds.min(DAY.as_secs_f64())))
}

/// The seconds of a duration such as `1h2m3.5s` or `120ms`.
fn seconds(mut text: &str) -> Option<f64> {
    let mut total = 0.0;
    loop {
        let (number, rest) = text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.')?);
        let (unit, rest) = rest.split_at(rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len()));
        let unit = match unit {
            "d" => 86_400.0,
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        total += number.parse::<f64>().ok()? * unit;
        if rest.is_empty() {
            return Some(total).filter(|total| total.is_finite());
        }
        text = rest;
    }
}
