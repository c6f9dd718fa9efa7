//! `anabranch.toml`: the folders of a project's registry and plans, and the stores behind its endpoints.
//!
//! ```toml
//! [plan]
//! registry = "registry"
//! plans = "plans"
//! env = "dev"
//! admission = true
//! max_rows = 200000
//! max_bytes = "64MiB"
//! files = ["/models"]
//!
//! [plan.endpoints.ep_0001]
//! source = "redis"
//! url = "rediss://reader:${REDIS_PASSWORD}@cache.example:6380/0"
//! hedge = { percentile = 80, budget = 0.05 }
//!
//! [plan.endpoints.catalogue]
//! source = "memory"
//! data = ["data.json", { pattern = "item:{id}", file = "items.csv" }]
//!
//! [engine]
//! cpu_threads = 4
//! ```

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anabranch_text::{Problem, Problems, closest, quote};
use serde_json::{Map, Value};

pub use crate::capture_settings::CaptureSettings;
use crate::fields::Fields;
use crate::json::show;
use crate::registry::{self, BoundsSettings};
pub use crate::serve_settings::ServeSettings;
use crate::source::Hedge;
use crate::{places, toml_text};

/// The name of the file.
const FILE: &str = "anabranch.toml";

const REDIS_SCHEMES: [&str; 4] = ["redis://", "rediss://", "redis-cluster://", "rediss-cluster://"];

/// A project's settings. Paths are relative to where the program runs, or absolute, never relative to the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Project {
    /// The file.
    pub file: PathBuf,
    /// The folder of the registries.
    pub registry: PathBuf,
    /// The folder of the plans.
    pub plans: PathBuf,
    /// The environment, if one is named.
    pub env: Option<String>,
    /// Settings of endpoints; the others are as the registry describes them.
    pub endpoints: Vec<EndpointSettings>,
    /// True if requests are refused that would miss their deadline under the current load.
    pub admission: bool,
    /// The most rows and bytes of one request, if not those of the registry.
    pub bounds: BoundsSettings,
    /// The folders in which plans may name files, besides the folder of the project.
    pub files: Vec<PathBuf>,
    /// Whether plans may use the ops for tests, `test::sleep` and `test::busy_cpu`.
    pub test_ops: bool,
    /// The settings for running plans.
    pub engine: EngineSettings,
    /// The captures of requests, if any.
    pub captures: Option<CaptureSettings>,
    /// The settings of `anabranch serve`.
    pub serve: ServeSettings,
}

/// The settings of an endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct EndpointSettings {
    /// Its id, or its name for people.
    pub endpoint: String,
    /// The store.
    pub source: SourceSettings,
    /// Trips in flight at a time.
    pub max_inflight: Option<u32>,
    /// The longest to wait for a connection.
    pub connect_timeout: Option<Duration>,
    /// The longest to wait for a trip's reply.
    pub request_timeout: Option<Duration>,
    /// The hedging of late reads, if enabled.
    pub hedge: Option<Hedge>,
    /// Whether a value that cannot be read, or a key of another type, fails the read instead of being null.
    pub strict_values: bool,
}

/// The store of an endpoint.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceSettings {
    /// Memory, filled from files.
    Memory {
        /// The files, in order.
        data: Vec<DataFile>,
        /// Delays and failures, for demonstrations and tests.
        faults: Vec<FaultSettings>,
    },
    /// Redis.
    Redis {
        /// The address. Default: the registry's.
        url: Option<Url>,
        /// True for a Redis Cluster.
        cluster: bool,
        /// The number of connections that all requests share.
        connections: Option<u32>,
        /// The most commands of one trip before it is split.
        pipeline: Option<u32>,
        /// A file of the certificates to trust instead of the system's.
        authorities: Option<PathBuf>,
    },
    /// JSON over HTTP.
    Http {
        /// The address. Default: the registry's.
        url: Option<Url>,
    },
}

/// The address of a source. It may hold a password, which debug output hides.
#[derive(Clone, PartialEq, Eq)]
pub struct Url(String);

impl Url {
    /// All of it, password and all.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, rest) = self.0.split_once("://").unwrap_or_default();
        let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        write!(f, "{scheme}://{host}")
    }
}

/// A file that fills a memory source.
#[derive(Clone, Debug, PartialEq)]
pub struct DataFile {
    /// The file.
    pub file: PathBuf,
    /// The pattern of the keys of rows, for tables: `user:{id}`.
    pub pattern: Option<String>,
}

