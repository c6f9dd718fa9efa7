//! From files to a checked configuration.

use std::path::Path;
use std::sync::Arc;

use anabranch_document::{Notes, Span};
use anabranch_model::{EmbeddingParams, Generation};
use anabranch_text::{Problem, Problems, quote};

use super::draft::{Draft, DraftModel, DraftProvider};
use super::resolve::{self, SeedNames};
use super::types::{ColumnKind, Config, MissingKey};
use super::{Environment, Prices, Setting, identity, models, prices, root, seed, stages, structure};

/// Reads and checks a configuration and the files that belong to it.
pub(super) fn config(
    file: &str,
    text: &str,
    setting: &mut Setting<'_>,
) -> Result<(Config, Vec<Problem>), Problems> {
    let environment = setting.environment;
    let mut notes = Notes::new(file, text);
    let (mut draft, mut shared) = (Draft::default(), Draft::default());
    let (name, text_of_run) = setting.run.unwrap_or_default();
    let mut run_notes = Notes::new(name, text_of_run);
    if setting.run.is_some() {
        root::run_file(&mut draft, &mut run_notes);
    }
    let (name, text_of_models) = setting.models.unwrap_or_default();
    let mut models_notes = Notes::new(name, text_of_models);
    if setting.models.is_some() {
        root::models_file(&mut shared, environment, &mut models_notes);
    }
    let is_read = root::read(&mut draft, environment, &mut notes).is_some();
    let source = without_secrets(text, &draft);
    let providers = providers(&mut draft, &mut shared, environment, [&mut notes, &mut models_notes]);
    let seed = seed_names(&draft, setting, &mut notes);
    if is_read {
        let names = resolve::names(&draft, &seed, &mut notes);
        let order = resolve::references(&draft, &names, &seed, &mut notes);
        stages::split(&mut draft, &order);
        stages::check_order(&draft, &names, &mut notes);
        structure::check(&mut draft, &names, &seed, &mut notes);
        generation(&draft, &mut shared, &mut models_notes);
        generation_of_own(&mut draft, &mut notes);
    }
    unread(&draft, &mut notes);
    unmatched_prices(&draft, &shared, [&mut notes, &mut models_notes]);
    let problems = merged([notes.problems(), models_notes.problems(), run_notes.problems()]);
    if !problems.is_fine() {
        return Err(problems);
    }
    let own: Vec<String> = draft.models.iter().map(|model| model.config.alias.clone()).collect();
    let added = shared.models.into_iter().filter(|model| !own.contains(&model.config.alias));
    let models: Vec<_> = draft.models.into_iter().chain(added).map(|model| model.config).collect();
    let seed_columns = match seed {
        SeedNames::Known(names) if draft.has_seed => Some(names),
        _ => None,
    };
    let mut columns: Vec<_> = draft.columns.into_iter().filter_map(|column| column.column).collect();
    identity::number_twins(columns.iter_mut());
    let mut config = Config {
        name: Path::new(file)
            .file_stem()
            .map_or("dataset".into(), |stem| stem.to_string_lossy().into_owned()),
        columns,
        stages: draft.stages.into_iter().map(|found| found.stage).collect(),
        models,
        prices: Prices::of_drafts(draft.prices, shared.prices),
        missing_keys: Vec::new(),
        providers: providers.iter().map(|found| found.provider.clone()).collect(),
        seed: draft.seed.map(|(seed, _)| seed),
        constraints: draft.constraints.into_iter().map(|found| found.constraint).collect(),
        processors: draft.processors.into_iter().map(|found| found.processor).collect(),
        run: draft.run,
        seed_columns,
        source,
        digest: draft.digest,
    };
    config.missing_keys = missing_keys(&config, &providers);
    Ok((config, problems.warnings))
}

/// The text of the file without secrets, which is stored in the output folder.
fn without_secrets(text: &str, draft: &Draft) -> Arc<str> {
    let mut places: Vec<&Span> = draft.providers.iter().flat_map(|provider| &provider.secrets).collect();
    places.sort_by_key(|at| at.start);
    let (mut kept, mut from) = (String::with_capacity(text.len()), 0);
    for at in places {
        // An alias of YAML refers to a secret elsewhere, so the whole text is left out.
        if text[at.start..].starts_with('*') {
            return "".into();
        }
        if at.start >= from && at.end <= text.len() {
            kept.push_str(&text[from..at.start]);
            kept.push_str("(secret)");
            from = at.end;
        }
    }
    kept.push_str(&text[from..]);
    kept.into()
}

fn merged(all: [Problems; 3]) -> Problems {
    let mut merged = Problems::default();
    for Problems { errors, warnings } in all {
        merged.errors.extend(errors);
        merged.warnings.extend(warnings);
    }
    merged
}

/// Reports columns that could not be read, if nothing else was reported. Usually each has its own error.
fn unread(draft: &Draft, notes: &mut Notes<'_>) {
    if notes.is_empty() {
        for column in draft.columns.iter().filter(|column| column.column.is_none()) {
            notes.hint(&column.at, format!("column {} cannot be read", quote(&column.name)), None);
        }
    }
}

/// The columns of the seed.
fn seed_names(draft: &Draft, setting: &mut Setting<'_>, notes: &mut Notes<'_>) -> SeedNames {
    let Some((seed, at)) = &draft.seed else {
        return if draft.has_seed { SeedNames::Open } else { SeedNames::Known(Vec::new()) };
    };
    let Some(open) = &mut setting.seed_columns else {
        return seed::fixed_columns(&seed.source).map_or(SeedNames::Open, SeedNames::Known);
    };
    match open(seed) {
        Ok(names) => SeedNames::Known(names),
        Err(message) => {
            notes.note(
                at,
                format!("the seed cannot be read: {message}"),
                "paths are relative to the current folder",
            );
            SeedNames::Open
        }
    }
}

