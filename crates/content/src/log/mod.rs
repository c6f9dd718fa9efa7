//! The log: segments of records, appended in batches. It holds everything but the bytes of large blobs. All other files
//! are rebuilt from it if they differ.

mod record;
mod segment;
mod append;
mod gather;

pub(crate) use append::Append;
pub(crate) use gather::Gather;
pub(crate) use record::{
    BODY_MOST, Fact, HEADER, Header, ItemKind, ItemRemoval, Record, Salt, give_cost, give_history, take_cost,
    take_history,
};
pub(crate) use segment::{Damage, FRONT, Position, RecordPlace, Segments, path as segment_path};

#[cfg(test)]
mod tests;
