//! Where the bench works and how much it does.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use anabranch_content::{Config, Store};
use tokio::runtime::{Builder, Runtime};

/// A folder of the bench's own, beside the program, removed at the end; and the runtime that the callers run on.
pub(crate) struct Ground {
    pub(crate) sizes: Sizes,
    pub(crate) runtime: Runtime,
    root: PathBuf,
}

/// How much is measured.
pub(crate) struct Sizes {
    pub(crate) quick: bool,
    /// What a large store has.
    pub(crate) entries: u64,
    /// How often each contender has its turn.
    pub(crate) turns: usize,
    /// How long a turn takes, where that is what is given.
    pub(crate) window: Duration,
    /// Bytes of a large blob.
    pub(crate) blob: u64,
}

/// Below this, large blobs are a quarter as large.
const ROOMY: u64 = 16 << 30;

impl Ground {
    pub(crate) fn new(name: &str) -> io::Result<Ground> {
        let program = std::env::current_exe()?;
        let root = program.parent().unwrap_or(Path::new(".")).join(format!("{name}-bench"));
        // What a run left that was killed.
        remove(&root)?;
        fs::create_dir_all(&root)?;
        let quick = std::env::var_os("ANABRANCH_BENCH_QUICK").is_some();
        let blob = match free_bytes(&root)? {
            _ if quick => 16 << 20,
            ..ROOMY => 64 << 20,
            _ => 256 << 20,
        };
        let sizes = match quick {
            true => Sizes { quick, entries: 50_000, turns: 3, window: Duration::from_millis(100), blob },
            false => Sizes { quick, entries: 1_000_000, turns: 9, window: Duration::from_millis(400), blob },
        };
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        Ok(Ground { sizes, runtime, root })
    }

    /// What figures of a disk depend on.
    pub(crate) fn describe(&self) -> io::Result<String> {
        let mounts = fs::read_to_string("/proc/mounts")?;
        let holds = |line: &&str| line.split(' ').nth(1).is_some_and(|point| self.root.starts_with(point));
        let longest = mounts.lines().filter(holds).max_by_key(|line| line.split(' ').nth(1).map(str::len));
        let kind = longest.and_then(|line| line.split(' ').nth(2)).unwrap_or("unknown");
        Ok(format!("The file system is {kind}."))
    }

    /// A folder that is not there yet.
    pub(crate) fn folder(&self, name: &str) -> Scratch {
        Scratch(self.root.join(name))
    }

    /// Has the disk do now what it put off, such as removing files: it is nobody's turn.
    pub(crate) fn settle(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(fs::File::open(&self.root)?)?)
    }

    pub(crate) fn close(&self, store: Store) {
        self.runtime.block_on(store.close()).expect("a store closes");
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        // If this fails, the next run removes it.
        let _ = remove(&self.root);
    }
}

/// A folder or file that is removed with this.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn open(&self) -> Store {
        Store::open(&self.0, Config::default()).expect("a store opens")
    }

    /// Bytes of all files in it.
    pub(crate) fn bytes(&self) -> io::Result<u64> {
        let mut bytes = 0;
        for_each_file(&self.0, &mut |file| {
            bytes += file.metadata()?.len();
            Ok(())
        })?;
        Ok(bytes)
    }

    /// The folder as it is now, under another name, without its lock: what a process that dies now leaves. Files are
    /// linked, not copied, because a store only appends to them.
    pub(crate) fn image(&self, ground: &Ground, name: &str) -> io::Result<Scratch> {
        let image = ground.folder(name);
        for_each_file(&self.0, &mut |file| {
            let to = image.0.join(file.strip_prefix(&self.0).expect("a file is in its folder"));
            fs::create_dir_all(to.parent().unwrap_or(&image.0))?;
            if file.ends_with("lock") { Ok(()) } else { fs::hard_link(file, to) }
        })?;
        Ok(image)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // If this fails, the whole ground is removed later.
        let _ = remove(&self.0);
    }
}

pub(crate) fn for_each_file(folder: &Path, each: &mut dyn FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => for_each_file(&entry.path(), each)?,
            false => each(&entry.path())?,
        }
    }
    Ok(())
}

fn remove(path: &Path) -> io::Result<()> {
    let removed = match path.is_dir() {
        true => fs::remove_dir_all(path),
        false => fs::remove_file(path),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn free_bytes(folder: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(folder)?;
    Ok(disk.f_bavail * disk.f_frsize)
}
