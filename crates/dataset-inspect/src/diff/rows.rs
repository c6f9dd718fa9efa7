//! Rows and cells. Both datasets are read side by side, and a row waits until the other side has it too.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anabranch_dataset::output::{FileError, RowFile, type_name};
use anabranch_dataset::processor::Table;
use anabranch_value::Value;
use serde::Serialize;

use super::example::CellChange;
use crate::row_names::RowNames;
use crate::sketch::digest;

/// The rows and columns of two datasets.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RowsDifference {
    pub rows_before: u64,
    pub rows_after: u64,
    /// Rows with the same stable number. Rows that a processor added have none and are compared by their order.
    pub rows_in_both: u64,
    /// Rows in both of which a cell differs.
    pub rows_changed: u64,
    /// The numbers of some rows that only the first one has.
    pub removed_rows: Vec<RowName>,
    /// The numbers of some rows that only the second one has.
    pub added_rows: Vec<RowName>,
    pub columns: Vec<ColumnDifference>,
}

/// A row that only one dataset has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RowName {
    /// The row's stable number.
    pub id: u64,
    /// The number, or the path of a row that was made from another one: `17.3`.
    pub row: String,
}

/// A column of two datasets.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ColumnDifference {
    pub name: String,
    /// `None` if the first dataset does not have it.
    pub type_before: Option<String>,
    /// `None` if the second dataset does not have it.
    pub type_after: Option<String>,
    /// Cells of rows in both that are equal.
    pub equal: u64,
    pub changed: u64,
    /// Some changed cells.
    pub examples: Vec<CellChange>,
}

impl RowsDifference {
    /// Rows that only the first one has.
    pub fn rows_removed(&self) -> u64 {
        self.rows_before - self.rows_in_both
    }

    /// Rows that only the second one has.
    pub fn rows_added(&self) -> u64 {
        self.rows_after - self.rows_in_both
    }

    /// Finds the names of the rows that are shown.
    pub(super) fn name_rows(&mut self, [before, after]: [&Path; 2]) -> Result<(), FileError> {
        let changes = || self.columns.iter().flat_map(|column| &column.examples);
        let known =
            self.removed_rows.iter().map(|row| row.id).chain(changes().filter_map(|change| change.id));
        let old = RowNames::read(before, known)?;
        let new = RowNames::read(after, self.added_rows.iter().map(|row| row.id))?;
        self.removed_rows.iter_mut().for_each(|row| row.row = old.name(row.id));
        self.added_rows.iter_mut().for_each(|row| row.row = new.name(row.id));
        for change in self.columns.iter_mut().flat_map(|column| &mut column.examples) {
            change.row = change.id.map(|id| old.name(id));
        }
        Ok(())
    }

    /// True if rows, columns and cells are equal.
    pub fn is_equal(&self) -> bool {
        self.rows_removed() + self.rows_added() == 0 && self.columns.iter().all(ColumnDifference::is_equal)
    }
}

impl ColumnDifference {
    /// True if both have the column, with one type and equal cells.
    pub fn is_equal(&self) -> bool {
        self.type_before == self.type_after && self.changed == 0
    }
}

/// Row numbers, and changed cells, that are shown.
const EXAMPLES: usize = 5;
/// Rows that wait with their cells. In datasets of the same order few wait; if more do, their cells are digests, which
/// can be compared but not shown.
const WAITING: usize = 20_000;

/// A row of either dataset.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Number(u64),
    /// The rows without a number, in order.
    Added(u64),
}

/// Compares the rows in the files of two datasets.
pub(super) fn compare(files: &[Vec<PathBuf>; 2]) -> Result<RowsDifference, FileError> {
    let [before, after] = files;
    let (old, new) = (Ids::read(before)?, Ids::read(after)?);
    let mut found = RowsDifference {
        rows_before: old.rows(),
        rows_after: new.rows(),
        removed_rows: old.missing_in(&new),
        added_rows: new.missing_in(&old),
        columns: columns(before.first(), after.first())?,
        ..RowsDifference::default()
    };
    join(&mut found, [Side::new(tables(before), &new), Side::new(tables(after), &old)], WAITING)?;
    Ok(found)
}

/// The rows of several files.
fn tables(files: &[PathBuf]) -> Tables<'_> {
    Box::new(files.iter().flat_map(|path| -> Tables<'_> {
        match RowFile::open(path) {
            Ok(file) => Box::new(file),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }))
}

