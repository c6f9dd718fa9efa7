//! JSON over HTTP.

use std::time::Duration;

use anabranch_engine::retry::{Classified as _, Severity};
use anabranch_plan::source::{Http, HttpConfig, Keys, Pattern, Read, Source};
use anabranch_rows::Kind;
use anabranch_testkit::FakeServer;
use expect_test::{Expect, expect};
use futures_util::future::join_all;

use crate::sources::{HANGS, ask, clock, country, fetch, fields, show, users};

fn http(server: &FakeServer) -> Http {
    http_within(HANGS, server)
}

fn http_within(response_timeout: Duration, server: &FakeServer) -> Http {
    let mut config = HttpConfig::new(format!("http://127.0.0.1:{}/read", server.port()));
    config.endpoint = "ep_http".into();
    config.max_bytes = 1_000;
    config.response_timeout = response_timeout;
    Http::new(config, clock())
}

/// Asks a server that answers `body`, and shows what it was asked and what came of it.
async fn check(read: Read, status: &'static str, body: &str, expected: Expect) {
    let (asked, heard) = std::sync::mpsc::channel();
    let reply = body.to_owned();
    let server = FakeServer::start(move |talk| {
        while let Some(body) = talk.http_request() {
            asked.send(body).unwrap();
            talk.http_reply(status, &reply);
        }
    });
    let told = ask(&http(&server), &users(), &read, &[1, 2]).await;
    let told = told.replace(&server.port().to_string(), "PORT");
    expected.assert_eq(&format!("{}\n{told}", heard.recv().unwrap()));
}

