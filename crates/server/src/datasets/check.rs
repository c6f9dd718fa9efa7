//! Checks whether a submission may be built here: its size, its files, its commands and its servers.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anabranch_dataset::config::{ColumnKind, Config, Problems, Setting, Validator};
use anabranch_dataset::{LoadedConfig, Sources};
use anabranch_text::{count, size};
use tonic::Code;

use super::disk::{self, NewFolder};
use super::settings::DatasetSettings;
use super::spec::{FileText, Spec, Submission};
use crate::failure::Failure;
use crate::runs::RunId;

/// Checks a submission and makes its job durable. Blocks.
pub(super) fn accept(
    settings: &DatasetSettings,
    submission: Submission,
    id: RunId,
) -> Result<(PathBuf, Spec), Failure> {
    check_size(settings, &submission)?;
    let disk = |error: std::io::Error| {
        Failure::new(Code::Unavailable, format!("the dataset cannot be kept: {error}"))
    };
    let folder = NewFolder::create(&settings.folder, id).map_err(disk)?;
    let file = |stem: &str, text: &FileText| {
        let name = format!("{stem}.{}", text.ending);
        folder.write(&name, &text.text).map(|_| name).map_err(disk)
    };
    let config = file("config", &submission.config)?;
    let models = submission.models.as_ref().map(|models| file("models", models)).transpose()?;
    let mut spec = Spec {
        id,
        name: submission.name.unwrap_or_else(|| "dataset".to_owned()),
        rows: 0,
        seed: submission.seed,
        demo: submission.demo,
        budget: submission.budget,
        config,
        models,
        digest: submission.digest,
        idempotency_key: submission.idempotency_key,
        client: submission.client,
        trace: submission.trace,
        submitted_ms: now_ms(),
        kinds: Vec::new(),
    };
    if !settings.allow_custom {
        check_own_parts(folder.path(), &spec, &submission.config.text)?;
    }
    let loaded = load(settings, folder.path(), &spec).map_err(|message| bad(&message))?;
    if !settings.allow_custom {
        check_columns(&loaded.config)?;
    }
    check_models(settings, &loaded, spec.demo)?;
    let written = loaded.config.stages.first().and_then(|stage| stage.rows);
    spec.rows = submission
        .rows
        .or(written)
        .ok_or_else(|| bad("say how many rows: `rows` beside `config`, or `rows:` in the configuration"))?;
    if spec.rows == 0 || spec.rows > settings.rows_most {
        return Err(bad(&format!(
            "`rows` is {}; one dataset may have 1 to {}",
            spec.rows, settings.rows_most
        )));
    }
    check_groups(settings, &loaded.config, spec.rows)?;
    spec.kinds = loaded
        .config
        .columns
        .iter()
        .map(|column| (column.name.clone(), kind(&column.kind).to_owned()))
        .collect();
    let path = folder.accept(&spec).map_err(disk)?;
    Ok((path, spec))
}

fn bad(message: &str) -> Failure {
    Failure::new(Code::InvalidArgument, message)
}

fn check_size(settings: &DatasetSettings, submission: &Submission) -> Result<(), Failure> {
    let most = settings.config_most;
    let longest =
        submission.models.iter().map(|models| models.text.len()).chain([submission.config.text.len()]);
    if longest.max().is_some_and(|length| length > most) {
        let message = format!("the configuration has more than {}", size::format(most as u64));
        return Err(Failure::new(Code::OutOfRange, message));
    }
    let used = disk::used(&settings.folder);
    if used > settings.disk_most {
        let message = format!(
            "the files of all datasets take {}, the most that they may; remove some with DELETE /v1/datasets/ID",
            size::format(used)
        );
        return Err(Failure::new(Code::ResourceExhausted, message));
    }
    Ok(())
}

/// Refuses a client's own models and providers before anything is contacted or opened.
fn check_own_parts(folder: &Path, spec: &Spec, text: &str) -> Result<(), Failure> {
    if spec.models.is_some() {
        return Err(not_allowed("`models`"));
    }
    let parsed = Config::parse(&spec.config, text, &mut Setting::default());
    let (config, _) = parsed.map_err(|problems| bad(&told(&problems, folder)))?;
    if !config.models.is_empty() {
        return Err(not_allowed("`model_configs`"));
    }
    if !config.providers.is_empty() {
        return Err(not_allowed("`providers`"));
    }
    check_columns(&config)
}

