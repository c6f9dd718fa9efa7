//! The log: the truth about everything but large blobs' bytes. Segments of records, appended in batches.

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
