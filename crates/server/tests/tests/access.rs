//! Tokens and scopes, over sockets.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use anabranch_recipe::Functions;
use anabranch_server::{
    Access, Client, Code, Scope, ServerAddress, Settings, Token, TokenError, TokenFiles, TokenRecord,
};
use bytes::Bytes;
use http_body_util::Full;
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::guard::send;
use crate::support::{Server, beside, folder, soon};

/// A server with a token of each scope.
pub(crate) struct GuardedServer {
    pub(crate) server: Server,
    /// The local token, and those of the scopes read, run and admin.
    pub(crate) tokens: [Token; 4],
}

pub(crate) async fn guarded(test: &str, settings: Settings, functions: Functions) -> GuardedServer {
    let (access, tokens) = tokens(test);
    let server = Server::set_up(functions, settings, |service| service.with_access(access)).await;
    GuardedServer { server, tokens }
}

/// The local token, and those of the scopes read, run and admin.
pub(crate) fn tokens(test: &str) -> (Access, [Token; 4]) {
    let folder = folder(test);
    let others = folder.join("tokens.toml");
    let scopes = [Scope::Read, Scope::Run, Scope::Admin];
    let [read, run, admin] =
        scopes.map(|scope| TokenRecord::add(&others, &format!("of-{scope}"), scope, None).unwrap());
    let files = TokenFiles::open(&folder.join("token"), &others).unwrap();
    let local = files.local().clone();
    (Access::with_tokens(files, None), [local, read, run, admin])
}

pub(crate) fn bearer(token: &Token) -> String {
    format!("Authorization: Bearer {}", token.as_str())
}

/// The status of an answer, which may have no end.
async fn status(server: &Server, line: &str, headers: &[&str]) -> u16 {
    let mut head = format!("{line} HTTP/1.1\r\ncontent-length: 0\r\n");
    if !headers.iter().any(|header| header.to_lowercase().starts_with("host:")) {
        head.push_str("host: localhost\r\n");
    }
    headers.iter().for_each(|header| head.push_str(&format!("{header}\r\n")));
    let mut stream = server.connect().await;
    stream.write_all(format!("{head}\r\n").as_bytes()).await.unwrap();
    let mut answer = [0; "HTTP/1.1 200".len()];
    soon(stream.read_exact(&mut answer)).await.unwrap();
    str::from_utf8(&answer).unwrap()["HTTP/1.1 ".len()..].parse().unwrap()
}

/// Method, path, needed scope and content type of every route.
async fn routes(server: &Server) -> Vec<(String, String, Option<String>, String)> {
    let (status, body) = send(server, "GET /openapi.json", &[], b"").await;
    assert_eq!(status, 200);
    let document: Value = serde_json::from_str(&body).unwrap();
    let mut routes = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let scope = operation["x-scope"].as_str().map(str::to_owned);
            let kinds = operation["requestBody"]["content"].as_object();
            let kind = kinds.and_then(|kinds| kinds.keys().next()).map_or("application/json", String::as_str);
            routes.push((method.to_uppercase(), path.replace(['{', '}'], ""), scope, kind.to_owned()));
        }
    }
    assert!(routes.len() >= 15, "{routes:?}");
    routes
}

#[tokio::test]
async fn every_route_needs_its_scope() {
    let GuardedServer { server, tokens: [local, read, run, admin] } =
        guarded("scopes", Settings::default(), Functions::builtin()).await;
    let wrong = Token::generate().unwrap();
    for (method, path, scope, kind) in routes(&server).await {
        let line = format!("{method} {path}");
        let kind = format!("Content-Type: {kind}");
        let with = async |token: &Token| status(&server, &line, &[&kind, &bearer(token)]).await;
        assert_eq!(status(&server, &line, &[&kind, "Host: evil.example"]).await, 421, "{line}");
        assert_eq!(status(&server, &line, &[&kind, "Origin: http://evil.example"]).await, 403, "{line}");
        let Some(scope) = scope else {
            assert!(![401, 403].contains(&status(&server, &line, &[&kind]).await), "{line}");
            continue;
        };
        assert_eq!(status(&server, &line, &[&kind]).await, 401, "{line}");
        assert_eq!(with(&wrong).await, 401, "{line}");
        for odd in ["Basic abc", "Bearer", "Bearer ", "Bearer a b", &format!("Bearer {} x", admin.as_str())] {
            let header = format!("Authorization: {odd}");
            assert_eq!(status(&server, &line, &[&kind, &header]).await, 401, "{line} {odd}");
        }
        let twice = bearer(&admin);
        assert_eq!(status(&server, &line, &[&kind, &twice, &twice]).await, 401, "{line}");
        for (token, has) in [(&read, "read"), (&run, "run"), (&admin, "admin"), (&local, "admin")] {
            let reaches = has.parse::<Scope>().unwrap() >= scope.parse().unwrap();
            let answered = with(token).await;
            assert_eq!(answered == 403, !reaches, "{line} with {has}: {answered}");
            assert_ne!(answered, 401, "{line} with {has}");
        }
    }
    // What is not there is not told to strangers.
    assert_eq!(status(&server, "GET /v1/nothing", &[]).await, 401);
    assert_eq!(status(&server, "GET /v1/nothing", &[&bearer(&run)]).await, 403);
    assert_eq!(status(&server, "GET /v1/nothing", &[&bearer(&admin)]).await, 404);
}

