//! Conversations: a request is repeated until the reply fits.

use std::sync::Arc;

use anabranch_value::Value;

use crate::error::{Error, shorten};
use crate::reply::{self, ReplyProblem};
use crate::request::{ChatReply, ChatRequest, Finish, Message, Model, Role, Usage};

/// The limits for requesting a reply again when it does not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turns {
    /// Corrections within a conversation: the model gets its reply and a description of the problem.
    pub corrections: u32,
    /// New conversations after the first.
    pub restarts: u32,
    /// Further rounds of conversations after a failed one, for rows whose retry was requested.
    pub rounds: u32,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns { corrections: 1, restarts: 5, rounds: 0 }
    }
}

/// A value that fits, and how it came about.
#[derive(Clone, Debug)]
pub struct ConversationOutcome<T> {
    pub value: T,
    /// The reply that fits.
    pub reply: ChatReply,
    /// The tokens of all calls.
    pub usage: Usage,
    /// Calls that were made, at least 1.
    pub calls: u32,
    /// The messages of the last conversation, with the reply that fits.
    pub trace: Vec<TraceMessage>,
}

/// A message of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceMessage {
    pub role: Role,
    pub content: Arc<str>,
    pub reasoning: Option<Arc<str>>,
}

impl TraceMessage {
    /// The message as `{role, content: [{type, text}], reasoning_content}`; the last only if there is any.
    pub fn to_value(&self) -> Value {
        let block = Value::map([("type", Value::from("text")), ("text", Arc::clone(&self.content).into())]);
        let mut parts = vec![("role", Value::from(self.role.as_str())), ("content", Value::list([block]))];
        if let Some(reasoning) = &self.reasoning {
            parts.push(("reasoning_content", Arc::clone(reasoning).into()));
        }
        Value::map(parts)
    }
}

/// Asks a model until `check` accepts a reply.
///
/// A round ends if all of its conversations failed, or if the model refuses. Only the error of the last round is returned.
/// Other errors of the transport are returned at once. Each conversation has an `attempt` of its own, so that a model that is
/// deterministic in it does not repeat itself.
pub async fn converse<T>(
    model: &dyn Model,
    request: ChatRequest,
    check: impl Fn(&ChatReply) -> Result<T, ReplyProblem> + Send + Sync,
    turns: Turns,
) -> Result<ConversationOutcome<T>, Error> {
    let mut spent = CallTotals::default();
    let mut round = 0;
    loop {
        match converse_round(model, &request, &check, turns, round, &mut spent).await {
            Err(Error::ReplyFormat { .. } | Error::Refused { .. }) if round < turns.rounds => round += 1,
            ended => return ended,
        }
    }
}

/// The calls and tokens of all rounds.
#[derive(Default)]
struct CallTotals {
    calls: u32,
    usage: Usage,
}

async fn converse_round<T>(
    model: &dyn Model,
    request: &ChatRequest,
    check: &(impl Fn(&ChatReply) -> Result<T, ReplyProblem> + Send + Sync),
    turns: Turns,
    round: u32,
    spent: &mut CallTotals,
) -> Result<ConversationOutcome<T>, Error> {
    let mut last = ReplyProblem(String::new());
    let first = round.saturating_mul(turns.restarts.saturating_add(1));
    for restart in 0..=turns.restarts {
        let mut messages = Arc::clone(&request.messages);
        // Replies and corrections. A blank reply is here but not in `messages`: some servers refuse an empty message.
        let mut said: Vec<TraceMessage> = Vec::new();
        for correction in 0..=turns.corrections {
            let mut call = ChatRequest { messages: Arc::clone(&messages), ..request.clone() };
            call.attempt = first.saturating_add(restart);
            spent.calls = spent.calls.saturating_add(1);
            let reply = model.chat(call).await?;
            spent.usage += reply.usage;
            match check(&reply) {
                Ok(value) => {
                    let CallTotals { calls, usage } = *spent;
                    let trace = trace(&request.messages, said, &reply);
                    return Ok(ConversationOutcome { value, reply, usage, calls, trace });
                }
                Err(problem) => last = enriched(problem, &reply),
            }
            let answer = Message::assistant(Arc::clone(&reply.text));
            said.push(traced(&answer, reply.reasoning));
            if correction < turns.corrections && !reply.text.trim().is_empty() {
                let correction = Message::user(correction_text(&last));
                said.push(traced(&correction, None));
                messages = messages.iter().cloned().chain([answer, correction]).collect();
            }
        }
    }
    let identity = model.identity();
    let endpoint = format!("{}/{}", identity.provider, identity.model).into();
    Err(Error::ReplyFormat { endpoint, attempts: spent.calls, problem: shorten(&last.0) })
}

/// The messages of a conversation that ended with `reply`.
fn trace(asked: &[Message], said: Vec<TraceMessage>, reply: &ChatReply) -> Vec<TraceMessage> {
    let mut trace = Vec::with_capacity(asked.len() + said.len() + 1);
    trace.extend(asked.iter().map(|message| traced(message, None)));
    trace.extend(said);
    let (role, content) = (Role::Assistant, Arc::clone(&reply.text));
    trace.push(TraceMessage { role, content, reasoning: reply.reasoning.clone() });
    trace
}

fn traced(message: &Message, reasoning: Option<Arc<str>>) -> TraceMessage {
    TraceMessage { role: message.role, content: Arc::clone(&message.text), reasoning }
}

/// Adds to a problem that the reply was cut off, because that needs another fix.
fn enriched(problem: ReplyProblem, reply: &ChatReply) -> ReplyProblem {
    match reply.finish {
        Finish::Length => {
            let spent = reply.usage.output_tokens;
            ReplyProblem(format!("the reply is cut off after {spent} tokens (raise `max_tokens`): {problem}"))
        }
        _ => problem,
    }
}

fn correction_text(problem: &ReplyProblem) -> String {
    format!("This reply cannot be used: {problem}.\n\nSend the whole reply again with this put right.")
}

/// The text added to a prompt for a reply that follows a schema.
pub fn structured_suffix(schema: &Value) -> String {
    format!(
        "\n\nReply with one JSON value and nothing else, inside a ```json code block. The value must be valid under this \
         JSON schema:\n<response_schema>\n{}\n</response_schema>",
        schema.to_json()
    )
}

/// The end of a judge's prompt. `schema` is that of [`crate::judge::schema`].
pub fn judge_suffix(scores: &[crate::judge::Score], schema: &Value) -> String {
    let mut text =
        String::from("\n\nJudge by these scores. Give your reasoning first, then choose one option each.\n");
    for score in scores {
        text.push_str(&format!("\n- `{}`: {}\n", score.name, score.description));
        for (option, meaning) in &score.options {
            text.push_str(&format!("  - {}: {meaning}\n", option.to_json()));
        }
    }
    text.push_str(&structured_suffix(schema));
    text
}

/// The text added to a prompt for a reply that is code.
pub fn code_suffix(language: &str) -> String {
    let tag = reply::tag(language);
    let dialect = match language.split_once(':') {
        Some((_, dialect)) => format!("{tag} (dialect: {dialect})"),
        None => tag.to_owned(),
    };
    format!(
        "\n\nWrite the code in {dialect}. Reply with one ```{tag} code block that contains all of the code."
    )
}
