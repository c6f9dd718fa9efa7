//! `anabranch plan build --watch`: builds again what changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anabranch_engine::{Clock as _, SystemClock};
use anabranch_plan::Engine;

use super::build::{Build, Done};
use super::from::Rows;
use crate::failure::Failure;
use crate::out;

/// How often the files are looked at. Not by notifications: those miss network folders and containers.
const EVERY: Duration = Duration::from_millis(200);

/// What can be seen of a file without reading it.
type Look = Option<(SystemTime, u64)>;

/// Plans that are built, and the files they were built of.
struct Watched {
    /// Every file that any of it depends on, as it was when it was last read.
    looks: BTreeMap<PathBuf, Look>,
    /// What each source depends on.
    needs: BTreeMap<PathBuf, Vec<PathBuf>>,
}

/// Builds, and goes on until it is stopped.
pub(super) fn run(build: &Build) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.map_err(|error| Failure::of(format!("no event loop: {error}")))?;
    let mut begun = false;
    loop {
        // What the registry says is in everything, so that it is all begun anew.
        let registry = looks(build.from.settings_files());
        match build.from.engine(None, Rows::Unneeded) {
            Ok(engine) => runtime.block_on(watch(build, &engine, &registry, &mut begun))?,
            Err(failure) => {
                failure.report();
                runtime.block_on(until(|| changed(&registry)));
            }
        }
        out::note("the registry or the project changed");
    }
}

/// Builds what changed until the registry does.
async fn watch(
    build: &Build,
    engine: &Engine,
    registry: &BTreeMap<PathBuf, Look>,
    begun: &mut bool,
) -> Result<(), Failure> {
    let mut watched = Watched { looks: BTreeMap::new(), needs: BTreeMap::new() };
    let mut first = true;
    loop {
        let sources = match build.sources(engine) {
            Ok(sources) => sources,
            // It may come back: editors and version control take files away for a moment.
            Err(failure) if *begun => {
                failure.report();
                until(|| changed(registry) || build.sources(engine).is_ok()).await;
                if changed(registry) {
                    return Ok(());
                }
                continue;
            }
            Err(failure) => return Err(failure),
        };
        *begun = true;
        watched.forget_all_but(&sources);
        let due: Vec<PathBuf> = sources.iter().filter(|source| watched.is_due(source)).cloned().collect();
        if !due.is_empty() {
            // Looked at before they are read, so that no change is missed.
            due.iter().for_each(|source| watched.look_again(source));
            let done = build.build(engine, &due);
            build.tell(&due, &done);
            let fine = done.iter().filter(|done| done.is_fine()).count();
            out::note(&format!("{fine} of {} built", out::count(done.len() as u64, "plan")));
            due.into_iter().zip(done).for_each(|(source, done)| watched.add(source, done));
        }
        if std::mem::take(&mut first) {
            let plans = out::count(sources.len() as u64, "plan");
            out::note(&format!("watching {plans}; Ctrl-C ends it"));
        }
        until(|| changed(registry) || changed(&watched.looks) || grown(build, engine, &watched)).await;
        if changed(registry) {
            return Ok(());
        }
    }
}

impl Watched {
    /// Whether something that a source depends on changed since, or it was never built.
    fn is_due(&self, source: &Path) -> bool {
        let Some(files) = self.needs.get(source) else { return true };
        files.iter().any(|file| self.looks.get(file) != Some(&look(file)))
    }

    /// Looks at all that a source is known to depend on.
    fn look_again(&mut self, source: &Path) {
        let files = self.needs.get(source).into_iter().flatten().map(PathBuf::as_path);
        let seen = files.chain([source]).map(|file| (file.to_owned(), look(file)));
        self.looks.extend(seen);
    }

    /// Forgets sources that are gone, and what only they depended on.
    fn forget_all_but(&mut self, sources: &[PathBuf]) {
        self.needs.retain(|source, _| sources.contains(source));
        let needed: BTreeSet<&PathBuf> = self.needs.values().flatten().collect();
        self.looks.retain(|file, _| needed.contains(file));
    }

    fn add(&mut self, source: PathBuf, done: Done) {
        // A file that a source was the first to read may have changed since; the next change of it will show.
        for file in &done.files {
            self.looks.entry(file.clone()).or_insert_with(|| look(file));
        }
        self.needs.insert(source, done.files);
    }
}

/// Whether there is a source that was not there before.
fn grown(build: &Build, engine: &Engine, watched: &Watched) -> bool {
    build
        .sources(engine)
        .is_ok_and(|sources| sources.iter().any(|source| !watched.needs.contains_key(source)))
}

fn looks(files: Vec<PathBuf>) -> BTreeMap<PathBuf, Look> {
    files
        .into_iter()
        .map(|file| {
            let seen = look(&file);
            (file, seen)
        })
        .collect()
}

fn look(file: &Path) -> Look {
    let seen = std::fs::metadata(file).ok()?;
    Some((seen.modified().ok()?, seen.len()))
}

fn changed(looks: &BTreeMap<PathBuf, Look>) -> bool {
    looks.iter().any(|(file, seen)| look(file) != *seen)
}

async fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        SystemClock.sleep_until(SystemClock.now() + EVERY).await;
    }
}
