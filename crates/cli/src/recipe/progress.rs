//! How far a get is, on one line of the terminal that is drawn again and again.

use std::io::{self, Write as _};
use std::time::{Duration, Instant};

use anabranch_engine::clock::{Clock as _, SystemClock};
use anabranch_recipe::{Event, Heard};
use anabranch_text::{count, duration, size};

/// Nothing is drawn for what takes no longer.
const QUIET: Duration = Duration::from_millis(300);

/// The line is drawn no more often.
const EVERY: Duration = Duration::from_millis(100);

/// Characters of a whole bar.
const BAR: usize = 30;

/// A line on stderr, cleared when dropped.
pub(super) struct Progress {
    began: Instant,
    due: Instant,
    drawn: bool,
    computed: u64,
    of: u64,
    failed: u64,
}

impl Progress {
    pub(super) fn new() -> Progress {
        let began = SystemClock.now();
        Progress { began, due: began + QUIET, drawn: false, computed: 0, of: 0, failed: 0 }
    }

    /// Something happened.
    pub(super) fn heard(&mut self, heard: &Heard) {
        match heard {
            Heard::Event(Event::Begun { recipes, .. }) => self.of += recipes,
            Heard::Event(Event::Computed { .. }) => self.computed += 1,
            Heard::Event(Event::Failed { .. }) => self.failed += 1,
            Heard::Event(_) => {}
            // Each was one of these, most likely a computed one.
            Heard::Lost(count) => self.computed += count,
        }
        let (done, of) = (self.computed, self.of);
        self.draw(|| match of {
            0 => format!("computing: {} so far", count(done, "recipe")),
            _ => format!("computing {} {done} of {of} recipes", bar(done, of)),
        });
    }

    /// So many bytes of those wanted are written.
    pub(super) fn written(&mut self, bytes: u64, of: u64) {
        self.draw(|| format!("writing {} {} of {}", bar(bytes, of), size::format(bytes), size::format(of)));
    }

    fn draw(&mut self, line: impl FnOnce() -> String) {
        let now = SystemClock.now();
        if now < self.due {
            return;
        }
        self.due = now + EVERY;
        self.drawn = true;
        let failed = if self.failed > 0 { format!(", {} failed", self.failed) } else { String::new() };
        let line = format!("\r\x1b[K{}{failed}, {}", line(), duration::format(now - self.began));
        // Nothing is lost when the terminal is gone.
        let mut stderr = io::stderr().lock();
        let _ = stderr.write_all(line.as_bytes()).and_then(|()| stderr.flush());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.drawn {
            let _ = io::stderr().lock().write_all(b"\r\x1b[K");
        }
    }
}

fn bar(done: u64, of: u64) -> String {
    let full = (done as f64 / of.max(1) as f64 * BAR as f64).round() as usize;
    format!("[{}{}]", "=".repeat(full.min(BAR)), " ".repeat(BAR.saturating_sub(full)))
}

#[cfg(test)]
mod tests {
    use super::bar;

    #[test]
    fn bars_are_of_one_length() {
        assert_eq!(bar(0, 0), format!("[{}]", " ".repeat(30)));
        assert_eq!(bar(1, 2), format!("[{}{}]", "=".repeat(15), " ".repeat(15)));
        assert_eq!(bar(5, 2), format!("[{}]", "=".repeat(30)));
    }
}
