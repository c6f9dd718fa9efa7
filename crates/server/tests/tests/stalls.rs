//! Clients that stall, trickle or idle, and how much all of them can hold.

use std::convert::Infallible;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::clock::Clock;
use anabranch_recipe::{Address, Draft, DraftInput, Executor, Functions, Params, UnknownFunction, Value};
use anabranch_server::proto::plans::plans_client::PlansClient;
use anabranch_server::proto::plans::{RunManyResponse, RunRequest};
use anabranch_server::{ClientError, Code, Load, Service, Settings, Token};
use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tonic::Streaming;

use crate::access::{GuardedServer, bearer, tokens};
use crate::deriva_wire::Deriva;
use crate::guard::send;
use crate::support::{Beside, Server, TempFolder, TestClock, beside, soon, until};

pub(crate) const HOUR: Duration = Duration::from_secs(3600);
pub(crate) const SECOND: Duration = Duration::from_secs(1);

const NOTHING: Load = Load { connections: 0, calls: 0, unfinished_bytes: 0, uploads: 0 };

pub(crate) async fn start(settings: Settings) -> Server {
    Server::on_test_time(Functions::builtin(), settings).await
}

/// A request whose body has `len` bytes, of which `sent` are sent.
pub(crate) async fn part_of(server: &Server, line: &str, len: usize, sent: usize) -> TcpStream {
    let mut stream = server.connect().await;
    send_part(&mut stream, line, len, sent).await;
    stream
}

async fn send_part(stream: &mut TcpStream, line: &str, len: usize, sent: usize) {
    let head = format!(
        "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {len}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(&vec![b' '; sent]).await.unwrap();
}

/// The answer, which ends the connection. A client that goes on sending may lose it.
pub(crate) async fn answer(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_body_that_stalls_is_given_up() {
    let server = start(Settings::default()).await;
    for line in ["POST /v1/blobs", "POST /v1/recipes", "PUT /v1/refs/name"] {
        let mut stalled = part_of(&server, line, 1000, 10).await;
        until(|| server.service.load().calls == 1).await;
        let said = server.clock.steps(SECOND, answer(&mut stalled)).await;
        assert!(said.starts_with("HTTP/1.1 504"), "{line}: {said}");
        assert!(said.contains("less than 1 KiB of the request within 20 s"), "{said}");
        until(|| server.service.load() == NOTHING).await;
    }
}

#[tokio::test]
async fn a_body_that_trickles_is_given_up() {
    let server = start(Settings::default()).await;
    let mut stream = part_of(&server, "POST /v1/blobs", 1_000_000, 10).await;
    until(|| server.service.load().calls == 1).await;
    soon(async {
        while stream.write_all(b" ").await.is_ok() {
            server.clock.advance(5 * SECOND);
            tokio::task::yield_now().await;
        }
    })
    .await;
    until(|| server.service.load() == NOTHING).await;
    assert_eq!(server.executor.status().store.blobs, 0);
}

#[tokio::test]
async fn a_body_that_is_only_slow_is_read() {
    let server = start(Settings::default()).await;
    let mut stream = part_of(&server, "POST /v1/recipes", 5100, 1024).await;
    for part in 1..5 {
        until(|| server.service.load().unfinished_bytes == part * 1024).await;
        server.clock.advance(19 * SECOND);
        stream.write_all(&vec![b' '; (5100 - part * 1024).min(1024)]).await.unwrap();
    }
    assert!(soon(answer(&mut stream)).await.starts_with("HTTP/1.1 400"), "there is nothing in it");
}

#[tokio::test]
async fn a_stream_that_stalls_is_given_up() {
    let server = start(Settings::default()).await;
    let client = server.client().await;
    let first = || stream::iter([Ok::<_, std::io::Error>(Bytes::from(vec![1; 100_000]))]);
    let mut put = pin!(client.put_stream(first().chain(stream::pending())));
    tokio::select! {
        put = &mut put => panic!("it is not at its end: {put:?}"),
        () = until(|| server.service.load().uploads == 1) => {}
    }
    let failed = server.clock.steps(SECOND, put).await.unwrap_err();
    assert_eq!(failed.code(), Some(Code::DeadlineExceeded), "{failed}");
    // An import that stalls does not keep others from archives.
    let begin = stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"ana"))]);
    let terms = anabranch_content::Import::default();
    let mut import = pin!(client.import(begin.chain(stream::pending()), &terms));
    tokio::select! {
        import = &mut import => panic!("it is not at its end: {import:?}"),
        () = until(|| server.service.load().calls == 1) => {}
    }
    let failed = server.clock.steps(SECOND, import).await.unwrap_err();
    assert_eq!(failed.code(), Some(Code::DeadlineExceeded), "{failed}");
    until(|| server.service.load().calls == 0).await;
    client.put("still there").await.unwrap();
}

