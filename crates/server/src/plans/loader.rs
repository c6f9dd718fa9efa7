//! Loading and changing plans: one thread that reads files, compiles, and swaps the table of plans.
//!
//! Compiling is slow and blocks, so it has its own thread. All changes happen there, one after another.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, PoisonError, RwLock};

use anabranch_engine as engine;
use anabranch_plan::project::CaptureSettings;
use anabranch_plan::{Engine, Problem, Problems, Project, Setup};
use anabranch_plan_ts::{BUILT, Compiler, LoadedPlan, SOURCE, SourceFile, look, plan_files};
use anabranch_text::closest;
use tokio::sync::oneshot;
use tracing::{info, warn};

use super::canary::{self, Verdict};
use super::settings::PlanSettings;
use super::table::{Canary, Entry, RolledBackVersion, Table};
use super::version::Version;

/// A requested change, and the channel for its result.
pub(crate) struct Change {
    pub(crate) kind: ChangeKind,
    pub(crate) result: oneshot::Sender<Result<ChangedPlans, ChangeError>>,
}

/// A change of the served plans.
pub(crate) enum ChangeKind {
    /// Load all plans again, or this one.
    Reload(Option<String>),
    /// Make the new version of this plan its only version.
    Promote(String),
    /// Drop the new version of this plan.
    RollBack(String),
}

/// The plans whose versions changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChangedPlans {
    pub(crate) plans: Vec<String>,
}

/// The reason why nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ChangeError {
    /// There is no such plan, with a message.
    NoPlan(String),
    /// The files have these problems.
    Bad(Problems),
    /// There is no new version to promote or roll back.
    NoCanary(String),
}

/// The table. It is replaced as a whole.
pub(crate) type SharedTable = Arc<RwLock<Arc<Table>>>;

/// The owner of the table.
pub(crate) struct Loader {
    settings: PlanSettings,
    compiler: Compiler,
    runs: engine::Engine,
    table: SharedTable,
    /// The project file and the registry as of the last attempt to read them, even if it failed.
    seen_settings: Vec<SourceFile>,
}

/// An engine, with the files that it was loaded from.
pub(crate) struct LoadedProject {
    engine: Engine,
    files: Vec<SourceFile>,
    pub(crate) captures: Option<CaptureSettings>,
}

/// The first table, and the project's settings for captures.
pub(crate) struct FirstLoad {
    pub(crate) loader: Loader,
    pub(crate) table: SharedTable,
    pub(crate) captures: Option<CaptureSettings>,
}

/// Loads plans side by side, on one thread per core: each plan in TypeScript takes a process of its own.
fn load_all(compiler: &Compiler, engine: &Engine, names: &[&String]) -> Vec<(String, LoadedPlan)> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let share = names.len().div_ceil(cores).max(1);
    let load = |name: &&String| ((*name).clone(), compiler.load(engine, name));
    std::thread::scope(|threads| {
        let parts =
            names.chunks(share).map(|part| threads.spawn(move || part.iter().map(load).collect::<Vec<_>>()));
        // All threads are started before the first is waited for.
        let parts: Vec<_> = parts.collect();
        parts.into_iter().flat_map(|part| part.join().expect("a load does not panic")).collect()
    })
}

impl Loader {
    /// Loads a project for the first time. Plans that fail to load are listed with their problems.
    pub(crate) fn start(settings: PlanSettings, runs: engine::Engine) -> Result<FirstLoad, Problems> {
        let compiler = match &settings.worker {
            Some(worker) => Compiler::new(worker.clone()),
            None => Compiler::in_place(),
        };
        let LoadedProject { engine, files, captures } = load_project(&settings.project, &runs)?;
        let names = names(&engine)?;
        let mut first = Table { engine, plans: BTreeMap::new(), problem: None };
        let loaded = load_all(&compiler, &first.engine, &names.iter().collect::<Vec<_>>());
        for (name, loaded) in loaded {
            let entry = Entry::new(&name).with(loaded, Takeover::AtOnce);
            first.plans.insert(name, Arc::new(entry));
        }
        let table = Arc::new(RwLock::new(Arc::new(first)));
        let loader = Loader { settings, compiler, runs, table: Arc::clone(&table), seen_settings: files };
        Ok(FirstLoad { loader, table, captures })
    }

