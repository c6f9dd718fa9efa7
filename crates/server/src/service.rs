//! The service: the state that calls share, and the router.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anabranch_engine::clock::Clock;
use anabranch_recipe::{Draft, Executor, Status};
use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use tokio::sync::{Semaphore, watch};
use tonic::Code;
use tonic::codec::CompressionEncoding;
use tonic_health::pb::health_server::HealthServer;

use crate::access::{Access, Peer};
use crate::blocking::Blocking;
use crate::budget::ByteBudget;
use crate::connections::Traffic;
use crate::datasets::Datasets;
use crate::deriva::DerivaService;
use crate::failure::Failure;
use crate::guard::{Hosts, is_grpc_path};
use crate::health::HealthService;
use crate::incoming::{BodyRetention, Framing};
use crate::load::{Slot, SlotBounds, Slots, Work, WorkSlots};
use crate::metrics::{MetricsPart, RequestMetrics};
use crate::observe::{FaultLog, RequestIds};
use crate::plans::{Plans, PlansService};
use crate::proto::DESCRIPTORS;
use crate::proto::deriva::deriva_server::DerivaServer;
use crate::proto::plans::plans_server::PlansServer;
use crate::proto::recipes::recipes_server::RecipesServer;
use crate::recipes::RecipesService;
use crate::responder::Responder;
use crate::runs::{Rate, Runs};
use crate::settings::Settings;
use crate::tls::Tls;
use crate::wire::Target;

/// Plans, recipes, datasets and runs over gRPC and HTTP. Clones are handles to the same service.
#[derive(Clone)]
pub struct Service {
    pub(crate) shared: Arc<Shared>,
}

/// The current load of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The number of open connections.
    pub connections: usize,
    /// The number of calls that are not answered, or whose responses are not read to the end.
    pub calls: usize,
    /// The bytes of messages and bodies whose calls are not answered yet.
    pub unfinished_bytes: usize,
    /// The number of blobs of more than 64 KiB that are being uploaded.
    pub uploads: usize,
}

pub(crate) struct Shared {
    pub(crate) executor: Executor,
    pub(crate) settings: Settings,
    /// The clock of client timeouts.
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) traffic: Arc<Traffic>,
    /// The byte budget of unanswered requests.
    pub(crate) budget: ByteBudget,
    /// The slots of large uploads. Each upload is an open file.
    pub(crate) uploads: Arc<Slots>,
    /// The plans of a project, if the server has one.
    pub(crate) plans: Option<Plans>,
    /// The rules of access.
    pub(crate) access: Access,
    /// The slots of requests that the server works on.
    pub(crate) slots: WorkSlots,
    /// The slots of requests whose responses are not read to the end.
    pub(crate) open_calls: Arc<Slots>,
    /// The certificate of the TCP listener.
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) request_ids: RequestIds,
    pub(crate) metrics: RequestMetrics,
    /// The limit of log lines of failed requests.
    pub(crate) fault_log: FaultLog,
    /// The metrics of other crates.
    pub(crate) metrics_parts: Vec<MetricsPart>,
    pub(crate) engine_metrics: Mutex<Option<anabranch_engine::metrics::Metrics>>,
    /// The response of `/v1/config`.
    pub(crate) config: serde_json::Value,
    /// The time at which the service was created.
    pub(crate) began: Instant,
    /// The hosts that requests may name.
    pub(crate) hosts: Hosts,
    /// Whether the server is shutting down.
    pub(crate) closing: watch::Sender<bool>,
    /// One archive at a time, because an archive occupies one of the store's few threads while it waits for the client.
    pub(crate) archives: Arc<Semaphore>,
    /// The threads for large bodies. The threads of the engine are for plans and for recipes that may take hours.
    pub(crate) bodies: Blocking,
    /// The threads for drawings of timelines, which bodies do not wait for.
    pub(crate) drawings: Blocking,
    pub(crate) runs: Runs,
    /// The rate of gets whose details are kept.
    pub(crate) kept_gets: Rate,
    pub(crate) datasets: Option<Datasets>,
}

impl Service {
    /// A service for an executor.
    pub fn new(executor: Executor, settings: Settings) -> Service {
        let clock = Arc::clone(executor.engine().clock());
        Service::with_clock(executor, settings, clock)
    }

