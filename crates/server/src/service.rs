//! The service: what calls need, and where they go.

use std::sync::Arc;

use anabranch_recipe::Executor;
use axum::Router;
use axum::extract::Request;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use tokio::sync::{Semaphore, watch};
use tonic::Code;
use tonic::codec::CompressionEncoding;
use tonic_health::pb::health_server::HealthServer;

use crate::deriva::OfDeriva;
use crate::failure::Failure;
use crate::guard::{Hosts, guard};
use crate::health::OfHealth;
use crate::proto::DESCRIPTORS;
use crate::proto::deriva::deriva_server::DerivaServer;
use crate::proto::recipes::recipes_server::RecipesServer;
use crate::recipes::OfRecipes;
use crate::settings::Settings;
use crate::wire::Target;

/// Recipes over gRPC and HTTP. Clones are handles to the same service.
#[derive(Clone)]
pub struct Service {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) executor: Executor,
    pub(crate) settings: Settings,
    /// The hosts that requests may name.
    pub(crate) hosts: Hosts,
    /// True once the server shuts down.
    pub(crate) closing: watch::Sender<bool>,
    /// An archive on its way keeps one of the store's few threads waiting for the client, so there is one at a time.
    pub(crate) archives: Arc<Semaphore>,
}

impl Service {
    /// A service for an executor.
    pub fn new(executor: Executor, settings: Settings) -> Service {
        let archives = Arc::new(Semaphore::new(1));
        let closing = watch::Sender::new(false);
        let hosts = Hosts::new(settings.allowed_hosts.clone());
        Service { shared: Arc::new(Shared { executor, settings, hosts, closing, archives }) }
    }

    /// The executor.
    pub fn executor(&self) -> &Executor {
        &self.shared.executor
    }

    /// All calls of gRPC and HTTP, behind the request guard.
    pub fn router(&self) -> Router {
        use CompressionEncoding::Gzip;
        let most = self.shared.settings.message_most;
        let deriva = DerivaServer::new(OfDeriva(Arc::clone(&self.shared)))
            .max_decoding_message_size(most)
            .accept_compressed(Gzip)
            .send_compressed(Gzip);
        let recipes = RecipesServer::new(OfRecipes(Arc::clone(&self.shared)))
            .max_decoding_message_size(most)
            .accept_compressed(Gzip)
            .send_compressed(Gzip);
        let reflection = || {
            tonic_reflection::server::Builder::configure().register_encoded_file_descriptor_set(DESCRIPTORS)
        };
        let whole = "the descriptors were compiled with this crate";
        Router::new()
            .route_service("/deriva.Deriva/{method}", deriva)
            .route_service("/anabranch.recipe.v1.Recipes/{method}", recipes)
            .route_service(
                "/grpc.health.v1.Health/{method}",
                HealthServer::new(OfHealth(self.shared.closing.subscribe())),
            )
            .route_service(
                "/grpc.reflection.v1.ServerReflection/{method}",
                reflection().build_v1().expect(whole),
            )
            .route_service(
                "/grpc.reflection.v1alpha.ServerReflection/{method}",
                reflection().build_v1alpha().expect(whole),
            )
            .merge(crate::http::routes(&self.shared))
            .fallback(nothing_there)
            .layer(from_fn_with_state(Arc::clone(&self.shared), guard))
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Service").field("executor", &self.shared.executor).finish_non_exhaustive()
    }
}

impl Shared {
    /// The address that a target means.
    pub(crate) async fn find(&self, target: &Target) -> Result<anabranch_content::Address, Failure> {
        match target {
            Target::Address(address) => Ok(*address),
            Target::Name(name) => Ok(self.executor.find(name).await?),
        }
    }

    /// A list that is not too long for one call.
    pub(crate) fn check_count(&self, field: &str, count: usize) -> Result<(), Failure> {
        let most = self.settings.addresses_most;
        match count <= most {
            true => Ok(()),
            false => Err(Failure::new(
                Code::ResourceExhausted,
                format!("`{field}` has {count} entries; one call takes {most}, ask for more in several"),
            )),
        }
    }
}

/// What callers of no known service are told, in their own protocol.
async fn nothing_there(request: Request) -> Response {
    let kind = request.headers().get("content-type").and_then(|kind| kind.to_str().ok());
    let path = request.uri().path();
    match kind.is_some_and(|kind| kind.starts_with("application/grpc")) {
        true => {
            let failure = Failure::new(Code::Unimplemented, format!("there is no call {path} here"));
            tonic::Status::from(failure).into_http::<axum::body::Body>()
        }
        false => Failure::new(Code::NotFound, format!("there is nothing at {path}")).into_response(),
    }
}
