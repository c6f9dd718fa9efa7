//! The settings of `serve`: flags win over environment variables, which win over `[serve]` of the project file.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anabranch_plan::project::Project;
use anabranch_server::{AllowedHost, Scope, Settings};
use anabranch_text::{duration, size};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args};
use serde_json::json;

use super::listen_address;
use crate::failure::Failure;
use crate::recipe::{DataFolder, StoreOptions};
use crate::table::Table;

/// The options of `serve` that `[serve]` of the project file has, too.
#[derive(Args)]
pub(crate) struct ConfigArgs {
    /// The project file; without this option, the nearest anabranch.toml in this folder or above, if there is one.
    #[arg(long, value_name = "FILE", env = "ANABRANCH_PROJECT", hide_env_values = true)]
    project: Option<PathBuf>,
    /// Where to listen: 127.0.0.1:7421 if not given. localhost:PORT and :PORT are 127.0.0.1:PORT; port 0 is a free
    /// one. An address that is not loopback needs TLS or --insecure-listen.
    #[arg(long, value_name = "IP:PORT", env = "ANABRANCH_LISTEN", hide_env_values = true, value_parser = listen_address)]
    listen: Option<SocketAddr>,
    /// The file of the local token, which may do everything: DATA/token if not given. It is made if it is missing.
    #[arg(long, value_name = "FILE", env = "ANABRANCH_TOKEN_FILE", hide_env_values = true)]
    token_file: Option<PathBuf>,
    /// What requests without a token may do: read, run or admin. Nothing if not given.
    #[arg(long, value_name = "SCOPE", env = "ANABRANCH_ANONYMOUS", hide_env_values = true)]
    anonymous: Option<Scope>,
    /// The TLS certificate chain, PEM. The files are read again when they change.
    #[arg(long, value_name = "FILE", env = "ANABRANCH_TLS_CERT", hide_env_values = true)]
    tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert, PEM.
    #[arg(long, value_name = "FILE", env = "ANABRANCH_TLS_KEY", hide_env_values = true)]
    tls_key: Option<PathBuf>,
    /// Listen on an address that is not loopback without TLS: tokens and data can be read on the way.
    #[arg(long, value_name = "BOOL", env = "ANABRANCH_INSECURE_LISTEN", hide_env_values = true)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    insecure_listen: Option<bool>,
    /// A host name by which clients may call this server, with or without a port; repeatable. Loopback and
    /// the IP address of --listen need none. Pages of the host may send requests, too.
    #[arg(long = "allow-host", value_name = "NAME", env = "ANABRANCH_ALLOW_HOSTS", hide_env_values = true)]
    #[arg(value_delimiter = ',')]
    allow_hosts: Vec<AllowedHost>,
    /// Memory for the cache of values: 512MiB, 2GiB; 0 turns it off. 256MiB if not given.
    #[arg(long, value_name = "SIZE", env = "ANABRANCH_CACHE", hide_env_values = true, value_parser = size::parse)]
    cache: Option<u64>,
    /// Memory for all functions at work: 256MiB if not given.
    #[arg(long, value_name = "SIZE", env = "ANABRANCH_FUNCTION_MEMORY", hide_env_values = true, value_parser = size::parse)]
    function_memory: Option<u64>,
    /// Threads for network and files: 2 if not given.
    #[arg(long, value_name = "COUNT", env = "ANABRANCH_THREADS", hide_env_values = true, value_parser = positive)]
    threads: Option<usize>,
    /// The largest HTTP body that is not a blob: 16MiB if not given.
    #[arg(long, value_name = "SIZE", env = "ANABRANCH_MAX_BODY", hide_env_values = true, value_parser = size::parse)]
    max_body: Option<u64>,
    /// The largest message of gRPC: 16MiB if not given.
    #[arg(long, value_name = "SIZE", env = "ANABRANCH_MAX_MESSAGE", hide_env_values = true, value_parser = size::parse)]
    max_message: Option<u64>,
    /// Bodies and messages of all requests that are not answered: 512MiB if not given.
    #[arg(long, value_name = "SIZE", env = "ANABRANCH_MAX_UNFINISHED", hide_env_values = true, value_parser = size::parse)]
    max_unfinished: Option<u64>,
    /// Large blobs that are stored at a time: 128 if not given.
    #[arg(long, value_name = "COUNT", env = "ANABRANCH_MAX_UPLOADS", hide_env_values = true, value_parser = positive)]
    max_uploads: Option<usize>,
    /// Connections: 1024 if not given.
    #[arg(long, value_name = "COUNT", env = "ANABRANCH_MAX_CONNECTIONS", hide_env_values = true, value_parser = positive)]
    max_connections: Option<usize>,
    /// Requests that the server works on at a time, at most half of them for one client: 2048 if not given.
    #[arg(long, value_name = "COUNT", env = "ANABRANCH_MAX_IN_FLIGHT", hide_env_values = true, value_parser = positive)]
    max_in_flight: Option<usize>,
    /// Requests that wait for that; beyond them, 503 or 429 with Retry-After: 2048 if not given.
    #[arg(long, value_name = "COUNT", env = "ANABRANCH_MAX_QUEUE", hide_env_values = true)]
    max_queue: Option<usize>,
    /// Requests whose answers are not read to their end: 16384 if not given.
    #[arg(long, value_name = "COUNT", env = "ANABRANCH_MAX_OPEN", hide_env_values = true, value_parser = positive)]
    max_open: Option<usize>,
    /// How long a request waits to be worked on: 5s if not given.
    #[arg(long, value_name = "TIME", env = "ANABRANCH_QUEUE_WAIT", hide_env_values = true, value_parser = duration::parse)]
    queue_wait: Option<Duration>,
    /// How long a client may send or read nothing of a request: 20s if not given.
    #[arg(long, value_name = "TIME", env = "ANABRANCH_STALL_TIMEOUT", hide_env_values = true, value_parser = duration::parse)]
    stall_timeout: Option<Duration>,
    /// How long a connection may have no request: 5m if not given.
    #[arg(long, value_name = "TIME", env = "ANABRANCH_IDLE_TIMEOUT", hide_env_values = true, value_parser = duration::parse)]
    idle_timeout: Option<Duration>,
    /// How long requests under way may take once the server shuts down: 10s if not given.
    #[arg(long, value_name = "TIME", env = "ANABRANCH_GRACE", hide_env_values = true, value_parser = duration::parse)]
    grace: Option<Duration>,
}

