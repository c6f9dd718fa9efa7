//! What happens, told over the wire.

use anabranch_recipe::{Event, Heard};

use super::{Bad, address, from_address, set};
use crate::proto::recipes as proto;
use crate::proto::recipes::events_reply::Heard as Told;

/// What was heard; nothing for the word that begins a stream.
pub(crate) fn heard(reply: proto::EventsReply) -> Result<Option<Heard>, Bad> {
    let event = match set("heard", reply.heard)? {
        Told::Listening(_) => return Ok(None),
        Told::Lost(count) => return Ok(Some(Heard::Lost(count))),
        Told::Added(added) => Event::Added { address: address("address", &added.address)? },
        Told::Begun(begun) => {
            Event::Begun { address: address("address", &begun.address)?, recipes: begun.recipes }
        }
        Told::Progress(progress) => Event::Progress {
            address: address("address", &progress.address)?,
            read: progress.read,
            total: progress.total,
            written: progress.written,
            steps: progress.steps,
        },
        Told::Computed(computed) => Event::Computed {
            address: address("address", &computed.address)?,
            output: address("output", &computed.output)?,
            size: computed.size,
            micros: computed.micros,
        },
        Told::Failed(failed) => {
            Event::Failed { address: address("address", &failed.address)?, error: failed.error }
        }
        Told::Invalidated(invalidated) => Event::Invalidated {
            address: address("address", &invalidated.address)?,
            count: invalidated.count,
        },
    };
    Ok(Some(Heard::Event(event)))
}

pub(crate) fn from_heard(heard: Heard) -> Result<proto::EventsReply, Bad> {
    let told = match heard {
        Heard::Lost(count) => Told::Lost(count),
        Heard::Event(Event::Added { address }) => {
            Told::Added(proto::AddedEvent { address: from_address(&address) })
        }
        Heard::Event(Event::Begun { address, recipes }) => {
            Told::Begun(proto::BegunEvent { address: from_address(&address), recipes })
        }
        Heard::Event(Event::Progress { address, read, total, written, steps }) => {
            let address = from_address(&address);
            Told::Progress(proto::ProgressEvent { address, read, total, written, steps })
        }
        Heard::Event(Event::Computed { address, output, size, micros }) => {
            let (address, output) = (from_address(&address), from_address(&output));
            Told::Computed(proto::ComputedEvent { address, output, size, micros })
        }
        Heard::Event(Event::Failed { address, error }) => {
            Told::Failed(proto::FailedEvent { address: from_address(&address), error })
        }
        Heard::Event(Event::Invalidated { address, count }) => {
            Told::Invalidated(proto::InvalidatedEvent { address: from_address(&address), count })
        }
        Heard::Event(other) => return Err(Bad(format!("the wire has no word for {other:?}"))),
    };
    Ok(proto::EventsReply { heard: Some(told) })
}
