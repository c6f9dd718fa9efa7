//! TypeScript plans, from outside.
#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

mod types;