#[tokio::test]
async fn calls_of_grpc_need_their_scope() {
    let GuardedServer { server, tokens: [local, read, run, _] } =
        guarded("grpc", Settings::default(), Functions::builtin()).await;
    let client = async |token: Option<&Token>| {
        let address = ServerAddress { token: token.cloned(), ..ServerAddress::new(&server.url) };
        Client::connect_to(&address).await.unwrap()
    };
    let code = |error: anabranch_server::ClientError| error.code();
    let nobody = client(None).await;
    assert_eq!(nobody.status().await.map_err(code).err(), Some(Some(Code::Unauthenticated)));
    assert_eq!(nobody.put("x").await.map_err(code).err(), Some(Some(Code::Unauthenticated)));
    let stranger = client(Some(&Token::generate().unwrap())).await;
    assert_eq!(stranger.status().await.map_err(code).err(), Some(Some(Code::Unauthenticated)));
    let reader = client(Some(&read)).await;
    reader.status().await.unwrap();
    assert_eq!(reader.put("x").await.map_err(code).err(), Some(Some(Code::PermissionDenied)));
    let runner = client(Some(&run)).await;
    runner.put("x").await.unwrap();
    let collect = anabranch_content::Collect::default();
    let refused = runner.collect(&collect).await.unwrap_err();
    assert_eq!(refused.code(), Some(Code::PermissionDenied));
    assert!(refused.to_string().contains("needs `admin`"), "{refused}");
    client(Some(&local)).await.collect(&collect).await.unwrap();
}

/// The scope that each call of gRPC needs.
const SCOPES: [(&str, Scope, &[&str]); 11] = [
    (
        "anabranch.recipe.v1.Recipes",
        Scope::Read,
        &[
            "Events",
            "Find",
            "FindPrefix",
            "Functions",
            "History",
            "Imports",
            "List",
            "Pins",
            "Refs",
            "Resolve",
            "Status",
            "Usage",
        ],
    ),
    (
        "anabranch.recipe.v1.Recipes",
        Scope::Run,
        &["Add", "Export", "Get", "GetMany", "Invalidate", "Pin", "Put", "SetRef", "Unpin"],
    ),
    ("anabranch.recipe.v1.Recipes", Scope::Admin, &["Collect", "DropImport", "Import", "Remove", "Scrub"]),
    ("anabranch.plan.v1.Plans", Scope::Read, &["Describe", "List"]),
    ("anabranch.plan.v1.Plans", Scope::Run, &["Run", "RunMany"]),
    ("anabranch.plan.v1.Plans", Scope::Admin, &["Reload"]),
    ("deriva.Deriva", Scope::Read, &["ClusterStatus", "ListPins", "Resolve", "Status"]),
    (
        "deriva.Deriva",
        Scope::Run,
        &["CascadeInvalidate", "Get", "Invalidate", "Pin", "PutLeaf", "PutRecipe", "Unpin", "Verify"],
    ),
    ("deriva.Deriva", Scope::Admin, &["GarbageCollect"]),
    ("grpc.reflection.v1.ServerReflection", Scope::Read, &["ServerReflectionInfo"]),
    ("grpc.reflection.v1alpha.ServerReflection", Scope::Read, &["ServerReflectionInfo"]),
];

/// All calls of the .proto files, and those of reflection.
fn all_calls() -> BTreeSet<String> {
    let reflection = ["v1", "v1alpha"]
        .map(|version| format!("grpc.reflection.{version}.ServerReflection/ServerReflectionInfo"));
    crate::generated::calls().into_iter().chain(reflection).collect()
}

