//! `anabranch plan build --watch`: rebuilds plans whose files changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anabranch_engine::clock::{Clock as _, SystemClock};
use anabranch_plan::Engine;
use anabranch_plan_ts::{SourceFile, look};
use anabranch_text::count;

use super::build::Build;
use super::project_args::RowsUse;
use crate::failure::Failure;
use crate::out;
use crate::wait;

/// The interval of polling the files. Notifications would miss network folders and containers.
const EVERY: Duration = Duration::from_millis(200);

/// The plans that were built, and the files that each depends on.
#[derive(Default)]
struct WatchedFiles(BTreeMap<PathBuf, Vec<SourceFile>>);

/// Builds plans until it is stopped.
pub(super) fn run(build: &Build) -> Result<(), Failure> {
    let runtime = wait::runtime(&mut tokio::runtime::Builder::new_current_thread())?;
    let mut begun = false;
    loop {
        // Every plan depends on the registry, so a change of it restarts everything.
        let registry = looks(build.project.settings_files());
        match build.project.engine(None, RowsUse::Unneeded) {
            Ok(engine) => wait::on(&runtime, Box::pin(watch(build, &engine, &registry, &mut begun)))?,
            Err(failure) => {
                failure.report();
                wait::on(&runtime, Box::pin(until(|| changed(&registry))));
            }
        }
        out::note("the registry or the project changed");
    }
}

/// Rebuilds changed plans until the registry changes.
async fn watch(
    build: &Build,
    engine: &Engine,
    registry: &[SourceFile],
    begun: &mut bool,
) -> Result<(), Failure> {
    let mut watched = WatchedFiles::default();
    let mut first = true;
    loop {
        let sources = match build.sources(engine) {
            Ok(sources) => sources,
            // The sources may reappear, because editors and version control remove files for a moment.
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
        watched.0.retain(|source, _| sources.contains(source));
        let due: Vec<PathBuf> = sources.iter().filter(|source| watched.is_due(source)).cloned().collect();
        if !due.is_empty() {
            let done = build.build(engine, &due);
            build.tell(&due, &done);
            let fine = done.iter().filter(|done| done.is_fine()).count();
            out::note(&format!("{fine} of {} built", count(done.len(), "plan")));
            watched.0.extend(due.into_iter().zip(done.into_iter().map(|done| done.files)));
        }
        if std::mem::take(&mut first) {
            let plans = count(sources.len(), "plan");
            out::note(&format!("watching {plans}; Ctrl-C ends it"));
        }
        until(|| changed(registry) || watched.is_any_due(build, engine)).await;
        if changed(registry) {
            return Ok(());
        }
    }
}

impl WatchedFiles {
    /// Whether a file of the source changed since it was built, or the source was never built.
    fn is_due(&self, source: &Path) -> bool {
        self.0.get(source).is_none_or(|files| changed(files))
    }

    /// Whether any source must be rebuilt or has been removed.
    fn is_any_due(&self, build: &Build, engine: &Engine) -> bool {
        match build.sources(engine) {
            Ok(sources) => sources.len() < self.0.len() || sources.iter().any(|source| self.is_due(source)),
            Err(_) => true,
        }
    }
}

fn looks(files: Vec<PathBuf>) -> Vec<SourceFile> {
    files.into_iter().map(|path| SourceFile { look: look(&path), path }).collect()
}

fn changed(files: &[SourceFile]) -> bool {
    files.iter().any(|file| look(&file.path) != file.look)
}

async fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        SystemClock.sleep_until(SystemClock.now() + EVERY).await;
    }
}