#[tokio::test]
async fn a_client_has_half_of_the_budget_of_unfinished_requests() {
    let settings = Settings { unfinished_most: 200_000, stall_timeout: HOUR, ..Settings::default() };
    let server = start(settings).await;
    let first = part_of(&server, "POST /v1/recipes", 95_000, 90_000).await;
    until(|| server.service.load().unfinished_bytes == 90_000).await;
    let mut second = part_of(&server, "POST /v1/recipes", 95_000, 20_000).await;
    let said = server.clock.steps(SECOND, answer(&mut second)).await;
    assert!(said.starts_with("HTTP/1.1 503") && said.contains("195.3 KiB"), "{said}");
    let deriva = Deriva(server.channel().await);
    let put =
        beside(async move { deriva.call::<_, crate::deriva_wire::Data>("PutLeaf", leaf(50_000)).await });
    let refused = server.clock.steps(SECOND, put.done()).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    let mut other = from_elsewhere(&server).await;
    send_part(&mut other, "POST /v1/recipes", 80_000, 80_000).await;
    assert!(soon(answer(&mut other)).await.starts_with("HTTP/1.1 400"), "there is nothing in it");
    drop(first);
    until(|| server.service.load().unfinished_bytes == 0).await;
    Deriva(server.channel().await).leaf(vec![1; 50_000]).await;
    until(|| server.service.load().unfinished_bytes == 0).await;
    // Blobs are charged by the piece, so they may have more.
    let mut blob = part_of(&server, "POST /v1/blobs", 1_000_000, 1_000_000).await;
    assert!(soon(answer(&mut blob)).await.starts_with("HTTP/1.1 201"));
}

/// A connection of another client.
pub(crate) async fn from_elsewhere(server: &Server) -> TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    socket.connect(server.url.strip_prefix("http://").unwrap().parse().unwrap()).await.unwrap()
}

/// It is never too slow for long, but would hold its memory for days.
#[tokio::test]
async fn a_body_that_dribbles_is_given_up() {
    let server = start(Settings::default()).await;
    let mut stream = part_of(&server, "POST /v1/recipes", 1_000_000, 1024).await;
    let (load, mut sent) = (|| server.service.load(), 1024);
    until(|| load().unfinished_bytes == sent).await;
    while load().calls == 1 {
        server.clock.advance(19 * SECOND);
        let _ = stream.write_all(&[b' '; 1024]).await;
        sent += 1024;
        until(|| load().unfinished_bytes == sent || load().calls == 0).await;
        assert!(sent < 20 << 10, "six minutes are enough");
    }
    let said = answer(&mut stream).await;
    assert!(said.is_empty() || said.contains("less than 16 KiB of the request per second"), "{said}");
    until(|| server.service.load() == NOTHING).await;
}

