//! Writes a folder. It is written beside its place and renamed, so that it appears completely or not at all.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anabranch_content::Address;
use anabranch_engine::clock::{Clock as _, SystemClock};
use anabranch_recipe::Folder;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::super::backend::Backend;
use super::super::interrupt::CleaningGuard;
use super::super::place::check_output;
use super::super::pour::unwritten;
use super::super::progress::{ComputeProgress, lock, watched};
use super::in_words;
use super::plan::{Plan, PlannedFile};
use crate::failure::Failure;

/// The treatment of an existing folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum ExistingFolder {
    Refuse,
    /// The whole folder is replaced.
    Replace,
}

/// The place of a folder to write.
pub(in super::super) struct Output {
    path: PathBuf,
    /// Whether something exists there, which is replaced.
    is_there: bool,
    beside: UnfinishedFolder,
}

/// The folder in progress, or the replaced one. It is removed on drop.
struct UnfinishedFolder(PathBuf);

impl Drop for UnfinishedFolder {
    fn drop(&mut self) {
        let _cleaning = CleaningGuard::begin();
        // If it cannot be removed, its name shows its purpose.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The counts of a written folder.
pub(in super::super) struct WrittenFolder {
    pub files: usize,
    /// Including the folder itself.
    pub folders: usize,
    pub links: usize,
    pub bytes: u64,
}

impl WrittenFolder {
    /// Describes its content.
    pub(in super::super) fn summary(&self) -> String {
        in_words([self.files, self.folders, self.links], self.bytes)
    }
}

/// The number of files that are read concurrently.
const AT_ONCE: usize = 8;

impl Output {
    /// Creates a folder beside the final place, if the folder may be written there. It never replaces the store.
    pub(in super::super) fn to(
        path: &Path,
        existing: ExistingFolder,
        store: &Path,
    ) -> Result<Output, Failure> {
        check_output(path, store)?;
        let path = std::path::absolute(path).map_err(|error| unwritten(path, &error))?;
        let Some(name) = path.file_name() else {
            return Err(Failure::of(format!("{}: name a folder to write", path.display())));
        };
        let is_there = match fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(unwritten(&path, &error)),
            Ok(found) if !found.is_dir() => {
                return Err(Failure::of(format!(
                    "{} exists and is not a folder; name another path",
                    path.display()
                )));
            }
            Ok(_) => {
                let is_empty =
                    fs::read_dir(&path).map_err(|error| unwritten(&path, &error))?.next().is_none();
                if !is_empty && existing == ExistingFolder::Refuse {
                    return Err(Failure::of(format!(
                        "{} exists and is not empty; name another folder, or replace all of it with --force",
                        path.display()
                    )));
                }
                true
            }
        };
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.partial", std::process::id()));
        let beside = path.with_file_name(hidden);
        fs::create_dir(&beside).map_err(|error| unwritten(&beside, &error))?;
        Ok(Output { path, is_there, beside: UnfinishedFolder(beside) })
    }

    /// Renames the complete folder to its final place.
    fn finish(self) -> Result<(), Failure> {
        let failed = |error: io::Error| unwritten(&self.path, &error);
        let parent = self.path.parent().unwrap_or(Path::new("/"));
        sync(&self.beside.0).map_err(failed)?;
        // An existing folder is exchanged atomically, and removed afterwards. A folder that has appeared in the
        // meantime stays.
        let flags = if self.is_there { RenameFlags::EXCHANGE } else { RenameFlags::NOREPLACE };
        renameat_with(CWD, &self.beside.0, CWD, &self.path, flags).map_err(|error| failed(error.into()))?;
        File::open(parent).and_then(|parent| parent.sync_all()).map_err(failed)
    }
}

/// Writes everything in a folder.
pub(in super::super) async fn write(
    backend: &Backend,
    folder: Folder,
    output: Output,
    within: Option<Duration>,
) -> Result<WrittenFolder, Failure> {
    let deadline = within.map(|within| SystemClock.now() + within);
    let plan = Plan::find(backend, folder).await?;
    // All names were checked, so these paths are below the new folder. Links are created after all files, so nothing is
    // written through a link.
    let root = &output.beside.0;
    for path in &plan.folders {
        let path = root.join(path);
        fs::create_dir(&path).map_err(|error| unwritten(&path, &error))?;
    }
    let (progress, written) = (ComputeProgress::new(), AtomicU64::new(0));
    let count = |bytes: usize| {
        if let Some(progress) = &progress {
            lock(progress).wrote(bytes);
        }
        written.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64
    };
    let files = stream::iter(&plan.files).map(Ok);
    let files =
        files.try_for_each_concurrent(AT_ONCE, |file| self::file(backend, root, file, deadline, &count));
    watched(backend, files, progress.as_ref()).await?;
    let bytes = written.load(Ordering::Relaxed);
    drop(progress);
    for (path, target) in &plan.links {
        let path = root.join(path);
        std::os::unix::fs::symlink(target, &path).map_err(|error| unwritten(&path, &error))?;
    }
    output.finish()?;
    let (files, folders, links) = (plan.files.len(), plan.folders.len() + 1, plan.links.len());
    Ok(WrittenFolder { files, folders, links, bytes })
}

/// Writes a file. Its bytes are counted, and the count is the sum of all files.
async fn file(
    backend: &Backend,
    root: &Path,
    file: &PlannedFile,
    deadline: Option<Instant>,
    count: &impl Fn(usize) -> u64,
) -> Result<(), Failure> {
    let path = root.join(&file.path);
    let failed = |error: io::Error| unwritten(&path, &error);
    let mode = if file.executable { 0o777 } else { 0o666 };
    let mut to = File::options().write(true).create_new(true).mode(mode).open(&path).map_err(failed)?;
    let within = deadline.map(|deadline| deadline.saturating_duration_since(SystemClock.now()));
    let mut got = backend.get(file.address, 0..u64::MAX, within).await?;
    while let Some(piece) = got.next().await? {
        to.write_all(&piece).map_err(failed)?;
        if count(piece.len()) > Folder::<Address>::BYTES_MOST {
            return Err(Failure::of("the files of the folder have more than 16 TiB"));
        }
    }
    Ok(())
}

/// Makes everything that was written durable.
#[cfg(target_os = "linux")]
fn sync(folder: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(folder)?)?)
}

#[cfg(not(target_os = "linux"))]
fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
