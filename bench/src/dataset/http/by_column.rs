//! The same dataset column by column: one row group, each column of calls as one batch that waits for the one before.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anabranch_dataset::generator::{Cells, Contract, Grain, Output, Row, Rows, Work};
use anabranch_dataset::{ColumnSettings, ColumnType, Dataset, Fault, Generator};
use anabranch_engine::{Config, Engine};
use anabranch_model::{
    ApiKey, ChatParams, ChatRequest, Generation, HttpClient, HttpSettings, Message, Model, ModelConfig,
    Params, Provider, ProviderKind, connect,
};
use anabranch_value::{Map, Value};
use futures_util::{StreamExt as _, stream};

use super::child::Job;
use super::{ours, recipe};

/// A column of calls.
struct Calls {
    contract: Contract,
    model: Arc<dyn Model>,
    parallel: usize,
    prompt: Prompt,
}

/// The prompt of a row, from the values that its column reads.
type Prompt = fn(&[&str]) -> String;

/// A column that is computed from its row.
struct ComputedColumn {
    contract: Contract,
    cell: fn(u64, &[Value]) -> String,
}

/// Builds all rows. Returns those in the files.
pub(super) fn run(job: &Job) -> io::Result<u64> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let engine = Engine::new(&Config::default()).map_err(io::Error::other)?;
        let model = model(&engine, job)?;
        let mut dataset = Dataset::new("bench", &engine);
        dataset.run_options().buffer_size = job.rows;
        let computed = |name: &str, reads: &[&str], cell| ComputedColumn {
            contract: contract(name, reads, Grain::Cell),
            cell,
        };
        let calls = |name: &str, reads: &[&str], prompt| Calls {
            contract: contract(name, reads, Grain::Batch),
            model: Arc::clone(&model),
            parallel: job.parallel,
            prompt,
        };
        let settings = ColumnSettings::default;
        dataset.column(computed("topic", &[], |row, _| recipe::topic(row)), settings());
        dataset.column(computed("tone", &[], |row, _| recipe::tone(row)), settings());
        dataset.column(calls("a", &["topic", "tone"], |read| recipe::prompt_a(read[0], read[1])), settings());
        dataset.column(calls("b", &["a"], |read| recipe::prompt_b(read[0])), settings());
        // It reads `b` only to wait for it.
        dataset.column(
            calls("c", &["topic", "tone", "b"], |read| recipe::prompt_c(read[0], read[1])),
            settings(),
        );
        dataset.column(computed("both", &["b", "c"], both), settings());
        ours::build(dataset, job, anabranch_dataset::JournalPlace::Nowhere).await
    })
}

fn both(_: u64, read: &[Value]) -> String {
    format!("{} / {}", read[0].as_text().unwrap_or(""), read[1].as_text().unwrap_or(""))
}

fn contract(name: &str, reads: &[&str], grain: Grain) -> Contract {
    Contract {
        grain,
        reads: reads.iter().map(|name| (*name).to_owned()).collect(),
        fills: vec![Output { name: name.to_owned(), column_type: ColumnType::Text }],
        stateful: false,
    }
}

impl Generator for Calls {
    fn contract(&self) -> &Contract {
        &self.contract
    }

    fn batch(&self, rows: Rows) -> Work<Vec<Result<Cells, Fault>>> {
        let (model, prompt, parallel) = (Arc::clone(&self.model), self.prompt, self.parallel);
        Work::future(async move {
            let count = rows.ids.len();
            let calls = (0..count).map(|row| {
                let read: Vec<&str> =
                    rows.columns.iter().map(|column| column[row].as_text().unwrap_or("")).collect();
                let reply = model.chat(ChatRequest::new([Message::user(prompt(&read))]));
                async move { (row, reply.await) }
            });
            let mut replies = stream::iter(calls).buffer_unordered(parallel);
            let unanswered = || Err(Fault::permanent("internal", "a row without a reply"));
            let mut cells: Vec<Result<Cells, Fault>> = (0..count).map(|_| unanswered()).collect();
            while let Some((row, reply)) = replies.next().await {
                cells[row] = reply
                    .map(|reply| std::iter::once(Value::from(reply.text.trim())).collect())
                    .map_err(|error| Fault::permanent("model", error.to_string()));
            }
            Ok(cells)
        })
    }
}

impl Generator for ComputedColumn {
    fn contract(&self) -> &Contract {
        &self.contract
    }

    fn cell(&self, row: Row<'_>) -> Work<Cells> {
        Work::Ready(Ok(std::iter::once(Value::from((self.cell)(row.id, row.values))).collect()))
    }
}

fn model(engine: &Engine, job: &Job) -> io::Result<Arc<dyn Model>> {
    let client =
        HttpClient::new(&HttpSettings::default(), Arc::clone(engine.clock())).map_err(io::Error::other)?;
    let provider = Provider {
        name: "bench".to_owned(),
        endpoint: recipe::endpoint(job.port),
        kind: ProviderKind::OpenAi,
        api_key: Some(ApiKey::new("none")),
        extra_body: Map::new(),
        extra_headers: Vec::new(),
    };
    let config = ModelConfig {
        alias: "writer".to_owned(),
        model: recipe::MODEL.to_owned(),
        provider: "bench".to_owned(),
        params: Params {
            kind: Generation::Chat(ChatParams::default()),
            max_parallel_requests: job.parallel as u32,
            timeout: Duration::from_secs(60),
            extra_body: Map::new(),
        },
        skip_health_check: true,
    };
    connect(&provider, &config, client, |_| None).map_err(io::Error::other)
}
