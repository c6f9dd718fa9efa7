//! A page of the documentation whose blocks are run: files are written, commands are run by `sh` in a folder of the page's own.

use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::binary::{root, scratch};

/// The ports that pages show. Servers listen on free ones instead.
const PORTS: [&str; 2] = [":7421", ":50051"];

/// No command takes as long, however busy the machine is.
const PATIENCE: Duration = Duration::from_secs(600);

pub(crate) struct Page {
    name: String,
    pub(crate) folder: PathBuf,
    /// Texts of the page, each with its replacement in the test.
    replaced: Vec<(String, String)>,
    /// The variables of the shell so far.
    variables: String,
    /// The server, and other programs that run until they are stopped.
    running: Vec<Child>,
}

impl Drop for Page {
    fn drop(&mut self) {
        for child in &mut self.running {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The output of a command on stdout and stderr, and whether it succeeded.
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) is_fine: bool,
}

impl Page {
    /// A page of `docs`, with an empty folder.
    pub(crate) fn new(name: &str) -> Page {
        let folder = scratch(&format!("docs_{}", name.replace('/', "_")));
        std::fs::remove_dir_all(&folder).unwrap();
        std::fs::create_dir_all(&folder).unwrap();
        // An answer that refuses is a failure.
        std::fs::write(folder.join(".curlrc"), "fail-with-body\nsilent\nshow-error\n").unwrap();
        let (replaced, variables, running) = Default::default();
        Page { name: name.to_owned(), folder, replaced, variables, running }
    }

    /// A text of the page stands for another one here.
    pub(crate) fn replace(&mut self, shown: &str, here: &str) {
        self.replaced.push((shown.to_owned(), here.to_owned()));
    }

    /// A file or folder of the repository has this name here.
    pub(crate) fn link(&self, path: &str, name: &str) {
        std::os::unix::fs::symlink(root().join(path), self.folder.join(name)).unwrap();
    }

    /// Writes a file, with what stands here for the texts of the page.
    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.join(name), self.here(text)).unwrap();
    }

    /// Runs the blocks of the page in order.
    pub(crate) fn check(mut self) {
        let file = root().join("docs").join(&self.name);
        let text = std::fs::read_to_string(&file).unwrap();
        let mut written = String::new();
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            written.push_str(&format!("{line}\n"));
            let Some(info) = line.strip_prefix("```") else { continue };
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            let mut shown = block.join("\n") + "\n";
            match info.split_once(' ') {
                Some((_, name)) => self.write(name, &shown),
                None if info == "console" => shown = self.console(&block),
                None if info == "sh" => block.iter().for_each(|line| drop(self.done(line))),
                None => {}
            }
            written.push_str(&format!("{shown}```\n"));
        }
        if written != text && std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&file, &written).unwrap();
        }
        let other = written.lines().zip(text.lines()).find(|(written, text)| written != text);
        assert!(
            written == text,
            "{}: UPDATE_EXPECT=1 writes what the commands say; the first difference: {other:?}",
            self.name
        );
    }

    /// The block with what its commands say, where that is not what it shows.
    fn console(&mut self, block: &[&str]) -> String {
        let mut written = String::new();
        let mut at = 0;
        while at < block.len() {
            let command = block[at].strip_prefix("$ ").expect("a block begins with a command");
            let shown: Vec<&str> =
                block[at + 1..].iter().take_while(|line| !line.starts_with("$ ")).copied().collect();
            at += 1 + shown.len();
            let said = self.run(command);
            let is_to_fail = shown.first().is_some_and(|line| line.starts_with("error:"));
            assert!(said.is_fine || is_to_fail, "{}: {command}\n{}", self.name, said.text);
            let said: Vec<&str> = said.text.lines().map(str::trim_end).collect();
            let kept = if fits(&shown, &said) { &shown } else { &said };
            written.push_str(&format!("$ {command}\n"));
            kept.iter().for_each(|line| written.push_str(&format!("{line}\n")));
        }
        written
    }

    /// The output of a command that must succeed.
    pub(crate) fn done(&mut self, command: &str) -> String {
        let said = self.run(command);
        assert!(said.is_fine, "{}: {command}\n{}", self.name, said.text);
        said.text
    }

    /// Runs a command. One that runs until it is stopped goes on behind the following ones. Variables stay set, and after an
    /// answer with an id, `$ID` and `$RUN` are those of the answer.
    pub(crate) fn run(&mut self, command: &str) -> Said {
        if command.starts_with("anabranch serve") && !command.contains("--print-config") {
            return Said { text: self.serve(command), is_fine: true };
        }
        if command.contains(" --watch") {
            let child = self
                .shell(&format!("exec {command}"))
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            self.running.push(child);
            return Said { text: String::new(), is_fine: true };
        }
        let name = command.split('=').next().unwrap_or_default();
        let is_variable = command.contains('=')
            && !command.contains(" anabranch ")
            && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
        let output = output(self.shell(&format!("{{ {}\n}} 2>&1", self.here(command))));
        if is_variable {
            self.variables.push_str(&format!("{}\n", self.here(command)));
        }
        let text = String::from_utf8(output.stdout).unwrap();
        let answer: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        if let (Some(id), Some(run)) = (answer["id"].as_str(), answer["run"].as_str()) {
            self.variables.push_str(&format!("ID={id}\nRUN={run}\n"));
        }
        let text = self.replaced.iter().fold(text, |text, (shown, here)| text.replace(here, shown));
        Said { text, is_fine: output.status.success() }
    }

    /// Starts a server in place of the one before it, and gives the line that it prints.
    fn serve(&mut self, command: &str) -> String {
        self.stop();
        let free = PORTS.iter().fold(self.here(command), |command, port| command.replace(port, ":0"));
        let log = std::fs::File::create(self.folder.join("server.log")).unwrap();
        let mut server = self.shell(&format!("exec {free}"));
        server.env("ANABRANCH_LISTEN", "127.0.0.1:0").stdout(Stdio::piped()).stderr(log);
        let mut child = server.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let line = in_time(child.id(), move || {
            let mut line = String::new();
            stdout.read_line(&mut line).unwrap();
            line
        });
        self.running.push(child);
        let log = || std::fs::read_to_string(self.folder.join("server.log")).unwrap();
        let port = line.trim().rsplit_once(':').unwrap_or_else(|| panic!("{command}: {}", log())).1;
        let shown = PORTS.iter().find(|port| command.contains(**port)).unwrap_or(&PORTS[0]);
        self.replace(shown, &format!(":{port}"));
        line.replace(&format!(":{port}"), shown)
    }

    /// Stops the server.
    pub(crate) fn stop(&mut self) {
        self.replaced.retain(|(shown, _)| !PORTS.contains(&shown.as_str()));
        for mut child in self.running.drain(..) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    fn here(&self, text: &str) -> String {
        self.replaced.iter().fold(text.to_owned(), |text, (shown, here)| text.replace(shown, here))
    }

    fn shell(&self, script: &str) -> Command {
        let mut command = shell(&self.folder, &format!("{}{script}", self.variables));
        command.env("CURL_HOME", &self.folder);
        command
    }
}

