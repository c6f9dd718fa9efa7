//! Server processes of this machine, and what they take.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anabranch_server::proto::plans::plans_client::PlansClient;
use prost::Message as _;
use tonic::transport::Endpoint;

use super::floor;

/// A server that is killed with this handle.
pub(super) struct ServerProcess {
    child: Child,
    /// `IP:PORT`.
    pub(super) address: String,
    /// The token of requests, if it asks for one.
    pub(super) token: Option<String>,
}

impl ServerProcess {
    /// `anabranch serve` on a project, with a new store.
    pub(super) fn ours(folder: &Path, settings: &[&str]) -> io::Result<ServerProcess> {
        let token_file = folder.join("token");
        let mut command = Command::new(beside("anabranch")?);
        command.arg("serve").arg("--project").arg(folder.join("anabranch.toml"));
        command.arg("--data").arg(folder.join("store")).arg("--token-file").arg(&token_file);
        command.args(["--listen", "127.0.0.1:0", "--log", "warn"]).args(settings);
        let mut server = ServerProcess::start(&mut command)?;
        server.token = Some(std::fs::read_to_string(token_file)?.trim().to_owned());
        Ok(server)
    }

    /// The floor, which answers as `ours` answers one request.
    pub(super) fn floor(ours: &ServerProcess, plan: &str, folder: &Path) -> io::Result<ServerProcess> {
        std::fs::write(folder.join(floor::HTTP_ANSWER), ours.answer(plan)?)?;
        std::fs::write(folder.join(floor::GRPC_ANSWER), ours.grpc_answer(plan)?)?;
        ServerProcess::start(Command::new(std::env::current_exe()?).args(["serve", "floor"]).arg(folder))
    }

    fn start(command: &mut Command) -> io::Result<ServerProcess> {
        let mut child = command.stdout(Stdio::piped()).stdin(Stdio::null()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("it is piped")).read_line(&mut line)?;
        let address = line.trim().strip_prefix("listening on http://");
        let address = address.ok_or_else(|| io::Error::other(format!("no address in {line:?}")))?.to_owned();
        Ok(ServerProcess { child, address, token: None })
    }

    /// The body of one answer of a plan.
    pub(super) fn answer(&self, plan: &str) -> io::Result<Vec<u8>> {
        let mut stream = self.connect()?;
        let body = super::load::BODY;
        let head = format!(
            "POST /v1/plans/{plan}/run HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{}\r\n{body}", self.head()).as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let split = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(answer.len());
        let (head, body) = answer.split_at(split);
        match head.starts_with(b"HTTP/1.1 200") {
            true => Ok(body[4..].to_vec()),
            false => Err(io::Error::other(String::from_utf8_lossy(&answer).into_owned())),
        }
    }

    /// The message of one answer of a plan over gRPC.
    fn grpc_answer(&self, plan: &str) -> io::Result<Vec<u8>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let channel =
                Endpoint::from_shared(format!("http://{}", self.address)).map_err(io::Error::other)?;
            let channel = channel.connect().await.map_err(io::Error::other)?;
            let mut request = tonic::Request::new(super::load::message(plan));
            if let Some(token) = &self.token {
                let token = format!("Bearer {token}").parse().map_err(io::Error::other)?;
                request.metadata_mut().insert("authorization", token);
            }
            let answer = PlansClient::new(channel).run(request).await.map_err(io::Error::other)?;
            Ok(answer.into_inner().encode_to_vec())
        })
    }

    pub(super) fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        Ok(stream)
    }

    /// The headers that each request has: where it goes, and the token.
    pub(super) fn head(&self) -> String {
        let token = self.token.as_deref().map(|token| format!("Authorization: Bearer {token}\r\n"));
        format!("Host: {}\r\n{}", self.address, token.unwrap_or_default())
    }

    /// CPU time of all its threads so far.
    pub(super) fn cpu(&self) -> io::Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name in parentheses may have spaces; user and system time are the fields 14 and 15.
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11);
        let ticks: u64 = fields.take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        Ok(Duration::from_millis(ticks * 1_000 / rustix::param::clock_ticks_per_second()))
    }

    /// Resident memory, in bytes.
    pub(super) fn resident(&self) -> io::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
        kilobytes.map(|kilobytes| kilobytes << 10).ok_or_else(|| io::Error::other("no VmRSS"))
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program in the folder of this one.
pub(crate) fn beside(name: &str) -> io::Result<PathBuf> {
    let program = std::env::current_exe()?.with_file_name(name);
    match program.exists() {
        true => Ok(program),
        false => Err(io::Error::other(format!("{} is missing: build the whole bench", program.display()))),
    }
}
