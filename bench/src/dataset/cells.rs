//! The scheduler of datasets with a model in the same process and no templates, beside a plain loop over the same cells.
//!
//! Five columns per row: `a`, then `b` and `c` that read it, `d` that reads both, `e` that reads `d`. The files are written
//! as in a real build. The plain loop is the floor: it computes the same cells row by row and writes nothing.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anabranch_dataset::generator::{Cells, Contract, Grain, Output, Row, Work};
use anabranch_dataset::{BuildOptions, ColumnSettings, ColumnType, Dataset, Generator, JournalPlace};
use anabranch_engine::limit::Allowance;
use anabranch_engine::{Config, Engine};
use anabranch_value::Value;

use crate::counting;
use crate::report::{Report, row};

use super::Scale;

pub(super) fn report(report: &mut Report, scale: Scale) -> io::Result<()> {
    report.heading("Cells without servers");
    report.say(format_args!("{LEGEND}\n"));
    let mut rows = vec![row([
        "cells",
        "form",
        "wall",
        "CPU",
        "cells/s",
        "CPU per cell",
        "loop per cell",
        "peak memory",
    ])];
    let sizes: &[u64] = if scale == Scale::Quick { &[20_000] } else { &[20_000, 200_000, 2_000_000] };
    for size in sizes {
        for form in [Form::Ready, Form::Future, Form::Limited] {
            if *size > 200_000 && form != Form::Ready && form != Form::Future {
                continue;
            }
            rows.push(measure(*size, form)?);
        }
    }
    report.table(&rows);
    Ok(())
}

const LEGEND: &str = "`ready`: the model answers at once; `future`: as a future; `limit`: as a future that counts against a \
    limit of 64 calls. CPU counts all threads. `loop` is the floor: the same cells computed by plain loops, without a \
    scheduler and without files.";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Ready,
    Future,
    Limited,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Form::Ready => "ready",
            Form::Future => "future",
            Form::Limited => "limit",
        }
    }
}

/// A model that answers with a number.
struct InProcess {
    contract: Contract,
    form: Form,
}

const COLUMNS: [(&str, &[&str]); 5] =
    [("a", &[]), ("b", &["a"]), ("c", &["a"]), ("d", &["b", "c"]), ("e", &["d"])];

fn answer(id: u64, values: &[Value]) -> Value {
    let sum = values.iter().map(|value| value.as_number().unwrap_or(0.0) as i64).sum::<i64>();
    Value::Int(sum.wrapping_add(id as i64))
}

impl Generator for InProcess {
    fn contract(&self) -> &Contract {
        &self.contract
    }

    fn cell(&self, row: Row<'_>) -> Work<Cells> {
        let value = answer(row.id, row.values);
        match self.form {
            Form::Ready => Work::Ready(Ok(std::iter::once(value).collect())),
            Form::Future | Form::Limited => Work::future(async move { Ok(std::iter::once(value).collect()) }),
        }
    }
}

fn dataset(engine: &Engine, form: Form) -> Dataset {
    let mut dataset = Dataset::new("bench", engine);
    let limit = dataset.limits().add("model", Allowance::fixed(64)).expect("a new limit");
    for (name, reads) in COLUMNS {
        let contract = Contract {
            grain: Grain::Cell,
            reads: reads.iter().map(|name| (*name).to_owned()).collect(),
            fills: vec![Output { name: name.to_owned(), column_type: ColumnType::Int }],
            stateful: false,
        };
        let limit = (form == Form::Limited).then_some(limit);
        dataset.column(InProcess { contract, form }, ColumnSettings { limit, ..ColumnSettings::default() });
    }
    dataset
}

fn measure(rows: u64, form: Form) -> io::Result<Vec<String>> {
    let cells = rows * COLUMNS.len() as u64;
    let out = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../target/bench-dataset-{}", std::process::id()));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let run = || {
        runtime.block_on(async {
            let engine = Engine::new(&Config::default()).expect("the default settings are good");
            let journal = JournalPlace::Nowhere;
            let options =
                BuildOptions { rows, out: out.clone(), replace: true, journal, ..BuildOptions::default() };
            let build = dataset(&engine, form).build(options).await.expect("a folder for the bench");
            build.run().await.expect("no cell fails").rows
        })
    };
    // The first run only counts memory, which costs time.
    let (built, counted) = counting::count(run);
    assert_eq!(built, rows);
    let (start, cpu) = (Instant::now(), cpu_time());
    assert_eq!(run(), rows);
    let (wall, cpu) = (start.elapsed(), cpu_time() - cpu);
    std::fs::remove_dir_all(&out)?;
    let floor = plain_loop(rows);
    let per_cell = |time: Duration| format!("{:.0} ns", time.as_nanos() as f64 / cells as f64);
    Ok(vec![
        cells.to_string(),
        form.name().to_owned(),
        format!("{:.2} s", wall.as_secs_f64()),
        format!("{:.2} s", cpu.as_secs_f64()),
        format!("{:.0}", cells as f64 / wall.as_secs_f64()),
        per_cell(cpu),
        per_cell(floor),
        format!("{:.1} MB", counted.peak as f64 / 1e6),
    ])
}

/// The same cells by plain loops.
fn plain_loop(rows: u64) -> Duration {
    let start = Instant::now();
    let mut sum = 0_i64;
    for id in 0..rows {
        let a = answer(id, &[]);
        let (b, c) = (answer(id, std::slice::from_ref(&a)), answer(id, std::slice::from_ref(&a)));
        let d = answer(id, &[b, c]);
        if let Value::Int(e) = answer(id, &[d]) {
            sum = sum.wrapping_add(e);
        }
    }
    std::hint::black_box(sum);
    start.elapsed()
}

/// The CPU time of this process.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
