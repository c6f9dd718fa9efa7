//! From a project's files to an engine's config: the one place that decides where registries, plans and rows come
//! from.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::clock::{Clock, SystemClock};
use anabranch_text::{Problem, Problems};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::engine::Config;
use crate::places;
use crate::project::{DataFile, EndpointSettings, FaultSettings, Project, SourceSettings};
use crate::registry::{Endpoint, EndpointKind, Registries};
use crate::source::{Fault, Http, HttpConfig, Memory, MemoryData, Redis, RedisConfig, RedisTls, Source};

/// The prefix of places in the project's file until their lines are known.
const PROJECT: &str = "anabranch.toml";

/// The parts of an engine. Fields that are not set come from the project, if there is one.
///
/// ```
/// # fn main() -> Result<(), anabranch_plan::Problems> {
/// use anabranch_plan::{RowsFrom, Setup};
/// use anabranch_plan::project::DataFile;
/// # let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/plans");
/// # let path = |name: &str| std::path::Path::new(example).join(name);
/// let data = DataFile { file: path("data.json"), pattern: None };
/// let setup = Setup { registry: Some(path("registry")), rows: RowsFrom::Data(vec![data]), ..Setup::default() };
/// let (config, warnings) = setup.config()?;
/// assert_eq!((config.sources.len(), warnings.len()), (1, 0));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// The project.
    pub project: Option<Project>,
    /// The folder of the registries.
    pub registry: Option<PathBuf>,
    /// The environment.
    pub env: Option<String>,
    /// The folder of the plans.
    pub plans: Option<PathBuf>,
    /// Whether the ops for tests, `test::sleep` and `test::busy_cpu`, are allowed in addition to the project's setting.
    pub test_ops: bool,
    /// The source of rows.
    pub rows: RowsFrom,
    /// Threads for CPU work.
    pub cpu_threads: Option<usize>,
    /// CPU work up to this long runs in place.
    pub inline_threshold: Option<Duration>,
}

/// The source of rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RowsFrom {
    /// From the project's settings of each endpoint, or else the registry's. Without a project there are no rows.
    #[default]
    Project,
    /// From the endpoints of the registry.
    Endpoints,
    /// From these files, held in memory, for all endpoints.
    Data(Vec<DataFile>),
    /// From this Redis, `host:port` or a URL, for all Redis endpoints.
    Redis(String),
    /// From nowhere, for plans that are inspected and not run.
    Nowhere,
}

impl Setup {
    /// The config of an engine on the machine's clock, and warnings about it.
    pub fn config(self) -> Result<(Config, Vec<Problem>), Problems> {
        self.config_on(&(Arc::new(SystemClock) as Arc<dyn Clock>))
    }

    /// The config of an engine whose sources have this clock, which should be that of its runs.
    pub fn config_on(self, clock: &Arc<dyn Clock>) -> Result<(Config, Vec<Problem>), Problems> {
        let Setup { project, registry, env, plans, test_ops, rows, cpu_threads, inline_threshold } = self;
        let registry =
            registry.or_else(|| Some(project.as_ref()?.registry.clone())).ok_or_else(no_registry)?;
        let env = env.or_else(|| project.as_ref()?.env.clone());
        let (registries, warnings) = Registries::load(&registry, env.as_deref())?;
        let sources = sources(&rows, project.as_ref(), &registries, clock)?;
        let mut config = Config::new(registries, sources);
        if !test_ops && !project.as_ref().is_some_and(|project| project.test_ops) {
            config.ops = config.ops.without_test_ops();
        }
        if let Some(project) = &project {
            config.registries.limits.bounds = project.bounds.over(config.registries.limits.bounds);
            config.files.extend(project.file.parent().map(Path::to_owned));
            config.files.extend_from_slice(&project.files);
        }
        config.folder = plans.or_else(|| Some(project.as_ref()?.plans.clone()));
        config.admission = project.as_ref().is_none_or(|project| project.admission);
        let engine = project.map(|project| project.engine).unwrap_or_default();
        let threads = cpu_threads.or(engine.cpu_threads.map(|threads| threads as usize));
        config.runs.cpu_threads = threads.unwrap_or(config.runs.cpu_threads);
        let threshold = inline_threshold.or(engine.inline_threshold);
        config.runs.inline_threshold = threshold.unwrap_or(config.runs.inline_threshold);
        Ok((config, warnings))
    }
}

fn no_registry() -> Problem {
    Problem::new("registry", "there is no registry folder and no project file anabranch.toml")
        .help("give the folder that holds keys.toml: --registry DIR")
}

