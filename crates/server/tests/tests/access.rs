//! Tokens and scopes, over sockets.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use anabranch_recipe::Functions;
use anabranch_server::{
    Access, Client, Code, Scope, ServerAddress, Settings, Token, TokenError, TokenFiles, TokenRecord,
};
use serde_json::Value;

use crate::guard::send;
use crate::support::{Server, folder, soon};

/// A server with a token of each scope.
pub(crate) struct Guarded {
    pub(crate) server: Server,
    /// The local token, and those of the scopes read, run and admin.
    pub(crate) tokens: [Token; 4],
}

pub(crate) async fn guarded(test: &str, settings: Settings, functions: Functions) -> Guarded {
    let (access, tokens) = tokens(test);
    let server = Server::set_up(functions, settings, |service| service.with_access(access)).await;
    Guarded { server, tokens }
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

async fn status(server: &Server, line: &str, headers: &[&str]) -> u16 {
    send(server, line, headers, b"").await.0
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
    let Guarded { server, tokens: [local, read, run, admin] } =
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
        // The events of all runs have no end to wait for.
        if path == "/v1/events" {
            continue;
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
    let Guarded { server, tokens: [local, read, run, _] } =
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
    let Guarded { server, tokens: [_, read, ..] } =
        guarded("told", Settings::default(), Functions::builtin()).await;
    let (_, body) = send(&server, "GET /v1/refs", &[], b"").await;
    assert!(body.contains("\"unauthenticated\"") && body.contains("anabranch token add"), "{body}");
    let (_, body) = send(&server, "GET /v1/config", &[&bearer(&read)], b"").await;
    assert!(body.contains("`of-read` has the scope `read`, and this call needs `admin`"), "{body}");
    assert!(!body.contains(read.as_str()));
}

#[tokio::test]
async fn tokens_come_and_go_while_the_server_runs() {
    let Guarded { server, .. } = guarded("revoked", Settings::default(), Functions::builtin()).await;
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
