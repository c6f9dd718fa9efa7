//! Replies as servers write them, proxies, certificates and HTTP/2.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc;

use anabranch_model::{Finish, ProviderKind, ProxySettings};
use anabranch_testkit::{FakeServer, ModelScript, ModelServer};
use expect_test::{Expect, expect};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::block_on;
use crate::remote::{Setup, hello};

/// What a client reads in this reply.
fn check(kind: ProviderKind, status: &'static str, body: &'static str, expected: Expect) {
    let server = FakeServer::start(move |connection| {
        while connection.http_request().is_some() && connection.http_reply(status, body) {}
    });
    let endpoint = format!("http://127.0.0.1:{}/v1", server.port());
    let model = Setup::new(&endpoint, kind).model().unwrap();
    let read = match block_on(model.chat(hello())) {
        Ok(reply) => format!("{:?} {:?} {:?} {:?}", reply.text, reply.reasoning, reply.finish, reply.usage),
        Err(error) => format!("{}: {error}", error.class()),
    };
    expected.assert_eq(&read);
}

#[test]
fn open_ai_replies() {
    let check = |status, body, expected| check(ProviderKind::OpenAi, status, body, expected);
    check(
        "200 OK",
        r#"{"choices":[{"message":{"content":"hi","reasoning_content":"hm"},"finish_reason":"length"}],"usage":{"prompt_tokens":5,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":3}}}"#,
        expect![[
            r#""hi" Some("hm") Length Usage { input_tokens: 5, output_tokens: 2, cached_tokens: Some(3) }"#
        ]],
    );
    check(
        "200 OK",
        r#"{"choices":[{"message":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"reasoning":"hm"}}]}"#,
        expect![[r#""ab" Some("hm") Stop Usage { input_tokens: 0, output_tokens: 0, cached_tokens: None }"#]],
    );
    check(
        "200 OK",
        r#"{"choices":[{"message":{"content":null,"refusal":"No."}}]}"#,
        expect!["refused: acme/m-1: the model refused: No."],
    );
    check(
        "200 OK",
        r#"{"choices":[]}"#,
        expect!["malformed_reply: acme/m-1: the reply is not readable: it has no `choices[0].message`"],
    );
    check(
        "200 OK",
        r#"{"error":{"message":"overloaded","code":503}}"#,
        expect!["server_error: acme/m-1: server error (503): overloaded"],
    );
    check(
        "400 Bad",
        r#"{"error":{"message":"This model's maximum context length is 8 tokens","code":"context_length_exceeded"}}"#,
        expect![
            "context_length: acme/m-1: longer than the model's context (400): This model's maximum context length is 8 tokens"
        ],
    );
    check(
        "429 Too",
        r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota"}}"#,
        expect!["quota: acme/m-1: out of quota (429): You exceeded your current quota"],
    );
    check(
        "401 No",
        r#"{"error":{"message":"Wrong key: sk-very-secret,\n\u0007 sorry"}}"#,
        expect!["auth: acme/m-1: no access (401): Wrong key: ***, sorry"],
    );
    check(
        "500 No",
        "<html>\r\noops</html>",
        expect!["server_error: acme/m-1: server error (500): <html> oops</html>"],
    );
    check("404 No", "", expect!["not_found: acme/m-1: not found (404): no message"]);
}

#[test]
fn anthropic_replies() {
    let check = |status, body, expected| check(ProviderKind::Anthropic, status, body, expected);
    check(
        "200 OK",
        r#"{"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"hi"}],"stop_reason":"max_tokens","usage":{"input_tokens":5,"output_tokens":2,"cache_read_input_tokens":3}}"#,
        expect![[
            r#""hi" Some("hm") Length Usage { input_tokens: 8, output_tokens: 2, cached_tokens: Some(3) }"#
        ]],
    );
    check(
        "200 OK",
        r#"{"content":[],"stop_reason":"refusal"}"#,
        expect!["refused: acme/m-1: the model refused: no reason given"],
    );
    check(
        "529 Busy",
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        expect!["rate_limited: acme/m-1: too many requests (529): Overloaded"],
    );
    check(
        "400 Bad",
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens"}}"#,
        expect![
            "context_length: acme/m-1: longer than the model's context (400): prompt is too long: 9 tokens"
        ],
    );
}

#[test]
fn a_server_with_another_name_for_max_tokens_is_remembered() {
    let (bodies, told) = mpsc::channel();
    let server = FakeServer::start(move |connection| {
        while let Some(body) = connection.http_request() {
            let new = body.contains("max_completion_tokens");
            bodies.send(new).unwrap();
            let sent = match new {
                true => connection.http_reply("200 OK", r#"{"choices":[{"message":{"content":"hi"}}]}"#),
                false => {
                    connection.http_reply("400 Bad", r#"{"error":{"message":"use 'max_completion_tokens'"}}"#)
                }
            };
            if !sent {
                return;
            }
        }
    });
    let endpoint = format!("http://127.0.0.1:{}/v1/?api-version=2", server.port());
    let model = Setup::new(&endpoint, ProviderKind::OpenAi).model().unwrap();
    block_on(async {
        for _ in 0..2 {
            let mut request = hello();
            request.sampling.max_tokens = Some(5);
            model.chat(request).await.unwrap();
        }
    });
    assert_eq!(told.try_iter().collect::<Vec<_>>(), [false, true, true]);
}

#[test]
fn a_reply_that_is_too_long_is_not_read() {
    let server = ModelServer::start(ModelScript {
        reply: Some(Arc::new(|_| "x".repeat(10_000))),
        ..ModelScript::default()
    });
    let mut setup = Setup::new(&server.endpoint(), ProviderKind::OpenAi);
    setup.settings.max_reply_bytes = 1000;
    let error = block_on(setup.model().unwrap().chat(hello())).unwrap_err();
    expect!["acme/m-1: the reply is not readable: it is longer than 1000 bytes"]
        .assert_eq(&error.to_string());
}

/// A proxy for one connection: forwards requests in absolute form, opens tunnels, tells the first lines it read.
#[allow(
    clippy::disallowed_methods,
    reason = "it blocks, on a thread that the runtime under test does not use"
)]
fn proxy() -> (u16, mpsc::Receiver<String>) {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    let (lines, told) = mpsc::channel();
    std::thread::spawn(move || {
        let (client, _) = socket.accept().unwrap();
        let mut reader = BufReader::new(client.try_clone().unwrap());
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            reader.read_line(&mut head).unwrap();
        }
        let first = head.lines().next().unwrap().to_owned();
        let auth =
            head.lines().find(|line| line.to_lowercase().starts_with("proxy-authorization")).unwrap_or("");
        lines.send(format!("{first} {auth}")).unwrap();
        let target = first.split(' ').nth(1).unwrap().trim_start_matches("http://");
        let server = TcpStream::connect(target.split('/').next().unwrap()).unwrap();
        let mut to_server = server.try_clone().unwrap();
        let mut to_client = client.try_clone().unwrap();
        if first.starts_with("CONNECT") {
            to_client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        } else {
            to_server.write_all(head.as_bytes()).unwrap();
        }
        std::thread::spawn(move || pump(reader, to_server));
        pump(server, to_client);
    });
    (port, told)
}

fn pump(mut from: impl Read, mut to: impl Write) {
    let mut bytes = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
}

#[test]
fn requests_go_through_a_proxy() {
    let server = ModelServer::start(ModelScript::default());
    let (port, told) = proxy();
    let mut setup = Setup::new(&server.endpoint(), ProviderKind::OpenAi);
    setup.settings.proxy.http = Some(format!("http://me:pass@127.0.0.1:{port}"));
    block_on(setup.model().unwrap().chat(hello())).unwrap();
    let line = told.recv().unwrap().replace(&server.port().to_string(), "PORT");
    expect![
        "POST http://127.0.0.1:PORT/v1/chat/completions HTTP/1.1 proxy-authorization: Basic bWU6cGFzcw=="
    ]
    .assert_eq(&line);

    setup.settings.proxy = ProxySettings {
        http: Some("http://127.0.0.1:1".to_owned()),
        https: None,
        no: Some("localhost,127.0.0.0/8".to_owned()),
    };
    block_on(setup.model().unwrap().chat(hello())).unwrap();
    setup.settings.proxy.no = None;
    let error = block_on(setup.model().unwrap().chat(hello())).unwrap_err();
    assert!(error.to_string().contains("proxy"), "{error}");
}

/// A folder with `ca.pem`, and `server.pem` and `server.key` for localhost. It is removed at the end.
struct Certificates {
    folder: PathBuf,
}

impl Certificates {
    fn new(name: &str) -> Certificates {
        let folder = std::env::temp_dir().join(format!("anabranch-model-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("san"), "subjectAltName=DNS:localhost,IP:127.0.0.1").unwrap();
        let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
        let openssl = |arguments: &[&str], more: &[&str]| {
            let run =
                Command::new("openssl").args(arguments).args(more).current_dir(&folder).output().unwrap();
            assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        };
        openssl(
            &["req", "-x509", "-subj", "/CN=test", "-keyout", "ca.key", "-out", "ca.pem", "-days", "2"],
            &key,
        );
        openssl(&["req", "-subj", "/CN=localhost", "-keyout", "server.key", "-out", "server.csr"], &key);
        openssl(
            &["x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial"],
            &["-out", "server.pem", "-days", "2", "-extfile", "san"],
        );
        Certificates { folder }
    }

    fn acceptor(&self, protocol: &[u8]) -> tokio_rustls::TlsAcceptor {
        let chain = CertificateDer::pem_file_iter(self.folder.join("server.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(self.folder.join("server.key")).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider);
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let mut config = config.with_single_cert(chain.map(Result::unwrap).collect(), key).unwrap();
        config.alpn_protocols = vec![protocol.to_vec()];
        Arc::new(config).into()
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Asks a server with TLS; the version of HTTP that the server saw, or the error.
fn ask_with_tls(
    certificates: &Certificates,
    ca: Option<&Path>,
    protocol: &[u8],
    proxy: Option<u16>,
) -> String {
    let acceptor = certificates.acceptor(protocol);
    block_on(async {
        let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = socket.local_addr().unwrap().port();
        let serve = async {
            loop {
                let (stream, _) = socket.accept().await.unwrap();
                let Ok(stream) = acceptor.accept(stream).await else { continue };
                let respond =
                    hyper::service::service_fn(|request: Request<hyper::body::Incoming>| async move {
                        let body = format!(
                            r#"{{"choices":[{{"message":{{"content":"{:?}"}}}}]}}"#,
                            request.version()
                        );
                        Ok::<_, hyper::Error>(Response::new(Full::new(Bytes::from(body))))
                    });
                let io = TokioIo::new(stream);
                let _ = match protocol {
                    b"h2" => {
                        hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                            .serve_connection(io, respond)
                            .await
                    }
                    _ => hyper::server::conn::http1::Builder::new().serve_connection(io, respond).await,
                };
            }
        };
        let mut setup = Setup::new(&format!("https://localhost:{port}/v1"), ProviderKind::OpenAi);
        setup.settings.ca_file = ca.map(Path::to_owned);
        setup.settings.proxy.https = proxy.map(|port| format!("http://127.0.0.1:{port}"));
        let model = setup.model().unwrap();
        let ask = async {
            match model.chat(hello()).await {
                Ok(reply) => {
                    assert_eq!(reply.finish, Finish::Stop);
                    reply.text.to_string()
                }
                Err(error) => format!("{}: {error}", error.class()),
            }
        };
        tokio::select! {
            answer = ask => answer,
            () = serve => unreachable!(),
        }
    })
}

#[test]
fn a_ca_of_ones_own_is_trusted_if_it_is_named() {
    let certificates = Certificates::new("ca");
    let ca = certificates.folder.join("ca.pem");
    expect!["HTTP/1.1"].assert_eq(&ask_with_tls(&certificates, Some(&ca), b"http/1.1", None));
    expect!["HTTP/2.0"].assert_eq(&ask_with_tls(&certificates, Some(&ca), b"h2", None));
    let error = ask_with_tls(&certificates, None, b"h2", None);
    assert!(
        error.starts_with("connection: acme/m-1: client error (Connect): invalid peer certificate"),
        "{error}"
    );
    let (port, told) = proxy();
    expect!["HTTP/2.0"].assert_eq(&ask_with_tls(&certificates, Some(&ca), b"h2", Some(port)));
    assert!(told.recv().unwrap().starts_with("CONNECT localhost:"));
}
