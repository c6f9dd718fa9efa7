//! Random messages to every call of gRPC: each is answered, never with a fault of the server.

use anabranch_server::proto::DESCRIPTORS;
use anabranch_testkit::Rng;
use bytes::{Buf as _, BufMut as _};
use protox::prost::Message as _;
use protox::prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, Value,
};
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Code, Request, Status};

use crate::random_requests::{Fixture, seed};
use crate::random_values::text;
use crate::support::soon;

/// Calls per method.
const CALLS: usize = 24;

/// Messages as their bytes.
#[derive(Clone, Copy, Default)]
struct Plain;

impl Codec for Plain {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Plain;
    type Decoder = Plain;

    fn encoder(&mut self) -> Plain {
        Plain
    }

    fn decoder(&mut self) -> Plain {
        Plain
    }
}

impl Encoder for Plain {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, message: Vec<u8>, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put_slice(&message);
        Ok(())
    }
}

impl Decoder for Plain {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let len = buffer.remaining();
        Ok(Some(buffer.copy_to_bytes(len).to_vec()))
    }
}

/// A value of a field's kind. Texts and bytes are often ones that exist.
fn value(rng: &mut Rng, kind: &Kind, known: &[String], depth: u32) -> Value {
    let name = |rng: &mut Rng| if rng.percent(50) { rng.choose(known).clone() } else { text(rng) };
    let number = *rng.choose(&[0, 1, 2, 7, 1 << 20, u64::MAX >> 1, u64::MAX]);
    match kind {
        Kind::Bool => Value::Bool(rng.percent(50)),
        Kind::String => Value::String(name(rng)),
        Kind::Bytes => {
            let name = name(rng);
            let bytes = data_encoding::HEXLOWER.decode(name.as_bytes());
            Value::Bytes(bytes.unwrap_or(name.into_bytes()).into())
        }
        Kind::Double => Value::F64(*rng.choose(&[0.0, -1.5e300, f64::NAN, f64::INFINITY])),
        Kind::Float => Value::F32(*rng.choose(&[0.0, f32::NAN, f32::NEG_INFINITY])),
        Kind::Uint32 | Kind::Fixed32 => Value::U32(number as u32),
        Kind::Uint64 | Kind::Fixed64 => Value::U64(number),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => Value::I32(number as i32),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Value::I64(number as i64),
        Kind::Enum(_) => Value::EnumNumber(rng.within(0..5) as i32 - 1),
        Kind::Message(inside) => Value::Message(message(rng, inside, known, depth)),
    }
}

fn field(rng: &mut Rng, field: &FieldDescriptor, known: &[String], depth: u32) -> Value {
    if let (true, Kind::Message(entry)) = (field.is_map(), field.kind()) {
        let of = entry.map_entry_value_field().kind();
        return Value::Map([(MapKey::String(text(rng)), value(rng, &of, known, depth))].into());
    }
    if field.is_list() {
        return Value::List((0..rng.within(0..4)).map(|_| value(rng, &field.kind(), known, depth)).collect());
    }
    value(rng, &field.kind(), known, depth)
}

/// A message with some of its fields.
fn message(rng: &mut Rng, of: &MessageDescriptor, known: &[String], depth: u32) -> DynamicMessage {
    let mut message = DynamicMessage::new(of.clone());
    for descriptor in of.fields() {
        if depth > 0 && rng.percent(60) {
            message.set_field(&descriptor, field(rng, &descriptor, known, depth - 1));
        }
    }
    message
}

/// The answer to a stream of messages: its messages, and how it ended.
async fn call(grpc: &mut Grpc<tonic::transport::Channel>, path: &str, sent: Vec<Vec<u8>>) -> Status {
    grpc.ready().await.unwrap();
    let request = Request::new(futures_util::stream::iter(sent));
    let mut answer = match grpc.streaming(request, path.parse().unwrap(), Plain).await {
        Ok(answer) => answer.into_inner(),
        Err(status) => return status,
    };
    loop {
        match answer.message().await {
            Ok(Some(_)) => {}
            Ok(None) => return Status::ok(""),
            Err(status) => return status,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_answers_any_message() {
    let fixture = Fixture::start().await;
    let known = fixture.names();
    let mut grpc = Grpc::new(fixture.shop.http.server.channel().await);
    let pool = DescriptorPool::decode(DESCRIPTORS).unwrap();
    let seed = seed();
    let mut rng = Rng::new(seed);
    let (mut sent, mut fine) = (0, 0);
    // Events have no end.
    for method in pool.services().flat_map(|service| service.methods().collect::<Vec<_>>()) {
        if method.name() == "Events" {
            continue;
        }
        let path = format!("/{}/{}", method.parent_service().full_name(), method.name());
        for _ in 0..CALLS {
            let count = if method.is_client_streaming() { rng.within(0..4) } else { 1 };
            let messages: Vec<Vec<u8>> = (0..count)
                .map(|_| match rng.percent(15) {
                    true => (0..rng.within(0..60)).map(|_| rng.bits() as u8).collect(),
                    false => message(&mut rng, &method.input(), &known, 4).encode_to_vec(),
                })
                .collect();
            let status = soon(call(&mut grpc, &path, messages.clone())).await;
            let is_fault = matches!(status.code(), Code::Unknown | Code::Internal | Code::DataLoss);
            assert!(!is_fault, "seed {seed}: {path} {messages:02x?}\n{status}");
            sent += 1;
            fine += usize::from(status.code() == Code::Ok);
        }
    }
    assert!(sent > 500 && fine > 50, "{sent} calls, {fine} fine");
}
