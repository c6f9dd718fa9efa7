//! `anabranch plan check`.

use anabranch_plan::{Engine, Problem, Problems};
use clap::Args;
use serde_json::{Value, json};

use super::lookup;
use super::project_args::{ProjectArgs, RowsUse};
use crate::failure::Failure;
use crate::out;

/// Checks plans.
#[derive(Args)]
pub(crate) struct Check {
    /// Plan files, or names of plans in the plan folder.
    #[arg(value_name = "FILE|NAME", required = true)]
    names: Vec<String>,
    #[command(flatten)]
    project: ProjectArgs,
    /// Writes the problems to stdout, as JSON.
    #[arg(long)]
    json: bool,
}

/// The problems of the project or of one plan.
struct CheckResult {
    /// `project` or `plan`.
    what: &'static str,
    name: String,
    problems: Problems,
}

impl Check {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let (engine, project) = self.engine()?;
        let mut checked = Vec::from_iter(project);
        for name in &self.names {
            let problems = match lookup::plan(&engine, name) {
                Ok(plan) => Problems { errors: Vec::new(), warnings: lookup::warnings(&engine, name, &plan) },
                Err(Failure::Refused(problems)) => problems,
                Err(failure) => return Err(failure),
            };
            checked.push(CheckResult { what: "plan", name: name.clone(), problems });
        }
        if self.json {
            let list: Vec<Value> = checked.iter().map(CheckResult::json).collect();
            out::data(&format!("{:#}\n", Value::from(list)))?;
        } else {
            checked.iter().for_each(CheckResult::tell);
        }
        if checked.iter().all(|checked| checked.problems.is_fine()) { Ok(()) } else { Err(Failure::Reported) }
    }

    /// The engine of `plan run`, or one without rows and the problems of the sources.
    fn engine(&self) -> Result<(Engine, Option<CheckResult>), Failure> {
        match self.project.engine(None, RowsUse::Needed) {
            Ok(engine) => Ok((engine, None)),
            Err(Failure::Refused(problems)) => match self.project.engine(None, RowsUse::Unneeded) {
                Ok(engine) => {
                    let name = self
                        .project
                        .project_file()
                        .map_or("rows".to_owned(), |file| file.display().to_string());
                    Ok((engine, Some(CheckResult { what: "project", name, problems })))
                }
                // The registry itself is invalid, so no plan can be checked against it.
                Err(_) => Err(Failure::Refused(problems)),
            },
            Err(failure) => Err(failure),
        }
    }
}

impl CheckResult {
    fn tell(&self) {
        let Problems { errors, warnings } = &self.problems;
        let tell = |severity: &str, problem: &Problem| match (&problem.excerpt, self.what) {
            // The location already names the file.
            (Some(_), _) | (_, "project") => out::note(&problem.report(severity).to_string()),
            (None, _) => out::note(&format!("{}: {}", self.name, problem.report(severity))),
        };
        errors.iter().for_each(|problem| tell("error", problem));
        warnings.iter().for_each(|problem| tell("warning", problem));
        out::note(&format!("{}: {}", self.name, out::status(errors.len(), warnings.len())));
    }

    fn json(&self) -> Value {
        let list = |problems: &[Problem]| problems.iter().map(out::problem_json).collect::<Vec<_>>();
        let Problems { errors, warnings } = &self.problems;
        json!({(self.what): self.name, "errors": list(errors), "warnings": list(warnings)})
    }
}