/// Refuses columns that run commands or contact servers.
fn check_columns(config: &Config) -> Result<(), Failure> {
    for column in &config.columns {
        match &column.kind {
            ColumnKind::Custom(_) => {
                return Err(not_allowed(&format!("the custom column `{}`", column.name)));
            }
            ColumnKind::Validation(validation) => {
                if let Validator::Remote(_) = validation.validator {
                    return Err(not_allowed(&format!("the remote validator of column `{}`", column.name)));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn not_allowed(what: &str) -> Failure {
    let message = format!(
        "{what} is not allowed here: it could run commands or contact servers; the operator's models file has the \
         models, and `allow_custom` of the server allows the rest"
    );
    Failure::new(Code::FailedPrecondition, message)
}

/// Refuses row groups that would take too much memory although they have no values yet.
fn check_groups(settings: &DatasetSettings, config: &Config, rows: u64) -> Result<(), Failure> {
    let rows = config.stages.iter().filter_map(|stage| stage.rows).chain([rows]).max().unwrap_or(rows);
    let size = config.run.buffer_size.clamp(1, rows.max(1));
    let groups = (config.run.max_concurrent_row_groups as u64).clamp(1, rows.div_ceil(size).max(1));
    let cells = size.saturating_mul(groups).saturating_mul(config.columns.len() as u64);
    if cells <= settings.cells_most {
        return Ok(());
    }
    Err(bad(&format!(
        "the row groups in progress would have {cells} cells, and may have {}; lower `buffer_size` or \
         `max_concurrent_row_groups`",
        settings.cells_most
    )))
}

fn check_models(settings: &DatasetSettings, loaded: &LoadedConfig, demo: bool) -> Result<(), Failure> {
    let missing = loaded.config.aliases_without_model();
    if demo || missing.is_empty() {
        return Ok(());
    }
    let aliases: Vec<String> = missing.iter().map(|alias| format!("`{alias}`")).collect();
    let known = match settings.models {
        Some(_) => "the models file of this server has none of this name",
        None => "this server has no models file",
    };
    Err(bad(&format!(
        "no model is configured for {}: {known}; `\"demo\": true` uses the offline demo model",
        aliases.join(", ")
    )))
}

/// Reads the configuration of a job. Blocks. Error messages do not name the server's folders.
pub(super) fn load(settings: &DatasetSettings, folder: &Path, spec: &Spec) -> Result<LoadedConfig, String> {
    let sources = Sources {
        config: folder.join(&spec.config),
        models: spec.models.as_ref().map(|models| folder.join(models)).or_else(|| settings.models.clone()),
        run: None,
        seed: spec.seed,
        seed_folders: (!settings.allow_custom || !settings.files.is_empty()).then(|| settings.files.clone()),
    };
    let mut loaded = LoadedConfig::read(&sources).map_err(|problems| told(&problems, folder))?;
    loaded.config.name.clone_from(&spec.name);
    Ok(loaded)
}

/// The most problems in one response.
const PROBLEMS_MOST: usize = 20;

fn told(problems: &Problems, folder: &Path) -> String {
    let shown = problems.errors.iter().take(PROBLEMS_MOST);
    let lines: Vec<String> = shown.map(ToString::to_string).collect();
    let text = format!(
        "the configuration has {}:\n{}",
        count(problems.errors.len() as u64, "error"),
        lines.join("\n")
    );
    text.replace(&format!("{}/", folder.display()), "")
}

/// The name of a kind of column.
fn kind(kind: &ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Sampler(_) => "sampler",
        ColumnKind::Llm(_) => "llm",
        ColumnKind::Expression { .. } => "expression",
        ColumnKind::Validation(_) => "validation",
        ColumnKind::Embedding { .. } => "embedding",
        ColumnKind::Custom(_) => "custom",
    }
}

#[allow(clippy::disallowed_methods, reason = "the engine's clock has no time of day")]
fn now_ms() -> u64 {
    std::time::SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}
