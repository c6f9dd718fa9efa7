//! Messages are measured before they are decoded: a few bytes on the wire can be a hundred times as many in memory.

use std::any::TypeId;
use std::marker::PhantomData;

use anabranch_text::size;
use bytes::{Buf, Bytes};
use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint};
use tokio::runtime::{Handle, RuntimeFlavor};
use tonic::codec::{Codec, DecodeBuf, Decoder};
use tonic::{Code, Status};
use tonic_prost::ProstCodec;

use crate::connections::Call;
use crate::proto::recipes as proto;

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
        MeasuredDecoder(PhantomData)
    }
}

/// Decodes messages that fit into the memory limit.
pub(crate) struct MeasuredDecoder<U>(PhantomData<U>);

impl<U: Message + Default + 'static> Decoder for MeasuredDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        let len = message.remaining();
        off_worker(message.copy_to_bytes(len)).map(Some)
    }
}

/// Larger messages take so long to decode that other tasks of the worker should not wait for them.
const DECODED_AT_ONCE: usize = 64 << 10;

/// Decodes a message. If it is large, another thread takes over the other tasks of this worker. The runtime limits the
/// number of such threads; beyond the limit, the tasks are only delayed.
fn off_worker<U: Message + Default + 'static>(message: Bytes) -> Result<U, Status> {
    let has_workers =
        || Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
    match message.len() > DECODED_AT_ONCE && has_workers() {
        true => tokio::task::block_in_place(|| read(message)),
        false => read(message),
    }
}

/// Decodes a message.
fn read<U: Message + Default + 'static>(message: Bytes) -> Result<U, Status> {
    let shape = if TypeId::of::<U>() == TypeId::of::<proto::AddRequest>() { &ADD } else { &FLAT };
    let mut left = DECODED_MOST;
    if shape.measure(&message, 0, &mut left).is_none() {
        let most = size::format(DECODED_MOST as u64);
        let message =
            format!("the message has more values than fit into {most} of memory; send it in several calls");
        return Err(Status::new(Code::OutOfRange, message));
    }
    charge(DECODED_MOST - left)?;
    U::decode(message)
        .map_err(|error| Status::invalid_argument(format!("the message cannot be read: {error}")))
}

/// Messages that take less are not charged, because the many small calls should not pay for it.
const CHARGED: usize = 64 << 10;

/// Charges a decoded message to the byte budget of unfinished requests, until the call is answered.
fn charge(bytes: usize) -> Result<(), Status> {
    match Call::current() {
        Some(call) if bytes > CHARGED && !call.try_charge(bytes) => Err(Status::resource_exhausted(
            "unfinished requests have taken all of their memory, or this client has taken half of it; try again later",
        )),
        _ => Ok(()),
    }
}

/// The memory that the fields of a message take.
struct Shape {
    /// Bytes per field, or per element of a repeated field, whose list grows by doubling.
    field: usize,
    /// Bytes of the first entry of a map, which allocates a whole B-tree node.
    first_entry: usize,
    /// The fields that are messages themselves, by number.
    inside: &'static [(u32, &'static Shape)],
}

/// A message of plain fields.
static FLAT: Shape = Shape { field: 96, first_entry: 0, inside: &[] };

static ADD: Shape = Shape { field: 3 * size_of::<proto::Draft>(), first_entry: 0, inside: &[(1, &DRAFT)] };
static DRAFT: Shape = Shape { field: 160, first_entry: ENTRY_NODE, inside: &[(1, &FLAT), (3, &ENTRY)] };
static ENTRY: Shape = Shape { field: 100, first_entry: 0, inside: &[(2, &VALUE)] };
static VALUE: Shape = Shape { field: 0, first_entry: 0, inside: &[(6, &LIST), (7, &MAP)] };
static LIST: Shape = Shape { field: 3 * size_of::<proto::Value>(), first_entry: 0, inside: &[(1, &VALUE)] };
static MAP: Shape = Shape { field: 160, first_entry: ENTRY_NODE, inside: &[(1, &ENTRY)] };

/// The size of a B-tree node of a map of values.
const ENTRY_NODE: usize = 12 * (size_of::<String>() + size_of::<proto::Value>());

/// The decoder's recursion limit.
const DEPTH_MOST: usize = 100;

impl Shape {
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
            let Some((_, shape)) = self.inside.iter().find(|(inside, _)| *inside == number) else { continue };
            if std::ptr::eq(*shape, &ENTRY) && !std::mem::replace(&mut has_entries, true) {
                *left = left.checked_sub(self.first_entry)?;
            }
            shape.measure(field, depth + 1, left)?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::sync::{Arc, Mutex};
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
            let message = message.clone();
            call.scope(async { read::<proto::AddRequest>(message).map(drop) }).await
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
            let (read, peak) = peak_of(|| read::<proto::AddRequest>(message.clone()));
            assert_eq!(read.unwrap_err().code(), Code::OutOfRange, "{what}");
            assert!(peak < 1 << 10, "{what}: {peak} bytes");
        }
        let targets = Bytes::from(empty(1));
        let (refused, peak) = peak_of(|| read::<proto::GetManyRequest>(targets.clone()));
        assert_eq!(refused.unwrap_err().code(), Code::OutOfRange);
        assert!(peak < 1 << 10, "{peak} bytes");
        let inputs = Bytes::from(empty(3));
        let refused = read::<crate::proto::deriva::PutRecipeRequest>(inputs).unwrap_err();
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
            let (decoded, peak) = peak_of(|| read::<proto::AddRequest>(message.clone()));
            assert_eq!(decoded.unwrap().drafts.len(), count);
            let measured = (usize::MAX - left) as i64;
            assert!(peak <= measured + message.len() as i64, "{peak} bytes, measured {measured}");
            assert!(measured < 6 * peak, "{measured} is far from {peak} bytes");
        }
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
            assert!(off_worker::<SlowMessage>(message).is_ok());
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
                read::<proto::AddRequest>(Bytes::copy_from_slice(broken)).unwrap_err().code(),
                Code::InvalidArgument
            );
        }
    }
}
