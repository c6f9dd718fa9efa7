//! Datasets: columns by rows of samplers, templates and model calls, on the graph engine.

pub mod config;
mod column_type;
mod fault;
pub mod generator;
pub mod processor;
pub mod post;
pub mod seed;
pub mod custom;
pub mod validation;

pub use column_type::ColumnType;
pub use config::Config;
pub use fault::Fault;
#[doc(inline)]
pub use generator::Generator;
#[doc(inline)]
pub use processor::Processor;
