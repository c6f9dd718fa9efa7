//! The server as a whole: health, reflection, compression, shutting down, and guests that misbehave.

use std::time::Duration;

use anabranch_recipe::{Executor, Recipe, UnknownFunction};
use anabranch_server::proto::deriva::deriva_client::DerivaClient;
use anabranch_server::proto::deriva::{GetRequest, PutLeafRequest};
use anabranch_server::proto::recipes::recipes_client::RecipesClient;
use anabranch_server::proto::recipes::{
    AddRequest, CollectRequest, Draft, FunctionId, GetRequest as OurGet, InvalidateRequest, List, Target,
    Value, value,
};
use anabranch_server::{Client, ClientError, Code, Service, Settings};
use futures_util::stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tonic::codec::CompressionEncoding;
use tonic::codegen::Service as _;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use crate::deriva_wire::{Data, Deriva};
use crate::support::{Gate, OpenOnDrop, Server, beside, soon, until};

#[tokio::test]
async fn health() {
    let mut server = Server::start().await;
    let mut health = HealthClient::new(server.channel().await);
    for service in ["", "deriva.Deriva", "anabranch.recipe.v1.Recipes"] {
        let request = HealthCheckRequest { service: service.to_owned() };
        let status = health.check(request).await.unwrap().into_inner().status();
        assert_eq!(status, ServingStatus::Serving, "{service:?}");
    }
    let other = HealthCheckRequest { service: "other".to_owned() };
    assert_eq!(health.check(other).await.unwrap_err().code(), Code::NotFound);
    let mut watch = health.watch(HealthCheckRequest::default()).await.unwrap().into_inner();
    assert_eq!(watch.message().await.unwrap().unwrap().status(), ServingStatus::Serving);
    server.stop();
    assert_eq!(soon(watch.message()).await.unwrap().unwrap().status(), ServingStatus::NotServing);
    assert!(soon(watch.message()).await.unwrap().is_none());
    assert_eq!(server.served().await.cut, 0);
}

#[tokio::test]
async fn reflection() {
    let server = Server::start().await;
    let mut reflection = ServerReflectionClient::new(server.channel().await);
    let ask = |message_request| ServerReflectionRequest {
        host: String::new(),
        message_request: Some(message_request),
    };
    let requests = [
        ask(MessageRequest::ListServices(String::new())),
        ask(MessageRequest::FileContainingSymbol("deriva.Deriva".to_owned())),
        ask(MessageRequest::FileContainingSymbol("anabranch.recipe.v1.Recipes".to_owned())),
    ];
    let mut answers = reflection.server_reflection_info(stream::iter(requests)).await.unwrap().into_inner();
    let Some(MessageResponse::ListServicesResponse(list)) =
        answers.message().await.unwrap().unwrap().message_response
    else {
        panic!("no list of services");
    };
    let names: Vec<_> = list.service.into_iter().map(|service| service.name).collect();
    assert!(
        names.contains(&"deriva.Deriva".to_owned())
            && names.contains(&"anabranch.recipe.v1.Recipes".to_owned())
    );
    for _ in 0..2 {
        let answer = answers.message().await.unwrap().unwrap().message_response;
        assert!(matches!(answer, Some(MessageResponse::FileDescriptorResponse(_))), "{answer:?}");
    }
}

#[tokio::test]
async fn compression_for_those_who_ask() {
    let server = Server::start().await;
    let text = vec![b'a'; 60_000];
    let put = PutLeafRequest { data: text.clone().into() };
    let gzip = CompressionEncoding::Gzip;
    let mut client = DerivaClient::new(server.channel().await).send_compressed(gzip).accept_compressed(gzip);
    let addr = client.put_leaf(put.clone()).await.unwrap().into_inner().addr;
    let answer = client.get(GetRequest { addr }).await.unwrap();
    assert!(answer.metadata().get("grpc-encoding").is_some());
    assert_eq!(answer.into_inner().message().await.unwrap().unwrap().chunk, text);
    let mut plain = DerivaClient::new(server.channel().await);
    let addr = plain.put_leaf(put).await.unwrap().into_inner().addr;
    let answer = plain.get(GetRequest { addr }).await.unwrap();
    assert!(answer.metadata().get("grpc-encoding").is_none());
}

