//! Text for people: problems with their place in a source, suggestions for misspelled names, times, durations, sizes and
//! counts in human units, and the colours and fonts of pictures and pages.
//!
//! ```
//! use anabranch_text::{Problem, Problems};
//! let source = "take = 5\ncuontry = \"NL\"\n";
//! let mut problems = Problems::default();
//! let mut problem = Problem::in_source("list.toml", source, 9..16, "unknown field `cuontry`");
//! problem.help = problems.did_you_mean("cuontry", ["take", "country"]);
//! problems.error(problem);
//! assert_eq!(
//!     problems.errors[0].report("error").to_string(),
//!     "error: list.toml:2:1: unknown field `cuontry`\n  \
//!        2 | cuontry = \"NL\"\n    \
//!          | ^^^^^^^\n  \
//!        help: did you mean `country`?"
//! );
//! ```

mod problem;
mod source;
mod names;
mod plain;
pub mod duration;
pub mod size;
pub mod money;
pub mod palette;
mod count;
mod panic;
mod utc;

pub use count::count;
pub use names::{circle, closest, quote};
pub use panic::panic_message;
pub use plain::{Plain, columns};
pub use problem::{Problem, Problems};
pub use source::{Excerpt, offset, position};
pub use utc::utc;
