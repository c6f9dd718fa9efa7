//! Requests that a web page could send, over sockets, each as a browser writes it.

use anabranch_recipe::Functions;
use anabranch_server::proto::recipes::recipes_client::RecipesClient;
use anabranch_server::proto::recipes::{CollectRequest, StatusRequest};
use anabranch_server::{Client, Code, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::transport::Endpoint;

use crate::support::{Server, soon};

/// The status and the body of an answer to a request of HTTP/1.1; `Host` is the server's address unless given.
pub(crate) async fn send(server: &Server, line: &str, headers: &[&str], body: &[u8]) -> (u16, String) {
    let address = server.url.strip_prefix("http://").unwrap();
    let mut head = format!("{line} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    if !headers.iter().any(|header| header.to_lowercase().starts_with("host:")) {
        head.push_str(&format!("host: {address}\r\n"));
    }
    headers.iter().for_each(|header| head.push_str(&format!("{header}\r\n")));
    head.push_str("\r\n");
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&[head.as_bytes(), body].concat()).await.unwrap();
    let mut answer = Vec::new();
    soon(stream.read_to_end(&mut answer)).await.unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head["HTTP/1.1 ".len()..][..3].parse().unwrap(), body.to_owned())
}

const EVIL: &str = "Origin: http://evil.example";
const CROSS_SITE: &str = "Sec-Fetch-Site: cross-site";
const PLAIN: &str = "Content-Type: text/plain;charset=UTF-8";

/// `CollectRequest { most: 100 }`: everything that nothing holds, without a grace period.
const COLLECT: &[u8] = b"\0\0\0\0\x02\x20\x64";

#[tokio::test]
async fn a_page_cannot_call_grpc() {
    let server = Server::start().await;
    let client = server.client().await;
    let precious = client.put("precious").await.unwrap().address;
    let set_ref = [&b"\0\0\0\0\x06\x0a\x04name"[..]].concat();
    for (call, message) in [
        ("anabranch.recipe.v1.Recipes/Collect", COLLECT),
        ("anabranch.recipe.v1.Recipes/SetRef", &set_ref),
        ("anabranch.recipe.v1.Recipes/Import", b"\0\0\0\0\x03\x0a\x01x"),
        ("deriva.Deriva/GarbageCollect", b"\0\0\0\0\0"),
    ] {
        let line = format!("POST /{call}");
        for headers in [&[EVIL, CROSS_SITE, PLAIN][..], &[EVIL], &[CROSS_SITE]] {
            assert_eq!(send(&server, &line, headers, message).await.0, 403, "{call} {headers:?}");
        }
        // Not even without what gives a page away, for it is not HTTP/2.
        for headers in [&[PLAIN][..], &[], &["Content-Type: application/grpc"]] {
            let (status, body) = send(&server, &line, headers, message).await;
            assert_eq!(status, 505, "{call} {headers:?}");
            assert!(body.contains("gRPC needs HTTP/2"), "{body}");
        }
    }
    assert!(client.get(precious, 0..u64::MAX, None).await.is_ok());
    assert_eq!(client.refs().await.unwrap(), []);
}

/// A page can have HTTP/2, too, where there is TLS in front.
#[tokio::test]
async fn grpc_has_its_content_type() {
    let server = Server::start().await;
    let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new())
        .http2_only(true)
        .build_http::<http_body_util::Full<bytes::Bytes>>();
    let call = async |headers: &[(&str, &str)]| {
        let uri = format!("{}/anabranch.recipe.v1.Recipes/Collect", server.url);
        let mut request = hyper::Request::post(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(http_body_util::Full::new(COLLECT.into())).unwrap();
        let answer = soon(client.request(request)).await.unwrap();
        let code = answer.headers().get("grpc-status").map(|code| code.to_str().unwrap().to_owned());
        (answer.status().as_u16(), code)
    };
    assert_eq!(call(&[("content-type", "text/plain")]).await, (415, None));
    assert_eq!(call(&[("content-type", "application/grpc-web")]).await, (415, None));
    assert_eq!(call(&[]).await, (415, None));
    let grpc = ("content-type", "application/grpc");
    assert_eq!(call(&[grpc, ("origin", "http://evil.example")]).await, (200, Some("7".to_owned())));
    assert_eq!(call(&[grpc, ("te", "trailers")]).await, (200, None));
    assert_eq!(call(&[("content-type", "application/grpc+proto")]).await, (200, None));
}

