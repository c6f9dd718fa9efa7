//! From `[plan.captures]` of a project to a sampling.

use anabranch_content::{Config, Store};
use anabranch_plan::Registries;
use anabranch_plan::project::CaptureSettings;
use anabranch_text::Problem;

use super::sample::Sampling;

impl Sampling {
    /// The sampling of a project. Opens the store.
    pub fn from_settings(settings: &CaptureSettings, registries: &Registries) -> Result<Sampling, Problem> {
        let wrong = |what: String| Problem::new("plan.captures", what);
        let store = Store::open(&settings.store, Config::default())
            .map_err(|error| wrong(format!("{}: {error}", settings.store.display())))?;
        let mut sampling = Sampling::new(store, &settings.set).map_err(|error| wrong(error.to_string()))?;
        sampling.one_in = settings.one_in.unwrap_or(sampling.one_in);
        sampling.per_second = settings.per_second.unwrap_or(sampling.per_second);
        sampling.most_bytes = settings.most_bytes.map_or(sampling.most_bytes, |bytes| bytes as usize);
        sampling.total_bytes = settings.total_bytes.unwrap_or(sampling.total_bytes);
        sampling.most_waiting = settings.most_waiting.unwrap_or(sampling.most_waiting);
        sampling.masking(&settings.masked_keys, &settings.masked_params, registries)
    }
}
