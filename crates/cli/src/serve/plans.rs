//! The plans that `anabranch serve` serves.

use std::path::Path;
use std::time::Duration;

use anabranch_engine::Engine;
use anabranch_server::{CanarySettings, PlanSettings, Plans};
use anabranch_text::duration;
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use tracing::{info, warn};

use crate::failure::Failure;
use crate::worker;

/// Which plans are served, and how they change.
#[derive(Args)]
pub(crate) struct PlanArgs {
    /// Tries a changed plan on this share of the users first, from 0 to 1, as in 0.05. After --canary-for it is served
    /// to everybody, or rolled back if it fails more often or is slower.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    canary: Option<f64>,
    /// How long a changed plan is tried: 90s, 10m.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration::parse)]
    canary_for: Duration,
    /// Keeps requests in the details of runs. They may hold personal data.
    #[arg(long)]
    keep_requests: bool,
}

fn share(text: &str) -> Result<f64, String> {
    let share: Option<f64> = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a number from 0 to 1, as in 0.05".to_owned())
}

impl PlanArgs {
    /// Loads the plans of a project, if there is one. Their runs are executed by `runs`.
    pub(super) async fn load(&self, project: Option<&Path>, runs: &Engine) -> Result<Option<Plans>, Failure> {
        let Some(file) = project else { return Ok(None) };
        let canary = self.canary.map(|share| CanarySettings { share, trial: self.canary_for });
        let settings = PlanSettings {
            worker: Some(worker::here()),
            canary,
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

/// Loads plans again whenever SIGHUP comes; never ends.
pub(super) async fn reload_on_hangup(plans: Option<Plans>) {
    let Some(plans) = plans else { return std::future::pending().await };
    let mut hangups = match signal(SignalKind::hangup()) {
        Ok(hangups) => hangups,
        Err(error) => {
            warn!(%error, "SIGHUP cannot be heard, so it does not reload plans");
            return std::future::pending().await;
        }
    };
    while hangups.recv().await.is_some() {
        match plans.reload().await {
            Ok(changed) => info!(changed = changed.len(), "loaded the plans again"),
            Err(problem) => warn!("the plans were not loaded again: {problem}"),
        }
    }
    std::future::pending::<()>().await;
}