/// One source per endpoint, in the order of the endpoints.
fn sources(
    rows: &RowsFrom,
    project: Option<&Project>,
    registries: &Registries,
    clock: &Arc<dyn Clock>,
) -> Result<Vec<Arc<dyn Source>>, Problems> {
    let endpoints = registries.endpoints.iter();
    let in_memory = |data: MemoryData| -> Vec<Arc<dyn Source>> {
        let data = Arc::new(data);
        let memory =
            |endpoint: &Endpoint| Memory::new(endpoint.name.as_str(), Arc::clone(&data), Arc::clone(clock));
        registries.endpoints.iter().map(|endpoint| Arc::new(memory(endpoint)) as Arc<dyn Source>).collect()
    };
    match (rows, project) {
        (RowsFrom::Nowhere, _) | (RowsFrom::Project, None) => Ok(in_memory(MemoryData::default())),
        (RowsFrom::Project, Some(project)) => of_project(project, registries, clock),
        (RowsFrom::Endpoints, _) => Ok(endpoints.map(|endpoint| described(endpoint, clock)).collect()),
        (RowsFrom::Data(files), _) => load(files, |_| String::new()).map(in_memory),
        (RowsFrom::Redis(address), _) => {
            let config = RedisConfig::parse_url(address).map_err(|what| Problem::new("redis", what))?;
            let source = |endpoint: &Endpoint| match endpoint.kind {
                EndpointKind::Redis => redis(with_policy(config.clone(), endpoint), clock),
                EndpointKind::Http => described(endpoint, clock),
            };
            Ok(endpoints.map(source).collect())
        }
    }
}

/// The contents of the files. `place` is put before the place of a problem, with the number of its file.
fn load(files: &[DataFile], place: impl Fn(usize) -> String) -> Result<MemoryData, Problems> {
    let mut data = MemoryData::default();
    let mut problems = Problems::default();
    for (at, DataFile { file, pattern }) in files.iter().enumerate() {
        if let Err(found) = data.add_file(file, pattern.as_deref()) {
            let placed = |problem: Problem| Problem { place: place(at) + &problem.place, ..problem };
            problems.errors.extend(found.errors.into_iter().map(placed));
        }
    }
    if problems.is_fine() { Ok(data) } else { Err(problems) }
}

/// An endpoint as the registry describes it.
fn described(endpoint: &Endpoint, clock: &Arc<dyn Clock>) -> Arc<dyn Source> {
    match endpoint.kind {
        EndpointKind::Redis => redis(RedisConfig::from_endpoint(endpoint), clock),
        EndpointKind::Http => Arc::new(Http::new(HttpConfig::from_endpoint(endpoint), Arc::clone(clock))),
    }
}

fn redis(config: RedisConfig, clock: &Arc<dyn Clock>) -> Arc<dyn Source> {
    Arc::new(Redis::new(config, Arc::clone(clock)))
}

/// A Redis that is reached as `config` says, with the name and bounds of an endpoint.
fn with_policy(config: RedisConfig, endpoint: &Endpoint) -> RedisConfig {
    let policy = RedisConfig::from_endpoint(endpoint);
    RedisConfig {
        endpoint: policy.endpoint,
        connect_timeout: policy.connect_timeout,
        response_timeout: policy.response_timeout,
        max_inflight: policy.max_inflight,
        ..config
    }
}

/// The sources that the project declares, or else the registry.
fn of_project(
    project: &Project,
    registries: &Registries,
    clock: &Arc<dyn Clock>,
) -> Result<Vec<Arc<dyn Source>>, Problems> {
    let mut problems = Problems::default();
    let known =
        || registries.endpoints.iter().flat_map(|endpoint| [endpoint.id.as_str(), endpoint.name.as_str()]);
    for settings in &project.endpoints {
        if !known().any(|name| name == settings.endpoint) {
            let mut problem = Problem::new(place(settings), "the registry has no such endpoint");
            problem.help = problems.did_you_mean(&settings.endpoint, known());
            problems.error(problem);
        }
    }
    let mut sources = Vec::new();
    for endpoint in registries.endpoints.iter() {
        match project.endpoint(&endpoint.id, &endpoint.name) {
            None => sources.push(described(endpoint, clock)),
            Some(settings) => match set(settings, endpoint, clock) {
                Ok(source) => sources.push(source),
                Err(found) => problems.errors.extend(found.errors.into_iter().map(|problem| Problem {
                    place: format!("{}, {}", place(settings), problem.place),
                    ..problem
                })),
            },
        }
    }
    if problems.is_fine() { Ok(sources) } else { Err(with_lines(project, problems)) }
}

