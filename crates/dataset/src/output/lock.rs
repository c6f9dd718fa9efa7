//! The lock of an output folder: one build at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

use super::files::{FileError, cannot};

const NAME: &str = "build.lock";

/// The lock of a folder. It is released when it is dropped, and when its process ends in any way.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock; the error names the process that has it.
    pub(crate) fn take(folder: &Path) -> Result<Lock, FileError> {
        let path = folder.join(NAME);
        let mut file = open(&path).map_err(cannot("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let who = owner(&mut file).map_or_else(String::new, |pid| format!(" (process {pid})"));
                let what = format!("another build writes to it{who}; wait for it, or choose another folder");
                let cause = io::Error::new(io::ErrorKind::ResourceBusy, what);
                return Err(FileError { action: "build into", path: folder.to_owned(), cause });
            }
            Err(TryLockError::Error(cause)) => return Err(cannot("lock", &path)(cause)),
        }
        let written = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
        written.map_err(cannot("write", &path))?;
        Ok(Lock { _file: file })
    }

    /// The process that builds into a folder, if there is one.
    pub(super) fn holder(folder: &Path) -> io::Result<Option<u32>> {
        let mut file = match File::open(folder.join(NAME)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        // A look at the lock could get in the way of a build that begins, so a process that is gone needs no look.
        let Some(owner) = owner(&mut file).filter(|owner| is_alive(*owner)) else { return Ok(None) };
        match file.try_lock_shared() {
            Ok(()) => Ok(None),
            Err(TryLockError::WouldBlock) => Ok(Some(owner)),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

fn is_alive(process: u32) -> bool {
    let process = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw);
    process.is_some_and(|process| {
        !matches!(rustix::process::test_kill_process(process), Err(rustix::io::Errno::SRCH))
    })
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

fn owner(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().and_then(|()| file.read_to_string(&mut text)).ok()?;
    text.trim().parse().ok()
}
