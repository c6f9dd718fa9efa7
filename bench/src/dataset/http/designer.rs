//! NeMo DataDesigner in a virtual environment of its own, below `target/`.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::child::{self, Job, Work};

pub(super) const VERSION: &str = "0.9.6";

/// An installed DataDesigner.
pub(super) struct Designer {
    folder: PathBuf,
}

impl Designer {
    /// Installs what is missing. The error says why there is no such peer.
    pub(super) fn install() -> io::Result<Designer> {
        let program = std::env::current_exe()?;
        let target = program.ancestors().nth(2).unwrap_or(Path::new("target"));
        let folder = target.join(format!("data-designer-{VERSION}"));
        let designer = Designer { folder };
        if !designer.works() {
            eprintln!("installing data-designer {VERSION} into {}", designer.folder.display());
            step(Command::new("python3").args(["-m", "venv"]).arg(&designer.folder))?;
            let package = format!("data-designer=={VERSION}");
            step(designer.python().args(["-m", "pip", "install", "--quiet", &package]))?;
        }
        match designer.works() {
            true => Ok(designer),
            false => {
                Err(io::Error::other(format!("data-designer {VERSION} is installed and cannot be imported")))
            }
        }
    }

    /// One turn.
    pub(super) fn run(&self, job: &Job) -> io::Result<Work> {
        let script = job.folder.join("designer.py");
        std::fs::write(&script, SCRIPT)?;
        let mut command = self.python();
        command.arg(script).args(job.arguments()).env("DATA_DESIGNER_HOME", job.folder.join("home"));
        child::run(&mut command, &job.folder.join("log"))
    }

    fn python(&self) -> Command {
        let mut command = Command::new(self.folder.join("bin/python"));
        command.env("NEMO_TELEMETRY_ENABLED", "false").env("DATA_DESIGNER_SKIP_MODEL_HEALTH_CHECKS", "1");
        command
    }

    fn works(&self) -> bool {
        let check =
            format!("from importlib.metadata import version; assert version('data-designer') == '{VERSION}'");
        step(self.python().args(["-c", &check])).is_ok()
    }
}

fn step(command: &mut Command) -> io::Result<()> {
    let name = command.get_program().display().to_string();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!("{name}: {}", said.lines().last().unwrap_or("failed")))),
    }
}

/// A build. Time and CPU count from after the imports; reading the rows back is not counted.
const SCRIPT: &str = r#"
import json, sys, time
from pathlib import Path

import data_designer.config as dd
from data_designer.interface import DataDesigner

port, rows, parallel, folder = sys.argv[1:]
providers = [dd.ModelProvider(name="bench", endpoint=f"http://127.0.0.1:{port}/v1", provider_type="openai", api_key="none")]
designer = DataDesigner(artifact_path=Path(folder) / "out", model_providers=providers)
designer.set_run_config(dd.RunConfig(otel_metrics_port=None))
builder = dd.DataDesignerConfigBuilder.from_config(Path(folder) / "config.yaml")
began, start = time.perf_counter(), time.process_time()
results = designer.create(builder, num_records=int(rows))
wall, cpu = time.perf_counter() - began, time.process_time()
status = Path("/proc/self/status").read_text()
peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
made = results.count_records()
print(json.dumps({"wall": wall, "cpu": cpu - start, "whole_cpu": cpu, "peak": peak * 1024 / 1e6, "rows": made}))
"#;
