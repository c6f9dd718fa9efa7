//! Streams: bytes from readers into calls, and values into files and pipes.

use std::fs::File;
use std::future::Future;
use std::io::{self, Read, Seek as _, Write};
use std::path::{Path, PathBuf};

use bytes::{Bytes, BytesMut};
use futures_util::future::join;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use tokio::sync::mpsc;

use crate::failure::Failure;

/// Read at a time: the store writes such pieces as they are.
const CHUNK: usize = 512 << 10;

/// So many chunks are read ahead of the call.
const AHEAD: usize = 4;

/// Hands a reader's bytes to a call. The reads wait on this thread, which is the command's own.
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

/// The next bytes; none at the end.
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

/// Where bytes go.
pub(super) enum Sink {
    /// A file that is there under its name once it is whole.
    File {
        file: File,
        unfinished: Unfinished,
        path: PathBuf,
    },
    /// A device or a pipe, which takes bytes as they come.
    Device {
        file: File,
        path: PathBuf,
    },
    Stdout,
}

/// A file under way. Without a name nothing is left of it however this process ends; one with a name is removed unless
/// it is finished.
pub(super) struct Unfinished {
    beside: PathBuf,
    is_named: bool,
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if self.is_named {
            // What cannot be removed is told by its name.
            let _ = std::fs::remove_file(&self.beside);
        }
    }
}

impl Sink {
    /// Where a value goes: `-` and nothing are stdout.
    pub(super) fn to(path: Option<&Path>) -> Result<Sink, Failure> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else { return Ok(Sink::Stdout) };
        let unwritten = |error| unwritten(path, &error);
        let path = &link_end(path).map_err(unwritten)?;
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
        Ok(Sink::File { file, unfinished: Unfinished { beside, is_named }, path })
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Sink::File { file, path, .. } | Sink::Device { file, path } => {
                file.write_all(bytes).map_err(|error| unwritten(path, &error))
            }
            Sink::Stdout => io::stdout().lock().write_all(bytes).map_err(|error| unsaid(&error)),
        }
    }

    /// Whether what was written can be taken back and written again.
    pub(super) fn is_file(&self) -> bool {
        matches!(self, Sink::File { .. })
    }

    /// A writer to the same place. A file is empty again; what went to a device or to stdout stays.
    pub(super) fn rewritten(&self) -> Result<Box<dyn Write + Send>, Failure> {
        match self {
            Sink::File { file, path, .. } => emptied(file).map_err(|error| unwritten(path, &error)),
            Sink::Device { file, path } => {
                Ok(Box::new(file.try_clone().map_err(|error| unwritten(path, &error))?))
            }
            Sink::Stdout => Ok(Box::new(io::stdout())),
        }
    }

    /// Everything was written.
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

/// The path that a link leads to, though nothing may be there: another file in the place of the link would leave what it
/// leads to as it was.
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

/// As many links as the system itself follows.
const LINKS_MOST: usize = 40;

impl Unfinished {
    /// Gives the file its name, durably.
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

/// A file without a name in the folder of this one, where the system has such a thing.
#[cfg(target_os = "linux")]
fn nameless(beside: &Path) -> Option<File> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = i32::try_from(rustix::fs::OFlags::TMPFILE.bits()).ok()?;
    let file = File::options().read(true).write(true).custom_flags(flags).open(folder_of(beside)).ok()?;
    // It gets its name through there.
    Path::new("/proc/self/fd").exists().then_some(file)
}

#[cfg(not(target_os = "linux"))]
fn nameless(_: &Path) -> Option<File> {
    None
}

/// A writer to a file that is empty again.
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

/// A file without a name for bytes on their way, in a folder or, while that is not there, in the nearest one above it.
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

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::Unheard,
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
        let path = folder.join("value");

        let mut killed = Sink::to(Some(&path)).unwrap();
        killed.write(b"half of").unwrap();
        // As if the process had ended: nothing is dropped.
        std::mem::forget(killed);
        assert_eq!(names().next(), None);

        for text in ["first", "second"] {
            let mut sink = Sink::to(Some(&path)).unwrap();
            sink.write(text.as_bytes()).unwrap();
            sink.finish().unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
            assert_eq!(names().count(), 1);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
