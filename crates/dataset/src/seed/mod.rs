//! Seeds: rows of files that a dataset starts from.
//!
//! Dataset row `i` takes the seed row at place `i mod n` of the order, where `n` is the number of selected rows: a seed
//! that is too short is used again. The order is that of the files, or a shuffle that depends on the run's seed and on
//! the cycle only, so that rows are read by number: a resumed build neither loses nor repeats one.

mod column;
mod csv;
mod error;
mod files;
mod json;
mod order;
mod parquet;
mod table;
mod types;

use std::ops::Range;
use std::path::{Path, PathBuf};

use anabranch_value::Value;

pub use error::Error;
use files::Encoding;
use order::Shuffle;
use table::{Limits, Table};

use crate::column_type::ColumnType;
use crate::config::{SeedConfig, SeedOrder, SeedSelection, SeedSource};
use crate::fault::Fault;
use crate::inputs::file_digest;

/// An open seed. Reads block only for the contents of files.
pub struct Seed {
    rows: SeedRows,
    columns: Vec<(String, ColumnType)>,
    /// The number of the first selected row.
    start: u64,
    /// The number of selected rows, at least 1.
    len: u64,
    order: SeedOrder,
    run_seed: u64,
    digest: String,
}

enum SeedRows {
    Table(Table),
    Files(FileRows),
}

struct FileRows {
    /// Paths below the folder, and whole paths.
    files: Vec<(String, PathBuf)>,
    kind: &'static str,
    /// Set if the contents are a column.
    encoding: Option<Encoding>,
}

impl Seed {
    /// Opens a seed. Relative paths start at `base`. Blocks: local files are read as a whole.
    pub fn open(config: &SeedConfig, base: &Path, run_seed: u64) -> Result<Seed, Error> {
        let mut digest = String::new();
        let (rows, path) = match &config.source {
            SeedSource::Local { path } => {
                let path = base.join(path);
                let files = files::matching(&path)?;
                digest = digest_of(files.iter().map(PathBuf::as_path), content_digest);
                (SeedRows::Table(Table::read(&files, Limits::DEFAULT)?), path)
            }
            SeedSource::Directory { path, file_pattern, recursive } => {
                let path = base.join(path);
                let files = files::below(&path, file_pattern, *recursive)?;
                (SeedRows::Files(FileRows { files, kind: "directory_file", encoding: None }), path)
            }
            SeedSource::FileContents { path, file_pattern, recursive, encoding } => {
                let path = base.join(path);
                let encoding = Some(Encoding::new(encoding)?);
                let files = files::below(&path, file_pattern, *recursive)?;
                (SeedRows::Files(FileRows { files, kind: "file_contents", encoding }), path)
            }
        };
        let (total, columns) = match &rows {
            SeedRows::Table(table) => (table.rows(), table.columns.clone()),
            SeedRows::Files(files) => (files.files.len() as u64, files.columns()),
        };
        if let SeedRows::Files(files) = &rows {
            digest = digest_of(files.files.iter().map(|(_, path)| path.as_path()), file_digest);
        }
        if total == 0 {
            return Err(Error::Empty { path: path.display().to_string() });
        }
        let Range { start, end } = select(config.selection, total)?;
        Ok(Seed { rows, columns, start, len: end - start, order: config.order, run_seed, digest })
    }

    /// The names and types of the columns: the same for all rows.
    pub fn columns(&self) -> &[(String, ColumnType)] {
        &self.columns
    }

    /// The number of selected rows; dataset rows beyond it start over.
    #[allow(clippy::len_without_is_empty, reason = "a seed has at least one row")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Tells whether the files are the same as before.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// The values for these dataset rows: one list per column. Fails if one of the rows does.
    pub fn read(&self, rows: Range<u64>) -> Result<Vec<Vec<Value>>, Fault> {
        let count = usize::try_from(rows.end.saturating_sub(rows.start)).unwrap_or(0);
        let mut columns: Vec<Vec<Value>> = self.columns.iter().map(|_| Vec::with_capacity(count)).collect();
        let mut shuffle = None;
        for row in rows {
            let row = self.read_at(self.place(row, &mut shuffle))?;
            for (value, column) in row.into_iter().zip(&mut columns) {
                column.push(value);
            }
        }
        Ok(columns)
    }

