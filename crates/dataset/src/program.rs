//! A dataset as tasks with numbered columns: the form of a configuration that a build runs.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use anabranch_engine::limit::LimitKey;
use anabranch_engine::workload::BoxFuture;
use anabranch_engine::{Dag, OnError, Policy};
use anabranch_value::Value;
use tokio::sync::watch;

use crate::column_type::ColumnType;
use crate::config::{OnRowError, Skip, TemplateText};
use crate::dry::InDryRun;
use crate::fault::Fault;
use crate::generator::{Generator, Grain, Output};
use crate::grid::{Grid, Layout};
use crate::stop::ErrorWatch;

/// The columns of a dataset and the tasks that fill them.
pub(crate) struct Program {
    pub(crate) columns: Vec<ProgramColumn>,
    /// One grid run each per row group, in order. Processors that see a group before its main columns run between them.
    pub(crate) phases: Vec<Phase>,
    /// Whether a column can be skipped.
    pub(crate) may_skip: bool,
}

/// A column while a dataset is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ProgramColumn {
    pub(crate) name: String,
    pub(crate) column_type: ColumnType,
}

/// Tasks that run together.
pub(crate) struct Phase {
    /// In their order of dependency.
    pub(crate) tasks: Vec<Task>,
    pub(crate) layout: Layout,
}

/// A generator in its place.
pub(crate) struct Task {
    pub(crate) name: String,
    pub(crate) generator: Arc<dyn Generator>,
    pub(crate) grain: Grain,
    pub(crate) stateful: bool,
    pub(crate) turns: Turns,
    /// Tasks of the same phase that it depends on.
    pub(crate) inputs: Vec<usize>,
    /// Columns, in the order of the contract.
    pub(crate) reads: Vec<usize>,
    pub(crate) fills: Vec<usize>,
    pub(crate) skip: Option<SkipRule>,
    /// Columns whose skipped cells skip this one.
    pub(crate) propagate: Vec<usize>,
    pub(crate) on_error: OnRowError,
    pub(crate) policy: Policy,
    /// Stops the build if too many of its calls fail.
    pub(crate) watch: Option<Arc<ErrorWatch>>,
    /// Its place in [`Progress`](crate::Progress).
    pub(crate) counter: usize,
    /// The aliases of the models that it asks.
    pub(crate) models: Vec<String>,
    pub(crate) in_dry_run: InDryRun,
    /// Decides whether the row is kept.
    pub(crate) accepts: bool,
}

/// A skip condition with the columns that it reads.
pub(crate) struct SkipRule {
    pub(crate) when: TemplateText,
    pub(crate) reads: Vec<usize>,
    pub(crate) value: Value,
}

/// A generator and the settings of its column.
#[derive(Clone)]
pub(crate) struct TaskSpec {
    pub(crate) generator: Arc<dyn Generator>,
    pub(crate) skip: Option<Skip>,
    pub(crate) propagate_skip: bool,
    pub(crate) on_error: OnRowError,
    pub(crate) policy: Policy,
    /// Runs before the processors that see a row group first.
    pub(crate) is_initial: bool,
    pub(crate) models: Vec<String>,
    pub(crate) in_dry_run: InDryRun,
    /// Decides whether the row is kept.
    pub(crate) accepts: bool,
}

impl Task {
    pub(crate) fn may_skip(&self) -> bool {
        self.skip.is_some() || !self.propagate.is_empty()
    }
}

impl Program {
    /// Numbers the columns and orders the tasks. `given` are the columns that no task fills: those of the previous
    /// stage, and those that processors add between the initial tasks and the others. `split` makes two phases.
    pub(crate) fn new(specs: Vec<TaskSpec>, given: &[Output], split: bool) -> Result<Program, String> {
        let mut columns: Vec<ProgramColumn> = Vec::new();
        let mut numbers: HashMap<String, usize> = HashMap::new();
        // The task that fills each column; `None` for columns of processors.
        let mut producers: Vec<Option<usize>> = Vec::new();
        let outputs = specs.iter().enumerate();
        let outputs = outputs.flat_map(|(task, spec)| {
            spec.generator.contract().fills.iter().map(move |fill| (Some(task), fill))
        });
        for (producer, output) in outputs.chain(given.iter().map(|output| (None, output))) {
            if numbers.insert(output.name.clone(), columns.len()).is_some() {
                return Err(format!("two generators fill column `{}`", output.name));
            }
            columns
                .push(ProgramColumn { name: output.name.clone(), column_type: output.column_type.clone() });
            producers.push(producer);
        }
        let may_skip = specs.iter().any(|spec| spec.skip.is_some());
        let mut tasks = Vec::with_capacity(specs.len());
        for (counter, spec) in specs.into_iter().enumerate() {
            let initial = spec.is_initial;
            tasks.push((initial, Task::resolve(spec, counter, may_skip, &numbers)?));
        }
        let phases = phases(tasks, &producers, split)?;
        Ok(Program { columns, phases, may_skip })
    }

    /// Gives each task with a limit the watch of that limit.
    pub(crate) fn watch(&mut self, mut watch: impl FnMut(LimitKey) -> Option<Arc<ErrorWatch>>) {
        for task in self.phases.iter_mut().flat_map(|phase| &mut phase.tasks) {
            task.watch = task.policy.limit.and_then(&mut watch);
        }
    }

