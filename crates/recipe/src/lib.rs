//! Content-addressed computation: a function, its inputs and its parameters determine an address, and the value at that
//! address is computed once.
//!
//! An [`Executor`] keeps blobs and [`Recipe`]s in a store and computes requested values. It finds everything that a
//! recipe reads, down to values that exist, and runs the rest as one graph. Concurrent requests for the same value
//! share one computation. Streaming functions in a row are fused if their input is large ([`Config::fuse_from`]): the
//! values between them are not kept, so a later request for one of these runs its functions a second time. Use the
//! built-in [`Functions`] or add your own: a [`Function`] consumes and produces chunks.
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
//! A custom function declares its parameters as data. They are checked when a recipe is added, and read by name:
//!
//! ```
//! use anabranch_recipe::{
//!     Executor, FunctionId, Functions, Get, ParamKind, Recipe, Signature, UnknownFunction,
//! };
//!
//! let signature = Signature::new(FunctionId::new("quote", "1"), "The text in quotes.")
//!     .may("mark", ParamKind::one_of(&["'", "\""]), "'", "the quote")
//!     .may("depth", ParamKind::int(1, 9), 1, "how many quotes are on each side");
//! let mut functions = Functions::none();
//! functions.add_whole_as(signature, |inputs, arguments| {
//!     let quotes = arguments.text("mark")?.repeat(arguments.count("depth")?);
//!     Ok([quotes.as_bytes(), &inputs[0][..], quotes.as_bytes()].concat().into())
//! });
//!
//! let blocking = Executor::in_memory(functions)?.blocking()?;
//! let text = blocking.put("sea")?.address;
//! let quoted = Recipe::new(FunctionId::new("quote", "1"), vec![text]);
//! let address = blocking.add(&quoted.clone().with("depth", 2), UnknownFunction::Refuse)?.address;
//! assert_eq!(blocking.get(&address, &Get::default())?, "''sea''");
//! let refused = blocking.add(&quoted.with("depth", 10), UnknownFunction::Refuse).unwrap_err();
//! assert!(refused.to_string().contains("parameter `depth`: 10 is not a whole number, 1 to 9"), "{refused}");
//! # Ok::<(), anabranch_recipe::Error>(())
//! ```
//!
//! Reading order: the modules as listed.

mod recipe;
mod folder;
mod params_json;
mod param;
mod arguments;
mod signature;
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
mod trace;
mod run;
mod execute;
mod compute;
mod drive;
mod running_stage;
mod feed;
mod sink;
mod get;
mod invalidate;
mod deriva;
mod blocking;
mod file;
pub mod decoders;

pub use anabranch_content::{Address, Value};
pub use anabranch_text::{Problem, Problems};
pub use arguments::Arguments;
pub use blocking::BlockingExecutor;
pub use budget::CallBudget;
pub use deriva::{Deriva, DerivaRecipe};
pub use drive::{call, call_within};
pub use error::Error;
pub use events::{Event, Listener, Notice};
pub use executor::{
    AddedRecipe, Config, Draft, DraftInput, Executor, SHORT_ADDRESS_LEAST, UnknownFunction, is_short_address,
};
pub use file::{FileBlob, FileBytes, FileFormat, FileInput, FileRecipe, FilesOutside, NamedPath, RecipeFile};
pub use folder::{Folder, FolderEntry};
pub use function::{Call, Chunks, Fault, Function, Kernel, OpenInputs, Out};
pub use get::{FetchedValue, Get, Source};
pub use invalidate::{Invalidate, InvalidationReport, Reach};
pub use param::{Param, ParamKind};
pub use params_json::{
    JsonBudget, ParamsAsJson, ParamsFromJson, ValueAsJson, ValueFromJson, value_from_json,
};
pub use recipe::{CONTEXT, FunctionId, MalformedRecipe, Params, Recipe};
pub use registry::{Functions, check, check_call};
pub use signature::{Arity, BeginCost, Holds, MemoryNeed, Signature};
pub use status::Status;
pub use trace::{Trace, TracedOutcome, TracedRecipe, TracedValue};