/// Compares the rows of both sides. At most `most` rows wait with their values.
fn join(found: &mut RowsDifference, mut sides: [Side<'_>; 2], most: usize) -> Result<(), FileError> {
    let shared = (0..found.columns.len()).filter(|at| {
        let column = &found.columns[*at];
        column.type_before.is_some() && column.type_after.is_some()
    });
    let shared: Vec<(usize, String)> = shared.map(|at| (at, found.columns[at].name.clone())).collect();
    let mut join = Join { found, shared, most };
    loop {
        // The side that is behind reads on.
        let [first, second] = &sides;
        let next = match (first.has_ended, second.has_ended) {
            (true, true) => return Ok(()),
            (false, true) => 0,
            (true, false) => 1,
            (false, false) => usize::from(first.waiting.len() > second.waiting.len()),
        };
        match sides[next].tables.next() {
            Some(table) => join.add(&mut sides, next, &table?),
            None => sides[next].has_ended = true,
        }
    }
}

/// The columns of two files.
fn columns(before: Option<&PathBuf>, after: Option<&PathBuf>) -> Result<Vec<ColumnDifference>, FileError> {
    let mut found: Vec<ColumnDifference> = Vec::new();
    for (side, path) in [before, after].into_iter().enumerate() {
        let Some(path) = path else { continue };
        for (name, column_type) in RowFile::open(path)?.columns() {
            let at = found.iter().position(|column| column.name == *name).unwrap_or_else(|| {
                found.push(ColumnDifference { name: name.clone(), ..ColumnDifference::default() });
                found.len() - 1
            });
            let column_type = Some(type_name(column_type));
            match side {
                0 => found[at].type_before = column_type,
                _ => found[at].type_after = column_type,
            }
        }
    }
    Ok(found)
}

/// The numbers of all rows of a dataset.
struct Ids {
    /// Sorted.
    numbers: Vec<u64>,
    added: u64,
}

impl Ids {
    fn read(files: &[PathBuf]) -> Result<Ids, FileError> {
        let mut ids = Ids { numbers: Vec::new(), added: 0 };
        for path in files {
            let file = RowFile::open(path)?;
            let before = ids.numbers.len();
            ids.numbers.extend(file.ids().iter().flatten());
            ids.added += file.rows() - (ids.numbers.len() - before) as u64;
        }
        ids.numbers.sort_unstable();
        Ok(ids)
    }

    fn rows(&self) -> u64 {
        self.numbers.len() as u64 + self.added
    }

    fn has(&self, key: Key) -> bool {
        match key {
            Key::Number(number) => self.numbers.binary_search(&number).is_ok(),
            Key::Added(at) => at < self.added,
        }
    }

    fn missing_in(&self, other: &Ids) -> Vec<RowName> {
        let missing = self.numbers.iter().copied().filter(|number| !other.has(Key::Number(*number)));
        missing.take(EXAMPLES).map(|id| RowName { id, row: id.to_string() }).collect()
    }
}

/// The cells of a row that waits for the other side.
enum Cells {
    Values(Vec<Value>),
    Digests(Vec<u64>),
}

/// Rows, some at a time.
type Tables<'a> = Box<dyn Iterator<Item = Result<Table, FileError>> + 'a>;

/// One of the datasets, being read.
struct Side<'a> {
    tables: Tables<'a>,
    has_ended: bool,
    /// The rows of the other dataset.
    other: &'a Ids,
    waiting: HashMap<Key, Cells>,
    added: u64,
}

impl<'a> Side<'a> {
    fn new(tables: Tables<'a>, other: &'a Ids) -> Side<'a> {
        Side { tables, has_ended: false, other, waiting: HashMap::new(), added: 0 }
    }

    fn key(&mut self, id: Option<u64>) -> Key {
        match id {
            Some(number) => Key::Number(number),
            None => {
                self.added += 1;
                Key::Added(self.added - 1)
            }
        }
    }
}

/// Puts the rows of both sides together.
struct Join<'a> {
    found: &'a mut RowsDifference,
    /// The columns that both have.
    shared: Vec<(usize, String)>,
    /// Rows that wait with their values.
    most: usize,
}