impl DataFile {
    /// Reads `FILE` or `FILE=PATTERN`. Relative files are relative to `folder`.
    ///
    /// ```
    /// use anabranch_plan::project::DataFile;
    /// let data = DataFile::parse("users.csv=user:{id}", "data".as_ref());
    /// assert_eq!((data.file.to_str(), data.pattern.as_deref()), (Some("data/users.csv"), Some("user:{id}")));
    /// ```
    pub fn parse(text: &str, folder: &Path) -> DataFile {
        match text.split_once('=') {
            // A file may have a `=` in its name.
            Some((file, pattern)) if !folder.join(text).exists() => {
                DataFile { file: folder.join(file), pattern: Some(pattern.to_owned()) }
            }
            _ => DataFile { file: folder.join(text), pattern: None },
        }
    }
}

/// The faults of a memory source, for tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultSettings {
    /// The beginning of the keys that are meant.
    pub prefix: String,
    /// Before each reply.
    pub delay: Duration,
    /// Every N-th trip fails; 0 for none.
    pub fail_every: u32,
    /// Trips after the first N never come back.
    pub stall_after: Option<u32>,
}

/// The settings for running plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineSettings {
    /// Threads for CPU work.
    pub cpu_threads: Option<u32>,
    /// CPU work that is expected to take longer goes to the pool.
    pub inline_threshold: Option<Duration>,
}

impl Project {
    /// Finds `anabranch.toml` in a folder or the ones above it, and reads it; `None` if there is no such file.
    pub fn find(start: &Path) -> Result<Option<Project>, Problems> {
        for folder in start.ancestors() {
            // The first ancestor of a relative path is empty, which means the current folder.
            let file = folder.join(FILE);
            match fs::read_to_string(&file) {
                Ok(text) => return Project::parse(&text, &file).map(Some),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    let what = format!("cannot be read: {error}");
                    return Err(Problem::new(file.display().to_string(), what).into());
                }
            }
        }
        Ok(None)
    }

    /// Reads the text of `file`. Secrets in urls, `${NAME}`, come from the environment of the process.
    pub fn parse(text: &str, file: &Path) -> Result<Project, Problems> {
        Project::parse_with(text, file, &|name| std::env::var(name).ok())
    }

    /// Like [`Project::parse`], with secrets from `secret`.
    pub fn parse_with(
        text: &str,
        file: &Path,
        secret: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Project, Problems> {
        let mut problems = Problems::default();
        let name = file.file_name().map_or_else(|| FILE.to_owned(), |name| name.to_string_lossy().into());
        let project = toml_text::parse(&name, text, &mut problems)
            .map(|map| Reader { file, name: &name, secret }.project(&map, &mut problems));
        match project {
            Some(project) if problems.is_fine() => Ok(project),
            _ => {
                let folder = file.parent().unwrap_or(Path::new(""));
                Err(places::in_files(folder, &[(name, text.to_owned())], problems))
            }
        }
    }

    /// The settings of an endpoint, by its id or else its name.
    pub fn endpoint(&self, id: &str, name: &str) -> Option<&EndpointSettings> {
        let by = |word: &str| self.endpoints.iter().find(|settings| settings.endpoint == word);
        by(id).or_else(|| by(name))
    }
}

struct Reader<'a> {
    file: &'a Path,
    name: &'a str,
    secret: &'a dyn Fn(&str) -> Option<String>,
}

