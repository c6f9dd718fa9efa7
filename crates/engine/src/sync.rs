//! The primitives that cross threads. Tests compile the modules built on them against shuttle's instead.

pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
