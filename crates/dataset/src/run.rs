//! Runs the row groups of a program: several at a time, each on its own task.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_engine::limit::Limits;
use anabranch_engine::options::Class;
use anabranch_engine::{Engine, Failure, Options, Stopped};
use anabranch_value::Value;
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use tokio::sync::oneshot;

use crate::admission::{Admission, GroupTask};
use crate::dry::DryWatch;
use crate::error::Error;
use crate::errors::RowError;
use crate::fault::Fault;
use crate::grid::{GroupRun, RowValues, ValueMemory};
use crate::job;
use crate::journal::Journal;
use crate::output::{Folder, GroupFiles, GroupOnDisk};
use crate::processor::{Processor, Table, TableColumn};
use crate::program::Program;
use crate::progress::Progress;
use crate::stages::StageRows;
use crate::stop::StopSwitch;

/// The state that all row groups share.
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) program: Program,
    pub(crate) limits: Limits,
    pub(crate) processors: Vec<Arc<dyn Processor>>,
    pub(crate) progress: Arc<Progress>,
    /// The rows of the stage before, which the rows of this one start from.
    pub(crate) input: Option<Arc<StageRows>>,
    /// The columns of the rows, in order.
    pub(crate) kept: Vec<usize>,
    /// The columns that are written apart.
    pub(crate) dropped: Vec<usize>,
    /// False leaves the dropped columns out of the files.
    pub(crate) preserve_dropped: bool,
    pub(crate) tasks_in_flight: usize,
    pub(crate) seed: u64,
    /// The start of this run of the build.
    pub(crate) started: Instant,
    /// The time of the build's earlier runs.
    pub(crate) ran_before: Duration,
    /// `None` if the rows stay in memory.
    pub(crate) folder: Option<Folder>,
    pub(crate) journal: Option<Journal>,
    /// Whether recorded replies may replace calls.
    pub(crate) has_replies: bool,
    /// `None` if the values may take any memory.
    pub(crate) memory: Option<ValueMemory>,
    pub(crate) stop: StopSwitch,
    /// Set in a dry run, which pays for nothing and writes nothing.
    pub(crate) dry: Option<Arc<DryWatch>>,
}

/// The rows of a dataset by groups.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Groups {
    pub(crate) rows: u64,
    pub(crate) size: u64,
    pub(crate) at_once: usize,
}

/// The result of a row group.
pub(crate) struct GroupEnd {
    pub(crate) group: u64,
    /// The positions that it was built for.
    pub(crate) ids: Range<u64>,
    pub(crate) rows: u64,
    /// Rows that are not there because the build was stopped.
    pub(crate) unfinished: u64,
    pub(crate) errors: Vec<RowError>,
    /// The number of rows that were not accepted.
    pub(crate) rejected: u64,
    /// The rows themselves, if there is no folder.
    pub(crate) files: Option<GroupFiles>,
}

impl Groups {
    pub(crate) fn count(&self) -> u64 {
        self.rows.div_ceil(self.size)
    }

    pub(crate) fn ids(&self, group: u64) -> Range<u64> {
        let start = group * self.size;
        start..(start + self.size).min(self.rows)
    }
}

/// The time between two looks at the forecast of accepted rows.
const FORECAST_EVERY: Duration = Duration::from_millis(250);

/// Runs row groups, `at_once` at a time. `ended` is called with each as it ends, so a slow group does not keep others
/// from starting. Once the build is stopped, no further group starts.
pub(crate) async fn run_groups(
    shared: &Arc<Shared>,
    mut admission: Admission,
    at_once: usize,
    mut ended: impl FnMut(GroupEnd),
) -> Result<(), Error> {
    let mut active = FuturesUnordered::new();
    let clock = Arc::clone(shared.engine.clock());
    loop {
        while active.len() < at_once
            && shared.stop.reason().is_none()
            && let Some(task) = admission.next(&shared.progress)
        {
            active.push(spawn(shared, task));
        }
        let end = if admission.forecasts() && active.len() < at_once {
            let look = clock.sleep_until(clock.now() + FORECAST_EVERY);
            match select(active.next(), look).await {
                Either::Left((end, _)) => end,
                Either::Right(_) => continue,
            }
        } else {
            active.next().await
        };
        match end {
            Some(end) => {
                let end = end?;
                admission.ended(end.ids.end - end.ids.start, end.rows);
                ended(end);
            }
            None => return Ok(()),
        }
    }
}