/// What comes of waiting for a process, whose group is killed if that takes too long.
fn in_time<T: Send>(id: u32, wait: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|threads| {
        let (sender, receiver) = mpsc::channel();
        threads.spawn(move || drop(sender.send(wait())));
        receiver.recv_timeout(PATIENCE).unwrap_or_else(|_| {
            let _ = kill_process_group(Pid::from_raw(i32::try_from(id).unwrap()).unwrap(), Signal::KILL);
            panic!("it takes too long");
        })
    })
}

/// What a command prints on stdout until it ends.
fn output(mut command: Command) -> Output {
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    in_time(child.id(), move || child.wait_with_output().unwrap())
}

/// `sh` with a script, in a folder, with the binary on the path. It leads a process group.
fn shell(folder: &Path, script: &str) -> Command {
    let binary = Path::new(env!("CARGO_BIN_EXE_anabranch")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("sh");
    command
        .args(["-c", script])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", binary.display()))
        .env("NO_COLOR", "1")
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .process_group(0);
    command
}

/// The output of a command on stdout and stderr.
pub(crate) fn said(folder: &Path, command: &str) -> String {
    let output = output(shell(folder, &format!("{{ {command}\n}} 2>&1")));
    String::from_utf8(output.stdout).unwrap()
}

/// Whether the lines of a page, in which `...` stands for any text, match these lines of output.
fn fits(shown: &[&str], said: &[&str]) -> bool {
    match shown {
        [] => said.is_empty(),
        ["...", rest @ ..] => (0..=said.len()).any(|skipped| fits(rest, &said[skipped..])),
        [line, rest @ ..] => {
            said.split_first().is_some_and(|(first, said)| fits_line(line, first) && fits(rest, said))
        }
    }
}

fn fits_line(shown: &str, said: &str) -> bool {
    match shown.split_once("...") {
        None => shown == said,
        Some((start, end)) => {
            let rest = said.strip_prefix(start);
            rest.is_some_and(|rest| {
                (0..=rest.len()).any(|at| rest.is_char_boundary(at) && fits_line(end, &rest[at..]))
            })
        }
    }
}
