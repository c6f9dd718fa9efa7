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
//! A function of one's own declares its parameters as data. They are checked before it is called, and read by name:
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
//! let address = blocking.add(&quoted.with("depth", 10), UnknownFunction::Refuse)?.address;
//! let refused = blocking.get(&address, &Get::default()).unwrap_err();
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
pub mod decoders;

pub use anabranch_content::{Address, Value};
pub use anabranch_text::{Problem, Problems};
pub use arguments::Arguments;
pub use blocking::Blocking;
pub use budget::CallBudget;
pub use deriva::{Deriva, Theirs};
pub use drive::{call, call_within};
pub use error::Error;
pub use events::{Event, Heard, Listener};
pub use executor::{Added, Config, Draft, Executor, Ref, SHORT_ADDRESS_LEAST, UnknownFunction};
pub use file::{FileBlob, FileBytes, FileFormat, FileInput, FileRecipe, FilesOutside, RecipeFile};
pub use folder::{Folder, FolderEntry};
pub use function::{Call, Chunks, Fault, Function, Kernel, Open, Out};
pub use get::{Get, Got, Source};
pub use invalidate::{Invalidate, Invalidated, Reach};
pub use param::{Param, ParamKind};
pub use params_json::{
    JsonBudget, ParamsAsJson, ParamsFromJson, ValueAsJson, ValueFromJson, value_from_json,
};
pub use recipe::{CONTEXT, FunctionId, Malformed, Params, Recipe};
pub use registry::{Functions, check, check_call};
pub use signature::{Arity, BeginCost, Holds, MemoryNeed, Signature};
pub use status::Status;
