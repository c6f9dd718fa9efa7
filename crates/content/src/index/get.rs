//! Looks keys up: in memory, then in the runs, newest first.

use super::run::Near;
use super::table::Change;
use super::{Error, Index, Key, State};
use crate::Wait;

impl Index {
    /// The key's value. With [`Wait::No`] an answer that is not in memory is [`Error::WouldBlock`].
    pub(crate) fn get(&self, key: &Key, wait: Wait) -> Result<Option<Box<[u8]>>, Error> {
        let state = self.state();
        if let Some(change) = state.in_memory(key) {
            return Ok(change);
        }
        let mut near = Near::default();
        for run in state.runs.iter().filter(|run| run.may_have(key)) {
            near.forget();
            if let Some(change) = run.find(key, wait, &mut near)? {
                return Ok(change);
            }
        }
        Ok(None)
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
        let mut near = Near::default();
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
    fn in_memory(&self, key: &Key) -> Option<Change> {
        self.tables().find_map(|table| table.get(key))
    }
}
