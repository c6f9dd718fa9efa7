//! Memory of idle listeners of events.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;

use super::SETTINGS;
use super::process::ServerProcess;
use crate::plan::Aims;
use crate::report::{Report, row};

pub(super) fn report(
    report: &mut Report,
    aims: &mut Aims,
    server: &ServerProcess,
    listeners: usize,
) -> io::Result<()> {
    report.heading("Idle listeners");
    report.say(format_args!(
        "{listeners} connections that listen to `GET /v1/events` (SSE) while nothing happens, with `{}`. All of them are open \
         at the end.\n",
        SETTINGS.join(" ")
    ));
    let before = server.resident()?;
    let mut streams = Vec::with_capacity(listeners);
    for _ in 0..listeners {
        let mut stream = server.connect()?;
        stream.write_all(format!("GET /v1/events HTTP/1.1\r\n{}\r\n", server.head()).as_bytes())?;
        let mut start = [0; 12];
        stream.read_exact(&mut start)?;
        if &start != b"HTTP/1.1 200" {
            return Err(io::Error::other(format!("answered {}", String::from_utf8_lossy(&start))));
        }
        streams.push(stream);
    }
    let grown = server.resident()?.saturating_sub(before);
    for stream in &mut streams {
        check_open(stream)?;
    }
    let megabytes = grown as f64 / 1e6;
    report.table(&[
        row(["listeners", "memory", "each"]),
        row([
            &listeners.to_string(),
            &format!("{megabytes:.1} MB"),
            &format!("{:.1} kB", grown as f64 / 1e3 / listeners as f64),
        ]),
    ]);
    aims.add("1,000 idle SSE clients: under 50 MB", format!("{megabytes:.1} MB"), megabytes < 50.0);
    Ok(())
}

/// Checks that the server has not closed a connection.
fn check_open(stream: &mut TcpStream) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    let mut piece = [0; 4096];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return Err(io::Error::other("the server closed a listener")),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}
