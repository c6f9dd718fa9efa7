//! `anabranch serve`.

mod config;
mod datasets;
mod plans;
mod resolver;

use std::io::IsTerminal as _;
use std::net::SocketAddr;

use anabranch_content::Store;
use anabranch_engine::Engine;
use anabranch_recipe::{Error, Executor, Functions};
use anabranch_server::{Access, Listeners, Plans, Service, Tls, TokenFiles};
use clap::Args;
use tokio::net::TcpListener;
use tracing::{info, warn};

use self::datasets::{DatasetArgs, open_runs};
use crate::failure::Failure;
use crate::local_token;
use crate::log::LogOption;
use crate::out;
use crate::recipe::{self, DataFolder, StoreOptions, check_losses, unopened};
use crate::signals::Signals;
use crate::wait;

pub(super) const HELP: &str = "\
gRPC (anabranch.plan.v1.Plans, anabranch.recipe.v1.Recipes, deriva.Deriva) and HTTP on one port.
`anabranch recipe` with the same --data finds the server by itself. A plan of the project is called
with POST /v1/plans/NAME/run; plans are loaded again when their files change, and on SIGHUP. Ctrl-C
and SIGTERM let calls under way end, and close the store.

Requests need a token: `Authorization: Bearer TOKEN`. The file DATA/token has one that may do
everything; `anabranch token add NAME` makes others. Every setting is an option, an environment
variable and a field of [serve] in anabranch.toml: --max-body, ANABRANCH_MAX_BODY, max_body.

stdout: one line with the address, once it listens. stderr: the log, one line per event.

  anabranch serve --data store --listen 127.0.0.1:7421
  anabranch serve --project anabranch.toml --data store
  curl -H \"Authorization: Bearer $(cat store/token)\" http://127.0.0.1:7421/v1/status
  anabranch serve --listen 0.0.0.0:7421 --tls-cert cert.pem --tls-key key.pem --allow-host HOST

Exit codes: 0 shut down; 1 failed; 2 wrong usage; 3 shut down, but data that had been acknowledged
was lost before or while it ran (the log says what).";

use config::{ConfigArgs, ServeConfig};
pub(crate) use resolver::Sources;

/// The threads for decoding large messages and for resolving host names.
const BLOCKING_THREADS: usize = 256;

/// Serves a store.
#[derive(Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    data: DataFolder,
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    plans: plans::PlanArgs,
    #[command(flatten)]
    options: StoreOptions,
    #[command(flatten)]
    datasets: DatasetArgs,
    /// Prints all settings and where each comes from, and ends.
    #[arg(long)]
    print_config: bool,
    /// Where the options came from.
    #[arg(skip)]
    pub(crate) sources: Sources,
    /// `--log` of all commands, if it was given.
    #[arg(skip)]
    pub(crate) log: Option<LogOption>,
}

impl Serve {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let config = self.settings()?;
        if self.print_config {
            return out::data(&config.text());
        }
        config.log.start();
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(config.threads).max_blocking_threads(BLOCKING_THREADS);
        let runtime = wait::runtime(&mut builder)?;
        wait::and_end(runtime, Box::pin(serve(config, stopped, |_| std::future::pending())))
    }

    /// The settings: flags, environment and project file together.
    pub(crate) fn settings(&self) -> Result<ServeConfig, Failure> {
        ServeConfig::of(self)
    }
}

/// Serves until the future from `stopped` completes. `meanwhile` runs beside it with the server's address, and is
/// dropped at the end.
pub(crate) async fn serve<M, S>(
    config: ServeConfig,
    stopped: impl FnOnce() -> Result<S, Failure>,
    meanwhile: impl FnOnce(SocketAddr) -> M,
) -> Result<(), Failure>
where
    M: Future<Output = ()>,
    S: Future<Output = ()>,
{
    raise_file_limit();
    let data = config.data.clone();
    let executor = open(&config).await?;
    let plans = config.plans.load(config.project.as_deref(), executor.engine()).await?;
    let failed = |error| Failure::of(format!("cannot listen on {}: {error}", config.listen));
    let listener = TcpListener::bind(config.listen).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let socket = recipe::bind(&data)
        .inspect_err(|error| warn!(%error, "no socket in the store's folder: local commands use TCP"))
        .ok();
    let service = with_parts(service(&config, &executor, address)?, &config, plans.clone())?;
    // Signals are handled before the address is announced, so that a signal right after it is not lost.
    let stopped = stopped()?;
    let hangups = plans.as_ref().and_then(|_| plans::hangups());
    announce(&config, &executor, address)?;
    let listeners = Listeners { network: Some(listener), local: socket };
    let meanwhile = async {
        meanwhile(reachable(address)).await;
        std::future::pending::<()>().await;
    };
    let served = tokio::select! {
        served = service.serve(listeners, stopped) => served,
        () = plans::reload_on(hangups, plans) => unreachable!("it never ends"),
        () = service.count_engine_events() => unreachable!("it counts for as long as the server runs"),
        () = meanwhile => unreachable!("it waits for the end"),
    };
    // The next owner replaces a socket that cannot be removed.
    let _ = recipe::remove(&data);
    executor.store().clone().close().await?;
    match served.cut {
        0 => info!("shut down"),
        cut => warn!(cut, "shut down, and cut connections with calls under way"),
    }
    check_losses(&executor.store().stats().health, config.accept_loss)
}

