//! Messages are measured before they are decoded: a few bytes on the wire can be a hundred times as many in memory.

use std::any::TypeId;
use std::marker::PhantomData;
use std::sync::Arc;

use anabranch_text::size;
use bytes::{Buf, Bytes};
use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint};
use tokio::runtime::{Handle, RuntimeFlavor};
use tonic::codec::{Codec, DecodeBuf, Decoder};
use tonic::{Code, Status};
use tonic_prost::ProstCodec;

use crate::connections::Call;
use crate::proto::{plans, recipes as proto};

/// The memory limit of one decoded message, without the bytes that it shares with the encoded one.
pub(crate) const DECODED_MOST: usize = 48 << 20;

/// The codec of all calls: prost's, with a memory check first.
pub(crate) struct MeasuredCodec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for MeasuredCodec<T, U> {
    fn default() -> MeasuredCodec<T, U> {
        MeasuredCodec(PhantomData)
    }
}

impl<T, U> Codec for MeasuredCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = <ProstCodec<T, U> as Codec>::Encoder;
    type Decoder = MeasuredDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<T, U>::default().encoder()
    }

    fn decoder(&mut self) -> Self::Decoder {
        MeasuredDecoder { call: Call::current(), of: PhantomData }
    }
}

/// Decodes messages that fit into the memory limit.
pub(crate) struct MeasuredDecoder<U> {
    /// The call that the messages belong to. Those of a stream are decoded while its response is sent, where no call is
    /// the current one.
    call: Option<Arc<Call>>,
    of: PhantomData<U>,
}

impl<U: Message + Default + 'static> Decoder for MeasuredDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        let len = message.remaining();
        off_worker(message.copy_to_bytes(len), self.call.as_deref()).map(Some)
    }
}

/// Larger messages take so long to decode that other tasks of the worker should not wait for them.
const DECODED_AT_ONCE: usize = 64 << 10;

/// Decodes a message. If it is large, another thread takes over the other tasks of this worker. The runtime limits the
/// number of such threads; beyond the limit, the tasks are only delayed.
fn off_worker<U: Message + Default + 'static>(message: Bytes, call: Option<&Call>) -> Result<U, Status> {
    let has_workers =
        || Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    match message.len() > DECODED_AT_ONCE && has_workers() {
        true => tokio::task::block_in_place(|| read(message, call)),
        false => read(message, call),
    }
}

/// Decodes a message of a call.
fn read<U: Message + Default + 'static>(message: Bytes, call: Option<&Call>) -> Result<U, Status> {
    let shape = match TypeId::of::<U>() {
        add if add == TypeId::of::<proto::AddRequest>() => &ADD,
        run if run == TypeId::of::<plans::RunRequest>() => &RUN,
        _ => &FLAT,
    };
    let mut left = DECODED_MOST;
    if shape.measure(&message, 0, &mut left).is_none() {
        let most = size::format(DECODED_MOST as u64);
        let message =
            format!("the message has more values than fit into {most} of memory; send it in several calls");
        return Err(Status::new(Code::OutOfRange, message));
    }
    charge(DECODED_MOST - left, call)?;
    U::decode(message)
        .map_err(|error| Status::invalid_argument(format!("the message cannot be read: {error}")))
}

/// Messages that take less are not charged, because the many small calls should not pay for it.
const CHARGED: usize = 64 << 10;

/// Charges a decoded message to the byte budget of unfinished requests, until the call is answered.
fn charge(bytes: usize, call: Option<&Call>) -> Result<(), Status> {
    match call {
        Some(call) if bytes > CHARGED && !call.try_charge(bytes) => Err(Status::resource_exhausted(
            "unfinished requests have taken all of their memory, or this client has taken half of it; try again later",
        )),
        _ => Ok(()),
    }
}

