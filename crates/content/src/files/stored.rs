//! A blob's file as it is on the disk, not verified yet.

use std::sync::Arc;

use super::{Error, Files, Name, failed, missing_or_failed};
use crate::{File, Open, Wait};

/// A file that has the right name and length.
#[derive(Debug)]
pub(super) struct StoredFile {
    pub(super) files: Arc<Files>,
    pub(super) name: Name,
    pub(super) len: u64,
    file: Arc<dyn File>,
}

impl StoredFile {
    pub(super) fn open(files: &Arc<Files>, name: Name, len: u64) -> Result<StoredFile, Error> {
        let path = name.data();
        let file = files.disk.open(&path, Open::Read).map_err(missing_or_failed("open", &path))?;
        match file.len().map_err(failed("measure", &path))? {
            found if found == len => Ok(StoredFile { files: Arc::clone(files), name, len, file }),
            found => Err(Error::Corrupt { what: format!("the file has {found} bytes, not {len}") }),
        }
    }

    /// Fills the buffer.
    pub(super) fn read(&self, into: &mut [u8], offset: u64) -> Result<(), Error> {
        let read = self.file.read_at(into, offset, Wait::Yes).map_err(failed("read", &self.name.data()))?;
        if read < into.len() {
            return Err(Error::Corrupt { what: format!("the file ends at {}", offset + read as u64) });
        }
        Ok(())
    }
}
