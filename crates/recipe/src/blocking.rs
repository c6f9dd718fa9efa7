//! Blocking calls, for code without an async runtime.

use anabranch_content::{Address, Put};
use bytes::Bytes;

use crate::error::Error;
use crate::executor::{AddedRecipe, Executor, UnknownFunction};
use crate::get::Get;
use crate::recipe::Recipe;

/// An executor for threads that may block. Each call blocks the caller's thread.
#[derive(Debug)]
pub struct BlockingExecutor {
    executor: Executor,
    /// `None` only while it is being dropped.
    runtime: Option<tokio::runtime::Runtime>,
}

impl Drop for BlockingExecutor {
    fn drop(&mut self) {
        // A drop in async code must not wait for the runtime's thread. No caller waits for its work any more.
        self.runtime.take().into_iter().for_each(tokio::runtime::Runtime::shutdown_background);
    }
}

impl Executor {
    /// A blocking handle to the same executor.
    pub fn blocking(&self) -> Result<BlockingExecutor, Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build();
        let runtime = runtime.map_err(|_| Error::Stopped)?;
        Ok(BlockingExecutor { executor: self.clone(), runtime: Some(runtime) })
    }
}

impl BlockingExecutor {
    /// As [`Executor::put`].
    pub fn put(&self, bytes: impl Into<Bytes>) -> Result<Put, Error> {
        self.wait(self.executor.put(bytes))
    }

    /// As [`Executor::add`].
    pub fn add(&self, recipe: &Recipe, unknown: UnknownFunction) -> Result<AddedRecipe, Error> {
        self.wait(self.executor.add(recipe, unknown))
    }

    /// As [`Executor::get`], the value in one piece.
    pub fn get(&self, address: &Address, terms: &Get) -> Result<Bytes, Error> {
        self.wait(async { self.executor.get(address, terms).await?.bytes().await })
    }

    /// Blocks until a call of the executor is done.
    pub fn wait<T>(&self, call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        if tokio::runtime::Handle::try_current().is_ok() {
            return Err(Error::InsideRuntime);
        }
        self.runtime.as_ref().expect("it is there until it is dropped").block_on(call)
    }
}
