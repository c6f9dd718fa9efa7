//! A model whose replies are recorded: a reply that the journal has is not paid for again.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anabranch_content::Address;
use anabranch_engine::clock::Clock;
use anabranch_engine::limit::{LimitKey, Limits, Quota};
use anabranch_engine::workload::BoxFuture;
use anabranch_model::{
    ChatReply, ChatRequest, EmbedReply, EmbedRequest, Error, Identity, Model, RateWindow, Rates, Role, Usage,
};
use futures_util::future::try_join_all;

use super::counters::Counters;
use super::flights::Flights;
use crate::budget::{Meter, Pass};
use crate::call_times::{CallTimer, CallTimes};
use crate::config::Price;
use crate::journal::{
    Entry, Figures, Journal, JournalSlot, Keys, Origin, RecordedEntry, RecordedReply, RecordedVector,
};
use crate::output::SpendLine;

/// A model with its journal, its limit and its counters, as one column uses it. Clones share them.
#[derive(Clone)]
pub(crate) struct PaidModel {
    column: Arc<ColumnModel>,
}

/// A model as one column uses it.
struct ColumnModel {
    shared: Arc<Shared>,
    counters: Arc<Counters>,
    /// The origin of the column's entries, known once there is a journal.
    origin: OnceLock<Origin>,
}

struct Shared {
    inner: Arc<dyn Model>,
    alias: String,
    keys: Keys,
    journal: JournalSlot,
    limits: Limits,
    limit: LimitKey,
    clock: Arc<dyn Clock>,
    /// The counters of all columns that use the model.
    columns: Mutex<Vec<Arc<Counters>>>,
    /// Whether the server has reported its token limit.
    counts_tokens: AtomicBool,
    flights: Flights,
    meter: Meter,
    price: Option<Price>,
    times: CallTimer,
}

impl PaidModel {
    /// The model of an alias. [`PaidModel::for_column`] derives the models of columns from it.
    pub(crate) fn new(
        alias: &str,
        inner: Arc<dyn Model>,
        journal: JournalSlot,
        (limits, limit): (Limits, LimitKey),
        (meter, price): (Meter, Option<Price>),
        clock: Arc<dyn Clock>,
    ) -> PaidModel {
        let (keys, alias, flights) = (Keys::new(&*inner), alias.to_owned(), Flights::default());
        let (columns, counts_tokens) = (Mutex::default(), AtomicBool::new(false));
        let shared = Shared {
            inner,
            alias,
            keys,
            journal,
            limits,
            limit,
            clock,
            columns,
            counts_tokens,
            flights,
            meter,
            price,
            times: CallTimer::default(),
        };
        PaidModel::with_counters(Arc::new(shared), Arc::default())
    }

    fn with_counters(shared: Arc<Shared>, counters: Arc<Counters>) -> PaidModel {
        PaidModel { column: Arc::new(ColumnModel { shared, counters, origin: OnceLock::new() }) }
    }

    /// The same model, with counters for a column of this name.
    pub(crate) fn for_column(&self, name: &str) -> PaidModel {
        let shared = Arc::clone(&self.column.shared);
        let mut columns = shared.columns.lock().unwrap_or_else(PoisonError::into_inner);
        let known = columns.iter().find(|counters| counters.column == name).map(Arc::clone);
        let counters = known.unwrap_or_else(|| {
            columns.push(Arc::new(Counters::new(name)));
            Arc::clone(&columns[columns.len() - 1])
        });
        drop(columns);
        PaidModel::with_counters(shared, counters)
    }

    /// The calls and tokens so far of each column that uses the model.
    pub(crate) fn spent(&self) -> Vec<SpendLine> {
        let shared = &self.column.shared;
        let columns = shared.columns.lock().unwrap_or_else(PoisonError::into_inner);
        let Identity { provider, model } = shared.inner.identity();
        let line = |counters: &Arc<Counters>| SpendLine {
            column: counters.column.clone(),
            alias: shared.alias.clone(),
            provider: provider.to_string(),
            model: model.to_string(),
            reused: counters.reused(),
            figures: counters.figures(),
        };
        columns.iter().map(line).collect()
    }

