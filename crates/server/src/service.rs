//! The service: what calls need, and where they go.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anabranch_engine::clock::Clock;
use anabranch_engine::options::Class;
use anabranch_recipe::{Draft, Error, Executor};
use axum::Router;
use axum::extract::Request;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use tokio::sync::{Semaphore, watch};
use tonic::Code;
use tonic::codec::CompressionEncoding;
use tonic_health::pb::health_server::HealthServer;

use crate::access::Access;
use crate::budget::ByteBudget;
use crate::connections::Traffic;
use crate::datasets::Datasets;
use crate::deriva::OfDeriva;
use crate::failure::Failure;
use crate::guard::{Hosts, guard, is_grpc_path};
use crate::health::OfHealth;
use crate::incoming::{Framing, Holding};
use crate::load::{SlotBounds, Slots};
use crate::metrics::{MetricsPart, RequestMetrics};
use crate::observe::{RequestIds, observe};
use crate::plans::{OfPlans, Plans};
use crate::proto::DESCRIPTORS;
use crate::proto::deriva::deriva_server::DerivaServer;
use crate::proto::plans::plans_server::PlansServer;
use crate::proto::recipes::recipes_server::RecipesServer;
use crate::recipes::OfRecipes;
use crate::runs::{EndedRun, RunDetail, RunKind, RunState, Runs};
use crate::settings::Settings;
use crate::tls::Tls;
use crate::wire::Target;

/// Recipes over gRPC and HTTP. Clones are handles to the same service.
#[derive(Clone)]
pub struct Service {
    pub(crate) shared: Arc<Shared>,
}

/// How much a server has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Open connections.
    pub connections: usize,
    /// Calls that are not answered, or whose answers are not read to their end.
    pub calls: usize,
    /// Bytes of messages and bodies whose calls are not answered yet.
    pub unfinished_bytes: usize,
    /// Blobs of more than 64 KiB that are being put.
    pub uploads: usize,
}

pub(crate) struct Shared {
    pub(crate) executor: Executor,
    pub(crate) settings: Settings,
    /// The clock of timeouts that concern clients.
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) traffic: Arc<Traffic>,
    /// The bytes of requests that are not answered.
    pub(crate) budget: ByteBudget,
    /// Each large blob on its way in is an open file.
    pub(crate) uploads: Arc<Semaphore>,
    /// The plans of a project, if the server has one.
    pub(crate) plans: Option<Plans>,
    /// Who may call.
    pub(crate) access: Access,
    /// Requests that the server works on.
    pub(crate) slots: Arc<Slots>,
    /// Requests whose answers are not read to their end.
    pub(crate) open_calls: Arc<Slots>,
    /// The certificate of the listener on TCP.
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) request_ids: RequestIds,
    pub(crate) metrics: RequestMetrics,
    /// Metrics of other parts.
    pub(crate) metrics_parts: Vec<MetricsPart>,
    pub(crate) engine_metrics: Mutex<Option<anabranch_engine::metrics::Metrics>>,
    /// The settings that `/v1/config` shows.
    pub(crate) config: serde_json::Value,
    /// When the service was made.
    pub(crate) began: Instant,
    /// The hosts that requests may name.
    pub(crate) hosts: Hosts,
    /// True once the server shuts down.
    pub(crate) closing: watch::Sender<bool>,
    /// An archive on its way keeps one of the store's few threads waiting for the client, so there is one at a time.
    pub(crate) archives: Arc<Semaphore>,
    pub(crate) runs: Runs,
    pub(crate) datasets: Option<Datasets>,
}

impl Service {
    /// A service for an executor.
    pub fn new(executor: Executor, settings: Settings) -> Service {
        let clock = Arc::clone(executor.engine().clock());
        Service::with_clock(executor, settings, clock)
    }