#[tokio::test]
async fn every_call_of_grpc_needs_its_scope() {
    let GuardedServer { server, tokens: [local, read, run, admin] } =
        guarded("grpc_scopes", Settings::default(), Functions::builtin()).await;
    let client = HttpClient::builder(TokioExecutor::new()).http2_only(true).build_http::<Full<Bytes>>();
    let call = async |path: &str, token: Option<&Token>| {
        let mut request =
            hyper::Request::post(format!("{}/{path}", server.url)).header("content-type", "application/grpc");
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {}", token.as_str()));
        }
        // An empty message. The answer may have no end, so its head has to do.
        let answer = client.request(request.body(Full::new(Bytes::from_static(b"\0\0\0\0\0"))).unwrap());
        let answer = soon(answer).await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        answer.headers().get("grpc-status").map(|code| code.to_str().unwrap().to_owned())
    };
    let wrong = Token::generate().unwrap();
    let (unauthenticated, denied) = (Some("16".to_owned()), Some("7".to_owned()));
    let mut tried = BTreeSet::new();
    for (service, scope, methods) in SCOPES {
        for method in methods {
            let path = format!("{service}/{method}");
            assert_eq!(call(&path, None).await, unauthenticated, "{path}");
            assert_eq!(call(&path, Some(&wrong)).await, unauthenticated, "{path}");
            for (token, has) in
                [(&read, Scope::Read), (&run, Scope::Run), (&admin, Scope::Admin), (&local, Scope::Admin)]
            {
                let code = call(&path, Some(token)).await;
                assert_eq!(code == denied, has < scope, "{path} with {has}: {code:?}");
                assert_ne!(code, unauthenticated, "{path} with {has}");
            }
            tried.insert(path);
        }
    }
    assert_eq!(tried, all_calls());
}

/// With a token that may do everything, and for the calls that need none.
#[tokio::test]
async fn every_call_of_grpc_is_refused_to_pages_and_names_of_others() {
    let GuardedServer { server, tokens: [local, ..] } =
        guarded("grpc_sites", Settings::default(), Functions::builtin()).await;
    let io = TokioIo::new(server.connect().await);
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
    let _connection = beside(async move { drop(connection.await) });
    let own = server.url.strip_prefix("http://").unwrap();
    let mut call = async |path: &str, authority: &str, header: Option<(&str, &str)>| {
        let mut request = hyper::Request::post(format!("http://{authority}/{path}"))
            .header("content-type", "application/grpc")
            .header("authorization", format!("Bearer {}", local.as_str()));
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(Bytes::from_static(b"\0\0\0\0\0"))).unwrap();
        let answer = soon(sender.send_request(request)).await.unwrap();
        assert_eq!(answer.status(), 200, "{path}");
        let text =
            |name: &str| answer.headers().get(name).map_or("", |text| text.to_str().unwrap()).to_owned();
        (text("grpc-status"), text("grpc-message"))
    };
    let health = ["Check", "Watch"].map(|call| format!("grpc.health.v1.Health/{call}"));
    for path in all_calls().into_iter().chain(health) {
        assert_ne!(call(&path, own, None).await.0, "7", "{path}");
        for (authority, header) in [
            ("evil.example", None),
            (own, Some(("host", "rebind.evil.example"))),
            (own, Some(("origin", "http://evil.example"))),
            (own, Some(("origin", "null"))),
            (own, Some(("sec-fetch-site", "cross-site"))),
            (own, Some(("sec-fetch-site", "same-site"))),
        ] {
            let (code, message) = call(&path, authority, header).await;
            assert_eq!(code, "7", "{path} {authority} {header:?}: {message}");
            assert!(message.contains("--allow-host"), "{path} {authority} {header:?}: {message}");
        }
    }
}

#[tokio::test]
async fn requests_without_a_token_may_have_a_scope() {
    let folder = folder("anonymous");
    let files = TokenFiles::open(&folder.join("token"), &folder.join("tokens.toml")).unwrap();
    let access = Access::with_tokens(files, Some(Scope::Run));
    let set_up = |service: anabranch_server::Service| service.with_access(access);
    let server = Server::set_up(Functions::builtin(), Settings::default(), set_up).await;
    assert_eq!(status(&server, "GET /v1/refs", &[]).await, 200);
    assert_eq!(send(&server, "POST /v1/blobs", &[], b"x").await.0, 201);
    assert_eq!(status(&server, "GET /v1/config", &[]).await, 403);
    // A wrong token is not the same as none.
    let wrong = bearer(&Token::generate().unwrap());
    assert_eq!(status(&server, "GET /v1/refs", &[&wrong]).await, 401);
}

