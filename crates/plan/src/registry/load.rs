//! Loading all registries of a folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anabranch_text::{Problem, Problems, offset};
use serde_json::{Map, Value, json};

use super::entries::{Endpoints, Keys, Limits, Params, Registries};
use super::tables::File;
use super::{capabilities, columns, endpoints, limits};
use crate::{json as strict, places, toml_text};

/// The files of a registry, but for the endpoints.
const FILES: [&str; 5] =
    ["keys.toml", "params.toml", "features.toml", "capabilities.toml", "validation.toml"];

/// A file that others make from the ops; the ops here speak for themselves.
const IGNORED: &str = "tasks.toml";

/// The default environment.
const DEFAULT_ENV: &str = "dev";

impl Registries {
    /// Reads the registries in a folder. `env` chooses the endpoints. The default is `dev`, or the only environment.
    /// Problems that are not errors are returned as warnings.
    pub fn load(dir: &Path, env: Option<&str>) -> Result<(Registries, Vec<Problem>), Problems> {
        let mut problems = Problems::default();
        let files = read_folder(dir, &mut problems)?;
        let texts = files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        match parse(texts, env, problems) {
            Ok((registries, warnings)) => {
                let warnings = Problems { errors: Vec::new(), warnings };
                Ok((registries, places::in_files(dir, &files, warnings).warnings))
            }
            Err(problems) => Err(places::in_files(dir, &files, problems)),
        }
    }

    /// Reads registries from texts, by the names that they would have in a folder (`keys.toml`, ...).
    ///
    /// ```
    /// let keys = "[[key]]\nkey_id = 1\nname = 'id'\ntype = 'int'\nnullable = false\nallow_write = false";
    /// let (registries, _) = anabranch_plan::Registries::parse([("keys.toml", keys)], None).unwrap();
    /// assert_eq!(registries.keys.iter().len(), 1);
    /// ```
    pub fn parse<'a>(
        files: impl IntoIterator<Item = (&'a str, &'a str)>,
        env: Option<&str>,
    ) -> Result<(Registries, Vec<Problem>), Problems> {
        parse(files, env, Problems::default())
    }

    /// The number of registered entries, and a digest of the endpoints that is the same in all environments.
    pub fn summary(&self) -> Value {
        let endpoints: Vec<Value> = self
            .endpoints
            .iter()
            .map(|endpoint| {
                let kind = endpoint.kind.to_string();
                json!({"endpoint_id": endpoint.id, "name": endpoint.name, "kind": kind})
            })
            .collect();
        json!({
            "env": self.env,
            "keys": self.keys.iter().len(),
            "params": self.params.iter().len(),
            "features": self.features.len(),
            "capabilities": self.capabilities.len(),
            "endpoints": endpoints.len(),
            "endpoint_registry_digest": endpoints::registry_digest(&endpoints),
        })
    }
}

fn read_folder(dir: &Path, problems: &mut Problems) -> Result<Vec<(String, String)>, Problem> {
    let fail = |error: std::io::Error| {
        Problem::new(dir.display().to_string(), format!("the registry folder cannot be read: {error}"))
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).map_err(fail)? {
        let Ok(name) = entry.map_err(fail)?.file_name().into_string() else { continue };
        if FILES.contains(&&*name) || env_of(&name).is_some() {
            let text = fs::read_to_string(dir.join(&name));
            match text {
                Ok(text) => files.push((name, text)),
                Err(error) => problems.error(Problem::new(name, format!("cannot be read: {error}"))),
            }
        } else if name.ends_with(".toml") && name != IGNORED {
            let mut problem = Problem::new(&name, "is not a registry file and is not read");
            problem.help = problems.did_you_mean(&name, FILES);
            problems.warn(problem);
        }
    }
    files.sort();
    Ok(files)
}

/// The environment of `endpoints.ENV.toml` or `.json`.
fn env_of(name: &str) -> Option<&str> {
    let rest = name.strip_prefix("endpoints.")?;
    let env = rest.strip_suffix(".toml").or_else(|| rest.strip_suffix(".json"))?;
    (!env.is_empty()).then_some(env)
}

