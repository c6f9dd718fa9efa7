//! `anabranch serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use anabranch_recipe::{Executor, Functions};
use anabranch_server::{Service, Settings};
use clap::Args;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::failure::Failure;
use crate::out;
use crate::recipe::{runtime, unopened};

pub(super) const HELP: &str = "\
gRPC (anabranch.recipe.v1.Recipes, deriva.Deriva) and HTTP on one port. `anabranch recipe` with the
same --data finds the server by itself. Ctrl-C and SIGTERM let calls under way end, and close the
store.

stdout: one line with the address, once it listens.

  anabranch serve --data store --listen 127.0.0.1:7421

Exit codes: 0 came to rest; 1 failed; 2 wrong usage.";

/// Serves a store.
#[derive(Args)]
pub(crate) struct Serve {
    /// The folder of the store; made if it is not there.
    #[arg(
        long,
        value_name = "DIR",
        env = "ANABRANCH_DATA",
        default_value = ".anabranch",
        hide_env_values = true
    )]
    data: PathBuf,
    /// Where to listen; port 0 is a free one.
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:7421")]
    listen: SocketAddr,
}

impl Serve {
    pub(crate) fn run(self) -> Result<(), Failure> {
        runtime()?.block_on(self.serve())
    }

    async fn serve(self) -> Result<(), Failure> {
        let executor = Executor::open(&self.data, Functions::builtin()).await;
        let executor = executor.map_err(|error| unopened(&self.data, &error))?;
        let failed = |error| Failure::of(format!("cannot listen on {}: {error}", self.listen));
        let listener = TcpListener::bind(self.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        // Before anybody is told: who stops the server must not find it deaf.
        let stopped = stopped()?;
        executor.store().announce(&reachable(address).to_string())?;
        out::data(&format!("listening on http://{address}\n"))?;
        out::note(&format!(
            "store {}; try: anabranch recipe status --server http://{}",
            self.data.display(),
            reachable(address)
        ));

        if !address.ip().is_loopback() {
            out::note("warning: whoever can reach this address can read, write and remove everything");
        }

        let service = Service::new(executor.clone(), Settings::default());
        let served = service.serve(listener, service.router(), stopped).await;
        executor.store().clone().close().await?;
        let cut = out::count(served.cut as u64, "connection");
        out::note(&match served.cut {
            0 => "came to rest".to_owned(),
            _ => format!("came to rest; {cut} cut with calls under way"),
        });
        Ok(())
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
fn stopped() -> Result<impl Future<Output = ()>, Failure> {
    let listen =
        |kind| signal(kind).map_err(|error| Failure::of(format!("signals cannot be heard: {error}")));
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}
