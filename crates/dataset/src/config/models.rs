//! Models and the providers that have them.

use std::time::Duration;

use anabranch_document::{Fields, Node, Notes, Tree};
use anabranch_model::{
    ApiKey, ChatParams, EmbeddingParams, EncodingFormat, Generation, ModelConfig, Number, Params, Provider,
    ProviderKind,
};
use anabranch_text::quote;
use anabranch_value::Map;

use super::Environment;
use super::derived::{url, whole};
use super::draft::{Draft, DraftModel, DraftProvider};
use super::value;

/// The longest time for one call if none is configured, and the calls in flight at once.
const TIMEOUT: Duration = Duration::from_secs(60);
const MAX_PARALLEL_REQUESTS: u32 = 4;

/// Reads `model_configs`.
pub(super) fn models(node: &Node, draft: &mut Draft, notes: &mut Notes<'_>) {
    for item in notes.as_list(node, "model_configs").unwrap_or_default() {
        if let Some(model) = model(item, notes) {
            if draft.models.iter().any(|other| other.config.alias == model.config.alias) {
                let what = format!("alias {} is there already", quote(&model.config.alias));
                notes.note(&model.at, what, "give one of them another alias");
            }
            draft.models.push(model);
        }
    }
}

fn model(node: &Node, notes: &mut Notes<'_>) -> Option<DraftModel> {
    let mut fields = notes.fields(node, "a model")?;
    let alias = fields.need_text("alias", notes).map(str::to_owned);
    if let Some(alias) = &alias {
        fields.rename(format!("model {}", quote(alias)));
    }
    let model = fields.need_text("model", notes).map(str::to_owned);
    let provider_node = fields.get("provider");
    let provider = provider_node.and_then(|node| notes.as_text(node, "provider")).map(str::to_owned);
    let skip_health_check = fields.bool("skip_health_check", notes).unwrap_or(false);
    let found = fields.get("inference_parameters");
    let found = found.and_then(|node| notes.fields(node, "`inference_parameters`"));
    let (params, has_kind) = found.map_or_else(|| Some(default_params()), |fields| params(fields, notes))?;
    let at = provider_node.map_or(fields.at().clone(), |node| node.at.clone());
    fields.finish(notes);
    let names_provider = provider.is_some();
    let provider = provider.unwrap_or_default();
    let config = ModelConfig { alias: alias?, model: model?, provider, params, skip_health_check };
    Some(DraftModel { config, at, names_provider, has_kind })
}

fn default_params() -> (Params, bool) {
    let kind = Generation::Chat(ChatParams::default());
    let params = Params {
        kind,
        max_parallel_requests: MAX_PARALLEL_REQUESTS,
        timeout: TIMEOUT,
        extra_body: Map::new(),
    };
    (params, false)
}

/// The parameters, and whether they determine the kind of generation.
fn params(mut fields: Fields<'_>, notes: &mut Notes<'_>) -> Option<(Params, bool)> {
    #[derive(Clone, Copy, PartialEq)]
    enum Kind {
        Chat,
        Embedding,
        Image,
    }
    let words = [("chat-completion", Kind::Chat), ("embedding", Kind::Embedding), ("image", Kind::Image)];
    let type_node = fields.get("generation_type");
    let written = fields.choice("generation_type", &words, notes);
    let has = |fields: &mut Fields<'_>, names: [&'static str; 3]| {
        names.iter().any(|name| fields.get(name).is_some())
    };
    let mut probe = Fields::new(fields.table(), fields.at(), fields.of());
    let has_embedding = has(&mut probe, ["encoding_format", "dimensions", "dimensions"]);
    let has_chat = has(&mut probe, ["temperature", "top_p", "max_tokens"]);
    let kind = written.unwrap_or(if has_embedding && !has_chat { Kind::Embedding } else { Kind::Chat });
    let max_parallel_requests = whole(&mut fields, "max_parallel_requests", 1, 100_000, notes);
    let timeout = timeout(&mut fields, notes);
    let extra_body = body(&mut fields, notes);
    let generation = match kind {
        Kind::Chat => Generation::Chat(chat(&mut fields, notes)),
        Kind::Embedding => Generation::Embedding(embedding(&mut fields, notes)),
        Kind::Image => {
            let at = type_node.map_or(fields.at().clone(), |node| node.at.clone());
            notes.note(
                &at,
                "models of type `image` are not taken yet: cells hold no images",
                "take the model away",
            );
            return None;
        }
    };
    fields.finish(notes);
    let params = Params {
        kind: generation,
        max_parallel_requests: max_parallel_requests.map_or(MAX_PARALLEL_REQUESTS, |found| found as u32),
        timeout,
        extra_body,
    };
    Some((params, written.is_some() || has_embedding || has_chat))
}

