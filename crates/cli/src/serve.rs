//! `anabranch serve`.

mod plans;

use std::net::SocketAddr;
use std::path::Path;

use anabranch_recipe::{Executor, Functions};
use anabranch_server::{AllowedHost, Service, Settings};
use anabranch_text::size;
use clap::Args;
use futures_util::FutureExt as _;
use tokio::net::TcpListener;
use tracing::{info, warn};

use crate::failure::Failure;
use crate::out;
use crate::recipe::{self, DataFolder, StoreOptions, runtime, unopened};
use crate::signals::Signals;
use crate::wait;

pub(super) const HELP: &str = "\
gRPC (anabranch.plan.v1.Plans, anabranch.recipe.v1.Recipes, deriva.Deriva) and HTTP on one port.
`anabranch recipe` with the same --data finds the server by itself. A plan of the project is called
with POST /v1/plans/NAME/run; plans are loaded again when their files change, and on SIGHUP. Ctrl-C
and SIGTERM let calls under way end, and close the store.

stdout: one line with the address, once it listens. stderr: the log, one line per event.

  anabranch serve --data store --listen 127.0.0.1:7421
  anabranch serve --project anabranch.toml --data store

Exit codes: 0 shut down; 1 failed; 2 wrong usage; 3 shut down, but data that had been acknowledged
was lost before or while it ran (the log says what).";

/// Serves a store.
#[derive(Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    data: DataFolder,
    /// Where to listen. localhost:PORT and :PORT are 127.0.0.1:PORT; port 0 is a free one.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:7421", value_parser = listen_address)]
    listen: SocketAddr,
    /// A host name by which clients may call this server, with or without a port; repeatable. Loopback and
    /// the IP address of --listen need none. Pages of the host may send requests, too.
    #[arg(long = "allow-host", value_name = "NAME")]
    allowed_hosts: Vec<AllowedHost>,
    /// Memory for the cache of values: 512MiB, 2GiB; 0 turns it off. 256MiB if not given.
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    cache: Option<u64>,
    #[command(flatten)]
    plans: plans::PlanArgs,
    #[command(flatten)]
    options: StoreOptions,
}

impl Serve {
    pub(crate) fn run(self) -> Result<(), Failure> {
        wait::on(&runtime()?, Box::pin(self.serve()))
    }

    async fn serve(self) -> Result<(), Failure> {
        raise_file_limit();
        let data = self.data.find();
        let executor = self.open(&data).await?;
        let plans = self.plans.load(executor.engine()).await?;
        let failed = |error| Failure::of(format!("cannot listen on {}: {error}", self.listen));
        let listener = TcpListener::bind(self.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let socket = recipe::bind(&data)
            .inspect_err(|error| warn!(%error, "no socket in the store's folder: local commands use TCP"))
            .ok();
        // Before anybody is told the address: a signal that comes right afterwards must be heard.
        let stopped = stopped()?;
        executor.store().announce(&reachable(address).to_string())?;
        out::data(&format!("listening on http://{address}\n"))?;
        info!(%address, "listening; try: anabranch recipe status --server http://{}", reachable(address));
        if !address.ip().is_loopback() {
            warn!(%address, "whoever can reach this address can read, write and remove everything");
        }

        let settings = Settings { allowed_hosts: self.allowed_hosts, ..Settings::default() };
        let service = Service::new(executor.clone(), settings);
        let service = match plans.clone() {
            Some(plans) => service.with_plans(plans),
            None => service,
        };
        let stopped = stopped.shared();
        let local = async {
            match socket {
                Some(socket) => service.serve_local(socket, stopped.clone()).await.cut,
                None => 0,
            }
        };
        let all = async { tokio::join!(service.serve(listener, service.router(), stopped.clone()), local) };
        let (served, cut) = tokio::select! {
            served = all => served,
            () = plans::reload_on_hangup(plans) => unreachable!("it never ends"),
        };
        // The next owner replaces a socket that cannot be removed.
        let _ = recipe::remove(&data);
        executor.store().clone().close().await?;
        match served.cut + cut {
            0 => info!("shut down"),
            cut => warn!(cut, "shut down, and cut connections with calls under way"),
        }
        self.options.check(&executor.store().stats().health)
    }

    async fn open(&self, data: &Path) -> Result<Executor, Failure> {
        let mut config = self.options.config();
        config.cache_bytes = self.cache.unwrap_or(config.cache_bytes);
        let executor = Executor::open_with(data, Functions::builtin(), config)
            .await
            .map_err(|error| unopened(data, &error))?;
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
}

/// Reads `--listen`. A host name may have several addresses, so `localhost` is the only one.
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

/// Raises the limit of open files to as many as the process may have: each connection and each large upload is one.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum && setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_err() {
        warn!(?current, "the limit of open files could not be raised");
    }
}

/// Where this machine's own programs reach what listens everywhere.
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

/// Is over when the process is asked to end.
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
