//! Models that custom code asks.

use std::collections::HashMap;
use std::sync::Arc;

use anabranch_engine::workload::BoxFuture;
use anabranch_model::{ChatRequest, Message, Model};
use anabranch_sampler::ColumnKey;
use anabranch_value::Value;
use tokio::sync::Semaphore;

use crate::columns::{ModelCall, model_fault};
use crate::custom::{Ask, Question};
use crate::fault::Fault;

/// Answers the questions of custom code with the models of the configuration.
pub(crate) struct ModelQuestions {
    models: HashMap<String, (ModelCall, Arc<Semaphore>)>,
    seed: u64,
}

impl ModelQuestions {
    pub(crate) fn new(models: HashMap<String, ModelCall>, seed: u64) -> ModelQuestions {
        let bounded = |(alias, call): (String, ModelCall)| {
            let slots = Arc::new(Semaphore::new(call.parallel as usize));
            (alias, (call, slots))
        };
        ModelQuestions { models: models.into_iter().map(bounded).collect(), seed }
    }
}

impl Ask for ModelQuestions {
    fn ask(&self, question: Question) -> BoxFuture<String, Fault> {
        let Some((call, slots)) = self.models.get(&question.model) else {
            let what =
                format!("the column does not declare the model `{}` in `model_aliases`", question.model);
            return Box::pin(async move { Err(Fault::permanent("model", what)) });
        };
        let request = messages(&question.messages).map(|messages| {
            let row = question.row.unwrap_or(0);
            let mut stream = ColumnKey::new(self.seed, &question.column).stream(row, question.number as u32);
            let sample = stream.bits();
            ChatRequest {
                sampling: call.params.resolve(|| stream.unit()),
                sample,
                ..ChatRequest::new(messages)
            }
        });
        let (model, slots) = (Arc::clone(&call.model), Arc::clone(slots));
        Box::pin(async move {
            let request = request?;
            let _slot = slots.acquire().await.map_err(|_| Fault::permanent("stopped", "the build ended"))?;
            let reply = model.chat(request).await.map_err(|error| model_fault(&error))?;
            Ok(reply.text.to_string())
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