/// All providers, and each model with the name of one.
fn providers(
    draft: &mut Draft,
    shared: &mut Draft,
    environment: Option<&Environment<'_>>,
    [notes, models_notes]: [&mut Notes<'_>; 2],
) -> Vec<DraftProvider> {
    let mut all = std::mem::take(&mut draft.providers);
    for provider in std::mem::take(&mut shared.providers) {
        if !all.iter().any(|own| own.provider.name == provider.provider.name) {
            all.push(provider);
        }
    }
    let first = all.first().map(|found| found.provider.name.clone());
    let usual = shared.default_provider.clone().or(first);
    for model in &mut draft.models {
        provider_of(model, usual.as_deref(), &mut all, environment, notes);
    }
    for model in &mut shared.models {
        provider_of(model, usual.as_deref(), &mut all, environment, models_notes);
    }
    all
}

fn provider_of(
    model: &mut DraftModel,
    usual: Option<&str>,
    all: &mut Vec<DraftProvider>,
    environment: Option<&Environment<'_>>,
    notes: &mut Notes<'_>,
) {
    let config = &mut model.config;
    if !model.names_provider {
        match usual {
            Some(usual) => usual.clone_into(&mut config.provider),
            None => {
                let what = format!("model {} needs `provider`", quote(&config.alias));
                notes.note(
                    &model.at,
                    what,
                    "nvidia, openai and openrouter are there; others go into `providers`",
                );
                return;
            }
        }
    }
    if all.iter().any(|found| found.provider.name == config.provider) {
        return;
    }
    match models::built_in(&config.provider, environment) {
        Some(provider) => all.push(provider),
        None => {
            let known = all.iter().map(|found| found.provider.name.as_str());
            let near = notes.did_you_mean(&config.provider, known.chain(["nvidia", "openai", "openrouter"]));
            let help =
                "declare it in `providers` with `name` and `endpoint`, here or in a models file (--models)";
            // DataDesigner's files have their providers elsewhere, and the demo model needs none.
            let what = format!("there is no provider {}", quote(&config.provider));
            notes.warn(&model.at, what, near.unwrap_or_else(|| help.to_owned()));
        }
    }
}

/// Warns of prices that no model has.
fn unmatched_prices(draft: &Draft, shared: &Draft, [notes, models_notes]: [&mut Notes<'_>; 2]) {
    let models: Vec<_> = draft.models.iter().chain(&shared.models).map(|model| &model.config).collect();
    let columns = draft.columns.iter().filter_map(|column| column.column.as_ref());
    let aliases: Vec<String> = columns.flat_map(|column| column.model_aliases()).map(str::to_owned).collect();
    prices::unmatched(&draft.prices, &models, &aliases, notes);
    prices::unmatched(&shared.prices, &models, &aliases, models_notes);
}

/// Aliases that columns use for chat, and for embeddings.
fn uses(draft: &Draft) -> [Vec<String>; 2] {
    let mut uses = [Vec::new(), Vec::new()];
    for column in draft.columns.iter().filter_map(|column| column.column.as_ref()) {
        match &column.kind {
            ColumnKind::Llm(llm) => uses[0].push(llm.model_alias.clone()),
            ColumnKind::Embedding { model_alias, .. } => uses[1].push(model_alias.clone()),
            _ => {}
        }
    }
    uses
}

fn generation(draft: &Draft, shared: &mut Draft, notes: &mut Notes<'_>) {
    let uses = uses(draft);
    let own = |alias: &str| draft.models.iter().any(|model| model.config.alias == alias);
    for model in shared.models.iter_mut().filter(|model| !own(&model.config.alias)) {
        generation_of(model, &uses, notes);
    }
}

fn generation_of_own(draft: &mut Draft, notes: &mut Notes<'_>) {
    let uses = uses(draft);
    draft.models.iter_mut().for_each(|model| generation_of(model, &uses, notes));
}

/// A model without a kind gets the kind that columns use it for. A given kind must fit.
fn generation_of(model: &mut DraftModel, [chats, embeds]: &[Vec<String>; 2], notes: &mut Notes<'_>) {
    let alias = &model.config.alias;
    let (chats, embeds) = (chats.contains(alias), embeds.contains(alias));
    let is_embedding = matches!(model.config.params.kind, Generation::Embedding(_));
    if embeds && !chats && !model.has_kind {
        model.config.params.kind = Generation::Embedding(EmbeddingParams::default());
    } else if embeds && !is_embedding {
        let what = format!("model {} is used for embeddings and has parameters for chat", quote(alias));
        notes.note(&model.at, what, "give the embedding column a model of its own");
    } else if chats && is_embedding {
        let what = format!("model {} is used for chat and has parameters for embeddings", quote(alias));
        notes.note(&model.at, what, "give the embedding column a model of its own");
    }
}

fn missing_keys(config: &Config, providers: &[DraftProvider]) -> Vec<MissingKey> {
    let used: Vec<&str> = config.columns.iter().flat_map(|column| column.model_aliases()).collect();
    let is_used = |name: &str| {
        config.models.iter().any(|model| model.provider == name && used.contains(&model.alias.as_str()))
    };
    let missing = |found: &DraftProvider| {
        let variable = found.missing.clone().filter(|_| is_used(&found.provider.name))?;
        Some(MissingKey { provider: found.provider.name.clone(), variable })
    };
    providers.iter().filter_map(missing).collect()
}
