//! The settings of `serve`: flags win over environment variables, which win over `[serve]` of the project file.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anabranch_plan::project::Project;
use anabranch_server::{AllowedHost, Scope, Settings};
use anabranch_text::{duration, size};
use clap::Args;
use serde_json::json;
use tracing_subscriber::filter::LevelFilter;

use super::datasets::DatasetConfig;
use super::plans::PlanConfig;
use super::resolver::{Resolver, Row, count, path, positive};
use super::{Serve, listen_address};
use crate::failure::Failure;
use crate::log::LogOption;
use crate::recipe::quota;
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
    /// Commands with the same --data find it.
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
    /// Threads that compute plans: cpu_threads of the project file's engine table, or the number of cores if not given.
    #[arg(long, value_name = "COUNT", env = "ANABRANCH_CPU_THREADS", hide_env_values = true, value_parser = positive)]
    cpu_threads: Option<usize>,
    /// Threads that compute recipes and datasets, with a lower priority than those of plans: the number of cores plus one
    /// if not given.
    #[arg(long, value_name = "COUNT", env = "ANABRANCH_BATCH_THREADS", hide_env_values = true, value_parser = positive)]
    batch_threads: Option<usize>,
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
    /// Runs of plans at a time, and as many other requests; at most half of each for one client: 2048 if not given.
    #[arg(long, value_name = "COUNT", env = "ANABRANCH_MAX_IN_FLIGHT", hide_env_values = true, value_parser = positive)]
    max_in_flight: Option<usize>,
    /// The most plan runs that wait for a slot; a separate queue of the same size is for other requests. Further requests
    /// get 503 or 429 with Retry-After: 2048 if not given.
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

/// The effective settings.
pub(crate) struct ServeConfig {
    /// The project file.
    pub(crate) project: Option<PathBuf>,
    pub(crate) log: LogOption,
    pub(crate) listen: SocketAddr,
    pub(crate) data: PathBuf,
    pub(crate) token_file: PathBuf,
    pub(crate) anonymous: Option<Scope>,
    /// The certificate and its key.
    pub(crate) tls: Option<(PathBuf, PathBuf)>,
    pub(crate) cache: u64,
    pub(crate) quota: Option<u64>,
    /// Whether lost data is accepted, so that it does not change the exit code.
    pub(crate) accept_loss: bool,
    pub(crate) function_memory: u32,
    pub(crate) threads: usize,
    pub(crate) cpu_threads: usize,
    pub(crate) batch_threads: usize,
    pub(crate) settings: Settings,
    pub(crate) plans: PlanConfig,
    pub(crate) datasets: DatasetConfig,
    rows: Vec<Row>,
}

