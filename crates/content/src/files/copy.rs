//! Copies a file of the file system to a blob, part by part on several threads. Where the file system can share the
//! bytes of two files (a reflink), the parts are only hashed.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use super::lanes::FileParts;
use super::name::incoming;
use super::sink::HashedBlob;
use super::{BlobReader, BlobWriter, Error, Files, Name, PIECE_LEN, failed};
use crate::io::Pool;
use crate::tree::{GROUP_LEN, Value, group_values};
use crate::{File, Wait};

/// A file to copy, and its length when the copy began.
#[derive(Debug)]
pub(crate) struct SourceFile {
    pub(crate) file: std::fs::File,
    pub(crate) len: u64,
}

/// The file to copy has another number of bytes than at the beginning.
#[derive(Debug, thiserror::Error)]
enum ChangedFile {
    #[error(
        "the file changed while it was read, from {before} to {now} bytes; put it once it no longer changes"
    )]
    Length { before: u64, now: u64 },
    #[error("the file has more than the {0} bytes that its length says; put its bytes as a stream")]
    Longer(u64),
}

impl SourceFile {
    /// Fills the buffer.
    pub(crate) fn read(&self, into: &mut [u8], offset: u64) -> Result<(), crate::Error> {
        match File::read_at(&self.file, into, offset, Wait::Yes).map_err(unread)? {
            read if read < into.len() => {
                self.check_end()?;
                // It is as long as before again.
                Err(self.changed(offset + read as u64))
            }
            _ => Ok(()),
        }
    }

    /// An error if the file has another length than at the beginning, or bytes behind it.
    pub(crate) fn check_end(&self) -> Result<(), crate::Error> {
        let len = File::len(&self.file).map_err(unread)?;
        if len != self.len {
            return Err(self.changed(len));
        }
        match File::read_at(&self.file, &mut [0], len, Wait::Yes).map_err(unread)? {
            0 => Ok(()),
            _ => Err(crate::Error::Source(Arc::new(ChangedFile::Longer(len)))),
        }
    }

    fn changed(&self, now: u64) -> crate::Error {
        crate::Error::Source(Arc::new(ChangedFile::Length { before: self.len, now }))
    }
}

fn unread(cause: std::io::Error) -> crate::Error {
    crate::Error::Source(Arc::new(cause))
}

/// Copies parts of a file.
struct Copier {
    files: Arc<Files>,
    source: SourceFile,
    into: Arc<dyn File>,
    into_path: PathBuf,
    /// Whether the bytes are there already: those of the source, as they were.
    is_shared: bool,
}

/// The values of a span's groups, which the tree file takes at a time.
const VALUES_MOST: usize = 1024;

/// Copies a file that has more than one group. `copied` is called with the length of each part that is copied. Dropping
/// the future removes what was written.
pub(crate) async fn copy_file(
    pool: &Arc<Pool>,
    files: &Arc<Files>,
    (number, source): (u64, SourceFile),
    copied: impl Fn(u64),
) -> Result<HashedBlob, Error> {
    let len = source.len;
    let whole = len / GROUP_LEN as u64 * GROUP_LEN as u64;
    assert!(whole > GROUP_LEN as u64, "one group may be the whole blob");
    let beginning = Arc::clone(files);
    let (writing, copier) = pool.run(move || Copier::begin(beginning, number, source)).await??;
    let mut writing = pool.park(Box::new(writing));
    let mut lanes = FileParts::new(pool, copier, 0..whole, Copier::copy);
    let mut values: Vec<Value> = Vec::new();
    while let Some(part) = lanes.next().await? {
        copied((part.len() * GROUP_LEN) as u64);
        values.extend(part);
        if values.len() >= VALUES_MOST {
            let (before, values) = (writing, std::mem::take(&mut values));
            let push = move || {
                let mut writing = before.take();
                writing.push_written(&values).map(|()| writing)
            };
            writing = pool.park(pool.run(push).await??);
        }
    }
    let copier = Arc::clone(lanes.worker());
    let end = move || {
        let mut writing = writing.take();
        writing.push_written(&values)?;
        writing.write(&copier.end(whole..len)?)?;
        writing.hash()
    };
    let written = pool.run(end).await??;
    copied(len - whole);
    Ok(HashedBlob::new(pool, written))
}

impl Copier {
    fn begin(files: Arc<Files>, number: u64, source: SourceFile) -> Result<(BlobWriter, Copier), Error> {
        let writing = BlobWriter::begin(&files, number)?;
        let (into, into_path) = (writing.data(), incoming(number));
        // Most file systems cannot share bytes, and none can share those of another: then they are copied.
        let is_shared = into.share(&source.file).is_ok();
        if !is_shared {
            // A failed share may have left a part of the source, or all of it.
            into.set_len(0).map_err(failed("cut", &into_path))?;
        } else {
            let len = into.len().map_err(failed("measure", &into_path))?;
            if len != source.len {
                return Err(source.changed(len).into());
            }
        }
        Ok((writing, Copier { files, source, into, into_path, is_shared }))
    }

    /// Copies whole groups; returns their values.
    fn copy(&self, part: Range<u64>) -> Result<Vec<Value>, Error> {
        let mut values = Vec::with_capacity((part.end - part.start) as usize / GROUP_LEN);
        let mut buffer = self.files.buffers.take(PIECE_LEN);
        for offset in part.clone().step_by(PIECE_LEN) {
            let piece = &mut buffer[..(part.end - offset).min(PIECE_LEN as u64) as usize];
            self.read(piece, offset)?;
            values.extend(group_values(offset, piece));
            if !self.is_shared {
                self.into.write_at(piece, offset).map_err(failed("write", &self.into_path))?;
            }
        }
        Ok(values)
    }

    /// The bytes behind the last whole group, of a file that is copied otherwise and has not changed its length.
    fn end(&self, rest: Range<u64>) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; (rest.end - rest.start) as usize];
        self.read(&mut bytes, rest.start)?;
        if !self.is_shared {
            self.source.check_end()?;
        }
        Ok(bytes)
    }

    fn read(&self, into: &mut [u8], offset: u64) -> Result<(), Error> {
        if !self.is_shared {
            return Ok(self.source.read(into, offset)?);
        }
        match self.into.read_at(into, offset, Wait::Yes).map_err(failed("read", &self.into_path))? {
            read if read < into.len() => Err(self.source.changed(offset + read as u64).into()),
            _ => Ok(()),
        }
    }
}

/// Reads and verifies all bytes of a blob.
pub(crate) async fn check_blob(
    pool: &Arc<Pool>,
    files: &Arc<Files>,
    name: Name,
    len: u64,
) -> Result<(), Error> {
    let files = Arc::clone(files);
    let reading = pool.run(move || BlobReader::open(&files, name, len)).await??;
    let mut lanes = FileParts::new(pool, reading, 0..len, |reading, part| {
        let pieces = part.clone().step_by(PIECE_LEN);
        pieces.map(|start| start..part.end.min(start + PIECE_LEN as u64)).try_for_each(|piece| {
            reading.read(piece)?;
            Ok(())
        })
    });
    while lanes.next().await?.is_some() {}
    Ok(())
}
