//! Calls of models by custom code.

use std::collections::HashMap;
use std::sync::Arc;

use anabranch_engine::limit::Limits;
use anabranch_engine::retry::Retry;
use anabranch_engine::workload::BoxFuture;
use anabranch_engine::{Engine, Policy};
use anabranch_model::{ChatRequest, Message, Model as _};
use anabranch_sampler::ColumnKey;
use anabranch_value::Value;

use crate::columns::{JournalKnowledge, ModelCall, model_fault};
use crate::custom::{Ask, Question};
use crate::fault::Fault;
use crate::job;

/// Answers the questions of custom code with the models of the configuration, under their limits.
pub(crate) struct ModelQuestions {
    /// By column, then by alias.
    pub(crate) models: HashMap<String, HashMap<String, ModelCall>>,
    /// The random numbers of each custom column, by its name.
    pub(crate) keys: HashMap<String, ColumnKey>,
    pub(crate) engine: Engine,
    pub(crate) limits: Limits,
    pub(crate) retry: Retry,
}

impl Ask for ModelQuestions {
    fn ask(&self, question: Question) -> BoxFuture<String, Fault> {
        let Some(call) = self.models.get(&*question.column).and_then(|models| models.get(&question.model))
        else {
            let what =
                format!("the column does not declare the model `{}` in `model_aliases`", question.model);
            return Box::pin(async move { Err(Fault::permanent("model", what)) });
        };
        let Some(key) = self.keys.get(&*question.column) else {
            let what = format!("`{}` is not a custom column", question.column);
            return Box::pin(async move { Err(Fault::permanent("model", what)) });
        };
        let request = messages(&question.messages).map(|messages| {
            let row = question.row.unwrap_or(0);
            let mut stream = key.stream(row, question.number as u32);
            let sample = stream.bits();
            ChatRequest {
                sampling: call.params.resolve(|| stream.unit()),
                sample,
                ..ChatRequest::new(messages)
            }
        });
        let policy = Policy { limit: Some(call.limit), retry: Some(self.retry), ..Policy::default() };
        let (model, engine, limits) = (call.model.clone(), self.engine.clone(), self.limits.clone());
        Box::pin(async move {
            let request = request?;
            if model.known(&request) == JournalKnowledge::Perhaps
                && let Ok(reply) = model.recorded().chat(request.clone()).await
            {
                model.reused(1);
                return Ok(reply.text.to_string());
            }
            let start = move || -> BoxFuture<String, Fault> {
                let reply = model.chat(request.clone());
                Box::pin(async move {
                    let reply = reply.await.map_err(|error| model_fault(&error))?;
                    Ok(reply.text.to_string())
                })
            };
            job::call(&engine, &limits, policy, Arc::new(start)).await
        })
    }
}

/// Messages as custom code writes them: `[{"role": .., "content": ..}]`.
fn messages(value: &Value) -> Result<Vec<Message>, Fault> {
    let wrong =
        || Fault::permanent("model", "messages are a list of maps with `role` and `content`, both text");
    let message = |value: &Value| {
        let role = value.get("role").and_then(Value::as_text).ok_or_else(wrong)?;
        let content = value.get("content").and_then(Value::as_text).ok_or_else(wrong)?;
        match role {
            "system" => Ok(Message::system(content)),
            "user" => Ok(Message::user(content)),
            "assistant" => Ok(Message::assistant(content)),
            _ => {
                Err(Fault::permanent("model", format!("the role {role:?} is not system, user or assistant")))
            }
        }
    };
    value.as_list().filter(|list| !list.is_empty()).ok_or_else(wrong)?.iter().map(message).collect()
}
