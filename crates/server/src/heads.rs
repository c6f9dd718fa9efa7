//! Watches the heads of HTTP/1 requests: a client that begins a head must complete it in time. One timer per connection
//! is enough for that, where hyper would set one per request.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use anabranch_engine::clock::Clock;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The head that a client is sending.
pub(crate) struct HeadWatch {
    clock: Arc<dyn Clock>,
    epoch: Instant,
    /// The nanoseconds from `epoch` until its first bytes arrived; 0 while there is none, [`NEW`] before the first one.
    began: AtomicU64,
}

const NEW: u64 = u64::MAX;

impl HeadWatch {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Arc<HeadWatch> {
        let epoch = clock.now();
        Arc::new(HeadWatch { clock, epoch, began: AtomicU64::new(NEW) })
    }

    /// The client has sent bytes.
    fn received(&self) {
        if [0, NEW].contains(&self.began.load(Ordering::Relaxed)) {
            let elapsed = self.clock.now().saturating_duration_since(self.epoch);
            self.began.store((elapsed.as_nanos() as u64).max(1), Ordering::Relaxed);
        }
    }

    /// Whether the client has sent nothing yet.
    pub(crate) fn is_new(&self) -> bool {
        self.began.load(Ordering::Relaxed) == NEW
    }

    /// Whether the client has sent a part of a head.
    pub(crate) fn has_begun(&self) -> bool {
        ![0, NEW].contains(&self.began.load(Ordering::Relaxed))
    }

    /// The bytes so far were a whole head, or belong to its body.
    pub(crate) fn complete(&self) {
        self.began.store(0, Ordering::Relaxed);
    }

    /// Waits until a head takes longer than `timeout`, up to a quarter longer. Bytes that arrive while `is_busy` belong to
    /// a call.
    pub(crate) async fn late(&self, timeout: Duration, is_busy: impl Fn() -> bool) {
        loop {
            self.clock.sleep_until(self.clock.now() + timeout / 4).await;
            let began = match self.began.load(Ordering::Relaxed) {
                0 | NEW => continue,
                nanos => self.epoch + Duration::from_nanos(nanos),
            };
            if !is_busy() && self.clock.now().saturating_duration_since(began) >= timeout {
                return;
            }
        }
    }
}

/// A stream that tells its watch when bytes arrive.
pub(crate) struct WatchedStream<S> {
    inner: S,
    watch: Arc<HeadWatch>,
}

impl<S> WatchedStream<S> {
    pub(crate) fn new(inner: S, watch: Arc<HeadWatch>) -> WatchedStream<S> {
        WatchedStream { inner, watch }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.watch.received();
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WatchedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}