/// The memory that the fields of a message take.
struct MessageShape {
    /// Bytes per field, or per element of a repeated field, whose list grows by doubling.
    field: usize,
    /// Bytes of the first entry of a map, which allocates a whole B-tree node.
    first_entry: usize,
    /// The field of a map's entries.
    entries: Option<u32>,
    /// The fields that are messages themselves, by number.
    inside: &'static [(u32, &'static MessageShape)],
    /// The fields that are lists of numbers in one piece, by number.
    packed: &'static [(u32, PackedNumbers)],
}

/// A list of numbers in one piece. An element takes [`ELEMENT`] times its own size, because the list grows by doubling.
#[derive(Clone, Copy)]
enum PackedNumbers {
    /// Numbers of one byte or more, with the size of an element in memory.
    Varints(usize),
    /// Numbers that are as large in memory.
    Fixed,
}

/// The memory of an element of a list, in elements.
const ELEMENT: usize = 3;

/// A message of plain fields.
static FLAT: MessageShape =
    MessageShape { field: 96, first_entry: 0, entries: None, inside: &[], packed: &[] };

static ADD: MessageShape =
    MessageShape { field: ELEMENT * size_of::<proto::Draft>(), inside: &[(1, &DRAFT)], ..FLAT };
static DRAFT: MessageShape = MessageShape {
    field: 160,
    first_entry: ENTRY_NODE,
    entries: Some(3),
    inside: &[(1, &FLAT), (3, &ENTRY)],
    ..FLAT
};
static ENTRY: MessageShape = MessageShape { field: 100, inside: &[(2, &VALUE)], ..FLAT };
static VALUE: MessageShape = MessageShape { field: 0, inside: &[(6, &LIST), (7, &MAP)], ..FLAT };
static LIST: MessageShape =
    MessageShape { field: ELEMENT * size_of::<proto::Value>(), inside: &[(1, &VALUE)], ..FLAT };
static MAP: MessageShape =
    MessageShape { field: 160, first_entry: ENTRY_NODE, entries: Some(1), inside: &[(1, &ENTRY)], ..FLAT };

static RUN: MessageShape = MessageShape {
    field: 160,
    first_entry: PARAM_NODE,
    entries: Some(5),
    inside: &[(5, &PARAM), (6, &ROWS)],
    ..FLAT
};
static PARAM: MessageShape = MessageShape { field: 100, inside: &[(2, &PARAM_VALUE)], ..FLAT };
static PARAM_VALUE: MessageShape = MessageShape { field: 96, inside: &[(5, &INTS), (6, &FLAT)], ..FLAT };
static ROWS: MessageShape = MessageShape {
    field: ELEMENT * size_of::<plans::Column>(),
    inside: &[(2, &COLUMN)],
    packed: &[(1, PackedNumbers::Varints(size_of::<i64>()))],
    ..FLAT
};
static COLUMN: MessageShape = MessageShape {
    field: 32,
    inside: &[(2, &INTS), (3, &FLOATS), (4, &BOOLS), (5, &FLAT)],
    packed: &[(6, PackedNumbers::Varints(1))],
    ..FLAT
};
static INTS: MessageShape =
    MessageShape { field: 24, packed: &[(1, PackedNumbers::Varints(size_of::<i64>()))], ..FLAT };
static FLOATS: MessageShape = MessageShape { field: 24, packed: &[(1, PackedNumbers::Fixed)], ..FLAT };
static BOOLS: MessageShape = MessageShape { field: 8, packed: &[(1, PackedNumbers::Varints(1))], ..FLAT };

/// The sizes of the B-tree nodes of maps of values.
const ENTRY_NODE: usize = 12 * (size_of::<String>() + size_of::<proto::Value>());
const PARAM_NODE: usize = 12 * (size_of::<String>() + size_of::<plans::Value>());

/// The decoder's recursion limit.
const DEPTH_MOST: usize = 100;

