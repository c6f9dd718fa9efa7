//! Streams: bytes from readers into calls, and values into files and pipes.

use std::fs::File;
use std::future::Future;
use std::io::{self, Read, Seek as _, Write};
use std::path::{Path, PathBuf};

use bytes::{Bytes, BytesMut};
use futures_util::future::join;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use tokio::sync::mpsc;

use super::place::check_output;
use crate::failure::Failure;

/// The bytes that are read at a time. The store writes pieces of this size without copying them together.
const CHUNK: usize = 512 << 10;

/// The number of chunks that are read ahead of the call.
const AHEAD: usize = 4;

/// Passes the bytes of a reader to a call. The reads block this thread, which is the command's own.
pub(super) async fn into<T, E, Call>(
    mut from: impl Read,
    call: impl FnOnce(BoxStream<'static, io::Result<Bytes>>) -> Call,
) -> Result<T, Failure>
where
    Call: Future<Output = Result<T, E>>,
    Failure: From<E>,
{
    let (send, receive) = mpsc::channel(AHEAD);
    let bytes = stream::unfold(receive, |mut receive| async move {
        let chunk = receive.recv().await?;
        Some((chunk, receive))
    });
    let feed = async move {
        loop {
            let chunk = chunk(&mut from);
            let (ended, failed) = (matches!(&chunk, Ok(chunk) if chunk.is_empty()), chunk.is_err());
            if ended || send.send(chunk).await.is_err() || failed {
                return;
            }
        }
    };
    let (result, ()) = join(call(bytes.boxed()), feed).await;
    Ok(result?)
}

/// The next bytes; empty at the end.
pub(super) fn chunk(from: &mut impl Read) -> io::Result<Bytes> {
    let mut chunk = BytesMut::zeroed(CHUNK);
    let mut len = 0;
    while len < CHUNK {
        match from.read(&mut chunk[len..]) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    chunk.truncate(len);
    Ok(chunk.freeze())
}

/// The destination of bytes.
pub(super) enum Sink {
    /// A file that gets its name once it is complete.
    File {
        file: File,
        unfinished: PartialFile,
        path: PathBuf,
    },
    /// A device or a pipe, which receives bytes immediately.
    Device {
        file: File,
        path: PathBuf,
    },
    Stdout,
}

/// A file in progress. An unnamed file vanishes however this process ends. A named one is removed on drop unless it is
/// finished.
pub(super) struct PartialFile {
    beside: PathBuf,
    is_named: bool,
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if self.is_named {
            // If it cannot be removed, its name shows its purpose.
            let _ = std::fs::remove_file(&self.beside);
        }
    }
}

impl Sink {
    /// Opens the destination, which must not be in the store; `-` and `None` are stdout.
    pub(super) fn to(path: Option<&Path>, store: &Path) -> Result<Sink, Failure> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else { return Ok(Sink::Stdout) };
        let unwritten = |error| unwritten(path, &error);
        let path = &link_end(path).map_err(unwritten)?;
        check_output(path, store)?;
        let path = match std::fs::metadata(path) {
            Ok(there) if there.is_dir() => {
                return Err(Failure::of(format!("{} is a folder; name a file", path.display())));
            }
            Ok(there) if there.is_file() => path.to_owned(),
            Ok(_) => {
                let file = File::options().write(true).open(path).map_err(unwritten)?;
                return Ok(Sink::Device { file, path: path.to_owned() });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
            Err(error) => return Err(unwritten(error)),
        };
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.partial", std::process::id()));
        let beside = path.with_file_name(name);
        let (file, is_named) = match nameless(&path) {
            Some(file) => (file, false),
            None => (File::create(&beside).map_err(unwritten)?, true),
        };
        Ok(Sink::File { file, unfinished: PartialFile { beside, is_named }, path })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Sink::File { file, path, .. } | Sink::Device { file, path } => {
                file.write_all(bytes).map_err(|error| unwritten(path, &error))
            }
            Sink::Stdout => io::stdout().lock().write_all(bytes).map_err(|error| unsaid(&error)),
        }
    }

    /// Whether the bytes can be discarded and written again.
    pub(super) fn is_file(&self) -> bool {
        matches!(self, Sink::File { .. })
    }

    /// A writer to the same destination. A file is truncated; bytes that went to a device or to stdout stay.
    pub(super) fn rewritten(&self) -> Result<Box<dyn Write + Send>, Failure> {
        match self {
            Sink::File { file, path, .. } => emptied(file).map_err(|error| unwritten(path, &error)),
            Sink::Device { file, path } => {
                Ok(Box::new(file.try_clone().map_err(|error| unwritten(path, &error))?))
            }
            Sink::Stdout => Ok(Box::new(io::stdout())),
        }
    }

    /// Finishes the output after all bytes are written.
    pub(super) fn finish(self) -> Result<(), Failure> {
        match self {
            Sink::File { file, mut unfinished, path } => {
                let finished = unfinished.finish(&file, &path);
                finished.map_err(|error| unwritten(&path, &error))
            }
            Sink::Device { .. } => Ok(()),
            Sink::Stdout => io::stdout().lock().flush().map_err(|error| unsaid(&error)),
        }
    }
}

