//! Redis: real servers, killed, paused and asked for nonsense, and scripted ones that break off.

use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anabranch_plan::source::{
    Error, Fetch, Keys, MalformedValues, MemoryData, Pattern, Read, Redis, RedisConfig, RedisTls, Source,
    seed,
};
use anabranch_rows::Kind;
use anabranch_testkit::{Connection, FakeServer, RedisServer};
use expect_test::{Expect, expect};
use futures_util::future::{Either, join_all, select};

use crate::sources::{
    Ahead, HANGS, ask, clock, config, country, fetch, fields, redis, show, unbounded, until, users,
};

const DATA: &str = r#"{
  "hashes": {"user:1": {"country": "US", "age": "x"}, "user:2": {"country": "CA"}, "user:3": {"country": "UK"}},
  "lists": {"follow:1": [1, 2, 3], "follow:2": ["7", "x7"]},
  "zsets": {"rank:1": {"10": 0.5, "11": 2, "9": 0.5}}
}"#;

async fn seeded() -> (RedisServer, Redis) {
    let server = RedisServer::start();
    let redis = redis(server.port());
    let data = MemoryData::from_json("data.json", DATA).unwrap();
    assert_eq!(seed(&data, &redis).await.unwrap(), 6);
    (server, redis)
}

#[tokio::test]
async fn reads() {
    let (_server, redis) = seeded().await;
    let check = async |pattern: Pattern, read: Read, ids: &[i64], expected: Expect| {
        expected.assert_eq(&ask(&redis, &pattern, &read, ids).await);
    };
    let follow = Pattern::of_id("follow:");
    check(
        users(),
        country(),
        &[2, 9, 1, 2],
        expect![[r#"
        "CA"
        null
        "US"
        "CA""#]],
    )
    .await;
    check(
        follow.clone(),
        Read::List { limit: 2 },
        &[1, 9],
        expect![[r#"
        [1 2]
        []"#]],
    )
    .await;
    check(Pattern::of_id("rank:"), Read::Scored { limit: 9 }, &[1], expect!["[11@2 9@0.5 10@0.5]"]).await;
}

#[tokio::test]
async fn values_that_cannot_be_read_are_null_or_refused() {
    let (server, redis) = seeded().await;
    let follow = Pattern::of_id("follow:");
    let strict = Redis::new(RedisConfig { strict_values: true, ..config(server.port()) }, clock());
    let check = async |pattern: Pattern, read: Read, ids: &[i64], expected: Expect| {
        let malformed = fetch(&redis.bind(&pattern, &read), Keys::Ids(ids.to_vec())).await;
        let MalformedValues { count, first } = malformed.as_ref().unwrap().malformed.clone();
        let refused = ask(&strict, &pattern, &read, ids).await;
        assert_eq!(first.as_deref(), Some(&*refused));
        expected.assert_eq(&format!("{}\n{count}: {refused}", show(&malformed)));
    };
    let age = fields(&[("age", Kind::Int)]);
    check(
        users(),
        age,
        &[2, 1],
        expect![[r#"
        null
        null
        1: ep_test answered `HGET user:1 age` with "x", not a 64-bit integer"#]],
    )
    .await;
    let both = fields(&[("age", Kind::Int), ("country", Kind::Text)]);
    check(
        users(),
        both,
        &[1, 2],
        expect![[r#"
        null "US"
        null "CA"
        1: ep_test answered `HMGET user:1 age` with "x", not a 64-bit integer"#]],
    )
    .await;
    check(
        follow.clone(),
        Read::List { limit: 9 },
        &[1, 2],
        expect![[r#"
        [1 2 3]
        [7]
        1: ep_test answered `LRANGE follow:2` with the item "x7", not an id (a 64-bit integer)"#]],
    )
    .await;
    check(follow, country(), &[1], expect![[r#"
        null
        1: ep_test refused `HGET follow:1`: WRONGTYPE Operation against a key holding the wrong kind of value"#]]).await;
}

#[tokio::test]
async fn each_key_is_asked_for_once_and_pipelines_are_capped() {
    let server = RedisServer::start();
    let redis = Redis::new(RedisConfig { pipeline: 10, ..config(server.port()) }, clock());
    let bound = redis.bind(&users(), &country());
    let ids: Vec<i64> = (0..25).chain(0..25).collect();
    let reply = fetch(&bound, Keys::Ids(ids)).await.unwrap();
    assert_eq!((reply.trips, reply.commands), (3, 25));
    let reply = fetch(&bound, Keys::Ids(Vec::new())).await.unwrap();
    assert_eq!((reply.trips, reply.commands), (0, 0));
    assert_eq!(redis.max_inflight(), Some(64));
}

#[tokio::test]
async fn a_killed_server_is_an_error_and_a_new_one_an_answer() {
    let (mut server, redis) = seeded().await;
    server.command(&["SAVE"]);
    assert_eq!(ask(&redis, &users(), &country(), &[1]).await, r#""US""#);
    server.kill();
    for _ in 0..5 {
        let reply = fetch(&redis.bind(&users(), &country()), Keys::Ids(vec![1])).await;
        assert!(matches!(reply, Err(Error::Connect { .. } | Error::Broken { .. })), "{reply:?}");
    }
    server.restart();
    until(&redis, &country(), &[1, 3], "\"US\"\n\"UK\"").await;
}

#[tokio::test]
async fn a_restart_between_two_trips_goes_unnoticed() {
    let (mut server, _) = seeded().await;
    server.command(&["SAVE"]);
    let time = Ahead::default();
    let redis = Redis::new(config(server.port()), Arc::new(time.clone()));
    assert_eq!(ask(&redis, &users(), &country(), &[1]).await, r#""US""#);
    // Longer than a connection must live for its end not to count as a failure.
    time.forward(Duration::from_secs(3));
    server.restart();
    assert_eq!(ask(&redis, &users(), &country(), &[1]).await, r#""US""#);
}

#[tokio::test]
async fn a_late_reply_never_answers_a_later_question() {
    let (server, _) = seeded().await;
    let quick =
        RedisConfig { response_timeout: Duration::from_millis(200), connections: 1, ..config(server.port()) };
    let redis = Redis::new(quick, clock());
    until(&redis, &country(), &[1], r#""US""#).await;
    server.pause();
    let bound = redis.bind(&users(), &country());
    let reply = fetch(&bound, Keys::Ids(vec![1])).await;
    assert!(matches!(reply, Err(Error::Timeout { .. })), "{reply:?}");
    // Given up half-way.
    let Fetch::Later(given_up) = bound.fetch(Keys::Ids(vec![3]), (&unbounded()).into()) else {
        panic!("it takes a trip")
    };
    let soon = clock().sleep_until(clock().now() + Duration::from_millis(5));
    select(given_up, soon).await;
    server.resume();
    for _ in 0..20 {
        let reply = fetch(&bound, Keys::Ids(vec![2])).await;
        if let Ok(_) | Err(Error::Malformed { .. } | Error::Refused { .. }) = reply {
            assert_eq!(show(&reply), r#""CA""#);
        }
    }
    until(&redis, &country(), &[2], r#""CA""#).await;
}

#[tokio::test]
async fn a_server_that_stays_silent_gets_another_connection() {
    let silent = FakeServer::start(|talk| {
        if talk.answer_hello() && talk.number == 0 {
            while talk.command().is_some() {}
        }
        answer_all(talk);
    });
    let quick =
        RedisConfig { response_timeout: Duration::from_millis(100), connections: 1, ..config(silent.port()) };
    let time = Ahead::default();
    let redis = Redis::new(quick, Arc::new(time.clone()));
    let bound = redis.bind(&users(), &country());
    let reply = fetch(&bound, Keys::Ids(vec![1])).await;
    assert!(matches!(reply, Err(Error::Timeout { .. })), "{reply:?}");
    assert_eq!(silent.connections(), 1, "it is given up after a while, not at once");
    time.forward(Duration::from_secs(2));
    until(&redis, &country(), &[1], r#""US""#).await;
    assert_eq!(silent.connections(), 2);
}

/// Every read is cut long before its own timeout, and still the connection is replaced.
#[tokio::test]
async fn a_silent_server_is_noticed_although_every_read_is_cut_early() {
    let silent = FakeServer::start(|talk| {
        if talk.answer_hello() && talk.number < 2 {
            while talk.command().is_some() {}
        }
        answer_all(talk);
    });
    let redis = Redis::new(RedisConfig::new("127.0.0.1", silent.port()), clock());
    until_within(&redis, Duration::from_millis(50), r#""US""#).await;
    assert!(silent.connections() > 2, "the silent ones were replaced");
}

#[tokio::test]
async fn a_stopped_server_answers_again_after_it_goes_on() {
    let (server, _) = seeded().await;
    let redis = Redis::new(RedisConfig::new("127.0.0.1", server.port()), clock());
    until_within(&redis, HANGS, r#""US""#).await;
    server.pause();
    let stopped = clock().now();
    while clock().now() < stopped + Duration::from_millis(1_300) {
        let told = asked_within(&redis, Duration::from_millis(50)).await;
        assert!(told.is_none_or(|told| told != r#""US""#));
    }
    server.resume();
    until_within(&redis, Duration::from_millis(50), r#""US""#).await;
}

/// The reply to one read, if it comes so soon.
async fn asked_within(redis: &Redis, time: Duration) -> Option<String> {
    let cut = clock().sleep_until(clock().now() + time);
    match select(Box::pin(ask(redis, &users(), &country(), &[1])), cut).await {
        Either::Left((told, _)) => Some(told),
        Either::Right(_) => None,
    }
}

/// Asks again and again, each time for so long, until the answer is `wanted` ten times in a row.
async fn until_within(redis: &Redis, time: Duration, wanted: &str) {
    let end = clock().now() + HANGS;
    let mut in_a_row = 0;
    while in_a_row < 10 {
        let told = asked_within(redis, time).await;
        in_a_row = if told.as_deref() == Some(wanted) { in_a_row + 1 } else { 0 };
        assert!(clock().now() < end, "still: {told:?}");
        if told.is_none_or(|told| told != wanted) {
            clock().sleep_until(clock().now() + Duration::from_millis(5)).await;
        }
    }
}

fn answer_all(talk: &mut Connection) {
    while talk.command().is_some() && talk.send("$2\r\nUS\r\n") {}
}

/// Plays `bad` on the first two connections and answers on the others: a typed error or the right answer, and
/// right answers in the end.
async fn recovers_from(bad: &'static str, expected: Expect) {
    let server = FakeServer::start(move |talk| {
        if talk.answer_hello() && talk.number < 2 {
            talk.command();
            talk.send(bad);
            return;
        }
        answer_all(talk);
    });
    let config = RedisConfig { connections: 1, ..config(server.port()) };
    let redis = Redis::new(config, clock());
    let told = ask(&redis, &users(), &country(), &[1]).await;
    expected.assert_eq(&told.replace(&server.port().to_string(), "PORT"));
    until(&redis, &country(), &[1, 2], "\"US\"\n\"US\"").await;
}

#[tokio::test]
async fn broken_replies() {
    recovers_from(
        "",
        expect!["the connection to ep_test broke before its reply was complete: the server closed it"],
    )
    .await;
    recovers_from(
        "$2\r\nU",
        expect!["the connection to ep_test broke before its reply was complete: the server closed it"],
    )
    .await;
    recovers_from(
        "garbage\r\n",
        expect![
            "ep_test answered `HGET user:1` with 'g' where a value begins, not a reply of the protocol RESP"
        ],
    )
    .await;
    recovers_from("*2147483647\r\n", expect!["ep_test answered `HGET user:1` with a group of 2147483647 values where 67108851 bytes are left, not a reply of the protocol RESP"]).await;
    recovers_from("$999999999999\r\n", expect!["ep_test answered `HGET user:1` with a text of 999999999999 bytes where 67108864 are left of the bound on a reply, not a reply of the protocol RESP"]).await;
    recovers_from(
        "$?\r\n;1\r\na\r\n;0\r\n",
        expect!["ep_test answered `HGET user:1` with '?' in a number, not a reply of the protocol RESP"],
    )
    .await;
}

/// A server that is not known to be a Cluster cannot send its clients, and their password, to another host.
#[tokio::test]
async fn redirects_are_followed_in_a_cluster_only() {
    let elsewhere = FakeServer::start(|talk| while talk.command().is_some() {});
    let port = elsewhere.port();
    for word in ["MOVED", "ASK"] {
        let server = FakeServer::start(move |talk| {
            talk.answer_hello();
            while talk.command().is_some() && talk.send(format!("-{word} 1 127.0.0.1:{port}\r\n")) {}
        });
        let config = RedisConfig { password: Some("secret".to_owned()), ..config(server.port()) };
        let told = ask(&Redis::new(config, clock()), &users(), &country(), &[1]).await;
        assert!(told.contains("write redis-cluster:// in the URL"), "{told}");
    }
    assert_eq!(elsewhere.connections(), 0);
}

/// A server without `HELLO` is spoken to in RESP2, where null and scores look different.
#[tokio::test]
async fn old_servers_are_spoken_to_in_resp2() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let words = Arc::clone(&seen);
    let server = FakeServer::start(move |talk| {
        while let Some(command) = talk.command() {
            words.lock().unwrap().push(command.join(" "));
            talk.send(match &*command[0] {
                "HELLO" => "-ERR unknown command `HELLO`, with args beginning with: `3`\r\n",
                "AUTH" => "+OK\r\n",
                "ZRANGE" => "*4\r\n$2\r\n11\r\n$1\r\n2\r\n$1\r\n9\r\n$3\r\n0.5\r\n",
                "LRANGE" => "*0\r\n",
                _ => "$-1\r\n",
            });
        }
    });
    let password = Some("secret".to_owned());
    let redis = Redis::new(RedisConfig { connections: 1, password, ..config(server.port()) }, clock());
    assert_eq!(ask(&redis, &users(), &country(), &[1]).await, "null");
    assert_eq!(ask(&redis, &users(), &Read::Scored { limit: 2 }, &[1]).await, "[11@2 9@0.5]");
    assert_eq!(ask(&redis, &users(), &Read::List { limit: 2 }, &[1]).await, "[]");
    assert_eq!(seen.lock().unwrap()[..2], ["HELLO 3 AUTH default secret SETNAME anabranch", "AUTH secret"]);
}

/// More than was asked for is not believed.
#[tokio::test]
async fn a_list_is_not_longer_than_its_limit() {
    says_to(
        &Read::List { limit: 1 },
        "*2\r\n$1\r\n1\r\n$1\r\n2\r\n",
        expect![
            "ep_test answered `LRANGE user:1` with a list of 2, not at most as many items as were asked for"
        ],
    )
    .await;
    says_to(
        &Read::Scored { limit: 1 },
        "*2\r\n*2\r\n$1\r\n1\r\n,1\r\n*2\r\n$1\r\n2\r\n,2\r\n",
        expect![
            "ep_test answered `ZRANGE user:1` with a list of 2, not at most as many items as were asked for"
        ],
    )
    .await;
}

/// An endless list and one that drips: the memory stays within the bound on a reply.
#[tokio::test]
async fn endless_replies_are_cut_off() {
    let server = FakeServer::start(|talk| {
        talk.answer_hello();
        while talk.command().is_some() {
            let endless = "$9\r\n123456789\r\n".repeat(1_000);
            talk.send("*300000\r\n");
            while talk.send(&endless) {}
        }
    });
    let bounded = RedisConfig { connections: 1, max_reply_bytes: 1 << 20, ..config(server.port()) };
    let told = ask(&Redis::new(bounded, clock()), &users(), &Read::List { limit: 1_000_000 }, &[1]).await;
    assert!(told.contains("more bytes than the bound on a reply"), "{told}");
}

/// Answers the first question with `reply` and all others rightly.
async fn says(reply: &'static str, expected: Expect) {
    says_to(&country(), reply, expected).await;
}

async fn says_to(read: &Read, reply: &'static str, expected: Expect) {
    let server = FakeServer::start(move |talk| {
        if talk.answer_hello() && talk.command().is_some() && talk.send(reply) {
            answer_all(talk);
        }
    });
    let redis = Redis::new(RedisConfig { connections: 1, ..config(server.port()) }, clock());
    expected.assert_eq(&ask(&redis, &users(), read, &[1]).await);
    assert_eq!(ask(&redis, &users(), &country(), &[1]).await, r#""US""#);
}

/// Several fields come in a list.
#[tokio::test]
async fn lists_of_another_type() {
    let both = fields(&[("age", Kind::Int), ("country", Kind::Text)]);
    says_to(&both, "*2\r\n$1\r\n7\r\n_\r\n", expect!["7 null"]).await;
    says_to(&both, "*1\r\n$1\r\n7\r\n", expect!["null null"]).await;
    says_to(&both, "+OK\r\n", expect!["null null"]).await;
    says_to(&both, "_\r\n", expect!["null null"]).await;
    says_to(&both, "-NOPERM no\r\n", expect!["ep_test refused `HMGET user:1`: NOPERM no"]).await;
}

#[tokio::test]
async fn replies_of_another_type() {
    says("+OK\r\n", expect![[r#""OK""#]]).await;
    says("_\r\n", expect!["null"]).await;
    says("*0\r\n", expect!["null"]).await;
    says(":5\r\n", expect!["null"]).await;
    says("$2\r\n\u{7f}\u{1}\r\n", expect![[r#""\u{7f}\u{1}""#]]).await;
    says("%1\r\n+country\r\n+US\r\n", expect!["null"]).await;
    says(
        "-LOADING Redis is loading the dataset in memory\r\n",
        expect!["ep_test cannot answer now: LOADING Redis is loading the dataset in memory"],
    )
    .await;
    says("-NOPERM no\r\n", expect!["ep_test refused `HGET user:1`: NOPERM no"]).await;
    // News that nobody asked for.
    says(">2\r\n+invalidate\r\n*0\r\n$2\r\nMX\r\n", expect![[r#""MX""#]]).await;
}

#[tokio::test]
async fn a_hundred_trips_are_under_way_at_once() {
    let server = FakeServer::start(|talk| {
        talk.answer_hello();
        // Not a word before 50 commands have come on each of the two connections.
        let commands: Vec<_> = std::iter::from_fn(|| talk.command()).take(50).collect();
        for words in commands {
            let id = words[1].strip_prefix("user:").unwrap();
            talk.send(format!("${}\r\n{id}\r\n", id.len()));
        }
        talk.command();
    });
    let redis = redis(server.port());
    let bound = redis.bind(&users(), &fields(&[("id", Kind::Int)]));
    let replies = join_all((0..100).map(|id| fetch(&bound, Keys::Ids(vec![id])))).await;
    for (id, reply) in replies.iter().enumerate() {
        assert_eq!(show(reply), id.to_string());
    }
    assert_eq!(server.connections(), 2);
}

#[tokio::test]
async fn one_attempt_to_connect_at_a_time() {
    let refusals = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&refusals);
    let server = FakeServer::start(move |_| _ = counted.fetch_add(1, Ordering::SeqCst));
    let redis = Redis::new(RedisConfig { connections: 1, ..config(server.port()) }, clock());
    let bound = redis.bind(&users(), &country());
    let replies = join_all((0..200).map(|id| fetch(&bound, Keys::Ids(vec![id])))).await;
    assert!(replies.iter().all(|reply| matches!(reply, Err(Error::Connect { .. }))), "{:?}", replies[0]);
    assert!(server.connections() <= 3, "{} attempts", server.connections());
}

#[tokio::test]
async fn logs_in() {
    let server = RedisServer::start_with(&["--requirepass", "open sesame"]);
    let address = server.address();
    let login = |url: &str| {
        let mut config = RedisConfig::parse_url(url).unwrap();
        config.endpoint = "ep_test".into();
        (config.connect_timeout, config.response_timeout) = (HANGS, HANGS);
        Redis::new(config, clock())
    };
    let redis = login(&format!("redis://:open%20sesame@{address}/3"));
    let data = MemoryData::from_json("data.json", DATA).unwrap();
    seed(&data, &redis).await.unwrap();
    assert_eq!(ask(&redis, &users(), &country(), &[1]).await, r#""US""#);
    let elsewhere = login(&format!("redis://default:open%20sesame@{address}"));
    assert_eq!(ask(&elsewhere, &users(), &country(), &[1]).await, "null");
    let stranger = ask(&login(&format!("redis://:wrong@{address}")), &users(), &country(), &[1]).await;
    assert!(stranger.starts_with("no connection to ep_test: 127.0.0.1:"), "{stranger}");
    assert!(stranger.contains("WRONGPASS"), "{stranger}");
}

#[tokio::test]
async fn encrypts() {
    let folder = std::env::temp_dir().join(format!("anabranch-tls-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let [key, certificate] = ["key.pem", "certificate.pem"].map(|name| folder.join(name));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let [key_path, certificate_path] = [&key, &certificate].map(|path| path.to_str().unwrap());
    let server = RedisServer::start_with(&[
        "--tls-port",
        &free.to_string(),
        "--tls-cert-file",
        certificate_path,
        "--tls-key-file",
        key_path,
        "--tls-ca-cert-file",
        certificate_path,
        "--tls-auth-clients",
        "no",
    ]);
    let authorities = std::fs::read(&certificate).unwrap();
    let mut config = RedisConfig {
        endpoint: "ep_test".into(),
        connect_timeout: HANGS,
        response_timeout: HANGS,
        ..RedisConfig::parse_url(&format!("rediss://127.0.0.1:{free}")).unwrap()
    };
    let distrusted = ask(&Redis::new(config.clone(), clock()), &users(), &country(), &[1]).await;
    assert!(distrusted.contains("certificate"), "{distrusted}");
    config.tls = Some(RedisTls { authorities: Some(authorities) });
    let redis = Redis::new(config, clock());
    seed(&MemoryData::from_json("data.json", DATA).unwrap(), &redis).await.unwrap();
    assert_eq!(ask(&redis, &users(), &country(), &[1]).await, r#""US""#);
    drop(server);
    let _ = std::fs::remove_dir_all(&folder);
}

#[test]
fn urls() {
    let show = |url: &str| match RedisConfig::parse_url(url) {
        Ok(config) => format!("{config:?}"),
        Err(what) => what,
    };
    let urls = [
        "127.0.0.1:7000",
        "localhost",
        "rediss://ann:p%40ss@h:1/2",
        "redis-cluster://a:1,b",
        "redis://[::1]:5",
        "redis://a,b",
        "http://a",
        "redis://a:x",
        "redis://a/x",
        "redis://:%zz@a",
        "redis-cluster://a/1",
        "",
    ];
    expect![[r#"
        RedisConfig { endpoint: "127.0.0.1:7000", servers: [("127.0.0.1", 7000)], cluster: false, tls: false, username: None, password: None, database: 0, .. }
        RedisConfig { endpoint: "localhost:6379", servers: [("localhost", 6379)], cluster: false, tls: false, username: None, password: None, database: 0, .. }
        RedisConfig { endpoint: "h:1", servers: [("h", 1)], cluster: false, tls: true, username: Some("ann"), password: Some("..."), database: 2, .. }
        RedisConfig { endpoint: "a:1", servers: [("a", 1), ("b", 6379)], cluster: true, tls: false, username: None, password: None, database: 0, .. }
        RedisConfig { endpoint: "::1:5", servers: [("::1", 5)], cluster: false, tls: false, username: None, password: None, database: 0, .. }
        several servers are a Cluster: use redis-cluster://
        `http://` is not known; use redis://, rediss://, redis-cluster:// or rediss-cluster://
        `x` in `a:x` is no port
        `x` is no number of a database
        a `%` in a user name or password stands before two hexadecimal digits
        a Cluster has no other database than 0
        `` is no host and port; `127.0.0.1:6379` is"#]].assert_eq(&urls.map(show).join("\n"));
}
