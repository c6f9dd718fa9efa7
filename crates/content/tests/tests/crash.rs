//! A store on a disk that crashes: whatever was acknowledged is there, whatever is there is right.

pub(crate) mod world;
pub(crate) mod model;
pub(crate) mod driver;
pub(crate) mod boundaries;
pub(crate) mod generations;
mod prepared;
mod append;
mod derived;

/// How many times as much a random test does as it does by default: set for a long run.
pub(crate) fn times() -> u64 {
    std::env::var("ANABRANCH_CRASH_SEEDS")
        .map_or(1, |times| times.parse().expect("ANABRANCH_CRASH_SEEDS is a number"))
}