/// The target of a link, which need not exist. Writing a new file in place of the link would not change its target.
fn link_end(path: &Path) -> io::Result<PathBuf> {
    let mut end = path.to_owned();
    for _ in 0..LINKS_MOST {
        match std::fs::read_link(&end) {
            Ok(next) => end = end.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return Ok(end),
        }
    }
    Err(io::Error::other("too many links lead to each other"))
}

/// The most links to follow, as in the kernel.
const LINKS_MOST: usize = 40;

impl PartialFile {
    /// Durably gives the file its name.
    fn finish(&mut self, file: &File, path: &Path) -> io::Result<()> {
        file.sync_all()?;
        if !self.is_named {
            use rustix::fs::{AtFlags, CWD, linkat};
            let open = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file));
            linkat(CWD, open, CWD, &self.beside, AtFlags::SYMLINK_FOLLOW)?;
            self.is_named = true;
        }
        std::fs::rename(&self.beside, path)?;
        self.is_named = false;
        File::open(folder_of(path))?.sync_all()
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

/// An unnamed file in the folder of this path, if the system supports that.
#[cfg(target_os = "linux")]
fn nameless(beside: &Path) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = i32::try_from(rustix::fs::OFlags::TMPFILE.bits()).ok()?;
    let file = File::options().read(true).write(true).custom_flags(flags).open(folder_of(beside)).ok()?;
    // The file gets its name through this folder.
    Path::new("/proc/self/fd").exists().then_some(file)
}

#[cfg(not(target_os = "linux"))]
fn nameless(_: &Path) -> Option<File> {
    None
}

/// Truncates a file, and returns a writer to it.
pub(super) fn emptied(file: &File) -> io::Result<Box<dyn Write + Send>> {
    file.set_len(0)?;
    Ok(Box::new(rewound(file)?))
}

/// The same file, at its beginning.
pub(super) fn rewound(file: &File) -> io::Result<File> {
    let mut file = file.try_clone()?;
    file.rewind()?;
    Ok(file)
}

/// An unnamed file for temporary bytes, in a folder or, if it does not exist, in the nearest existing one above it.
pub(super) fn spool_file(near: &Path) -> io::Result<File> {
    let near = std::path::absolute(near)?;
    let folder = near.ancestors().find(|folder| folder.is_dir());
    if let Some(file) = folder.and_then(|folder| nameless(&folder.join("spool"))) {
        return Ok(file);
    }
    let path = std::env::temp_dir().join(format!("anabranch-{}.spool", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

/// The failure of a write. A broken pipe means that the reader has closed it.
pub(super) fn unwritten(path: &Path, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::OutputClosed,
        _ => Failure::of(format!("cannot write {}: {error}", path.display())),
    }
}

fn unsaid(error: &io::Error) -> Failure {
    unwritten(Path::new("to stdout"), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_once_it_is_whole_and_nothing_before() {
        let folder = std::env::temp_dir().join(format!("anabranch-sink-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let names = || std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
        let (path, store) = (folder.join("value"), folder.join("store"));

        let mut killed = Sink::to(Some(&path), &store).unwrap();
        killed.write(b"half of").unwrap();
        // As if the process had been killed: nothing is dropped.
        std::mem::forget(killed);
        assert_eq!(names().next(), None);

        for text in ["first", "second"] {
            let mut sink = Sink::to(Some(&path), &store).unwrap();
            sink.write(text.as_bytes()).unwrap();
            sink.finish().unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
            assert_eq!(names().count(), 1);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
