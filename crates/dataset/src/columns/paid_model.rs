//! A model whose replies are recorded: a reply that the journal has is not paid for again.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_content::Address;
use anabranch_engine::clock::Clock;
use anabranch_engine::limit::{LimitKey, Limits, Quota};
use anabranch_engine::workload::BoxFuture;
use anabranch_model::{
    ChatReply, ChatRequest, EmbedReply, EmbedRequest, Error, Identity, Model, RateWindow, Rates, Usage,
};
use futures_util::future::try_join_all;

use super::flights::Flights;
use crate::journal::{Entry, Journal, JournalSlot, Keys, RecordedReply, RecordedVector};
use crate::output::ModelMetadata;

/// A model with its journal, its limit and its counters. Clones share them.
#[derive(Clone)]
pub(crate) struct PaidModel {
    shared: Arc<Shared>,
}

struct Shared {
    inner: Arc<dyn Model>,
    keys: Keys,
    journal: JournalSlot,
    limits: Limits,
    limit: LimitKey,
    clock: Arc<dyn Clock>,
    counters: Counters,
    /// The server has told how many tokens it takes.
    counts_tokens: AtomicBool,
    flights: Flights,
}

#[derive(Default)]
struct Counters {
    calls: AtomicU64,
    reused: AtomicU64,
    input_tokens: AtomicU64,
    output_tokens: AtomicU64,
}

impl PaidModel {
    pub(crate) fn new(
        inner: Arc<dyn Model>,
        journal: JournalSlot,
        (limits, limit): (Limits, LimitKey),
        clock: Arc<dyn Clock>,
    ) -> PaidModel {
        let keys = Keys::new(&*inner);
        let (counters, counts_tokens) = (Counters::default(), AtomicBool::new(false));
        let flights = Flights::default();
        let shared = Shared { inner, keys, journal, limits, limit, clock, counters, counts_tokens, flights };
        PaidModel { shared: Arc::new(shared) }
    }

    /// The calls and tokens of the model so far.
    pub(crate) fn metadata(&self) -> ModelMetadata {
        let Counters { calls, reused, input_tokens, output_tokens } = &self.shared.counters;
        ModelMetadata {
            model: self.shared.inner.identity().model.to_string(),
            calls: calls.load(Relaxed),
            reused: reused.load(Relaxed),
            input_tokens: input_tokens.load(Relaxed),
            output_tokens: output_tokens.load(Relaxed),
        }
    }

    /// The journal's knowledge of a request, as far as it can be told without reading the disk.
    pub(crate) fn known(&self, request: &ChatRequest) -> Known {
        let Some(journal) = self.shared.journal.get() else { return Known::NoJournal };
        let key = self.shared.keys.chat(request);
        if journal.surely_lacks(&key) { Known::Lacking(key) } else { Known::Perhaps }
    }