fn positive(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| "expected a whole number from 1".to_owned())
}

fn count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "expected a whole number".to_owned())
}

/// Which options came from the environment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources(HashMap<&'static str, ValueSource>);

impl Sources {
    /// Remembers where the options of a command line came from.
    pub(crate) fn of(matches: &ArgMatches) -> Sources {
        let found = |name: &'static str| Some((name, matches.value_source(name)?));
        Sources(NAMES.into_iter().filter_map(found).collect())
    }

    fn of_option(&self, name: &str) -> &'static str {
        match self.0.get(name) {
            Some(ValueSource::EnvVariable) => "environment",
            _ => "flag",
        }
    }
}

/// The settings, by the names of their options.
const NAMES: [&str; 24] = [
    "listen",
    "data",
    "token_file",
    "anonymous",
    "tls_cert",
    "tls_key",
    "insecure_listen",
    "allow_hosts",
    "cache",
    "quota",
    "function_memory",
    "threads",
    "max_body",
    "max_message",
    "max_unfinished",
    "max_uploads",
    "max_connections",
    "max_in_flight",
    "max_queue",
    "max_open",
    "queue_wait",
    "stall_timeout",
    "idle_timeout",
    "grace",
];

/// The effective settings.
pub(crate) struct ServeConfig {
    /// The project file.
    pub(crate) project: Option<PathBuf>,
    pub(crate) listen: SocketAddr,
    pub(crate) data: PathBuf,
    pub(crate) token_file: PathBuf,
    pub(crate) anonymous: Option<Scope>,
    /// The certificate and its key.
    pub(crate) tls: Option<(PathBuf, PathBuf)>,
    pub(crate) cache: u64,
    pub(crate) quota: Option<u64>,
    pub(crate) function_memory: u32,
    pub(crate) threads: usize,
    pub(crate) cpu_threads: Option<u32>,
    pub(crate) settings: Settings,
    rows: Vec<Row>,
}

/// A setting as people see it.
struct Row {
    name: &'static str,
    value: String,
    from: String,
}

/// Finds the value of each setting.
struct Resolver<'a> {
    project: Option<&'a Project>,
    sources: &'a Sources,
    rows: Vec<Row>,
}