#[tokio::test]
async fn a_page_cannot_write() {
    let server = Server::start().await;
    let recipe = br#"{"function":"concat/1.0.0","inputs":[]}"#;
    for (line, body) in [
        ("POST /v1/blobs", &b"evil"[..]),
        ("PUT /v1/blobs", b"evil"),
        ("POST /v1/recipes", recipe),
        ("PUT /v1/refs/name", b"{}"),
        ("DELETE /v1/refs/name", b""),
        ("GET /v1/status", b""),
        ("GET /healthz", b""),
    ] {
        for headers in [
            &[EVIL, CROSS_SITE, PLAIN][..],
            &[EVIL, "Content-Type: application/json"],
            &["Origin: null", PLAIN],
            &[CROSS_SITE],
            &["Sec-Fetch-Site: same-site"],
            &["Sec-Fetch-Site: unheard-of"],
            &["Origin: http://localhost:3000", "Origin: http://evil.example"],
        ] {
            let (status, body) = send(&server, line, headers, body).await;
            assert_eq!(status, 403, "{line} {headers:?}");
            assert!(body.contains("--allow-host"), "{body}");
        }
    }
    let status = server.executor.status().store;
    assert_eq!((status.blobs, status.derivations, status.names), (0, 0, 0));
}

/// `rebind.evil.example` led to 6.6.6.6 when the page was loaded, and leads to 127.0.0.1 now.
#[tokio::test]
async fn a_name_that_dns_points_here_is_refused() {
    let server = Server::start().await;
    for host in ["Host: rebind.evil.example", "Host: rebind.evil.example:7421", "Host: 10.0.0.1", "Host: "] {
        let (status, body) = send(&server, "GET /v1/refs", &[host], b"").await;
        assert_eq!(status, 421, "{host}");
        assert!(body.contains("--allow-host NAME"), "{body}");
    }
    let (status, _) = send(&server, "GET http://rebind.evil.example/v1/refs", &[], b"").await;
    assert_eq!(status, 421, "in the request line");
    for host in ["Host: localhost", "Host: LOCALHOST:1", "Host: 127.0.0.2:80", "Host: [::1]:7421"] {
        assert_eq!(send(&server, "GET /v1/refs", &[host], b"").await.0, 200, "{host}");
    }
    // None, and two of which a proxy may have checked the other one.
    for (version, hosts, expected) in [
        ("1.0", "", "200"),
        ("1.1", "", "400"),
        ("1.0", "host: localhost\r\nhost: localhost\r\n", "400"),
        ("1.1", "host: localhost\r\nhost: localhost\r\n", "400"),
        ("1.1", "host: localhost\r\nhost: rebind.evil.example\r\n", "421"),
    ] {
        let mut stream = server.connect().await;
        let head = format!("GET /v1/refs HTTP/{version}\r\nconnection: close\r\n{hosts}\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        soon(stream.read_to_string(&mut answer)).await.unwrap();
        assert_eq!(answer["HTTP/1.1 ".len()..][..3], *expected, "{head}");
    }
    let endpoint = Endpoint::from_shared(server.url.clone()).unwrap();
    let endpoint = endpoint.origin("http://rebind.evil.example".parse().unwrap());
    let mut rebound = RecipesClient::new(endpoint.connect().await.unwrap());
    let refused = rebound.status(StatusRequest {}).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
    assert!(refused.message().contains("--allow-host NAME"), "{refused}");
    let refused = rebound.collect(CollectRequest::default()).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied);
}

