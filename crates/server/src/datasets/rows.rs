//! The rows, errors, report and files of a job.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::vec::IntoIter;

use anabranch_dataset::output::{ExportFormat, FileError, Folder, JoinedFile, RowFile, write_table};
use anabranch_dataset_inspect::Report;
use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use serde::Deserialize;
use serde_json::{Value, json};
use tonic::Code;

use super::{Datasets, Failure};
use crate::runs::RunId;

/// The requested page of rows.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RowQuery {
    /// The maximum number of rows. Default: 100.
    limit: Option<u64>,
    /// The number of rows to skip.
    after: Option<u64>,
}

/// The format of a download of all rows.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Download {
    format: Option<String>,
}

const LIMIT: u64 = 100;
const LIMIT_MOST: u64 = crate::api::ROWS_MOST;

/// The most bytes of rows in one response.
const BYTES_MOST: usize = 16 << 20;

/// The bytes of a file that are read at a time.
const CHUNK: usize = 256 << 10;

fn limit(asked: Option<u64>) -> Result<usize, Failure> {
    match asked.unwrap_or(LIMIT) {
        limit @ 1..=LIMIT_MOST => Ok(limit as usize),
        limit => {
            let message = format!("`limit` is {limit}; it may be 1 to {LIMIT_MOST}");
            Err(Failure::new(Code::InvalidArgument, message))
        }
    }
}

fn unread(error: &FileError) -> Failure {
    match error.cause.kind() {
        std::io::ErrorKind::NotFound => {
            Failure::new(Code::NotFound, "the dataset has no rows on disk so far")
        }
        _ => Failure::new(
            Code::Unavailable,
            format!("the files of the dataset cannot be read: {}", error.cause),
        ),
    }
}

impl Datasets {
    /// A page of the rows on disk, as the text of a JSON object.
    pub(crate) async fn rows(&self, id: RunId, query: RowQuery) -> Result<String, Failure> {
        let (output, limit, after) = (self.output(id)?, limit(query.limit)?, query.after.unwrap_or(0));
        let read = self.off_workers(move || read_rows(&output, after, limit)).await?;
        let (rows, next) = read.map_err(|error| unread(&error))?;
        Ok(format!(
            "{{\"rows\":[{}],\"next\":{}}}",
            rows.join(","),
            next.map_or("null".to_owned(), |at| at.to_string())
        ))
    }

    /// A page of the failed cells, which the build writes at its end.
    pub(crate) async fn errors(&self, id: RunId, query: RowQuery) -> Result<Value, Failure> {
        let (output, limit, after) = (self.output(id)?, limit(query.limit)?, query.after.unwrap_or(0));
        let read = self.off_workers(move || -> std::io::Result<Option<(Vec<Value>, bool)>> {
            let file = match File::open(output.join("errors.jsonl")) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                file => file?,
            };
            let mut lines = BufReader::new(file).lines().skip(usize::try_from(after).unwrap_or(usize::MAX));
            let mut errors = Vec::new();
            for line in lines.by_ref().take(limit) {
                errors.push(serde_json::from_str(&line?)?);
            }
            Ok(Some((errors, lines.next().is_some())))
        });
        let read = read.await?;
        let read = read.map_err(|error| {
            Failure::new(Code::Unavailable, format!("the errors of the dataset cannot be read: {error}"))
        })?;
        let (errors, has_more) = read.unwrap_or_default();
        let next = has_more.then(|| after + errors.len() as u64);
        Ok(json!({ "errors": errors, "next": next }))
    }

    /// The report as an HTML page.
    pub(crate) async fn report(&self, id: RunId) -> Result<String, Failure> {
        let output = self.output(id)?;
        let read = self.off_workers(move || Report::read(&output).map(|report| report.html())).await?;
        read.map_err(|error| unread(&error))
    }

    /// The names and sizes of the files that can be read.
    pub(crate) async fn files(&self, id: RunId) -> Result<Value, Failure> {
        let output = self.output(id)?;
        let files = self.off_workers(move || files(&output)).await?;
        let shown = |(name, size): (String, u64)| json!({ "name": name, "size": size });
        Ok(json!({ "files": files.into_iter().map(shown).collect::<Vec<_>>() }))
    }

    /// One of these files, with its size.
    pub(crate) async fn file(&self, id: RunId, name: String) -> Result<(u64, File), Failure> {
        let output = self.output(id)?;
        let not_found = Failure::new(Code::NotFound, format!("the dataset {id} has no file {name:?}"));
        let opened = self.off_workers(move || {
            // Only a listed name is opened, so that no other file can be read.
            let (name, size) = files(&output).into_iter().find(|(listed, _)| *listed == name)?;
            Some((size, File::open(output.join(name)).ok()?))
        });
        opened.await?.ok_or(not_found)
    }

    /// A part of a file.
    pub(crate) fn stream_file(&self, file: File, range: Range<u64>) -> Body {
        let state = (self.clone(), file, range);
        Body::from_stream(stream::try_unfold(state, move |(datasets, mut file, left)| async move {
            let Range { start, end } = left;
            if start >= end {
                return Ok(None);
            }
            let read = datasets.off_workers(move || {
                let mut chunk = Vec::new();
                file.seek(SeekFrom::Start(start))?;
                let most = (end - start).min(CHUNK as u64);
                file.by_ref().take(most).read_to_end(&mut chunk).map(|_| (file, chunk))
            });
            let (file, chunk) =
                read.await?.map_err(|error| Failure::new(Code::DataLoss, error.to_string()))?;
            match chunk.len() as u64 {
                0 => Err(Failure::new(Code::DataLoss, "the file became shorter while it was read")),
                len => Ok(Some((Bytes::from(chunk), (datasets, file, start + len..end)))),
            }
        }))
    }

    /// All rows on disk in a format, with its content type.
    pub(crate) async fn download(&self, id: RunId, query: Download) -> Result<(&'static str, Body), Failure> {
        let (kind, format) = match query.format.as_deref().unwrap_or("jsonl") {
            "jsonl" => ("application/x-ndjson", ExportFormat::Jsonl),
            "csv" => ("text/csv; charset=utf-8", ExportFormat::Csv),
            "parquet" => return self.parquet(id).await,
            other => {
                let message = format!("`format` is {other:?}; it may be jsonl, csv or parquet");
                return Err(Failure::new(Code::InvalidArgument, message));
            }
        };
        let output = self.output(id)?;
        let listed =
            self.off_workers(move || Folder::open(&output).and_then(|folder| folder.row_files())).await?;
        let files = listed.map_err(|error| unread(&error))?.into_iter();
        let export = Export { datasets: self.clone(), files, file: None, format, is_first: true };
        Ok((kind, Body::from_stream(stream::try_unfold(export, Export::next))))
    }

    /// All rows on disk as one Parquet file.
    async fn parquet(&self, id: RunId) -> Result<(&'static str, Body), Failure> {
        const KIND: &str = "application/vnd.apache.parquet";
        let output = self.output(id)?;
        let listed =
            self.off_workers(move || Folder::open(&output).and_then(|folder| folder.row_files())).await?;
        let files = listed.map_err(|error| unread(&error))?;
        match &files[..] {
            [] => Err(Failure::new(Code::NotFound, "the dataset has no rows on disk so far")),
            [path] => {
                let path = path.clone();
                let opened = self.off_workers(move || {
                    let file = File::open(path).ok()?;
                    let size = file.metadata().ok()?.len();
                    Some((file, size))
                });
                let gone = || Failure::new(Code::NotFound, "the file of the dataset is gone");
                let (file, size) = opened.await?.ok_or_else(gone)?;
                Ok((KIND, self.stream_file(file, 0..size)))
            }
            _ => {
                let state = (self.clone(), JoinedFile::new(files));
                let pieces = stream::try_unfold(state, |(datasets, mut joined)| async move {
                    let read =
                        datasets.off_workers(move || joined.next().transpose().map(|piece| (piece, joined)));
                    let (piece, joined) = read.await?.map_err(|error| unread(&error))?;
                    Ok::<_, Failure>(piece.map(|piece| (Bytes::from(piece), (datasets, joined))))
                });
                Ok((KIND, Body::from_stream(pieces)))
            }
        }
    }
}

