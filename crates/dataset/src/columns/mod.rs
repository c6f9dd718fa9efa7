//! The built-in column kinds, one file each.

mod accept;
mod embedding;
mod expression;
mod foresee;
mod flights;
mod llm;
mod model_call;
mod counters;
mod paid_model;
mod samplers;
mod seed;

pub(crate) use accept::{Accepts, REJECTED};
pub(crate) use embedding::{Embedding, TEXTS_PER_REQUEST};
pub(crate) use expression::Expression;
pub(crate) use llm::Llm;
pub(crate) use model_call::{ModelCall, model_fault};
pub(crate) use paid_model::{JournalKnowledge, PaidModel};
pub(crate) use samplers::{SamplerParts, Samplers};
pub(crate) use seed::SeedColumns;
