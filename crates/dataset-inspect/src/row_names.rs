//! The names of rows: a number, or the path of a row that was made from another one.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use anabranch_dataset::output::FileError;
use anabranch_dataset::stages::{StepFate, read_fates};

use crate::report::stage_folders;

/// This bit is set for rows that were made from others.
const MADE: u64 = 1 << 63;
/// The maximum depth of rows that were made from rows that were made from others.
const MAX_DEPTH: usize = 16;

/// The parents of some rows, with the number of the item.
#[derive(Default)]
pub(crate) struct RowNames {
    parents: HashMap<u64, (u64, u32)>,
}

impl RowNames {
    /// Looks the parents of these rows up in a dataset's folder. Blocks.
    pub(crate) fn read(folder: &Path, rows: impl IntoIterator<Item = u64>) -> Result<RowNames, FileError> {
        let mut names = RowNames::default();
        let mut wanted: HashSet<u64> = rows.into_iter().filter(|row| row & MADE != 0).collect();
        let stages = if wanted.is_empty() { Vec::new() } else { stage_folders(folder)? };
        for _ in 0..MAX_DEPTH {
            let mut next = HashSet::new();
            for stage in stages.iter().filter(|_| !wanted.is_empty()) {
                read_fates(stage, |fate| {
                    let StepFate::Item { parent, item } = fate.fate else { return };
                    if wanted.contains(&fate.row) {
                        names.parents.insert(fate.row, (parent, item));
                        next.insert(parent);
                    }
                })?;
            }
            next.retain(|row| row & MADE != 0 && !names.parents.contains_key(row));
            wanted = next;
        }
        Ok(names)
    }

    /// The name of a row: `17`, or `17.3` for the item 3 of row 17.
    pub(crate) fn name(&self, row: u64) -> String {
        let mut items = String::new();
        let mut row = row;
        for _ in 0..MAX_DEPTH {
            let Some((parent, item)) = self.parents.get(&row) else { break };
            items = format!(".{item}{items}");
            row = *parent;
        }
        format!("{row}{items}")
    }
}

#[cfg(test)]
mod tests {
    use anabranch_dataset::stages::{child_id, parse_row};

    use super::RowNames;

    #[test]
    fn names_lead_back_to_their_rows() {
        let (child, grandchild) = (child_id(17, 3), child_id(child_id(17, 3), 0));
        let names = RowNames { parents: [(child, (17, 3)), (grandchild, (child, 0))].into() };
        assert_eq!([17, child, grandchild].map(|row| names.name(row)), ["17", "17.3", "17.3.0"]);
        assert_eq!(parse_row("17.3.0"), Some(grandchild));
    }
}