impl MessageShape {
    /// Subtracts the memory of a message from `left`; `None` if `left` is too small. The decoder refuses malformed
    /// messages.
    fn measure(&self, mut message: &[u8], depth: usize, left: &mut usize) -> Option<()> {
        let mut has_entries = false;
        while !message.is_empty() && depth < DEPTH_MOST {
            let Ok((number, wire)) = decode_key(&mut message) else { return Some(()) };
            *left = left.checked_sub(self.field)?;
            let len = match wire {
                WireType::Varint => match decode_varint(&mut message) {
                    Ok(_) => 0,
                    Err(_) => return Some(()),
                },
                WireType::LengthDelimited => match decode_varint(&mut message) {
                    Ok(len) => usize::try_from(len).unwrap_or(usize::MAX),
                    Err(_) => return Some(()),
                },
                WireType::SixtyFourBit => 8,
                WireType::ThirtyTwoBit => 4,
                WireType::StartGroup | WireType::EndGroup => 0,
            };
            let Some((field, rest)) = message.split_at_checked(len) else { return Some(()) };
            message = rest;
            if let Some((_, packed)) = self.packed.iter().find(|(packed, _)| *packed == number) {
                *left = left.checked_sub(packed.measure(field))?;
            }
            let Some((_, shape)) = self.inside.iter().find(|(inside, _)| *inside == number) else { continue };
            if self.entries == Some(number) && !std::mem::replace(&mut has_entries, true) {
                *left = left.checked_sub(self.first_entry)?;
            }
            shape.measure(field, depth + 1, left)?;
        }
        Some(())
    }
}

