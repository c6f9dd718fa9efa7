//! Who is told what happens in a store.

use super::{Event, Listener};

/// Tells events to the store's listener.
#[derive(Default)]
pub(crate) struct Reporter {
    listener: Option<Listener>,
}

impl Reporter {
    pub(crate) fn new(listener: Option<Listener>) -> Reporter {
        Reporter { listener }
    }

    pub(crate) fn tell(&self, event: &Event) {
        if let Some(listener) = &self.listener {
            listener(event);
        }
    }
}
