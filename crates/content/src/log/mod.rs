//! The log: segments of records, appended in batches. It holds everything but the bytes of large blobs; whatever
//! differs from it is rebuilt from it.

mod record;
mod segment;
mod append;
mod gather;

pub(crate) use append::Append;
pub(crate) use gather::Gather;
pub(crate) use record::{
    BODY_MOST, Fact, HEADER, Header, Record, Removed, Salt, What, give_cost, give_history, take_cost,
    take_history,
};
pub(crate) use segment::{Damage, FRONT, Place, Position, Segments, path as segment_path};

#[cfg(test)]
mod tests;
