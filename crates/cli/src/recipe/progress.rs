//! The progress of a command, on one redrawn line of the terminal. Without a terminal, nothing is drawn.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _, Read, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anabranch_content::Address;
use anabranch_engine::clock::{Clock as _, SystemClock};
use anabranch_recipe::{Event, Notice};
use anabranch_text::{count, duration, size};
use futures_util::future::{Either, select};

use super::backend::Backend;
use crate::failure::Failure;

/// The time before the first drawing. Nothing is drawn for shorter commands.
const DRAW_AFTER: Duration = Duration::from_millis(300);

/// The minimum interval of drawings.
const DRAW_EVERY: Duration = Duration::from_millis(100);

/// The characters of a full bar.
const BAR: usize = 30;

/// A line on stderr, cleared on drop.
struct Line {
    began: Instant,
    due: Instant,
    drawn: bool,
}

impl Line {
    /// A line, if stderr is a terminal.
    fn new() -> Option<Line> {
        let began = SystemClock.now();
        io::stderr().is_terminal().then(|| Line { began, due: began + DRAW_AFTER, drawn: false })
    }

    fn draw(&mut self, text: impl FnOnce(Duration) -> String) {
        let now = SystemClock.now();
        if now < self.due {
            return;
        }
        self.due = now + DRAW_EVERY;
        self.drawn = true;
        let line = format!("\r\x1b[K{}", text(now - self.began));
        // Errors are ignored, because progress is not data.
        let mut stderr = io::stderr().lock();
        let _ = stderr.write_all(line.as_bytes()).and_then(|()| stderr.flush());
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.drawn {
            clear_line();
        }
    }
}

/// Clears the line of a terminal, where a progress line may stand.
pub(super) fn clear_line() {
    let mut stderr = io::stderr().lock();
    if stderr.is_terminal() {
        let _ = stderr.write_all(b"\r\x1b[K");
    }
}

/// Counts bytes.
pub(super) struct Meter {
    line: Option<Line>,
    verb: &'static str,
    done: u64,
    of: Option<u64>,
}

impl Meter {
    /// A meter of `of` bytes, if the number is known. The verb describes the operation.
    pub(super) fn new(verb: &'static str, of: Option<u64>) -> Meter {
        Meter { line: Line::new(), verb, done: 0, of }
    }

    /// A meter that shows nothing.
    pub(super) fn silent() -> Meter {
        Meter { line: None, verb: "", done: 0, of: None }
    }

    /// Counts more bytes.
    pub(super) fn add(&mut self, bytes: usize) {
        self.done += bytes as u64;
        if let Some(line) = &mut self.line {
            line.draw(|took| bytes_line(self.verb, self.done, self.of, took));
        }
    }
}

/// A reader or a writer with a meter.
pub(super) struct MeteredIo<T> {
    pub(super) inner: T,
    pub(super) meter: Meter,
}

impl<T: Read> Read for MeteredIo<T> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.inner.read(buffer)?;
        self.meter.add(len);
        Ok(len)
    }
}

impl<T: Write> Write for MeteredIo<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = self.inner.write(bytes)?;
        self.meter.add(len);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// The progress line of a get. A single recipe has a bar of its bytes, several recipes have a bar of recipes.
fn computing_line([done, of, failed]: [u64; 3], calls: CallBytes, took: Duration) -> String {
    let CallBytes { read, total, written } = calls;
    let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
    let wrote = if written > 0 { format!(", {} written", size::format(written)) } else { String::new() };
    if of <= 1 && read < total {
        return format!("{}{wrote}{failed}", bytes_line("computing", read, Some(total), took));
    }
    let line = match of {
        0 | 1 if total > 0 => format!("computing: all {} read{wrote}", size::format(total)),
        0 => format!("computing: {} so far", count(done, "recipe")),
        _ => format!("computing {} {done} of {}", bar(done, of), count(of, "recipe")),
    };
    let at_work = match of > 1 && total > 0 {
        true => format!("; at work: {} of {}", size::format(read), size::format(total)),
        false => String::new(),
    };
    format!("{line}{at_work}{failed}, {}", duration::format(took))
}