impl Reader<'_> {
    fn project(&self, map: &Map<String, Value>, problems: &mut Problems) -> Project {
        let mut top = Fields::new(map, self.name, problems);
        let plan = top.optional::<&Map<String, Value>>("plan");
        let engine = top.optional::<&Map<String, Value>>("engine");
        let serve = top.optional::<&Map<String, Value>>("serve");
        top.finish();
        let empty = Map::new();
        let mut fields = Fields::new(plan.unwrap_or(&empty), format!("{}, plan", self.name), problems);
        let registry = fields.optional("registry").unwrap_or("registry");
        let plans = fields.optional("plans").unwrap_or("plans");
        let env: Option<String> = fields.optional("env");
        let admission = fields.optional("admission").unwrap_or(true);
        let endpoints = fields.optional::<&Map<String, Value>>("endpoints");
        let captures = fields.optional::<&Map<String, Value>>("captures");
        let bounds = registry::bounds(&mut fields);
        let files = self.folders(&mut fields);
        let test_ops = fields.optional("test_ops").unwrap_or(false);
        fields.finish();
        let captures = captures.and_then(|captures| {
            let mut fields = Fields::new(captures, format!("{}, plan.captures", self.name), problems);
            let settings = CaptureSettings::read(&mut fields, &|path| self.path(path));
            fields.finish();
            settings
        });
        let serve = serve.map(|serve| {
            let mut fields = Fields::new(serve, format!("{}, serve", self.name), problems);
            let settings = ServeSettings::read(&mut fields, &|path| self.path(path));
            fields.finish();
            settings
        });
        let endpoints = endpoints.into_iter().flatten();
        Project {
            file: self.file.to_owned(),
            registry: self.path(registry),
            plans: self.path(plans),
            env,
            admission,
            bounds,
            files,
            test_ops,
            endpoints: endpoints.filter_map(|(id, value)| self.endpoint(id, value, problems)).collect(),
            engine: self.engine(engine.unwrap_or(&empty), problems),
            captures,
            serve: serve.unwrap_or_default(),
        }
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.file.parent().unwrap_or(Path::new("")).join(relative)
    }

    /// The folders of `files`.
    fn folders(&self, fields: &mut Fields<'_, '_>) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        for value in fields.optional::<&[Value]>("files").unwrap_or_default() {
            match value {
                Value::String(folder) => folders.push(self.path(folder)),
                other => fields.error("files", format!("must be folders, not {}", show(other))),
            }
        }
        folders
    }

    fn engine(&self, map: &Map<String, Value>, problems: &mut Problems) -> EngineSettings {
        let mut fields = Fields::new(map, format!("{}, engine", self.name), problems);
        let settings = EngineSettings {
            cpu_threads: at_least_one(&mut fields, "cpu_threads"),
            inline_threshold: fields
                .optional::<u32>("inline_threshold_us")
                .map(|micros| Duration::from_micros(micros.into())),
        };
        fields.finish();
        settings
    }

    fn endpoint(&self, id: &str, value: &Value, problems: &mut Problems) -> Option<EndpointSettings> {
        let place = format!("{}, plan.endpoints.{id}", self.name);
        let Some(map) = value.as_object() else {
            problems.error(Problem::new(place, format!("must be a table, not {}", show(value))));
            return None;
        };
        if let Some(typo) = typo_of_source(map) {
            let problem =
                Problem::new(format!("{place}, {typo}"), format!("there is no field {}", quote(typo)));
            problems.error(problem.help("did you mean `source`?"));
            return None;
        }
        let mut fields = Fields::new(map, place, problems);
        let words = [("memory", "memory"), ("redis", "redis"), ("http", "http")];
        let source = match fields.required_choice("source", &words) {
            Some("memory") => {
                Some(SourceSettings::Memory { data: self.data(&mut fields), faults: faults(&mut fields) })
            }
            Some("redis") => Some(SourceSettings::Redis {
                url: self.url(&mut fields, &REDIS_SCHEMES),
                cluster: fields.optional("cluster").unwrap_or(false),
                connections: at_least_one(&mut fields, "connections"),
                pipeline: at_least_one(&mut fields, "pipeline"),
                authorities: fields.optional("authorities").map(|file| self.path(file)),
            }),
            Some(_) => Some(SourceSettings::Http { url: self.url(&mut fields, &["http://", "https://"]) }),
            None => None,
        };
        let max_inflight = at_least_one(&mut fields, "max_inflight");
        let [connect_timeout, request_timeout] = ["connect_timeout_ms", "request_timeout_ms"]
            .map(|name| at_least_one(&mut fields, name).map(|ms| Duration::from_millis(ms.into())));
        let hedge = hedge(&mut fields);
        let strict_values = fields.optional("strict_values").unwrap_or(false);
        // Without a source, which fields there are is not known.
        if source.is_some() {
            fields.finish();
        }
        let endpoint = id.to_owned();
        let source = source?;
        Some(EndpointSettings {
            endpoint,
            source,
            max_inflight,
            connect_timeout,
            request_timeout,
            hedge,
            strict_values,
        })
    }

    fn data(&self, fields: &mut Fields<'_, '_>) -> Vec<DataFile> {
        let mut files = Vec::new();
        for value in fields.optional::<&[Value]>("data").unwrap_or_default() {
            match value {
                Value::String(file) => files.push(DataFile::parse(file, &self.path(""))),
                Value::Object(map) => {
                    let place = fields.place("data");
                    let mut entry = Fields::new(map, place, fields.problems);
                    let file = entry.required("file").map(|file| self.path(file));
                    let pattern = entry.optional("pattern");
                    entry.finish();
                    files.extend(file.map(|file| DataFile { file, pattern }));
                }
                other => {
                    let what = format!(
                        "must be files (`FILE` or `FILE=PATTERN`) or tables {{ file, pattern }}, not {}",
                        show(other)
                    );
                    fields.error("data", what);
                }
            }
        }
        files
    }

    /// Messages do not show the URL: it may hold a password.
    fn url(&self, fields: &mut Fields<'_, '_>, schemes: &[&str]) -> Option<Url> {
        let text: &str = fields.optional("url")?;
        let url = self.with_secrets(text).and_then(|url| {
            let known = schemes.iter().any(|scheme| url.starts_with(scheme));
            if known { Ok(Url(url)) } else { Err(format!("must start with {}", schemes.join(", "))) }
        });
        match url {
            Ok(url) => Some(url),
            Err(what) => {
                fields.error("url", what);
                None
            }
        }
    }

    /// Replaces each `${NAME}` by its secret.
    fn with_secrets(&self, text: &str) -> Result<String, String> {
        let mut whole = String::new();
        let mut rest = text;
        while let Some(open) = rest.find("${") {
            let close = rest[open..].find('}').ok_or("has a `${` without its `}`")? + open;
            let name = &rest[open + 2..close];
            let value = (self.secret)(name)
                .ok_or_else(|| format!("the environment variable {} is not set", quote(name)))?;
            whole.push_str(&rest[..open]);
            whole.push_str(&value);
            rest = &rest[close + 1..];
        }
        whole.push_str(rest);
        Ok(whole)
    }
}

