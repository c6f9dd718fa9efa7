//! A model as columns use it: with its parameters, its limit and its counters.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anabranch_engine::limit::LimitKey;
use anabranch_engine::retry::Classified;
use anabranch_engine::workload::BoxFuture;
use anabranch_model::{
    ChatParams, ChatReply, ChatRequest, EmbedReply, EmbedRequest, Error, Identity, Model, Usage,
};

use crate::fault::Fault;
use crate::output::ModelMetadata;

/// A model under an alias.
#[derive(Clone)]
pub(crate) struct ModelCall {
    pub(crate) model: Arc<Counted>,
    pub(crate) params: ChatParams,
    /// The limit that all calls to the model count against.
    pub(crate) limit: LimitKey,
    /// Requests in flight at the same time.
    pub(crate) parallel: u32,
}

/// A model that counts its calls and tokens.
pub(crate) struct Counted {
    inner: Arc<dyn Model>,
    counters: Arc<Counters>,
}

#[derive(Default)]
struct Counters {
    calls: AtomicU64,
    input_tokens: AtomicU64,
    output_tokens: AtomicU64,
}

impl Counters {
    fn add(&self, usage: Usage) {
        self.calls.fetch_add(1, Relaxed);
        self.input_tokens.fetch_add(usage.input_tokens, Relaxed);
        self.output_tokens.fetch_add(usage.output_tokens, Relaxed);
    }
}

impl Counted {
    pub(crate) fn new(inner: Arc<dyn Model>) -> Counted {
        Counted { inner, counters: Arc::default() }
    }

    /// The calls and tokens of the model so far.
    pub(crate) fn metadata(&self) -> ModelMetadata {
        ModelMetadata {
            model: self.inner.identity().model.to_string(),
            calls: self.counters.calls.load(Relaxed),
            input_tokens: self.counters.input_tokens.load(Relaxed),
            output_tokens: self.counters.output_tokens.load(Relaxed),
        }
    }
}

impl Model for Counted {
    fn identity(&self) -> &Identity {
        self.inner.identity()
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<ChatReply, Error> {
        let (reply, counters) = (self.inner.chat(request), Arc::clone(&self.counters));
        Box::pin(async move { reply.await.inspect(|reply| counters.add(reply.usage)) })
    }

    fn embed(&self, request: EmbedRequest) -> BoxFuture<EmbedReply, Error> {
        let (reply, counters) = (self.inner.embed(request), Arc::clone(&self.counters));
        Box::pin(async move { reply.await.inspect(|reply| counters.add(reply.usage)) })
    }
}

/// An error of a model as the fault of a cell.
pub(crate) fn model_fault(error: &Error) -> Fault {
    Fault {
        class: error.class().into(),
        message: error.to_string(),
        severity: error.severity(),
        attempts: error.attempts(),
        column: None,
    }
}
