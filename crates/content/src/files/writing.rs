//! Writes a blob's file.

use std::sync::Arc;

use super::incoming::IncomingFile;
use super::name::{incoming, incoming_tree};
use super::{Durability, Error, Files, Name, PIECE_LEN, WHOLE_LEN};
use crate::File;
use crate::tree::{Builder, GROUP_LEN, Part, Value};

/// A blob that is being written. Dropping it removes the file. After an error it can only be dropped.
#[derive(Debug)]
pub(crate) struct BlobWriter {
    files: Arc<Files>,
    number: u64,
    data: IncomingFile,
    tree: Option<IncomingFile>,
    builder: Builder,
    written: u64,
    /// Less than a piece, to be written with the bytes that follow.
    buffer: Vec<u8>,
}

/// A whole blob that is not in place yet. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct WrittenBlob {
    pub(crate) name: Name,
    pub(crate) len: u64,
    files: Arc<Files>,
    data: IncomingFile,
    tree: Option<IncomingFile>,
    tree_rest: [Part; 2],
}

impl BlobWriter {
    pub(crate) fn begin(files: &Arc<Files>, number: u64) -> Result<BlobWriter, Error> {
        Ok(BlobWriter {
            files: Arc::clone(files),
            number,
            data: IncomingFile::create(files, incoming(number))?,
            tree: None,
            builder: Builder::new(),
            written: 0,
            buffer: Vec::new(),
        })
    }

    /// Writes whole pieces that are hashed elsewhere: [`BlobWriter::push_groups`] takes their values later, in order.
    pub(crate) fn write_data(&mut self, pieces: &[u8]) -> Result<(), Error> {
        assert!(self.buffer.is_empty() && pieces.len().is_multiple_of(PIECE_LEN), "whole pieces, in order");
        pieces.chunks(PIECE_LEN).try_for_each(|piece| {
            self.data.write(piece, self.written)?;
            self.written += piece.len() as u64;
            Ok(())
        })
    }

    /// The file of the bytes, for threads that write parts of it: [`BlobWriter::push_written`] takes their values, in
    /// order.
    pub(super) fn data(&self) -> Arc<dyn File> {
        Arc::clone(&self.data.file)
    }

    /// Takes the values of groups whose bytes other threads have written.
    pub(super) fn push_written(&mut self, values: &[Value]) -> Result<(), Error> {
        assert!(self.buffer.is_empty(), "whole groups, in order");
        if values.is_empty() {
            return Ok(());
        }
        self.written += (values.len() * GROUP_LEN) as u64;
        self.push_groups(values)
    }

    /// Takes the values of groups that are written.
    pub(crate) fn push_groups(&mut self, values: &[Value]) -> Result<(), Error> {
        self.builder.push_groups(values);
        match self.builder.ready() {
            Some(part) => write_tree(&self.files, &mut self.tree, self.number, &[part]),
            None => Ok(()),
        }
    }

    /// Takes the blob's next bytes. Only whole pieces go to the disk, so that groups are hashed in one go.
    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        if !self.buffer.is_empty() {
            let room = PIECE_LEN - self.buffer.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.buffer.extend_from_slice(now);
            bytes = later;
            if self.buffer.len() < PIECE_LEN {
                return Ok(());
            }
            self.put_buffer()?;
        }
        let (pieces, rest) = bytes.split_at(bytes.len() / PIECE_LEN * PIECE_LEN);
        pieces.chunks(PIECE_LEN).try_for_each(|piece| self.put(piece))?;
        self.buffer.extend_from_slice(rest);
        Ok(())
    }

    /// Ends the blob and computes its address.
    pub(crate) fn hash(mut self) -> Result<WrittenBlob, Error> {
        self.put_buffer()?;
        let done = self.builder.finish();
        Ok(WrittenBlob {
            name: Name { address: done.address, number: self.number },
            len: done.len,
            files: self.files,
            data: self.data,
            tree: self.tree,
            tree_rest: done.tree,
        })
    }

    fn put_buffer(&mut self) -> Result<(), Error> {
        let mut buffer = std::mem::take(&mut self.buffer);
        self.put(&buffer)?;
        buffer.clear();
        self.buffer = buffer;
        Ok(())
    }

    fn put(&mut self, piece: &[u8]) -> Result<(), Error> {
        self.data.write(piece, self.written)?;
        self.written += piece.len() as u64;
        self.builder.update(piece);
        match self.builder.ready() {
            Some(part) => write_tree(&self.files, &mut self.tree, self.number, &[part]),
            None => Ok(()),
        }
    }
}

impl WrittenBlob {
    /// Puts the blob in place. After an error it is not there.
    pub(crate) fn keep(self, durability: Durability) -> Result<(), Error> {
        let (files, name) = (Arc::clone(&self.files), self.name);
        let placed = self.place(durability);
        if placed.is_err() {
            // If the disk refuses this too, the file stays, and a later listing finds that no record names it.
            let _ = files.remove(&name);
        }
        placed
    }

    fn place(mut self, durability: Durability) -> Result<(), Error> {
        if self.len > WHOLE_LEN {
            write_tree(&self.files, &mut self.tree, self.name.number, &self.tree_rest)?;
        }
        if durability == Durability::Now {
            self.data.sync()?;
        }
        let folder = self.name.folder();
        self.files.disk.make_folder(&folder).map_err(super::failed("make", &folder))?;
        if let Some(tree) = self.tree {
            tree.move_to(&self.name.tree())?;
        }
        self.data.move_to(&self.name.data())?;
        match durability {
            Durability::Now => self.files.sync_folders(&self.name),
            Durability::Later => Ok(()),
        }
    }
}

/// Writes parts of the tree; its file is created with the first part.
fn write_tree(
    files: &Arc<Files>,
    tree: &mut Option<IncomingFile>,
    number: u64,
    parts: &[Part],
) -> Result<(), Error> {
    let file = match tree {
        Some(file) => file,
        None => tree.insert(IncomingFile::create(files, incoming_tree(number))?),
    };
    parts.iter().try_for_each(|part| file.write(&part.bytes, part.offset))
}
