//! The gRPC health protocol: serving until the server shuts down.

use futures_util::stream::{self, BoxStream, StreamExt};
use tokio::sync::watch;
use tonic::server::NamedService;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::Health;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::deriva::DerivaService;
use crate::plans::PlansService;
use crate::proto::deriva::deriva_server::DerivaServer;
use crate::proto::plans::plans_server::PlansServer;
use crate::proto::recipes::recipes_server::RecipesServer;
use crate::recipes::RecipesService;

/// The health service. The channel says whether the server is shutting down.
pub(crate) struct HealthService(pub(crate) watch::Receiver<bool>);

/// The services whose health can be requested; "" is the server as a whole.
const SERVICES: [&str; 4] = [
    "",
    <DerivaServer<DerivaService> as NamedService>::NAME,
    <RecipesServer<RecipesService> as NamedService>::NAME,
    <PlansServer<PlansService> as NamedService>::NAME,
];

fn response(closing: bool) -> HealthCheckResponse {
    let status = if closing { ServingStatus::NotServing } else { ServingStatus::Serving };
    HealthCheckResponse { status: status.into() }
}

fn check_name(name: &str) -> Result<(), Status> {
    match SERVICES.contains(&name) {
        true => Ok(()),
        false => Err(Status::not_found(format!("there is no service {name:?} here"))),
    }
}

#[tonic::async_trait]
impl Health for HealthService {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        check_name(&request.get_ref().service)?;
        Ok(Response::new(response(*self.0.borrow())))
    }

    type WatchStream = BoxStream<'static, Result<HealthCheckResponse, Status>>;

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        check_name(&request.get_ref().service)?;
        let closing = self.0.clone();
        let changes = stream::unfold((closing, None), |(mut closing, told)| async move {
            if told == Some(true) {
                return None;
            }
            let now = *closing.wait_for(|now| Some(*now) != told).await.ok()?;
            Some((Ok(response(now)), (closing, Some(now))))
        });
        Ok(Response::new(changes.boxed()))
    }
}
