//! A file that is being written.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Error, Files, failed};
use crate::{File, Open};

/// A new file below `incoming`, removed when dropped unless it was moved to its place.
#[derive(Debug)]
pub(super) struct IncomingFile {
    pub(super) file: Arc<dyn File>,
    path: PathBuf,
    files: Arc<Files>,
    moved: bool,
}

impl IncomingFile {
    pub(super) fn create(files: &Arc<Files>, path: PathBuf) -> Result<IncomingFile, Error> {
        let create = || files.disk.open(&path, Open::Create).map_err(failed("make", &path));
        let file = files.with_incoming(create)?;
        Ok(IncomingFile { file, path, files: Arc::clone(files), moved: false })
    }

    pub(super) fn write(&self, bytes: &[u8], offset: u64) -> Result<(), Error> {
        self.file.write_at(bytes, offset).map_err(failed("write", &self.path))
    }

    pub(super) fn sync(&self) -> Result<(), Error> {
        self.file.sync().map_err(failed("sync", &self.path))
    }

    pub(super) fn move_to(mut self, path: &Path) -> Result<(), Error> {
        let rename = || self.files.disk.rename(&self.path, path).map_err(failed("rename", &self.path));
        self.files.with_incoming(rename)?;
        self.moved = true;
        Ok(())
    }
}

impl Drop for IncomingFile {
    fn drop(&mut self) {
        if !self.moved {
            // A file that cannot be removed now is removed when the store next opens.
            let remove = || self.files.disk.remove(&self.path).map_err(failed("remove", &self.path));
            let _ = self.files.with_incoming(remove);
        }
    }
}
