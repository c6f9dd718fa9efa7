//! The formats of a response: JSON, lines of JSON, and Arrow.

use anabranch_plan::registry::Keys;
use anabranch_plan::{Answer, Kind};
use anabranch_rows::{Column, Key, Rows};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use std::sync::Arc;

use super::PlanFailure;
use crate::failure::Failure;

/// The format of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// One object, as from `plan run`.
    Json,
    /// One object with a list of rows per output, as from `plan run --by-output`.
    JsonByOutput,
    /// One line per row, and a last line with the ids and the ledger.
    Lines,
    /// A stream of Arrow record batches, one per output.
    Arrow,
}

const JSON: &str = "application/json";
const LINES: &str = "application/x-ndjson";
const ARROW: &str = "application/vnd.apache.arrow.stream";

impl Form {
    /// The format that the `Accept` header asks for. Of several, the first one with the highest weight counts.
    pub(crate) fn accepted(accept: Option<&str>) -> Result<Form, String> {
        let Some(accept) = accept else { return Ok(Form::Json) };
        let mut best: Option<(Form, f32)> = None;
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let form = match parts.next().unwrap_or_default().to_ascii_lowercase().as_str() {
                JSON | "application/*" | "*/*" | "" => Form::Json,
                LINES | "application/jsonl" | "application/x-jsonlines" => Form::Lines,
                ARROW => Form::Arrow,
                _ => continue,
            };
            let weight = parts.find_map(|part| part.strip_prefix("q=")?.parse().ok()).unwrap_or(1.0_f32);
            if weight > 0.0 && best.is_none_or(|(_, other)| weight > other) {
                best = Some((form, weight));
            }
        }
        best.map(|(form, _)| form).ok_or_else(|| {
            format!(
                "no form of the answer has the type {}; there are {JSON}, {LINES} and {ARROW}",
                anabranch_text::quote(accept)
            )
        })
    }

    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Form::Json | Form::JsonByOutput => JSON,
            Form::Lines => LINES,
            Form::Arrow => ARROW,
        }
    }

    /// Encodes an answer.
    pub(crate) fn write(self, answer: &Answer, keys: &Keys) -> Result<Vec<u8>, PlanFailure> {
        let mut out = Vec::with_capacity(expected_bytes(self, answer));
        match self {
            Form::Json => {
                answer.write_json(keys, &mut out);
                out.push(b'\n');
            }
            Form::JsonByOutput => {
                answer.write_json_by_output(keys, &mut out);
                out.push(b'\n');
            }
            Form::Lines => answer.write_lines(keys, &mut out),
            Form::Arrow => {
                write_arrow(answer, keys, &mut out).map_err(|error| {
                    PlanFailure::from(Failure::new(tonic::Code::Internal, format!("as Arrow: {error}")))
                })?;
            }
        }
        Ok(out)
    }
}

/// An estimate of the size of a response, so that the buffer rarely grows.
fn expected_bytes(form: Form, answer: &Answer) -> usize {
    let cells: usize =
        answer.outputs.iter().map(|rows| rows.len() * (2 + rows.batch().columns().len())).sum();
    let per_cell = if form == Form::Arrow { 12 } else { 24 };
    (256 + 256 * answer.ledger.len() + per_cell * cells).min(MOST_EXPECTED)
}

const MOST_EXPECTED: usize = 4 << 20;

/// All outputs in one stream, with one schema: the columns of all outputs, and `output` if there are several.
fn write_arrow(answer: &Answer, keys: &Keys, out: &mut Vec<u8>) -> Result<(), ArrowError> {
    let name = |key: Key| keys.get(key).map_or_else(|| key.to_string(), |entry| entry.name.clone());
    let several = answer.outputs.len() > 1;
    let mut columns: Vec<(Key, Kind)> = Vec::new();
    for (key, column) in answer.outputs.iter().flat_map(|rows| rows.batch().columns()) {
        if !columns.iter().any(|(other, _)| other == key) {
            columns.push((*key, column.kind()));
        }
    }
    columns.sort_by_key(|(key, _)| *key);
    let data_type = |kind: Kind| match kind {
        Kind::Int => DataType::Int64,
        Kind::Float => DataType::Float64,
        Kind::Bool => DataType::Boolean,
        Kind::Text => DataType::Utf8,
    };
    let mut fields = vec![Field::new("id", DataType::Int64, false)];
    fields.extend(several.then(|| Field::new("output", DataType::Utf8, false)));
    fields.extend(columns.iter().map(|(key, kind)| Field::new(name(*key), data_type(*kind), true)));
    let text = |what: &anabranch_plan::RequestId| what.to_string();
    let metadata = [
        ("request_id".to_owned(), text(&answer.request_id)),
        ("engine_request_id".to_owned(), text(&answer.engine_request_id)),
        ("ledger".to_owned(), serde_json::to_string(&answer.ledger).expect("a ledger is JSON")),
    ];
    let schema = Arc::new(Schema::new(fields).with_metadata(metadata.into()));
    let mut writer = StreamWriter::try_new(out, &schema)?;
    for (rows, output) in answer.outputs.iter().zip(answer.output_names.iter()) {
        writer.write(&batch(rows, several.then_some(output), &columns, &schema)?)?;
    }
    writer.finish()
}

fn batch(
    rows: &Rows,
    output: Option<&String>,
    columns: &[(Key, Kind)],
    schema: &Arc<Schema>,
) -> Result<RecordBatch, ArrowError> {
    let rows = rows.compact();
    let batch = rows.batch();
    let count = rows.len();
    let mut arrays: Vec<ArrayRef> = vec![Arc::new(arrow_array::Int64Array::new(batch.ids().clone(), None))];
    if let Some(output) = output {
        arrays.push(Arc::new(StringArray::from_iter_values(std::iter::repeat_n(output, count))));
    }
    for (key, kind) in columns {
        let column = batch.column(*key);
        let array: ArrayRef = match column {
            Some(Column::Text(text)) => {
                Arc::new((0..count).map(|row| text.get(row)).collect::<StringArray>())
            }
            Some(column) if column.kind() == *kind => column.to_arrow(),
            // An output without the column, or with one of another kind, gets nulls.
            _ => match kind {
                Kind::Text => Arc::new(StringArray::new_null(count)),
                kind => Column::all_null(*kind, count).to_arrow(),
            },
        };
        arrays.push(array);
    }
    RecordBatch::try_new(Arc::clone(schema), arrays)
}

#[cfg(test)]
mod tests {
    use super::Form;

    #[test]
    fn the_form_follows_from_accept() {
        let check = |accept: &str, form: Form| assert_eq!(Form::accepted(Some(accept)), Ok(form), "{accept}");
        assert_eq!(Form::accepted(None), Ok(Form::Json));
        check("*/*", Form::Json);
        check("application/json", Form::Json);
        check("text/html, application/x-ndjson;q=0.5, application/json;q=0.1", Form::Lines);
        check("application/json;q=0.2, application/vnd.apache.arrow.stream", Form::Arrow);
        for none in ["text/html", "application/json;q=0"] {
            assert!(Form::accepted(Some(none)).unwrap_err().contains("there are application/json"), "{none}");
        }
    }
}