    /// The same, with another clock for client timeouts.
    pub fn with_clock(executor: Executor, settings: Settings, clock: Arc<dyn Clock>) -> Service {
        let Settings {
            in_flight_most, queue_most, queue_wait, open_most, uploads_most, uploads_wait, ..
        } = settings;
        let slots = SlotBounds { most: in_flight_most, queue_most, wait: queue_wait };
        let open_calls = SlotBounds { most: open_most, queue_most: 0, wait: queue_wait };
        // A waiting upload already holds the slot of its request.
        let uploads = SlotBounds { most: uploads_most, queue_most: in_flight_most, wait: uploads_wait };
        let [unfinished, unread] = [(), ()].map(|()| {
            ByteBudget::new(settings.unfinished_most, settings.unfinished_wait, Arc::clone(&clock))
        });
        let shared = Shared {
            slots: WorkSlots::new(slots, &clock),
            open_calls: Slots::new(open_calls, Arc::clone(&clock)),
            tls: None,
            request_ids: RequestIds::default(),
            metrics: RequestMetrics::default(),
            fault_log: FaultLog::default(),
            metrics_parts: Vec::new(),
            engine_metrics: Mutex::default(),
            config: serde_json::json!({}),
            began: clock.now(),
            traffic: Arc::new(Traffic::new(unfinished.clone(), unread, settings.stall_timeout)),
            budget: unfinished,
            uploads: Slots::new(uploads, Arc::clone(&clock)),
            hosts: Hosts::new(settings.allowed_hosts.clone()),
            plans: None,
            access: Access::open(),
            closing: watch::Sender::new(false),
            archives: Arc::new(Semaphore::new(1)),
            bodies: Blocking::new(BODY_THREADS),
            drawings: Blocking::new(DRAWING_THREADS),
            kept_gets: Rate::default(),
            runs: Runs::in_memory(),
            datasets: None,
            executor,
            settings,
            clock,
        };
        Service { shared: Arc::new(shared) }
    }

    /// The same service with access rules. Without them, every caller may do everything.
    ///
    /// # Panics
    /// If the service has been cloned or its router has been built.
    pub fn with_access(mut self, access: Access) -> Service {
        self.setup().access = access;
        self
    }

    /// The same service with a given registry of runs, such as one on disk.
    ///
    /// # Panics
    /// If the service has been cloned or its router has been built.
    #[must_use]
    pub fn with_runs(mut self, runs: Runs) -> Service {
        self.setup().runs = runs;
        self
    }

    /// The same service with dataset jobs.
    ///
    /// # Panics
    /// If the service has been cloned or its router has been built.
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
    /// If the service has been cloned or its router has been built.
    pub fn with_plans(mut self, plans: Plans) -> Service {
        self.setup().plans = Some(plans);
        self
    }

    /// The same service with TLS on its TCP listener.
    ///
    /// # Panics
    /// If the service has been cloned or its router has been built.
    pub fn with_tls(mut self, tls: Tls) -> Service {
        self.setup().tls = Some(Arc::new(tls));
        self
    }

    /// The same service with the settings that `/v1/config` returns: an object of `{"value", "from"}`, without secrets.
    ///
    /// # Panics
    /// If the service has been cloned or its router has been built.
    pub fn with_config(mut self, config: serde_json::Value) -> Service {
        self.setup().config = config;
        self
    }

    /// The state of a service that is being set up.
    pub(crate) fn setup(&mut self) -> &mut Shared {
        Arc::get_mut(&mut self.shared).expect("a service is set up before it is used")
    }

    /// The current load.
    pub fn load(&self) -> Load {
        let Shared { traffic, budget, uploads, .. } = &*self.shared;
        Load {
            connections: traffic.connections.load(Ordering::Relaxed),
            calls: traffic.calls.load(Ordering::Relaxed),
            unfinished_bytes: budget.taken(),
            uploads: uploads.load().0,
        }
    }

    /// The executor.
    pub fn executor(&self) -> &Executor {
        &self.shared.executor
    }

    /// The router of all gRPC and HTTP calls, behind the request guard. For programs that serve it themselves.
    pub fn router(&self) -> Router {
        let responder = self.responder();
        Router::new().fallback(move |request: Request| {
            let answer = responder.clone().answer(Peer::Unknown, request);
            async move { answer.await.map(axum::body::Body::new) }
        })
    }

    /// Answers requests.
    pub(crate) fn responder(&self) -> Responder {
        Responder::new(Arc::clone(&self.shared), self.routes())
    }

    /// The routes of all calls.
    fn routes(&self) -> Router {
        use CompressionEncoding::Gzip;
        let most = self.shared.settings.message_most;
        let deriva = |most| {
            DerivaServer::new(DerivaService(Arc::clone(&self.shared)))
                .max_decoding_message_size(most)
                .accept_compressed(Gzip)
                .send_compressed(Gzip)
        };
        let recipes = RecipesServer::new(RecipesService(Arc::clone(&self.shared)))
            .max_decoding_message_size(most)
            .accept_compressed(Gzip)
            .send_compressed(Gzip);
        let plans = PlansServer::new(PlansService(Arc::clone(&self.shared)))
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
                HealthServer::new(HealthService(self.shared.closing.subscribe())),
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
            .merge(crate::console::routes().method_not_allowed_fallback(crate::http::not_allowed))
            .fallback(nothing_there)
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Service").field("executor", &self.shared.executor).finish_non_exhaustive()
    }
}