/// It is never too slow for long, but would keep others from archives for hours.
#[tokio::test]
async fn an_archive_that_dribbles_is_given_up() {
    let server = start(Settings::default()).await;
    let client = server.client().await;
    let address = client.put(crate::support::noise(1_000_000, 5)).await.unwrap().address;
    let mut export = client.export([address.into()]).await.unwrap();
    let mut archive = Vec::new();
    while let Some(piece) = soon(export.next()).await {
        archive.extend_from_slice(&piece.unwrap());
    }
    let (sender, pieces) = tokio::sync::mpsc::unbounded_channel();
    let pieces = stream::unfold(pieces, async |mut pieces| {
        let piece: Bytes = pieces.recv().await?;
        Some((Ok::<_, std::io::Error>(piece), pieces))
    });
    let (load, mut rest) = (|| server.service.load(), Bytes::from(archive));
    let feed = async {
        sender.send(rest.split_to(1000)).unwrap();
        until(|| load().unfinished_bytes > 0).await;
        // The pieces differ in size, which shows that one has arrived. Time counts only while the store waits for one.
        for size in (1024..1030).cycle().take_while(|_| load().calls == 1) {
            let held = load().unfinished_bytes;
            server.clock.advance(19 * SECOND);
            sender.send(rest.split_to(size.min(rest.len()))).unwrap();
            until(|| load().unfinished_bytes != held).await;
        }
        drop(sender);
    };
    let terms = anabranch_content::Import::default();
    let (imported, ()) = soon(async { tokio::join!(client.import(pieces, &terms), feed) }).await;
    let failed = imported.unwrap_err();
    assert_eq!(failed.code(), Some(Code::DeadlineExceeded), "{failed}");
    assert!(failed.to_string().contains("less than 16 KiB of the request per second"), "{failed}");
}

/// A stream of requests for plans, which the test feeds. Their answers are errors, because there are no plans.
async fn plan_requests(server: &Server) -> (UnboundedSender<RunRequest>, Streaming<RunManyResponse>) {
    let (sender, requests) = tokio::sync::mpsc::unbounded_channel();
    let requests = stream::unfold(requests, async |mut requests: UnboundedReceiver<RunRequest>| {
        Some((requests.recv().await?, requests))
    });
    let mut client = PlansClient::new(server.channel().await);
    (sender, soon(client.run_many(requests)).await.unwrap().into_inner())
}

/// A service may keep one stream, and send a small request now and then.
#[tokio::test]
async fn a_stream_of_requests_may_pause_between_them() {
    let server = start(Settings::default()).await;
    let (sender, mut answers) = plan_requests(&server).await;
    server.clock.advance(200 * SECOND);
    for place in 0..5 {
        sender.send(RunRequest::default()).unwrap();
        let answer = soon(answers.message()).await.unwrap().unwrap();
        assert_eq!(answer.place, place);
        server.clock.advance(200 * SECOND);
    }
    assert_eq!(server.service.load().calls, 1);
}

#[tokio::test]
async fn an_idle_stream_of_requests_is_ended() {
    let server = start(Settings::default()).await;
    let (sender, mut answers) = plan_requests(&server).await;
    sender.send(RunRequest::default()).unwrap();
    soon(answers.message()).await.unwrap().unwrap();
    let began = server.clock.now();
    let end = server.clock.steps(SECOND, answers.message()).await.unwrap_err();
    assert_eq!(end.code(), Code::DeadlineExceeded, "{end}");
    assert!(end.message().contains("sent no request for 5m 00s"), "{end}");
    assert!(server.clock.now() >= began + 300 * SECOND);
    until(|| server.service.load().calls == 0).await;
}

/// The beginning of a request is not a pause.
#[tokio::test]
async fn a_request_of_a_stream_that_stalls_is_given_up() {
    let server = start(Settings::default()).await;
    let client = HttpClient::builder(TokioExecutor::new()).http2_only(true).build_http();
    let begun = stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"\0\0\0\0\x50\x0a")))]);
    let request = hyper::Request::post(format!("{}/anabranch.plan.v1.Plans/RunMany", server.url))
        .header("content-type", "application/grpc")
        .body(StreamBody::new(begun.chain(stream::pending())))
        .unwrap();
    let answer = soon(client.request(request)).await.unwrap();
    until(|| server.service.load().unfinished_bytes == 6).await;
    let end = server.clock.steps(SECOND, answer.into_body().collect()).await.unwrap();
    let message = end.trailers().unwrap()["grpc-message"].to_str().unwrap();
    assert!(message.contains("less%20than%201%20KiB%20of%20the%20request%20within%2020%20s"), "{message}");
}

