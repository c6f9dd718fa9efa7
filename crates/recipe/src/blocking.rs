//! Calls for code without a runtime.

use anabranch_content::{Address, Put};
use bytes::Bytes;

use crate::error::Error;
use crate::executor::{Added, Executor, UnknownFunction};
use crate::get::Get;
use crate::recipe::Recipe;

/// An executor for threads that may wait. Each call waits on the caller's thread.
#[derive(Debug)]
pub struct Blocking {
    executor: Executor,
    /// Nothing when it is being dropped.
    runtime: Option<tokio::runtime::Runtime>,
}

impl Drop for Blocking {
    fn drop(&mut self) {
        // To wait for its thread is an error in async code; nothing is at work there that anybody waits for.
        self.runtime.take().into_iter().for_each(tokio::runtime::Runtime::shutdown_background);
    }
}

impl Executor {
    /// The same executor for callers without a runtime.
    pub fn blocking(&self) -> Result<Blocking, Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build();
        let runtime = runtime.map_err(|_| Error::Stopped)?;
        Ok(Blocking { executor: self.clone(), runtime: Some(runtime) })
    }
}

impl Blocking {
    /// As [`Executor::put`].
    pub fn put(&self, bytes: impl Into<Bytes>) -> Result<Put, Error> {
        self.wait(self.executor.put(bytes))
    }

    /// As [`Executor::add`].
    pub fn add(&self, recipe: &Recipe, unknown: UnknownFunction) -> Result<Added, Error> {
        self.wait(self.executor.add(recipe, unknown))
    }

    /// As [`Executor::get`], the value in one piece.
    pub fn get(&self, address: &Address, terms: &Get) -> Result<Bytes, Error> {
        self.wait(async { self.executor.get(address, terms).await?.bytes().await })
    }

    /// Waits for any call of the executor's.
    pub fn wait<T>(&self, call: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        if tokio::runtime::Handle::try_current().is_ok() {
            return Err(Error::InsideRuntime);
        }
        self.runtime.as_ref().expect("it is there until it is dropped").block_on(call)
    }
}