impl PackedNumbers {
    /// The memory of a list.
    fn measure(self, list: &[u8]) -> usize {
        ELEMENT
            * match self {
                // The last byte of each number is below 128.
                PackedNumbers::Varints(size) => size * list.iter().filter(|byte| **byte < 0x80).count(),
                PackedNumbers::Fixed => list.len(),
            }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    use anabranch_recipe::{Executor, Functions};
    use prost::DecodeError;
    use prost::encoding::{DecodeContext, encode_varint, skip_field};
    use proto::value::Kind;
    use tokio::task::JoinSet;

    use super::*;
    use crate::access::Peer;
    use crate::allocated::peak_of;
    use crate::connections::Activity;
    use crate::{Service, Settings};

    /// An encoded field with bytes.
    fn field(number: u32, bytes: &[u8]) -> Vec<u8> {
        let mut field = Vec::with_capacity(bytes.len() + 12);
        encode_varint(u64::from(number << 3 | 2), &mut field);
        encode_varint(bytes.len() as u64, &mut field);
        field.extend_from_slice(bytes);
        field
    }

    /// A recipe with one parameter.
    fn recipe_with(value: &[u8]) -> Vec<u8> {
        let entry = [field(1, b"a"), field(2, value)].concat();
        field(1, &field(3, &entry))
    }

    const MESSAGE: usize = 16 << 20;

    /// A decoded message counts until its call is answered.
    #[tokio::test]
    async fn decoded_messages_share_the_budget() {
        let settings = Settings { unfinished_most: 1 << 20, ..Settings::default() };
        let service = Service::new(Executor::in_memory(Functions::builtin()).unwrap(), settings);
        let (clock, traffic) = (Arc::clone(&service.shared.clock), Arc::clone(&service.shared.traffic));
        let activity = Arc::new(Activity::new(clock, traffic, Peer::Unknown));
        let message = Bytes::from(field(1, &field(2, b"").repeat(2_000)));
        let decode = async |call: &Arc<Call>| {
            // A stream makes its decoder in the handler, and decodes messages later.
            let decoder =
                call.scope(async { MeasuredCodec::<(), proto::AddRequest>::default().decoder() }).await;
            off_worker::<proto::AddRequest>(message.clone(), decoder.call.as_deref()).map(drop)
        };
        let [first, second] = [activity.begin(), activity.begin()];
        decode(&first).await.unwrap();
        assert!(service.load().unfinished_bytes > 2_000 * 100, "{:?}", service.load());
        assert_eq!(decode(&second).await.unwrap_err().code(), Code::ResourceExhausted);
        first.release();
        decode(&second).await.unwrap();
    }

    #[test]
    fn a_hostile_message_is_refused_before_it_is_decoded() {
        let empty = |number: u32| field(number, b"").repeat(MESSAGE / 2);
        let entries: Vec<u8> =
            (0..MESSAGE as u32 / 12).flat_map(|at| field(1, &field(1, &at.to_be_bytes()))).collect();
        let hostile = [
            ("a list of nothing", recipe_with(&field(6, &empty(1)))),
            (
                "a list of maps",
                recipe_with(&field(6, &field(1, &field(7, &field(1, b""))).repeat(MESSAGE / 6))),
            ),
            ("a map", recipe_with(&field(7, &entries))),
            ("recipes", empty(1)),
            ("inputs", field(1, &empty(2))),
            (
                "parameters",
                field(
                    1,
                    &(0..MESSAGE as u32 / 12)
                        .flat_map(|at| field(3, &field(1, &at.to_be_bytes())))
                        .collect::<Vec<u8>>(),
                ),
            ),
        ];
        for (what, message) in hostile {
            assert!(message.len() > MESSAGE / 2, "{what}");
            let message = Bytes::from(message);
            let (read, peak) = peak_of(|| read::<proto::AddRequest>(message.clone(), None));
            assert_eq!(read.unwrap_err().code(), Code::OutOfRange, "{what}");
            assert!(peak < 1 << 10, "{what}: {peak} bytes");
        }
        let texts = |number: u32| field(6, &field(2, &field(5, &empty(number))));
        let run = [
            ("texts", texts(1)),
            ("numbers", field(6, &field(2, &field(2, &field(1, &vec![0; MESSAGE]))))),
            ("ids", field(6, &field(1, &vec![0; MESSAGE]))),
            ("columns", field(6, &empty(2))),
            ("texts of a parameter", field(5, &field(2, &field(6, &empty(1))))),
        ];
        for (what, message) in run {
            let message = Bytes::from(message);
            let (refused, peak) = peak_of(|| read::<plans::RunRequest>(message.clone(), None));
            assert_eq!(refused.unwrap_err().code(), Code::OutOfRange, "{what}");
            assert!(peak < 1 << 10, "{what}: {peak} bytes");
        }
        let targets = Bytes::from(empty(1));
        let (refused, peak) = peak_of(|| read::<proto::GetManyRequest>(targets.clone(), None));
        assert_eq!(refused.unwrap_err().code(), Code::OutOfRange);
        assert!(peak < 1 << 10, "{peak} bytes");
        let inputs = Bytes::from(empty(3));
        let refused = read::<crate::proto::deriva::PutRecipeRequest>(inputs, None).unwrap_err();
        assert_eq!(
            refused.message(),
            "the message has more values than fit into 48 MiB of memory; send it in several calls"
        );
    }

    /// A message that is decoded takes no more memory than the limit.
    #[test]
    fn a_decoded_message_takes_no_more_than_was_measured() {
        let value = |kind| proto::Value { kind: Some(kind) };
        let ints = |count: i64| proto::List { values: (0..count).map(|at| value(Kind::Int(at))).collect() };
        let map = |count: u32| proto::Map {
            values: (0..count)
                .map(|at| {
                    (
                        at.to_string(),
                        value(Kind::Map(proto::Map {
                            values: BTreeMap::from([(String::new(), value(Kind::Bool(true)))]),
                        })),
                    )
                })
                .collect(),
        };
        let draft = |kind| proto::Draft {
            function: Some(proto::FunctionId { name: "template".to_owned(), version: "1".to_owned() }),
            inputs: vec![proto::Input { of: Some(proto::input::Of::Earlier(0)) }],
            params: BTreeMap::from([("values".to_owned(), value(kind))]),
        };
        for drafts in [
            vec![draft(Kind::List(ints(300_000)))],
            vec![draft(Kind::Map(map(30_000)))],
            vec![draft(Kind::Bool(true)); 20_000],
        ] {
            let count = drafts.len();
            let message = Bytes::from(proto::AddRequest { drafts, ..Default::default() }.encode_to_vec());
            let mut left = usize::MAX;
            ADD.measure(&message, 0, &mut left).unwrap();
            let (decoded, peak) = peak_of(|| read::<proto::AddRequest>(message.clone(), None));
            assert_eq!(decoded.unwrap().drafts.len(), count);
            let measured = (usize::MAX - left) as i64;
            assert!(peak <= measured + message.len() as i64, "{peak} bytes, measured {measured}");
            assert!(measured < 6 * peak, "{measured} is far from {peak} bytes");
        }
    }

    /// A request for a plan takes no more memory than was measured.
    #[test]
    fn a_decoded_request_takes_no_more_than_was_measured() {
        let column = |values| plans::Column {
            name: "a column".to_owned(),
            present: vec![true; 100_000],
            values: Some(values),
        };
        let run = plans::RunRequest {
            params: (0..1_000)
                .map(|at| (at.to_string(), plans::Value { kind: Some(plans::value::Kind::Int(at)) }))
                .collect(),
            candidates: Some(plans::Rows {
                ids: (0..100_000).collect(),
                columns: vec![
                    column(plans::column::Values::Ints(plans::Ints { values: (0..100_000).collect() })),
                    column(plans::column::Values::Floats(plans::Floats { values: vec![0.5; 100_000] })),
                    column(plans::column::Values::Texts(plans::Texts {
                        values: vec![String::new(); 100_000],
                    })),
                ],
            }),
            ..plans::RunRequest::default()
        };
        let message = Bytes::from(run.encode_to_vec());
        let mut left = usize::MAX;
        RUN.measure(&message, 0, &mut left).unwrap();
        let (decoded, peak) = peak_of(|| read::<plans::RunRequest>(message.clone(), None));
        assert!(decoded.unwrap() == run);
        let measured = (usize::MAX - left) as i64;
        assert!(peak <= measured && measured < 6 * peak, "{peak} bytes, measured {measured}");
    }

    /// The ends of two channels for the decoder of [`SlowMessage`]. It signals its start on one, and waits on the
    /// other.
    static WAITING: Mutex<Option<(Sender<()>, Receiver<()>)>> = Mutex::new(None);

    /// A message that takes as long to decode as the test wants.
    #[derive(Debug, Default)]
    struct SlowMessage;

    impl Message for SlowMessage {
        fn encode_raw(&self, _: &mut impl bytes::BufMut) {}

        fn merge_field(
            &mut self,
            tag: u32,
            wire: WireType,
            buffer: &mut impl Buf,
            context: DecodeContext,
        ) -> Result<(), DecodeError> {
            let (begun, go_on) = WAITING.lock().unwrap().take().expect("it is decoded once");
            begun.send(()).unwrap();
            // Only a failing test waits this long.
            go_on.recv_timeout(Duration::from_secs(120)).expect("other tasks have their turn");
            skip_field(wire, tag, buffer, context)
        }

        fn encoded_len(&self) -> usize {
            0
        }

        fn clear(&mut self) {}
    }

    /// The runtime has one worker, and the task that releases the decoder needs one.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_large_message_keeps_no_other_task_waiting() {
        let (begin, begun) = channel();
        let (go, go_on) = channel();
        *WAITING.lock().unwrap() = Some((begin, go_on));
        let mut tasks = JoinSet::new();
        tasks.spawn(async {
            let message = Bytes::from(field(1, &vec![0; DECODED_AT_ONCE]));
            assert!(off_worker::<SlowMessage>(message, None).is_ok());
        });
        // The worker does not run this future, so it may block.
        begun.recv_timeout(Duration::from_secs(120)).unwrap();
        tasks.spawn(async move { go.send(()).unwrap() });
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap();
        }
    }

    #[test]
    fn what_is_no_message_is_refused_by_the_decoder() {
        for broken in [&b"\xff"[..], b"\x0a\x05a", b"\x0b", &[0x0a, 0x80, 0x80]] {
            assert_eq!(
                read::<proto::AddRequest>(Bytes::copy_from_slice(broken), None).unwrap_err().code(),
                Code::InvalidArgument
            );
        }
    }
}