    /// The names of the tasks, by their counters.
    pub(crate) fn task_names(&self) -> Vec<String> {
        let tasks = || self.phases.iter().flat_map(|phase| &phase.tasks);
        let mut names = vec![String::new(); tasks().count()];
        tasks().for_each(|task| names[task.counter].clone_from(&task.name));
        names
    }

    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

impl Phase {
    pub(crate) fn grid(&self, rows: usize) -> Grid<'_> {
        Grid { layout: &self.layout, rows: rows as u32 }
    }
}

impl Task {
    fn resolve(
        spec: TaskSpec,
        counter: usize,
        may_skip: bool,
        numbers: &HashMap<String, usize>,
    ) -> Result<Task, String> {
        let contract = spec.generator.contract();
        let name = contract.fills.first().map_or("accept", |fill| &fill.name).to_owned();
        let number = |read: &String| {
            numbers
                .get(read)
                .copied()
                .ok_or_else(|| format!("column `{name}` reads `{read}`, which nothing fills"))
        };
        let numbered = |names: &[String]| names.iter().map(number).collect::<Result<Vec<usize>, String>>();
        let reads = numbered(&contract.reads)?;
        let fills =
            contract.fills.iter().map(|fill| number(&fill.name)).collect::<Result<Vec<usize>, String>>()?;
        let skip = match spec.skip {
            None => None,
            Some(Skip { when, value }) => {
                let reads = numbered(when.template.variables())?;
                Some(SkipRule { when, reads, value })
            }
        };
        let (grain, stateful) = (contract.grain, contract.stateful);
        let mut policy = spec.policy;
        policy.on_error = match spec.on_error {
            OnRowError::DropRow => OnError::Isolate,
            OnRowError::KeepNull => OnError::Fallback,
            OnRowError::FailRun => OnError::FailRun,
        };
        let propagate = if may_skip && spec.propagate_skip { reads.clone() } else { Vec::new() };
        Ok(Task {
            generator: spec.generator,
            grain,
            stateful,
            turns: Turns::default(),
            inputs: Vec::new(),
            reads,
            fills,
            skip,
            propagate,
            on_error: spec.on_error,
            policy,
            watch: None,
            counter,
            models: spec.models,
            in_dry_run: if stateful { InDryRun::NotCalled } else { spec.in_dry_run },
            accepts: spec.accepts,
            name,
        })
    }

    /// All columns that must be there before it starts.
    fn needs(&self) -> impl Iterator<Item = usize> {
        let skip = self.skip.iter().flat_map(|skip| &skip.reads);
        self.reads.iter().chain(skip).copied()
    }
}

/// Orders the tasks by dependency and finds the inputs of each among its phase.
fn phases(tasks: Vec<(bool, Task)>, producers: &[Option<usize>], split: bool) -> Result<Vec<Phase>, String> {
    let inputs: Vec<Vec<usize>> = tasks
        .iter()
        .enumerate()
        .map(|(number, (_, task))| {
            let inputs = task.needs().filter_map(|column| producers[column]).filter(|input| *input != number);
            inputs.collect::<BTreeSet<usize>>().into_iter().collect()
        })
        .collect();
    let mut circle = None;
    let order = Dag::sort(&inputs, |tasks| circle = circle.take().or(Some(tasks.to_owned())));
    if let Some(circle) = circle {
        let names: Vec<&str> = circle.iter().map(|number| &*tasks[*number].1.name).collect();
        return Err(format!("columns depend on each other in a circle: {}", names.join(", ")));
    }
    let mut slots: Vec<Option<(bool, Task)>> = tasks.into_iter().map(Some).collect();
    // The phase of each task, and its number there.
    let mut places = vec![(0, 0); slots.len()];
    let mut phases: [Vec<Task>; 2] = Default::default();
    for number in order {
        let (initial, mut task) = slots[number].take().expect("an order has every task once");
        let phase = usize::from(split && !initial);
        let placed = inputs[number].iter().map(|input| places[*input]);
        task.inputs = placed.filter(|(from, _)| *from == phase).map(|(_, number)| number).collect();
        places[number] = (phase, phases[phase].len());
        phases[phase].push(task);
    }
    let phases = phases.into_iter().take(if split { 2 } else { 1 });
    Ok(phases.map(|tasks| Phase { layout: Layout::new(&tasks), tasks }).collect())
}

/// The current turn at a stateful generator. Row groups take turns in order.
#[derive(Clone)]
pub(crate) struct Turns(Arc<watch::Sender<u64>>);

impl Default for Turns {
    fn default() -> Turns {
        Turns(Arc::new(watch::Sender::new(0)))
    }
}

impl Turns {
    /// Waits until all earlier turns are over.
    pub(crate) fn enter(&self, turn: u64) -> BoxFuture<(), Fault> {
        let mut turns = self.0.subscribe();
        Box::pin(async move {
            let waited = turns.wait_for(|next| *next >= turn).await;
            waited.map(drop).map_err(|_| Fault::permanent("stopped", "the build ended"))
        })
    }

    /// Lets the next group in.
    pub(crate) fn leave(&self, turn: u64) {
        self.0.send_modify(|next| *next = (*next).max(turn + 1));
    }
}
