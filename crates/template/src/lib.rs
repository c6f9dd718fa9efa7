//! Jinja templates in bounded memory and time.
//!
//! A template is compiled once: minijinja parses it, and this crate turns the syntax tree into steps whose variables are
//! slots. Anybody may write a template, so each step takes fuel for the bytes that it reads or makes, the memory that
//! expressions and named values take is bounded, and so is the output.
//!
//! ```
//! use anabranch_template::{Bounds, Template};
//! use anabranch_value::Value;
//! let template = Template::compile("{{ name|upper }}: {{ scores|join(', ') }}")?;
//! assert_eq!(template.variables(), ["name", "scores"]);
//! let values = [Value::from("Ada"), Value::list([Value::from(1), Value::from(2.5)])];
//! assert_eq!(template.render(&values, Bounds::default())?, "ADA: 1, 2.5");
//! # Ok::<(), anabranch_template::Error>(())
//! ```

mod template;
mod error;
mod syntax;
mod code;
mod names;
mod compile;
mod expressions;
mod calls;
mod run;
mod evaluate;
mod work;
mod kinds;
mod operators;
mod print;
mod number_format;
mod tests;
mod filters;
mod methods;
mod json_path;

pub use error::{Error, ErrorKind};
pub use run::{Run, Sink};
pub use template::{Bounds, Dialect, Template, filter_names, test_names};
pub use work::{MEMORY_BYTES, is_true};
