//! `anabranch plan new`.

use std::path::{Path, PathBuf};

use anabranch_plan::registry::{EndpointKind, Endpoints, Limits};
use anabranch_plan::{Project, RowsFrom, Setup};
use clap::Args;

use super::{project_args, types};
use crate::failure::Failure;
use crate::fresh::{is_there, missing, write};
use crate::out;

/// The end of the help text.
pub(crate) const HELP: &str = "\
If there is no anabranch.toml in this folder or above, a project is created first: registry, data, plan folder. No \
file is ever replaced.

  anabranch plan new feed
  anabranch plan run feed --request '{\"user_id\": 1}' --table

Exit codes: 0 fine; 1 refused or failed (stderr says why); 2 wrong usage.";

/// The files of a new project, with their content. They define the names that [`FEED`] uses.
const PROJECT: [(&str, &str); 5] = [
    ("anabranch.toml", include_str!("scaffold/anabranch.toml")),
    ("registry/keys.toml", include_str!("scaffold/keys.toml")),
    ("registry/params.toml", include_str!("scaffold/params.toml")),
    ("registry/endpoints.dev.toml", include_str!("scaffold/endpoints.dev.toml")),
    ("data.json", include_str!("scaffold/data.json")),
];
/// A plan for such a project.
const FEED: &str = include_str!("scaffold/feed.plan.ts");
const REQUEST: &str = r#"{"user_id": 1}"#;
const REQUEST_WITH_ROWS: &str = r#"{"user_id": 1, "candidates": [{"id": 4}, {"id": 7}, {"id": 8}]}"#;
/// A plan that compiles with any registry.
const ROWS: &str = include_str!("scaffold/rows.plan.ts");
const TSCONFIG: &str = include_str!("scaffold/tsconfig.json");
/// The plan folder of such a project.
const PLANS: &str = "plans";

/// Writes the beginning of a plan.
#[derive(Args)]
pub(crate) struct New {
    /// The plan's name, and what its file is called: NAME.plan.ts.
    #[arg(value_name = "NAME")]
    name: String,
}

impl New {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match project_args::nearest_project()? {
            Some(project) => self.within(project, ROWS, REQUEST_WITH_ROWS),
            None => {
                self.check_name(&Limits::default())?;
                free(Path::new(PLANS), &self.name)?;
                missing(PROJECT.iter().map(|(file, _)| Path::new(file)))?;
                for (file, text) in PROJECT {
                    write(Path::new(file), text)?;
                }
                let project = Project::find(Path::new(""))?.expect("its file was just written");
                self.within(project, FEED, REQUEST)
            }
        }
    }

    /// Writes a plan into a project.
    fn within(&self, project: Project, plan: &str, request: &str) -> Result<(), Failure> {
        let setup = Setup { project: Some(project), rows: RowsFrom::Nowhere, ..Setup::default() };
        let (config, warnings) = setup.config()?;
        out::warnings(&warnings);
        self.check_name(&config.registries.limits)?;
        let folder = config.folder.as_deref().ok_or_else(project_args::no_folder)?;
        let file = free(folder, &self.name)?;
        let quoted = serde_json::Value::from(self.name.as_str()).to_string();
        let text = plan.replace("\"NAME\"", &quoted);
        write(&file, &with_endpoint(&text, &config.registries.endpoints))?;
        for (beside, text) in [(types::FILE, types::text(&config)), ("tsconfig.json", TSCONFIG.to_owned())] {
            let beside = folder.join(beside);
            if !is_there(&beside)? {
                write(&beside, &text)?;
            }
        }
        out::note(&format!(
            "next:\n  anabranch plan run {} --request '{request}' --table\n  anabranch plan types   (after a change of \
             the registry, for editors)",
            self.name
        ));
        Ok(())
    }

    fn check_name(&self, limits: &Limits) -> Result<(), Failure> {
        let pattern = &limits.plan_name;
        let is_file_name = Path::new(&self.name).file_name().is_some_and(|name| name == self.name.as_str());
        match pattern.is_match(&self.name) && is_file_name {
            true => Ok(()),
            false => {
                Err(Failure::of(format!("`{}` cannot be a plan's name; it must match {pattern}", self.name)))
            }
        }
    }
}

/// The text of a plan with an endpoint of the registry in its comments. If there is no endpoint, these comments are
/// removed.
fn with_endpoint(text: &str, endpoints: &Endpoints) -> String {
    match endpoints.iter().find(|endpoint| endpoint.kind == EndpointKind::Redis) {
        Some(endpoint) => text.replace("ENDPOINT", &format!("EP.redis.{}", endpoint.name)),
        None => {
            text.lines().filter(|line| !line.contains("ENDPOINT")).map(|line| format!("{line}\n")).collect()
        }
    }
}

/// The path of a new plan. Fails if a plan of this name exists, as TypeScript or as JSON.
fn free(folder: &Path, name: &str) -> Result<PathBuf, Failure> {
    let [file, json] = ["ts", "json"].map(|ending| folder.join(format!("{name}.plan.{ending}")));
    missing([file.as_path(), &json])?;
    Ok(file)
}
