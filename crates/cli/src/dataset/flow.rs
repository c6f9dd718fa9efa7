//! Flags about the flow of a build: sizes, calls in flight, retries and the early stop. Each is also a run option.

use anabranch_dataset::{Config, LoadedConfig};
use anabranch_text::quote;
use clap::Args;

use super::sources::aliases;
use crate::failure::Failure;
use crate::out;

/// The fewest calls for an error rate.
const FEWEST_CALLS: u32 = 50;

/// Flags about the flow of a build.
#[derive(Args)]
#[command(next_help_heading = "Flow (each flag is a run option of the file too, and wins over it)")]
pub(super) struct FlowOptions {
    /// Rows per row group, and per file [default: buffer_size, else 1000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    buffer_size: Option<u64>,
    /// Row groups in flight at once [default: max_concurrent_row_groups, else 3].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_000))]
    row_groups: Option<u16>,
    /// Cells in flight at once, all row groups together [default: max_in_flight_tasks, else 1024].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    tasks: Option<u32>,
    /// The most calls in flight at once, of every model or of one alias; may be repeated. Below it the limit adapts to
    /// the server by itself [default: the model's max_parallel_requests, else 4].
    #[arg(long, value_name = "[ALIAS=]N", value_parser = parallel)]
    parallel: Vec<CallLimit>,
    /// Retries of a call after a failure that may pass [default: max_retries, else 4].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1_000))]
    retries: Option<u32>,
    /// Further retries after those, half a minute and more apart, behind all other work [default: salvage_rounds,
    /// else 2].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100))]
    salvage_rounds: Option<u32>,
    /// The share of a model's latest calls, from 0 to 1, that must fail to stop the build early [default:
    /// shutdown_error_rate, else 0.5].
    #[arg(long, value_name = "R", value_parser = rate)]
    error_rate: Option<f64>,
    /// The number of latest calls that the share is taken over; less than 50 counts as 50 [default:
    /// shutdown_error_window, else 100].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    error_window: Option<u32>,
    /// Goes on however many calls fail [default: disable_early_shutdown, else false].
    #[arg(long, conflicts_with_all = ["error_rate", "error_window"])]
    no_early_stop: bool,
}

/// The limit of calls in flight of one alias, or of all.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CallLimit {
    alias: Option<String>,
    calls: u32,
}

impl FlowOptions {
    /// Overrides the run options of the configuration by the flags.
    pub(super) fn apply(&self, loaded: &mut LoadedConfig) -> Result<(), Failure> {
        let run = &mut loaded.config.run;
        run.buffer_size = self.buffer_size.unwrap_or(run.buffer_size);
        run.max_concurrent_row_groups = self.row_groups.map_or(run.max_concurrent_row_groups, usize::from);
        run.max_in_flight_tasks = self.tasks.map_or(run.max_in_flight_tasks, |tasks| tasks as usize);
        run.max_retries = self.retries.unwrap_or(run.max_retries);
        run.salvage_rounds = self.salvage_rounds.unwrap_or(run.salvage_rounds);
        run.shutdown_error_rate = self.error_rate.unwrap_or(run.shutdown_error_rate);
        run.shutdown_error_window = self.error_window.unwrap_or(run.shutdown_error_window);
        run.disable_early_shutdown |= self.no_early_stop;
        if let Some(window) = self.error_window.filter(|window| *window < FEWEST_CALLS) {
            out::note(&format!(
                "warning: --error-window {window} counts as {FEWEST_CALLS}, the fewest calls"
            ));
        }
        self.parallel.iter().try_for_each(|parallel| set_parallel(parallel, loaded))
    }
}

fn set_parallel(CallLimit { alias, calls }: &CallLimit, loaded: &mut LoadedConfig) -> Result<(), Failure> {
    if let Some(alias) = alias {
        let mut known = aliases(loaded);
        known.extend(loaded.config.models.iter().map(|model| model.alias.as_str()));
        known.sort_unstable();
        known.dedup();
        if !known.contains(&alias.as_str()) {
            let known: Vec<String> = known.into_iter().map(quote).collect();
            let ways = match known.is_empty() {
                true => "there are no models here".to_owned(),
                false => format!("the aliases are {}", known.join(", ")),
            };
            return Err(Failure::Wrong(format!(
                "--parallel: there is no model alias {}; {ways}",
                quote(alias)
            )));
        }
    }
    for alias in without_settings(&loaded.config, alias.as_deref()) {
        let alias = quote(&alias);
        out::note(&format!("warning: --parallel has no effect on {alias}: the demo model stands in for it"));
    }
    let models = loaded.config.models.iter_mut();
    for model in models.filter(|model| alias.as_ref().is_none_or(|alias| model.alias == *alias)) {
        model.params.max_parallel_requests = *calls;
    }
    Ok(())
}

/// The aliases, all or only this one, that have no model. The demo model replaces it.
fn without_settings(config: &Config, alias: Option<&str>) -> Vec<String> {
    let missing = config.aliases_without_model().into_iter();
    missing.filter(|missing| alias.is_none_or(|alias| alias == *missing)).map(str::to_owned).collect()
}

fn parallel(text: &str) -> Result<CallLimit, String> {
    let (alias, number) = match text.rsplit_once('=') {
        Some((alias, number)) => (Some(alias.to_owned()), number),
        None => (None, text),
    };
    match number.parse() {
        Ok(calls @ 1..=100_000) => Ok(CallLimit { alias, calls }),
        _ => Err("expected a number from 1 to 100000, or ALIAS=NUMBER".to_owned()),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| (0.0..=1.0).contains(rate));
    rate.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_in_flight_have_an_alias_or_not() {
        let some = |alias: Option<&str>, calls| Ok(CallLimit { alias: alias.map(str::to_owned), calls });
        assert_eq!(parallel("8"), some(None, 8));
        assert_eq!(parallel("writer=16"), some(Some("writer"), 16));
        assert_eq!(parallel("a=b=1"), some(Some("a=b"), 1));
        for wrong in ["", "0", "writer", "writer=", "writer=-1", "100001"] {
            assert!(parallel(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_rate_is_a_share() {
        assert_eq!((rate("0"), rate("0.25"), rate("1")), (Ok(0.0), Ok(0.25), Ok(1.0)));
        for wrong in ["", "-0.1", "1.1", "NaN", "half"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }
}
