//! The mailbox of a run: other threads push messages one by one, the run takes all of them at once.

use std::collections::VecDeque;
use std::task::Waker;

use super::sync::{Mutex, MutexGuard, PoisonError};

/// A queue with many senders and one owner. Its lock guards the queue only, and is held for a push or a swap.
///
/// The number of nodes in flight bounds the queue: each sends one result, and a future that the run polls has at most
/// one wake-up in the queue.
pub(crate) struct Mailbox<M> {
    inner: Mutex<Inner<M>>,
}

struct Inner<M> {
    messages: VecDeque<M>,
    owner: Option<Waker>,
    closed: bool,
}

impl<M> Mailbox<M> {
    pub(crate) fn new() -> Mailbox<M> {
        Mailbox { inner: Mutex::new(Inner { messages: VecDeque::new(), owner: None, closed: false }) }
    }

    /// Delivers a message and wakes the owner. After [`close`](Self::close) the message is dropped.
    pub(crate) fn push(&self, message: M) {
        let mut inner = self.lock();
        if inner.closed {
            drop(inner);
            drop(message);
            return;
        }
        inner.messages.push_back(message);
        let owner = inner.owner.take();
        drop(inner);
        if let Some(owner) = owner {
            owner.wake();
        }
    }

    /// Swaps the messages into `into`, which must be empty. Its storage is used for the next messages.
    pub(crate) fn take(&self, into: &mut VecDeque<M>) {
        debug_assert!(into.is_empty());
        std::mem::swap(&mut self.lock().messages, into);
    }

    /// Has `owner` woken by the next message. Returns `false` if there is a message already.
    pub(crate) fn wait(&self, owner: &Waker) -> bool {
        let mut inner = self.lock();
        if !inner.messages.is_empty() {
            return false;
        }
        match &mut inner.owner {
            Some(known) => known.clone_from(owner),
            none => *none = Some(owner.clone()),
        }
        true
    }

    /// Drops all messages, present and future.
    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        let leftover = (std::mem::take(&mut inner.messages), inner.owner.take());
        drop(inner);
        drop(leftover);
    }

    fn lock(&self) -> MutexGuard<'_, Inner<M>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
