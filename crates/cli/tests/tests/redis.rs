//! `--redis` and `plan seed`, with a server of the test's own.

use anabranch_testkit::RedisServer;

use crate::binary::{anabranch, examples};

#[test]
fn a_seeded_redis_answers_as_the_file_does() {
    let server = RedisServer::start();
    let address = server.address();
    let data = examples().join("data.json");
    let seeded = anabranch(&["plan", "seed", "--data", data.to_str().unwrap(), "--redis", &address], "");
    assert_eq!((seeded.code, seeded.stdout.as_str()), (0, ""), "{}", seeded.shown());
    assert_eq!(seeded.stderr, format!("wrote 480 keys to {address}\n"));
    let request = r#"{"user_id": 7, "request_id": "r"}"#;
    for plan in ["feed", "trending", "new_faces", "home"] {
        let from_redis = anabranch(&["plan", "run", plan, "--redis", &address], request).answer();
        let from_file = anabranch(&["plan", "run", plan], request).answer();
        assert_eq!(from_redis["candidates"], from_file["candidates"], "{plan}");
    }
    let args = ["plan", "bench", "feed", "--redis", &address, "--requests", "20", "--concurrency", "4"];
    assert_eq!(anabranch(&args, "").code, 0);
}
