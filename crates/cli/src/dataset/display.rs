//! Shows the progress of a build: in place on a terminal, as lines in a log, or as events.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use anabranch_dataset::{Build, Config};
use anabranch_engine::clock::{Clock as _, SystemClock};
use anabranch_text::Plain;

use crate::failure::Failure;
use crate::out;
use anabranch_dataset_inspect::live::Pace;

/// The size that is assumed if the terminal does not report its own.
const USUAL: (usize, usize) = (80, 24);

/// The way in which progress is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Lines on stderr that are redrawn in place.
    Terminal,
    /// One line on stderr every few seconds.
    Log,
    /// JSON lines on stdout.
    Events,
}

/// Shows the progress of a build. On a terminal, its lines are cleared on drop.
pub(super) struct Display {
    place: Place,
    pace: Pace,
    /// The number of lines on the terminal.
    drawn: usize,
}

impl Display {
    /// The progress of a build that begins now.
    pub(super) fn new(build: &Build, config: &Config, as_events: bool) -> Display {
        let place = match as_events {
            true => Place::Events,
            false if io::stderr().is_terminal() => Place::Terminal,
            false => Place::Log,
        };
        Display { place, pace: Pace::new(build, SystemClock.now()).with_labels(config), drawn: 0 }
    }

    /// The interval of updates.
    pub(super) fn every(&self) -> Duration {
        match self.place {
            Place::Terminal => Duration::from_millis(100),
            Place::Log => Duration::from_secs(5),
            Place::Events => Duration::from_secs(1),
        }
    }

    /// Shows the current progress of the build.
    pub(super) fn update(&mut self, build: &Build) -> Result<(), Failure> {
        self.pace.read(build, SystemClock.now());
        match self.place {
            Place::Terminal => self.draw(),
            Place::Log => out::note(&self.pace.line()),
            Place::Events => out::data(&format!("{}\n", self.pace.json()))?,
        }
        Ok(())
    }

    /// Writes a message above the progress.
    pub(super) fn note(&mut self, text: &str) {
        write(&self.home());
        self.drawn = 0;
        out::note(text);
    }

    /// Reads the last counters, and clears the terminal.
    pub(super) fn end(mut self, build: &Build) -> Result<Duration, Failure> {
        self.pace.read(build, SystemClock.now());
        if self.place == Place::Events {
            out::data(&format!("{}\n", self.pace.json()))?;
        }
        Ok(self.pace.elapsed())
    }

    fn draw(&mut self) {
        let size = rustix::termios::tcgetwinsize(io::stderr())
            .ok()
            .filter(|size| size.ws_col > 0 && size.ws_row > 0);
        let (width, height) = size.map_or(USUAL, |size| (usize::from(size.ws_col), usize::from(size.ws_row)));
        // A line that is too long would wrap, and the next drawing would begin in the wrong place.
        let cut =
            |line: &String| Plain(line).to_string().chars().take(width.saturating_sub(1)).collect::<String>();
        let lines: Vec<String> = self.pace.lines(height.saturating_sub(1)).iter().map(cut).collect();
        let text = format!("{}{}\n", self.home(), lines.join("\n"));
        self.drawn = lines.len();
        write(&text);
    }

    /// The escape sequence that moves to the start of the drawing and clears it.
    fn home(&self) -> String {
        match self.drawn {
            0 => String::new(),
            lines => format!("\x1b[{lines}A\r\x1b[J"),
        }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        write(&self.home());
    }
}

/// Errors are ignored, because progress is not data.
fn write(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}
