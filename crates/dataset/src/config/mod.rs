//! A dataset's configuration: parsed, checked, typed. Past this module there is no YAML and no unknown name.

mod types;

pub use types::*;