/// A value of several megabytes, and the start of a request for it. The client's system keeps little of it unread.
async fn unread_value(server: &Server) -> TcpStream {
    let address = server.executor.put(crate::support::noise(16 << 20, 3)).await.unwrap().address;
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(64 << 10).unwrap();
    let mut stream =
        socket.connect(server.url.strip_prefix("http://").unwrap().parse().unwrap()).await.unwrap();
    let request = format!("GET /v1/blobs/{address} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn a_response_that_nobody_reads_is_given_up() {
    let server = start(Settings::default()).await;
    let mut stream = unread_value(&server).await;
    until(|| server.service.load().calls == 1).await;
    server.clock.steps(SECOND, until(|| server.service.load() == NOTHING)).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(answer.len() < 16 << 20, "{}", answer.len());
}

#[tokio::test]
async fn a_response_that_is_read_slowly_is_sent() {
    let server = start(Settings::default()).await;
    let mut stream = unread_value(&server).await;
    // More than the systems of both keep, so the server has sent something since the last piece was read.
    let mut piece = vec![0; 7 << 20];
    for _ in 0..2 {
        soon(stream.read_exact(&mut piece)).await.unwrap();
        server.clock.advance(19 * SECOND);
    }
    soon(stream.read_exact(&mut piece[..2 << 20])).await.unwrap();
}

fn leaf(len: usize) -> crate::deriva_wire::Data {
    crate::deriva_wire::Data { data: vec![1; len] }
}

#[tokio::test]
async fn large_blobs_wait_for_a_place() {
    let settings = Settings { uploads_most: 1, stall_timeout: HOUR, ..Settings::default() };
    let server = start(settings).await;
    let first = part_of(&server, "POST /v1/blobs", 200_000, 100_000).await;
    until(|| server.service.load().uploads == 1).await;
    let mut second = part_of(&server, "POST /v1/blobs", 100_000, 100_000).await;
    until(|| server.service.load().calls == 2).await;
    // A small one is not a file.
    let mut small = part_of(&server, "POST /v1/blobs", 60_000, 60_000).await;
    assert!(soon(answer(&mut small)).await.starts_with("HTTP/1.1 201"));
    assert_eq!(server.service.load().calls, 2);
    drop(first);
    assert!(soon(answer(&mut second)).await.starts_with("HTTP/1.1 201"));
    until(|| server.service.load() == NOTHING).await;
}

/// The envelope of the message does not count.
#[tokio::test]
async fn a_leaf_of_the_largest_size_is_taken() {
    let settings = Settings { leaf_most: 1 << 20, message_most: 1 << 16, ..Settings::default() };
    let server = start(settings).await;
    let deriva = Deriva(server.channel().await);
    deriva.leaf(vec![1; 1 << 20]).await;
    let put = deriva.call::<_, crate::deriva_wire::Data>("PutLeaf", leaf((1 << 20) + 100)).await;
    assert_eq!(put.unwrap_err().code(), Code::OutOfRange);
    let other = deriva.call::<_, crate::deriva_wire::Data>("PutRecipe", leaf(1 << 17)).await;
    assert_eq!(other.unwrap_err().code(), Code::OutOfRange, "other messages are smaller");
}

/// More recipes than one message holds are sent in several.
#[tokio::test]
async fn many_recipes_are_added_in_several_calls() {
    let server = start(Settings::default()).await;
    let draft = |place: usize| Draft {
        function: "unknown/1".parse().unwrap(),
        inputs: (0..place).map(DraftInput::Earlier).collect(),
        params: Params::from([("note".to_owned(), Value::Text("x".repeat(3 << 20)))]),
    };
    let drafts: Vec<Draft> = (0..7).map(draft).collect();
    let local = server.executor.add_all(&drafts, UnknownFunction::Accept).await.unwrap();
    let sent = server.client().await.add_all(&drafts, UnknownFunction::Accept).await.unwrap();
    for (local, sent) in local.iter().zip(&sent) {
        assert_eq!((local.address, sent.new, sent.dangling.len()), (sent.address, false, 0));
    }
    let beyond = Draft { inputs: vec![DraftInput::Earlier(7)], ..draft(0) };
    let wrong = [&drafts[..], &[beyond]].concat();
    let refused = server.client().await.add_all(&wrong, UnknownFunction::Accept).await.unwrap_err();
    assert!(matches!(refused, ClientError::Call { code: Code::InvalidArgument, .. }), "{refused}");
}

/// Or else a mistake at the end of a long list would leave its beginning behind.
#[tokio::test]
async fn all_recipes_of_several_calls_are_checked_before_one_is_kept() {
    let server = start(Settings::default()).await;
    let client = server.client().await;
    let draft = |function: &str, pattern: &str| Draft {
        function: function.parse().unwrap(),
        inputs: vec![DraftInput::Address(Address::of(b"x"))],
        params: Params::from([("pattern".to_owned(), Value::Text(pattern.repeat(3 << 20)))]),
    };
    let drafts = [draft("grep/1.0.0", "x"), draft("grep/1.0.0", "y"), draft("grep/7.7.7", "x")];
    let refused = client.add_all(&drafts, UnknownFunction::Refuse).await.unwrap_err();
    assert_eq!(refused.code(), Some(Code::FailedPrecondition), "{refused}");
    assert_eq!(server.executor.status().store.derivations, 0);
    let added = client.add_all(&drafts[..2], UnknownFunction::Refuse).await.unwrap();
    assert!(added.iter().all(|added| added.new), "{added:?}");
    assert_eq!(server.executor.status().store.derivations, 2);
}

/// Or else it would keep all others from archives.
#[tokio::test]
async fn an_archive_that_nobody_reads_is_given_up() {
    let server = start(Settings::default()).await;
    let client = server.client().await;
    let address = client.put(crate::support::noise(6_000_000, 7)).await.unwrap().address;
    let mut unread = client.export([address.into()]).await.unwrap();
    let other = server.client().await;
    let refused = other.export([address.into()]).await.unwrap_err();
    assert_eq!(refused.code(), Some(Code::Unavailable), "{refused}");
    let export = async {
        loop {
            if let Ok(export) = other.export([address.into()]).await {
                return export;
            }
        }
    };
    let mut read = server.clock.steps(SECOND, export).await;
    while let Some(piece) = soon(read.next()).await {
        piece.unwrap();
    }
    assert!(read.exported().is_some());
    let ended = soon(async {
        loop {
            match unread.next().await {
                Some(Ok(_)) => {}
                ended => return ended,
            }
        }
    });
    let failed = ended.await.unwrap().unwrap_err();
    assert_eq!(failed.code(), Some(Code::DeadlineExceeded), "{failed}");
}

/// A client with one HTTP/2 connection for all of its uploads.
struct Uploads {
    client: HttpClient<HttpConnector, StreamBody<Pieces>>,
    url: String,
    token: Token,
}

type Pieces = BoxStream<'static, Result<Frame<Bytes>, Infallible>>;

impl Uploads {
    fn new(server: &Server, token: &Token) -> Uploads {
        let client = HttpClient::builder(TokioExecutor::new()).http2_only(true).build_http();
        Uploads { client, url: format!("{}/v1/blobs", server.url), token: token.clone() }
    }

    /// The status of the answer to an upload.
    fn send(&self, pieces: Pieces) -> Beside<u16> {
        let request = hyper::Request::post(&self.url)
            .header("authorization", format!("Bearer {}", self.token.as_str()))
            .body(StreamBody::new(pieces));
        let answer = self.client.request(request.unwrap());
        beside(async { answer.await.unwrap().status().as_u16() })
    }

    /// Uploads that send so many bytes and then nothing, as many as one connection may have.
    fn stalled(&self, len: usize) -> Vec<Beside<u16>> {
        let bytes = Bytes::from(vec![1; len]);
        let upload = |_| self.send(piece(bytes.clone()).chain(stream::pending()).boxed());
        (0..Settings::default().calls_most).map(upload).collect()
    }
}

fn piece(bytes: Bytes) -> Pieces {
    stream::iter([Ok(Frame::data(bytes))]).boxed()
}

/// A server with tokens whose store is in a folder.
async fn stored_in(folder: &Path, test: &str) -> GuardedServer {
    let (access, tokens) = tokens(test);
    let executor = Executor::open(folder, Functions::builtin()).await.unwrap();
    let clock = Arc::new(TestClock::default());
    let dyn_clock = Arc::clone(&clock) as Arc<dyn Clock>;
    let service = Service::with_clock(executor.clone(), Settings::default(), dyn_clock).with_access(access);
    GuardedServer { server: Server::of(executor, service, clock).await, tokens }
}

/// The files of a folder that this process has open. Other tests have files elsewhere.
fn open_files(folder: &Path) -> usize {
    let folder = folder.canonicalize().unwrap();
    let is_inside = |link: &Path| std::fs::read_link(link).is_ok_and(|file| file.starts_with(&folder));
    let links = std::fs::read_dir("/proc/self/fd").unwrap();
    links.filter(|link| link.as_ref().is_ok_and(|link| is_inside(&link.path()))).count()
}

/// Waits until the metrics have these lines.
async fn metrics(server: &Server, token: &Token, lines: &[String]) {
    let have = async || {
        let page = send(server, "GET /metrics", &[&bearer(token)], b"").await.1;
        lines.iter().all(|line| page.lines().any(|found| found == line))
    };
    soon(async { while !have().await {} }).await;
}

/// Files that the store opens and closes by itself.
const OTHER_FILES: usize = 16;

#[tokio::test]
async fn stalled_streams_of_one_connection_leave_room_for_others() {
    let folder = TempFolder::new();
    let GuardedServer { server, tokens: [local, _, run, _] } = stored_in(folder.path(), "streams").await;
    let (clock, settings) = (&server.clock, Settings::default());
    let (streams, others) = (settings.calls_most as usize, bearer(&local));
    let before = open_files(folder.path());
    assert!(before > 0, "the log of the store is open");
    let uploads = Uploads::new(&server, &run);
    let stalled = uploads.stalled(100);
    let all_received = [
        format!("anabranch_received_bytes_total {}", streams * 100),
        format!("anabranch_requests_in_flight {streams}"),
    ];
    metrics(&server, &local, &all_received).await;
    // A piece is charged until the next one is waited for.
    let waiting = Load { connections: 1, calls: streams, ..NOTHING };
    until(|| server.service.load() == waiting).await;
    assert!(open_files(folder.path()) <= before + OTHER_FILES);
    // The client has all the slots that it may have. Another request of it waits for one, and in vain.
    let own = [bearer(&run)];
    let more = async { send(&server, "GET /v1/refs", &[&own[0]], b"").await.0 };
    let late = async {
        metrics(&server, &local, &["anabranch_requests_queued 1".to_owned()]).await;
        clock.advance(settings.queue_wait);
    };
    assert_eq!(tokio::join!(more, late).0, 503);
    assert_eq!(send(&server, "GET /v1/status", &[&others], b"").await.0, 200);
    assert_eq!(send(&server, "POST /v1/blobs", &[&others], b"fine").await.0, 201);
    until(|| server.service.load() == waiting).await;
    clock.advance(settings.stall_timeout - settings.queue_wait);
    for upload in stalled {
        assert_eq!(upload.done().await, 504);
    }
    until(|| server.service.load() == Load { connections: 1, ..NOTHING }).await;
    metrics(&server, &local, &["anabranch_requests_in_flight 0".to_owned()]).await;
    // The connection is as good as new, its window included.
    assert_eq!(uploads.send(piece(vec![1; 3 << 20].into())).done().await, 201);
    drop(uploads);
    until(|| server.service.load() == NOTHING && open_files(folder.path()) <= before + OTHER_FILES).await;
    assert_eq!(server.executor.status().store.blobs, 2);
}