/// The service with its runs, dataset jobs and plans.
fn with_parts(service: Service, config: &ServeConfig, plans: Option<Plans>) -> Result<Service, Failure> {
    let engine = service.executor().engine().clone();
    let runs = open_runs(&config.data)?;
    let jobs = config.datasets.open(&engine, &runs)?;
    let service = service.with_runs(runs).with_datasets(jobs);
    Ok(match plans {
        Some(plans) => service.with_plans(plans),
        None => service,
    })
}

/// Opens the store.
async fn open(config: &ServeConfig) -> Result<Executor, Failure> {
    let data = &config.data;
    let store = anabranch_content::Config {
        quota_bytes: config.quota,
        cache_bytes: config.cache,
        ..anabranch_content::Config::default()
    };
    let engine = anabranch_engine::Config {
        cpu_threads: config.cpu_threads,
        batch_threads: config.batch_threads,
        ..anabranch_engine::Config::default()
    };
    let engine = Engine::new(&engine).map_err(|error| Failure::of(format!("the engine: {error}")))?;
    let setup = anabranch_recipe::Config {
        memory_bytes: config.function_memory,
        ..anabranch_recipe::Config::default()
    };
    let opened = match Store::open(data, store) {
        Ok(store) => Executor::open_on(store, Functions::builtin(), engine, setup).await,
        Err(error) => Err(Error::Store(error)),
    };
    let executor = opened.map_err(|error| unopened(data, &error))?;
    let store = executor.store().stats();
    info!(
        store = %data.display(),
        blobs = store.blobs,
        recipes = store.derivations,
        used_bytes = store.used_bytes,
        "opened the store"
    );
    Ok(executor)
}

/// The service with its tokens and its certificate.
fn service(config: &ServeConfig, executor: &Executor, address: SocketAddr) -> Result<Service, Failure> {
    let tokens = TokenFiles::open(&config.token_file, &crate::token::file_in(&config.data))
        .map_err(|error| Failure::Failed(Box::new(error)))?;
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    let console = format!("{scheme}://{}/", reachable(address));
    info!(token_file = %config.token_file.display(), %console, "requests need a token");
    // The token is a secret, so it must not be in a log that is kept.
    if std::io::stderr().is_terminal() {
        out::note(&format!("console: {console}#token={}", tokens.local().as_str()));
    }
    let service = Service::new(executor.clone(), config.settings.clone())
        .with_access(Access::with_tokens(tokens, config.anonymous))
        .with_config(config.json());
    match &config.tls {
        None => Ok(service),
        Some((certificate, key)) => {
            let tls = Tls::open(certificate, key).map_err(|error| Failure::Failed(Box::new(error)))?;
            Ok(service.with_tls(tls))
        }
    }
}

/// Announces the address of the server to other commands and to people.
fn announce(config: &ServeConfig, executor: &Executor, address: SocketAddr) -> Result<(), Failure> {
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    let local = format!("{scheme}://{}", reachable(address));
    local_token::note(&config.data, &config.token_file)?;
    executor.store().announce(&local)?;
    out::data(&format!("listening on {scheme}://{address}\n"))?;
    info!(%address, "listening; try: anabranch recipe status --server {local}");
    if !address.ip().is_loopback() && config.tls.is_none() {
        warn!(%address, "without TLS, anyone on the network path can read tokens and data");
    }
    if let Some(scope) = config.anonymous {
        warn!(%address, "anyone who can reach this address has the scope `{scope}` without a token");
    }
    Ok(())
}

/// Parses `--listen`. The only host name is `localhost`, because a host name may have several addresses.
fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let is_local = |host: &str| host.is_empty() || host.eq_ignore_ascii_case("localhost");
    let local = text.split_once(':').filter(|(host, _)| is_local(host));
    let parsed = match local {
        Some((_, port)) => port.parse().map(|port| SocketAddr::from(([127, 0, 0, 1], port))).ok(),
        None => text.parse().ok(),
    };
    parsed.ok_or_else(|| {
        "expected IP:PORT, localhost:PORT or :PORT, as in 127.0.0.1:7421, 0.0.0.0:7421 or [::1]:7421"
            .to_owned()
    })
}

/// Raises the limit of open files to the maximum. Each connection and each large upload needs one.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_err() {
        warn!(?current, "the limit of open files could not be raised");
    }
}

/// The address at which programs on this machine reach a server that listens on all addresses.
fn reachable(address: SocketAddr) -> SocketAddr {
    let mut reachable = address;
    if address.ip().is_unspecified() {
        reachable.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    reachable
}

/// Completes when the process is asked to end.
pub(crate) fn stopped() -> Result<impl Future<Output = ()>, Failure> {
    let mut signals = Signals::listen()?;
    Ok(async move { signals.next().await })
}

#[cfg(test)]
mod tests {
    use super::listen_address;

    #[test]
    fn addresses_to_listen_on() {
        let check = |text: &str, expected: &str| {
            assert_eq!(listen_address(text).unwrap().to_string(), expected);
        };
        check(":7421", "127.0.0.1:7421");
        check("localhost:7421", "127.0.0.1:7421");
        check("Localhost:0", "127.0.0.1:0");
        check("0.0.0.0:7421", "0.0.0.0:7421");
        check("[::1]:50051", "[::1]:50051");
        for wrong in ["", ":", "localhost", "localhost:http", ":99999", "example.com:7421", "::1:7421x"] {
            assert!(listen_address(wrong).unwrap_err().starts_with("expected IP:PORT"), "{wrong}");
        }
    }
}