impl Join<'_> {
    /// Adds rows of one side.
    fn add(&mut self, sides: &mut [Side<'_>; 2], side: usize, table: &Table) {
        let place = |name: &String| table.columns.iter().position(|column| column.name == *name);
        let places: Vec<Option<usize>> = self.shared.iter().map(|(_, name)| place(name)).collect();
        for (row, id) in table.ids.iter().enumerate() {
            let key = sides[side].key(*id);
            if !sides[side].other.has(key) {
                continue;
            }
            let value =
                |at: &Option<usize>| at.map_or(Value::Null, |at| table.columns[at].values[row].clone());
            let values: Vec<Value> = places.iter().map(value).collect();
            match sides[1 - side].waiting.remove(&key) {
                Some(other) => self.pair(*id, side, &values, &other),
                None => {
                    let waiting = &mut sides[side].waiting;
                    let cells = match waiting.len() < self.most {
                        true => Cells::Values(values),
                        false => Cells::Digests(values.iter().map(digest).collect()),
                    };
                    waiting.insert(key, cells);
                }
            }
        }
    }

    /// Compares the cells of a row that both have.
    fn pair(&mut self, id: Option<u64>, side: usize, values: &[Value], other: &Cells) {
        self.found.rows_in_both += 1;
        let mut is_changed = false;
        for (at, (column, _)) in self.shared.iter().enumerate() {
            let column = &mut self.found.columns[*column];
            let value = &values[at];
            let is_equal = match other {
                Cells::Values(others) => digest(value) == digest(&others[at]),
                Cells::Digests(digests) => digest(value) == digests[at],
            };
            if is_equal {
                column.equal += 1;
                continue;
            }
            is_changed = true;
            column.changed += 1;
            if let Cells::Values(others) = other
                && column.examples.len() < EXAMPLES
            {
                let (before, after) = if side == 0 { (value, &others[at]) } else { (&others[at], value) };
                column.examples.push(CellChange::new(id, before, after));
            }
        }
        self.found.rows_changed += u64::from(is_changed);
    }
}

#[cfg(test)]
mod tests {
    use anabranch_dataset::ColumnType;
    use anabranch_dataset::processor::{Table, TableColumn};
    use anabranch_value::Value;

    use super::{ColumnDifference, Ids, RowName, RowsDifference, Side, WAITING, join};

    /// Tables of two rows each, with one column `c`.
    fn tables(rows: &[(u64, i64)]) -> Vec<Table> {
        let table = |rows: &[(u64, i64)]| {
            let values = rows.iter().map(|(_, value)| Value::Int(*value)).collect();
            let column = TableColumn { name: "c".to_owned(), column_type: ColumnType::Int, values };
            Table { ids: rows.iter().map(|(id, _)| Some(*id)).collect(), columns: vec![column] }
        };
        rows.chunks(2).map(table).collect()
    }

    fn compared(before: &[(u64, i64)], after: &[(u64, i64)], most: usize) -> RowsDifference {
        let ids = |rows: &[(u64, i64)]| {
            let mut numbers: Vec<u64> = rows.iter().map(|(id, _)| *id).collect();
            numbers.sort_unstable();
            Ids { numbers, added: 0 }
        };
        let (old, new) = (ids(before), ids(after));
        let both = Some("int64".to_owned());
        let column = ColumnDifference {
            name: "c".to_owned(),
            type_before: both.clone(),
            type_after: both,
            ..ColumnDifference::default()
        };
        let mut found = RowsDifference {
            rows_before: old.rows(),
            rows_after: new.rows(),
            removed_rows: old.missing_in(&new),
            added_rows: new.missing_in(&old),
            columns: vec![column],
            ..RowsDifference::default()
        };
        let sides = [(before, &new), (after, &old)];
        let sides = sides.map(|(rows, other)| Side::new(Box::new(tables(rows).into_iter().map(Ok)), other));
        join(&mut found, sides, most).unwrap();
        found
    }

    #[test]
    fn rows_are_found_in_any_order() {
        let before: Vec<(u64, i64)> = (0..100).map(|id| (id, id as i64)).collect();
        let mut after: Vec<(u64, i64)> = before.iter().rev().copied().skip(10).collect();
        after[0].1 = -1;
        after.push((500, 5));
        for most in [WAITING, 3] {
            let found = compared(&before, &after, most);
            assert_eq!((found.rows_in_both, found.rows_removed(), found.rows_added()), (90, 10, 1));
            let ids = |rows: &[RowName]| rows.iter().map(|row| row.id).collect::<Vec<_>>();
            assert_eq!(
                (ids(&found.removed_rows), ids(&found.added_rows)),
                (vec![90, 91, 92, 93, 94], vec![500])
            );
            assert_eq!((found.columns[0].equal, found.columns[0].changed, found.rows_changed), (89, 1, 1));
        }
        let change = &compared(&before, &after, WAITING).columns[0].examples[0];
        assert_eq!((change.id, change.before.as_str(), change.after.as_str()), (Some(89), "89", "-1"));
    }
}
