//! Flags about the budget of a build.

use std::time::Duration;

use anabranch_dataset::Budget;
use anabranch_text::duration;
use clap::Args;

/// Flags about the most that a build may spend.
#[derive(Args)]
#[command(next_help_heading = "Budget (a build that is continued counts all of its runs)")]
pub(super) struct BudgetOptions {
    /// The most money, by `prices` of the configuration or the models file. Calls in flight count as mean ones, so it is
    /// exceeded by less than those [default: none].
    #[arg(long, value_name = "DOLLARS", value_parser = cost)]
    max_cost: Option<f64>,
    /// The most tokens, input and output together, counted in the same way [default: none].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_tokens: Option<u64>,
    /// The most calls. Conversations that have begun may still correct their replies [default: none].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    max_calls: Option<u64>,
    /// The time for this run, such as 90s or 2h: no call begins after it [default: none].
    #[arg(long, value_name = "TIME", value_parser = deadline)]
    deadline: Option<Duration>,
}

impl BudgetOptions {
    pub(super) fn budget(&self) -> Budget {
        let BudgetOptions { max_cost, max_tokens, max_calls, deadline } = *self;
        Budget { max_calls, max_tokens, max_cost, deadline }
    }
}

fn cost(text: &str) -> Result<f64, String> {
    let cost = text.trim_start_matches('$').parse().ok().filter(|cost: &f64| *cost > 0.0 && cost.is_finite());
    cost.ok_or_else(|| "expected an amount of money, such as 2.50".to_owned())
}

fn deadline(text: &str) -> Result<Duration, String> {
    duration::parse(text).and_then(|time| match time {
        Duration::ZERO => Err("expected more than no time".to_owned()),
        time => Ok(time),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_more_than_nothing() {
        assert_eq!((cost("2.5"), cost("$0.01"), cost("1000")), (Ok(2.5), Ok(0.01), Ok(1000.0)));
        for wrong in ["", "0", "-1", "inf", "NaN", "1,5", "two"] {
            assert!(cost(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_deadline_has_a_unit() {
        assert_eq!(deadline("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(deadline("2h"), Ok(Duration::from_secs(7200)));
        assert!(deadline("90").is_err() && deadline("0").is_err() && deadline("0s").is_err());
    }
}