fn place(settings: &EndpointSettings) -> String {
    format!("{PROJECT}, plan.endpoints.{}", settings.endpoint)
}

/// Problems whose places begin with [`PROJECT`], with the lines of the project's file as far as it can be read again.
fn with_lines(project: &Project, mut problems: Problems) -> Problems {
    let name = project.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for problem in &mut problems.errors {
        if let Some(rest) = problem.place.strip_prefix(PROJECT) {
            problem.place = format!("{name}{rest}");
        }
    }
    let text = std::fs::read_to_string(&project.file).unwrap_or_default();
    places::in_files(project.file.parent().unwrap_or(Path::new("")), &[(name, text)], problems)
}

/// An endpoint as the project says.
fn set(
    settings: &EndpointSettings,
    endpoint: &Endpoint,
    clock: &Arc<dyn Clock>,
) -> Result<Arc<dyn Source>, Problems> {
    let endpoint = Endpoint {
        max_inflight: settings.max_inflight.or(endpoint.max_inflight),
        connect_timeout: settings.connect_timeout.or(endpoint.connect_timeout),
        request_timeout: settings.request_timeout.or(endpoint.request_timeout),
        ..endpoint.clone()
    };
    match &settings.source {
        SourceSettings::Memory { data, faults } => {
            let data = Arc::new(load(data, |at| format!("data[{at}], "))?);
            let memory = Memory::new(endpoint.name.as_str(), data, Arc::clone(clock));
            let with = |memory: Memory, fault: &FaultSettings| {
                let FaultSettings { prefix, delay, fail_every, stall_after } = fault.clone();
                memory.with_fault(prefix, Fault { delay, fail_every, stall_after })
            };
            let memory = faults.iter().fold(memory, with);
            let memory = match settings.max_inflight {
                Some(trips) => memory.with_max_inflight(trips),
                None => memory,
            };
            let memory = if settings.strict_values { memory.with_strict_values() } else { memory };
            Ok(Arc::new(match settings.hedge {
                Some(hedge) => memory.with_hedge(hedge),
                None => memory,
            }))
        }
        SourceSettings::Redis { .. } => set_redis(settings, &endpoint, clock),
        SourceSettings::Http { url } => {
            let mut config = HttpConfig::from_endpoint(&endpoint);
            config.hedge = settings.hedge;
            config.strict_values = settings.strict_values;
            if let Some(url) = url {
                if url.as_str().starts_with("https://") {
                    let what = "an HTTP endpoint is reached without encryption";
                    return Err(Problem::new("url", what)
                        .help("write http://, or put a proxy in between")
                        .into());
                }
                url.as_str().clone_into(&mut config.url);
            }
            // The URL of the registry is checked here too: a host may have letters that no URL has.
            if let Err(error) = config.url.parse::<hyper::Uri>() {
                let place = if url.is_some() { "url" } else { "host" };
                return Err(Problem::new(place, format!("is not a URL that can be reached: {error}")).into());
            }
            Ok(Arc::new(Http::new(config, Arc::clone(clock))))
        }
    }
}

/// A Redis as the project says.
fn set_redis(
    settings: &EndpointSettings,
    endpoint: &Endpoint,
    clock: &Arc<dyn Clock>,
) -> Result<Arc<dyn Source>, Problems> {
    let SourceSettings::Redis { url, cluster, connections, pipeline, authorities } = &settings.source else {
        unreachable!("the source is a Redis")
    };
    let mut config = match url {
        Some(url) => RedisConfig::parse_url(url.as_str()).map_err(|what| Problem::new("url", what))?,
        None => RedisConfig::from_endpoint(endpoint),
    };
    config = with_policy(config, endpoint);
    config.cluster |= cluster;
    config.strict_values = settings.strict_values;
    config.hedge = settings.hedge;
    config.connections = connections.map_or(config.connections, |count| count as usize);
    config.pipeline = pipeline.map_or(config.pipeline, |count| count as usize);
    if let Some(file) = authorities {
        let pem = std::fs::read(file).map_err(|error| {
            Problem::new("authorities", format!("{} cannot be read: {error}", file.display()))
        })?;
        if config.tls.is_none() {
            let what = "certificates are named, but the connection is not encrypted";
            return Err(Problem::new("authorities", what).help("write rediss:// in `url`").into());
        }
        if CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok).next().is_none() {
            let what = format!("{} holds no certificate in PEM format", file.display());
            return Err(Problem::new("authorities", what).into());
        }
        config.tls = Some(RedisTls { authorities: Some(pem) });
    }
    Ok(redis(config, clock))
}