/// Starts a row group on its own task, so that groups use several cores. Dropping the future stops it.
fn spawn(shared: &Arc<Shared>, task: GroupTask) -> impl Future<Output = Result<GroupEnd, Error>> + use<> {
    let (sender, receiver) = oneshot::channel();
    let own = Arc::clone(shared);
    let running = shared.engine.tasks().spawn(Box::pin(async move {
        // The receiver is gone if the build has ended in the meantime.
        let _ = sender.send(run_group(&own, task).await);
    }));
    async move {
        let _running = running;
        receiver.await.unwrap_or(Err(Error::Stopped))
    }
}

async fn run_group(shared: &Arc<Shared>, task: GroupTask) -> Result<GroupEnd, Error> {
    let program = &shared.program;
    let _turns = LeaveTurns { program, turn: task.turn };
    let mut rows = GroupRows {
        values: first_values(shared, &task).await?,
        errors: Vec::new(),
        rejected: Vec::new(),
        unfinished: 0,
        task,
    };
    for number in 0..program.phases.len() {
        if number > 0 && rows.unfinished == 0 {
            rows.values = before_batch(shared, rows.task.group, rows.values).await?;
        }
        // Rows of a group that was stopped in an earlier phase lack columns.
        if rows.unfinished == 0 {
            rows = run_phase(shared, number, rows).await?;
        } else {
            rows.unfinished = rows.task.rows.end - rows.task.rows.start;
        }
    }
    rows.errors.sort_by_key(|error| error.row);
    if let Some(dry) = &shared.dry {
        return Ok(end_dry(shared, dry, rows));
    }
    if let (Some(journal), None) = (&shared.journal, shared.stop.reason()) {
        // A row counts when it survives a power cut. Its file does, and so should the replies in it.
        journal.sync().await?;
    }
    let shared_too = Arc::clone(shared);
    let end = job::blocking(&shared.engine, move || finish_group(&shared_too, rows)).await??;
    shared.progress.wrote_group(end.rows);
    Ok(end)
}

/// Ends a group of a dry run. Only known rows are passed on.
fn end_dry(shared: &Shared, dry: &DryWatch, rows: GroupRows) -> GroupEnd {
    let GroupRows { task: GroupTask { group, rows: ids, .. }, mut values, errors, rejected, unfinished } =
        rows;
    dry.end_group(&shared.program, &values, &errors);
    dry.drop_unknown(&mut values);
    let known = values.kept().count() as u64;
    if dry.keeps_rows() {
        dry.keep_rows(group, take_table(shared, &mut values, &shared.kept));
    }
    let rejected = rejected.len() as u64;
    GroupEnd { group, ids, rows: known, unfinished, errors, rejected, files: None }
}

/// The rows of a group before anything is generated: as the stage before left them, or empty.
async fn first_values(shared: &Arc<Shared>, task: &GroupTask) -> Result<RowValues, Error> {
    let program = &shared.program;
    let empty = |ids| shared.no_values(ids);
    let Some(input) = &shared.input else { return Ok(empty(task.rows.clone().collect())) };
    let (input, positions) = (Arc::clone(input), task.rows.clone());
    let table = job::blocking(&shared.engine, move || input.read(positions)).await??;
    let mut values = empty(table.ids.into_iter().flatten().collect());
    for TableColumn { name, values: column, .. } in table.columns {
        if let Some(number) = program.column(&name) {
            column.into_iter().enumerate().for_each(|(row, value)| values.set(row, number, value));
        }
    }
    Ok(values)
}

/// Lets the next group in at all stateful tasks, however this one ends.
struct LeaveTurns<'p> {
    program: &'p Program,
    turn: u64,
}

impl Drop for LeaveTurns<'_> {
    fn drop(&mut self) {
        let tasks = self.program.phases.iter().flat_map(|phase| &phase.tasks);
        tasks.filter(|task| task.stateful).for_each(|task| task.turns.leave(self.turn));
    }
}

/// The rows of a group while it is built.
struct GroupRows {
    task: GroupTask,
    values: RowValues,
    errors: Vec<RowError>,
    /// Rows that were not accepted.
    rejected: Vec<u64>,
    /// Rows that are left out because the build was stopped.
    unfinished: u64,
}

