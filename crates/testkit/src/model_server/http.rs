//! As much of HTTP/1.1 as the clients under test speak.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::ModelFaultKind;

pub(super) struct Request {
    pub(super) path: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: String,
}

const LONGEST_BODY: usize = 256 << 20;

/// Waits for the next request; `None` if the client is gone.
pub(super) fn read(reader: &mut BufReader<TcpStream>) -> Option<Request> {
    let first = line(reader)?;
    let path = first.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let line = line(reader)?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':')?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut bytes = vec![0; length.min(LONGEST_BODY)];
    reader.read_exact(&mut bytes).ok()?;
    Some(Request { path, headers, body: String::from_utf8_lossy(&bytes).into_owned() })
}

fn line(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    (reader.by_ref().take(64 << 10).read_line(&mut line).ok()? > 0).then(|| line.trim_end().to_owned())
}

/// The bytes of a reply.
pub(super) fn message(status: u16, headers: &[(String, String)], body: &str) -> Vec<u8> {
    let more: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\n{more}\
         content-length: {}\r\n\r\n",
        body.len()
    );
    format!("{head}{body}").into_bytes()
}

/// Plays a fault; `false` if the connection is over. Only a 429 has the headers.
pub(super) fn play(
    reader: &mut BufReader<TcpStream>,
    fault: &ModelFaultKind,
    headers: &[(String, String)],
) -> bool {
    let mut write =
        |status, headers: &[_], body| reader.get_mut().write_all(&message(status, headers, body)).is_ok();
    match fault {
        ModelFaultKind::Status(status, retry_after) => {
            let kind = if *status == 429 { "rate_limit_exceeded" } else { "scripted" };
            let message = match status {
                422 => "response_format and tools are not supported".to_owned(),
                _ => format!("scripted status {status}"),
            };
            let error = format!(r#"{{"error":{{"message":"{message}","type":"{kind}","code":null}}}}"#);
            let mut headers = if *status == 429 { headers.to_vec() } else { Vec::new() };
            headers.extend(retry_after.iter().map(|value| ("retry-after".to_owned(), value.clone())));
            write(*status, &headers, &error)
        }
        ModelFaultKind::Malformed => write(200, &[], r#"{"choices": [{"message": oops"#),
        ModelFaultKind::Truncated => {
            let head = "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"choices\": [";
            let _ = reader.get_mut().write_all(head.as_bytes());
            false
        }
        ModelFaultKind::Hang => {
            // Until the client closes the connection, or the server is dropped.
            let mut rest = [0; 1024];
            while reader.read(&mut rest).is_ok_and(|count| count > 0) {}
            false
        }
        ModelFaultKind::Reset => {
            let _ = rustix::net::sockopt::set_socket_linger(reader.get_ref(), Some(Duration::ZERO));
            false
        }
    }
}
