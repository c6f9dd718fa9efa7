//! Validation of code: the batches, and where the verdicts go.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anabranch_engine::{Check, Cost};
use anabranch_value::{Map, Value};
use smallvec::smallvec;

use super::{child, python, sql};
use crate::column_type::ColumnType;
use crate::config::{CodeLang, ValidationColumn};
use crate::fault::Fault;
use crate::generator::{Cells, Contract, Generator, Grain, Output, Rows, Work};
use crate::validation::Tools;

/// The longest code that is checked.
pub(super) const MAX_CODE: usize = 1 << 20;

/// Bytes of code that a parser checks in a microsecond, about.
const BYTES_PER_MICROSECOND: u64 = 4;

/// Fills a column with verdicts about code.
pub(super) struct CodeGenerator {
    contract: Contract,
    shared: Arc<Shared>,
}

struct Shared {
    targets: Vec<String>,
    batch_size: usize,
    language: Language,
    tool: Option<Tool>,
}

/// A language that can be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Python,
    Sql(sql::Dialect),
}

/// A program with its version, once that is known.
pub(super) struct Tool {
    pub(super) path: PathBuf,
    pub(super) wall: Duration,
    version: OnceLock<String>,
}

impl Tool {
    /// The name and version, for instance `ruff 0.8.1`.
    pub(super) fn version(&self, check: &Check<'_>) -> &str {
        self.version.get_or_init(|| {
            let name =
                self.path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let folder = std::env::temp_dir();
            let said = child::run(&self.path, &["--version"], &folder, self.wall, check).unwrap_or_default();
            let number = said.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
            number.map_or(name.clone(), |number| format!("{name} {number}"))
        })
    }
}

impl CodeGenerator {
    pub(super) fn new(
        name: &str,
        column: &ValidationColumn,
        lang: CodeLang,
        tools: &Tools,
    ) -> Result<CodeGenerator, String> {
        let (language, path) = match lang.0.strip_prefix("sql:") {
            Some(dialect) => {
                let dialect =
                    sql::Dialect::new(dialect).ok_or(format!("the SQL dialect `{dialect}` is not known"))?;
                (Language::Sql(dialect), &tools.sqlfluff)
            }
            None if lang.0 == "python" => (Language::Python, &tools.ruff),
            None => {
                return Err(format!(
                    "the validation column `{name}` cannot check `{}`: only python and sql:* can be",
                    lang.0
                ));
            }
        };
        let wall = tools.wall;
        let tool = path.clone().map(|path| Tool { path, wall, version: OnceLock::new() });
        let verdict = match language {
            Language::Python => python::verdict_type(),
            Language::Sql(_) => sql::verdict_type(),
        };
        let column_type = match column.target_columns.as_slice() {
            [_] => verdict,
            targets => {
                ColumnType::Struct(targets.iter().map(|target| (target.clone(), verdict.clone())).collect())
            }
        };
        let contract = Contract {
            grain: Grain::Batch,
            reads: column.target_columns.clone(),
            fills: vec![Output { name: name.to_owned(), column_type }],
            stateful: false,
        };
        let (targets, batch_size) = (column.target_columns.clone(), column.batch_size);
        Ok(CodeGenerator { contract, shared: Arc::new(Shared { targets, batch_size, language, tool }) })
    }
}

impl Generator for CodeGenerator {
    fn contract(&self) -> &Contract {
        &self.contract
    }

    fn batch(&self, rows: Rows) -> Work<Vec<Result<Cells, Fault>>> {
        let shared = Arc::clone(&self.shared);
        if shared.tool.is_some() {
            return Work::blocking(move |check| Ok(shared.verdicts(&rows, check)));
        }
        let codes = rows.columns.iter().flatten().filter_map(Value::as_text);
        let bytes: u64 = codes.map(|code| code.len() as u64).sum();
        let cost = Cost::About(Duration::from_micros(bytes / BYTES_PER_MICROSECOND + rows.ids.len() as u64));
        Work::Job(Box::new(move |check| Ok(shared.verdicts(&rows, check))), cost)
    }
}

impl Shared {
    /// One verdict per row.
    fn verdicts(&self, rows: &Rows, check: &Check<'_>) -> Vec<Result<Cells, Fault>> {
        let columns: Vec<Vec<Result<Value, Fault>>> =
            rows.columns.iter().map(|column| self.column(column, check)).collect();
        let row = |row: usize| -> Result<Cells, Fault> {
            let verdict = |column: &Vec<Result<Value, Fault>>| column[row].clone();
            if let [column] = columns.as_slice() {
                return Ok(smallvec![verdict(column)?]);
            }
            let per_target = self.targets.iter().zip(&columns);
            let nested = per_target.map(|(target, column)| Ok((target.as_str().into(), verdict(column)?)));
            Ok(smallvec![Value::from(nested.collect::<Result<Map, Fault>>()?)])
        };
        (0..rows.ids.len()).map(row).collect()
    }

    /// One verdict per cell of a column.
    fn column(&self, cells: &[Value], check: &Check<'_>) -> Vec<Result<Value, Fault>> {
        let mut verdicts = Vec::with_capacity(cells.len());
        for batch in cells.chunks(self.batch_size) {
            if check.should_stop() {
                break;
            }
            let found = self.batch(batch, check);
            verdicts.extend(found.unwrap_or_else(|fault| batch.iter().map(|_| Err(fault.clone())).collect()));
        }
        let stopped = || Err(Fault::transient("cancelled", "the validation was stopped"));
        verdicts.resize_with(cells.len(), stopped);
        verdicts
    }

    fn batch(&self, cells: &[Value], check: &Check<'_>) -> Result<Vec<Result<Value, Fault>>, Fault> {
        let codes: Vec<Result<&str, String>> = cells.iter().map(code).collect();
        let verdicts = match (self.language, &self.tool) {
            (Language::Python, None) => codes.into_iter().map(python::parse).collect(),
            (Language::Python, Some(tool)) => python::lint(tool, &codes, check)?,
            (Language::Sql(dialect), None) => sql::parse_all(dialect, codes)?,
            (Language::Sql(dialect), Some(tool)) => sql::lint(tool, dialect, &codes, check)?,
        };
        Ok(verdicts.into_iter().map(Ok).collect())
    }
}

/// The code of a cell, or an error message.
fn code(cell: &Value) -> Result<&str, String> {
    match cell.as_text() {
        Some(code) if code.len() > MAX_CODE => Err(format!("the code is longer than {} MiB", MAX_CODE >> 20)),
        Some(code) => Ok(code),
        None => Err(format!("expected code as text, found {}", cell.kind())),
    }
}
