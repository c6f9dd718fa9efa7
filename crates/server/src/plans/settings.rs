//! How the plans of a server are loaded and recorded.

use std::path::PathBuf;
use std::time::Duration;

use anabranch_plan_ts::Worker;

/// Which plans a server has, and how it changes them.
#[derive(Clone, Debug)]
pub struct PlanSettings {
    /// The project file, `anabranch.toml`.
    pub project: PathBuf,
    /// How to start the process that runs the code of plans in TypeScript; `None` runs it in this process, which is for
    /// code that is trusted.
    pub worker: Option<Worker>,
    /// How often the files of plans and of the registry are looked at; `None` for never. Default once per second.
    pub watch_every: Option<Duration>,
    /// How a changed plan begins: with some of the requests, or at once. Default at once.
    pub canary: Option<CanarySettings>,
    /// True if the details of a run have its request, which may hold personal data. Default false.
    pub keep_requests: bool,
}

/// How a changed plan is tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CanarySettings {
    /// The share of users that get the new version, from 0 to 1.
    pub share: f64,
    /// How long it is tried. After that it is served to everybody, or rolled back if it is worse.
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
