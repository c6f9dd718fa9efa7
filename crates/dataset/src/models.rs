//! The models of a dataset: connected, limited, counted.

use std::collections::HashMap;
use std::sync::Arc;

use anabranch_engine::limit::{Allowance, Bounds, Concurrency, LimitKey};
use anabranch_model::{ChatParams, Demo, Generation, HttpClient, Model, connect};

use crate::columns::{Counted, ModelCall, TEXTS_PER_REQUEST};
use crate::config::{Column, ColumnKind, Config};
use crate::dataset::Dataset;
use crate::error::Error;

/// The models behind the aliases of a configuration.
pub enum ModelSource {
    /// Every alias is the offline demo model.
    Demo(Demo),
    /// Each alias is a model on its provider's server, as configured.
    Servers(HttpClient),
    /// Aliases are looked up here.
    Given(FindModel),
}

/// Finds the model behind an alias.
pub type FindModel = Box<dyn Fn(&str) -> Option<Arc<dyn Model>> + Send + Sync>;

/// Calls in flight to a model whose configuration does not say.
const UNCONFIGURED_CALLS: u32 = 32;

/// The connected models of a dataset.
pub(crate) struct Models {
    pub(crate) by_alias: HashMap<String, ModelCall>,
}

impl Models {
    pub(crate) fn connect(config: &Config, source: &ModelSource, dataset: &Dataset) -> Result<Models, Error> {
        if let (ModelSource::Servers(_), Some(missing)) = (source, config.missing_keys.first()) {
            let (provider, variable) = (&missing.provider, &missing.variable);
            let what = format!(
                "provider `{provider}` takes its key from the environment variable {variable}, which is not set"
            );
            return Err(Error::Setup(format!("{what}; set it, or try the offline demo model (--demo)")));
        }
        let mut by_alias: HashMap<String, ModelCall> = HashMap::new();
        let mut limits: HashMap<(String, String, bool), LimitKey> = HashMap::new();
        for alias in config.columns.iter().flat_map(Column::model_aliases) {
            if by_alias.contains_key(alias) {
                continue;
            }
            let found = config.models.iter().find(|model| model.alias == alias);
            let (model, params) = connect_one(config, alias, source)?;
            let parallel = found.map_or(UNCONFIGURED_CALLS, |model| model.params.max_parallel_requests);
            let embeds = found.is_some_and(|model| matches!(model.params.kind, Generation::Embedding(_)))
                || config.columns.iter().any(|column| {
                    matches!(&column.kind, ColumnKind::Embedding { model_alias, .. } if model_alias == alias)
                });
            let identity =
                (model.identity().provider.to_string(), model.identity().model.to_string(), embeds);
            let limit = match limits.get(&identity) {
                Some(limit) => *limit,
                None => {
                    // Cells of embeddings share requests.
                    let calls =
                        if embeds { parallel.saturating_mul(TEXTS_PER_REQUEST as u32) } else { parallel };
                    let limit = add_limit(dataset, &identity, calls)?;
                    limits.insert(identity, limit);
                    limit
                }
            };
            let model = Arc::new(Counted::new(model));
            by_alias.insert(alias.to_owned(), ModelCall { model, params, limit, parallel });
        }
        Ok(Models { by_alias })
    }

    pub(crate) fn get(&self, alias: &str) -> Result<&ModelCall, Error> {
        self.by_alias.get(alias).ok_or_else(|| no_model(alias))
    }
}

fn add_limit(dataset: &Dataset, identity: &(String, String, bool), calls: u32) -> Result<LimitKey, Error> {
    let (provider, model, embeds) = identity;
    let name = format!("{provider}/{model}{}", if *embeds { " embeddings" } else { "" });
    let bounds = Bounds { start: calls, max: calls, ..Bounds::default() };
    let allowance = Allowance { concurrency: Concurrency::Adaptive(bounds), ..Allowance::default() };
    dataset.limits.add(&name, allowance).map_err(|error| Error::Setup(error.to_string()))
}

fn connect_one(
    config: &Config,
    alias: &str,
    source: &ModelSource,
) -> Result<(Arc<dyn Model>, ChatParams), Error> {
    let found = config.models.iter().find(|model| model.alias == alias);
    let params = found.map_or_else(ChatParams::default, |model| match &model.params.kind {
        Generation::Chat(params) => params.clone(),
        Generation::Embedding(_) => ChatParams::default(),
    });
    let model: Arc<dyn Model> = match source {
        ModelSource::Demo(demo) => Arc::new(demo.clone()),
        ModelSource::Given(find) => find(alias).ok_or_else(|| no_model(alias))?,
        ModelSource::Servers(client) => {
            let model = found.ok_or_else(|| no_model(alias))?;
            let provider = config.providers.iter().find(|provider| provider.name == model.provider);
            let provider = provider.ok_or_else(|| {
                let (name, alias) = (&model.provider, &model.alias);
                let ways = "declare it in `providers`, here or in a models file (--models FILE), or use the offline demo model (--demo)";
                Error::Setup(format!("model `{alias}` names the provider `{name}`, which is not configured; {ways}"))
            })?;
            connect(provider, model, client.clone(), |name| std::env::var(name).ok())
                .map_err(|error| Error::Setup(format!("model `{alias}`: {error}")))?
        }
    };
    Ok((model, params))
}

fn no_model(alias: &str) -> Error {
    let ways = "give a file with `model_configs` and `providers` (--models FILE), or try the offline demo model (--demo)";
    Error::Setup(format!("no model is configured for the alias `{alias}`; {ways}"))
}
