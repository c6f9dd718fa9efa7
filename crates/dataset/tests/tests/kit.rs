//! Generators that follow a script on a virtual clock, and a log of what they did.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anabranch_dataset::generator::{Cells, Contract, Grain, Output, Row, Rows, Work};
use anabranch_dataset::{
    BuildOptions, ColumnSettings, ColumnType, Dataset, Fault, Generator, JournalPlace, Preview,
};
use anabranch_engine::clock::Clock;
use anabranch_engine::{Config, Engine};
use anabranch_testkit::Sim;
use anabranch_value::Value;

/// What happened, in order: milliseconds since the start, and what.
#[derive(Clone)]
pub(crate) struct Log {
    clock: Arc<dyn Clock>,
    start: Instant,
    lines: Arc<Mutex<Vec<(u64, String)>>>,
}

impl Log {
    pub(crate) fn new(sim: &Sim) -> Log {
        let clock = sim.clock();
        Log { start: clock.now(), clock, lines: Arc::default() }
    }

    pub(crate) fn note(&self, what: String) {
        let at = self.clock.now().duration_since(self.start).as_millis() as u64;
        self.lines.lock().unwrap().push((at, what));
    }

    /// When something happened.
    #[track_caller]
    pub(crate) fn at(&self, what: &str) -> u64 {
        let lines = self.lines.lock().unwrap();
        lines.iter().find(|(_, line)| line == what).unwrap_or_else(|| panic!("no `{what}` in {lines:?}")).0
    }

    pub(crate) fn has(&self, what: &str) -> bool {
        self.lines.lock().unwrap().iter().any(|(_, line)| line == what)
    }

    pub(crate) fn count(&self, begin: &str) -> usize {
        self.lines.lock().unwrap().iter().filter(|(_, line)| line.starts_with(begin)).count()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().iter().map(|(_, line)| line.clone()).collect()
    }
}

type Answer = dyn Fn(u64, &[Value], u32) -> Result<Value, Fault> + Send + Sync;

/// A column that waits a while and then answers by a script.
pub(crate) struct ScriptedColumn {
    contract: Contract,
    log: Log,
    takes: Arc<dyn Fn(u64) -> Duration + Send + Sync>,
    answer: Arc<Answer>,
    tries: Arc<Mutex<std::collections::HashMap<u64, u32>>>,
}

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

impl ScriptedColumn {
    /// A column of text that is the row's number with the column's name and what it read.
    pub(crate) fn new(name: &str, reads: &[&str], grain: Grain, log: &Log) -> ScriptedColumn {
        let own = name.to_owned();
        ScriptedColumn {
            contract: Contract {
                grain,
                reads: reads.iter().map(|name| (*name).to_owned()).collect(),
                fills: vec![Output { name: name.to_owned(), column_type: ColumnType::Text }],
                stateful: false,
            },
            log: log.clone(),
            takes: Arc::new(|_| ms(10)),
            answer: Arc::new(move |row, values, _| {
                let read: Vec<&str> = values.iter().map(|value| value.as_text().unwrap_or("-")).collect();
                Ok(format!("{own}{row}({})", read.join(" ")).into())
            }),
            tries: Arc::default(),
        }
    }

    pub(crate) fn cell(name: &str, reads: &[&str], log: &Log) -> ScriptedColumn {
        ScriptedColumn::new(name, reads, Grain::Cell, log)
    }

    pub(crate) fn batch(name: &str, reads: &[&str], log: &Log) -> ScriptedColumn {
        ScriptedColumn::new(name, reads, Grain::Batch, log)
    }

    pub(crate) fn takes(mut self, takes: impl Fn(u64) -> Duration + Send + Sync + 'static) -> ScriptedColumn {
        self.takes = Arc::new(takes);
        self
    }

    /// The answer to a row's number, what was read, and the number of the try from 1.
    pub(crate) fn answers(
        mut self,
        answer: impl Fn(u64, &[Value], u32) -> Result<Value, Fault> + Send + Sync + 'static,
    ) -> ScriptedColumn {
        self.answer = Arc::new(answer);
        self
    }

