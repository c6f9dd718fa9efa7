//! The models of a dataset: connected, limited, counted.

use std::collections::HashMap;
use std::sync::Arc;

use anabranch_engine::limit::{Allowance, Bounds, Concurrency, LimitKey};
use anabranch_model::{ChatParams, Demo, Generation, HttpClient, Model, ModelConfig, connect};

use crate::columns::{ModelCall, PaidModel, TEXTS_PER_REQUEST};
use crate::config::{Column, ColumnKind, Config};
use crate::dataset::Dataset;
use crate::dry::ModelFacts;
use crate::error::Error;

/// The models behind the aliases of a configuration.
pub enum ModelSource {
    /// Every alias is the offline demo model.
    Demo(Demo),
    /// Each alias is a model on its provider's server, as configured.
    Servers(HttpClient),
    /// The same, for dry runs: no model is asked, so no key is needed.
    Unasked(HttpClient),
    /// Aliases are looked up here.
    Given(FindModel),
}

/// Finds the model behind an alias.
pub type FindModel = Box<dyn Fn(&str) -> Option<Arc<dyn Model>> + Send + Sync>;

/// Calls in flight to a model whose configuration does not say.
const UNCONFIGURED_CALLS: u32 = 32;
/// The first value of a limit that nothing was learned about yet. It doubles while the server keeps up.
const FIRST_CALLS: u32 = 32;

/// The connected models of a dataset.
pub(crate) struct Models {
    pub(crate) by_alias: HashMap<String, ModelCall>,
    /// The limit of all tasks in flight, which those of the models are part of.
    pub(crate) tasks: LimitKey,
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
        let most = u32::try_from(config.run.max_in_flight_tasks).unwrap_or(u32::MAX).max(1);
        let tasks = dataset.limits.add(TASKS_LIMIT, Allowance::fixed(most));
        let tasks = tasks.map_err(|error| Error::Setup(error.to_string()))?;
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
                    let limit = add_limit(dataset, &identity, calls, tasks)?;
                    limits.insert(identity, limit);
                    limit
                }
            };
            let (journal, clock) = (Arc::clone(&dataset.journal), Arc::clone(dataset.engine.clock()));
            let price = config.prices.of(alias, &model.identity().provider, &model.identity().model).copied();
            let meter = (dataset.meter.clone(), price);
            let model = PaidModel::new(alias, model, journal, (dataset.limits.clone(), limit), meter, clock);
            by_alias.insert(alias.to_owned(), ModelCall { model, params, limit, parallel });
        }
        Ok(Models { by_alias, tasks })
    }

    /// A digest of everything besides the requests that decides about the replies of the models.
    pub(crate) fn digest(&self, config: &Config) -> String {
        let mut aliases: Vec<(&String, &ModelCall)> = self.by_alias.iter().collect();
        aliases.sort_by_key(|(alias, _)| *alias);
        let mut hasher = blake3::Hasher::new();
        for (alias, call) in aliases {
            let identity = call.model.identity();
            let found = config.models.iter().find(|model| model.alias == *alias);
            let params = found.map(|ModelConfig { params, .. }| (&params.kind, &params.extra_body));
            hasher.update(format!("{alias:?} {identity:?} {params:?}\n").as_bytes());
        }
        hasher.finalize().to_hex()[..16].to_owned()
    }

    /// The models with their limits, by alias.
    pub(crate) fn facts(&self) -> Vec<(ModelFacts, LimitKey)> {
        let fact = |(alias, call): (&String, &ModelCall)| {
            let identity = call.model.identity();
            let facts = ModelFacts {
                alias: alias.clone(),
                provider: identity.provider.to_string(),
                model: identity.model.to_string(),
                parallel: call.parallel,
                limit: 0,
            };
            (facts, call.limit)
        };
        let mut facts: Vec<(ModelFacts, LimitKey)> = self.by_alias.iter().map(fact).collect();
        facts.sort_by(|(one, _), (other, _)| one.alias.cmp(&other.alias));
        facts
    }

    pub(crate) fn get(&self, alias: &str) -> Result<&ModelCall, Error> {
        self.by_alias.get(alias).ok_or_else(|| no_model(alias))
    }
}

/// The name of the limit of all tasks in flight.
pub(crate) const TASKS_LIMIT: &str = "tasks in flight";

fn add_limit(
    dataset: &Dataset,
    identity: &(String, String, bool),
    calls: u32,
    tasks: LimitKey,
) -> Result<LimitKey, Error> {
    let (provider, model, embeds) = identity;
    let name = format!("{provider}/{model}{}", if *embeds { " embeddings" } else { "" });
    let bounds = Bounds { start: calls.min(FIRST_CALLS), max: calls, ..Bounds::default() };
    let concurrency = Concurrency::Adaptive(bounds);
    let allowance = Allowance { concurrency, parent: Some(tasks), ..Allowance::default() };
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
        ModelSource::Servers(client) | ModelSource::Unasked(client) => {
            let model = found.ok_or_else(|| no_model(alias))?;
            let provider = config.providers.iter().find(|provider| provider.name == model.provider);
            let provider = provider.ok_or_else(|| {
                let (name, alias) = (&model.provider, &model.alias);
                let ways = "declare it in `providers`, here or in a models file (--models FILE), or use the offline demo model (--demo)";
                Error::Setup(format!("model `{alias}` names the provider `{name}`, which is not configured; {ways}"))
            })?;
            let key = |name: &str| match (std::env::var(name), source) {
                (Ok(key), _) => Some(key),
                (Err(_), ModelSource::Unasked(_)) => Some("not needed".to_owned()),
                (Err(_), _) => None,
            };
            connect(provider, model, client.clone(), key)
                .map_err(|error| Error::Setup(format!("model `{alias}`: {error}")))?
        }
    };
    Ok((model, params))
}

fn no_model(alias: &str) -> Error {
    let ways = "give a file with `model_configs` and `providers` (--models FILE), or try the offline demo model (--demo)";
    Error::Setup(format!("no model is configured for the alias `{alias}`; {ways}"))
}
