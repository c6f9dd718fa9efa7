//! The plans that compute, by polars: another program does it, the one in `bench/polars/`.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use super::cpu::Work;
use crate::watch::Share;

/// The program, built beside this one.
const PROGRAM: &str = "anabranch-bench-polars";

/// How polars is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// A query, planned and carried out each time; written down once.
    Lazy,
    /// Operations on columns, one after the other.
    Eager,
}

/// A process that has polars compute.
pub(super) struct Peer {
    child: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

/// What polars computed, and how fast.
pub(super) struct PolarsTurn {
    pub(super) share: Share,
    pub(super) digest: u64,
}

impl Peer {
    /// A peer with so many threads, or as many as polars likes.
    pub(super) fn start(threads: Option<usize>) -> io::Result<Peer> {
        let mut command = Command::new(std::env::current_exe()?.with_file_name(PROGRAM));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Some(threads) = threads {
            command.env("POLARS_MAX_THREADS", threads.to_string());
        }
        let missing = |error: io::Error| {
            io::Error::new(error.kind(), format!("{PROGRAM} ({error}): `./dev bench plan` builds it too"))
        };
        let mut child = command.spawn().map_err(missing)?;
        let (ask, answers) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        Ok(Peer { child, ask, answers: BufReader::new(answers) })
    }

    /// Computes again and again for so long.
    pub(super) fn turn(&mut self, work: Work, style: Style, window: Duration) -> io::Result<PolarsTurn> {
        let (name, rows) = match work {
            Work::Pipeline(rows) => ("pipeline", rows),
            Work::Expr(rows) => ("expr", rows),
        };
        let style = match style {
            Style::Lazy => "lazy",
            Style::Eager => "eager",
        };
        writeln!(self.ask, "{name} {rows} {style} {}", window.as_micros())?;
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let strange = || io::Error::other(format!("{PROGRAM} answers `{}`", line.trim()));
        let [wall, cpu, digest] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            return Err(strange());
        };
        let number = |text: &str| text.parse::<f64>().map_err(|_| strange());
        let share = Share { wall: number(wall)?, cpu: number(cpu)? };
        Ok(PolarsTurn { share, digest: digest.parse().map_err(|_| strange())? })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It computes on request only; there is nothing to lose.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