    /// The same, with a clock of its own for the timeouts of clients.
    pub fn with_clock(executor: Executor, settings: Settings, clock: Arc<dyn Clock>) -> Service {
        let Settings { in_flight_most, queue_most, queue_wait, open_most, .. } = settings;
        let slots = SlotBounds { most: in_flight_most, queue_most, wait: queue_wait };
        let open_calls = SlotBounds { most: open_most, queue_most: 0, wait: queue_wait };
        let shared = Shared {
            slots: Slots::new(slots, Arc::clone(&clock)),
            open_calls: Slots::new(open_calls, Arc::clone(&clock)),
            tls: None,
            request_ids: RequestIds::default(),
            metrics: RequestMetrics::default(),
            metrics_parts: Vec::new(),
            engine_metrics: Mutex::default(),
            config: serde_json::json!({}),
            began: clock.now(),
            budget: ByteBudget::new(settings.unfinished_most, settings.unfinished_wait, Arc::clone(&clock)),
            uploads: Arc::new(Semaphore::new(settings.uploads_most)),
            hosts: Hosts::new(settings.allowed_hosts.clone()),
            plans: None,
            access: Access::open(),
            traffic: Arc::default(),
            closing: watch::Sender::new(false),
            archives: Arc::new(Semaphore::new(1)),
            runs: Runs::in_memory(Arc::clone(executor.engine().pool(Class::Batch))),
            datasets: None,
            executor,
            settings,
            clock,
        };
        Service { shared: Arc::new(shared) }
    }

    /// The same service for callers with tokens; without this, everybody may do everything.
    ///
    /// # Panics
    /// If the service has been cloned or its router was made.
    pub fn with_access(mut self, access: Access) -> Service {
        self.setup().access = access;
        self
    }

    /// The same service with a registry of runs that is kept on disk.
    ///
    /// # Panics
    /// If the service has been cloned or its router was made.
    #[must_use]
    pub fn with_runs(mut self, runs: Runs) -> Service {
        self.setup().runs = runs;
        self
    }

    /// The same service with dataset jobs.
    ///
    /// # Panics
    /// If the service has been cloned or its router was made.
    #[must_use]
    pub fn with_datasets(mut self, datasets: Datasets) -> Service {
        self.setup().datasets = Some(datasets);
        self
    }

    /// The dataset jobs, if there are any.
    pub fn datasets(&self) -> Option<&Datasets> {
        self.shared.datasets.as_ref()
    }

    /// The registry of runs.
    pub fn runs(&self) -> &Runs {
        &self.shared.runs
    }

    /// The same service with the plans of a project.
    ///
    /// # Panics
    /// If the service has been cloned or its router was made.
    pub fn with_plans(mut self, plans: Plans) -> Service {
        self.setup().plans = Some(plans);
        self
    }

    /// The same service with TLS on its TCP listener.
    ///
    /// # Panics
    /// If the service has been cloned or its router was made.
    pub fn with_tls(mut self, tls: Tls) -> Service {
        self.setup().tls = Some(Arc::new(tls));
        self
    }

    /// The same service with settings for `/v1/config` to show: an object of `{"value", "from"}`, without secrets.
    ///
    /// # Panics
    /// If the service has been cloned or its router was made.
    pub fn with_config(mut self, config: serde_json::Value) -> Service {
        self.setup().config = config;
        self
    }

    /// The parts of a service that is being set up.
    pub(crate) fn setup(&mut self) -> &mut Shared {
        Arc::get_mut(&mut self.shared).expect("a service is set up before it is used")
    }

    /// How much there is to do now.
    pub fn load(&self) -> Load {
        let Shared { traffic, budget, uploads, settings, .. } = &*self.shared;
        Load {
            connections: traffic.connections.load(Ordering::Relaxed),
            calls: traffic.calls.load(Ordering::Relaxed),
            unfinished_bytes: budget.taken(),
            uploads: settings.uploads_most - uploads.available_permits(),
        }
    }

    /// The executor.
    pub fn executor(&self) -> &Executor {
        &self.shared.executor
    }

    /// All calls of gRPC and HTTP, behind the request guard.
    pub fn router(&self) -> Router {
        use CompressionEncoding::Gzip;
        let most = self.shared.settings.message_most;
        let deriva = |most| {
            DerivaServer::new(OfDeriva(Arc::clone(&self.shared)))
                .max_decoding_message_size(most)
                .accept_compressed(Gzip)
                .send_compressed(Gzip)
        };
        let recipes = RecipesServer::new(OfRecipes(Arc::clone(&self.shared)))
            .max_decoding_message_size(most)
            .accept_compressed(Gzip)
            .send_compressed(Gzip);
        let plans = PlansServer::new(OfPlans(Arc::clone(&self.shared)))
            .max_decoding_message_size(most)
            .accept_compressed(Gzip)
            .send_compressed(Gzip);
        let reflection = || {
            tonic_reflection::server::Builder::configure().register_encoded_file_descriptor_set(DESCRIPTORS)
        };
        let whole = "the descriptors were compiled with this crate";
        Router::new()
            .route_service(PUT_LEAF, deriva(self.shared.leaf_message_most()))
            .route_service("/deriva.Deriva/{method}", deriva(most))
            .route_service("/anabranch.recipe.v1.Recipes/{method}", recipes)
            .route_service("/anabranch.plan.v1.Plans/{method}", plans)
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
            .merge(crate::console::routes())
            .fallback(nothing_there)
            .layer(from_fn_with_state(Arc::clone(&self.shared), guard))
            .layer(from_fn_with_state(Arc::clone(&self.shared), observe))
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Service").field("executor", &self.shared.executor).finish_non_exhaustive()
    }
}