fn timeout(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Duration {
    let Some(node) = fields.get("timeout") else { return TIMEOUT };
    match notes.as_float(node, "timeout") {
        Some(seconds) if seconds > 0.0 && seconds <= 86_400.0 => Duration::from_secs_f64(seconds),
        Some(seconds) => {
            let what = format!("`timeout` is in seconds, more than 0 and at most 86400, this is {seconds}");
            notes.hint(&node.at, what, None);
            TIMEOUT
        }
        None => TIMEOUT,
    }
}

fn body(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Map {
    let Some(node) = fields.get("extra_body") else { return Map::new() };
    let table = notes.as_table(node, "extra_body", "values by name");
    table.map(|table| value::map(table, notes)).unwrap_or_default()
}

fn chat(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> ChatParams {
    ChatParams {
        temperature: fields.get("temperature").and_then(|node| number(node, "temperature", 2.0, notes)),
        top_p: fields.get("top_p").and_then(|node| number(node, "top_p", 1.0, notes)),
        max_tokens: whole(fields, "max_tokens", 1, i64::from(u32::MAX), notes).map(|found| found as u32),
    }
}

fn embedding(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> EmbeddingParams {
    let words = [("float", EncodingFormat::Float), ("base64", EncodingFormat::Base64)];
    EmbeddingParams {
        encoding_format: fields.choice("encoding_format", &words, notes).unwrap_or_default(),
        dimensions: whole(fields, "dimensions", 1, 1_000_000, notes).map(|found| found as u32),
    }
}

/// A number between 0 and `most`, or a distribution of such numbers.
fn number(node: &Node, name: &str, most: f64, notes: &mut Notes<'_>) -> Option<Number> {
    let fits = |node: &Node, notes: &mut Notes<'_>| {
        let found = notes.as_float(node, name)?;
        if !(0.0..=most).contains(&found) {
            notes.hint(&node.at, format!("`{name}` is between 0 and {most}, this is {found}"), None);
            return None;
        }
        Some(found)
    };
    if !matches!(node.value, Tree::Table(_)) {
        return fits(node, notes).map(Number::Fixed);
    }
    let mut fields = notes.fields(node, &format!("a distribution of `{name}`"))?;
    let is_uniform = fields.choice("distribution_type", &[("uniform", true), ("manual", false)], notes);
    let params = fields.need("params", notes);
    fields.finish(notes);
    let mut fields = notes.fields(params?, &format!("a distribution of `{name}`"))?;
    if is_uniform.unwrap_or_else(|| fields.get("values").is_none()) {
        let low = fields.need("low", notes).and_then(|node| fits(node, notes));
        let high = fields.need("high", notes).and_then(|node| fits(node, notes));
        let at = fields.at().clone();
        fields.finish(notes);
        let (low, high) = (low?, high?);
        if low >= high {
            notes.hint(&at, format!("`low` is less than `high`, these are {low} and {high}"), None);
        }
        return Some(Number::Uniform { low, high });
    }
    let items =
        fields.need("values", notes).and_then(|node| notes.as_list(node, "values")).unwrap_or_default();
    let values: Vec<f64> = items.iter().filter_map(|item| fits(item, notes)).collect();
    let weights_node = fields.get("weights");
    let weights = weights_node.and_then(|node| notes.as_list(node, "weights"));
    let weights: Option<Vec<f64>> =
        weights.map(|items| items.iter().filter_map(|item| notes.as_float(item, "a weight")).collect());
    let at = weights_node.map_or(fields.at().clone(), |node| node.at.clone());
    fields.finish(notes);
    if items.is_empty() {
        notes.hint(&at, "the distribution has no value", None);
    }
    if let Some(weights) = &weights
        && (weights.len() != items.len()
            || weights.iter().any(|weight| *weight < 0.0)
            || weights.iter().sum::<f64>() <= 0.0)
    {
        notes.hint(&at, "there is one weight per value, none is negative, and one is more than 0", None);
    }
    Some(Number::Choice { values, weights })
}

/// Reads `providers`.
pub(super) fn providers(
    node: &Node,
    draft: &mut Draft,
    environment: Option<&Environment<'_>>,
    notes: &mut Notes<'_>,
) {
    for item in notes.as_list(node, "providers").unwrap_or_default() {
        let Some(mut fields) = notes.fields(item, "a provider") else { continue };
        let at = fields.get("name").map_or(fields.at().clone(), |node| node.at.clone());
        if let Some(found) = provider(&mut fields, environment, notes) {
            if draft.providers.iter().any(|other| other.provider.name == found.provider.name) {
                notes.hint(&at, format!("provider {} is there already", quote(&found.provider.name)), None);
            }
            draft.providers.push(found);
        }
        fields.finish(notes);
    }
}

fn provider(
    fields: &mut Fields<'_>,
    environment: Option<&Environment<'_>>,
    notes: &mut Notes<'_>,
) -> Option<DraftProvider> {
    let name = fields.need_text("name", notes).map(str::to_owned);
    if let Some(name) = &name {
        fields.rename(format!("provider {}", quote(name)));
    }
    let endpoint = fields.need("endpoint", notes).and_then(|node| url(node, "endpoint", notes));
    let words = [("openai", ProviderKind::OpenAi), ("anthropic", ProviderKind::Anthropic)];
    let kind = fields.choice("provider_type", &words, notes).unwrap_or(ProviderKind::OpenAi);
    let key_node = fields.get("api_key");
    let written = key_node.and_then(|node| notes.as_text(node, "api_key"));
    let mut secrets = Vec::new();
    let extra_body = body(fields, notes);
    let mut extra_headers = Vec::new();
    if let Some(node) = fields.get("extra_headers") {
        for (key, node) in notes.as_table(node, "extra_headers", "text by name").into_iter().flatten() {
            if let Some(text) = notes.as_text(node, &key.name) {
                extra_headers.push((key.name.clone(), text.to_owned()));
                secrets.push(node.at.clone());
            }
        }
    }
    let (api_key, missing) = written.map_or((None, None), |written| key(written, environment));
    let is_literal = api_key.as_ref().is_some_and(|key| Some(key.expose()) == written);
    secrets.extend(key_node.filter(|_| is_literal).map(|node| node.at.clone()));
    let provider = Provider { name: name?, endpoint: endpoint?, kind, api_key, extra_body, extra_headers };
    Some(DraftProvider { provider, missing, secrets })
}

/// A key: the value of the environment variable of this name, or else the text itself. A text that looks like a
/// variable that is not set is not used as a key.
fn key(written: &str, environment: Option<&Environment<'_>>) -> (Option<ApiKey>, Option<String>) {
    let is_name = written.starts_with(|first: char| first.is_ascii_uppercase())
        && written.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
    match environment.and_then(|environment| environment(written)) {
        Some(found) => (Some(ApiKey::new(found)), None),
        None if is_name => (None, Some(written.to_owned())),
        None if written.is_empty() => (None, None),
        None => (Some(ApiKey::new(written)), None),
    }
}

/// A provider that needs no declaration.
pub(super) fn built_in(name: &str, environment: Option<&Environment<'_>>) -> Option<DraftProvider> {
    let (endpoint, variable) = match name {
        "nvidia" => ("https://integrate.api.nvidia.com/v1", "NVIDIA_API_KEY"),
        "openai" => ("https://api.openai.com/v1", "OPENAI_API_KEY"),
        "openrouter" => ("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        _ => return None,
    };
    let (api_key, missing) = key(variable, environment);
    let provider = Provider {
        name: name.to_owned(),
        endpoint: endpoint.to_owned(),
        kind: ProviderKind::OpenAi,
        api_key,
        extra_body: Map::new(),
        extra_headers: Vec::new(),
    };
    Some(DraftProvider { provider, missing, secrets: Vec::new() })
}
