//! Where plans, registries and rows come from: the options that most verbs share.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};

use anabranch_plan::{Config, DataFile, Engine, Plan, Project, RowsFrom, Setup};
use anabranch_plan_inspect::capture::{Sampler, Sampling};
use anabranch_plan_ts::{Built, Compiler, Outcome};
use anabranch_text::{Problem, closest};
use clap::Args;

use super::threads::Threads;
use crate::failure::Failure;
use crate::{out, worker};

/// The file that describes a project.
const PROJECT_FILE: &str = "anabranch.toml";

/// Where things come from.
#[derive(Args)]
pub(crate) struct From {
    /// The folder with the registries: keys.toml, params.toml, endpoints.ENV.toml, ...
    #[arg(long, value_name = "DIR")]
    registry: Option<PathBuf>,
    /// The environment: which endpoints.ENV.toml to use. Given by itself, rows come from the endpoints there.
    #[arg(long, value_name = "NAME")]
    env: Option<String>,
    /// Rows from this file (.json, .csv, .parquet), held in memory; may be given several times. Tables need the
    /// key of a row: `users.csv=user:{id}`.
    #[arg(long, value_name = "FILE[=KEY]", value_parser = data_file)]
    data: Vec<DataFile>,
    /// Rows from this Redis, whatever the registry says: HOST:PORT, or a redis://, rediss://, redis-cluster://
    /// or rediss-cluster:// URL.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "data")]
    redis: Option<String>,
    /// The folder of NAME.plan.ts and NAME.plan.json files.
    #[arg(long, value_name = "DIR")]
    plans: Option<PathBuf>,
    /// The project file; without this option, the nearest anabranch.toml in this folder or above.
    #[arg(long, value_name = "FILE")]
    project: Option<PathBuf>,
}

/// `FILE` or `FILE=KEY`.
pub(super) fn data_file(text: &str) -> Result<DataFile, String> {
    let (file, pattern) = match text.split_once('=') {
        // A file may have a `=` in its name.
        Some((file, pattern)) if !Path::new(text).exists() => (file, Some(pattern.to_owned())),
        _ => (text, None),
    };
    Ok(DataFile { file: PathBuf::from(file), pattern })
}

impl From {
    /// An engine; what is odd about its parts is told.
    pub(crate) fn engine(&self, threads: Option<&Threads>, rows: Rows) -> Result<Engine, Failure> {
        self.engine_with(threads, rows, |_| {})
    }

    /// An engine with some settings of its own.
    pub(crate) fn engine_with(
        &self,
        threads: Option<&Threads>,
        rows: Rows,
        set: impl FnOnce(&mut Config),
    ) -> Result<Engine, Failure> {
        let setup = Setup {
            project: self.project()?,
            registry: self.registry.clone(),
            env: self.env.clone(),
            plans: self.plans.clone(),
            rows: self.rows(rows),
            cpu_threads: threads.and_then(Threads::cpu_threads),
            inline_threshold: threads.and_then(|threads| threads.inline_threshold),
        };
        let (mut config, warnings) = setup.config()?;
        out::warnings(&warnings);
        set(&mut config);
        Ok(Engine::load(config)?)
    }

    /// A sampler that captures requests as the project says. Nobody else has its store open meanwhile.
    pub(crate) fn sampler(&self, engine: &Engine) -> Result<Sampler, Failure> {
        let no_captures = || {
            Problem::new("captures", "no project file says which requests are captured")
                .help("write a table [plan.captures] with a `store` into anabranch.toml")
        };
        let settings = self.project()?.and_then(|project| project.captures).ok_or_else(no_captures)?;
        let sampling = Sampling::from_settings(&settings, engine.registries())?;
        Ok(Sampler::new(sampling, engine.ops().clone(), RandomState::new().hash_one(0)))
    }

