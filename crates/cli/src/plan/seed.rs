//! `anabranch plan seed`.

use std::sync::Arc;

use anabranch_engine::clock::SystemClock;
use anabranch_plan::project::DataFile;
use anabranch_plan::source::{MemoryData, Redis, RedisConfig, seed};
use clap::Args;

use super::project_args::data_file;
use crate::failure::Failure;
use crate::out;
use crate::wait;

/// Fills a Redis.
#[derive(Args)]
pub(crate) struct Seed {
    /// A file to write: .json, .csv or .parquet; may be given several times. Tables need a pattern for their keys:
    /// `users.csv=user:{id}`.
    #[arg(long, value_name = "FILE[=PATTERN]", required = true, value_parser = data_file)]
    data: Vec<DataFile>,
    /// The Redis: HOST:PORT, or a redis://, rediss://, redis-cluster:// or rediss-cluster:// URL. What its keys
    /// of the same name hold is replaced.
    #[arg(long, value_name = "ADDRESS")]
    redis: String,
}

impl Seed {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let config =
            RedisConfig::parse_url(&self.redis).map_err(|what| Failure::Wrong(format!("--redis: {what}")))?;
        let mut data = MemoryData::default();
        for DataFile { file, pattern } in &self.data {
            data.add_file(file, pattern.as_deref())?;
        }
        let keys = wait::here(Box::pin(async {
            let redis = Redis::new(config, Arc::new(SystemClock));
            seed(&data, &redis).await.map_err(|error| Failure::Failed(Box::new(error)))
        }))?;
        out::note(&format!("wrote {keys} keys to {}", host_of(&self.redis)));
        Ok(())
    }
}

/// An address without its user and password.
fn host_of(address: &str) -> &str {
    address.rsplit_once('@').map_or(address, |(_, host)| host)
}