#[tokio::test]
async fn configured_hosts_and_their_pages_are_welcome() {
    let allowed_hosts = vec!["recipes.example".parse().unwrap()];
    let settings = Settings { allowed_hosts, ..Settings::default() };
    let server = Server::with(Functions::builtin(), settings).await;
    let host = "Host: recipes.example:7421";
    assert_eq!(send(&server, "GET /v1/refs", &[host], b"").await.0, 200);
    let bytes = "Content-Type: application/octet-stream";
    for headers in [
        &[host, "Origin: http://recipes.example:7421", "Sec-Fetch-Site: same-origin", bytes][..],
        &["Origin: https://recipes.example", CROSS_SITE, bytes],
        &["Origin: http://localhost:3000", "Sec-Fetch-Site: same-site", bytes],
        &["Sec-Fetch-Site: none", bytes],
    ] {
        assert!([200, 201].contains(&send(&server, "POST /v1/blobs", headers, b"x").await.0), "{headers:?}");
    }
    // A page of another program of this machine may not pretend to be of none.
    let loopback = ["Origin: http://localhost:3000", CROSS_SITE, bytes];
    assert_eq!(send(&server, "POST /v1/blobs", &loopback, b"x").await.0, 403);
}

/// Programs send blobs with any type; browsers, also those of our own pages, with one that a foreign page cannot.
#[tokio::test]
async fn bodies_have_the_type_of_their_route() {
    let server = Server::start().await;
    let form = "Content-Type: application/x-www-form-urlencoded";
    for header in [&[form][..], &[PLAIN], &[]] {
        assert!([200, 201].contains(&send(&server, "POST /v1/blobs", header, b"x").await.0), "{header:?}");
        for line in ["POST /v1/recipes", "PUT /v1/refs/name"] {
            let (status, body) = send(&server, line, header, b"{}").await;
            assert_eq!(status, 415, "{line} {header:?}");
            assert!(body.contains("Content-Type: application/json"), "{body}");
        }
    }
    let same_origin = "Sec-Fetch-Site: same-origin";
    assert_eq!(send(&server, "POST /v1/blobs", &[same_origin, PLAIN], b"x").await.0, 415);
    let json = "content-type: Application/JSON; charset=utf-8";
    assert_eq!(send(&server, "PUT /v1/refs/name", &[json], b"{}").await.0, 400, "the type is right");
    Client::connect(&server.url).await.unwrap().status().await.unwrap();
}

/// A request without a body has no type that gives a foreign page away.
#[tokio::test]
async fn a_page_of_another_port_cannot_stop_a_run() {
    let server = Server::start().await;
    let neighbour = "Origin: http://localhost:3000";
    for line in ["POST /v1/runs/1/cancel", "POST /v1/plans/reload", "POST /v1/plans/feed/promote"] {
        let (status, body) = send(&server, line, &[neighbour, "Sec-Fetch-Site: same-site"], b"").await;
        assert_eq!(status, 415, "{line}: {body}");
        assert_eq!(send(&server, line, &[neighbour], b"").await.0, 415, "{line}");
        // A page can send this type only to its own server.
        for headers in [&[neighbour, "Content-Type: application/json"][..], &[]] {
            assert_ne!(send(&server, line, headers, b"").await.0, 415, "{line} {headers:?}");
        }
    }
}

/// Links to the console may be anywhere. What opens is a page of this server, which other pages cannot read.
#[tokio::test]
async fn a_link_of_another_site_opens_the_console_and_nothing_else() {
    let server = Server::start().await;
    let link = [CROSS_SITE, "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"];
    let (status, page) = send(&server, "GET /", &link, b"").await;
    assert_eq!(status, 200, "{page}");
    assert!(page.contains("<title>Anabranch</title>"), "{page}");
    for line in ["GET /console/main.js", "GET /v1/status", "GET /v1/refs", "POST /", "PUT /v1/refs/a"] {
        assert_eq!(send(&server, line, &link, b"").await.0, 403, "{line}");
    }
    let frame = [CROSS_SITE, "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"];
    assert_eq!(send(&server, "GET /", &frame, b"").await.0, 403, "not in a frame");
    let script = [CROSS_SITE, "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: script"];
    assert_eq!(send(&server, "GET /console/main.js", &script, b"").await.0, 403, "not as a script");
    assert_eq!(send(&server, "GET /", &["Host: other.example", link[1], link[2]], b"").await.0, 421);
}