impl Resolver<'_> {
    /// The option's value, else the file's, else the default.
    fn pick<T>(
        &mut self,
        name: &'static str,
        given: Option<T>,
        read: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Failure> {
        if let Some(given) = given {
            self.from(name, self.sources.of_option(name).to_owned());
            return Ok(Some(given));
        }
        let Some((project, text)) =
            self.project.and_then(|project| Some((project, project.serve.get(name)?)))
        else {
            self.from(name, "default".to_owned());
            return Ok(None);
        };
        let file = project.file.display();
        self.from(name, file.to_string());
        read(text)
            .map(Some)
            .map_err(|problem| Failure::of(format!("{file}, serve, {name}: {text:?}: {problem}")))
    }

    fn from(&mut self, name: &'static str, from: String) {
        self.rows.push(Row { name, value: String::new(), from });
    }

    /// Shows the value of the setting that was picked last.
    fn show(&mut self, value: &dyn std::fmt::Display) {
        if let Some(row) = self.rows.last_mut() {
            row.value = value.to_string();
        }
    }

    fn shown<T>(
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

    fn size(&mut self, name: &'static str, given: Option<u64>, default: u64) -> Result<u64, Failure> {
        self.shown(name, given, size::parse, default, |bytes| size::format(*bytes))
    }

    fn time(
        &mut self,
        name: &'static str,
        given: Option<Duration>,
        default: Duration,
    ) -> Result<Duration, Failure> {
        self.shown(name, given, duration::parse, default, |time| duration::format(*time))
    }

    fn positive(
        &mut self,
        name: &'static str,
        given: Option<usize>,
        default: usize,
    ) -> Result<usize, Failure> {
        self.shown(name, given, positive, default, usize::to_string)
    }

    fn path(&mut self, name: &'static str, given: Option<PathBuf>) -> Result<Option<PathBuf>, Failure> {
        let path = self.pick(name, given, |text| Ok(PathBuf::from(text)))?;
        self.show(&path.as_ref().map_or_else(|| "none".to_owned(), |path| path.display().to_string()));
        Ok(path)
    }

    fn hosts(&mut self, given: &[AllowedHost]) -> Result<Vec<AllowedHost>, Failure> {
        let given = Some(given.to_vec()).filter(|hosts| !hosts.is_empty());
        let hosts = self.pick("allow_hosts", given, |_| Ok(Vec::new()))?.unwrap_or_default();
        let listed = self.project.and_then(|project| project.serve.list("allow_hosts")).unwrap_or_default();
        if !hosts.is_empty() || listed.is_empty() {
            let names: Vec<String> = hosts.iter().map(AllowedHost::to_string).collect();
            self.show(&if names.is_empty() { "none".to_owned() } else { names.join(", ") });
            return Ok(hosts);
        }
        self.show(&listed.join(", "));
        let read = |text: &String| {
            text.parse().map_err(|problem| Failure::of(format!("serve, allow_hosts: {text:?}: {problem}")))
        };
        listed.iter().map(read).collect()
    }
}

impl ConfigArgs {
    /// The effective settings.
    pub(crate) fn resolve(
        &self,
        data: &DataFolder,
        options: &StoreOptions,
        sources: &Sources,
    ) -> Result<ServeConfig, Failure> {
        let project = self.find_project()?;
        let mut from = Resolver { project: project.as_ref(), sources, rows: Vec::new() };
        let local = SocketAddr::from(([127, 0, 0, 1], 7421));
        let listen = from.shown("listen", self.listen, listen_address, local, SocketAddr::to_string)?;
        let folder = from.pick("data", data.given().map(Path::to_owned), |text| Ok(PathBuf::from(text)))?;
        let folder = folder.unwrap_or_else(|| data.find());
        from.show(&folder.display());
        let token_file = from.pick("token_file", self.token_file.clone(), |text| Ok(PathBuf::from(text)))?;
        let token_file = token_file.unwrap_or_else(|| folder.join("token"));
        from.show(&token_file.display());
        let anonymous =
            from.pick("anonymous", self.anonymous, |text| text.parse().map_err(|error| format!("{error}")))?;
        from.show(&anonymous.map_or("none", Scope::word));
        let tls = self.tls(&mut from)?;
        let switch = |text: &str| text.parse().map_err(|_| "expected true or false".to_owned());
        let insecure = from.shown("insecure_listen", self.insecure_listen, switch, false, bool::to_string)?;
        check_listen(listen, tls.is_some(), insecure)?;
        let allowed_hosts = from.hosts(&self.allow_hosts)?;
        let cache = from.size("cache", self.cache, anabranch_content::Config::default().cache_bytes)?;
        let quota = from.pick("quota", options.quota(), size::parse)?;
        from.show(&quota.map_or_else(|| "none".to_owned(), size::format));
        let memory = from.size("function_memory", self.function_memory, 256 << 20)?;
        let threads = from.positive("threads", self.threads, 2)?;
        let settings = self.bounds(&mut from, allowed_hosts)?;
        let function_memory =
            u32::try_from(memory).map_err(|_| Failure::of("function_memory: at most 4 GiB".to_owned()))?;
        let cpu_threads = project.as_ref().and_then(|project| project.engine.cpu_threads);
        let rows = from.rows;
        Ok(ServeConfig {
            project: project.map(|project| project.file),
            listen,
            data: folder,
            token_file,
            anonymous,
            tls,
            cache,
            quota,
            function_memory,
            threads,
            cpu_threads,
            settings,
            rows,
        })
    }

    fn find_project(&self) -> Result<Option<Project>, Failure> {
        match &self.project {
            None => crate::plan::nearest_project(),
            Some(file) => {
                let text = std::fs::read_to_string(file)
                    .map_err(|error| Failure::of(format!("cannot read {}: {error}", file.display())))?;
                Ok(Some(Project::parse(&text, file)?))
            }
        }
    }

    fn tls(&self, from: &mut Resolver<'_>) -> Result<Option<(PathBuf, PathBuf)>, Failure> {
        let certificate = from.path("tls_cert", self.tls_cert.clone())?;
        let key = from.path("tls_key", self.tls_key.clone())?;
        match (certificate, key) {
            (Some(certificate), Some(key)) => Ok(Some((certificate, key))),
            (None, None) => Ok(None),
            (Some(_), None) => Err(Failure::Wrong("--tls-cert needs --tls-key".to_owned())),
            (None, Some(_)) => Err(Failure::Wrong("--tls-key needs --tls-cert".to_owned())),
        }
    }

    fn bounds(&self, from: &mut Resolver<'_>, allowed_hosts: Vec<AllowedHost>) -> Result<Settings, Failure> {
        let usual = Settings::default();
        let mut bytes = |name, given, usual: usize| {
            from.size(name, given, usual as u64).map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX))
        };
        let body_most = bytes("max_body", self.max_body, usual.body_most)?;
        let message_most = bytes("max_message", self.max_message, usual.message_most)?;
        let unfinished_most = bytes("max_unfinished", self.max_unfinished, usual.unfinished_most)?;
        Ok(Settings {
            body_most,
            message_most,
            unfinished_most,
            uploads_most: from.positive("max_uploads", self.max_uploads, usual.uploads_most)?,
            connections_most: from.positive(
                "max_connections",
                self.max_connections,
                usual.connections_most,
            )?,
            in_flight_most: from.positive("max_in_flight", self.max_in_flight, usual.in_flight_most)?,
            queue_most: from.shown("max_queue", self.max_queue, count, usual.queue_most, usize::to_string)?,
            open_most: from.positive("max_open", self.max_open, usual.open_most)?,
            queue_wait: from.time("queue_wait", self.queue_wait, usual.queue_wait)?,
            stall_timeout: from.time("stall_timeout", self.stall_timeout, usual.stall_timeout)?,
            idle_timeout: from.time("idle_timeout", self.idle_timeout, usual.idle_timeout)?,
            grace: from.time("grace", self.grace, usual.grace)?,
            allowed_hosts,
            ..usual
        })
    }
}

