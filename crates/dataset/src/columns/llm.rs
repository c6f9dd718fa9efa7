//! Columns that a language model writes: text, code, structured values, scores of a judge.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_content::Address;
use anabranch_model::conversation::{
    ConversationOutcome, TraceMessage, Turns, code_suffix, converse, judge_suffix, structured_suffix,
};
use anabranch_model::judge::{self, Score};
use anabranch_model::reply::{self, ReplyProblem};
use anabranch_model::{ChatReply, ChatRequest, Error, Format, Message, Model, Schema};
use anabranch_sampler::{ColumnKey, Stream};
use anabranch_template::Bounds;
use anabranch_value::Value;

use super::expression::template_fault;
use super::foresee::TracedModel;
use super::model_call::{ModelCall, model_fault};
use super::paid_model::{JournalKnowledge, PaidModel};
use crate::column_type::ColumnType;
use crate::config::{LlmColumn, LlmOutput, TemplateText, Trace};
use crate::dry::{ForeseenOutcome, ForeseenRow};
use crate::fault::Fault;
use crate::generator::{Call, Cells, Contract, Generator, Grain, Output, PreparedRow, Row, Work};

/// A column that a language model writes.
pub(crate) struct Llm {
    contract: Contract,
    prompt: Prompt,
    system: Option<Prompt>,
    call: ModelCall,
    /// Seeds the random numbers of sampling parameters.
    seed: u64,
    /// Tells the samples of this column from those of others with the same prompt.
    salt: u64,
    form: Arc<Form>,
    turns: Turns,
    /// Rounds of conversations after the first, set when a build begins.
    rounds: Arc<AtomicU32>,
    trace: Trace,
    has_reasoning: bool,
}

/// A template with the places of its variables among the columns that are read.
struct Prompt {
    template: TemplateText,
    reads: Vec<usize>,
}

/// The format of a reply: the end of the prompt, and the parser of the reply.
struct Form {
    suffix: String,
    format: Option<Format>,
    reader: Reader,
}

/// The name of every format. A name of the column's would be part of the request, and a column that is renamed would be paid
/// for again.
const FORMAT: &str = "reply";

enum Reader {
    Text,
    Code(&'static str),
    Structured(Schema),
    Judge(Vec<Score>),
}

impl Llm {
    /// `salt` distinguishes the samples of columns with the same prompt, and of datasets with different seeds.
    pub(crate) fn new(
        name: &str,
        column: &LlmColumn,
        call: ModelCall,
        turns: Turns,
        (seed, salt): (u64, u64),
    ) -> Result<Llm, String> {
        let (form, column_type) = Form::new(name, &column.output)?;
        let mut reads: Vec<String> = Vec::new();
        let mut place = |template: &TemplateText| Prompt {
            reads: template.template.variables().iter().map(|name| position(&mut reads, name)).collect(),
            template: template.clone(),
        };
        let call = ModelCall { model: call.model.for_column(name), ..call };
        let prompt = place(&column.prompt);
        let system = column.system_prompt.as_ref().map(place);
        let mut fills = vec![Output { name: name.to_owned(), column_type }];
        if column.with_trace != Trace::None {
            fills.push(Output { name: format!("{name}__trace"), column_type: trace_type() });
        }
        if column.extract_reasoning_content {
            fills.push(Output { name: format!("{name}__reasoning_content"), column_type: ColumnType::Text });
        }
        Ok(Llm {
            contract: Contract { grain: Grain::Call, reads, fills, stateful: false },
            prompt,
            system,
            call,
            seed,
            salt,
            form: Arc::new(form),
            turns,
            rounds: Arc::default(),
            trace: column.with_trace,
            has_reasoning: column.extract_reasoning_content,
        })
    }

    /// Reads the number of rounds here.
    pub(crate) fn with_rounds(self, rounds: Arc<AtomicU32>) -> Llm {
        Llm { rounds, ..self }
    }

    fn request(&self, row: Row<'_>) -> Result<ChatRequest, Fault> {
        let mut messages = Vec::with_capacity(2);
        if let Some(system) = &self.system {
            messages.push(Message::system(self.render(system, row)?));
        }
        let mut prompt = self.render(&self.prompt, row)?;
        prompt.push_str(&self.form.suffix);
        messages.push(Message::user(prompt));
        let sample = self.salt ^ row.id;
        let mut stream = None;
        let random = || stream.get_or_insert_with(|| self.stream(&messages, sample)).unit();
        Ok(ChatRequest {
            sampling: self.call.params.resolve(random),
            format: self.form.format.clone(),
            sample,
            ..ChatRequest::new(messages)
        })
    }

