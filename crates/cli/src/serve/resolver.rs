//! The source of a setting of `serve`: a flag wins over an environment variable, which wins over `[serve]` of the
//! project file, which wins over the default.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Duration;

use anabranch_plan::project::{EngineSettings, Project, ServeSettings};
use anabranch_text::{duration, size};
use clap::ArgMatches;
use clap::parser::ValueSource;

use crate::failure::Failure;

/// The source of each option: the command line or the environment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources(HashMap<&'static str, ValueSource>);

impl Sources {
    /// Records the sources of the options of a command line. An option has the name of its field.
    pub(crate) fn of(matches: &ArgMatches) -> Sources {
        let found = |name: &'static str| Some((name, matches.value_source(name)?));
        let names = ServeSettings::names().chain(["project"]);
        Sources(names.filter_map(found).filter(|(_, source)| *source != ValueSource::DefaultValue).collect())
    }

    /// Whether the option was given, as a flag or in the environment.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    fn of_option(&self, name: &str) -> &'static str {
        match self.0.get(name) {
            Some(ValueSource::EnvVariable) => "environment",
            _ => "flag",
        }
    }
}

/// A setting in the output.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) from: String,
}

/// Finds the value of each setting.
pub(super) struct Resolver<'a> {
    project: Option<&'a Project>,
    sources: &'a Sources,
    rows: Vec<Row>,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(project: Option<&'a Project>, sources: &'a Sources) -> Resolver<'a> {
        Resolver { project, sources, rows: Vec::new() }
    }

    /// The settings that were found, in order.
    pub(super) fn rows(self) -> Vec<Row> {
        self.rows
    }

    /// The values of the option, else of the file; empty for the default.
    fn find<T>(
        &mut self,
        name: &'static str,
        given: Vec<T>,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Vec<T>, Failure> {
        if !given.is_empty() {
            self.from(name, self.sources.of_option(name).to_owned());
            return Ok(given);
        }
        let written = self.project.and_then(|project| Some((project, project.serve.list(name)?)));
        let Some((project, texts)) = written else {
            self.from(name, "default".to_owned());
            return Ok(Vec::new());
        };
        let file = project.file.display();
        self.from(name, file.to_string());
        let read = |text: &String| {
            read(text).map_err(|problem| Failure::of(format!("{file}, serve, {name}: {text:?}: {problem}")))
        };
        texts.iter().map(read).collect()
    }

    /// Notes the project file itself.
    pub(super) fn project_file(&mut self) {
        let from = match (self.project, self.sources.has("project")) {
            (None, _) => "default",
            (Some(_), true) => self.sources.of_option("project"),
            (Some(_), false) => "found",
        };
        self.from("project", from.to_owned());
        let file = self.project.map(|project| project.file.display().to_string());
        self.show(&file.as_deref().unwrap_or("none"));
    }

    fn from(&mut self, name: &'static str, from: String) {
        self.rows.push(Row { name, value: String::new(), from });
    }

    /// Sets the shown value of the last setting.
    pub(super) fn show(&mut self, value: &dyn std::fmt::Display) {
        if let Some(row) = self.rows.last_mut() {
            row.value = value.to_string();
        }
    }

    /// A setting whose value the caller shows.
    pub(super) fn pick<T>(
        &mut self,
        name: &'static str,
        given: Option<T>,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Failure> {
        Ok(self.find(name, given.into_iter().collect(), read)?.pop())
    }

    /// The value that `[engine]` of the project file has for the last setting.
    pub(super) fn of_engine<T>(&mut self, read: impl Fn(&EngineSettings) -> Option<T>) -> Option<T> {
        let project = self.project?;
        let value = read(&project.engine)?;
        if let Some(row) = self.rows.last_mut() {
            row.from = project.file.display().to_string();
        }
        Some(value)
    }

    /// A setting with a default.
    pub(super) fn shown<T>(
        &mut self,
        name: &'static str,
        given: Option<T>,
        read: impl Fn(&str) -> Result<T, String>,
        default: T,
        show: impl Fn(&T) -> String,
    ) -> Result<T, Failure> {
        let value = self.pick(name, given, read)?.unwrap_or(default);
        self.show(&show(&value));
        Ok(value)
    }

    /// A setting that is unset by default.
    pub(super) fn optional<T>(
        &mut self,
        name: &'static str,
        given: Option<T>,
        read: impl Fn(&str) -> Result<T, String>,
        show: impl Fn(&T) -> String,
    ) -> Result<Option<T>, Failure> {
        let value = self.pick(name, given, read)?;
        self.show(&value.as_ref().map_or_else(|| "none".to_owned(), show));
        Ok(value)
    }

    /// A list, which is empty by default.
    pub(super) fn list<T: Clone>(
        &mut self,
        name: &'static str,
        given: &[T],
        read: impl Fn(&str) -> Result<T, String>,
        show: impl Fn(&T) -> String,
    ) -> Result<Vec<T>, Failure> {
        let values = self.find(name, given.to_vec(), read)?;
        let texts: Vec<String> = values.iter().map(show).collect();
        self.show(&if texts.is_empty() { "none".to_owned() } else { texts.join(", ") });
        Ok(values)
    }

    pub(super) fn size(
        &mut self,
        name: &'static str,
        given: Option<u64>,
        default: u64,
    ) -> Result<u64, Failure> {
        self.shown(name, given, size::parse, default, |bytes| size::format(*bytes))
    }

    pub(super) fn time(
        &mut self,
        name: &'static str,
        given: Option<Duration>,
        default: Duration,
    ) -> Result<Duration, Failure> {
        self.shown(name, given, duration::parse, default, |time| duration::format(*time))
    }

    pub(super) fn positive(
        &mut self,
        name: &'static str,
        given: Option<usize>,
        default: usize,
    ) -> Result<usize, Failure> {
        self.shown(name, given, positive, default, usize::to_string)
    }

    /// A switch that is off by default.
    pub(super) fn switch(&mut self, name: &'static str, given: Option<bool>) -> Result<bool, Failure> {
        let read = |text: &str| text.parse().map_err(|_| "expected true or false".to_owned());
        self.shown(name, given, read, false, bool::to_string)
    }

    pub(super) fn path(
        &mut self,
        name: &'static str,
        given: Option<&PathBuf>,
    ) -> Result<Option<PathBuf>, Failure> {
        self.optional(name, given.cloned(), path, |path| path.display().to_string())
    }
}

/// Parses a path.
pub(super) fn path(text: &str) -> Result<PathBuf, String> {
    Ok(PathBuf::from(text))
}

/// Parses an integer of at least 1.
pub(super) fn positive(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| "expected a whole number from 1".to_owned())
}

/// Parses a non-negative integer.
pub(super) fn count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "expected a whole number".to_owned())
}
