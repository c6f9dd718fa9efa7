//! A disk that refuses, fills up and fails to keep: errors are typed, and what was acknowledged stays.

pub(crate) mod hooked;
mod log;
mod index;
mod syncs;
mod once;
mod full;
mod counts;
mod quarantine;
mod crowd;
mod derived;

use anabranch_content::{Config, Store};
use anabranch_testkit::CrashDisk;
use std::sync::Arc;

use crate::crash::driver::small;

pub(crate) fn open(disk: &CrashDisk, config: &Config) -> Store {
    Store::open_on(Arc::new(disk.clone()), config.clone()).unwrap()
}
