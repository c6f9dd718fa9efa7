//! From files and pipes into calls, and from values into files and pipes.

use std::fs::File;
use std::future::Future;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use bytes::{Bytes, BytesMut};
use futures_util::future::join;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use tokio::sync::mpsc;

use crate::failure::Failure;

/// Read at a time.
const CHUNK: usize = 256 << 10;

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
fn chunk(from: &mut impl Read) -> io::Result<Bytes> {
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

/// The file to read from; `-` is stdin.
pub(super) fn open(path: &Path) -> Result<Box<dyn Read + Send>, Failure> {
    if path == Path::new("-") {
        return Ok(Box::new(io::stdin()));
    }
    let failed = |error| Failure::of(format!("cannot read {}: {error}", path.display()));
    let file = File::open(path).map_err(failed)?;
    match file.metadata().map_err(failed)?.is_dir() {
        true => Err(Failure::of(format!("{} is a folder; name files", path.display()))),
        false => Ok(Box::new(file)),
    }
}

/// A file that is there under its name once it is whole, or stdout.
pub(super) enum Sink {
    File { file: File, partial: Partial, path: PathBuf },
    Stdout,
}

/// A file under way, removed unless it is kept.
pub(super) struct Partial(Option<PathBuf>);

impl Drop for Partial {
    fn drop(&mut self) {
        if let Some(path) = self.0.take() {
            // What cannot be removed is told by its name.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Sink {
    /// Where a value goes: `-` and nothing are stdout.
    pub(super) fn to(path: Option<&Path>) -> Result<Sink, Failure> {
        match path {
            None => Ok(Sink::Stdout),
            Some(path) if path == Path::new("-") => Ok(Sink::Stdout),
            Some(path) => {
                let mut name = path.file_name().unwrap_or_default().to_owned();
                name.push(format!(".{}.partial", std::process::id()));
                let beside = path.with_file_name(name);
                let file = File::create(&beside).map_err(|error| unwritten(path, &error))?;
                Ok(Sink::File { file, partial: Partial(Some(beside)), path: path.to_owned() })
            }
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Sink::File { file, path, .. } => file.write_all(bytes).map_err(|error| unwritten(path, &error)),
            Sink::Stdout => stdout(|stdout| stdout.write_all(bytes)),
        }
    }

    /// Everything was written.
    pub(super) fn finish(self) -> Result<(), Failure> {
        match self {
            Sink::File { mut partial, path, file } => {
                drop(file);
                let beside = partial.0.take().expect("it is taken here alone");
                std::fs::rename(&beside, &path).map_err(|error| {
                    partial.0 = Some(beside);
                    unwritten(&path, &error)
                })
            }
            Sink::Stdout => stdout(Write::flush),
        }
    }
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    Failure::of(format!("cannot write {}: {error}", path.display()))
}

fn stdout(act: impl FnOnce(&mut io::StdoutLock<'static>) -> io::Result<()>) -> Result<(), Failure> {
    act(&mut io::stdout().lock()).map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::Unheard,
        _ => Failure::of(format!("cannot write to stdout: {error}")),
    })
}
