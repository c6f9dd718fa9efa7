//! Events of the executor on the wire.

use anabranch_recipe::{Event, Notice};

use super::{MalformedMessage, address, from_address, set};
use crate::proto::recipes as proto;
use crate::proto::recipes::events_reply::Heard as WireEvent;

/// The event of a reply; `None` for the message that begins a stream.
pub(crate) fn event(reply: proto::EventsReply) -> Result<Option<Notice>, MalformedMessage> {
    let event = match set("heard", reply.heard)? {
        WireEvent::Listening(_) => return Ok(None),
        WireEvent::Lost(count) => return Ok(Some(Notice::Lost(count))),
        WireEvent::Added(added) => Event::Added { address: address("address", &added.address)? },
        WireEvent::Begun(begun) => {
            Event::Begun { address: address("address", &begun.address)?, recipes: begun.recipes }
        }
        WireEvent::Progress(progress) => Event::Progress {
            address: address("address", &progress.address)?,
            read: progress.read,
            total: progress.total,
            written: progress.written,
            steps: progress.steps,
        },
        WireEvent::Computed(computed) => Event::Computed {
            address: address("address", &computed.address)?,
            output: address("output", &computed.output)?,
            size: computed.size,
            micros: computed.micros,
        },
        WireEvent::Failed(failed) => {
            Event::Failed { address: address("address", &failed.address)?, error: failed.error }
        }
        WireEvent::Invalidated(invalidated) => Event::Invalidated {
            address: address("address", &invalidated.address)?,
            count: invalidated.count,
        },
    };
    Ok(Some(Notice::Event(event)))
}

pub(crate) fn from_event(notice: Notice) -> Result<proto::EventsReply, MalformedMessage> {
    let event = match notice {
        Notice::Lost(count) => WireEvent::Lost(count),
        Notice::Event(Event::Added { address }) => {
            WireEvent::Added(proto::AddedEvent { address: from_address(&address) })
        }
        Notice::Event(Event::Begun { address, recipes }) => {
            WireEvent::Begun(proto::BegunEvent { address: from_address(&address), recipes })
        }
        Notice::Event(Event::Progress { address, read, total, written, steps }) => {
            let address = from_address(&address);
            WireEvent::Progress(proto::ProgressEvent { address, read, total, written, steps })
        }
        Notice::Event(Event::Computed { address, output, size, micros }) => {
            let (address, output) = (from_address(&address), from_address(&output));
            WireEvent::Computed(proto::ComputedEvent { address, output, size, micros })
        }
        Notice::Event(Event::Failed { address, error }) => {
            WireEvent::Failed(proto::FailedEvent { address: from_address(&address), error })
        }
        Notice::Event(Event::Invalidated { address, count }) => {
            WireEvent::Invalidated(proto::InvalidatedEvent { address: from_address(&address), count })
        }
        Notice::Event(other) => return Err(MalformedMessage(format!("the wire has no word for {other:?}"))),
    };
    Ok(proto::EventsReply { heard: Some(event) })
}