fn bytes_line(verb: &str, done: u64, of: Option<u64>, took: Duration) -> String {
    let rate = done as f64 / took.as_secs_f64().max(1e-3);
    let speed = format!("{}/s", size::format(rate as u64));
    match of.filter(|of| *of > 0) {
        None => format!("{verb} {}, {speed}, {}", size::format(done), duration::format(took)),
        Some(of) => {
            let left = Duration::from_secs_f64((of.saturating_sub(done) as f64 / rate.max(1.0)).ceil());
            let time = match left.is_zero() {
                true => duration::format(took),
                false => format!("{} left", duration::format(left)),
            };
            let (bar, done, of) = (bar(done, of), size::format(done), size::format(of));
            format!("{verb} {bar} {done} of {of}, {speed}, {time}")
        }
    }
}

/// The number of recipes that are computed for a get, and the progress of the calls in flight.
pub(super) struct ComputeProgress {
    line: Line,
    computed: u64,
    of: u64,
    failed: u64,
    calls: BTreeMap<Address, CallBytes>,
    /// The bytes that were written to a folder so far.
    to_folder: u64,
}

/// The progress of a call.
#[derive(Clone, Copy, Default)]
struct CallBytes {
    read: u64,
    total: u64,
    written: u64,
}

impl ComputeProgress {
    /// The line of a get, if stderr is a terminal.
    pub(super) fn new() -> Option<Mutex<ComputeProgress>> {
        Line::new().map(|line| Mutex::new(ComputeProgress::on(line)))
    }

    fn on(line: Line) -> ComputeProgress {
        ComputeProgress { line, computed: 0, of: 0, failed: 0, calls: BTreeMap::new(), to_folder: 0 }
    }

    /// Updates the line after an event.
    fn heard(&mut self, heard: &Notice) {
        match heard {
            Notice::Event(Event::Begun { recipes, .. }) => self.of += recipes,
            Notice::Event(Event::Progress { address, read, total, written, .. }) => {
                let call = CallBytes { read: *read, total: *total, written: *written };
                self.calls.insert(*address, call);
            }
            Notice::Event(Event::Computed { address, .. }) => {
                self.computed += 1;
                self.calls.remove(address);
            }
            Notice::Event(Event::Failed { address, .. }) => {
                self.failed += 1;
                self.calls.remove(address);
            }
            Notice::Event(_) => {}
            // Lost events are counted as computed recipes, which is most likely.
            Notice::Lost(count) => {
                self.computed += count;
                self.calls.clear();
            }
        }
        self.draw();
    }

    /// Counts bytes that were written to a folder.
    pub(super) fn wrote(&mut self, bytes: usize) {
        self.to_folder += bytes as u64;
        self.draw();
    }

    /// Redraws the line, so that its time advances during one long recipe.
    fn draw(&mut self) {
        let now = self.now();
        self.line.draw(now);
    }

    /// The line as a function of the time that has passed. While nothing is computed for a folder, it is about the bytes of
    /// the folder.
    fn now(&self) -> impl FnOnce(Duration) -> String + use<> {
        let sum = |all: CallBytes, call: &CallBytes| CallBytes {
            read: all.read + call.read,
            total: all.total.saturating_add(call.total),
            written: all.written + call.written,
        };
        let calls = self.calls.values().fold(CallBytes::default(), sum);
        let (counts, to_folder) = ([self.computed, self.of, self.failed], self.to_folder);
        let is_computing = self.computed + self.failed < self.of;
        move |took| match to_folder {
            0 => computing_line(counts, calls, took),
            _ if is_computing => {
                format!("{}; {} written", computing_line(counts, calls, took), size::format(to_folder))
            }
            _ => bytes_line("writing", to_folder, None, took),
        }
    }
}