    fn conversation(&self, request: ChatRequest) -> Conversation {
        Conversation {
            model: self.call.model.clone(),
            lacking: None,
            request,
            form: Arc::clone(&self.form),
            turns: Turns { rounds: self.rounds.load(Relaxed), ..self.turns },
            trace: self.trace,
            has_reasoning: self.has_reasoning,
        }
    }

    /// The random numbers of a request's sampling parameters. They depend on the request itself, so that renaming its
    /// column does not change them.
    fn stream(&self, messages: &[Message], sample: u64) -> Stream {
        let texts: Vec<&str> = messages.iter().map(|message| &*message.text).collect();
        ColumnKey::new(self.seed, &texts.join("\0")).stream(sample, 0)
    }

    fn render(&self, prompt: &Prompt, row: Row<'_>) -> Result<String, Fault> {
        let values: Vec<Value> = prompt.reads.iter().map(|read| row.values[*read].clone()).collect();
        let template = &prompt.template;
        let text = template.template.render(&values, Bounds::default());
        let text = text.map_err(|error| template_fault(template, &error))?;
        if !text.trim().is_empty() {
            return Ok(text);
        }
        let empty = template.template.variables().iter().zip(&values).filter_map(|(name, value)| {
            let why = match value {
                Value::Null => "null",
                Value::Text(text) if text.trim().is_empty() => "empty text",
                Value::List(list) if list.is_empty() => "an empty list",
                Value::Map(map) if map.is_empty() => "an empty map",
                _ => return None,
            };
            Some(format!("`{name}` is {why}"))
        });
        let empty: Vec<String> = empty.collect();
        let why = if empty.is_empty() { String::new() } else { format!(": {}", empty.join(", ")) };
        Err(Fault::permanent(
            "empty_prompt",
            format!("{}: the prompt rendered to nothing{why}", template.place),
        ))
    }
}

impl Generator for Llm {
    fn contract(&self) -> &Contract {
        &self.contract
    }

    fn prepare(&self, row: Row<'_>) -> Work<PreparedRow> {
        let request = match self.request(row) {
            Ok(request) => request,
            Err(fault) => return Work::Ready(Err(fault)),
        };
        let known = self.call.model.known(&request);
        let lacking = if let JournalKnowledge::Lacking(key) = known { Some(key) } else { None };
        let conversation = Conversation { lacking, ..self.conversation(request) };
        if known != JournalKnowledge::Perhaps {
            return Work::Ready(Ok(conversation.call()));
        }
        Work::future(async move {
            Ok(match conversation.recorded().await? {
                Some(cells) => PreparedRow::Cells(cells),
                None => conversation.call(),
            })
        })
    }

    fn foresee(&self, row: Row<'_>) -> Work<ForeseenRow> {
        let conversation = match self.request(row) {
            Ok(request) => self.conversation(request),
            Err(fault) => return Work::Ready(Err(fault)),
        };
        Work::future(async move { Ok(conversation.foreseen().await) })
    }
}

/// The conversation that fills one row.
#[derive(Clone)]
struct Conversation {
    model: PaidModel,
    /// The key of the first reply, if the journal has none under it.
    lacking: Option<Address>,
    request: ChatRequest,
    form: Arc<Form>,
    turns: Turns,
    trace: Trace,
    has_reasoning: bool,
}

impl Conversation {
    fn call(self) -> PreparedRow {
        let bytes = self.request.messages.iter().map(|message| message.text.len()).sum();
        // A retry may find replies of the try before it.
        let lacking = Mutex::new(self.lacking);
        PreparedRow::Call(Call::new(bytes, move || {
            let lacking = lacking.lock().unwrap_or_else(PoisonError::into_inner).take();
            let conversation = self.clone();
            async move {
                let model = conversation.model.conversation(lacking);
                let conversed = conversation.with(&model).await;
                conversed.map(|conversed| conversation.cells(conversed)).map_err(|error| model_fault(&error))
            }
        }))
    }

    /// The outcome, if the journal has all replies of the conversation.
    async fn recorded(&self) -> Result<Option<Cells>, Fault> {
        let recorded = self.model.recorded();
        match self.with(&recorded).await {
            Ok(conversed) => {
                self.model.reused(conversed.calls);
                Ok(Some(self.cells(conversed)))
            }
            Err(_) if recorded.has_missed() => Ok(None),
            Err(error) => Err(model_fault(&error)),
        }
    }