    /// The alias of the model, and the times of all calls to it so far.
    pub(crate) fn call_times(&self) -> (String, CallTimes) {
        let shared = &self.column.shared;
        (shared.alias.clone(), shared.times.read())
    }

    /// The journal's knowledge of a request, without reading the disk.
    pub(crate) fn known(&self, request: &ChatRequest) -> JournalKnowledge {
        let shared = &self.column.shared;
        let Some(journal) = shared.journal.get() else { return JournalKnowledge::NoJournal };
        let key = shared.keys.chat(request);
        if journal.surely_lacks(&key) { JournalKnowledge::Lacking(key) } else { JournalKnowledge::Perhaps }
    }

    /// Asks for a reply that the journal lacks.
    fn ask(&self, request: ChatRequest, key: Address, pass: Pass) -> BoxFuture<ChatReply, Error> {
        let column = Arc::clone(&self.column);
        Box::pin(async move { column.ask(request, Some(key), &pass).await })
    }

    /// Returns the reply from the journal, or calls the model.
    fn find_or_ask(&self, request: ChatRequest, pass: Pass) -> BoxFuture<ChatReply, Error> {
        let column = Arc::clone(&self.column);
        Box::pin(async move {
            let shared = &column.shared;
            let Some(journal) = shared.journal.get() else { return column.ask(request, None, &pass).await };
            let key = shared.keys.chat(&request);
            if let Some(reply) = shared.recorded_reply(journal, &key).await {
                column.counters.reuse(1);
                return reply;
            }
            column.ask(request, Some(key), &pass).await
        })
    }

    /// The model for a conversation whose first reply the journal lacks, if the key is known.
    pub(crate) fn conversation(&self, lacking: Option<Address>) -> LackingModel {
        let pass = self.column.shared.meter.conversation();
        LackingModel { model: self.clone(), key: Mutex::new(lacking), pass }
    }

    /// The model as far as the journal knows it.
    pub(crate) fn recorded(&self) -> RecordedModel {
        RecordedModel { shared: Arc::clone(&self.column.shared), missed: Arc::default() }
    }

    /// The journal's entry for a request.
    pub(crate) async fn recorded_entry(&self, request: &ChatRequest) -> Result<Option<RecordedEntry>, Error> {
        let shared = &self.column.shared;
        shared.entry(&shared.keys.chat(request)).await
    }

    /// The journal's entry for an embedded text.
    pub(crate) async fn recorded_text(&self, text: &str) -> Result<Option<RecordedEntry>, Error> {
        let shared = &self.column.shared;
        shared.entry(&shared.keys.embedding(text)).await
    }

    /// Counts replies of the journal that took the place of calls.
    pub(crate) fn reused(&self, calls: u32) {
        self.column.counters.reuse(calls.into());
    }

    /// The vectors of texts, if the journal has all of them.
    pub(crate) async fn recorded_vectors(&self, texts: &[Arc<str>]) -> Result<Option<Vec<Vec<f64>>>, Error> {
        let shared = &self.column.shared;
        let Some(journal) = shared.journal.get() else { return Ok(None) };
        let mut vectors = Vec::with_capacity(texts.len());
        for text in texts {
            match shared.recorded_vector(journal, text).await? {
                Some(vector) => vectors.push(vector),
                None => return Ok(None),
            }
        }
        self.reused(1);
        Ok(Some(vectors))
    }
}

