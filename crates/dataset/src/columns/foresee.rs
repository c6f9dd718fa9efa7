//! The calls of rows, looked up in the journal and not made.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anabranch_engine::workload::BoxFuture;
use anabranch_model::{ChatReply, ChatRequest, EmbedReply, EmbedRequest, Error, Identity, Model, Usage};

use super::paid_model::PaidModel;
use crate::dry::{Answer, CallRequest, ForeseenCall, RecordedCall};
use crate::journal::{Entry, RecordedEntry, RecordedReply, RecordedVector};

/// A model that answers from the journal, and keeps the requests with their answers.
pub(super) struct TracedModel {
    model: PaidModel,
    calls: Arc<Mutex<Vec<ForeseenCall>>>,
}

impl TracedModel {
    pub(super) fn new(model: &PaidModel) -> TracedModel {
        TracedModel { model: model.clone(), calls: Arc::default() }
    }

    /// The requests so far, with their answers.
    pub(super) fn into_calls(self) -> Vec<ForeseenCall> {
        std::mem::take(&mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Model for TracedModel {
    fn identity(&self) -> &Identity {
        self.model.identity()
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<ChatReply, Error> {
        let (model, calls) = (self.model.clone(), Arc::clone(&self.calls));
        Box::pin(async move {
            let recorded = model.recorded_entry(&request).await?.map(recorded);
            let answer = recorded.as_ref().map(|recorded| recorded.answer.clone());
            let call = ForeseenCall { asked: CallRequest::Chat(request), recorded };
            calls.lock().unwrap_or_else(PoisonError::into_inner).push(call);
            match answer {
                Some(Answer::Reply(reply)) => Ok(reply),
                Some(Answer::Refusal(message)) => {
                    let Identity { provider, model } = model.identity();
                    Err(Error::Refused { endpoint: format!("{provider}/{model}").into(), message })
                }
                Some(Answer::Vector(_)) | None => {
                    Err(Error::Setup("the journal has no such reply".to_owned()))
                }
            }
        })
    }

    fn embed(&self, _: EmbedRequest) -> BoxFuture<EmbedReply, Error> {
        Box::pin(async { Err(Error::Setup("the journal answers for single texts only".to_owned())) })
    }
}

/// An entry of the journal as a recorded call.
pub(super) fn recorded(found: RecordedEntry) -> RecordedCall {
    let RecordedEntry { at_ms, figures, entry, .. } = found;
    // Of the texts that were embedded together, the first has the tokens and the time of all.
    let usage = Usage {
        input_tokens: figures.input_tokens,
        output_tokens: figures.output_tokens,
        cached_tokens: (figures.cached_tokens > 0).then_some(figures.cached_tokens),
    };
    let took = (figures.calls > 0).then(|| Duration::from_millis(figures.took_ms));
    let (answer, usage, took) = match entry {
        Entry::Reply(RecordedReply { reply, took }) => {
            let usage = reply.usage;
            (Answer::Reply(reply), usage, Some(took))
        }
        Entry::Refusal(message) => (Answer::Refusal(message), usage, took),
        Entry::Vector(RecordedVector { vector }) => (Answer::Vector(vector.len()), usage, took),
    };
    RecordedCall { answer, usage, took, at_ms }
}