    /// Executes changes until the last handle that can request one is dropped.
    pub(crate) fn run(mut self, changes: &Receiver<Change>) {
        loop {
            let change = match self.settings.watch_every {
                Some(every) => changes.recv_timeout(every),
                None => changes.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match change {
                Ok(Change { kind, result }) => {
                    let changed = self.change(kind);
                    // The caller may have disconnected.
                    let _ = result.send(changed);
                }
                Err(RecvTimeoutError::Timeout) => self.look_again(),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn swap(&self, table: Table) {
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(table);
    }

    fn change(&mut self, kind: ChangeKind) -> Result<ChangedPlans, ChangeError> {
        match kind {
            ChangeKind::Reload(None) => self.reload_all(),
            ChangeKind::Reload(Some(name)) => self.reload_one(&name),
            ChangeKind::Promote(name) => self.end_canary(&name, Verdict::Promote),
            ChangeKind::RollBack(name) => {
                let why = "it was rolled back by request".to_owned();
                self.end_canary(&name, Verdict::RollBack(why))
            }
        }
    }

    /// Loads everything again. If anything fails to load, nothing changes.
    fn reload_all(&mut self) -> Result<ChangedPlans, ChangeError> {
        // Files that were wrong at the last look are reported again.
        if is_changed(&self.seen_settings) || self.table().problem.is_some() {
            return self.renew().map_err(ChangeError::Bad);
        }
        let table = self.table();
        let names = names(&table.engine).map_err(ChangeError::Bad)?;
        let mut problems = Problems::default();
        let mut loaded = Vec::new();
        for name in names {
            let plan = self.compiler.load(&table.engine, &name);
            problems.errors.extend(plan.plan.as_ref().err().into_iter().flat_map(|bad| bad.errors.clone()));
            loaded.push((name, plan));
        }
        if !problems.is_fine() {
            self.note_problems(&table, loaded);
            return Err(ChangeError::Bad(problems));
        }
        Ok(self.apply(&table, loaded))
    }

    fn reload_one(&mut self, name: &str) -> Result<ChangedPlans, ChangeError> {
        let table = self.table();
        let names = names(&table.engine).map_err(ChangeError::Bad)?;
        if !names.iter().any(|other| other == name) {
            return Err(ChangeError::NoPlan(no_plan(name, names.iter().map(String::as_str))));
        }
        let loaded = self.compiler.load(&table.engine, name);
        match &loaded.plan {
            Ok(_) => {
                let mut table = (*table).clone();
                // The request names the plan, so a version that was rolled back is tried again.
                table
                    .plans
                    .get_mut(name)
                    .into_iter()
                    .for_each(|entry| Arc::make_mut(entry).rolled_back = None);
                Ok(self.apply_some(&table, vec![(name.to_owned(), loaded)]))
            }
            Err(problems) => {
                let problems = problems.clone();
                self.note_problems(&table, vec![(name.to_owned(), loaded)]);
                Err(ChangeError::Bad(problems))
            }
        }
    }

    /// Creates a new engine from the project and the registry, with all plans. If the project, the registry, or a
    /// served plan fails to load, nothing changes.
    fn renew(&mut self) -> Result<ChangedPlans, Problems> {
        let old = self.table();
        self.seen_settings = settings_files(&self.settings.project);
        let renewed = load_project(&self.settings.project, &self.runs).and_then(|loaded| {
            let mut table = Table { engine: loaded.engine, plans: BTreeMap::new(), problem: None };
            let mut problems = Problems::default();
            for name in names(&table.engine)? {
                let plan = self.compiler.load(&table.engine, &name);
                let entry = old.plans.get(&name).map_or_else(|| Entry::new(&name), |entry| (**entry).clone());
                match entry.renewed(plan, &table.engine, self.takeover()) {
                    Ok(entry) => drop(table.plans.insert(name, Arc::new(entry))),
                    Err(bad) => problems.errors.extend(bad.errors),
                }
            }
            if problems.is_fine() { Ok(table) } else { Err(problems) }
        });
        match renewed {
            Ok(table) => {
                let changed = ChangedPlans { plans: table.plans.keys().cloned().collect() };
                info!(
                    plans = changed.plans.len(),
                    "the project or its registry changed; all plans were loaded again"
                );
                self.swap(table);
                Ok(changed)
            }
            Err(problems) => {
                warn!(%problems, "the project or its registry changed, but is wrong; the old one is served");
                self.swap(Table { problem: Some(problems.to_string()), ..(*old).clone() });
                Err(problems)
            }
        }
    }

    /// Loads the files that changed since the last check, and judges canaries.
    fn look_again(&mut self) {
        if is_changed(&self.seen_settings) {
            // The problems were logged, and are listed.
            let _ = self.renew();
        } else {
            self.look_at_plans();
        }
        for (name, entry) in &self.table().plans {
            if let Some(verdict) = canary::judge(entry, self.settings.canary.as_ref()) {
                // The canary exists, because only this thread changes the table.
                let _ = self.end_canary(name, verdict);
            }
        }
    }

    fn look_at_plans(&self) {
        let table = self.table();
        // A folder that is unreadable for a moment does not remove its plans.
        let Ok(names) = names(&table.engine) else { return };
        let is_due = |name: &String| table.plans.get(name).is_none_or(|entry| is_changed(&entry.files));
        let due: Vec<_> = names.iter().filter(|name| is_due(name)).collect();
        let is_gone = table.plans.keys().any(|name| !names.contains(name));
        if due.is_empty() && !is_gone {
            return;
        }
        let loaded = load_all(&self.compiler, &table.engine, &due);
        for (name, loaded) in &loaded {
            if let Err(problems) = &loaded.plan {
                warn!(plan = %name, %problems, "a plan changed, but is wrong; its last good version is served");
            }
        }
        let mut table = (*table).clone();
        table.plans.retain(|name, _| names.contains(name));
        self.apply_some(&table, loaded);
    }

    /// The way in which changed files of plans are served.
    fn takeover(&self) -> Takeover {
        match &self.settings.canary {
            Some(canary) => Takeover::Canary(canary.share),
            None => Takeover::AtOnce,
        }
    }

    /// Replaces the plans of the table by the loaded ones.
    fn apply(&self, table: &Table, loaded: Vec<(String, LoadedPlan)>) -> ChangedPlans {
        let mut table = table.clone();
        table.plans.retain(|name, _| loaded.iter().any(|(other, _)| other == name));
        self.apply_some(&table, loaded)
    }

    fn apply_some(&self, table: &Table, loaded: Vec<(String, LoadedPlan)>) -> ChangedPlans {
        let mut table = table.clone();
        let mut changed = ChangedPlans::default();
        for (name, loaded) in loaded {
            loaded.printed.iter().for_each(|line| info!(plan = %name, "{line}"));
            let entry = table.plans.get(&name).map_or_else(|| Entry::new(&name), |entry| (**entry).clone());
            let before = owned(entry.versions());
            let entry = entry.with(loaded, self.takeover());
            if owned(entry.versions()) != before {
                let (version, canary) = entry.versions();
                info!(plan = %name, version, canary, "loaded");
                changed.plans.push(name.clone());
            }
            table.plans.insert(name, Arc::new(entry));
        }
        self.swap(table);
        changed
    }

    /// Records the problems of plans that fail to load. The served versions stay.
    fn note_problems(&self, table: &Table, loaded: Vec<(String, LoadedPlan)>) {
        let mut table = table.clone();
        for (name, loaded) in loaded.into_iter().filter(|(_, loaded)| loaded.plan.is_err()) {
            let entry = table.plans.get(&name).map_or_else(|| Entry::new(&name), |entry| (**entry).clone());
            table.plans.insert(name, Arc::new(entry.with(loaded, Takeover::AtOnce)));
        }
        self.swap(table);
    }

    fn end_canary(&self, name: &str, verdict: Verdict) -> Result<ChangedPlans, ChangeError> {
        let mut table = (*self.table()).clone();
        let Some(entry) = table.plans.get(name) else {
            return Err(ChangeError::NoPlan(no_plan(name, table.plans.keys().map(String::as_str))));
        };
        let mut entry = (**entry).clone();
        let Some(canary) = entry.canary.take() else {
            return Err(ChangeError::NoCanary(format!("plan `{name}` has no new version on trial")));
        };
        let version = &canary.version.id;
        match verdict {
            Verdict::Promote => {
                info!(plan = %name, version, "the new version is served to everybody");
                entry.current = Some(Arc::clone(&canary.version));
            }
            Verdict::RollBack(why) => {
                warn!(plan = %name, version, why, "the new version was rolled back");
                let problem = format!(
                    "version {version} was rolled back: {why}; change its file, or put the served version back; \
                     POST /v1/plans/{name}/reload tries it again"
                );
                let source = canary.version.source.clone();
                entry.rolled_back = Some(RolledBackVersion { source, problem: problem.clone() });
                entry.problem = Some(problem);
            }
        }
        table.plans.insert(name.to_owned(), Arc::new(entry));
        self.swap(table);
        Ok(ChangedPlans { plans: vec![name.to_owned()] })
    }
}

/// The way in which a new version starts to be served.
#[derive(Clone, Copy)]
enum Takeover {
    AtOnce,
    /// At first to this share of the users.
    Canary(f64),
}

impl Entry {
    /// The ids of the current version and of the canary.
    fn versions(&self) -> (Option<&str>, Option<&str>) {
        (
            self.current.as_ref().map(|version| version.id.as_str()),
            self.canary.as_ref().map(|canary| canary.version.id.as_str()),
        )
    }

    /// The entry with the loaded plan, or with the problem if it failed to load.
    fn with(mut self, loaded: LoadedPlan, takeover: Takeover) -> Entry {
        self.files = loaded.files;
        let plan = match loaded.plan {
            Ok(plan) => plan,
            Err(problems) => {
                self.problem = Some(problems.to_string());
                return self;
            }
        };
        let tried = self.canary.iter().map(|canary| &canary.version);
        let version = Arc::new(Version::new(plan, self.current.iter().chain(tried)));
        let other = self.current.clone().filter(|current| current.source != version.source);
        if let (Some(_), Some(rolled_back)) = (&other, &self.rolled_back)
            && rolled_back.source == version.source
        {
            self.problem = Some(rolled_back.problem.clone());
            return self;
        }
        (self.problem, self.rolled_back) = (None, None);
        let on_trial = self.canary.take().filter(|canary| canary.version.source == version.source);
        match (takeover, other) {
            (Takeover::Canary(share), Some(current)) => {
                self.canary = Some(Arc::new(match on_trial {
                    Some(canary) => Canary { version, ..(*canary).clone() },
                    None => Canary::begin(version, share, &current),
                }));
            }
            (Takeover::AtOnce, _) | (_, None) => self.current = Some(version),
        }
        self
    }

    /// The entry on a renewed engine. The version in its file is served at once, unless it is on trial or was rolled
    /// back: then the served version is compiled from its kept files.
    fn renewed(mut self, loaded: LoadedPlan, engine: &Engine, takeover: Takeover) -> Result<Entry, Problems> {
        let advice = match (&self.canary, &self.rolled_back) {
            (Some(_), _) => "is on trial: promote it first",
            (None, Some(_)) => "was rolled back: change its file first",
            (None, None) => "",
        };
        match (&self.current, &loaded.plan) {
            (Some(_), Err(problems)) => Err(problems.clone()),
            (Some(current), Ok(_)) if !advice.is_empty() => {
                let wrong = |error| {
                    let what = format!("the served version cannot be kept, and the one in its file {advice}");
                    Problem::new(format!("plan `{}`", self.name), format!("{what}: {error}"))
                };
                self.current = Some(Arc::new(current.on(engine).map_err(wrong)?));
                Ok(self.with(loaded, takeover))
            }
            _ => Ok(self.with(loaded, Takeover::AtOnce)),
        }
    }
}

impl Canary {
    /// The trial of a version beside the current one.
    fn begin(version: Arc<Version>, share: f64, current: &Version) -> Canary {
        let began = version.plan.engine().runs().clock().now();
        Canary { version, share, began, current_before: current.stats.period() }
    }
}

fn owned((current, canary): (Option<&str>, Option<&str>)) -> (Option<String>, Option<String>) {
    (current.map(str::to_owned), canary.map(str::to_owned))
}

/// The message that there is no plan of this name, with a suggestion.
pub(crate) fn no_plan<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let shown = anabranch_text::quote(name);
    match (closest(name, known.clone()), known.clone().next()) {
        (Some(near), _) => format!("there is no plan {shown}; did you mean `{near}`?"),
        (None, None) => format!("there is no plan {shown}; the plan folder is empty"),
        (None, Some(_)) => {
            let names: Vec<&str> = known.take(MOST_NAMED).collect();
            format!("there is no plan {shown}; there are: {}", names.join(", "))
        }
    }
}

/// The most plans in a message.
const MOST_NAMED: usize = 20;

fn load_project(file: &Path, runs: &engine::Engine) -> Result<LoadedProject, Problems> {
    let files = settings_files(file);
    let text = std::fs::read_to_string(file)
        .map_err(|error| Problem::new(file.display().to_string(), format!("cannot be read: {error}")))?;
    let project = Project::parse(&text, file)?;
    let captures = project.captures.clone();
    let setup = Setup { project: Some(project), ..Setup::default() };
    let (config, warnings) = setup.config_on(runs.clock())?;
    for warning in warnings {
        warn!(%warning, "the project");
    }
    let engine = Engine::load_on(runs.clone(), config)
        .map_err(|error| Problem::new(file.display().to_string(), error.to_string()))?;
    Ok(LoadedProject { engine, files, captures })
}

/// The files that decide how plans are checked: the project file and the registry, with its folder.
fn settings_files(file: &Path) -> Vec<SourceFile> {
    let project = std::fs::read_to_string(file).ok().and_then(|text| Project::parse(&text, file).ok());
    let mut files: Vec<PathBuf> = vec![file.to_owned()];
    if let Some(project) = project {
        let entries = std::fs::read_dir(&project.registry).into_iter().flatten().flatten();
        files.extend(entries.map(|entry| entry.path()));
        files.push(project.registry);
    }
    files.into_iter().map(|path| SourceFile { look: look(&path), path }).collect()
}

fn is_changed(files: &[SourceFile]) -> bool {
    files.iter().any(|file| look(&file.path) != file.look)
}

fn names(engine: &Engine) -> Result<Vec<String>, Problems> {
    let folder = engine.folder().unwrap_or(Path::new(""));
    let files = plan_files(folder, &[SOURCE, BUILT])
        .map_err(|error| Problem::new(folder.display().to_string(), format!("cannot be read: {error}")))?;
    // A name that is not valid for a plan would be a route that no client can call.
    let is_name = |name: &String| engine.registries().limits.plan_name.is_match(name);
    Ok(files.into_keys().filter(is_name).collect())
}