/// The most names of one answer: with names of 255 bytes it fits into the 4 MiB that clients of gRPC read.
const NAMES_MOST: usize = 10_000;

/// A page of names.
pub(crate) struct Names {
    pub(crate) names: Vec<(String, anabranch_content::Address)>,
    pub(crate) next: Option<String>,
}

/// A get that takes longer is listed as a run.
const LONG_GET: Duration = Duration::from_millis(50);

/// The call whose message is a whole leaf.
const PUT_LEAF: &str = "/deriva.Deriva/PutLeaf";

/// The bytes of a message around its leaf: a field's number and length.
const LEAF_ENVELOPE: usize = 16;

impl Shared {
    /// A leaf of the largest size, as a message.
    fn leaf_message_most(&self) -> usize {
        self.settings.leaf_most.saturating_add(LEAF_ENVELOPE)
    }

    /// How long the bytes of a request stay in memory.
    pub(crate) fn holding<B>(&self, request: &hyper::Request<B>) -> Holding {
        match request.uri().path() {
            PUT_LEAF => Holding::Message(Framing::new(self.leaf_message_most())),
            "/v1/blobs" => Holding::Piece,
            path if is_grpc_path(path) => Holding::Message(Framing::new(self.settings.message_most)),
            _ => Holding::Whole,
        }
    }

    /// The address that a target means.
    pub(crate) async fn find(&self, target: &Target) -> Result<anabranch_content::Address, Failure> {
        match target {
            Target::Address(address) => Ok(*address),
            Target::Name(name) => Ok(self.executor.find(name).await?),
        }
    }

    /// The names behind `after`, at most so many, and where the next page begins if there is one.
    pub(crate) async fn names(&self, after: &str, most: usize) -> Result<Names, Failure> {
        let most = if most == 0 { NAMES_MOST } else { most.min(NAMES_MOST) };
        let mut names = self.executor.store().names().await?;
        names.drain(..names.partition_point(|(name, _)| name.as_str() <= after));
        let is_last = names.len() <= most;
        names.truncate(most);
        let next = names.last().filter(|_| !is_last).map(|(name, _)| name.clone());
        Ok(Names { names, next })
    }

    /// Whether recipes have the parameters and as many inputs as their functions take. Functions that are not here are
    /// the executor's to judge.
    pub(crate) fn check_drafts(&self, drafts: &[Draft]) -> Result<(), Failure> {
        for Draft { function, inputs, params } in drafts {
            let Some(known) = self.executor.functions().get(function) else { continue };
            anabranch_recipe::check(known.signature(), inputs.len(), params)
                .map_err(|fault| Failure::new(Code::InvalidArgument, format!("`{function}`: {fault}")))?;
        }
        Ok(())
    }

    /// Records a get that took long or failed as a run.
    pub(crate) fn record_get(&self, name: &str, started: Instant, error: Option<&Error>) {
        let duration = self.executor.engine().clock().now().saturating_duration_since(started);
        let is_absent = matches!(error, Some(Error::NotFound { .. } | Error::NoSuchName { .. }));
        if is_absent || (error.is_none() && duration < LONG_GET) {
            return;
        }
        let state = if error.is_some() { RunState::Failed } else { RunState::Complete };
        let failures = u32::from(error.is_some());
        let run = EndedRun {
            kind: RunKind::Recipe,
            name: name.into(),
            state,
            duration,
            degraded: 0,
            failures,
            rows: None,
        };
        let detail = error.map(|error| RunDetail { error: Some(error.to_string()), ..RunDetail::default() });
        self.runs.record(run, detail);
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
