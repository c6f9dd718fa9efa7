//! How results reach the owner of a run from other threads: pushed one by one, taken all at once.

use std::collections::VecDeque;
use std::task::Waker;

use super::sync::{Mutex, MutexGuard, PoisonError};

/// Many senders, one owner. The lock guards this list alone, never the run's state, and is held for a push or a swap.
///
/// Bounded by what the owner has in flight: each piece of work sends one result, and each future in place has at most
/// one wake-up underway.
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

    /// Delivers a message and wakes the owner. After [`close`](Self::close) it is thrown away.
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

    /// Swaps everything delivered into `into`, which must be empty; its storage is used for what comes next.
    pub(crate) fn take(&self, into: &mut VecDeque<M>) {
        debug_assert!(into.is_empty());
        std::mem::swap(&mut self.lock().messages, into);
    }

    /// Asks to be woken by the next message; `false` when there is one already.
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

    /// Throws away what was delivered and what will be.
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
