//! About how many bytes reads and their replies take.

use anabranch_rows::Column;

use super::{Data, Keys, Lists};

impl Keys {
    /// About how many bytes they take.
    pub fn weight(&self) -> usize {
        match self {
            Keys::Ids(ids) => 8 * ids.len(),
            Keys::Whole(keys) => keys.iter().map(|key| 24 + key.as_ref().map_or(0, |key| key.len())).sum(),
        }
    }
}

impl Data {
    /// About how many bytes they take. A dictionary counts whole, also where other replies share it.
    pub fn weight(&self) -> usize {
        match self {
            Data::Columns(columns) => columns.iter().map(column_weight).sum(),
            Data::Lists(Lists { lens, ids, scores }) => {
                4 * lens.len() + 8 * (ids.len() + scores.as_ref().map_or(0, Vec::len))
            }
        }
    }
}

fn column_weight(column: &Column) -> usize {
    let entries = match column {
        Column::Text(text) => text.dictionary().iter().map(|entry| 4 + entry.len()).sum(),
        _ => 0,
    };
    9 * column.len() + entries
}