/// The most large bodies that are parsed at a time.
const BODY_THREADS: usize = 2;

/// The most timelines that are drawn at a time.
const DRAWING_THREADS: usize = 1;

/// The most names in one response. With names of 255 bytes, it fits into the 4 MiB that gRPC clients accept.
const NAMES_MOST: usize = 10_000;

/// A page of names.
pub(crate) struct Names {
    pub(crate) names: Vec<(String, anabranch_content::Address)>,
    pub(crate) next: Option<String>,
}

/// The time for which a status waits for pending writes.
const STATUS_WAIT: Duration = Duration::from_secs(1);

/// The call whose message holds a whole leaf.
const PUT_LEAF: &str = "/deriva.Deriva/PutLeaf";

/// The call that sends an archive.
const IMPORT: &str = "/anabranch.recipe.v1.Recipes/Import";

/// The call whose client sends requests one after the other, as they come.
const RUN_MANY: &str = "/anabranch.plan.v1.Plans/RunMany";

/// The bytes of a message besides its leaf: the number and the length of a field.
const LEAF_ENVELOPE: usize = 16;

impl Shared {
    /// The size limit of a leaf's message.
    fn leaf_message_most(&self) -> usize {
        self.settings.leaf_most.saturating_add(LEAF_ENVELOPE)
    }

    /// The time for which the bytes of a request stay in memory.
    pub(crate) fn holding<B>(&self, request: &hyper::Request<B>) -> BodyRetention {
        match request.uri().path() {
            PUT_LEAF => BodyRetention::Message(Framing::new(self.leaf_message_most())),
            IMPORT => BodyRetention::Archive(Framing::new(self.settings.message_most)),
            RUN_MANY => BodyRetention::Requests(Framing::new(self.settings.message_most)),
            "/v1/blobs" => BodyRetention::Piece,
            path if is_grpc_path(path) => BodyRetention::Message(Framing::new(self.settings.message_most)),
            _ => BodyRetention::Whole,
        }
    }

    /// The address of a target.
    pub(crate) async fn find(&self, target: &Target) -> Result<anabranch_content::Address, Failure> {
        match target {
            Target::Address(address) => Ok(*address),
            Target::Name(name) => Ok(self.executor.find(name).await?),
        }
    }

    /// The names after `after`, at most `most`, and the start of the next page if there is one.
    pub(crate) async fn names(&self, after: &str, most: usize) -> Result<Names, Failure> {
        let most = if most == 0 { NAMES_MOST } else { most.min(NAMES_MOST) };
        // One more, which tells if there is a next page.
        let mut names = self.executor.store().names_after(after, most + 1).await?;
        let is_last = names.len() <= most;
        names.truncate(most);
        let next = names.last().filter(|_| !is_last).map(|(name, _)| name.clone());
        Ok(Names { names, next })
    }

    /// Checks that recipes have the parameters and the number of inputs that their functions take. The executor judges
    /// unknown functions.
    pub(crate) fn check_drafts(&self, drafts: &[Draft]) -> Result<(), Failure> {
        for Draft { function, inputs, params } in drafts {
            let Some(known) = self.executor.functions().get(function) else { continue };
            anabranch_recipe::check(known.signature(), inputs.len(), params)
                .map_err(|fault| Failure::new(Code::InvalidArgument, format!("`{function}`: {fault}")))?;
        }
        Ok(())
    }

    /// Takes a slot for one item of a stream, whose request has returned its own slot with the headers of its response.
    pub(crate) async fn slot(
        &self,
        work: Work,
        client: &Arc<str>,
        deadline: Option<Instant>,
    ) -> Result<Slot, Failure> {
        self.slots.of(work).enter(client, || deadline).await.map_err(|shed| {
            self.metrics.shed(shed);
            shed.of_request()
        })
    }

    /// The counts of the executor and its store. Values that were returned a moment ago are counted once they are
    /// written.
    pub(crate) async fn status(&self) -> Status {
        let late = self.clock.sleep_until(self.clock.now() + STATUS_WAIT);
        tokio::select! {
            // The counts are available even if the store cannot write.
            _ = self.executor.store().written() => {}
            () = late => {}
        }
        self.executor.status()
    }

    /// Refuses a list that is too long for one call.
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

/// The response to calls of unknown services, in the protocol of the call.
async fn nothing_there(request: Request) -> Response {
    let kind = request.headers().get("content-type").and_then(|kind| kind.to_str().ok());
    let path = request.uri().path();
    match kind.is_some_and(|kind| kind.starts_with("application/grpc")) {
        true => {
            let failure = Failure::new(Code::Unimplemented, format!("there is no call {path} here"));
            tonic::Status::from(failure).into_http::<axum::body::Body>()
        }
        false => Failure::new(
            Code::NotFound,
            format!("there is no route {path}; GET /openapi.json lists all routes"),
        )
        .into_response(),
    }
}
