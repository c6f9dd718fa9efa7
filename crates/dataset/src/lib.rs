//! Datasets: columns by rows of samplers, templates and model calls, on the graph engine.

pub mod config;
mod column_type;
mod fault;
pub mod generator;
pub mod processor;
mod errors;
mod cells;
mod progress;
mod program;
mod admission;
mod grid;
mod job;
pub mod stages;
pub mod output;
mod error;
mod stop;
mod journal;
mod inputs;
mod spend;
mod call_times;
mod budget;
mod run;
mod begin;
mod dry;
mod estimate;
mod build;
mod dataset;
pub mod post;
pub mod seed;
pub mod custom;
pub mod validation;
mod processors;
mod columns;
mod ask;
mod models;
mod setup;

pub use budget::{Budget, Cap};
pub use build::{Build, BuildReport, MAX_ERRORS, Preview};
pub use call_times::CallTimes;
pub use cells::{CELLS_MOST, CellChanges, CellPhase, ChangedRows};
pub use column_type::ColumnType;
pub use config::Config;
pub use dataset::{BuildOptions, ColumnSettings, Dataset};
pub use dry::{
    Answer, CallRequest, CellForecast, CellState, ColumnForecast, DryRun, EarlierBuild, ForeseenCall,
    ForeseenOutcome, ForeseenRow, InDryRun, LedgerLine, ModelFacts, RecordedCall, RecordedSum, RequestSizes,
    RowTrace, TracedCell, ValueSizes,
};
pub use error::Error;
pub use errors::RowError;
pub use estimate::{BuildPlan, ColumnPlan, PLAN, PlanCheck, Totals};
pub use fault::Fault;
#[doc(inline)]
pub use generator::Generator;
pub use inputs::ColumnEdits;
pub use journal::{Cause as JournalCause, Error as JournalError, JournalPlace};
pub use models::{FindModel, ModelSource};
#[doc(inline)]
pub use processor::Processor;
pub use progress::{AcceptSnapshot, ColumnSnapshot, Progress, Snapshot};
pub use setup::{LoadedConfig, Sources};
pub use stop::{ErrorRate, StopReason};
