//! The cases, and the contenders that take turns in each.

use std::io;
use std::path::PathBuf;

use serde_json::json;

use super::child::{self, Job, Server, ServerCounts, Work, this_program};
use super::designer::Designer;
use super::recipe::{self, CALLS_PER_ROW};
use crate::content::callers::median;

/// The behaviour of the server, and the calls that may be in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) rows: u64,
    pub(super) latency_ms: u64,
    pub(super) parallel: usize,
    /// Calls in flight above which the server answers 429.
    pub(super) limit: Option<usize>,
    pub(super) retry_after: Option<&'static str>,
}

impl Case {
    pub(super) fn title(&self) -> String {
        let Case { rows, latency_ms, parallel, .. } = self;
        let limit = match (self.limit, self.retry_after) {
            (None, _) => String::new(),
            (Some(limit), None) => format!(", 429 above {limit}"),
            (Some(limit), Some(pause)) => format!(", 429 above {limit} with `retry-after: {pause}`"),
        };
        format!("{rows} rows, {latency_ms} ms, {parallel} in parallel{limit}")
    }

    pub(super) fn calls(&self) -> u64 {
        self.rows * CALLS_PER_ROW
    }

    /// Seconds, if the server always has as many calls as it takes.
    pub(super) fn ideal_wall(&self) -> f64 {
        let at_once = self.limit.unwrap_or(self.parallel).min(self.parallel) as u64;
        self.calls().div_ceil(at_once) as f64 * self.latency_ms as f64 / 1e3
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contender {
    /// A plain HTTP client; it stays below the server's limit.
    Bare,
    Ours,
    NoJournal,
    ByColumn,
    DataDesigner,
}

impl Contender {
    pub(super) fn name(self, case: &Case) -> String {
        match (self, case.limit) {
            (Contender::Bare, Some(limit)) => format!("bare, {limit} in parallel"),
            (Contender::Bare, None) => "bare".to_owned(),
            (Contender::Ours, _) => "ours".to_owned(),
            (Contender::NoJournal, _) => "ours, no journal".to_owned(),
            (Contender::ByColumn, _) => "ours, column by column".to_owned(),
            (Contender::DataDesigner, _) => "data-designer".to_owned(),
        }
    }

    /// The word that a process of the bench takes its role from.
    fn role(self) -> &'static str {
        match self {
            Contender::Bare => "bare",
            Contender::Ours => "ours",
            Contender::NoJournal => "no-journal",
            Contender::ByColumn => "by-column",
            Contender::DataDesigner => "data-designer",
        }
    }

    pub(super) fn of_role(role: &str) -> Option<Contender> {
        let all = [Contender::Bare, Contender::Ours, Contender::NoJournal, Contender::ByColumn];
        all.into_iter().find(|contender| contender.role() == role)
    }
}

/// The server, the folder for files, and the peer.
pub(super) struct Ground {
    pub(super) server: Server,
    pub(super) folder: PathBuf,
    pub(super) designer: Option<Designer>,
}

/// One turn: as the contender's process reports it, and as the server does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    pub(super) work: Work,
    pub(super) served: ServerCounts,
    pub(super) calls: u64,
}

impl Turn {
    /// CPU microseconds per call that the rows need.
    pub(super) fn cpu_per_call(&self) -> f64 {
        self.work.cpu * 1e6 / self.calls as f64
    }

    /// Calls beyond those that the rows need, in percent.
    pub(super) fn extra(&self) -> f64 {
        (self.served.calls as f64 / self.calls as f64 - 1.0) * 100.0
    }
}

/// A contender's turns in a case.
pub(super) struct Turns {
    pub(super) contender: Contender,
    pub(super) rows: u64,
    pub(super) turns: Vec<Turn>,
}

impl Turns {
    pub(super) fn median(&self, of: impl Fn(&Turn) -> f64) -> f64 {
        median(self.turns.iter().map(of))
    }

    /// The median of the ratios of the same rounds' turns; of the medians if one had fewer turns.
    pub(super) fn ratio(&self, other: &Turns, of: impl Fn(&Turn) -> f64) -> f64 {
        if self.turns.len() != other.turns.len() {
            return self.median(&of) / other.median(&of);
        }
        median(self.turns.iter().zip(&other.turns).map(|(own, other)| of(own) / of(other)))
    }
}

impl Ground {
    /// Lets contenders take turns, another one first each round.
    pub(super) fn measure(
        &self,
        case: &Case,
        contenders: &[Contender],
        rounds: usize,
    ) -> io::Result<Vec<Turns>> {
        let new = |contender: &Contender| Turns { contender: *contender, rows: case.rows, turns: Vec::new() };
        let mut all: Vec<Turns> = contenders.iter().map(new).collect();
        for round in 0..rounds {
            for place in 0..all.len() {
                let turns = &mut all[(round + place) % contenders.len()];
                turns.turns.push(self.turn(case, turns.contender)?);
            }
        }
        Ok(all)
    }

    /// The one turn of DataDesigner, with at most so many rows.
    pub(super) fn measure_designer(&self, case: &Case, rows: u64) -> io::Result<Turns> {
        let case = Case { rows: case.rows.min(rows), ..*case };
        let turn = self.turn(&case, Contender::DataDesigner)?;
        Ok(Turns { contender: Contender::DataDesigner, rows: case.rows, turns: vec![turn] })
    }

    pub(super) fn turn(&self, case: &Case, contender: Contender) -> io::Result<Turn> {
        let parallel = match contender {
            Contender::Bare => case.limit.unwrap_or(case.parallel),
            _ => case.parallel,
        };
        let job = Job { port: self.server.port, rows: case.rows, parallel, folder: self.folder.clone() };
        if job.folder.exists() {
            std::fs::remove_dir_all(&job.folder)?;
        }
        std::fs::create_dir_all(&job.folder)?;
        std::fs::write(job.config_file(), recipe::config(parallel))?;
        std::fs::write(job.providers_file(), recipe::providers(job.port))?;
        let script =
            json!({"latency_ms": case.latency_ms, "limit": case.limit, "retry_after": case.retry_after});
        self.server.reset(&script)?;
        let work = match (&self.designer, contender) {
            (Some(designer), Contender::DataDesigner) => designer.run(&job)?,
            _ => {
                let mut command = this_program(contender.role())?;
                child::run(command.args(job.arguments()), &job.folder.join("log"))?
            }
        };
        Ok(Turn { work, served: self.server.stats()?, calls: case.calls() })
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        // Files of the last turn; those of an aborted bench stay for a look.
        _ = std::fs::remove_dir_all(&self.folder);
    }
}
