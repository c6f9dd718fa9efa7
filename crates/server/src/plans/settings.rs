//! Settings for loading and recording a server's plans.

use std::path::PathBuf;
use std::time::Duration;

use anabranch_plan_ts::Worker;

/// The plans of a server, and the way in which they change.
#[derive(Clone, Debug)]
pub struct PlanSettings {
    /// The project file, `anabranch.toml`.
    pub project: PathBuf,
    /// The command of the process that runs the TypeScript code of plans. `None` runs it in this process, which is for
    /// trusted code only.
    pub worker: Option<Worker>,
    /// The interval of checking the files of plans and of the registry; `None` for never. Default: one second.
    pub watch_every: Option<Duration>,
    /// The trial of a changed plan; `None` serves it to everybody at once. Default: `None`.
    pub canary: Option<CanarySettings>,
    /// Whether the details of a run include its request, which may hold personal data. Default: false.
    pub keep_requests: bool,
}

/// The trial of a changed plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CanarySettings {
    /// The share of users that get the new version, from 0 to 1.
    pub share: f64,
    /// The length of the trial. Afterwards the version is served to everybody, or rolled back if it is worse.
    pub trial: Duration,
}

impl PlanSettings {
    /// The defaults, for this project.
    pub fn new(project: impl Into<PathBuf>) -> PlanSettings {
        PlanSettings {
            project: project.into(),
            worker: None,
            watch_every: Some(Duration::from_secs(1)),
            canary: None,
            keep_requests: false,
        }
    }
}