/// A few bytes that unpack to more than a message may have.
#[tokio::test]
async fn compressed_messages_have_the_same_bound() {
    let settings = Settings { leaf_most: 100_000, ..Settings::default() };
    let server = Server::with(anabranch_recipe::Functions::builtin(), settings).await;
    let mut client = DerivaClient::new(server.channel().await).send_compressed(CompressionEncoding::Gzip);
    let large = PutLeafRequest { data: vec![0; 50_000_000].into() };
    let refused = client.put_leaf(large).await.unwrap_err();
    assert!(matches!(refused.code(), Code::OutOfRange | Code::ResourceExhausted), "{refused:?}");
    assert_eq!(server.executor.status().store.blobs, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_under_way_end_well() {
    let gate = Gate::default();
    let _open = OpenOnDrop(gate.clone());
    // Time stands still, so that the grace period does not pass on a busy machine.
    let mut server = Server::on_test_time(gate.functions(), Settings::default()).await;
    let deriva = Deriva(server.channel().await);
    let leaf = deriva.leaf(vec![1; 4096]).await;
    let slow = deriva.recipe("gate", &[&leaf]).await;
    let mut hearing = server.client().await.events().await.unwrap();
    let get = beside(async move { deriva.get(&slow).await });
    until(|| server.executor.status().computing == 1).await;
    server.stop();
    while let Some(heard) = soon(hearing.next()).await {
        heard.unwrap();
    }
    soon(async { while Client::connect(&server.url).await.is_ok() {} }).await;
    gate.open();
    assert_eq!(get.done().await.unwrap(), vec![1; 4096]);
    let served = server.served().await;
    assert_eq!((served.cut, served.drained.cut.len()), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_that_take_too_long_are_cut() {
    let gate = Gate::default();
    let _open = OpenOnDrop(gate.clone());
    let settings = Settings { grace: Duration::from_millis(50), ..Settings::default() };
    let mut server = Server::with(gate.functions(), settings).await;
    let deriva = Deriva(server.channel().await);
    let leaf = deriva.leaf(vec![1; 4096]).await;
    let slow = deriva.recipe("gate", &[&leaf]).await;
    let get = beside(async move { deriva.get(&slow).await });
    until(|| server.executor.status().computing == 1).await;
    server.stop();
    get.done().await.unwrap_err();
    server.served().await;
    until(|| server.executor.status().computing == 0).await;
}

#[tokio::test]
async fn a_connection_that_breaks_is_told_as_such() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::connect(&format!("http://{}", listener.local_addr().unwrap())).await.unwrap();
    let cut = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_exact(&mut [0; 24]).await.unwrap();
    };
    let (answer, ()) = soon(async { tokio::join!(client.status(), cut) }).await;
    let said = answer.unwrap_err().to_string();
    assert!(said.starts_with("the connection to the server broke: "), "{said}");
}

/// The server has allowed no more calls than a client may begin by itself, so the rest of them wait in the client.
#[tokio::test]
async fn calls_that_wait_for_a_connection_that_breaks_are_told_as_such() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::connect(&format!("http://{}", listener.local_addr().unwrap())).await.unwrap();
    let cut = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        // The preface, the settings and some of the calls.
        stream.read_exact(&mut [0; 2000]).await.unwrap();
        drop((stream, listener));
    };
    let calls = futures_util::future::join_all((0..500).map(|_| client.status()));
    let (answers, ()) = soon(async { tokio::join!(calls, cut) }).await;
    for answer in answers {
        let said = answer.unwrap_err();
        assert!(matches!(said, ClientError::Broken { .. } | ClientError::Connect { .. }), "{said:?}");
    }
}

#[tokio::test]
async fn nonsense_ends_its_own_connection_alone() {
    let server = Server::start().await;
    let address = server.url.strip_prefix("http://").unwrap();
    let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for nonsense in [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc".to_vec(),
        b"GET / HTTP/1.1\r\nhost: x\r\nbad header\r\n\r\n".to_vec(),
        format!("GET / HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "y".repeat(1 << 20)).into_bytes(),
        b"POST /v1/blobs HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999999999999999\r\n\r\n".to_vec(),
        b"POST /v1/blobs HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n".to_vec(),
        [preface.as_bytes(), &[0xff; 64]].concat(),
    ] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // The server may have closed it half-way.
        let _ = stream.write_all(&nonsense).await;
        let _ = stream.shutdown().await;
        let mut answer = Vec::new();
        let _ = soon(stream.read_to_end(&mut answer)).await;
        assert!(!answer.starts_with(b"HTTP/1.1 2"), "{}", String::from_utf8_lossy(&answer));
    }
    assert_eq!(server.executor.status().store.blobs, 0);
    server.client().await.put("still there").await.unwrap();
}

