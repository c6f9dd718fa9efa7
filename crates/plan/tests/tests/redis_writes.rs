//! Redis: attempts to connect that nobody waits for to the end, and writes that may have been carried out.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use anabranch_plan::source::{Error, Keys, MemoryData, Redis, RedisConfig, Source, seed};
use anabranch_testkit::FakeServer;
use futures_util::future::{Either, select};
use serde_json::json;

use crate::sources::{Ahead, clock, config, country, fetch, show, users};

#[tokio::test]
async fn connecting_goes_on_where_the_last_one_gave_up() {
    let (waited, all_gave_up) = mpsc::channel::<()>();
    let all_gave_up = Mutex::new(all_gave_up);
    let server = FakeServer::start(move |talk| {
        let hello = talk.command();
        let _ = all_gave_up.lock().unwrap().recv();
        if hello.is_some() && talk.send("%2\r\n+server\r\n+redis\r\n+proto\r\n:3\r\n") {
            while talk.command().is_some() && talk.send("$2\r\nUS\r\n") {}
        }
    });
    let redis = Redis::new(RedisConfig { connections: 1, ..config(server.port()) }, clock());
    let bound = redis.bind(&users(), &country());
    for _ in 0..5 {
        let soon = clock().sleep_until(clock().now() + Duration::from_millis(5));
        let given_up = select(Box::pin(fetch(&bound, Keys::Ids(vec![1]))), soon).await;
        assert!(matches!(given_up, Either::Right(_)), "the server has not said anything");
    }
    drop(waited);
    assert_eq!(show(&fetch(&bound, Keys::Ids(vec![1])).await), r#""US""#);
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn what_may_have_been_written_is_not_written_again() {
    let pushed = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&pushed);
    // Answers all but the last items of the list, and is gone.
    let server = FakeServer::start(move |talk| {
        talk.answer_hello();
        while let Some(words) = talk.command() {
            if words[0] == "RPUSH" {
                seen.lock().unwrap().push(words[2].clone());
            }
            if words[0] == "RPUSH" && words[2] == "2000" {
                return;
            }
            talk.send(":1\r\n");
        }
    });
    let config = RedisConfig { connections: 1, pipeline: 2, ..config(server.port()) };
    let time = Ahead::default();
    let redis = Redis::new(config, Arc::new(time.clone()));
    let items: Vec<i64> = (0..2_500).collect();
    let data = MemoryData::from_json("data", &json!({"lists": {"follow:1": items}}).to_string()).unwrap();
    // Long enough that the end of a connection is no reason to wait before the next.
    let warm = MemoryData::from_json("data", r#"{"hashes": {"user:1": {"country": "US"}}}"#).unwrap();
    seed(&warm, &redis).await.unwrap();
    time.forward(Duration::from_secs(3));
    let written = seed(&data, &redis).await;
    assert!(matches!(written, Err(Error::Broken { .. })), "{written:?}");
    assert_eq!(*pushed.lock().unwrap(), ["0", "1000", "2000"]);
}