    /// The values for one dataset row: one per column. With it, one unreadable file costs one row only.
    pub fn read_row(&self, row: u64) -> Result<Vec<Value>, Fault> {
        self.read_at(self.place(row, &mut None))
    }

    /// The number of the seed row for a dataset row. Keeps the shuffle of the last cycle.
    fn place(&self, row: u64, shuffle: &mut Option<(u64, Shuffle)>) -> u64 {
        let (cycle, at) = (row / self.len, row % self.len);
        if self.order == SeedOrder::Ordered {
            return self.start + at;
        }
        let (_, shuffle) = match shuffle.take().filter(|(known, _)| *known == cycle) {
            Some(known) => shuffle.insert(known),
            None => shuffle.insert((cycle, Shuffle::new(self.len, self.run_seed, cycle))),
        };
        self.start + shuffle.at(at)
    }

    fn read_at(&self, row: u64) -> Result<Vec<Value>, Fault> {
        match &self.rows {
            SeedRows::Table(table) => {
                Ok((0..self.columns.len()).map(|column| table.get(row, column)).collect())
            }
            SeedRows::Files(files) => files.read(row as usize),
        }
    }
}

/// A digest of files. Files that are read as a whole are digested by content, others by size and time of change.
fn digest_of<'p>(files: impl Iterator<Item = &'p Path>, digest: fn(&Path) -> Option<String>) -> String {
    let mut hasher = blake3::Hasher::new();
    for path in files {
        let (name, found) = (path.file_name(), digest(path));
        hasher.update(format!("{name:?} {found:?}\n").as_bytes());
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

fn content_digest(path: &Path) -> Option<String> {
    let mut hasher = blake3::Hasher::new();
    std::io::copy(&mut std::fs::File::open(path).ok()?, &mut hasher).ok()?;
    Some(hasher.finalize().to_hex().to_string())
}

impl FileRows {
    fn columns(&self) -> Vec<(String, ColumnType)> {
        let names = ["source_kind", "source_path", "relative_path", "file_name"];
        let content = self.encoding.map(|_| "content");
        names.into_iter().chain(content).map(|name| (name.to_owned(), ColumnType::Text)).collect()
    }

    fn read(&self, row: usize) -> Result<Vec<Value>, Fault> {
        let (relative, path) = &self.files[row];
        let name = relative.rsplit('/').next().unwrap_or(relative);
        let path_text = path.display().to_string();
        let mut values: Vec<Value> =
            vec![self.kind.into(), path_text.into(), relative.as_str().into(), name.into()];
        if let Some(encoding) = self.encoding {
            values.push(encoding.read(path).map_err(|problem| Fault::permanent("seed", problem))?.into());
        }
        Ok(values)
    }
}

/// The selected rows.
fn select(selection: Option<SeedSelection>, rows: u64) -> Result<Range<u64>, Error> {
    match selection {
        None => Ok(0..rows),
        Some(SeedSelection::IndexRange { start, end }) => {
            if start > end || end >= rows {
                return Err(Error::Selection { selection: format!("from {start} to {end}"), rows });
            }
            Ok(start..end + 1)
        }
        Some(SeedSelection::Partition { index, num_partitions }) => {
            if index >= num_partitions || num_partitions > rows {
                let selection = format!("as block {index} of {num_partitions} blocks");
                return Err(Error::Selection { selection, rows });
            }
            let block = rows / num_partitions;
            let start = index * block;
            Ok(start..if index + 1 == num_partitions { rows } else { start + block })
        }
    }
}