    /// The calls of the conversation, as far as the journal knows them.
    async fn foreseen(&self) -> ForeseenRow {
        let traced = TracedModel::new(&self.model);
        let conversed = self.with(&traced).await;
        let calls = traced.into_calls();
        let is_lacking = calls.last().is_none_or(|call| call.recorded.is_none());
        let outcome = match conversed {
            Ok(conversed) => ForeseenOutcome::Known(self.cells(conversed)),
            Err(_) if is_lacking => ForeseenOutcome::Lacking,
            Err(error) => ForeseenOutcome::Failed(model_fault(&error)),
        };
        ForeseenRow { outcome, calls }
    }

    async fn with(&self, model: &dyn Model) -> Result<ConversationOutcome<Value>, Error> {
        converse(model, self.request.clone(), |reply| self.form.read(reply), self.turns).await
    }

    fn cells(&self, conversed: ConversationOutcome<Value>) -> Cells {
        cells(conversed, self.trace, self.has_reasoning)
    }
}

fn cells(conversed: ConversationOutcome<Value>, trace: Trace, has_reasoning: bool) -> Cells {
    let ConversationOutcome { value, reply, trace: messages, .. } = conversed;
    let mut cells = Cells::new();
    cells.push(value);
    let shown = match trace {
        Trace::None => None,
        Trace::LastMessage => Some(&messages[messages.len().saturating_sub(1)..]),
        Trace::AllMessages => Some(&messages[..]),
    };
    cells.extend(shown.map(|messages| Value::list(messages.iter().map(TraceMessage::to_value))));
    if has_reasoning {
        cells.push(reply.reasoning.map_or(Value::Null, Value::from));
    }
    cells
}

impl Form {
    fn new(name: &str, output: &LlmOutput) -> Result<(Form, ColumnType), String> {
        Ok(match output {
            LlmOutput::Text => {
                (Form { suffix: String::new(), format: None, reader: Reader::Text }, ColumnType::Text)
            }
            LlmOutput::Code { lang } => {
                let form = Form { suffix: code_suffix(lang.0), format: None, reader: Reader::Code(lang.0) };
                (form, ColumnType::Text)
            }
            LlmOutput::Structured { schema } => {
                let compiled = Schema::new(schema)
                    .map_err(|error| format!("column `{name}`: output_format: {error}"))?;
                let form = Form {
                    suffix: structured_suffix(schema),
                    format: Some(Format { name: FORMAT.into(), schema: schema.clone() }),
                    reader: Reader::Structured(compiled),
                };
                (form, ColumnType::of_schema(schema))
            }
            LlmOutput::Judge { scores } => {
                let scores: Vec<Score> = scores
                    .iter()
                    .map(|score| Score {
                        name: score.name.clone(),
                        description: score.description.clone(),
                        options: score.options.clone(),
                    })
                    .collect();
                let schema = judge::schema(&scores);
                let form = Form {
                    suffix: judge_suffix(&scores, &schema),
                    format: Some(Format { name: FORMAT.into(), schema: schema.clone() }),
                    reader: Reader::Judge(scores),
                };
                (form, ColumnType::of_schema(&schema))
            }
        })
    }

    fn read(&self, reply: &ChatReply) -> Result<Value, ReplyProblem> {
        match &self.reader {
            Reader::Text => Ok(reply.text.trim().into()),
            Reader::Code(lang) => reply::code(&reply.text, lang).map(Value::from),
            Reader::Structured(schema) => {
                let value = reply::json(&reply.text)?;
                schema.fit(value).map_err(|problems| {
                    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
                    ReplyProblem(problems.join("; "))
                })
            }
            Reader::Judge(scores) => judge::read(scores, &reply::json(&reply.text)?),
        }
    }
}

/// The messages of a conversation, as DataDesigner stores them.
fn trace_type() -> ColumnType {
    let text = |name: &str| (name.to_owned(), ColumnType::Text);
    let block = ColumnType::Struct(vec![text("type"), text("text")]);
    let content = ("content".to_owned(), ColumnType::List(Box::new(block)));
    ColumnType::List(Box::new(ColumnType::Struct(vec![text("role"), content, text("reasoning_content")])))
}

/// The place of a name in a list, which it is added to if it is new.
pub(super) fn position(names: &mut Vec<String>, name: &str) -> usize {
    names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}
