//! Configurations: what they mean, and what is said of wrong ones.

mod compat;
mod forms;
mod columns;
mod samplers;
mod models;
mod prices;
mod names;
mod hostile;

use anabranch_dataset::Config;
use anabranch_dataset::config::{Problem, Problems, Setting};
use expect_test::Expect;

fn parse(text: &str) -> Result<(Config, Vec<Problem>), Problems> {
    Config::parse("data.yaml", text, &mut Setting::default())
}

/// The configuration of a text that nothing is wrong with.
fn fine(text: &str) -> Config {
    match parse(text) {
        Ok((config, warnings)) => {
            assert_eq!(warnings, [], "{text}");
            config
        }
        Err(problems) => panic!("{problems}\n{text}"),
    }
}

fn refused(text: &str, expected: &Expect) {
    expected.assert_eq(&lines(&parse(text).map(|_| ()).expect_err("a problem").errors));
}

/// The warnings of a text that has no errors.
fn warned(text: &str, expected: &Expect) {
    match parse(text) {
        Ok((_, warnings)) => expected.assert_eq(&lines(&warnings)),
        Err(problems) => panic!("{problems}\n{text}"),
    }
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// The beginning of most configurations here: a category, a number, a date.
const SAMPLERS: &str = "
columns:
  - {name: topic, column_type: sampler, sampler_type: category, params: {values: [tea, coffee]}}
  - {name: size, column_type: sampler, sampler_type: uniform, params: {low: 1, high: 9}}
  - {name: day, column_type: sampler, sampler_type: datetime, params: {start: 2024-01-01, end: 2025-01-01}}
";

/// [`SAMPLERS`] and more columns.
fn with(columns: &str) -> String {
    format!("{SAMPLERS}{columns}")
}
