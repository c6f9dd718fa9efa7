//! Seeded random values: categories, distributions, dates, people.
//!
//! Each (seed, column, row, round) has a random stream of its own, so that a value does not depend on the order in
//! which values are drawn. Numbers come from ChaCha8 and `libm`, so that they are the same on every machine.
//!
//! ```
//! use anabranch_sampler::{Category, ColumnKey, Date, Sampler};
//! let sampler = Sampler::Category(Category { values: vec!["red".into(), "blue".into()], weights: None });
//! let compiled = sampler.compile(Date::new(2026, 1, 1).expect("a date"))?;
//! let key = ColumnKey::new(42, "color");
//! let first = compiled.sample(&mut key.stream(0, 0), None)?;
//! assert_eq!(first, compiled.sample(&mut key.stream(0, 0), None)?);
//! # Ok::<(), anabranch_sampler::Error>(())
//! ```

mod params;
mod error;
mod stream;
mod compile;
mod choice;
mod number;
mod convert;
mod draw;
mod scipy;
mod time;
mod person;

pub use compile::{CompiledSampler, FieldType};
pub use convert::CompiledConvert;
pub use error::Error;
pub use params::*;
pub use stream::{ColumnKey, Stream};
pub use time::{Date, TimeFormat, parse_time};
