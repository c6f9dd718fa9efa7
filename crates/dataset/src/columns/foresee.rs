//! The calls of rows, looked up in the journal and not made.

use std::sync::{Arc, Mutex, PoisonError};

use anabranch_engine::workload::BoxFuture;
use anabranch_model::{ChatReply, ChatRequest, EmbedReply, EmbedRequest, Error, Identity, Model, Usage};

use super::paid_model::PaidModel;
use crate::dry::{Answer, Asked, ForeseenCall, RecordedCall};
use crate::journal::{Entry, RecordedReply, RecordedVector};

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
            let recorded = model.recorded_entry(&request).await?.and_then(recorded);
            let answer = recorded.as_ref().map(|recorded| recorded.answer.clone());
            let call = ForeseenCall { asked: Asked::Chat(request), recorded };
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

/// An entry of the journal as the answer of a call.
pub(super) fn recorded(entry: Entry) -> Option<RecordedCall> {
    Some(match entry {
        Entry::Reply(RecordedReply { reply, took }) => {
            let usage = reply.usage;
            RecordedCall { answer: Answer::Reply(reply), usage, took: Some(took), at_ms: None }
        }
        Entry::Refusal(message) => RecordedCall {
            answer: Answer::Refusal(message),
            usage: Usage::default(),
            took: None,
            at_ms: None,
        },
        Entry::Vector(RecordedVector { vector, tokens }) => RecordedCall {
            answer: Answer::Vector(vector.len()),
            usage: Usage { input_tokens: tokens, ..Usage::default() },
            took: None,
            at_ms: None,
        },
    })
}
