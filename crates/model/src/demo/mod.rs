//! The demo model: works offline, invents replies, says so.

mod code;
mod prose;
mod random;
mod scalar;
mod value;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_engine::clock::Clock;
use anabranch_engine::workload::BoxFuture;
use anabranch_value::Value;

use crate::error::Error;
use crate::request::{
    ChatReply, ChatRequest, EmbedReply, EmbedRequest, Finish, Identity, Model, Role, Usage,
};
use random::Random;

/// An offline model for trials. Its replies are deterministic in the request's messages, `sample` and `attempt`, follow
/// a requested schema or code language, and are marked as demo text.
#[derive(Clone)]
pub struct Demo {
    identity: Identity,
    dimensions: usize,
    simulation: Option<Simulation>,
    /// The number of calls so far, which decides which calls fail.
    calls: Arc<AtomicU64>,
}

/// A server's behaviour that the demo model plays.
#[derive(Clone)]
pub struct Simulation {
    pub clock: Arc<dyn Clock>,
    /// The mean time of a call; calls take from half of it to one and a half.
    pub latency: Duration,
    /// The share of calls that fail with a server error, from 0 to 1. A second try of the same call may succeed.
    pub failure_rate: f64,
}

impl Default for Demo {
    fn default() -> Demo {
        Demo::new()
    }
}

impl Demo {
    /// The model, with 64 dimensions in embeddings and without delays.
    pub fn new() -> Demo {
        let identity = Identity { provider: "demo".into(), model: "demo".into() };
        Demo { identity, dimensions: 64, simulation: None, calls: Arc::default() }
    }

    /// The same model with this number of dimensions in embeddings, at most 65,536.
    pub fn with_dimensions(self, dimensions: u32) -> Demo {
        Demo { dimensions: dimensions.clamp(1, 65_536) as usize, ..self }
    }

    /// The same model with a server's delays and failures.
    pub fn with_simulation(self, simulation: Simulation) -> Demo {
        Demo { simulation: Some(simulation), ..self }
    }

    /// Waits and fails as the simulation says.
    fn played(&self, seed: u64) -> impl Future<Output = Result<(), Error>> + Send + use<> {
        let simulation = self.simulation.clone();
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        async move {
            let Some(simulation) = simulation else { return Ok(()) };
            let mut random = Random::new(seed ^ 0x5EED);
            if !simulation.latency.is_zero() {
                let time = simulation.latency.mul_f64(0.5 + random.unit());
                simulation.clock.sleep_until(simulation.clock.now() + time).await;
            }
            if Random::new(call).unit() < simulation.failure_rate {
                let message = "failure of the demo model's simulation".to_owned();
                return Err(Error::Server { endpoint: "demo/demo".into(), status: 500, message });
            }
            Ok(())
        }
    }
}

impl Model for Demo {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<ChatReply, Error> {
        let seed = seed(&request);
        let played = self.played(seed);
        Box::pin(async move {
            played.await?;
            Ok(reply(&request, seed))
        })
    }

    fn embed(&self, request: EmbedRequest) -> BoxFuture<EmbedReply, Error> {
        let dimensions = self.dimensions;
        let played = self.played(request.sample);
        Box::pin(async move {
            played.await?;
            let vectors: Vec<Vec<f64>> = request.texts.iter().map(|text| vector(text, dimensions)).collect();
            let input_tokens = request.texts.iter().map(|text| tokens(text)).sum();
            let usage = Usage { input_tokens, ..Usage::default() };
            Ok(EmbedReply { vectors, usage, bytes: 0, demo: true, rates: None })
        })
    }
}

fn seed(request: &ChatRequest) -> u64 {
    // Rotated, not shifted: all bits of the attempt count.
    let sample = request.sample ^ u64::from(request.attempt).rotate_left(56);
    let mut seed = random::hash(&sample.to_le_bytes(), 0);
    for message in &*request.messages {
        seed = random::hash(message.role.as_str().as_bytes(), seed);
        seed = random::hash(message.text.as_bytes(), seed);
    }
    seed
}

fn reply(request: &ChatRequest, seed: u64) -> ChatReply {
    let mut random = Random::new(seed);
    let users = request.messages.iter().filter(|message| message.role == Role::User);
    // In a corrected conversation, the first message has the task.
    let prompt = users.clone().next().map_or("", |message| &*message.text);
    let schema = request.format.as_ref().map(|format| format.schema.clone()).or_else(|| schema_in(prompt));
    let text = match (schema, code::asked_for(prompt)) {
        (Some(schema), _) => format!("```json\n{}\n```", value::generate(&schema, &mut random).to_json()),
        (None, Some(language)) => code::block(&language, &mut random),
        (None, None) => prose::text(prompt, &mut random),
    };
    let usage = Usage {
        input_tokens: request.messages.iter().map(|message| tokens(&message.text)).sum(),
        output_tokens: tokens(&text),
        cached_tokens: None,
    };
    let reasoning = Some("Demo text: the demo model does not reason.".into());
    let (bytes, text) = (text.len(), text.into());
    ChatReply { text, reasoning, finish: Finish::Stop, usage, bytes, demo: true, rates: None }
}

/// The schema that a prompt has between its tags.
fn schema_in(prompt: &str) -> Option<Value> {
    let (_, rest) = prompt.rsplit_once("<response_schema>")?;
    let (schema, _) = rest.split_once("</response_schema>")?;
    Value::from_json(schema.trim()).ok()
}

/// About four characters per token.
fn tokens(text: &str) -> u64 {
    (text.len() as u64).div_ceil(4)
}

/// A vector of length 1 that depends on the text alone.
fn vector(text: &str, dimensions: usize) -> Vec<f64> {
    let mut random = Random::new(random::hash(text.as_bytes(), 1));
    let mut vector: Vec<f64> = (0..dimensions).map(|_| random.unit() * 2.0 - 1.0).collect();
    let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
    vector.iter_mut().for_each(|x| *x /= length);
    vector
}
