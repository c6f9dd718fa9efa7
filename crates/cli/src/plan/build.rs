//! `anabranch plan build`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anabranch_plan::{Engine, Problem, Problems};
use anabranch_plan_ts::{CompiledPlan, Outcome, SourceFile};
use anabranch_text::{closest, count};
use clap::Args;
use serde_json::Value;

use super::lookup::{self, BUILT, SOURCE};
use super::project_args::{ProjectArgs, RowsUse};
use super::watch;
use crate::failure::Failure;
use crate::out;

pub(super) const HELP: &str = "\
Each NAME.plan.ts becomes NAME.plan.json beside it, or in --out. A file that is up to date is not written again. A \
file that was not built by this compiler is overwritten only with --force. All problems are reported at once, each \
with its line. Plans may import from \"anabranch\" and from files of the plan folder. Their code runs in a separate \
process that can open no file, for at most 2 s of CPU time and 64 MiB.

  anabranch plan build                 all plans of the plan folder
  anabranch plan build feed --watch    again whenever the plan, a file it imports, or the registry changes
  anabranch plan build --check         for CI: fails if a NAME.plan.json is missing or out of date

Exit codes: 0 fine; 1 refused, or out of date; 2 wrong usage.";

/// Compiles plans.
#[derive(Args)]
pub(crate) struct Build {
    /// Files NAME.plan.ts, or names of plans in the plan folder; without any, all that are there.
    #[arg(value_name = "FILE|NAME")]
    names: Vec<String>,
    #[command(flatten)]
    pub(super) project: ProjectArgs,
    /// The folder to write to, instead of the one that a plan's source is in.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Writes nothing; fails if something would have to be written.
    #[arg(long, conflicts_with = "watch")]
    check: bool,
    /// Goes on, and builds again what changed.
    #[arg(long)]
    watch: bool,
    /// Overwrites files that no compiler wrote.
    #[arg(long)]
    force: bool,
}

/// The result of one plan.
pub(super) struct BuildOutcome {
    /// All files that it depends on.
    pub(super) files: Vec<SourceFile>,
    /// Its warnings.
    warnings: Vec<Problem>,
    outcome: FileOutcome,
}

/// The outcome for a plan's JSON file.
enum FileOutcome {
    Written,
    Unchanged,
    /// The file is missing or out of date. `--check` writes nothing.
    Due(&'static str),
    /// The plan has errors.
    Refused(Problems),
    /// The file cannot be written.
    Failed(String),
}

impl Build {
    pub(crate) fn run(self) -> Result<(), Failure> {
        if self.watch {
            return watch::run(&self);
        }
        let engine = self.project.engine(None, RowsUse::Unneeded)?;
        let sources = self.sources(&engine)?;
        let done = self.build(&engine, &sources);
        let bad = done.iter().filter(|done| !done.is_fine()).count();
        let changed = done.iter().filter(|done| matches!(done.outcome, FileOutcome::Written)).count();
        self.tell(&sources, &done);
        let (plans, bad) = (count(done.len(), "plan"), bad as u64);
        let state = if self.check { "up to date" } else { "built" };
        out::note(&match bad {
            0 if self.check => format!("{plans} up to date"),
            0 => format!("{plans} built, {changed} changed"),
            bad if bad == done.len() as u64 => format!("{plans} not {state}"),
            bad => format!("{plans}, {bad} of them not {state}"),
        });
        if bad == 0 { Ok(()) } else { Err(Failure::Reported) }
    }

    /// The sources of the named plans, or of all plans.
    pub(super) fn sources(&self, engine: &Engine) -> Result<Vec<PathBuf>, Failure> {
        if self.names.is_empty() {
            let found: Vec<PathBuf> = lookup::files(engine, &[SOURCE])?.into_values().collect();
            if found.is_empty() && !self.watch {
                let folder = engine.folder().unwrap_or(Path::new(".")).display();
                return Err(Failure::of(format!(
                    "there is no NAME{SOURCE} in {folder}; `anabranch plan new NAME` makes one"
                )));
            }
            return Ok(found);
        }
        let source = |name: &String| {
            let file = Path::new(name);
            if name.ends_with(SOURCE) {
                return Ok(file.to_owned());
            }
            let known = lookup::files(engine, &[SOURCE])?;
            let near = closest(name, known.keys().map(String::as_str));
            known.get(name).cloned().ok_or_else(|| {
                let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                Failure::of(format!("there is no plan `{name}` in TypeScript (NAME{SOURCE}){near}"))
            })
        };
        let sources: Vec<PathBuf> = self.names.iter().map(source).collect::<Result<_, _>>()?;
        self.check_targets(&sources)?;
        Ok(sources)
    }