    /// Asks for a reply that the journal lacks.
    pub(crate) fn ask(&self, request: ChatRequest, key: Address) -> BoxFuture<ChatReply, Error> {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move { shared.ask(request, key).await })
    }

    /// The model as far as the journal knows it.
    pub(crate) fn recorded(&self) -> RecordedModel {
        RecordedModel { shared: Arc::clone(&self.shared), missed: Arc::default() }
    }

    /// The journal's entry for a request.
    pub(crate) async fn recorded_entry(&self, request: &ChatRequest) -> Result<Option<Entry>, Error> {
        self.shared.entry(&self.shared.keys.chat(request)).await
    }

    /// The journal's entry for an embedded text.
    pub(crate) async fn recorded_text(&self, text: &str) -> Result<Option<Entry>, Error> {
        self.shared.entry(&self.shared.keys.embedding(text)).await
    }

    /// Counts replies of the journal that took the place of calls.
    pub(crate) fn reused(&self, calls: u32) {
        self.shared.counters.reused.fetch_add(calls.into(), Relaxed);
    }

    /// The vectors of texts, if the journal has all of them.
    pub(crate) async fn recorded_vectors(&self, texts: &[Arc<str>]) -> Result<Option<Vec<Vec<f64>>>, Error> {
        let shared = &self.shared;
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
        self.shared.inner.identity()
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<ChatReply, Error> {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let Some(journal) = shared.journal.get() else {
                return shared.inner.chat(request).await.inspect(|reply| shared.called(reply));
            };
            let key = shared.keys.chat(&request);
            if let Some(reply) = shared.recorded_reply(journal, &key).await {
                shared.counters.reused.fetch_add(1, Relaxed);
                return reply;
            }
            shared.ask(request, key).await
        })
    }

    fn embed(&self, request: EmbedRequest) -> BoxFuture<EmbedReply, Error> {
        let shared = Arc::clone(&self.shared);
        Box::pin(async move {
            let reply = shared.inner.embed(request.clone()).await?;
            shared.count(reply.usage, reply.rates.as_deref());
            let Some(journal) = shared.journal.get() else { return Ok(reply) };
            let tokens = reply.usage.input_tokens / request.texts.len().max(1) as u64;
            let mut seen = HashSet::new();
            let texts = request.texts.iter().zip(&reply.vectors).filter(|(text, _)| seen.insert(&***text));
            let records = texts.map(|(text, vector)| {
                let entry = Entry::Vector(RecordedVector { vector: vector.clone(), tokens });
                let key = shared.keys.embedding(text);
                async move { journal.record(key, &entry).await }
            });
            try_join_all(records.collect::<Vec<_>>()).await.map_err(|error| journal_error(&error))?;
            Ok(reply)
        })
    }
}

impl Shared {
    /// Asks the model, and records its reply.
    async fn ask(&self, request: ChatRequest, key: Address) -> Result<ChatReply, Error> {
        let _flight = self.flights.enter(key).await;
        // Another column of the row may have asked the same meanwhile.
        if let Some(journal) = self.journal.get()
            && !journal.lacks(&key)
            && let Some(reply) = self.recorded_reply(journal, &key).await
        {
            self.counters.reused.fetch_add(1, Relaxed);
            return reply;
        }
        let began = self.clock.now();
        let reply = self.inner.chat(request).await;
        let entry = match &reply {
            Ok(reply) => {
                self.called(reply);
                let took = self.clock.now().saturating_duration_since(began);
                Entry::Reply(RecordedReply { reply: reply.clone(), took })
            }
            Err(Error::Refused { message, .. }) => Entry::Refusal(message.clone()),
            Err(_) => return reply,
        };
        if let Some(journal) = self.journal.get() {
            journal.record(key, &entry).await.map_err(|error| journal_error(&error))?;
        }
        reply
    }

    fn called(&self, reply: &ChatReply) {
        self.count(reply.usage, reply.rates.as_deref());
    }

    /// Counts a call, and tells the limit what the server said about its own.
    fn count(&self, usage: Usage, rates: Option<&Rates>) {
        self.counters.calls.fetch_add(1, Relaxed);
        self.counters.input_tokens.fetch_add(usage.input_tokens, Relaxed);
        self.counters.output_tokens.fetch_add(usage.output_tokens, Relaxed);
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

    async fn entry(&self, key: &Address) -> Result<Option<Entry>, Error> {
        let Some(journal) = self.journal.get() else { return Ok(None) };
        journal.find(key).await.map_err(|error| journal_error(&error))
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

/// The journal's knowledge of a request, as far as it can be told without reading the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    NoJournal,
    /// The journal has no reply under this key.
    Lacking(Address),
    /// The journal may have one.
    Perhaps,
}

/// A model whose first reply is lacking in the journal: it is asked without another look.
pub(crate) struct LackingModel {
    pub(crate) model: PaidModel,
    pub(crate) key: Mutex<Option<Address>>,
}

impl Model for LackingModel {
    fn identity(&self) -> &Identity {
        self.model.identity()
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<ChatReply, Error> {
        match self.key.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(key) => self.model.ask(request, key),
            None => self.model.chat(request),
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
    /// True once it was asked for a reply that it does not have.
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
