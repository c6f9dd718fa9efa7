//! Progress events, for the report about a build.

use std::time::Duration;

use anabranch_value::Value;

use super::StageBuild;
use crate::output::LimitReport;

/// The interval between two events is at least one second, and at least the time so far divided by this number. A build
/// that runs for a week writes less than three thousand events.
const PART: u32 = 300;

/// The time of the last event.
#[derive(Default)]
pub(super) struct ProgressEvents(Option<Duration>);

impl ProgressEvents {
    /// An event, if one is due.
    pub(super) fn next(&mut self, stage: &StageBuild) -> Option<Value> {
        let elapsed = stage.shared.elapsed();
        let pause = (elapsed / PART).max(Duration::from_secs(1));
        if self.0.is_some_and(|last| elapsed < last + pause) {
            return None;
        }
        self.0 = Some(elapsed);
        Some(event(stage))
    }
}

fn event(stage: &StageBuild) -> Value {
    let number = |number: u64| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
    let snapshot = stage.shared.progress.snapshot();
    let models = stage.dataset.spend.models();
    let sum = |of: fn(&crate::output::ModelMetadata) -> u64| number(models.values().map(of).sum());
    let cost = models.values().filter_map(|model| model.cost).reduce(|sum, cost| sum + cost);
    let cells = snapshot.columns.iter().map(|column| (&*column.name, number(column.finished)));
    let limit = |limit: LimitReport| {
        Value::map([
            ("name", limit.name.into()),
            ("limit", number(limit.limit.into())),
            ("in_flight", number(limit.in_flight.into())),
            ("refused", number(limit.refused)),
        ])
    };
    let mut event = vec![("at_ms", stage.shared.elapsed_ms()), ("event", "progress".into())];
    event.extend(stage.view().map(|stage| ("stage", stage.name.into())));
    event.extend([
        ("rows", number(snapshot.rows_written)),
        ("dropped", number(snapshot.rows_dropped)),
        ("cells", Value::map(cells)),
        ("calls", sum(|model| model.calls)),
        ("reused", sum(|model| model.reused)),
        ("input_tokens", sum(|model| model.input_tokens)),
        ("output_tokens", sum(|model| model.output_tokens)),
        ("cost", cost.map_or(Value::Null, Value::Float)),
        ("failed", number(snapshot.errors.values().sum())),
        ("limits", Value::list(stage.limits().into_iter().map(limit))),
    ]);
    Value::map(event)
}
