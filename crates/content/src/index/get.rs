//! Looks keys up: in memory, then in the runs, newest first.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use super::run::LastBlock;
use super::table::Change;
use super::{Error, Generation, Index, Key, State};
use crate::Wait;

/// A key's value, and the generation of the runs that were looked through.
pub(crate) type NotedValue = (Option<Box<[u8]>>, Generation);

thread_local! {
    /// The buffers of this thread's lookups of single keys: 5 KiB that need not be allocated and cleared each time.
    static NEAR: RefCell<LastBlock> = RefCell::default();
}

/// The index for several lookups. It sees the changes that are applied later only until the recent table is frozen, and
/// keeps replaced tables and runs: it is for short use.
pub(crate) struct View(Arc<State>);

impl View {
    /// The key's value. With [`Wait::No`] an answer that is not in memory is [`Error::WouldBlock`].
    pub(crate) fn get(&self, key: &Key, wait: Wait) -> Result<Option<Box<[u8]>>, Error> {
        self.0.find(key, wait)
    }

    /// The value of a key that had none when these runs were looked through. They are not looked through again.
    pub(crate) fn get_since(
        &self,
        key: &Key,
        absent: Generation,
        wait: Wait,
    ) -> Result<Option<Box<[u8]>>, Error> {
        match self.0.generation == absent {
            // A change since then is still in memory.
            true => Ok(self.0.in_memory(key).flatten()),
            false => self.0.find(key, wait),
        }
    }
}

impl fmt::Debug for View {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("View").finish_non_exhaustive()
    }
}

impl Index {
    /// The index as it is now.
    pub(crate) fn view(&self) -> View {
        View(self.state())
    }

    /// The key's value, as [`View::get`] finds it.
    pub(crate) fn get(&self, key: &Key, wait: Wait) -> Result<Option<Box<[u8]>>, Error> {
        self.view().get(key, wait)
    }

    /// The same, with the generation of the runs that were looked through, for [`View::get_since`].
    pub(crate) fn get_noting(&self, key: &Key, wait: Wait) -> Result<NotedValue, Error> {
        let state = self.state();
        Ok((state.find(key, wait)?, state.generation))
    }

    /// False if the key certainly has no entry; true is wrong about once in a hundred times. Never reads a file.
    pub(crate) fn may_have(&self, key: &Key) -> bool {
        let state = self.state();
        match state.in_memory(key) {
            Some(change) => change.is_some(),
            None => state.runs.iter().any(|run| run.may_have(key)),
        }
    }

    /// The values of many keys, in the order asked. It goes once through each run, so that keys near each other are
    /// read together.
    pub(crate) fn get_many(&self, keys: &[Key], wait: Wait) -> Result<Vec<Option<Box<[u8]>>>, Error> {
        let state = self.state();
        let mut found: Vec<Option<Change>> = keys.iter().map(|key| state.in_memory(key)).collect();
        let mut missing: Vec<usize> = (0..keys.len()).filter(|number| found[*number].is_none()).collect();
        missing.sort_unstable_by(|one, other| keys[*one].cmp(&keys[*other]));
        let mut near = LastBlock::default();
        for run in &state.runs {
            near.forget();
            for &number in missing.iter().filter(|number| run.may_have(&keys[**number])) {
                found[number] = run.find(&keys[number], wait, &mut near)?;
            }
            missing.retain(|number| found[*number].is_none());
        }
        Ok(found.into_iter().map(Option::flatten).collect())
    }
}

impl State {
    fn find(&self, key: &Key, wait: Wait) -> Result<Option<Box<[u8]>>, Error> {
        if let Some(change) = self.in_memory(key) {
            return Ok(change);
        }
        let mut runs = self.runs.iter().filter(|run| run.may_have(key)).peekable();
        if runs.peek().is_none() {
            return Ok(None);
        }
        // Taken, not borrowed: a disk may look something up itself while it is read.
        let mut near = NEAR.take();
        let mut found = Ok(None);
        for run in runs {
            near.forget();
            found = run.find(key, wait, &mut near);
            if !matches!(found, Ok(None)) {
                break;
            }
        }
        NEAR.set(near);
        Ok(found?.flatten())
    }

    fn in_memory(&self, key: &Key) -> Option<Change> {
        self.tables().find_map(|table| table.get(key))
    }
}