/// A misspelled field `source`. The real one decides about the other fields.
fn typo_of_source(map: &Map<String, Value>) -> Option<&str> {
    let is_typo = |name: &&String| closest(name, ["source"]).is_some();
    if map.contains_key("source") { None } else { map.keys().find(is_typo).map(String::as_str) }
}

/// `delay_ms`, `fail_every` and `stall_after` for all keys, and `faults` for those with a prefix.
fn faults(fields: &mut Fields<'_, '_>) -> Vec<FaultSettings> {
    let mut faults = Vec::new();
    for value in fields.optional::<&[Value]>("faults").unwrap_or_default() {
        let Some(map) = value.as_object() else {
            fields.error("faults", format!("must be tables, not {}", show(value)));
            continue;
        };
        let place = fields.place("faults");
        let mut entry = Fields::new(map, place, fields.problems);
        let prefix: Option<String> = entry.required("prefix");
        let fault = fault(&mut entry, prefix.unwrap_or_default());
        entry.finish();
        faults.extend(fault);
    }
    faults.extend(fault(fields, String::new()));
    faults
}

fn fault(fields: &mut Fields<'_, '_>, prefix: String) -> Option<FaultSettings> {
    let delay: Option<u32> = fields.optional("delay_ms");
    let fail_every: Option<u32> = fields.optional("fail_every");
    let stall_after: Option<u32> = fields.optional("stall_after");
    if delay.is_none() && fail_every.is_none() && stall_after.is_none() {
        return None;
    }
    let delay = Duration::from_millis(delay.unwrap_or(0).into());
    Some(FaultSettings { prefix, delay, fail_every: fail_every.unwrap_or(0), stall_after })
}

/// Parses `true` for the defaults, or a table of settings.
fn hedge(fields: &mut Fields<'_, '_>) -> Option<Hedge> {
    let map = match fields.raw("hedge")? {
        Value::Bool(on) => return on.then(Hedge::default),
        Value::Object(map) => map,
        other => {
            let what =
                format!("must be true, false or {{ percentile, factor, budget }}, not {}", show(other));
            fields.error("hedge", what);
            return None;
        }
    };
    let place = fields.place("hedge");
    let mut entry = Fields::new(map, place, fields.problems);
    let [percentile, factor, budget] =
        ["percentile", "factor", "budget"].map(|name| entry.optional::<f64>(name));
    let hedge = Hedge::default();
    let hedge = hedge.after(percentile.unwrap_or(hedge.percentile()), factor.unwrap_or(hedge.factor()));
    let hedge = hedge.and_then(|hedge| hedge.within(budget.unwrap_or(hedge.budget())));
    let hedge = hedge.map_err(|what| entry.error("", what)).ok();
    entry.finish();
    hedge
}

fn at_least_one(fields: &mut Fields<'_, '_>, name: &'static str) -> Option<u32> {
    let value: u32 = fields.optional(name)?;
    if value == 0 {
        fields.error_with_help(name, "must be at least 1", "leave it out for the default");
    }
    Some(value)
}