    /// Fails if two sources have the same target.
    fn check_targets(&self, sources: &[PathBuf]) -> Result<(), Failure> {
        let mut firsts = BTreeMap::new();
        for source in sources {
            if let Some(first) = firsts.insert(self.target(source), source) {
                let [target, first, source] =
                    [&self.target(source), first, source].map(|file| file.display().to_string());
                let what = format!("{target} would be written twice, from {first} and from {source}");
                return Err(Failure::of(what));
            }
        }
        Ok(())
    }

    /// Builds the sources in parallel, on all cores.
    pub(super) fn build(&self, engine: &Engine, sources: &[PathBuf]) -> Vec<BuildOutcome> {
        let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get).min(sources.len());
        let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some((at, source)) = {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        sources.get(at).map(|source| (at, source))
                    } {
                        let built = self.build_one(engine, source);
                        done.lock().expect("no thread panics with it").push((at, built));
                    }
                });
            }
        });
        let mut done = done.into_inner().expect("no thread panicked with it");
        done.sort_unstable_by_key(|(at, _)| *at);
        done.into_iter().map(|(_, done)| done).collect()
    }

    fn build_one(&self, engine: &Engine, source: &Path) -> BuildOutcome {
        let Outcome { files, built, .. } = lookup::compile(engine, source);
        match built {
            Ok(built) => {
                let warnings = built.plan.warnings().to_vec();
                BuildOutcome { files, warnings, outcome: self.write(&self.target(source), &built) }
            }
            Err(problems) => {
                BuildOutcome { files, warnings: Vec::new(), outcome: FileOutcome::Refused(problems) }
            }
        }
    }

    fn target(&self, source: &Path) -> PathBuf {
        let name = source.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let name = format!("{}{BUILT}", name.strip_suffix(SOURCE).unwrap_or(name));
        match &self.out {
            Some(folder) => folder.join(name),
            None => source.with_file_name(name),
        }
    }

    fn write(&self, target: &Path, built: &CompiledPlan) -> FileOutcome {
        let there = match std::fs::read_to_string(target) {
            Ok(there) => Some(there),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return FileOutcome::Failed(format!("cannot read {}: {error}", target.display())),
        };
        match there {
            Some(there) if there == built.text => return FileOutcome::Unchanged,
            Some(_) if self.check => return FileOutcome::Due("out of date"),
            None if self.check => return FileOutcome::Due("missing"),
            Some(there) if !self.force && !is_built(&there) => {
                let target = target.display();
                return FileOutcome::Failed(format!(
                    "{target} was not built by a compiler; --force overwrites it"
                ));
            }
            _ => {}
        }
        // The file is replaced atomically, so that a reader sees either the old or the new content.
        let beside = target.with_extension(format!("json.{}", std::process::id()));
        let written = std::fs::write(&beside, &built.text).and_then(|()| std::fs::rename(&beside, target));
        match written {
            Ok(()) => FileOutcome::Written,
            Err(error) => {
                let _ = std::fs::remove_file(&beside);
                FileOutcome::Failed(format!("cannot write {}: {error}", target.display()))
            }
        }
    }

    /// Reports the outcome of each plan, except for unchanged ones.
    pub(super) fn tell(&self, sources: &[PathBuf], done: &[BuildOutcome]) {
        for (source, done) in sources.iter().zip(done) {
            let target = self.target(source);
            out::warnings(&done.warnings);
            match &done.outcome {
                FileOutcome::Written => out::note(&format!("built {}", target.display())),
                FileOutcome::Unchanged => {}
                FileOutcome::Due(how) => out::note(&format!("error: {} is {how}", target.display())),
                FileOutcome::Refused(problems) => out::problems(problems),
                FileOutcome::Failed(what) => out::note(&format!("error: {what}")),
            }
        }
    }
}

impl BuildOutcome {
    pub(super) fn is_fine(&self) -> bool {
        matches!(self.outcome, FileOutcome::Written | FileOutcome::Unchanged)
    }
}

/// Whether a compiler made the plan: ours, or rankd's.
fn is_built(text: &str) -> bool {
    let plan: Option<Value> = serde_json::from_str(text).ok();
    plan.is_some_and(|plan| plan.pointer("/built_by/tool").is_some())
}