async fn run_phase(shared: &Arc<Shared>, number: usize, rows: GroupRows) -> Result<GroupRows, Error> {
    let phase = &shared.program.phases[number];
    let GroupRows { task, values, mut errors, mut rejected, .. } = rows;
    let group = task.group;
    let progress = Arc::clone(&shared.progress);
    let mut work = GroupRun::new(&shared.program, phase, (group, task.turn), values, progress);
    work.prepares_early = shared.has_replies;
    if let Some(dry) = &shared.dry {
        work.make_dry(Arc::clone(dry));
    }
    let grid = phase.grid(work.rows());
    let options = Options {
        label: format!("row group {group}").into(),
        class: Class::Batch,
        in_flight: shared.tasks_in_flight,
        limits: Some(shared.limits.clone()),
        drain: Some(shared.stop.drain().clone()),
        seed: shared.seed ^ group,
        ..Options::default()
    };
    let result = shared.engine.run(&grid, &phase.layout.policies, &mut work, &options)?.await;
    let unfinished = match result {
        // A row whose call was withheld is unfinished, even if nothing else was left to do.
        Ok(_) | Err(Stopped::Drained) => work.leave_unfinished(),
        Err(Stopped::Node { failure: Failure::Error(fault), .. }) if fault.is_withheld() => {
            work.leave_unfinished()
        }
        Err(Stopped::Node { node, failure }) => {
            let (task, row) = work.describe(node);
            let column = task.map_or_else(String::new, |task| task.name.clone());
            return Err(Error::Column { column, row, failure: failure.to_string() });
        }
        Err(Stopped::Deadline { .. } | Stopped::Cut { .. }) => return Err(Error::Stopped),
    };
    let (values, more, not_accepted) = work.into_parts();
    errors.extend(more);
    rejected.extend(not_accepted);
    Ok(GroupRows { task, values, errors, rejected, unfinished })
}

/// Lets processors change a group before its main columns. They see the existing rows, and may add and remove some.
async fn before_batch(shared: &Arc<Shared>, group: u64, mut values: RowValues) -> Result<RowValues, Error> {
    let columns: Vec<usize> = (0..shared.program.columns.len()).collect();
    let table = take_table(shared, &mut values, &columns);
    let shared_too = Arc::clone(shared);
    let table = job::blocking(&shared.engine, move || {
        let processors = shared_too.processors.iter().filter(|processor| processor.points().before_batch);
        let mut table = table;
        for processor in processors {
            table = processor.before_batch(table).map_err(processor_error(&**processor))?;
        }
        Ok::<Table, Error>(table)
    })
    .await??;
    restore(shared, group, table)
}

/// Converts a changed table to the values of a group, and numbers the rows that were added.
fn restore(shared: &Shared, group: u64, table: Table) -> Result<RowValues, Error> {
    let added = (0..).map(|number| ADDED_ROWS | group << 24 | number);
    let ids: Vec<u64> = table.ids.iter().zip(added).map(|(id, added)| id.unwrap_or(added)).collect();
    let program = &shared.program;
    let mut values = shared.no_values(ids);
    for TableColumn { name, values: column, .. } in table.columns {
        let Some(number) = program.column(&name) else {
            return Err(Error::Processor {
                name,
                fault: Fault::permanent("processor", "the column is not declared"),
            });
        };
        if column.len() != values.rows() {
            let what = format!("the column has {} values for {} rows", column.len(), values.rows());
            return Err(Error::Processor { name, fault: Fault::permanent("processor", what) });
        }
        column.into_iter().enumerate().for_each(|(row, value)| values.set(row, number, value));
    }
    Ok(values)
}

/// The numbers of rows that processors add begin here.
const ADDED_ROWS: u64 = 1 << 62;

fn processor_error(processor: &dyn Processor) -> impl FnOnce(Fault) -> Error {
    let name = processor.name().to_owned();
    move |fault| Error::Processor { name, fault }
}

/// Moves the kept rows of some columns out of the values.
fn take_table(shared: &Shared, values: &mut RowValues, columns: &[usize]) -> Table {
    let kept: Vec<usize> = values.kept().collect();
    let column = |number: &usize| TableColumn {
        name: shared.program.columns[*number].name.clone(),
        column_type: shared.program.columns[*number].column_type.clone(),
        values: kept.iter().map(|row| values.take(*row, *number)).collect(),
    };
    let columns = columns.iter().map(column).collect();
    Table { ids: kept.iter().map(|row| Some(values.ids[*row])).collect(), columns }
}

