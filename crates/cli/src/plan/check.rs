//! `anabranch plan check`.

use anabranch_plan::Problem;
use clap::Args;
use serde_json::{Value, json};

use super::from::{self, From, Rows};
use crate::failure::Failure;
use crate::out;

/// Checks plans.
#[derive(Args)]
pub(crate) struct Check {
    /// Plan files, or names of plans in the plan folder.
    #[arg(value_name = "FILE|NAME", required = true)]
    names: Vec<String>,
    #[command(flatten)]
    from: From,
    /// Writes what was found to stdout, as JSON.
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let engine = self.from.engine(None, Rows::Unneeded)?;
        let mut found = Vec::new();
        let mut fine = true;
        for name in &self.names {
            let (errors, warnings) = match from::plan(&engine, name) {
                Ok(plan) => (Vec::new(), plan.warnings().to_vec()),
                Err(Failure::Refused(problems)) => (problems.errors, problems.warnings),
                Err(failure) => return Err(failure),
            };
            fine &= errors.is_empty();
            if self.json {
                let list = |problems: &[Problem]| problems.iter().map(as_json).collect::<Vec<_>>();
                found.push(json!({"plan": name, "errors": list(&errors), "warnings": list(&warnings)}));
            } else {
                let told = |what: &str, problem: &Problem| match problem.excerpt {
                    // Its place names the file already.
                    Some(_) => out::note(&problem.report(what).to_string()),
                    None => out::note(&format!("{name}: {}", problem.report(what))),
                };
                errors.iter().for_each(|problem| told("error", problem));
                warnings.iter().for_each(|problem| told("warning", problem));
                out::note(&format!("{name}: {}", out::status(errors.len(), warnings.len())));
            }
        }
        if self.json {
            out::data(&format!("{:#}\n", Value::from(found)))?;
        }
        if fine { Ok(()) } else { Err(Failure::Told) }
    }
}

fn as_json(problem: &Problem) -> Value {
    let mut json = json!({"place": problem.place, "what": problem.what, "help": problem.help});
    if let Some(excerpt) = &problem.excerpt {
        json["line"] = excerpt.line.into();
        json["column"] = excerpt.column.into();
        json["width"] = excerpt.width.into();
    }
    json
}