/// Otherwise a few silent clients would keep all others out.
#[tokio::test]
async fn silent_connections_are_closed() {
    let settings = Settings { connections_most: 2, ..Settings::default() };
    let server = Server::on_test_time(crate::support::functions(), settings).await;
    let silent = server.connect().await;
    let mut stammering = server.connect().await;
    stammering.write_all(b"PRI * HT").await.unwrap();
    for mut stream in [silent, stammering] {
        // The end is an error if the server has not read what was sent.
        let mut answer = Vec::new();
        let end = server.clock.steps(Duration::from_secs(1), stream.read_to_end(&mut answer)).await;
        assert_eq!(end.unwrap_or(0), 0);
    }
    server.client().await.put("still there").await.unwrap();
}

#[tokio::test]
async fn messages_that_mean_nothing() {
    let server = Server::start().await;
    let deriva = Deriva(server.channel().await);
    // Not UTF-8 where a name should be.
    let broken = deriva.call::<_, Data>("PutRecipe", Data { data: vec![0xff; 8] }).await.unwrap_err();
    assert!(!broken.message().is_empty());
    let mut ours = RecipesClient::new(server.channel().await);
    let unset = ours.get(OurGet { target: None, start: 0, end: None }).await.unwrap_err();
    assert_eq!(unset.message(), "`target` is not set, or is set to something unknown here");
    assert_eq!(unset.code(), Code::InvalidArgument);
    let empty = Some(Target { of: None });
    let backwards = OurGet { target: empty.clone(), start: 5, end: Some(4) };
    assert_eq!(ours.get(backwards).await.unwrap_err().code(), Code::InvalidArgument);
    let reach = InvalidateRequest { target: empty, reach: 9, ..InvalidateRequest::default() };
    assert_eq!(ours.invalidate(reach).await.unwrap_err().message(), "`reach` is 9, which is unknown here");
    let scope = CollectRequest { scope: 7, ..CollectRequest::default() };
    assert_eq!(ours.collect(scope).await.unwrap_err().code(), Code::InvalidArgument);
    let add = AddRequest { drafts: vec![Draft::default()], unknown_function: 1, dry_run: false };
    assert_eq!(ours.add(add).await.unwrap_err().code(), Code::InvalidArgument);
    let mut deep = Value { kind: Some(value::Kind::Int(1)) };
    for _ in 0..500 {
        deep = Value { kind: Some(value::Kind::List(List { values: vec![deep] })) };
    }
    let function = Some(FunctionId { name: "x".to_owned(), version: "1".to_owned() });
    let draft = Draft { function, params: [("deep".to_owned(), deep)].into(), ..Draft::default() };
    ours.add(AddRequest { drafts: vec![draft], unknown_function: 1, dry_run: false }).await.unwrap_err();
    server.client().await.put("still there").await.unwrap();
}

/// One call of Deriva's `Get` to the router, with no client that could give up by itself; the code of its answer.
async fn call_by_hand(service: &Service, timeout: &str, message: Vec<u8>) -> String {
    let request = axum::http::Request::post("/deriva.Deriva/Get")
        .version(axum::http::Version::HTTP_2)
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("grpc-timeout", timeout)
        .body(axum::body::Body::from(message))
        .unwrap();
    let answer = soon(service.router().call(request)).await.unwrap();
    answer.headers()["grpc-status"].to_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadline_is_kept_by_the_server() {
    let gate = Gate::default();
    let _open = OpenOnDrop(gate.clone());
    let executor = Executor::in_memory(gate.functions()).unwrap();
    let leaf = executor.put(vec![1; 4096]).await.unwrap().address;
    let gated = Recipe::new(anabranch_recipe::FunctionId::new("gate", "1.0.0"), vec![leaf]);
    let slow = executor.add(&gated, UnknownFunction::Refuse).await.unwrap().address;
    let service = Service::new(executor.clone(), Settings::default());
    let message = [&[0, 0, 0, 0, 34, 0x0a, 32], &slow.as_bytes()[..]].concat();
    assert_eq!(call_by_hand(&service, "50m", message.clone()).await, "4", "DEADLINE_EXCEEDED");
    until(|| executor.status().computing == 0).await;
    assert_eq!(call_by_hand(&service, "soon", message).await, "3", "INVALID_ARGUMENT");
    // A message of four gigabytes that is not there.
    assert_eq!(call_by_hand(&service, "1S", vec![0, 255, 255, 255, 255, 1]).await, "11", "OUT_OF_RANGE");
}
