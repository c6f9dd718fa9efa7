//! Options of a build run.

use anabranch_document::{Fields, Notes};

use crate::stop::FEWEST_CALLS;

/// Options of a build run. Names and defaults are DataDesigner's, where it has them.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Rows per row group.
    pub buffer_size: u64,
    pub max_concurrent_row_groups: usize,
    pub max_in_flight_tasks: usize,
    pub max_conversation_restarts: u32,
    pub max_conversation_correction_steps: u32,
    pub preserve_dropped_columns: bool,
    pub disable_early_shutdown: bool,
    /// The share of a model's latest calls that must fail to stop the build.
    pub shutdown_error_rate: f64,
    /// The number of latest calls that the share is taken over, at least 50.
    pub shutdown_error_window: u32,
    /// Retries of a call after a failure that may pass, with pauses that double from half a second on.
    pub max_retries: u32,
    /// Further retries after those, half a minute and more apart, behind all other work.
    pub salvage_rounds: u32,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions {
            buffer_size: 1000,
            max_concurrent_row_groups: 3,
            max_in_flight_tasks: 1024,
            max_conversation_restarts: 5,
            max_conversation_correction_steps: 0,
            preserve_dropped_columns: true,
            disable_early_shutdown: false,
            shutdown_error_rate: 0.5,
            shutdown_error_window: 100,
            max_retries: 4,
            salvage_rounds: 2,
        }
    }
}

/// Options of DataDesigner that have no counterpart, and why.
const WITHOUT_EFFECT: [(&str, &str); 8] = [
    ("non_inference_max_parallel_workers", "work on the CPU uses all cores"),
    ("async_trace", "events of a build are always written"),
    ("write_scheduler_events", "events of a build are always written"),
    ("display_tui", "the terminal shows progress by itself"),
    ("progress_interval", "the terminal shows progress by itself"),
    ("otel_metrics_port", "a build opens no port"),
    ("jinja_rendering_engine", "there is one engine for templates, which is sandboxed"),
    ("request_admission", "limits on requests adapt by themselves"),
];

impl RunOptions {
    /// Overrides options by those that are given.
    pub(super) fn read(&mut self, mut fields: Fields<'_>, notes: &mut Notes<'_>) {
        let window_at = fields.get("shutdown_error_window").map(|node| node.at.clone());
        let mut whole = |name: &'static str, least: i64, most: i64, notes: &mut Notes<'_>| {
            let at = fields.get(name)?.at.clone();
            let found = fields.int(name, notes)?;
            if !(least..=most).contains(&found) {
                notes.hint(&at, format!("`{name}` is between {least} and {most}, this is {found}"), None);
                return None;
            }
            Some(found)
        };
        let set = |to: &mut u32, found: Option<i64>| found.into_iter().for_each(|found| *to = found as u32);
        self.buffer_size =
            whole("buffer_size", 1, 1_000_000, notes).map_or(self.buffer_size, |found| found as u64);
        self.max_concurrent_row_groups = whole("max_concurrent_row_groups", 1, 1_000, notes)
            .map_or(self.max_concurrent_row_groups, |found| found as usize);
        self.max_in_flight_tasks = whole("max_in_flight_tasks", 1, 1_000_000, notes)
            .map_or(self.max_in_flight_tasks, |found| found as usize);
        set(&mut self.max_conversation_restarts, whole("max_conversation_restarts", 0, 100, notes));
        set(
            &mut self.max_conversation_correction_steps,
            whole("max_conversation_correction_steps", 0, 100, notes),
        );
        let window = whole("shutdown_error_window", 0, 1_000_000, notes);
        set(&mut self.shutdown_error_window, window);
        if let (Some(at), Some(window)) = (window_at, window)
            && window < i64::from(FEWEST_CALLS)
        {
            let what = format!("`shutdown_error_window` of {window} counts as {FEWEST_CALLS}");
            notes.warn(&at, what, "a share of fewer calls says too little");
        }
        set(&mut self.max_retries, whole("max_retries", 0, 1_000, notes));
        set(&mut self.salvage_rounds, whole("salvage_rounds", 0, 100, notes));
        let truth = |found: Option<bool>, to: &mut bool| found.into_iter().for_each(|found| *to = found);
        truth(fields.bool("preserve_dropped_columns", notes), &mut self.preserve_dropped_columns);
        truth(fields.bool("disable_early_shutdown", notes), &mut self.disable_early_shutdown);
        if let Some(node) = fields.get("shutdown_error_rate")
            && let Some(rate) = notes.as_float(node, "shutdown_error_rate")
        {
            if !(0.0..=1.0).contains(&rate) {
                notes.hint(
                    &node.at,
                    format!("`shutdown_error_rate` is between 0 and 1, this is {rate}"),
                    None,
                );
            }
            self.shutdown_error_rate = rate;
        }
        for (name, why) in WITHOUT_EFFECT {
            if let Some((key, node)) = fields.entry(name)
                && !node.value.is_null()
            {
                notes.warn(&key.at, format!("`{name}` has no effect here"), why);
            }
        }
        fields.finish(notes);
    }
}
