//! Tests of the models, against a scripted server and offline.
#![allow(clippy::needless_pass_by_value, reason = "an `expect!` is written where it is used")]
#![allow(clippy::unwrap_used, reason = "helpers of tests may stop the test")]

mod conversation;
mod demo;
mod judge;
mod network;
mod plain_body;
mod plain_reply;
mod provider;
mod rates;
mod remote;
mod reply;
mod schema;

/// Runs a future on a runtime of its own.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}