impl Model for PaidModel {
    fn identity(&self) -> &Identity {
        self.column.shared.inner.identity()
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<ChatReply, Error> {
        self.find_or_ask(request, Pass::Free)
    }

    fn embed(&self, request: EmbedRequest) -> BoxFuture<EmbedReply, Error> {
        let column = Arc::clone(&self.column);
        Box::pin(async move { column.embed(request).await })
    }
}

impl ColumnModel {
    /// Asks the model, and records its reply under the key.
    async fn ask(&self, request: ChatRequest, key: Option<Address>, pass: &Pass) -> Result<ChatReply, Error> {
        let shared = &self.shared;
        let _flight = match key {
            Some(key) => Some(shared.flights.enter(key).await),
            None => None,
        };
        // Another column of the row may have made the same request in the meantime.
        if let (Some(journal), Some(key)) = (shared.journal.get(), &key)
            && !journal.lacks(key)
            && let Some(reply) = shared.recorded_reply(journal, key).await
        {
            self.counters.reuse(1);
            return reply;
        }
        let asked = Figures {
            calls: 1,
            cells: u64::from(begins_cell(&request)),
            prompt_bytes: request.messages.iter().map(|message| message.text.len() as u64).sum(),
            ..Figures::default()
        };
        let call = shared.meter.begin_call(pass)?;
        let began = shared.clock.now();
        let reply = shared.inner.chat(request).await;
        let took = shared.clock.now().saturating_duration_since(began);
        shared.times.add(took);
        let took_ms = took.as_millis() as u64;
        let (entry, figures) = match &reply {
            Ok(reply) => {
                shared.tell_limit(reply.usage, reply.rates.as_deref());
                let figures = Figures { took_ms, ..with_tokens(asked, reply.usage) };
                (Entry::Reply(RecordedReply { reply: reply.clone(), took }), figures)
            }
            Err(Error::Refused { message, .. }) => {
                (Entry::Refusal(message.clone()), Figures { took_ms, ..asked })
            }
            Err(_) => return reply,
        };
        let recorded = match (shared.journal.get(), key) {
            (Some(journal), Some(key)) => journal.record(key, (self.origin(journal), figures), &entry).await,
            _ => Ok(()),
        };
        // After it was recorded: no report of a build counts a call that a kill could take from the journal.
        self.counters.add(&figures);
        call.answered(&figures, shared.price.as_ref());
        recorded.map_err(|error| journal_error(&error))?;
        reply
    }

    /// Asks for vectors, and records each. The first one has the figures of the call.
    async fn embed(&self, request: EmbedRequest) -> Result<EmbedReply, Error> {
        let shared = &self.shared;
        let metered = shared.meter.begin_call(&shared.meter.conversation())?;
        let began = shared.clock.now();
        let reply = shared.inner.embed(request.clone()).await;
        let took = shared.clock.now().saturating_duration_since(began);
        shared.times.add(took);
        let (reply, took_ms) = (reply?, took.as_millis() as u64);
        shared.tell_limit(reply.usage, reply.rates.as_deref());
        let mut seen = HashSet::new();
        let texts = request.texts.iter().zip(&reply.vectors);
        let texts: Vec<_> = texts.filter(|(text, _)| seen.insert(&***text)).collect();
        let prompt_bytes = request.texts.iter().map(|text| text.len() as u64).sum();
        let call = Figures { calls: 1, took_ms, prompt_bytes, ..Figures::default() };
        let call = with_tokens(call, reply.usage);
        let mut recorded = Ok(Vec::new());
        if let Some(journal) = shared.journal.get() {
            let records = texts.iter().enumerate().map(|(number, (text, vector))| {
                let entry = Entry::Vector(RecordedVector { vector: (*vector).clone() });
                let figures = if number == 0 { call } else { Figures::default() };
                let (key, figures) = (shared.keys.embedding(text), Figures { cells: 1, ..figures });
                async move { journal.record(key, (self.origin(journal), figures), &entry).await }
            });
            recorded = try_join_all(records.collect::<Vec<_>>()).await;
        }
        self.counters.add(&Figures { cells: texts.len() as u64, ..call });
        metered.answered(&call, shared.price.as_ref());
        recorded.map_err(|error| journal_error(&error))?;
        Ok(reply)
    }

    fn origin(&self, journal: &Journal) -> &Origin {
        self.origin.get_or_init(|| {
            let shared = &self.shared;
            journal.origin(&self.counters.column, &shared.alias, shared.inner.identity())
        })
    }
}

/// True for the first request for a cell. Later ones have another attempt number, or repeat the model's replies.
fn begins_cell(request: &ChatRequest) -> bool {
    request.attempt == 0 && request.messages.iter().all(|message| message.role != Role::Assistant)
}

fn with_tokens(figures: Figures, usage: Usage) -> Figures {
    let Usage { input_tokens, output_tokens, cached_tokens } = usage;
    Figures { input_tokens, output_tokens, cached_tokens: cached_tokens.unwrap_or(0), ..figures }
}

impl Shared {
    /// Reports the tokens of a call to the limit, and the server's own rate limits.
    fn tell_limit(&self, usage: Usage, rates: Option<&Rates>) {
        if self.counts_tokens.load(Relaxed) {
            let used = usage.input_tokens.saturating_add(usage.output_tokens);
            self.limits.used(self.limit, 0, u32::try_from(used).unwrap_or(u32::MAX));
        }
        let Some(rates) = rates else { return };
        let now = self.clock.now();
        let quota = |window: &RateWindow| Quota {
            limit: window.limit,
            remaining: window.remaining,
            full_at: window.full_after.map(|after| now + after),
        };
        if let Some(requests) = &rates.requests {
            self.limits.feed_requests(self.limit, quota(requests));
        }
        if let Some(tokens) = &rates.tokens {
            self.counts_tokens.store(true, Relaxed);
            self.limits.feed_tokens(self.limit, quota(tokens));
        }
    }

