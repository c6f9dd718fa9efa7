//! Progress as one line of plain characters.

use std::time::{Duration, Instant};

use super::Progress;

const MIN_BAR: usize = 10;
const MAX_BAR: usize = 30;
const GAP: &str = "  ";

impl Progress {
    /// One line of at most `width` characters, for any width from 20. A narrow line leaves out the less important parts.
    ///
    /// ```
    /// use anabranch_engine::progress::Progress;
    /// # let now = std::time::Instant::now();
    /// assert_eq!(Progress::default().line(80, now), "waiting for a run");
    /// ```
    pub fn line(&self, width: usize, now: Instant) -> String {
        let counts = &self.counts;
        if counts.total == 0 {
            return "waiting for a run".to_owned();
        }
        let mut line = Line { room: width, parts: Vec::new() };
        line.say(2, format!("{}%", counts.ended() * 100 / counts.total));
        line.say(1, format!("{}/{}", counts.ended(), counts.total));
        line.count(3, counts.failed, "failed");
        line.say(12, self.outlook(now));
        let has_bar = line.take(MIN_BAR);
        line.count(4, counts.in_flight, "running");
        if !self.is_over() {
            line.say(11, per_second(self.rate(now)));
        }
        line.count(5, counts.cut, "not ended");
        line.count(6, counts.on_retry, "waiting to retry");
        line.count(7, counts.on_limit, "waiting for a limit");
        line.count(8, counts.fell_back, "fell back");
        line.count(9, counts.dropped, "dropped");
        line.count(10, self.lost, "events lost");
        if has_bar {
            let bar = self.bar(MIN_BAR + line.room.min(MAX_BAR - MIN_BAR));
            line.parts.push((0, bar));
        }
        line.parts.sort_by_key(|(place, _)| *place);
        line.parts.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(GAP)
    }

    /// The time left, or the time that it took.
    fn outlook(&self, now: Instant) -> String {
        match self.eta(now) {
            _ if self.is_over() => format!("in {}", brief(self.elapsed(now))),
            Some(eta) => format!("eta {}", brief(eta)),
            None => brief(self.elapsed(now)),
        }
    }

    fn is_over(&self) -> bool {
        self.open.is_empty() && self.counts.remaining() == 0
    }

    fn bar(&self, width: usize) -> String {
        let share = self.counts.ended() as f64 / self.counts.total as f64;
        let full = ((share * width as f64) as usize).min(width);
        "#".repeat(full) + &"-".repeat(width - full)
    }
}

/// A line in the making. Parts that are added first get the room; their place decides the order from the left.
struct Line {
    room: usize,
    parts: Vec<(usize, String)>,
}

impl Line {
    /// Takes room for `length` characters and a gap, and returns whether there was enough.
    fn take(&mut self, length: usize) -> bool {
        let gap = if self.parts.is_empty() { 0 } else { GAP.len() };
        let rest = self.room.checked_sub(gap + length);
        self.room = rest.unwrap_or(self.room);
        rest.is_some()
    }

    fn say(&mut self, place: usize, text: String) {
        if self.take(text.len()) {
            self.parts.push((place, text));
        }
    }

    fn count(&mut self, place: usize, count: u64, what: &str) {
        if count > 0 {
            self.say(place, format!("{count} {what}"));
        }
    }
}

fn per_second(rate: f64) -> String {
    match rate {
        10.0.. => format!("{rate:.0}/s"),
        0.1.. => format!("{rate:.1}/s"),
        rate if rate * 60.0 >= 0.1 => format!("{:.1}/min", rate * 60.0),
        _ => "0/s".to_owned(),
    }
}

/// `850ms`, `4.2s`, `42s`, `1m05s`, `3h12m`, `2d03h`.
fn brief(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{}ms", time.as_millis()),
        1..10 => format!("{:.1}s", time.as_secs_f64()),
        10..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h{:02}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}
