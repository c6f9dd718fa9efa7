//! The house rules, as tests.
//!
//! A rule is a pure function from the tree and the [`Policy`] to [`Violation`]s. The integration tests
//! run every rule on this repository; the unit tests beside each rule show that it catches what it should.

mod policy;
mod violation;
mod workspace;

mod crates;
mod doc_comments;
mod docs;
mod edges;
mod figures;
mod licences;
mod marks;
pub mod notices;
mod size;
mod words;

pub use policy::Policy;
pub use violation::{Violation, report};
pub use workspace::Workspace;

pub use crates::check as check_crates;
pub use doc_comments::check as check_doc_comments;
pub use docs::check as check_docs;
pub use edges::check as check_edges;
pub use figures::check as check_figures;
pub use licences::{Metadata, check as check_licences};
pub use marks::check as check_marks;
pub use size::check as check_size;
pub use words::check as check_words;