/// Does work, and shows the progress of the computations for it.
pub(super) async fn watched<T>(
    backend: &Backend,
    work: impl Future<Output = Result<T, Failure>>,
    progress: Option<&Mutex<ComputeProgress>>,
) -> Result<T, Failure> {
    let Some(progress) = progress else { return work.await };
    let Ok(mut events) = backend.listen().await else { return work.await };
    let mut work = Box::pin(work);
    loop {
        let tick = SystemClock.sleep_until(SystemClock.now() + TICK);
        match select(work, select(Box::pin(events.next()), tick)).await {
            Either::Left((done, _)) => return done,
            Either::Right((Either::Left((Some(heard), _)), unfinished)) => {
                lock(progress).heard(&heard);
                work = unfinished;
            }
            Either::Right((Either::Left((None, _)), unfinished)) => return unfinished.await,
            Either::Right((Either::Right(_), unfinished)) => {
                lock(progress).draw();
                work = unfinished;
            }
        }
    }
}

/// The progress, which several files of a folder share.
pub(super) fn lock(progress: &Mutex<ComputeProgress>) -> MutexGuard<'_, ComputeProgress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The interval of drawings while nothing happens.
const TICK: Duration = Duration::from_millis(250);

fn bar(done: u64, of: u64) -> String {
    let full = (done as f64 / of.max(1) as f64 * BAR as f64).round() as usize;
    format!("[{}{}]", "=".repeat(full.min(BAR)), " ".repeat(BAR.saturating_sub(full)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_of_one_length() {
        assert_eq!(bar(0, 0), format!("[{}]", " ".repeat(30)));
        assert_eq!(bar(1, 2), format!("[{}{}]", "=".repeat(15), " ".repeat(15)));
        assert_eq!(bar(5, 2), format!("[{}]", "=".repeat(30)));
    }

    #[test]
    fn one_recipe_has_a_bar_of_bytes() {
        let took = Duration::from_secs(2);
        let line =
            |counts, read, total, written| computing_line(counts, CallBytes { read, total, written }, took);
        const MIB: u64 = 1 << 20;
        let cases = [
            (line([0, 1, 0], 0, 0, 0), "computing [                              ] 0 of 1 recipe, 2 s"),
            (
                line([0, 1, 0], 8 * MIB, 32 * MIB, 2 * MIB),
                "computing [========                      ] 8 MiB of 32 MiB, 4 MiB/s, 6 s left, 2 MiB written",
            ),
            (line([0, 1, 0], 32 * MIB, 32 * MIB, 0), "computing: all 32 MiB read, 2 s"),
            (
                line([1, 2, 1], 8 * MIB, 32 * MIB, 0),
                "computing [===============               ] 1 of 2 recipes; at work: 8 MiB of 32 MiB, 1 failed, 2 s",
            ),
        ];
        cases.into_iter().for_each(|(line, expected)| assert_eq!(line, expected));
    }

    #[test]
    fn a_folder_shows_what_is_computed_for_it_and_then_its_bytes() {
        let began = SystemClock.now();
        let mut progress =
            ComputeProgress::on(Line { began, due: began + Duration::from_secs(3600), drawn: false });
        let shown = |progress: &ComputeProgress| progress.now()(Duration::from_secs(2));
        let address = Address::of(b"a file");
        progress.heard(&Notice::Event(Event::Begun { address, recipes: 1 }));
        assert_eq!(shown(&progress), "computing [                              ] 0 of 1 recipe, 2 s");
        progress.wrote(8 << 20);
        let both = "computing [                              ] 0 of 1 recipe, 2 s; 8 MiB written";
        assert_eq!(shown(&progress), both);
        progress.heard(&Notice::Event(Event::Computed { address, output: address, size: 1, micros: 1 }));
        assert_eq!(shown(&progress), "writing 8 MiB, 4 MiB/s, 2 s");
    }

    #[test]
    fn bytes_have_a_rate_and_the_time_that_is_left() {
        let took = Duration::from_secs(2);
        assert_eq!(bytes_line("writing", 8 << 20, None, took), "writing 8 MiB, 4 MiB/s, 2 s");
        assert_eq!(
            bytes_line("reading", 8 << 20, Some(32 << 20), took),
            "reading [========                      ] 8 MiB of 32 MiB, 4 MiB/s, 6 s left"
        );
        assert_eq!(
            bytes_line("reading", 32 << 20, Some(32 << 20), took),
            "reading [==============================] 32 MiB of 32 MiB, 16 MiB/s, 2 s"
        );
        assert_eq!(bytes_line("reading", 0, Some(0), took), "reading 0 bytes, 0 bytes/s, 2 s");
    }
}