/// The rows of a dataset as text, a few at a time. The next ones are read once the client has taken the previous ones.
struct Export {
    datasets: Datasets,
    files: IntoIter<PathBuf>,
    file: Option<RowFile>,
    format: ExportFormat,
    is_first: bool,
}

impl Export {
    async fn next(mut self) -> Result<Option<(Bytes, Export)>, Failure> {
        let datasets = self.datasets.clone();
        let read = datasets.off_workers(move || -> Result<Option<(Bytes, Export)>, Failure> {
            loop {
                let Some(file) = &mut self.file else {
                    let Some(path) = self.files.next() else { return Ok(None) };
                    self.file = Some(RowFile::open(&path).map_err(|error| unread(&error))?);
                    continue;
                };
                let Some(table) = file.next() else {
                    self.file = None;
                    continue;
                };
                let mut text = Vec::new();
                let table = table.map_err(|error| unread(&error))?;
                let is_first = std::mem::replace(&mut self.is_first, false);
                write_table(&table, self.format, is_first, &mut text)
                    .map_err(|error| Failure::new(Code::Internal, error.to_string()))?;
                return Ok(Some((Bytes::from(text), self)));
            }
        });
        read.await?
    }
}

/// A page of rows as JSON texts, and the start of the next page.
fn read_rows(output: &Path, after: u64, limit: usize) -> Result<(Vec<String>, Option<u64>), FileError> {
    let (mut rows, mut at, mut bytes) = (Vec::new(), 0, 0);
    for path in Folder::open(output)?.row_files()? {
        let file = RowFile::open(&path)?;
        if at + file.rows() <= after {
            at += file.rows();
            continue;
        }
        for table in file {
            let table = table?;
            for row in 0..table.ids.len() {
                if at >= after {
                    if rows.len() == limit || bytes > BYTES_MOST {
                        return Ok((rows, Some(at)));
                    }
                    let text = table.row(row).to_json();
                    bytes += text.len();
                    rows.push(text);
                }
                at += 1;
            }
        }
    }
    Ok((rows, None))
}

/// The most files in a list.
const FILES_MOST: usize = 100_000;

/// The files of an output folder, by name, without the journal.
fn files(output: &Path) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(output.join(&folder)).into_iter().flatten().flatten() {
            let Ok(file_type) = entry.file_type() else { continue };
            let name = folder.join(entry.file_name());
            let Some(text) = name.to_str() else { continue };
            let is_hidden = text == "journal" || text == "build.lock" || text.ends_with(".new");
            match (file_type.is_dir(), file_type.is_file()) {
                _ if is_hidden || found.len() >= FILES_MOST => {}
                (true, _) => folders.push(name),
                (_, true) => found.push((text.to_owned(), entry.metadata().map_or(0, |file| file.len()))),
                _ => {}
            }
        }
    }
    found.sort();
    found
}
