//! The dry run of one stage.

use std::sync::Arc;

use super::folder::FoundFolder;
use super::watch::Observe;
use super::{ColumnForecast, DryWatch, RowTrace};
use crate::admission::Admission;
use crate::begin::{FoundGroups, WantedGroups, look_at_groups};
use crate::build::{StageBuild, StagePlace};
use crate::dataset::Dataset;
use crate::error::Error;
use crate::job;
use crate::processor::{Table, TableColumn};
use crate::run::run_groups;
use crate::stages::StageRows;

/// The terms of a dry run.
pub(super) struct StageSetting {
    /// The requested number of rows.
    pub(super) asked: u64,
    pub(super) observe: Option<Observe>,
    /// The row to trace. If it is set, nothing is counted.
    pub(super) wanted: Option<u64>,
}

/// The forecast of one stage.
pub(super) struct StageForecast {
    pub(super) columns: Vec<ColumnForecast>,
    pub(super) sampled: Vec<ColumnForecast>,
    pub(super) dropped: u64,
    pub(super) rows_on_disk: u64,
    /// The rows that are known, if another stage follows.
    pub(super) known: Table,
    /// The number of rows that are not.
    pub(super) unknown: u64,
    pub(super) trace: Option<RowTrace>,
}

/// Rows on disk that are looked at for statistics.
const SAMPLE_ROWS: u64 = 1000;
/// Rounds of candidates, each as many as the ones before suggest.
const ROUNDS_MOST: usize = 20;

impl StageSetting {
    /// Runs a stage that starts from these known rows and this number of unknown ones.
    pub(super) async fn run(
        &self,
        dataset: &Arc<Dataset>,
        number: usize,
        input: Option<Arc<StageRows>>,
        unknown: u64,
        found: &FoundFolder,
    ) -> Result<StageForecast, Error> {
        let place = StagePlace { number, asked: self.asked, ..StagePlace::default() };
        let mut stage = StageBuild::new(dataset, place, input)?;
        let is_last = number + 1 == dataset.stages.len();
        let rows_before = found.earlier.as_ref().map_or(0, |earlier| earlier.rows);
        let watch = DryWatch::new(&stage.shared.program, rows_before, self.wanted, !is_last);
        let watch = Arc::new(watch.observed(self.observe.clone()));
        let shared = Arc::get_mut(&mut stage.shared).expect("the stage has not begun");
        shared.dry = Some(Arc::clone(&watch));
        let kept = match (&found.folder, dataset.stages.len()) {
            // Stages after the first need the rows of those before, so all of them are followed.
            (Some(folder), 1) if self.wanted.is_none() => {
                let (folder, inputs, groups) = (folder.clone(), dataset.inputs.clone(), stage.groups);
                let (accepts, is_retry) = (stage.most.is_some(), found.is_retry);
                let looked = job::blocking(&dataset.engine, move || {
                    let (inputs, input_digest, has_journal) = (&inputs, "", true);
                    let wanted =
                        WantedGroups { groups, accepts, inputs, input_digest, is_retry, has_journal };
                    look_at_groups(&folder, &wanted)
                });
                looked.await??
            }
            _ => FoundGroups::default(),
        };
        if !found.is_complete || self.wanted.is_some() {
            match stage.most.filter(|_| self.wanted.is_none()) {
                Some(most) => self.until_accepted(&stage, &kept, most, acceptance(found, number)).await?,
                None => self.fixed(&stage, &kept).await?,
            }
        }
        let on_disk = match &found.earlier {
            Some(earlier) if found.is_complete => {
                earlier.stages.get(number).map_or(stage.groups.rows, |stage| stage.candidates)
            }
            _ => candidates_on_disk(&kept),
        };
        self.forecast(&stage, &watch, &kept, (on_disk, unknown)).await
    }

