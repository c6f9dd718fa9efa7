//! Building a dataset: from generators to files, or to rows in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_engine::limit::Limits;
use anabranch_value::Value;

use crate::dataset::{Dataset, Usage};
use crate::error::Error;
use crate::errors::RowError;
use crate::generator::Output;
use crate::job;
use crate::output::{ColumnMetadata, Folder, Metadata, ModelMetadata};
use crate::processor::Table;
use crate::program::Program;
use crate::progress::Progress;
use crate::run::{GroupEnd, Groups, Shared, run_groups};

/// The result of a build: rows, errors, calls.
#[derive(Clone, Debug, Default)]
pub struct BuildReport {
    /// Rows in the files.
    pub rows: u64,
    /// Rows that were dropped because a cell failed.
    pub dropped: u64,
    /// Failed cells, by row. At most [`MAX_ERRORS`] are held; the files have all.
    pub errors: Vec<RowError>,
    pub error_count: u64,
    pub models: BTreeMap<String, ModelMetadata>,
}

/// Failed cells that a report holds.
pub const MAX_ERRORS: usize = 10_000;

/// The rows of a preview.
#[derive(Clone, Debug, Default)]
pub struct Preview {
    pub rows: Table,
    /// The columns that a build writes apart.
    pub dropped: Option<Table>,
    /// The tables that processors write beside the rows, by name.
    pub processed: Vec<(String, Table)>,
    pub errors: Vec<RowError>,
}

/// A build that was set up: its counters can be read while it runs.
pub struct Build {
    shared: Arc<Shared>,
    groups: Groups,
    name: String,
    source: Arc<str>,
    usage: Usage,
}

impl Build {
    /// Sets a build up; `folder: None` keeps the rows in memory, in one group.
    pub(crate) fn new(dataset: Dataset, rows: u64, folder: Option<Folder>) -> Result<Build, Error> {
        let Dataset { name, source, engine, limits, tasks, processors, order, dropped, run, seed, usage } =
            dataset;
        let between: Vec<Output> = processors.iter().flat_map(|processor| processor.adds()).collect();
        let split = processors.iter().any(|processor| processor.points().before_batch);
        let program = Program::new(tasks, &between, split).map_err(Error::Setup)?;
        let progress = Arc::new(Progress::new(rows, program.task_names()));
        let (kept, dropped) = output_columns(&program, &order, &dropped);
        let started = engine.clock().now();
        let at_once = run.max_concurrent_row_groups.max(1);
        let size = if folder.is_some() { run.buffer_size.max(1) } else { rows.max(1) };
        let shared = Shared {
            engine,
            program,
            limits,
            processors,
            progress,
            kept,
            dropped,
            preserve_dropped: run.preserve_dropped_columns,
            tasks_in_flight: (run.max_in_flight_tasks / at_once).max(1),
            seed,
            started,
            folder,
        };
        Ok(Build { shared: Arc::new(shared), groups: Groups { rows, size, at_once }, name, source, usage })
    }

    /// The counters of the build.
    pub fn progress(&self) -> &Arc<Progress> {
        &self.shared.progress
    }

    /// The limits of the models, for displays.
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// Builds all rows in memory.
    pub async fn preview(&self) -> Result<Preview, Error> {
        let mut preview = Preview::default();
        run_groups(&self.shared, self.groups, |end| {
            if let Some(files) = end.files {
                preview = Preview {
                    rows: files.rows,
                    dropped: files.dropped,
                    processed: files.processed,
                    errors: files.errors,
                };
            }
        })
        .await?;
        Ok(preview)
    }

    /// Builds all rows into the folder.
    pub async fn run(&self) -> Result<BuildReport, Error> {
        let Some(folder) = self.shared.folder.clone() else {
            return Err(Error::Setup("a preview has no folder to build into".to_owned()));
        };
        let mut metadata = self.metadata();
        let (first, source, start) = (folder.clone(), Arc::clone(&self.source), metadata.clone());
        let began = self.event("start", [("rows", self.groups.rows), ("row_groups", self.groups.count())]);
        job::blocking(&self.shared.engine, move || {
            first.write_config(&source)?;
            first.write_event(&began)?;
            first.write_metadata(&start)
        })
        .await??;
        let mut report = BuildReport::default();
        run_groups(&self.shared, self.groups, |end| note_group(&mut metadata, &mut report, end)).await?;
        report.errors.sort_by_key(|error| error.row);
        metadata.file_paths.sort_by_key(|path| (path.len(), path.clone()));
        report.models = (self.usage)();
        metadata.models.clone_from(&report.models);
        metadata.is_complete = true;
        let (shared, groups) = (Arc::clone(&self.shared), self.groups.count());
        let ended = [("rows", report.rows), ("dropped", report.dropped), ("errors", report.error_count)];
        let ended = self.event("end", ended);
        job::blocking(&self.shared.engine, move || {
            folder.write_errors(groups)?;
            crate::output::after_generation(&folder, &shared.processors, &mut metadata)?;
            folder.write_event(&ended)?;
            folder.write_metadata(&metadata).map_err(Error::from)
        })
        .await??;
        Ok(report)
    }

    fn event<const N: usize>(&self, name: &str, counts: [(&str, u64); N]) -> Value {
        let mut event = vec![("at_ms", self.shared.elapsed_ms()), ("event", name.into())];
        event.extend(counts.map(|(name, count)| (name, Value::Int(count as i64))));
        Value::map(event)
    }

    fn metadata(&self) -> Metadata {
        let Shared { program, kept, dropped, .. } = &*self.shared;
        let column = |number: &usize, dropped: bool| {
            let column = &program.columns[*number];
            let column_type = crate::output::type_name(&column.column_type);
            ColumnMetadata { name: column.name.clone(), column_type, dropped }
        };
        let columns = kept.iter().map(|number| column(number, false));
        let columns = columns.chain(dropped.iter().map(|number| column(number, true)));
        Metadata {
            dataset_name: self.name.clone(),
            anabranch_version: env!("CARGO_PKG_VERSION"),
            target_num_records: self.groups.rows,
            total_num_batches: self.groups.count(),
            buffer_size: self.groups.size,
            seed: self.shared.seed,
            columns: columns.collect(),
            ..Metadata::default()
        }
    }
}

fn note_group(metadata: &mut Metadata, report: &mut BuildReport, end: GroupEnd) {
    metadata.num_completed_batches += 1;
    metadata.actual_num_records += end.rows;
    metadata.file_paths.push(format!("parquet-files/batch_{:05}.parquet", end.group));
    report.rows += end.rows;
    for error in end.errors {
        let classes = metadata.errors.entry(error.column.clone()).or_default();
        *classes.entry(error.class.clone()).or_default() += 1;
        report.error_count += 1;
        if !error.kept {
            report.dropped += 1;
            metadata.dropped_num_records += 1;
        }
        if report.errors.len() < MAX_ERRORS {
            report.errors.push(error);
        }
    }
}

/// The numbers of the kept columns in order, and of the dropped ones.
fn output_columns(program: &Program, order: &[String], dropped: &[String]) -> (Vec<usize>, Vec<usize>) {
    let named = order.iter().filter_map(|name| program.column(name));
    let mut all: Vec<usize> = named.collect();
    let rest: Vec<usize> = (0..program.columns.len()).filter(|number| !all.contains(number)).collect();
    all.extend(rest);
    let is_dropped = |number: &usize| dropped.contains(&program.columns[*number].name);
    all.into_iter().partition(|number| !is_dropped(number))
}
