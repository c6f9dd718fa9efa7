//! The ids of events in the feed of all runs.

use std::fmt;
use std::str::FromStr;

/// The id of an event in the feed: `EPOCH-NUMBER`. Events are numbered from 1 by every process, and the epoch tells the
/// processes apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FeedId {
    /// `None` in a number alone. Only 0, the place in front of all events, is of every epoch.
    pub(crate) epoch: Option<u64>,
    pub(crate) number: u64,
}

/// The text is not the id of an event.
#[derive(Debug)]
pub(crate) struct NotAFeedId;

impl FromStr for FeedId {
    type Err = NotAFeedId;

    fn from_str(text: &str) -> Result<FeedId, NotAFeedId> {
        let (epoch, number) = match text.split_once('-') {
            Some((epoch, number)) => (Some(u64::from_str_radix(epoch, 16).map_err(|_| NotAFeedId)?), number),
            None => (None, text),
        };
        Ok(FeedId { epoch, number: number.parse().map_err(|_| NotAFeedId)? })
    }
}

impl fmt::Display for FeedId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(epoch) = self.epoch {
            write!(out, "{epoch:x}-")?;
        }
        write!(out, "{}", self.number)
    }
}
