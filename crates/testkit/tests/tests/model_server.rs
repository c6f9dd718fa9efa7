//! The server of language models.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use anabranch_testkit::{ModelScript, ModelServer};
use expect_test::expect;

fn body(prompt: &str) -> String {
    format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{prompt}"}}]}}"#)
}

fn request(body: &str) -> String {
    format!("POST /v1/chat/completions HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// Connects and sends text.
fn send(server: &ModelServer, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    stream
}

/// Reads a whole answer from a connection that stays open.
fn answer(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    let mut byte = [0];
    while !text.ends_with("\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        text.push(byte[0] as char);
    }
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut rest = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut rest).unwrap();
    text + &String::from_utf8(rest).unwrap()
}

fn ask(server: &ModelServer, prompt: &str) -> String {
    answer(&mut send(server, &request(&body(prompt))))
}

/// The counters: calls, in flight, paid, answered, repeated.
fn counted(server: &ModelServer) -> [usize; 5] {
    [server.calls(), server.in_flight(), server.paid(), server.answered(), server.repeated()]
}

/// Waits for the server's threads.
fn until(mut reached: impl FnMut() -> bool) {
    for _ in 0..50_000_000 {
        if reached() {
            return;
        }
        std::thread::yield_now();
    }
    panic!("the server does not get there");
}

#[test]
fn good_replies_are_counted_before_the_client_has_them() {
    let server = ModelServer::start(ModelScript::default());
    for round in 0..50 {
        let calls = 3 * round;
        ask(&server, &format!("a {round}"));
        assert_eq!(counted(&server), [calls + 1, 0, calls + 1, calls + 1, round]);
        ask(&server, &format!("a {round}"));
        ask(&server, &format!("b {round}"));
        assert_eq!(counted(&server), [calls + 3, 0, calls + 3, calls + 3, round + 1]);
    }
}

#[test]
fn an_outage_is_answered_by_503() {
    let server = ModelServer::start(ModelScript::default());
    let mut stream = send(&server, "");
    let mut ask = || {
        stream.write_all(request(&body("a")).as_bytes()).unwrap();
        answer(&mut stream)
    };
    server.set_down(true);
    let text = ask();
    assert!(text.starts_with("HTTP/1.1 503") && !text.contains("retry-after"), "{text}");
    assert_eq!(counted(&server), [1, 0, 0, 0, 0]);
    server.set_down(false);
    assert!(ask().starts_with("HTTP/1.1 200"));
    assert_eq!(counted(&server), [2, 0, 1, 1, 0]);
}

#[test]
fn headers_are_added_to_good_replies_and_429s() {
    let script = ModelScript {
        headers: Some(Arc::new(|call, calls| vec![(format!("x-{}", call.prompt()), calls.to_string())])),
        ..ModelScript::default()
    };
    let server = ModelServer::start(script.clone());
    let lines = ["a", "b"].map(|prompt| {
        let text = ask(&server, prompt);
        text.lines().filter(|line| line.starts_with("x-")).collect::<Vec<_>>().join(" ")
    });
    expect!["x-a: 1|x-b: 2"].assert_eq(&lines.join("|"));
    server.set_down(true);
    assert!(!ask(&server, "c").contains("x-c"));
    let full = ModelServer::start(ModelScript { limit: Some(0), ..script });
    let text = ask(&full, "d");
    assert!(text.starts_with("HTTP/1.1 429") && text.contains("x-d: 1"), "{text}");
}

#[test]
fn replies_depend_on_the_body_alone() {
    let prompts: Vec<String> = (0..40).map(|number| format!("prompt {number}")).collect();
    let script = ModelScript { seed: 5, ..ModelScript::default() };
    let server = ModelServer::start(script.clone());
    let first: Vec<String> = prompts.iter().map(|prompt| ask(&server, prompt)).collect();
    let other = ModelServer::start(script);
    let mut second: Vec<String> = prompts.iter().rev().map(|prompt| ask(&other, prompt)).collect();
    second.reverse();
    assert_eq!(first, second);
    assert_ne!(first[0], first[1]);
    assert_eq!(first[0], ask(&other, &prompts[0]));
}

#[test]
fn clients_that_are_killed_do_no_harm() {
    let large: String = "x".repeat(1 << 20);
    let server = ModelServer::start(ModelScript {
        reply: Some(Arc::new(move |_| large.clone())),
        latency: Duration::from_millis(1),
        ..ModelScript::default()
    });
    let whole = request(&body("killed"));
    for round in 0..4 {
        let streams: Vec<TcpStream> = (0..64)
            .map(|client| {
                // Some break off in the middle of the request, some read a part of the reply, some nothing of it.
                let sent = if client % 3 == 0 { &whole[..whole.len() * client / 64] } else { &whole };
                let mut stream = send(&server, sent);
                if client % 3 == 1 {
                    stream.read_exact(&mut [0; 100]).unwrap();
                }
                // As the kernel does for a killed process that has not read everything.
                rustix::net::sockopt::set_socket_linger(&stream, Some(Duration::ZERO)).unwrap();
                stream
            })
            .collect();
        drop(streams);
        assert!(ask(&server, &format!("alive {round}")).starts_with("HTTP/1.1 200"));
    }
    // The bodies are 4 of those that read their reply, and one of those that were killed. Requests of dead clients may still
    // be on their way.
    until(|| {
        let [calls, in_flight, paid, answered, repeated] = counted(&server);
        in_flight == 0 && calls == paid && paid == repeated + 5 && (4..=paid).contains(&answered)
    });
}