impl ServeConfig {
    /// The settings from a command line, its environment and its project file.
    pub(super) fn of(serve: &Serve) -> Result<ServeConfig, Failure> {
        let Serve { data, config: args, plans, options, datasets, sources, log, .. } = serve;
        let project = args.find_project()?;
        let mut from = Resolver::new(project.as_ref(), sources);
        from.project_file();
        let log = from.pick("log", *log, str::parse)?.unwrap_or_default().or_level(LevelFilter::INFO);
        from.show(&log);
        let local = SocketAddr::from(([127, 0, 0, 1], 7421));
        let listen = from.shown("listen", args.listen, listen_address, local, SocketAddr::to_string)?;
        let folder = from.pick("data", data.given().map(Path::to_owned), path)?;
        let folder = folder.map_or_else(|| data.find(), Ok)?;
        from.show(&folder.display());
        let token_file = from.pick("token_file", args.token_file.clone(), path)?;
        let token_file = token_file.unwrap_or_else(|| folder.join("token"));
        from.show(&token_file.display());
        let scope = |text: &str| text.parse::<Scope>().map_err(|error| error.to_string());
        let anonymous = from.optional("anonymous", args.anonymous, scope, Scope::to_string)?;
        let tls = args.tls(&mut from)?;
        let insecure = from.switch("insecure_listen", args.insecure_listen)?;
        check_listen(listen, tls.is_some(), insecure)?;
        let host = |text: &str| text.parse::<AllowedHost>().map_err(|error| error.to_string());
        let allowed_hosts = from.list("allow_hosts", &args.allow_hosts, host, AllowedHost::to_string)?;
        let cache = from.size("cache", args.cache, anabranch_content::Config::default().cache_bytes)?;
        let quota = from.optional("quota", options.quota(), quota, |bytes| size::format(*bytes))?;
        let accept_loss = from.switch("accept_loss", options.accept_loss())?;
        let memory = from.size("function_memory", args.function_memory, 256 << 20)?;
        let function_memory =
            u32::try_from(memory).map_err(|_| Failure::of("function_memory: at most 4 GiB".to_owned()))?;
        let threads = from.positive("threads", args.threads, 2)?;
        let cpu_threads = args.cpu_threads(&mut from)?;
        let usual = anabranch_engine::Config::default().batch_threads;
        let batch_threads = from.positive("batch_threads", args.batch_threads, usual)?;
        let settings = args.bounds(&mut from, allowed_hosts)?;
        let plans = plans.resolve(&mut from)?;
        let datasets = datasets.resolve(&folder, &mut from)?;
        let rows = from.rows();
        Ok(ServeConfig {
            project: project.map(|project| project.file),
            log,
            listen,
            data: folder,
            token_file,
            anonymous,
            tls,
            cache,
            quota,
            accept_loss,
            function_memory,
            threads,
            cpu_threads,
            batch_threads,
            settings,
            plans,
            datasets,
            rows,
        })
    }
}

impl ConfigArgs {
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
        let certificate = from.path("tls_cert", self.tls_cert.as_ref())?;
        let key = from.path("tls_key", self.tls_key.as_ref())?;
        match (certificate, key) {
            (Some(certificate), Some(key)) => Ok(Some((certificate, key))),
            (None, None) => Ok(None),
            (Some(_), None) => Err(Failure::Wrong("--tls-cert needs --tls-key".to_owned())),
            (None, Some(_)) => Err(Failure::Wrong("--tls-key needs --tls-cert".to_owned())),
        }
    }

    fn cpu_threads(&self, from: &mut Resolver<'_>) -> Result<usize, Failure> {
        let given = from.pick("cpu_threads", self.cpu_threads, positive)?;
        let threads =
            given.or_else(|| from.of_engine(|engine| engine.cpu_threads.map(|count| count as usize)));
        let threads = threads.unwrap_or_else(|| anabranch_engine::Config::default().cpu_threads);
        from.show(&threads);
        Ok(threads)
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

/// Refuses to listen on a network without TLS, because others could read the traffic.
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
    /// All settings with their values and sources.
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
    use std::collections::BTreeSet;

    use anabranch_plan::project::ServeSettings;
    use clap::{CommandFactory as _, Parser};

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        serve: Serve,
    }

    /// The options that are not settings of a server.
    const NO_SETTINGS: [&str; 2] = ["project", "print_config"];

    #[test]
    fn every_option_is_a_variable_and_a_field_and_is_printed() {
        // `--log` is an option of all commands.
        let mut options = BTreeSet::from(["log".to_owned()]);
        for option in Command::command().get_arguments() {
            let name = option.get_id().as_str();
            if name != "print_config" {
                let variable = option.get_env().map(|name| name.to_string_lossy().into_owned());
                assert_eq!(variable, Some(format!("ANABRANCH_{}", name.to_uppercase())), "{name}");
            }
            if !NO_SETTINGS.contains(&name) {
                options.insert(name.to_owned());
            }
        }
        let fields: BTreeSet<String> = ServeSettings::names().map(str::to_owned).collect();
        assert_eq!(options, fields);
        let serve = Command::try_parse_from(["serve"]).unwrap().serve;
        let config = ServeConfig::of(&serve).unwrap();
        let printed: BTreeSet<String> = config.rows.iter().map(|row| row.name.to_owned()).collect();
        assert_eq!(printed, fields.into_iter().chain(["project".to_owned()]).collect());
        assert!(config.rows.iter().all(|row| !row.value.is_empty()));
    }

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
