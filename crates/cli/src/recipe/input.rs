//! The bytes that a command reads: a file, or a pipe, whose bytes are kept so that they can be read again.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_recipe::NamedPath;
use bytes::Bytes;

use super::folder::FileToRead;
use super::pour;
use super::progress::{Meter, MeteredIo};
use crate::failure::Failure;

/// Bytes that can be read from their beginning any number of times.
pub(super) enum Input {
    File {
        path: PathBuf,
        len: u64,
    },
    /// A file of a folder.
    Watched(FileToRead),
    Memory(Bytes),
    /// A file that stays open: one that a recipe file names, or an unnamed one with the bytes of a pipe.
    Opened {
        file: Arc<File>,
        len: u64,
    },
}

/// The most bytes of a pipe that are kept in memory. More are kept in an unnamed file.
const MEMORY_MOST: usize = 1 << 20;

impl Input {
    /// Opens an input by its path; `-` is stdin. A pipe is read to its end before any store is opened, because its
    /// writer may need the same store. `near` is a folder, which need not exist yet, on the disk that the bytes go to.
    pub(super) fn open(path: &Path, near: &Path) -> Result<Input, Failure> {
        if path == Path::new("-") {
            return spool(io::stdin().lock(), near).map_err(|error| unread(Path::new("stdin"), &error));
        }
        let found = std::fs::metadata(path).map_err(|error| unread(path, &error))?;
        if found.is_dir() {
            return Err(Failure::of(format!(
                "{} is a folder, which belongs to `recipe put`",
                path.display()
            )));
        }
        if found.is_file() {
            return Ok(Input::File { path: path.to_owned(), len: found.len() });
        }
        let pipe = File::open(path).map_err(|error| unread(path, &error))?;
        spool(pipe, near).map_err(|error| unread(path, &error))
    }

    /// The file that a recipe file names.
    pub(super) fn named(named: &NamedPath) -> Result<Input, Failure> {
        let failed = |error| unread(named.path(), &error);
        let file = named.open().map_err(failed)?;
        let found = file.metadata().map_err(failed)?;
        match found.is_file() {
            true => Ok(Input::Opened { file: Arc::new(file), len: found.len() }),
            false => Err(Failure::of(format!("{} is no longer a file", named.path().display()))),
        }
    }

    /// The number of bytes. A file can still grow.
    pub(super) fn len(&self) -> u64 {
        match self {
            Input::File { len, .. } | Input::Opened { len, .. } => *len,
            Input::Memory(bytes) => bytes.len() as u64,
            Input::Watched(_) => 0,
        }
    }

    /// Reads all bytes from the beginning, and shows the progress on a terminal.
    pub(super) fn reader(&self) -> Result<MeteredIo<Box<dyn Read + Send>>, Failure> {
        let meter = match self {
            // The whole folder has one meter.
            Input::Watched(_) => Meter::silent(),
            _ => Meter::new("reading", Some(self.len())),
        };
        Ok(MeteredIo { inner: self.bytes()?, meter })
    }

    fn bytes(&self) -> Result<Box<dyn Read + Send>, Failure> {
        match self {
            Input::File { path, .. } => Ok(Box::new(File::open(path).map_err(|error| unread(path, &error))?)),
            Input::Watched(file) => file.reader().map_err(|error| unread(file.path(), &error)),
            Input::Memory(bytes) => Ok(Box::new(io::Cursor::new(bytes.clone()))),
            Input::Opened { file, .. } => Ok(Box::new(OpenedReader { file: Arc::clone(file), at: 0 })),
        }
    }
}

struct OpenedReader {
    file: Arc<File>,
    at: u64,
}

impl Read for OpenedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.file.read_at(buffer, self.at)?;
        self.at += len as u64;
        Ok(len)
    }
}

fn spool(from: impl Read, near: &Path) -> io::Result<Input> {
    let mut from = MeteredIo { inner: from, meter: Meter::new("receiving", None) };
    let mut start = Vec::new();
    from.by_ref().take(MEMORY_MOST as u64).read_to_end(&mut start)?;
    if start.len() < MEMORY_MOST {
        return Ok(Input::Memory(start.into()));
    }
    let mut file = pour::spool_file(near)?;
    file.write_all(&start)?;
    let len = start.len() as u64 + io::copy(&mut from, &mut file)?;
    Ok(Input::Opened { file: Arc::new(file), len })
}

pub(super) fn unread(path: &Path, error: &io::Error) -> Failure {
    Failure::of(format!("cannot read {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spool_is_read_again_from_its_beginning() {
        let near = std::env::temp_dir().join("anabranch-no-such-folder");
        for len in [0, 1, MEMORY_MOST - 1, MEMORY_MOST, 3 * MEMORY_MOST + 7] {
            let given: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            let input = spool(&given[..], &near).unwrap();
            assert_eq!(input.len(), len as u64);
            for _ in 0..2 {
                let mut read = Vec::new();
                input.reader().unwrap().read_to_end(&mut read).unwrap();
                assert!(read == given, "{len}");
            }
        }
    }
}
