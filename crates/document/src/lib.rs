//! TOML, YAML and JSON files as one kind of tree that knows where everything stands, and readers of its values that
//! gather all problems with their places instead of stopping at the first.
//!
//! ```
//! use anabranch_document::{Format, Limits, Notes, parse};
//! let text = "port: 80\nhots: example.org\n";
//! let mut notes = Notes::new("server.yaml", text);
//! if let Some(root) = parse(Format::Yaml, Limits::default(), &mut notes)
//!     && let Some(mut fields) = notes.fields(&root, "a server")
//! {
//!     let port = fields.int("port", &mut notes);
//!     let host = fields.need_text("host", &mut notes);
//!     fields.finish(&mut notes);
//!     assert_eq!((port, host), (Some(80), None));
//! }
//! assert_eq!(
//!     notes.problems().to_string(),
//!     "server.yaml:1:1: a server needs `host`\n\
//!      server.yaml:2:1: a server has no `hots` (did you mean `host`?)"
//! );
//! ```

mod tree;
mod toml;
mod yaml;
mod json;
mod places;
mod scalar;
mod notes;
mod fields;

pub use anabranch_text::{Problem, Problems};
pub use fields::Fields;
pub use notes::Notes;
pub use places::Places;
pub use scalar::place_in_scalar;
pub use tree::{Format, Key, Limits, Node, Span, Table, Tree, parse};
