//! Runs the binary.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anabranch_testkit::patient;

/// What a command said, and its exit code.
pub(crate) struct CommandOutput {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

pub(crate) fn examples() -> PathBuf {
    root().join("examples/plans")
}

/// A folder of the test's own for files, which are written anew each time.
pub(crate) fn scratch(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs `anabranch` in a folder.
pub(crate) fn in_folder(folder: &Path, args: &[&str], stdin: &str) -> CommandOutput {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.args(args).current_dir(folder).env_remove("COLUMNS").env("NO_COLOR", "1");
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // One that fails early may not read its input.
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let output = child.wait_with_output().unwrap();
    CommandOutput {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs `anabranch` in a copy of the examples' folder, where the project file is. In the copy no plan runs out of time,
/// however busy the machine is.
pub(crate) fn anabranch(args: &[&str], stdin: &str) -> CommandOutput {
    in_folder(patient_examples(), args, stdin)
}

/// The examples, with ten minutes for everything that has a time limit.
pub(crate) fn patient_examples() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = scratch("patient_examples");
        for part in ["", "plans", "registry"] {
            std::fs::create_dir_all(folder.join(part)).unwrap();
            for entry in std::fs::read_dir(examples().join(part)).unwrap() {
                let path = entry.unwrap().path();
                if path.is_file() {
                    let text = std::fs::read_to_string(&path).unwrap();
                    let name = Path::new(part).join(path.file_name().unwrap());
                    std::fs::write(folder.join(name), patient(&text)).unwrap();
                }
            }
        }
        let built = in_folder(&folder, &["plan", "build"], "");
        assert_eq!(built.code, 0, "{}", built.stderr);
        folder
    })
}

impl CommandOutput {
    /// All of it, without the machine's paths.
    pub(crate) fn shown(&self) -> String {
        self.without(&[(patient_examples(), "ROOT/examples/plans"), (&root(), "ROOT")])
    }

    /// The same, of a command about this folder.
    pub(crate) fn shown_from(&self, folder: &Path) -> String {
        // First, as it may be below the other.
        self.without(&[(folder, "FOLDER"), (&root(), "ROOT")])
    }

    fn without(&self, paths: &[(&Path, &str)]) -> String {
        let clean = |text: &str| {
            paths
                .iter()
                .fold(text.to_owned(), |text, (path, name)| text.replace(path.to_str().unwrap(), name))
        };
        let mut shown = String::new();
        for (name, text) in [("", &self.stdout), ("stderr: ", &self.stderr)] {
            clean(text)
                .lines()
                .for_each(|line| writeln!(shown, "{}", format!("{name}{line}").trim_end()).unwrap());
        }
        writeln!(shown, "exit {}", self.code).unwrap();
        shown
    }

    /// The answer.
    pub(crate) fn answer(&self) -> serde_json::Value {
        assert_eq!(self.code, 0, "{}", self.shown());
        assert_eq!(self.stdout.matches('\n').count(), 1, "one line: {}", self.stdout);
        serde_json::from_str(&self.stdout).unwrap()
    }

    /// The ids of the answer's rows.
    pub(crate) fn ids(&self) -> Vec<i64> {
        let answer = self.answer();
        let candidates = answer["candidates"].as_array().unwrap();
        candidates.iter().map(|candidate| candidate["id"].as_i64().unwrap()).collect()
    }
}

/// Asks again until there is something, for as long as only a failing test asks. What is waited for is another process, which
/// tells nobody, so this looks every few milliseconds.
#[allow(clippy::disallowed_methods, reason = "another process is waited for, which needs a real bound")]
pub(crate) fn soon<T>(ask: impl Fn() -> Option<T>) -> T {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(600);
    loop {
        if let Some(found) = ask() {
            return found;
        }
        assert!(std::time::Instant::now() < end, "it takes too long");
        std::thread::park_timeout(std::time::Duration::from_millis(5));
    }
}
