//! Content-addressed computation: a function, what it reads and its parameters make an address; what it comes to is
//! computed once.
//!
//! An [`Executor`] keeps blobs and [`Recipe`]s in a store and computes what is asked for: it finds what a recipe reads,
//! down to values that are there, and runs the rest as one graph. Whoever asks for the same at the same time shares one
//! computation. [`Functions`] come with this crate, or are yours: a [`Function`] takes chunks and gives chunks.
//!
//! ```
//! use anabranch_recipe::{Arity, Executor, FunctionId, Functions, Get, Recipe, Source, UnknownFunction};
//!
//! let mut functions = Functions::builtin();
//! functions.add_whole("swapped", "1", Arity::exactly(2), |inputs, _| {
//!     Ok([&inputs[1][..], &inputs[0][..]].concat().into())
//! });
//! let executor = Executor::in_memory(functions)?;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let (sea, all) = (executor.put("sea").await?.address, executor.put("all at ").await?.address);
//! let recipe = Recipe::new(FunctionId::new("swapped", "1"), vec![sea, all]);
//! let address = executor.add(&recipe, UnknownFunction::Refuse).await?.address;
//! let got = executor.get(&address, &Get::default()).await?;
//! assert_eq!(got.source, Source::Computed(1));
//! assert_eq!(got.bytes().await?, "all at sea");
//! assert_eq!(executor.get(&address, &Get::default()).await?.source, Source::Memo);
//! # Ok::<(), anabranch_recipe::Error>(()) })?;
//!
//! // The same without a runtime of one's own.
//! let blocking = executor.blocking()?;
//! # let recipe = Recipe::new(FunctionId::new("identity", "1.0.0"), vec![anabranch_recipe::Address::of(b"sea")]);
//! let address = blocking.add(&recipe, UnknownFunction::Refuse)?.address;
//! assert_eq!(blocking.get(&address, &Get::default())?, "sea");
//! # Ok::<(), anabranch_recipe::Error>(())
//! ```
//!
//! Reading order: the modules as listed.

mod recipe;
mod folder;
mod params_json;
mod function;
mod budget;
mod whole;
mod registry;
mod functions;
mod error;
mod events;
mod progress;
mod status;
mod pace;
mod memory;
mod refusals;
mod executor;
mod find;
mod value;
mod closure;
mod run;
mod execute;
mod compute;
mod drive;
mod chain;
mod feed;
mod sink;
mod get;
mod invalidate;
mod deriva;
mod blocking;
mod file;

pub use anabranch_content::{Address, Value};
pub use anabranch_text::{Problem, Problems};
pub use blocking::Blocking;
pub use budget::CallBudget;
pub use deriva::{Deriva, Theirs};
pub use drive::{call, call_within};
pub use error::Error;
pub use events::{Event, Heard, Listener};
pub use executor::{Added, Config, Draft, Executor, Ref, UnknownFunction};
pub use file::{FileBlob, FileBytes, FileFormat, FileInput, FileRecipe, FilesOutside, RecipeFile};
pub use folder::{Folder, FolderEntry};
pub use function::{
    Arity, BeginCost, Call, Chunks, Fault, Function, Holds, Kernel, MemoryNeed, Open, Out, Param, Signature,
};
pub use get::{Get, Got, Source};
pub use invalidate::{Invalidate, Invalidated, Reach};
pub use params_json::{
    JsonBudget, ParamsAsJson, ParamsFromJson, ValueAsJson, ValueFromJson, value_from_json,
};
pub use recipe::{CONTEXT, FunctionId, Malformed, Params, Recipe};
pub use registry::{Functions, check, check_call};
pub use status::Status;