/// Whoever is on the way reads what is sent without TLS.
fn check_listen(listen: SocketAddr, has_tls: bool, insecure: bool) -> Result<(), Failure> {
    match listen.ip().is_loopback() || has_tls || insecure {
        true => Ok(()),
        false => Err(Failure::Wrong(format!(
            "--listen {listen} is not loopback, so tokens and data could be read on the way; give --tls-cert FILE and \
             --tls-key FILE, or --insecure-listen if something else protects the network"
        ))),
    }
}

impl ServeConfig {
    /// All settings with their values and where they come from.
    pub(crate) fn text(&self) -> String {
        let mut table = Table::new(["setting", "value", "from"]).whole_in_pipes();
        for Row { name, value, from } in &self.rows {
            table.row([*name, value, from]);
        }
        table.text(0)
    }

    /// The same for `/v1/config`.
    pub(crate) fn json(&self) -> serde_json::Value {
        let row =
            |Row { name, value, from }: &Row| ((*name).to_owned(), json!({ "value": value, "from": from }));
        self.rows.iter().map(row).collect::<serde_json::Map<_, _>>().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_addresses_need_tls_or_consent() {
        let check = |listen: &str, has_tls, insecure| {
            check_listen(listen.parse().unwrap(), has_tls, insecure).is_ok()
        };
        assert!(check("127.0.0.1:1", false, false) && check("[::1]:1", false, false));
        assert!(check("0.0.0.0:1", true, false) && check("10.0.0.1:1", false, true));
        assert!(!check("0.0.0.0:1", false, false) && !check("[::]:1", false, false));
    }
}
