//! Rebuilds a blob's tree from its bytes.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::incoming::IncomingFile;
use super::name::incoming_rebuild;
use super::stored::StoredFile;
use super::values::Values;
use super::{Error, PIECE_LEN, failed};
use crate::tree::{Builder, Part};
use crate::{Disk, File, Memory, Open};

impl StoredFile {
    /// Rebuilds the values of a blob whose tree is missing or wrong; an error if the blob is damaged.
    pub(super) fn rebuild(&self) -> Result<Values, Error> {
        let file = match self.rebuild_on_disk() {
            // A disk that cannot take the tree does not stop the read: the tree is then held in memory.
            Err(Error::Disk(_)) => self.rebuild_in_memory()?,
            file => file?,
        };
        let values = Values::open(file, &self.name.address, self.len);
        values.ok_or_else(|| self.tree_is_lost())
    }

    /// The error for a tree that is damaged again right after it was written: the blob itself may be whole.
    pub(super) fn tree_is_lost(&self) -> Error {
        failed("read back", &self.name.tree())(io::ErrorKind::InvalidData.into())
    }

    fn rebuild_on_disk(&self) -> Result<Arc<dyn File>, Error> {
        let rebuild = self.files.rebuilds.fetch_add(1, Ordering::Relaxed);
        let incoming = IncomingFile::create(&self.files, incoming_rebuild(self.name.number, rebuild))?;
        self.build(|part| incoming.write(&part.bytes, part.offset))?;
        let file = Arc::clone(&incoming.file);
        incoming.move_to(&self.name.tree())?;
        Ok(file)
    }

    fn rebuild_in_memory(&self) -> Result<Arc<dyn File>, Error> {
        let path = Path::new("tree");
        let file = Memory::new().open(path, Open::Create).map_err(failed("make", path))?;
        self.build(|part| file.write_at(&part.bytes, part.offset).map_err(failed("write", path)))?;
        Ok(file)
    }

    fn build(&self, mut write: impl FnMut(&Part) -> Result<(), Error>) -> Result<(), Error> {
        let (mut builder, mut offset) = (Builder::new(), 0);
        let mut buffer = self.files.buffers.take(PIECE_LEN);
        while offset < self.len {
            let piece = &mut buffer[..(self.len - offset).min(PIECE_LEN as u64) as usize];
            self.read(piece, offset)?;
            builder.update(piece);
            builder.ready().iter().try_for_each(&mut write)?;
            offset += piece.len() as u64;
        }
        let done = builder.finish();
        if done.address != self.name.address {
            return Err(Error::Corrupt { what: format!("the bytes hash to {}", done.address) });
        }
        done.tree.iter().try_for_each(write)
    }
}