    async fn entry(&self, key: &Address) -> Result<Option<RecordedEntry>, Error> {
        let Some(journal) = self.journal.get() else { return Ok(None) };
        journal.recorded(key).await.map_err(|error| journal_error(&error))
    }

    async fn recorded_reply(&self, journal: &Journal, key: &Address) -> Option<Result<ChatReply, Error>> {
        let found = match journal.find(key).await {
            Ok(found) => found?,
            Err(error) => return Some(Err(journal_error(&error))),
        };
        let reply = match found {
            Entry::Reply(RecordedReply { reply, .. }) => Ok(reply),
            Entry::Refusal(message) => {
                let Identity { provider, model } = self.inner.identity();
                Err(Error::Refused { endpoint: format!("{provider}/{model}").into(), message })
            }
            Entry::Vector(_) => return None,
        };
        Some(reply)
    }

    async fn recorded_vector(&self, journal: &Journal, text: &str) -> Result<Option<Vec<f64>>, Error> {
        let found = journal.find(&self.keys.embedding(text)).await.map_err(|error| journal_error(&error))?;
        Ok(found.and_then(|entry| match entry {
            Entry::Vector(RecordedVector { vector, .. }) => Some(vector),
            Entry::Reply(_) | Entry::Refusal(_) => None,
        }))
    }
}

fn journal_error(error: &crate::journal::Error) -> Error {
    Error::Setup(error.to_string())
}

/// The journal's knowledge of a request, without reading the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JournalKnowledge {
    NoJournal,
    /// The journal has no reply under this key.
    Lacking(Address),
    /// The journal may have one.
    Perhaps,
}

/// A model for one conversation. The journal is not searched again for a first reply that it lacks.
pub(crate) struct LackingModel {
    model: PaidModel,
    key: Mutex<Option<Address>>,
    pass: Pass,
}

impl Model for LackingModel {
    fn identity(&self) -> &Identity {
        self.model.identity()
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<ChatReply, Error> {
        match self.key.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(key) => self.model.ask(request, key, self.pass.clone()),
            None => self.model.find_or_ask(request, self.pass.clone()),
        }
    }

    fn embed(&self, request: EmbedRequest) -> BoxFuture<EmbedReply, Error> {
        self.model.embed(request)
    }
}

/// A model that knows the recorded replies, and nothing else.
pub(crate) struct RecordedModel {
    shared: Arc<Shared>,
    missed: Arc<AtomicBool>,
}

impl RecordedModel {
    /// True once a reply was requested that it does not have.
    pub(crate) fn has_missed(&self) -> bool {
        self.missed.load(Relaxed)
    }
}

impl Model for RecordedModel {
    fn identity(&self) -> &Identity {
        self.shared.inner.identity()
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<ChatReply, Error> {
        let (shared, missed) = (Arc::clone(&self.shared), Arc::clone(&self.missed));
        Box::pin(async move {
            if let Some(journal) = shared.journal.get()
                && let Some(reply) = shared.recorded_reply(journal, &shared.keys.chat(&request)).await
            {
                return reply;
            }
            missed.store(true, Relaxed);
            Err(Error::Setup("the journal has no such reply".to_owned()))
        })
    }

    fn embed(&self, _: EmbedRequest) -> BoxFuture<EmbedReply, Error> {
        Box::pin(async { Err(Error::Setup("the journal answers for single texts only".to_owned())) })
    }
}
