//! The built-in column kinds, one file each.

mod embedding;
mod expression;
mod llm;
mod model_call;
mod samplers;
mod seed;

pub(crate) use embedding::Embedding;
pub(crate) use expression::Expression;
pub(crate) use llm::Llm;
pub(crate) use model_call::ModelCall;
pub(crate) use samplers::Samplers;
pub(crate) use seed::SeedColumns;