#[tokio::test]
async fn answers_say_how_to_get_in() {
    let GuardedServer { server, tokens: [_, read, ..] } =
        guarded("told", Settings::default(), Functions::builtin()).await;
    let (_, body) = send(&server, "GET /v1/refs", &[], b"").await;
    assert!(body.contains("\"unauthenticated\"") && body.contains("anabranch token add"), "{body}");
    let (_, body) = send(&server, "GET /v1/config", &[&bearer(&read)], b"").await;
    assert!(body.contains("`of-read` has the scope `read`, and this call needs `admin`"), "{body}");
    assert!(!body.contains(read.as_str()));
}

#[tokio::test]
async fn tokens_come_and_go_while_the_server_runs() {
    let GuardedServer { server, .. } = guarded("revoked", Settings::default(), Functions::builtin()).await;
    let others =
        std::env::temp_dir().join(format!("anabranch-server-{}-revoked/tokens.toml", std::process::id()));
    let late = TokenRecord::add(&others, "late", Scope::Read, None).unwrap();
    let header = bearer(&late);
    // The file is looked at once per second.
    soon(async { while status(&server, "GET /v1/refs", &[&header]).await != 200 {} }).await;
    let over = TokenRecord::add(&others, "over", Scope::Read, Some(Duration::ZERO)).unwrap();
    let header_over = bearer(&over);
    soon(async {
        while !send(&server, "GET /v1/refs", &[&header_over], b"").await.1.contains("`over` has expired") {}
    })
    .await;
    TokenRecord::revoke(&others, "late").unwrap();
    soon(async { while status(&server, "GET /v1/refs", &[&header]).await != 401 {} }).await;
    // A file that cannot be read lets nobody in, rather than those of before.
    fs::write(&others, "[[token]]\nname = 1").unwrap();
    soon(async { while status(&server, "GET /v1/refs", &[&header]).await != 503 {} }).await;
}

fn mode(file: &Path) -> u32 {
    fs::metadata(file).unwrap().permissions().mode() & 0o777
}

#[test]
fn files_of_tokens() {
    let folder = folder("files");
    let [local, others] = ["token", "tokens.toml"].map(|name| folder.join(name));
    let first = TokenFiles::open(&local, &others).unwrap();
    assert_eq!(mode(&local), 0o600);
    assert_eq!(fs::read_to_string(&local).unwrap().trim(), first.local().as_str());
    let again = TokenFiles::open(&local, &others).unwrap();
    assert_eq!(first.local(), again.local());
    fs::set_permissions(&local, fs::Permissions::from_mode(0o644)).unwrap();
    let refused = TokenFiles::open(&local, &others).unwrap_err();
    assert!(matches!(refused, TokenError::Readable { .. }));
    assert!(refused.to_string().contains("run `chmod 600 "), "{refused}");
    fs::set_permissions(&local, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&local, "two words").unwrap();
    assert!(TokenFiles::open(&local, &others).unwrap_err().to_string().contains("expected one token"));

    let token = TokenRecord::add(&others, "ci", Scope::Run, None).unwrap();
    assert_eq!(mode(&others), 0o600);
    let text = fs::read_to_string(&others).unwrap();
    assert!(!text.contains(token.as_str()) && text.contains("name = \"ci\""), "{text}");
    let told = |result: Result<Token, TokenError>| result.unwrap_err().to_string();
    assert!(told(TokenRecord::add(&others, "ci", Scope::Run, None)).contains("there is a token `ci`"));
    for wrong in ["", "local", "a b", "a/b", &"x".repeat(65)] {
        assert!(TokenRecord::add(&others, wrong, Scope::Run, None).is_err(), "{wrong}");
    }
    let missing = TokenRecord::revoke(&others, "co").unwrap_err().to_string();
    assert!(missing.contains("did you mean `ci`?"), "{missing}");
    TokenRecord::revoke(&others, "ci").unwrap();
    assert_eq!(TokenRecord::list(&others).unwrap(), []);
    fs::write(&others, "[[token]]\nnane = 'x'").unwrap();
    assert!(TokenRecord::list(&others).unwrap_err().to_string().contains("unknown field `nane`"));
}