    /// What an engine without rows is made of.
    pub(crate) fn config(&self) -> Result<Config, Failure> {
        let setup = Setup {
            project: self.project()?,
            registry: self.registry.clone(),
            env: self.env.clone(),
            plans: self.plans.clone(),
            rows: RowsFrom::Nowhere,
            ..Setup::default()
        };
        let (config, warnings) = setup.config()?;
        out::warnings(&warnings);
        Ok(config)
    }

    /// The files that say how plans are checked: the project file and the registries, and their folder.
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

    fn rows(&self, rows: Rows) -> RowsFrom {
        match (&self.redis, &self.data[..], &self.env) {
            (Some(address), ..) => RowsFrom::Redis(address.clone()),
            (None, [_, ..], _) => RowsFrom::Data(self.data.clone()),
            (None, [], Some(_)) if rows != Rows::Unneeded => RowsFrom::Endpoints,
            (None, [], _) if rows != Rows::Unneeded => RowsFrom::Project,
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

/// The project of this folder or one above.
pub(super) fn nearest_project() -> Result<Option<Project>, Failure> {
    let here = std::env::current_dir()
        .map_err(|error| Failure::of(format!("there is no current folder: {error}")))?;
    Ok(Project::find(&here)?)
}

/// Why nothing can be done in the plan folder.
pub(super) fn no_folder() -> Failure {
    Failure::of(format!("there is no plan folder; give --plans DIR, or write one into {PROJECT_FILE}"))
}

/// Whether a verb reads rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    /// It does.
    Needed,
    /// It only looks at the plan.
    Unneeded,
}

/// What files of plans end in: as people write them, and as the engine reads them.
pub(super) const SOURCE: &str = ".plan.ts";
pub(super) const BUILT: &str = ".plan.json";

/// The plan that `name` means: a file, if one is there or it ends like one; else a plan of the folder, whose source
/// counts if there is one.
pub(crate) fn plan(engine: &Engine, name: &str) -> Result<Plan, Failure> {
    match found(engine, name)? {
        Found::Source(file) => Ok(built(engine, &file)?.plan),
        Found::File(file) => {
            let base = file.parent().unwrap_or(Path::new(""));
            Ok(engine.compile(&read(&file)?, base)?)
        }
        Found::Name => engine.plan(name).map_err(|error| unknown(engine, name, error)),
    }
}

/// The text of the plan that `name` means.
pub(super) fn text(engine: &Engine, name: &str) -> Result<String, Failure> {
    match (found(engine, name)?, engine.folder()) {
        (Found::Source(file), _) => Ok(built(engine, &file)?.text),
        (Found::File(file), _) => read(&file),
        (Found::Name, Some(folder)) if names(engine)?.iter().any(|other| other == name) => {
            read(&folder.join(format!("{name}{BUILT}")))
        }
        (Found::Name, folder) => {
            let folder = folder.map(Path::to_owned);
            let error = anabranch_plan::Error::NoPlan { name: name.to_owned(), folder, cause: None };
            Err(unknown(engine, name, error))
        }
    }
}

/// What a name on the command line means.
enum Found {
    /// A file to compile.
    Source(PathBuf),
    /// A file to read.
    File(PathBuf),
    /// A plan of the folder.
    Name,
}

fn found(engine: &Engine, name: &str) -> Result<Found, Failure> {
    let file = Path::new(name);
    if name.ends_with(SOURCE) {
        return Ok(Found::Source(file.to_owned()));
    }
    if file.is_file() || name.ends_with(BUILT) {
        return Ok(Found::File(file.to_owned()));
    }
    // A name is no path: nothing outside of the folder can be reached with it.
    let is_name = engine.registries().limits.plan_name.is_match(name);
    let source = engine.folder().filter(|_| is_name).map(|folder| folder.join(format!("{name}{SOURCE}")));
    // Whatever it is, and be it a link to nowhere: what cannot be read is told when it is read.
    Ok(source.filter(|source| source.symlink_metadata().is_ok()).map_or(Found::Name, Found::Source))
}

/// Compiles a plan from its source.
pub(super) fn built(engine: &Engine, file: &Path) -> Result<Built, Failure> {
    Ok(compile(engine, file).built?)
}

/// Compiles a plan from its source, and says which files it was made of. The lines that its code prints go to stderr.
pub(super) fn compile(engine: &Engine, file: &Path) -> Outcome {
    let outcome = Compiler::new(worker::here()).compile(engine, file, &root_of(engine, file));
    outcome.printed.iter().for_each(|line| out::note(line));
    outcome
}

/// Warns if a built plan is not what the source beside it says.
pub(super) fn warn_if_behind(engine: &Engine, name: &str) {
    let Some(stem) = name.strip_suffix(BUILT) else { return };
    let source = PathBuf::from(format!("{stem}{SOURCE}"));
    if !source.is_file() {
        return;
    }
    let parsed = |text: &str| -> Option<serde_json::Value> {
        let mut plan: serde_json::Value = serde_json::from_str(text).ok()?;
        // The same source is built otherwise by another version only in this.
        plan.as_object_mut()?.remove("built_by");
        Some(plan)
    };
    let same = match (compile(engine, &source).built, read(Path::new(name))) {
        (Ok(built), Ok(text)) => parsed(&built.text) == parsed(&text),
        _ => false,
    };
    if !same {
        let source = source.display();
        out::note(&format!(
            "warning: {name} is not what {source} says; `anabranch plan build` builds it anew"
        ));
    }
}

/// The folder that a plan's imports must be in: that of all plans, if it is one of them.
fn root_of(engine: &Engine, file: &Path) -> PathBuf {
    let own = file.parent().unwrap_or(Path::new(""));
    let within = |folder: &&Path| match (file.canonicalize(), folder.canonicalize()) {
        (Ok(file), Ok(folder)) => file.starts_with(folder),
        _ => false,
    };
    engine.folder().filter(within).unwrap_or(own).to_owned()
}

fn read(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file)
        .map_err(|error| Failure::of(format!("cannot read {}: {error}", file.display())))
}

/// The names of the plans in the engine's folder, in order.
pub(super) fn names(engine: &Engine) -> Result<Vec<String>, Failure> {
    Ok(files(engine, &[SOURCE, BUILT])?.into_keys().collect())
}

/// The files of the engine's folder that end like this, and the names of their plans, in order; each name once.
pub(super) fn files(engine: &Engine, endings: &[&str]) -> Result<BTreeMap<String, PathBuf>, Failure> {
    let folder = engine.folder().ok_or_else(no_folder)?;
    let fail =
        |error: std::io::Error| Failure::of(format!("cannot read the folder {}: {error}", folder.display()));
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(fail)? {
        let file = entry.map_err(fail)?.file_name();
        // Editors keep locks and copies under names that begin with a dot.
        let seen = file.to_str().filter(|file| !file.starts_with('.'));
        let name = seen.and_then(|file| endings.iter().find_map(|ending| file.strip_suffix(ending)));
        found.extend(name.map(|name| (name.to_owned(), folder.join(&file))));
    }
    Ok(found)
}

/// Why there is no plan of this name: where it was looked for, and what is there.
fn unknown(engine: &Engine, name: &str, error: anabranch_plan::Error) -> Failure {
    if !matches!(error, anabranch_plan::Error::NoPlan { .. }) {
        return error.into();
    }
    if engine.folder().is_none() {
        return Failure::of(format!(
            "there is no file {name}, and no plan folder to look for the name in; give --plans DIR, or write one \
             into {PROJECT_FILE}"
        ));
    }
    let names = match names(engine) {
        Ok(names) => names,
        Err(failure) => return failure,
    };
    let mut what = error.to_string();
    match (closest(name, names.iter().map(String::as_str)), &names[..]) {
        (Some(near), _) => what.push_str(&format!("; did you mean `{near}`?")),
        (None, []) => what.push_str("; there is none at all (`anabranch plan new NAME` makes one)"),
        (None, names) => what.push_str(&format!("; there are: {}", names.join(", "))),
    }
    Failure::of(what)
}
