//! The options that most subcommands share: project, registry, plan folder and source of rows.

use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};

use anabranch_plan::project::DataFile;
use anabranch_plan::{Config, Engine, Plan, Problem, Project, RowsFrom, Setup};
use anabranch_plan_inspect::capture::{Sampler, Sampling};
use clap::Args;

use super::threads::Threads;
use crate::failure::Failure;
use crate::out;

/// The name of project files.
pub(super) const PROJECT_FILE: &str = "anabranch.toml";

/// The project, and the parts of it that options replace.
#[derive(Args)]
pub(crate) struct ProjectArgs {
    /// The registry folder: keys.toml, params.toml, endpoints.ENV.toml, ...
    #[arg(long, value_name = "DIR")]
    registry: Option<PathBuf>,
    /// The environment, which chooses endpoints.ENV.toml. Without --data and --redis, rows come from those endpoints.
    #[arg(long, value_name = "NAME")]
    env: Option<String>,
    /// Rows from this file (.json, .csv, .parquet), held in memory; may be given several times. Tables need a
    /// pattern for the keys of their rows: `users.csv=user:{id}`.
    #[arg(long, value_name = "FILE[=PATTERN]", value_parser = data_file)]
    data: Vec<DataFile>,
    /// Rows from this Redis, for all Redis endpoints of the registry: HOST:PORT, or a redis://, rediss://,
    /// redis-cluster:// or rediss-cluster:// URL.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "data")]
    redis: Option<String>,
    /// The folder of NAME.plan.ts and NAME.plan.json files.
    #[arg(long, value_name = "DIR")]
    plans: Option<PathBuf>,
    /// The project file; without this option, the nearest anabranch.toml in this folder or above.
    #[arg(long, value_name = "FILE")]
    project: Option<PathBuf>,
    /// Allow the ops for tests (test::sleep, test::busy_cpu), as `test_ops = true` in the project file does.
    #[arg(long)]
    test_ops: bool,
}

/// Parses `FILE` or `FILE=PATTERN`.
pub(super) fn data_file(text: &str) -> Result<DataFile, String> {
    Ok(DataFile::parse(text, Path::new("")))
}

impl ProjectArgs {
    /// An engine. Warnings about its parts are reported.
    pub(crate) fn engine(&self, threads: Option<&Threads>, rows: RowsUse) -> Result<Engine, Failure> {
        self.engine_with(threads, rows, |_| {})
    }

    /// An engine with changed settings.
    pub(crate) fn engine_with(
        &self,
        threads: Option<&Threads>,
        rows: RowsUse,
        set: impl FnOnce(&mut Config),
    ) -> Result<Engine, Failure> {
        let mut config = self.config_with(threads, self.rows(rows))?;
        set(&mut config);
        Ok(Engine::load(config)?)
    }

    /// A sampler that captures requests according to the project. No other process may have its store open at the same
    /// time.
    pub(crate) fn sampler(&self, engine: &Engine) -> Result<Sampler, Failure> {
        let no_captures = || {
            Problem::new("captures", "no project file says which requests are captured")
                .help("write a table [plan.captures] with a `store` into anabranch.toml")
        };
        let settings = self.project()?.and_then(|project| project.captures).ok_or_else(no_captures)?;
        let sampling = Sampling::from_settings(&settings, engine.registries())?;
        Ok(Sampler::new(sampling, engine.ops().clone(), RandomState::new().hash_one(0)))
    }

    /// The config of an engine without rows.
    pub(crate) fn config(&self) -> Result<Config, Failure> {
        self.config_with(None, RowsFrom::Nowhere)
    }

    /// The config of an engine. Warnings about its parts are reported.
    fn config_with(&self, threads: Option<&Threads>, rows: RowsFrom) -> Result<Config, Failure> {
        let setup = Setup {
            project: self.project()?,
            registry: self.registry.clone(),
            env: self.env.clone(),
            plans: self.plans.clone(),
            test_ops: self.test_ops,
            rows,
            cpu_threads: threads.and_then(Threads::cpu_threads),
            inline_threshold: threads.and_then(|threads| threads.inline_threshold),
        };
        let (config, warnings) = setup.config()?;
        out::warnings(&warnings);
        Ok(config)
    }

    /// Warns if the plan reads rows and no option or project file defines their source.
    pub(crate) fn warn_without_rows(&self, plan: &Plan) -> Result<(), Failure> {
        let given = self.redis.is_some() || !self.data.is_empty() || self.env.is_some();
        if !given && self.project()?.is_none() && anabranch_plan_inspect::explain(plan).trips > 0 {
            let what = "no option and no project file says where they come from, so every store is empty";
            let help = "give --data FILE, --redis ADDRESS or --env NAME";
            out::warnings(&[Problem::new("rows", what).help(help)]);
        }
        Ok(())
    }

    /// The project file, if there is one.
    pub(super) fn project_file(&self) -> Option<PathBuf> {
        self.project.clone().or_else(|| Some(self.project().ok()??.file))
    }

    /// The files that decide how plans are checked: the project file and the registries, with their folder.
    pub(super) fn settings_files(&self) -> Vec<PathBuf> {
        let project = self.project().ok().flatten();
        let here = std::env::current_dir().unwrap_or_default();
        let nearest = || here.ancestors().map(|folder| folder.join(PROJECT_FILE)).find(|file| file.is_file());
        let mut files: Vec<PathBuf> = self.project.clone().or_else(nearest).into_iter().collect();
        let registry = self.registry.clone().or_else(|| Some(project?.registry));
        let entries = registry.as_ref().and_then(|folder| std::fs::read_dir(folder).ok());
        files.extend(entries.into_iter().flatten().flatten().map(|entry| entry.path()));
        files.extend(registry);
        files
    }

    fn rows(&self, rows: RowsUse) -> RowsFrom {
        match (&self.redis, &self.data[..], &self.env) {
            (Some(address), ..) => RowsFrom::Redis(address.clone()),
            (None, [_, ..], _) => RowsFrom::Data(self.data.clone()),
            (None, [], Some(_)) if rows != RowsUse::Unneeded => RowsFrom::Endpoints,
            (None, [], _) if rows != RowsUse::Unneeded => RowsFrom::Project,
            (None, [], _) => RowsFrom::Nowhere,
        }
    }

    fn project(&self) -> Result<Option<Project>, Failure> {
        let Some(file) = &self.project else { return nearest_project() };
        let text = std::fs::read_to_string(file)
            .map_err(|error| Failure::of(format!("cannot read {}: {error}", file.display())))?;
        Ok(Some(Project::parse(&text, file)?))
    }
}

/// The project of the current folder or the nearest one above.
pub(crate) fn nearest_project() -> Result<Option<Project>, Failure> {
    let here = std::env::current_dir()
        .map_err(|error| Failure::of(format!("there is no current folder: {error}")))?;
    Ok(Project::find(&here)?)
}

/// The failure of a subcommand that needs a plan folder.
pub(super) fn no_folder() -> Failure {
    Failure::of(format!("there is no plan folder; give --plans DIR, or write one into {PROJECT_FILE}"))
}

/// The rows that a subcommand needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RowsUse {
    /// It answers requests.
    Needed,
    /// It only reads the plan.
    Unneeded,
}
