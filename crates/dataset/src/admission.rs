//! The row groups of a build, in the order in which they start.

use std::ops::Range;

use crate::progress::Progress;

/// A row group to build.
#[derive(Clone, Debug)]
pub(crate) struct GroupTask {
    pub(crate) group: u64,
    /// Its index among the groups of this run.
    pub(crate) turn: u64,
    /// The positions of its rows.
    pub(crate) rows: Range<u64>,
}

/// Says which row group is next.
pub(crate) struct Admission {
    /// The groups that are built in any case.
    due: Box<dyn Iterator<Item = (u64, Range<u64>)> + Send>,
    /// Groups that follow until enough rows are accepted.
    more: Option<MoreGroups>,
    turns: u64,
}

/// Row groups that are added until enough rows are accepted.
#[derive(Clone, Debug)]
pub(crate) struct MoreGroups {
    /// The requested number of rows.
    pub(crate) wanted: u64,
    /// The most rows to generate.
    pub(crate) most: u64,
    /// The most rows of a group.
    pub(crate) size: u64,
    pub(crate) next_group: u64,
    pub(crate) next_row: u64,
    /// The accepted rows of groups that have ended.
    pub(crate) accepted: u64,
    /// The candidates in groups in progress.
    pub(crate) under_way: u64,
}

impl Admission {
    /// These groups, and no others.
    pub(crate) fn of(due: impl Iterator<Item = (u64, Range<u64>)> + Send + 'static) -> Admission {
        Admission { due: Box::new(due), more: None, turns: 0 }
    }

    /// These groups, then others until enough rows are accepted.
    pub(crate) fn until_accepted(
        due: impl Iterator<Item = (u64, Range<u64>)> + Send + 'static,
        more: MoreGroups,
    ) -> Admission {
        Admission { more: Some(more), ..Admission::of(due) }
    }

    /// True if another group may be due before one ends, because the outcomes of rows in flight change the forecast.
    pub(crate) fn forecasts(&self) -> bool {
        self.more.is_some()
    }

    /// The next group, if one is due now.
    pub(crate) fn next(&mut self, progress: &Progress) -> Option<GroupTask> {
        let more = &mut self.more;
        let (group, rows) =
            self.due.next().or_else(|| more.as_mut().and_then(|more| more.next(acceptance(progress))))?;
        if let Some(more) = more {
            more.under_way += rows.end - rows.start;
            progress.candidates(rows.end - rows.start);
        }
        self.turns += 1;
        Some(GroupTask { group, turn: self.turns - 1, rows })
    }

    /// Records the end of a group with this many rows.
    pub(crate) fn ended(&mut self, candidates: u64, rows: u64) {
        if let Some(more) = &mut self.more {
            more.under_way -= candidates;
            more.accepted += rows;
        }
    }
}

/// The share of candidates that become rows, as far as it is known: all of them until one does not.
fn acceptance(progress: &Progress) -> f64 {
    let Some(accept) = progress.accept() else { return 1.0 };
    // One more of each keeps the forecast away from none and all.
    let lost = accept.rejected + progress.dropped();
    if lost == 0 {
        return 1.0;
    }
    (accept.accepted + 1) as f64 / (accept.accepted + lost + 1) as f64
}

impl MoreGroups {
    /// The next group: as large as is needed for the rows that are still missing, by the forecast.
    fn next(&mut self, acceptance: f64) -> Option<(u64, Range<u64>)> {
        let expected = self.accepted as f64 + self.under_way as f64 * acceptance;
        let missing = self.wanted as f64 - expected;
        if missing <= 0.0 || self.next_row >= self.most {
            return None;
        }
        // One standard deviation more: a group that falls short costs another round of waiting.
        let margin = (missing * (1.0 - acceptance)).sqrt();
        let candidates = ((missing + margin) / acceptance).ceil().clamp(1.0, self.size as f64) as u64;
        let rows = self.next_row..(self.next_row + candidates).min(self.most);
        let group = self.next_group;
        self.next_group += 1;
        self.next_row = rows.end;
        Some((group, rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of candidates and rows at the end, if every third candidate is accepted and several groups are in
    /// progress.
    fn run(wanted: u64, size: u64, most: u64) -> (u64, u64) {
        let progress = Progress::new(wanted, []).accepting(most);
        let more = MoreGroups { wanted, most, size, next_group: 0, next_row: 0, accepted: 0, under_way: 0 };
        let mut admission = Admission::until_accepted(std::iter::empty(), more);
        let (mut under_way, mut candidates, mut rows) = (Vec::new(), 0, 0);
        loop {
            while under_way.len() < 3
                && let Some(task) = admission.next(&progress)
            {
                assert!(task.rows.end - task.rows.start <= size);
                assert_eq!(task.rows.start, candidates);
                candidates = task.rows.end;
                under_way.push(task.rows);
            }
            if under_way.is_empty() {
                return (candidates, rows);
            }
            let ended = under_way.remove(0);
            let accepted = ended.clone().filter(|row| row % 3 == 0).count() as u64;
            for row in ended.clone() {
                if row % 3 == 0 { progress.accepted_row() } else { progress.rejected_row() }
            }
            admission.ended(ended.end - ended.start, accepted);
            rows += accepted;
        }
    }

    #[test]
    fn no_more_rows_are_generated_than_the_forecast_needs() {
        for (wanted, size) in [(1, 1000), (10, 1000), (1000, 1000), (1000, 10), (100_000, 1000), (7, 1)] {
            let (candidates, rows) = run(wanted, size, u64::MAX);
            assert!(rows >= wanted, "{rows} of {wanted}");
            let needed = wanted * 3;
            assert!(candidates <= needed + needed / 10 + 10, "{candidates} for {needed}");
        }
    }

    #[test]
    fn the_bound_of_candidates_holds() {
        assert_eq!(run(1000, 100, 450), (450, 150));
    }
}
