//! The folder of jobs.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tracing::warn;

use super::past::PastBuild;
use super::spec::{JobEnd, Spec};
use crate::runs::RunId;

const SPEC: &str = "spec.json";
const END: &str = "end.json";
const CANCELLED: &str = "cancelled";
const PAST: &str = "past.json";
/// The output folder of a job's build.
pub(super) const OUTPUT: &str = "output";
/// The ending of a folder that is not accepted yet.
const UNFINISHED: &str = ".new";

/// The jobs of a folder, oldest first. The folder is created if it does not exist.
pub(super) fn open(folder: &Path) -> io::Result<Vec<(PathBuf, Spec, Option<JobEnd>)>> {
    fs::create_dir_all(folder)?;
    let mut jobs = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.ends_with(UNFINISHED) {
            // No client knows this job.
            fs::remove_dir_all(&path)?;
            continue;
        }
        let Ok(id) = name.parse::<RunId>() else { continue };
        match read(&path) {
            Ok((spec, end)) if spec.id == id => jobs.push((path, spec, end)),
            Ok(_) => {
                warn!(folder = %path.display(), "the folder of a dataset is skipped: its name is not the id in its files");
            }
            Err(error) => warn!(folder = %path.display(), %error, "the folder of a dataset is skipped"),
        }
    }
    jobs.sort_by_key(|(_, spec, _)| spec.id);
    Ok(jobs)
}

fn read(folder: &Path) -> io::Result<(Spec, Option<JobEnd>)> {
    let spec: Spec = serde_json::from_slice(&fs::read(folder.join(SPEC))?)?;
    let end = match fs::read(folder.join(END)) {
        Ok(text) => Some(serde_json::from_slice(&text)?),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Err(_) if folder.join(CANCELLED).exists() => Some(JobEnd::stopped(spec.id, "it was cancelled")),
        Err(_) => None,
    };
    Ok((spec, end))
}

/// A new folder for a job that is being checked. Dropping it removes it, unless it was accepted.
pub(super) struct NewFolder {
    path: PathBuf,
    accepted: PathBuf,
}

impl NewFolder {
    pub(super) fn create(folder: &Path, id: RunId) -> io::Result<NewFolder> {
        let path = folder.join(format!("{id}{UNFINISHED}"));
        fs::create_dir(&path)?;
        Ok(NewFolder { path, accepted: folder.join(id.to_string()) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn write(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        let mut file = File::create(&path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        Ok(path)
    }

    /// Makes the job durable under its final name.
    pub(super) fn accept(self, spec: &Spec) -> io::Result<PathBuf> {
        self.write(SPEC, &serde_json::to_string_pretty(spec)?)?;
        File::open(&self.path)?.sync_all()?;
        fs::rename(&self.path, &self.accepted)?;
        File::open(self.accepted.parent().unwrap_or(&self.accepted))?.sync_all()?;
        Ok(self.accepted.clone())
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        // If this fails, the next start removes the folder. An accepted folder has another name.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Records the end of a job.
pub(super) fn note_end(folder: &Path, end: &JobEnd) -> io::Result<()> {
    write_durably(folder, END, end)
}

/// Records the part of a finished build that its page shows.
pub(super) fn note_past(folder: &Path, past: &PastBuild) -> io::Result<()> {
    write_durably(folder, PAST, past)
}

/// The record of the last build; empty if there is none, or if the file is damaged.
pub(super) fn past(folder: &Path) -> PastBuild {
    let text = fs::read(folder.join(PAST)).ok();
    text.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

/// Records that a job is cancelled.
pub(super) fn note_cancelled(folder: &Path) -> io::Result<()> {
    write_durably(folder, CANCELLED, &true)
}

fn write_durably(folder: &Path, name: &str, value: &impl Serialize) -> io::Result<()> {
    let temporary = folder.join(format!("{name}{UNFINISHED}"));
    let mut file = File::create(&temporary)?;
    file.write_all(&serde_json::to_vec(value)?)?;
    file.sync_all()?;
    fs::rename(&temporary, folder.join(name))?;
    File::open(folder)?.sync_all()
}

/// Removes a job. Its folder is renamed first, so that no partial job is found after a crash.
pub(super) fn remove(folder: &Path) -> io::Result<()> {
    let gone = folder.with_extension("new");
    fs::rename(folder, &gone)?;
    fs::remove_dir_all(&gone)
}

/// The bytes of all files below a folder. Unreadable files count as 0.
pub(super) fn used(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(found) if found.is_dir() => used(&entry.path()),
            Ok(found) => found.len(),
            Err(_) => 0,
        })
        .sum()
}
