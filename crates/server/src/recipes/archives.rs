//! Export and import of archives. The store writes and reads them on blocking threads. A channel passes on the client's
//! backpressure.

use std::io::{self, Read, Write};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use anabranch_content::{Address, Error, ExportReport, Import};
use anabranch_text::{duration, size};
use bytes::{Buf, Bytes};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Either, select};
use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::task::JoinSet;
use tonic::{Code, Status, Streaming};

use crate::failure::Failure;
use crate::incoming::{SLOWEST_RATE, slowest};
use crate::proto::recipes as proto;
use crate::proto::recipes::export_reply::Part as ExportPart;
use crate::service::Shared;
use crate::wire;

/// The number of archive pieces that wait between the store and the client.
const WAITING: usize = 4;

fn permit(shared: &Shared) -> Result<OwnedSemaphorePermit, Failure> {
    Arc::clone(&shared.archives).try_acquire_owned().map_err(|_| {
        Failure::new(
            Code::Unavailable,
            "the server exports or imports one archive at a time, and another one is under way; try again later",
        )
    })
}

/// An archive of addresses, followed by its counts.
pub(super) fn export(
    shared: &Arc<Shared>,
    addresses: Vec<Address>,
) -> Result<BoxStream<'static, Result<proto::ExportReply, Status>>, Failure> {
    let permit = permit(shared)?;
    let (sender, chunks) = mpsc::channel(WAITING);
    let store = shared.executor.store().clone();
    let work = async move { store.export(&addresses, ChannelWriter(sender)).await }.boxed();
    let exporting = ExportTask { chunks, work: Some(work), done: None, _permit: permit };
    let (replies, sent) = mpsc::channel(1);
    let mut task = JoinSet::new();
    // It has its own task, because a response that its client does not read is not polled.
    task.spawn(exporting.send_to(replies, Arc::clone(shared)));
    let sent = stream::unfold((sent, task), |(mut sent, task)| async move {
        let reply = sent.recv().await?;
        Some((reply, (sent, task)))
    });
    Ok(sent.boxed())
}

struct ExportTask {
    /// Dropped before `work`, which may own the store. Otherwise a store thread could wait for a disconnected client
    /// while the store waits for that thread.
    chunks: mpsc::Receiver<Bytes>,
    /// The export, until it is done.
    work: Option<BoxFuture<'static, Result<ExportReport, Error>>>,
    done: Option<Result<ExportReport, Error>>,
    _permit: OwnedSemaphorePermit,
}

impl ExportTask {
    /// Sends all pieces, then the counts. If the client stops reading for too long, or reads too slowly, the export is
    /// cancelled, so that others have their turn.
    async fn send_to(
        mut self,
        replies: mpsc::Sender<Result<proto::ExportReply, Status>>,
        shared: Arc<Shared>,
    ) {
        let timeout = shared.settings.stall_timeout;
        let (mut bytes, mut waited) = (0, Duration::ZERO);
        let mut is_last = false;
        while !is_last {
            let part = match self.next().await {
                Ok(chunk) => {
                    bytes += chunk.len() as u64;
                    Ok(ExportPart::Chunk(chunk))
                }
                Err(ended) => {
                    is_last = true;
                    let sum = |exported| ExportPart::Exported(wire::from_exported(&exported));
                    ended.map(sum).map_err(|error| Failure::from(error).into())
                }
            };
            let reply = part.map(|part| proto::ExportReply { part: Some(part) });
            let (began, left) = (shared.clock.now(), slowest(timeout, bytes).saturating_sub(waited));
            let is_stalled = tokio::select! {
                biased;
                sent = replies.send(reply) => match sent {
                    Ok(()) => false,
                    Err(_) => return,
                },
                () = shared.clock.sleep_until(began + timeout.min(left)) => true,
            };
            if is_stalled {
                drop(self);
                // A client that never reads does not receive this.
                let _ = replies.send(Err(unread(timeout, left))).await;
                return;
            }
            waited += shared.clock.now().saturating_duration_since(began);
        }
    }