#[tokio::test]
async fn reads() {
    let read =
        fields(&[("country", Kind::Text), ("age", Kind::Int), ("score", Kind::Float), ("vip", Kind::Bool)]);
    check(
        read,
        "200 OK",
        r#"{"rows": [null, {"country": "a\"b", "age": "9007199254740993", "score": 1, "vip": true}]}"#,
        expect![[r#"
        {"fields":["country","age","score","vip"],"keys":["user:1","user:2"],"read":"fields"}
        null null null null
        "a\"b" 9007199254740993 1.0 true"#]],
    )
    .await;
    check(
        Read::List { limit: 3 },
        "200 OK",
        r#"{"lists": [[], [1, "2", 9223372036854775807]]}"#,
        expect![[r#"
        {"keys":["user:1","user:2"],"limit":3,"read":"list"}
        []
        [1 2 9223372036854775807]"#]],
    )
    .await;
    check(
        Read::Scored { limit: 3 },
        "200 OK",
        r#"{"lists": [[{"id": 7, "score": 0.5}], []]}"#,
        expect![[r#"
        {"keys":["user:1","user:2"],"limit":3,"read":"scored"}
        [7@0.5]
        []"#]],
    )
    .await;
}

#[tokio::test]
async fn what_is_wrong_is_said() {
    check(
        country(),
        "200 OK",
        r#"{"rows": [{}]}"#,
        expect![[r#"
            {"fields":["country"],"keys":["user:1","user:2"],"read":"fields"}
            ep_http answered `POST http://127.0.0.1:PORT/read` with 1 for 2 keys, not one row per key"#]],
    )
    .await;
    check(
        country(),
        "200 OK",
        r#"{"rows": [{}, {"country": []}]}"#,
        expect![[r#"
        {"fields":["country"],"keys":["user:1","user:2"],"read":"fields"}
        null
        null"#]],
    )
    .await;
    check(
        fields(&[("age", Kind::Int)]),
        "200 OK",
        r#"{"rows": [{"age": 1.0}, {}]}"#,
        expect![[r#"
        {"fields":["age"],"keys":["user:1","user:2"],"read":"fields"}
        null
        null"#]],
    )
    .await;
    check(
        country(),
        "200 OK",
        r#"{"lists": []}"#,
        expect![[r#"
        {"fields":["country"],"keys":["user:1","user:2"],"read":"fields"}
        ep_http answered `POST http://127.0.0.1:PORT/read` with no `rows`, not {"rows": [{..} or null]}"#]],
    )
    .await;
    check(country(), "200 OK", "{", expect![[r#"
        {"fields":["country"],"keys":["user:1","user:2"],"read":"fields"}
        ep_http answered `POST http://127.0.0.1:PORT/read` with the end of the reply at byte 1, not {"rows": [{..} or null]}"#]]).await;
    check(
        country(),
        "200 OK",
        &"x".repeat(1_001),
        expect![[r#"
        {"fields":["country"],"keys":["user:1","user:2"],"read":"fields"}
        ep_http answered `POST http://127.0.0.1:PORT/read` with more than 1000 bytes, not a shorter reply"#]],
    )
    .await;
}

#[tokio::test]
async fn statuses_and_lists_that_are_wrong_are_said() {
    let list = || Read::List { limit: 3 };
    check(
        country(),
        "500 Oh",
        "no",
        expect![[r#"
        {"fields":["country"],"keys":["user:1","user:2"],"read":"fields"}
        ep_http refused `POST http://127.0.0.1:PORT/read`: 500 Internal Server Error: "no""#]],
    )
    .await;
    check(
        country(),
        "503 Busy",
        "later",
        expect![[r#"
            {"fields":["country"],"keys":["user:1","user:2"],"read":"fields"}
            ep_http cannot answer now: 503 Service Unavailable: "later""#]],
    )
    .await;
    check(
        list(),
        "200 OK",
        r#"{"lists": [[1.5], []]}"#,
        expect![[r#"
        {"keys":["user:1","user:2"],"limit":3,"read":"list"}
        []
        []"#]],
    )
    .await;
    check(
        list(),
        "200 OK",
        r#"{"lists": [[92233720368547758070], []]}"#,
        expect![[r#"
        {"keys":["user:1","user:2"],"limit":3,"read":"list"}
        []
        []"#]],
    )
    .await;
    check(list(), "200 OK", r#"{"lists": [[1, 2, 3, 4], []]}"#, expect![[r#"
        {"keys":["user:1","user:2"],"limit":3,"read":"list"}
        ep_http answered `POST http://127.0.0.1:PORT/read` with more than 3 items for `user:1`, not at most as many items as were asked for"#]]).await;
}

#[tokio::test]
async fn a_server_that_is_gone_silent_or_breaks_off() {
    let gone = FakeServer::start(|_| {});
    let source = http(&gone);
    let told = ask(&source, &users(), &country(), &[1]).await;
    assert!(told.starts_with("no connection to ep_http"), "{told}");
    drop(gone);
    let told = ask(&source, &users(), &country(), &[1]).await;
    assert!(told.starts_with("no connection to ep_http"), "{told}");

    let silent = FakeServer::start(|talk| while talk.http_request().is_some() {});
    let told = ask(&http_within(Duration::from_millis(300), &silent), &users(), &country(), &[1]).await;
    assert_eq!(told, "ep_http did not answer within 300ms");

    let half = FakeServer::start(|talk| {
        talk.http_request();
        match talk.number {
            0 => _ = talk.send("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{\"rows\":"),
            _ => _ = talk.http_reply("200 OK", r#"{"rows": [{"country": "US"}]}"#),
        }
    });
    let source = http(&half);
    let told = ask(&source, &users(), &country(), &[1]).await;
    assert!(told.starts_with("the connection to ep_http broke before its reply was complete"), "{told}");
    assert_eq!(ask(&source, &users(), &country(), &[1]).await, r#""US""#);
}

#[tokio::test]
async fn connections_are_kept_and_shared() {
    let server = FakeServer::start(|talk| {
        while talk.http_request().is_some() && talk.http_reply("200 OK", r#"{"lists": [[1]]}"#) {}
    });
    let source = http(&server);
    let bound = source.bind(&Pattern::of_id("follow:"), &Read::List { limit: 1 });
    for _ in 0..10 {
        let replies = join_all((0..5).map(|id| fetch(&bound, Keys::Ids(vec![id])))).await;
        assert!(replies.iter().all(|reply| show(reply) == "[1]"));
    }
    assert!(server.connections() <= 15, "{} connections", server.connections());
}

/// The reply to a read from a server that sends these bytes, and then `more` of them for as long as it can.
async fn told(head: &'static str, more: &'static str) -> String {
    let server = FakeServer::start(move |talk| {
        talk.http_request();
        talk.send(format!("HTTP/1.1 {head}"));
        let more = more.repeat(1_000);
        while !more.is_empty() && talk.send(&more) {}
    });
    let config = HttpConfig { endpoint: "ep_http".into(), ..HttpConfig::new(url(&server)) };
    let config = HttpConfig { response_timeout: HANGS, ..config };
    let told = ask(&Http::new(config, clock()), &users(), &country(), &[1, 2]).await;
    told.replace(&server.port().to_string(), "PORT")
}

fn url(server: &FakeServer) -> String {
    format!("http://127.0.0.1:{}/read", server.port())
}

#[tokio::test]
async fn hostile_replies_are_refused_as_they_come() {
    let endless = "200 OK\r\nconnection: close\r\n\r\n";
    let check = async |head: &'static str, more: &'static str, expected: Expect| {
        expected.assert_eq(&told(head, more).await);
    };
    check(
        "200 OK\r\nconnection: close\r\n\r\n{\"rows\":[{}",
        ",{\"\":0}",
        expect![
            "ep_http answered `POST http://127.0.0.1:PORT/read` with more than 2 rows, not one row per key"
        ],
    )
    .await;
    check("200 OK\r\nconnection: close\r\n\r\n{\"rows\":[{\"country\":\"", "x", expect![[r#"ep_http answered `POST http://127.0.0.1:PORT/read` with a text of more than 1 MiB at byte 20, not {"rows": [{..} or null]}"#]]).await;
    check("200 OK\r\nconnection: close\r\n\r\n{\"other\":[0", ",[]", expect!["ep_http answered `POST http://127.0.0.1:PORT/read` with more than 16777216 bytes, not a shorter reply"]).await;
    check(endless, "[", expect![[r#"ep_http answered `POST http://127.0.0.1:PORT/read` with a list where the rows belong, not {"rows": [{..} or null]}"#]]).await;
    check(endless, " ", expect!["ep_http answered `POST http://127.0.0.1:PORT/read` with more than 16777216 bytes, not a shorter reply"]).await;
    let gzip = "200 OK\r\ncontent-encoding: gzip\r\nconnection: close\r\n\r\n";
    check(gzip, "\u{1f}", expect![[r#"ep_http answered `POST http://127.0.0.1:PORT/read` with a reply encoded as "gzip", not a reply without encoding, as it was asked for"#]]).await;
    check(
        "429 Slow Down\r\nretry-after: 3\r\ncontent-length: 2\r\n\r\nno",
        "",
        expect![[r#"ep_http cannot answer now: 429 Too Many Requests: "no""#]],
    )
    .await;
    check("500 Oh\r\nconnection: close\r\n\r\n", "no ", expect![[r#"ep_http refused `POST http://127.0.0.1:PORT/read`: 500 Internal Server Error: "no no no no no no no no no no no no no no no no no no no no "..."#]]).await;
}

#[tokio::test]
async fn the_pause_that_a_server_asks_for_is_kept() {
    let server = FakeServer::start(|talk| {
        talk.http_request();
        talk.send("HTTP/1.1 503 Busy\r\nretry-after: 3\r\ncontent-length: 0\r\n\r\n");
    });
    let bound = http(&server).bind(&users(), &country());
    let error = fetch(&bound, Keys::Ids(vec![1])).await.unwrap_err();
    let retry_after = Some(Duration::from_secs(3));
    assert_eq!(error.severity(), Severity::Throttled { retry_after });
}

#[tokio::test]
async fn values_that_cannot_be_read_cost_their_field() {
    let server = FakeServer::start(|talk| {
        let rows = r#"{"rows": [{"age": 7, "country": ["x"]}, {"age": 1.5, "country": "US"}]}"#;
        while talk.http_request().is_some() && talk.http_reply("200 OK", rows) {}
    });
    let read = fields(&[("age", Kind::Int), ("country", Kind::Text)]);
    let reply = fetch(&http(&server).bind(&users(), &read), Keys::Ids(vec![1, 2])).await;
    assert_eq!(show(&reply), "7 null\nnull \"US\"");
    let malformed = reply.unwrap().malformed;
    assert_eq!(malformed.count, 2);
    assert!(malformed.first.unwrap().contains("a list as `country` of `user:1`, not UTF-8 text"));
    let strict = HttpConfig { strict_values: true, ..HttpConfig::new(url(&server)) };
    let refused = ask(&Http::new(strict, clock()), &users(), &read, &[1, 2]).await;
    assert!(refused.contains("as `country` of `user:1`"), "{refused}");
}