    /// Fails permanently on some rows.
    pub(crate) fn fails_on(self, fails: impl Fn(u64) -> bool + Send + Sync + 'static) -> ScriptedColumn {
        let usual = Arc::clone(&self.answer);
        self.answers(move |row, values, attempt| match fails(row) {
            true => Err(Fault::permanent("bad_request", format!("row {row} is bad"))),
            false => usual(row, values, attempt),
        })
    }

    pub(crate) fn stateful(mut self) -> ScriptedColumn {
        self.contract.stateful = true;
        self
    }
}

impl Generator for ScriptedColumn {
    fn contract(&self) -> &Contract {
        &self.contract
    }

    fn cell(&self, row: Row<'_>) -> Work<Cells> {
        let (log, answer, id, values) =
            (self.log.clone(), Arc::clone(&self.answer), row.id, row.values.to_vec());
        let name = self.contract.fills[0].name.clone();
        let attempt = *self.tries.lock().unwrap().entry(id).and_modify(|tries| *tries += 1).or_insert(1);
        log.note(format!("{name}{id} starts"));
        let until = log.clock.now() + (self.takes)(id);
        Work::future(async move {
            log.clock.sleep_until(until).await;
            log.note(format!("{name}{id} ends"));
            Ok(std::iter::once(answer(id, &values, attempt)?).collect())
        })
    }

    fn batch(&self, rows: Rows) -> Work<Vec<Result<Cells, Fault>>> {
        let (log, answer) = (self.log.clone(), Arc::clone(&self.answer));
        let (name, group) = (self.contract.fills[0].name.clone(), rows.group);
        log.note(format!("{name} of group {group} starts with {}", rows.ids.len()));
        let until = log.clock.now() + (self.takes)(group);
        Work::future(async move {
            log.clock.sleep_until(until).await;
            log.note(format!("{name} of group {group} ends"));
            let answer = |(row, id): (usize, &u64)| {
                let values: Vec<Value> = rows.columns.iter().map(|column| column[row].clone()).collect();
                Ok(std::iter::once(answer(*id, &values, 1)?).collect())
            };
            Ok(rows.ids.iter().enumerate().map(answer).collect())
        })
    }
}

/// A dataset of scripted columns with the usual settings.
pub(crate) fn dataset(engine: &Engine, columns: Vec<ScriptedColumn>) -> Dataset {
    let mut dataset = Dataset::new("test", engine);
    columns.into_iter().for_each(|column| dataset.column(column, ColumnSettings::default()));
    dataset
}

pub(crate) fn engine(sim: &Sim) -> Engine {
    sim.engine(&Config::default())
}

/// A preview as text: one line per row, then one per error.
pub(crate) fn shown(preview: &Preview) -> String {
    let mut lines: Vec<String> =
        (0..preview.rows.ids.len()).map(|row| preview.rows.row(row).to_json()).collect();
    lines.extend(preview.errors.iter().map(|error| {
        let kept = if error.kept { ", row kept" } else { "" };
        format!(
            "row {} column {}: {} after {}: {}{kept}",
            error.row, error.column, error.class, error.attempts, error.message
        )
    }));
    lines.join("\n")
}

/// A build without a journal: its threads know nothing of a virtual clock.
pub(crate) fn without_journal() -> BuildOptions {
    BuildOptions { journal: JournalPlace::Nowhere, ..BuildOptions::default() }
}

/// An empty folder of this test.
pub(crate) fn scratch(test: &str) -> std::path::PathBuf {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

/// A client for servers of the tests.
pub(crate) fn client() -> anabranch_model::HttpClient {
    let clock = Arc::new(anabranch_engine::clock::SystemClock);
    anabranch_model::HttpClient::new(&anabranch_model::HttpSettings::default(), clock).unwrap()
}
