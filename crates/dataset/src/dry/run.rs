//! Dry runs of a build: its stages one after another, as far as their rows are known.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use anabranch_engine::limit::LimitKey;

use super::folder::{FoundFolder, look};
use super::stage::{StageForecast, StageSetting};
use super::watch::Observe;
use super::{CellForecast, DryRun, LedgerLine, ModelFacts, RowTrace};
use crate::build::{CompiledStage, learned};
use crate::dataset::{BuildOptions, Dataset};
use crate::error::Error;
use crate::estimate::Totals;
use crate::inputs;
use crate::job;
use crate::processor::Table;
use crate::stages::{StageRows, StepSetting, gather, select};
use crate::stop::StopReason;

impl Dataset {
    /// Finds out what a build would pay for, without paying: the cells whose replies the journal has, and those that it
    /// lacks. It contacts no server, takes no limit of a model and writes no file. It opens the journal of the folder,
    /// which only one process at a time can do.
    pub async fn dry_run(self, options: &BuildOptions) -> Result<DryRun, Error> {
        Ok(self.dry(options, None, None).await?.0)
    }

    /// A dry run that shows each cell once. The observer is called by several threads.
    pub async fn dry_run_with(
        self,
        options: &BuildOptions,
        observe: impl Fn(&CellForecast<'_>) + Send + Sync + 'static,
    ) -> Result<DryRun, Error> {
        Ok(self.dry(options, Some(Arc::new(observe)), None).await?.0)
    }

    /// Everything that is known about one row: its values, and the recorded calls that they come from. `None` if there
    /// is no such row, or if it depends on unknown rows.
    pub async fn trace_row(self, options: &BuildOptions, row: u64) -> Result<Option<RowTrace>, Error> {
        Ok(self.dry(options, None, Some(row)).await?.1)
    }

    async fn dry(
        mut self,
        options: &BuildOptions,
        observe: Option<Observe>,
        wanted: Option<u64>,
    ) -> Result<(DryRun, Option<RowTrace>), Error> {
        let columns = CompiledStage::check(&self)?;
        self.inputs.insert("columns".to_owned(), columns);
        let (own, inputs, stop) = (options.clone(), self.inputs.clone(), self.stop.clone());
        let found = job::blocking(&self.engine, move || look(&own, &inputs, stop)).await??;
        let mut ledger = Vec::new();
        if let Some(journal) = &found.journal {
            learned::load(journal.path(), &self.limits);
            let _ = self.journal.set(journal.clone());
            ledger.extend(journal.ledger().into_iter().map(|(origin, figures)| LedgerLine {
                is_own: origin.dataset == self.name,
                column: origin.column,
                model: origin.model,
                figures,
            }));
        }
        self.spend.begin(&options.out, found.continued.as_ref(), &self.name, found.journal.as_ref());
        self.rounds.store(found.retry_rounds, Relaxed);
        let models = std::mem::take(&mut self.models);
        let limit = |(facts, key): (ModelFacts, LimitKey)| ModelFacts {
            limit: self.limits.status(key).limit,
            ..facts
        };
        let mut run = DryRun {
            rows: options.rows,
            rows_on_disk: if found.is_complete { options.rows } else { 0 },
            is_complete: found.is_complete,
            differ: found.differ.clone(),
            inputs_digest: inputs::digest(&self.inputs),
            earlier: found.earlier.clone(),
            models: models.into_iter().map(limit).collect(),
            spent: Totals::of(&self.spend, self.spend.ran_before),
            ledger,
            ..DryRun::default()
        };
        let setting = StageSetting { asked: options.rows, observe, wanted };
        let ran = run_stages(&Arc::new(self), &found, &setting, &mut run).await;
        found.release().await?;
        ran.map(|trace| (run, trace))
    }
}

/// Runs the stages. The rows of a stage that are known go through its steps, and the next stage starts from them; the others
/// are estimated by their number.
async fn run_stages(
    dataset: &Arc<Dataset>,
    found: &FoundFolder,
    setting: &StageSetting,
    run: &mut DryRun,
) -> Result<Option<RowTrace>, Error> {
    let (mut input, mut unknown, mut trace) = (None, 0, None::<RowTrace>);
    for number in 0..dataset.stages.len() {
        let stage = setting.run(dataset, number, input.take(), unknown, found).await?;
        if let Some(StopReason::Journal(error)) = dataset.stop.reason() {
            return Err(Error::Journal(Arc::clone(error)));
        }
        let StageForecast { columns, sampled, dropped, rows_on_disk, known, unknown: left, trace: found_row } =
            stage;
        run.columns.extend(columns);
        run.sampled.extend(sampled);
        run.dropped += dropped;
        run.rows_on_disk = run.rows_on_disk.max(rows_on_disk);
        trace = match (trace, found_row) {
            (Some(mut trace), Some(more)) => {
                trace.add(more);
                Some(trace)
            }
            (one, other) => one.or(other),
        };
        let steps = &dataset.stages[number].steps;
        let before = known.ids.len();
        let next = {
            let rows = StageRows::in_memory(known);
            let selection = select(&rows, StepSetting { steps, seed: dataset.seed })?;
            gather(&rows, &selection, 0..selection.len())?
        };
        unknown = estimated(found, number, (before, &next), left);
        input = Some(Arc::new(StageRows::in_memory(next)));
    }
    Ok(trace)
}

/// Rows that make a ratio worth something.
const ENOUGH: usize = 10;

/// An estimate of the next stage's rows from unknown rows, by the ratio of the known rows or of an earlier build.
fn estimated(found: &FoundFolder, number: usize, (before, next): (usize, &Table), unknown: u64) -> u64 {
    let known = (before >= ENOUGH).then(|| next.ids.len() as f64 / before as f64);
    let ratio = known.or_else(|| {
        let stages = &found.earlier.as_ref()?.stages;
        let (stage, next) = (stages.get(number)?, stages.get(number + 1)?);
        (stage.rows > 0).then(|| next.candidates as f64 / stage.rows as f64)
    });
    (unknown as f64 * ratio.unwrap_or(1.0)).round() as u64
}
