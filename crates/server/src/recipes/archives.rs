//! Archives on their way out and in: the store writes and reads them on threads that may wait, the client's pace is
//! handed on through a channel.

use std::io::{self, Read, Write};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use anabranch_content::{Address, Error, Exported, Import};
use bytes::{Buf, Bytes};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Either, select};
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tonic::{Code, Status, Streaming};

use crate::failure::Failure;
use crate::proto::recipes as proto;
use crate::proto::recipes::export_reply::Part as Sent;
use crate::service::Shared;
use crate::wire;

/// So many pieces of an archive wait between the store and the client.
const WAITING: usize = 4;

fn permit(shared: &Shared) -> Result<OwnedSemaphorePermit, Failure> {
    Arc::clone(&shared.archives).try_acquire_owned().map_err(|_| {
        Failure::new(
            Code::Unavailable,
            "another archive is on its way out of this server, or into it; try again when it is done",
        )
    })
}

/// An archive of addresses, and what it held.
pub(super) fn export(
    shared: &Arc<Shared>,
    addresses: Vec<Address>,
) -> Result<BoxStream<'static, Result<proto::ExportReply, Status>>, Failure> {
    let permit = permit(shared)?;
    let (sender, chunks) = mpsc::channel(WAITING);
    let store = shared.executor.store().clone();
    let work = async move { store.export(&addresses, Sending(sender)).await }.boxed();
    let exporting = Exporting { chunks, work: Some(work), done: None, _permit: permit };
    let replies = stream::unfold(Some(exporting), |exporting| async move {
        let mut exporting = exporting?;
        let (part, more) = match exporting.next().await {
            Ok(chunk) => (Ok(Sent::Chunk(chunk)), Some(exporting)),
            Err(Ok(exported)) => (Ok(Sent::Exported(wire::from_exported(&exported))), None),
            Err(Err(error)) => (Err(Failure::from(error).into()), None),
        };
        Some((part.map(|part| proto::ExportReply { part: Some(part) }), more))
    });
    Ok(replies.boxed())
}

struct Exporting {
    /// Dropped before the work, which may own the store: its thread must not wait for a client that is gone while the
    /// store waits for its threads.
    chunks: mpsc::Receiver<Bytes>,
    /// The store at work, until it is done.
    work: Option<BoxFuture<'static, Result<Exported, Error>>>,
    done: Option<Result<Exported, Error>>,
    _permit: OwnedSemaphorePermit,
}

impl Exporting {
    /// The next piece, or what it came to.
    async fn next(&mut self) -> Result<Bytes, Result<Exported, Error>> {
        std::future::poll_fn(|cx| {
            if let Some(work) = &mut self.work
                && let Poll::Ready(done) = work.poll_unpin(cx)
            {
                self.work = None;
                self.done = Some(done);
            }
            match self.chunks.poll_recv(cx) {
                Poll::Ready(Some(chunk)) => Poll::Ready(Ok(chunk)),
                // The writer goes with the work, so there is a result, or will be.
                Poll::Ready(None) => self.done.take().map_or(Poll::Pending, |done| Poll::Ready(Err(done))),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }
}

/// Writes to a client. A client that has gone is an error, which ends the export.
struct Sending(mpsc::Sender<Bytes>);

impl Write for Sending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let chunk = Bytes::copy_from_slice(bytes);
        self.0.blocking_send(chunk).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Brings in the archive that a client sends.
pub(super) async fn import(
    shared: &Shared,
    mut requests: Streaming<proto::ImportRequest>,
) -> Result<proto::ImportReply, Failure> {
    let _permit = permit(shared)?;
    let (sender, chunks) = mpsc::channel(WAITING);
    let first = requests.next().await.transpose()?.unwrap_or_default();
    let terms = Import { trust_memos: first.trust_memos, label: first.label, ..Import::default() };
    let feed = async move {
        if sender.send(first.chunk).await.is_err() {
            return Ok(());
        }
        while let Some(request) = requests.next().await {
            // The store stops reading where the archive ends, or is none.
            if sender.send(request?.chunk).await.is_err() {
                break;
            }
        }
        Ok::<_, Status>(())
    };
    let work = shared.executor.import(Receiving { chunks, chunk: Bytes::new() }, terms);
    // A store that is done with it does not wait for what else the client might send.
    let imported = match select(pin!(feed), pin!(work)).await {
        Either::Left((fed, work)) => {
            let imported = work.await;
            fed?;
            imported?
        }
        Either::Right((imported, _)) => imported?,
    };
    Ok(wire::from_imported(&imported))
}

/// Reads from a client.
struct Receiving {
    chunks: mpsc::Receiver<Bytes>,
    chunk: Bytes,
}

impl Read for Receiving {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.chunk.is_empty() {
            match self.chunks.blocking_recv() {
                Some(chunk) => self.chunk = chunk,
                None => return Ok(0),
            }
        }
        let len = self.chunk.len().min(into.len());
        self.chunk.copy_to_slice(&mut into[..len]);
        Ok(len)
    }
}