fn parse<'a>(
    files: impl IntoIterator<Item = (&'a str, &'a str)>,
    env: Option<&str>,
    mut problems: Problems,
) -> Result<(Registries, Vec<Problem>), Problems> {
    let (mut plain, mut by_env, mut texts) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    for (name, text) in files {
        if name != IGNORED {
            texts.push((name.to_owned(), text.to_owned()));
        }
        let Some(map) = parse_file(name, text, &mut problems) else { continue };
        match env_of(name) {
            // If an environment has both formats, the one that people write counts.
            Some(env) if !name.ends_with(".json") || !by_env.contains_key(env) => {
                by_env.insert(env, (name, map));
            }
            Some(_) => {}
            None => {
                plain.insert(name, map);
            }
        }
    }
    let problems = &mut problems;
    let file = |name: &'static str| plain.get(name).map(|map| File { name, map });
    let keys = match file("keys.toml") {
        Some(file) => columns::keys(file, problems),
        None if problems.errors.iter().any(|problem| problem.place.starts_with("keys.toml")) => {
            Keys::default()
        }
        None => {
            let help = "a registry folder has at least this file, with the key `id`";
            problems.error(Problem::new("keys.toml", "is missing").help(help));
            Keys::default()
        }
    };
    let params = file("params.toml").map_or_else(Params::default, |file| columns::params(file, problems));
    let features = file("features.toml").map_or_else(Vec::new, |file| columns::features(file, problems));
    let capabilities =
        file("capabilities.toml").map_or_else(Vec::new, |file| capabilities::capabilities(file, problems));
    let limits = file("validation.toml").map_or_else(Limits::default, |file| limits::limits(file, problems));
    let (env, endpoints) = environment(&by_env, env, problems);
    let texts = texts.into();
    let registries = Registries { keys, params, features, capabilities, endpoints, limits, env, texts };
    let problems = std::mem::take(problems);
    if problems.is_fine() { Ok((registries, problems.warnings)) } else { Err(problems) }
}

fn parse_file(name: &str, text: &str, problems: &mut Problems) -> Option<Map<String, Value>> {
    let known = FILES.contains(&name) || env_of(name).is_some();
    if !known {
        if name != IGNORED {
            let mut problem = Problem::new(name, "is not the name of a registry file");
            problem.help = problems.did_you_mean(name, FILES);
            problems.error(problem);
        }
        return None;
    }
    if name.ends_with(".toml") {
        return toml_text::parse(name, text, problems);
    }
    match strict::parse(text.as_bytes()) {
        Ok(Value::Object(map)) => Some(map),
        Ok(_) => {
            problems.error(Problem::new(name, "must be an object"));
            None
        }
        Err(error) => {
            // The reader's columns are bytes.
            let at = offset(text, error.line, 1) + error.column.saturating_sub(1);
            problems.error(Problem::in_source(name, text, at..at, error.what));
            None
        }
    }
}

/// The endpoints of the chosen environment; all others are read too and must agree with it.
fn environment(
    by_env: &BTreeMap<&str, (&str, Map<String, Value>)>,
    asked: Option<&str>,
    problems: &mut Problems,
) -> (Option<String>, Endpoints) {
    let names: Vec<&str> = by_env.keys().copied().collect();
    let chosen = match (asked, names.as_slice()) {
        (Some(env), _) if by_env.contains_key(env) => env,
        (Some(env), names) => {
            let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let what = format!("is missing; there are endpoints of: {there}");
            problems.error(Problem::new(format!("endpoints.{env}.toml"), what));
            return (None, Endpoints::default());
        }
        (None, []) => return (None, Endpoints::default()),
        (None, names) if names.contains(&DEFAULT_ENV) => DEFAULT_ENV,
        (None, [only]) => only,
        (None, names) => {
            let what = format!("which environment? There are endpoints of: {}", names.join(", "));
            problems.error(Problem::new("endpoints", what).help("name one"));
            return (None, Endpoints::default());
        }
    };
    let mut read: BTreeMap<&str, Endpoints> = BTreeMap::new();
    for (env, (name, map)) in by_env {
        let file = File { name, map };
        let errors = problems.errors.len();
        let endpoints = if name.ends_with(".json") {
            endpoints::from_json(file, env, problems)
        } else {
            endpoints::from_toml(file, problems)
        };
        // The readable part of a broken file would seem to lack endpoints.
        if problems.errors.len() == errors {
            read.insert(env, endpoints);
        }
    }
    let endpoints = read.remove(chosen);
    if let Some(endpoints) = &endpoints {
        for (env, other) in &read {
            endpoints::compare((by_env[chosen].0, endpoints), (by_env[env].0, other), problems);
        }
    }
    (Some(chosen.to_owned()), endpoints.unwrap_or_default())
}
