//! Typed values: JSON's kinds with whole numbers apart from floats, cheap to clone, maps in the order of insertion.
//!
//! ```
//! use anabranch_value::Value;
//! let value = Value::from_json(r#"{"name": "Ada", "scores": [1, 2.5]}"#)?;
//! assert_eq!(value.get("name"), Some(&Value::from("Ada")));
//! assert_eq!(value.to_json(), r#"{"name":"Ada","scores":[1,2.5]}"#);
//! # Ok::<(), anabranch_value::NotJson>(())
//! ```

mod json;
mod value;

pub use json::NotJson;
pub use value::{Map, Value};