    /// The next piece, or the result of the export.
    async fn next(&mut self) -> Result<Bytes, Result<ExportReport, Error>> {
        std::future::poll_fn(|cx| {
            if let Some(work) = &mut self.work
                && let Poll::Ready(done) = work.poll_unpin(cx)
            {
                self.work = None;
                self.done = Some(done);
            }
            match self.chunks.poll_recv(cx) {
                Poll::Ready(Some(chunk)) => Poll::Ready(Ok(chunk)),
                // The writer is dropped with the work, so there is a result, or there will be one.
                Poll::Ready(None) => self.done.take().map_or(Poll::Pending, |done| Poll::Ready(Err(done))),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }
}

/// The failure of an export whose client took the whole `timeout` for one piece, or the time that was left for all.
fn unread(timeout: Duration, left: Duration) -> Status {
    let message = match left < timeout {
        true => format!("the client read less than {} of the archive per second", size::format(SLOWEST_RATE)),
        false => format!("the archive was not read for {}", duration::format(timeout)),
    };
    Status::deadline_exceeded(format!("{message}, so it was given up"))
}

/// Writes to a client. If the client disconnects, a write fails, which ends the export.
struct ChannelWriter(mpsc::Sender<Bytes>);

impl Write for ChannelWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let chunk = Bytes::copy_from_slice(bytes);
        self.0.blocking_send(chunk).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Imports the archive that a client sends.
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
            // The store stops reading at the end of the archive, or if the archive is malformed.
            if sender.send(request?.chunk).await.is_err() {
                break;
            }
        }
        Ok::<_, Status>(())
    };
    let work = shared.executor.import(ChannelReader { chunks, chunk: Bytes::new() }, terms);
    // Once the store is done, the rest of the client's stream is ignored.
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
struct ChannelReader {
    chunks: mpsc::Receiver<Bytes>,
    chunk: Bytes,
}

impl Read for ChannelReader {
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

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use anabranch_engine::clock::{Clock, Sleep, SystemClock};
    use anabranch_recipe::{Executor, Functions};
    use tokio::sync::watch;

    use super::*;
    use crate::{Service, Settings};

    /// A clock that stands still until the test moves it.
    struct StandingClock(watch::Sender<Instant>);

    impl Clock for StandingClock {
        fn now(&self) -> Instant {
            *self.0.borrow()
        }

        fn sleep_until(&self, at: Instant) -> Sleep {
            let mut now = self.0.subscribe();
            Box::pin(async move { drop(now.wait_for(|now| *now >= at).await) })
        }
    }

    /// It is never too slow for long, but would keep others from archives for days.
    #[tokio::test]
    async fn an_archive_that_is_read_in_driblets_is_given_up() {
        let clock = Arc::new(StandingClock(watch::Sender::new(SystemClock.now())));
        let executor = Executor::in_memory(Functions::builtin()).unwrap();
        let shared =
            Service::with_clock(executor, Settings::default(), Arc::clone(&clock) as Arc<dyn Clock>).shared;
        let (sender, chunks) = mpsc::channel(1000);
        for _ in 0..1000 {
            sender.try_send(Bytes::from_static(&[7; 1024])).unwrap();
        }
        let exporting = ExportTask { chunks, work: None, done: None, _permit: permit(&shared).unwrap() };
        let (replies, mut sent) = mpsc::channel(1);
        let mut sending = pin!(exporting.send_to(replies, Arc::clone(&shared)));
        let mut read = 0;
        while (&mut sending).now_or_never().is_none() && shared.archives.available_permits() == 0 {
            clock.0.send_modify(|now| *now += Duration::from_secs(19));
            assert!(sent.recv().await.unwrap().is_ok());
            read += 1;
            assert!(read < 20, "six minutes are enough");
        }
        sent.recv().await.unwrap().unwrap();
        sending.await;
        let failed = sent.recv().await.unwrap().unwrap_err();
        assert_eq!(failed.code(), Code::DeadlineExceeded);
        assert!(failed.message().contains("less than 16 KiB of the archive per second"), "{failed}");
    }
}
