//! The course of a build, from its events.

use std::collections::HashSet;
use std::path::Path;

use anabranch_dataset::output::FileError;
use serde::{Deserialize, Serialize};

/// The course of a build. Times count from its first start, in milliseconds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Timeline {
    /// The times when the build was started or continued.
    pub starts: Vec<u64>,
    pub groups: Vec<GroupWritten>,
    pub points: Vec<ProgressPoint>,
    /// The time of the last event.
    pub end_ms: u64,
}

impl Timeline {
    /// Row groups that were written. One that was stopped half-way and written again counts once.
    pub fn group_count(&self) -> u64 {
        let groups: HashSet<_> = self.groups.iter().map(|group| (&group.stage, group.group)).collect();
        groups.len() as u64
    }
}

/// A row group that was written.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GroupWritten {
    pub at_ms: u64,
    /// The stage that it belongs to, if there are several.
    #[serde(default)]
    pub stage: Option<String>,
    pub group: u64,
    pub rows: u64,
    #[serde(default)]
    pub dropped: u64,
}

/// The counts of a build at one time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProgressPoint {
    pub at_ms: u64,
    pub rows: u64,
    pub dropped: u64,
    pub calls: u64,
    pub reused: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cost: Option<f64>,
    pub failed: u64,
    pub limits: Vec<LimitPoint>,
}

/// The limit of a model at one time.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitPoint {
    pub name: String,
    pub limit: u64,
    pub in_flight: u64,
    pub refused: u64,
}

/// The fields that all events have.
#[derive(Deserialize)]
struct Head {
    event: String,
    #[serde(default)]
    at_ms: u64,
    /// The stage of the build, if there are several.
    #[serde(default)]
    stage: Option<String>,
}

/// Entries of a list above which every second one is left out.
const MAX_ENTRIES: usize = 4_000;

/// Reads the events of a file. Other kinds of events are ignored.
pub(super) fn read(path: &Path) -> Result<Timeline, FileError> {
    let mut timeline = Timeline::default();
    let (mut groups, mut points) = (ThinnedList::default(), ThinnedList::default());
    // Older builds counted from their last start.
    let mut offset = 0;
    let mut stage = None;
    // The stages that this run has started. A stage that starts again belongs to another run.
    let mut started = HashSet::new();
    super::lines(path, |line| {
        let head: Head = serde_json::from_str(line)?;
        if head.event == "start" && offset + head.at_ms < timeline.end_ms {
            offset = timeline.end_ms - head.at_ms;
        }
        let at_ms = offset + head.at_ms;
        timeline.end_ms = timeline.end_ms.max(at_ms);
        match head.event.as_str() {
            "start" => {
                stage.clone_from(&head.stage);
                let is_run = started.is_empty() || started.contains(&head.stage);
                if is_run {
                    started.clear();
                    timeline.starts.push(at_ms);
                }
                started.insert(head.stage);
            }
            "row_group" => {
                let stage = stage.clone();
                groups.push(GroupWritten { at_ms, stage, ..serde_json::from_str(line)? });
            }
            "progress" => points.push(ProgressPoint { at_ms, ..serde_json::from_str(line)? }),
            _ => {}
        }
        Ok(())
    })?;
    timeline.groups = groups.finish();
    timeline.points = points.finish();
    Ok(timeline)
}

/// A list of bounded length: at first all entries, then every second one, every fourth, and the last.
struct ThinnedList<T> {
    kept: Vec<T>,
    last: Option<T>,
    step: u64,
    seen: u64,
}

impl<T> Default for ThinnedList<T> {
    fn default() -> ThinnedList<T> {
        ThinnedList { kept: Vec::new(), last: None, step: 1, seen: 0 }
    }
}

impl<T> ThinnedList<T> {
    fn push(&mut self, entry: T) {
        let is_kept = self.seen.is_multiple_of(self.step);
        self.seen += 1;
        if !is_kept {
            self.last = Some(entry);
            return;
        }
        self.last = None;
        if self.kept.len() == MAX_ENTRIES {
            let mut at = 0;
            self.kept.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.step *= 2;
        }
        self.kept.push(entry);
    }

    fn finish(mut self) -> Vec<T> {
        self.kept.extend(self.last);
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_ENTRIES, ThinnedList, read};

    fn read_events(test: &str, events: &str) -> super::Timeline {
        let path = std::env::temp_dir().join(format!("anabranch-events-{test}-{}", std::process::id()));
        std::fs::write(&path, events).unwrap();
        let timeline = read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        timeline
    }

    #[test]
    fn a_continued_build_goes_on_where_it_was() {
        let timeline = read_events(
            "continued",
            r#"{"event":"start","at_ms":0}
{"event":"row_group","at_ms":900,"group":0,"rows":10,"errors":{"timeout":1}}
{"event":"something_new","at_ms":950}
{"event":"start","at_ms":3}
{"event":"progress","at_ms":50,"rows":10,"calls":4,"limits":[{"name":"m","limit":2,"in_flight":1}]}
{"event":"row_group","at_ms":100,"group":1,"rows":5,"dropped":2}
{"event":"row_group","at_ms":2"#,
        );
        assert_eq!(timeline.starts, [0, 950], "times of the second run count from the end of the first");
        let groups: Vec<_> =
            timeline.groups.iter().map(|group| (group.at_ms, group.rows, group.dropped)).collect();
        assert_eq!(groups, [(900, 10, 0), (1047, 5, 2)], "half a line at the end is left out");
        assert_eq!(
            (timeline.points[0].calls, timeline.points[0].limits[0].limit, timeline.end_ms),
            (4, 2, 1047)
        );
    }

    #[test]
    fn times_over_all_runs_are_taken_as_they_are() {
        let timeline = read_events(
            "all_runs",
            "{\"event\":\"start\",\"at_ms\":0}\n{\"event\":\"stop\",\"at_ms\":70}\n{\"event\":\"start\",\"at_ms\":70}\n",
        );
        assert_eq!((timeline.starts, timeline.end_ms), (vec![0, 70], 70));
    }

    #[test]
    fn a_stage_is_not_a_run() {
        let start =
            |at: u64, stage: &str| format!("{{\"event\":\"start\",\"at_ms\":{at},\"stage\":\"{stage}\"}}\n");
        let group = "{\"event\":\"row_group\",\"at_ms\":30,\"group\":0,\"rows\":1}\n";
        let events = [start(0, "a"), start(20, "b"), group.to_owned(), start(40, "b"), start(50, "c")];
        let timeline = read_events("stages", &events.concat());
        assert_eq!(timeline.starts, [0, 40], "the second one begins where the first one ended");
        assert_eq!(timeline.groups[0].stage.as_deref(), Some("b"));
        let again = format!("{}{group}{group}{}{group}", start(0, "a"), start(20, "b"));
        assert_eq!(
            read_events("again", &again).group_count(),
            2,
            "a group that is written again is the same one"
        );
    }

    #[test]
    fn a_long_list_keeps_its_ends_and_its_order() {
        let mut thinned = ThinnedList::default();
        (0..50_001).for_each(|entry| thinned.push(entry));
        let kept = thinned.finish();
        assert!(kept.len() <= MAX_ENTRIES + 1 && kept.len() > MAX_ENTRIES / 4, "{}", kept.len());
        assert_eq!((kept[0], kept[kept.len() - 1]), (0, 50_000));
        assert!(kept.is_sorted());
    }
}
