//! Tests of templates.

mod kit;
mod jinja;
mod dataset;
mod errors;
mod variables;
mod hostile;
mod random;
