//! The lock of a store: one process owns it. The lock file names that process, and where it listens.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anabranch_text::Plain;

use crate::Error;

const NAME: &str = "lock";

/// The text before the address that the owner listens on.
const LISTENING: &str = ", listening on ";

/// The lock on a store, released when dropped or when the process ends.
#[derive(Debug)]
pub(crate) struct Owner {
    file: Mutex<File>,
    path: PathBuf,
}

impl Drop for Owner {
    fn drop(&mut self) {
        // Closing the file is not enough while a child process that was just started has a copy of the descriptor.
        let _ = super::lock(&self.file).unlock();
    }
}

impl Owner {
    /// Locks the store in a folder; an error if another process has it.
    pub(crate) fn take(folder: &Path) -> Result<Owner, Error> {
        let path = folder.join(NAME);
        let disk = |doing, cause| Error::disk(doing, Path::new(NAME), cause);
        let mut options = File::options();
        let options =
            options.read(true).write(true).create(true).truncate(false).mode(crate::disk::FILE_MODE);
        let mut file = options.open(&path).map_err(|cause| disk("open", cause))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                // The file's text is only for messages; the lock itself decides.
                let _ = Read::by_ref(&mut file).take(4096).read_to_string(&mut text);
                let owner = text.trim();
                let listens_on = owner.split_once(LISTENING).map(|(_, listens_on)| listens_on.to_owned());
                return Err(Error::Owned { owner: Plain(owner).to_string(), listens_on });
            }
            Err(TryLockError::Error(cause)) => return Err(disk("lock", cause)),
        }
        let owner = Owner { file: Mutex::new(file), path };
        owner.say(None)?;
        Ok(owner)
    }

    /// The address that the process that owns the store in a folder listens on, if there is one.
    pub(crate) fn announced(folder: &Path) -> Option<String> {
        let mut file = File::open(folder.join(NAME)).ok()?;
        // If the lock can be had nobody owns the store, and the text is a dead process's.
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => {}
            Ok(()) | Err(TryLockError::Error(_)) => return None,
        }
        let mut text = String::new();
        Read::by_ref(&mut file).take(4096).read_to_string(&mut text).ok()?;
        text.trim().split_once(LISTENING).map(|(_, listens_on)| listens_on.to_owned())
    }

    /// Writes the address that the owner listens on.
    pub(crate) fn announce(&self, listen: &str) -> Result<(), Error> {
        self.say(Some(listen))
    }

    fn say(&self, listen: Option<&str>) -> Result<(), Error> {
        let mut text = format!("process {}", std::process::id());
        if let Some(listen) = listen {
            text.push_str(&format!("{LISTENING}{}", listen.escape_debug()));
        }
        text.push('\n');
        self.write(&text).map_err(|cause| Error::disk("write", &self.path, cause))
    }

    fn write(&self, text: &str) -> io::Result<()> {
        let mut file = super::lock(&self.file);
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(text.as_bytes())
    }
}
