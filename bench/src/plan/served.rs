//! A project folder for a server process.

use std::io;
use std::path::{Path, PathBuf};

use super::plans::{KEYS, PARAMS, endpoints};
use super::{data, plans};

/// A folder with a project file, a registry, rows in a file, and one plan. It is removed with this handle.
pub(crate) struct ServedProject(PathBuf);

const PROJECT: &str = r#"
[plan]
registry = "registry"
plans = "plans"
env = "dev"

[plan.endpoints.redis_default]
source = "memory"
data = ["data.json"]
"#;

impl ServedProject {
    /// Writes a project with `reels_plan_a`, and a plan over so many rows with a deadline in milliseconds.
    pub(crate) fn write(plan: &str, (busy, rows, deadline): (&str, usize, u64)) -> io::Result<ServedProject> {
        let mut busy_plan: serde_json::Value =
            serde_json::from_str(&plans::cpu_pipeline(rows)).map_err(io::Error::other)?;
        (busy_plan["plan_name"], busy_plan["deadline_ms"]) = (busy.into(), deadline.into());
        let folder = std::env::temp_dir().join(format!("anabranch-bench-serve-{}", std::process::id()));
        let project = ServedProject(folder);
        for (name, text) in [
            ("anabranch.toml", PROJECT),
            ("data.json", &data::json()),
            ("registry/keys.toml", KEYS),
            ("registry/params.toml", PARAMS),
            // Nobody listens there: the project file says that the endpoint is a file.
            ("registry/endpoints.dev.toml", &endpoints(1)),
            (&format!("plans/{plan}.plan.json"), &plans::reels()),
            (&format!("plans/{busy}.plan.json"), &busy_plan.to_string()),
        ] {
            let file = project.0.join(name);
            std::fs::create_dir_all(file.parent().expect("it is in a folder"))?;
            std::fs::write(file, text)?;
        }
        Ok(project)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ServedProject {
    fn drop(&mut self) {
        // A folder for temporary files is cleaned by the system, too.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