/// Runs the processors of a group and writes it.
fn finish_group(shared: &Shared, rows: GroupRows) -> Result<GroupEnd, Error> {
    let GroupRows { task: GroupTask { group, rows: ids, .. }, mut values, errors, mut rejected, unfinished } =
        rows;
    if unfinished > 0
        && let Some(end) = unwritten_part(shared, group, &ids, unfinished)?
    {
        return Ok(end);
    }
    rejected.sort_unstable();
    let not_accepted = rejected.len() as u64;
    let all: Vec<usize> = shared.kept.iter().chain(&shared.dropped).copied().collect();
    let mut table = take_table(shared, &mut values, &all);
    let count = table.ids.len();
    let mut processed = Vec::new();
    for processor in &shared.processors {
        if let Some(beside) = processor.extract(&table).map_err(processor_error(&**processor))? {
            processed.push((processor.name().to_owned(), beside));
        }
        if processor.points().after_batch {
            table = processor.after_batch(table).map_err(processor_error(&**processor))?;
            if table.ids.len() != count {
                let what = format!("it must keep the number of rows: {count} became {}", table.ids.len());
                return Err(processor_error(&**processor)(Fault::permanent("processor", what)));
            }
        }
    }
    let dropped: Vec<&str> =
        shared.dropped.iter().map(|column| &*shared.program.columns[*column].name).collect();
    let (apart, kept) = table.columns.into_iter().partition(|column| dropped.contains(&&*column.name));
    let rows = Table { ids: table.ids, columns: kept };
    let apart: Vec<TableColumn> = apart;
    let dropped = (shared.preserve_dropped && !apart.is_empty())
        .then(|| Table { ids: rows.ids.clone(), columns: apart });
    let files = GroupFiles { rows, dropped, processed, errors, rejected, ids: ids.clone(), unfinished };
    let errors = files.errors.clone();
    let Some(folder) = &shared.folder else {
        let (rows, rejected, files) = (count as u64, not_accepted, Some(files));
        return Ok(GroupEnd { group, ids, rows, unfinished, errors, rejected, files });
    };
    folder.write_group(group, &files)?;
    folder.write_event(&group_event(shared, group, count, &errors))?;
    let (rows, rejected, files) = (count as u64, not_accepted, None);
    Ok(GroupEnd { group, ids, rows, unfinished, errors, rejected, files })
}

/// The end of a group that was stopped half-way and should not be written: it has no rows, or would replace as many.
fn unwritten_part(
    shared: &Shared,
    group: u64,
    ids: &Range<u64>,
    unfinished: u64,
) -> Result<Option<GroupEnd>, Error> {
    let there = shared.folder.as_ref().map(|folder| folder.group(group)).transpose()?.flatten();
    let (ids, files) = (ids.clone(), None);
    if let Some(there) = there.filter(|there| there.ids == ids && there.unfinished <= unfinished) {
        let GroupOnDisk { rows, unfinished, errors, rejected, .. } = there;
        return Ok(Some(GroupEnd { group, ids, rows, unfinished, errors, rejected, files }));
    }
    let is_empty = shared.folder.is_none() || unfinished >= ids.end - ids.start;
    let nothing = GroupEnd { group, ids, rows: 0, unfinished, errors: Vec::new(), rejected: 0, files };
    Ok(is_empty.then_some(nothing))
}

/// The event of a row group that was written.
fn group_event(shared: &Shared, group: u64, rows: usize, errors: &[RowError]) -> Value {
    let mut classes: BTreeMap<&str, i64> = BTreeMap::new();
    errors.iter().for_each(|error| *classes.entry(&error.class).or_default() += 1);
    let dropped = errors.iter().filter(|error| !error.kept).count() as i64;
    Value::map([
        ("at_ms", shared.elapsed_ms()),
        ("event", "row_group".into()),
        ("group", (group as i64).into()),
        ("rows", (rows as i64).into()),
        ("dropped", dropped.into()),
        ("errors", Value::map(classes.into_iter().map(|(class, count)| (class, count.into())))),
    ])
}

impl Shared {
    /// Rows without values.
    fn no_values(&self, ids: Vec<u64>) -> RowValues {
        let mut values = RowValues::new(ids, self.program.columns.len(), self.program.may_skip);
        self.memory.iter().for_each(|memory| values.count_in(memory));
        values
    }

    /// The time of all runs of the build.
    pub(crate) fn elapsed(&self) -> Duration {
        self.ran_before + self.engine.clock().now().saturating_duration_since(self.started)
    }

    /// The same for events.
    pub(crate) fn elapsed_ms(&self) -> Value {
        Value::Int(self.elapsed().as_millis() as i64)
    }
}