    async fn forecast(
        &self,
        stage: &StageBuild,
        watch: &DryWatch,
        kept: &FoundGroups,
        (on_disk, unknown): (u64, u64),
    ) -> Result<StageForecast, Error> {
        let (mut columns, dropped) = watch.take_columns();
        for column in &mut columns {
            column.on_disk = on_disk;
            column.unknown += unknown;
        }
        let (known, mut left) = watch.take_rows();
        let mut known = known.unwrap_or_default();
        if known.columns.is_empty() {
            let column = |(name, column_type)| TableColumn { name, column_type, values: Vec::new() };
            known.columns = stage.columns().into_iter().map(column).collect();
        }
        if stage.most.is_some() {
            left = stage.groups.rows.saturating_sub(known.ids.len() as u64);
        }
        let trace = watch.take_trace();
        let mut sampled = Vec::new();
        let mut rows = 0;
        let sample = kept.kept.iter().map(|(group, found)| (*group, found.ids.clone()));
        let sample = sample.take_while(|(_, ids)| {
            let is_enough = rows >= SAMPLE_ROWS;
            rows += ids.end - ids.start;
            !is_enough
        });
        let sample: Vec<_> = sample.collect();
        if !sample.is_empty() {
            watch.begin_sample();
            let at_once = stage.groups.at_once;
            run_groups(&stage.shared, Admission::of(sample.into_iter()), at_once, |_| {}).await?;
            (sampled, _) = watch.take_columns();
        }
        let rows_on_disk = kept.kept.values().map(|group| group.rows).sum();
        Ok(StageForecast { columns, sampled, dropped, rows_on_disk, known, unknown: left + unknown, trace })
    }

    /// All rows, or the row group of the one that is traced.
    async fn fixed(&self, stage: &StageBuild, kept: &FoundGroups) -> Result<(), Error> {
        let (groups, most) = (stage.groups, stage.most.unwrap_or(stage.groups.rows));
        let is_first = stage.shared.input.is_none();
        let due: Vec<_> = match self.wanted.filter(|_| is_first) {
            Some(row) if row < most => {
                let start = row / groups.size * groups.size;
                vec![(row / groups.size, start..(start + groups.size).min(most))]
            }
            // Rows of later stages have other numbers, so all of them are looked at.
            Some(_) | None => {
                let due = (0..groups.count()).filter(|group| !kept.kept.contains_key(group));
                due.map(|group| (group, groups.ids(group))).collect()
            }
        };
        run_groups(&stage.shared, Admission::of(due.into_iter()), groups.at_once, |_| {}).await
    }

    /// Runs enough candidates for the requested rows. An unknown candidate counts by the accepted share of the known
    /// ones, or of an earlier build.
    async fn until_accepted(
        &self,
        stage: &StageBuild,
        kept: &FoundGroups,
        most: u64,
        earlier: Option<f64>,
    ) -> Result<(), Error> {
        let groups = stage.groups;
        let mut next = candidates_on_disk(kept);
        let mut group = kept.kept.len() as u64 + kept.again.len() as u64;
        let again = Admission::of(kept.again.clone().into_iter());
        run_groups(&stage.shared, again, groups.at_once, |_| {}).await?;
        let on_disk: u64 = kept.kept.values().map(|group| group.rows).sum();
        let again: u64 = kept.again.iter().map(|(_, rows)| rows.end - rows.start).sum();
        let mut looked_at = again;
        for _ in 0..ROUNDS_MOST {
            let counts = stage.shared.progress.accept().unwrap_or_default();
            let lost = counts.rejected + stage.shared.progress.dropped();
            let (accepted, decided) = (counts.accepted, counts.accepted + lost);
            let measured = (decided >= 10).then(|| (accepted as f64 + 1.0) / (decided as f64 + 1.0));
            let share = measured.or(earlier).unwrap_or(1.0);
            let open = looked_at.saturating_sub(decided);
            let expected = on_disk as f64 + accepted as f64 + open as f64 * share;
            let missing = groups.rows as f64 - expected;
            // Less than a row is within the error of the share.
            if missing < 0.5 || next >= most {
                return Ok(());
            }
            let more = ((missing / share).ceil() as u64).clamp(1, most - next);
            let starts = (next..next + more).step_by(groups.size as usize);
            let due: Vec<_> =
                (group..).zip(starts.map(|start| start..(start + groups.size).min(next + more))).collect();
            (group, looked_at, next) = (group + due.len() as u64, looked_at + more, next + more);
            run_groups(&stage.shared, Admission::of(due.into_iter()), groups.at_once, |_| {}).await?;
        }
        Ok(())
    }
}

/// The candidates of groups that stay.
fn candidates_on_disk(kept: &FoundGroups) -> u64 {
    kept.kept.values().map(|group| group.ids.end - group.ids.start).sum()
}

/// The share of accepted rows in the earlier build.
fn acceptance(found: &FoundFolder, number: usize) -> Option<f64> {
    let stage = found.earlier.as_ref()?.stages.get(number)?;
    let accepted = stage.rows + stage.surplus;
    (stage.candidates >= 10 && accepted > 0).then(|| accepted as f64 / stage.candidates as f64)
}
