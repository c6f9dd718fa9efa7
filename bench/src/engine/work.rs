//! What the nodes do, the same for every contender.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// What every node of a graph is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An operation or two on a number.
    Inline,
    /// The same, after having been pending once.
    Async,
    /// A job of about [`CPU_COST`].
    Cpu,
    /// A job that does next to nothing: the way to a pool and back is what it costs.
    Empty,
}

pub(crate) const CPU_COST: Duration = Duration::from_nanos(200);

impl Kind {
    /// The value of a node that starts from `sum`.
    #[inline]
    pub(crate) fn value(self, sum: u64) -> u64 {
        match self {
            Kind::Inline | Kind::Async | Kind::Empty => mix(sum),
            Kind::Cpu => spin(sum),
        }
    }

    /// The same as a future, for contenders whose every node is one.
    pub(crate) async fn carry_out(self, sum: u64) -> u64 {
        match self {
            Kind::Inline | Kind::Cpu | Kind::Empty => self.value(sum),
            Kind::Async => Later::new(self.value(sum)).await,
        }
    }
}

#[inline]
fn mix(x: u64) -> u64 {
    (x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// Each round waits for the one before, so that the time is the rounds' latency.
#[inline(never)]
fn spin(sum: u64) -> u64 {
    const ROUNDS: u32 = 140;
    (0..ROUNDS).fold(sum, |x, _| mix(x))
}

/// Pending once, having woken itself; then ready.
pub(crate) struct Later<T> {
    value: T,
    yielded: bool,
}

impl<T> Later<T> {
    pub(crate) fn new(value: T) -> Later<T> {
        Later { value, yielded: false }
    }
}

impl<T: Copy + Unpin> Future for Later<T> {
    type Output = T;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        if self.yielded {
            return Poll::Ready(self.value);
        }
        self.yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
