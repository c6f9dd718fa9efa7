//! The plans that `anabranch serve` serves.

use std::path::Path;
use std::time::Duration;

use anabranch_engine::Engine;
use anabranch_server::{CanarySettings, PlanSettings, Plans};
use anabranch_text::duration;
use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{info, warn};

use super::resolver::Resolver;
use crate::failure::Failure;
use crate::worker;

/// Which plans are served, and how they change.
#[derive(Args)]
pub(crate) struct PlanArgs {
    /// The share of the users that get a changed plan first, from 0 to 1, as in 0.05. After --canary-for it is served
    /// to everybody, or rolled back if it fails more often or is slower. Everybody gets it at once if not given.
    #[arg(long, value_name = "SHARE", env = "ANABRANCH_CANARY", hide_env_values = true, value_parser = share)]
    canary: Option<f64>,
    /// How long a changed plan is tried: 10m if not given.
    #[arg(long, value_name = "TIME", env = "ANABRANCH_CANARY_FOR", hide_env_values = true, value_parser = duration::parse)]
    canary_for: Option<Duration>,
    /// Keep requests in the details of runs. They may hold personal data.
    #[arg(long, value_name = "BOOL", env = "ANABRANCH_KEEP_REQUESTS", hide_env_values = true)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    keep_requests: Option<bool>,
}

fn share(text: &str) -> Result<f64, String> {
    let share: Option<f64> = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a number from 0 to 1, as in 0.05".to_owned())
}

/// The settings of plans.
pub(crate) struct PlanConfig {
    canary: Option<CanarySettings>,
    keep_requests: bool,
}

/// The default length of a changed plan's trial.
const CANARY_FOR: Duration = Duration::from_secs(600);

impl PlanArgs {
    pub(super) fn resolve(&self, from: &mut Resolver<'_>) -> Result<PlanConfig, Failure> {
        let share = from.optional("canary", self.canary, share, f64::to_string)?;
        let trial = from.time("canary_for", self.canary_for, CANARY_FOR)?;
        let keep_requests = from.switch("keep_requests", self.keep_requests)?;
        Ok(PlanConfig { canary: share.map(|share| CanarySettings { share, trial }), keep_requests })
    }
}

impl PlanConfig {
    /// Loads the plans of a project, if there is one. The engine `runs` executes their runs.
    pub(super) async fn load(&self, project: Option<&Path>, runs: &Engine) -> Result<Option<Plans>, Failure> {
        let Some(file) = project else { return Ok(None) };
        let settings = PlanSettings {
            worker: Some(worker::here()),
            canary: self.canary,
            keep_requests: self.keep_requests,
            ..PlanSettings::new(file)
        };
        let plans = Plans::load(settings, runs.clone()).await?;
        let all = plans.problems();
        for (plan, problem) in &all {
            if let Some(problem) = problem {
                warn!(%plan, "a plan is not served: {problem}");
            }
        }
        let served = all.iter().filter(|(_, problem)| problem.is_none()).count();
        info!(project = %file.display(), served, broken = all.len() - served, "loaded the plans");
        Ok(Some(plans))
    }
}

/// A stream of SIGHUP signals from now on.
pub(super) fn hangups() -> Option<Signal> {
    signal(SignalKind::hangup())
        .inspect_err(|error| warn!(%error, "SIGHUP cannot be heard, so it does not reload plans"))
        .ok()
}

/// Reloads the plans on every SIGHUP. Never ends.
pub(super) async fn reload_on(hangups: Option<Signal>, plans: Option<Plans>) {
    let Some(mut hangups) = hangups else { return std::future::pending().await };
    while hangups.recv().await.is_some() {
        let Some(plans) = &plans else { continue };
        match plans.reload().await {
            Ok(changed) => info!(changed = changed.len(), "loaded the plans again"),
            Err(problem) => warn!("the plans were not loaded again: {problem}"),
        }
    }
    std::future::pending::<()>().await;
}
