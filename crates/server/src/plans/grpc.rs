//! Plans over gRPC.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_engine::clock::Clock;
use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use tokio::sync::watch;
use tonic::{Request, Response, Status, Streaming};

use super::PlanFailure;
use super::describe::millis;
use super::loader::ChangeKind;
use super::messages;
use super::run::PlanCall;
use super::table::Entry;
use crate::access::Caller;
use crate::deadline;
use crate::failure::Answer;
use crate::load::Work;
use crate::observe::{Arrival, CallInfo, RequestId, TraceContext};
use crate::proto::plans as proto;
use crate::proto::plans::plans_server::Plans;
use crate::service::Shared;

/// The service of plans.
pub(crate) struct PlansService(pub(crate) Arc<Shared>);

#[tonic::async_trait]
impl Plans for PlansService {
    async fn run(&self, request: Request<proto::RunRequest>) -> Answer<proto::RunResponse> {
        let within = deadline::of_headers(request.metadata().as_ref())?;
        let origin = Origin::of(&request);
        let mut id = origin.id.clone();
        let answer = run(&self.0, request.get_ref(), within, &origin, &mut id).await;
        let (name, value) = ("x-request-id", id.as_str().parse().expect("ids are visible ASCII"));
        match answer {
            Ok(answer) => {
                let mut answer = Response::new(answer);
                answer.metadata_mut().insert(name, value);
                Ok(answer)
            }
            Err(failure) => {
                let mut status = Status::from(failure);
                status.metadata_mut().insert(name, value);
                Err(status)
            }
        }
    }

    type RunManyStream = BoxStream<'static, Result<proto::RunManyResponse, Status>>;

    async fn run_many(&self, request: Request<Streaming<proto::RunRequest>>) -> Answer<Self::RunManyStream> {
        let until = deadline::of_call(&request)?;
        let origin = Origin::of(&request);
        let origin = Origin { id: origin.id.of_part(), until, ..origin };
        let requests = OpenRequests::new(&self.0, request.into_inner());
        let state = (Arc::clone(&self.0), origin, requests, 0_u64);
        let answers = stream::try_unfold(state, |(shared, origin, mut requests, place)| async move {
            let Some(message) = requests.next(&*shared.clock).await? else { return Ok(None) };
            let mut id = origin.id.clone();
            let result = match run_one(&shared, &message, &origin, &mut id).await {
                Ok(response) => proto::run_many_response::Result::Response(response),
                Err(failure) => proto::run_many_response::Result::Error(proto::RunError {
                    code: failure.code.into(),
                    message: failure.message,
                }),
            };
            let answer = proto::RunManyResponse { place, result: Some(result) };
            Ok::<_, Status>(Some((answer, (shared, origin, requests, place + 1))))
        });
        Ok(Response::new(answers.boxed()))
    }

    async fn list(&self, _: Request<proto::ListRequest>) -> Answer<proto::ListResponse> {
        let table = self.0.plans()?.table();
        let plans = table.plans.values().map(|entry| summary(entry)).collect();
        let problem = table.problem.clone().unwrap_or_default();
        Ok(Response::new(proto::ListResponse { plans, problem }))
    }

    async fn describe(&self, request: Request<proto::DescribeRequest>) -> Answer<proto::DescribeResponse> {
        let plans = self.0.plans()?;
        let name = &request.get_ref().plan;
        let summary = Some(summary(&*plans.entry(name)?));
        let json = plans.describe(name)?.to_string();
        Ok(Response::new(proto::DescribeResponse { summary, json }))
    }

    async fn reload(&self, request: Request<proto::ReloadRequest>) -> Answer<proto::ReloadResponse> {
        let name = request.into_inner().plan;
        let name = Some(name).filter(|name| !name.is_empty());
        let changed = self.0.plans()?.change(ChangeKind::Reload(name)).await?.plans;
        Ok(Response::new(proto::ReloadResponse { changed }))
    }
}

/// The requests of a stream.
struct OpenRequests {
    requests: Streaming<proto::RunRequest>,
    closing: watch::Receiver<bool>,
    /// The time after which requests that have arrived are no longer answered, once the server shuts down.
    last: Option<Instant>,
}

/// The time for which a server that shuts down answers the requests of a stream that have arrived.
const LAST_REQUESTS: Duration = Duration::from_secs(1);

impl OpenRequests {
    fn new(shared: &Shared, requests: Streaming<proto::RunRequest>) -> OpenRequests {
        OpenRequests { requests, closing: shared.closing.subscribe(), last: None }
    }

    /// The next request; `None` at the end of the stream. A server that shuts down does not wait for more.
    async fn next(&mut self, clock: &dyn Clock) -> Result<Option<proto::RunRequest>, Status> {
        let last = match self.last {
            Some(last) => last,
            None => {
                tokio::select! {
                    biased;
                    // An error means that the service is gone.
                    _ = self.closing.wait_for(|closing| *closing) => {}
                    message = self.requests.message() => return message,
                }
                *self.last.insert(clock.now() + LAST_REQUESTS)
            }
        };
        let arrived = if clock.now() < last { self.requests.message().now_or_never() } else { None };
        arrived.unwrap_or_else(|| {
            Err(Status::unavailable(
                "the server shuts down; send the requests that have no response to another server, or to this one again",
            ))
        })
    }
}

/// The call that a plan request belongs to.
struct Origin {
    id: RequestId,
    context: Option<TraceContext>,
    arrival: Arrival,
    caller: Caller,
    /// The deadline of a stream.
    until: Option<Instant>,
}

impl Origin {
    fn of<T>(request: &Request<T>) -> Origin {
        let call = request.extensions().get::<CallInfo>().expect("every request is observed");
        let CallInfo { id, trace, caller, arrival } = call.clone();
        Origin { id, context: trace, arrival, caller, until: None }
    }
}

/// Answers one request of a stream, in a slot of its own.
async fn run_one(
    shared: &Shared,
    message: &proto::RunRequest,
    origin: &Origin,
    id: &mut RequestId,
) -> Result<proto::RunResponse, PlanFailure> {
    let _slot = shared.slot(Work::Plan, &origin.caller.name, origin.until).await?;
    run(shared, message, None, origin, id).await
}

/// Answers a request. Sets `id` to its id.
async fn run(
    shared: &Shared,
    message: &proto::RunRequest,
    within: Option<Duration>,
    origin: &Origin,
    id: &mut RequestId,
) -> Result<proto::RunResponse, PlanFailure> {
    let plans = shared.plans()?;
    let entry = plans.entry(&message.plan)?;
    let Some(version) = &entry.current else {
        return Err(PlanFailure::not_loaded(&entry.name, entry.problem.as_deref()));
    };
    let registries = Arc::clone(version.plan.engine().registries());
    let form = proto::Form::try_from(message.form).map_err(|_| {
        crate::failure::Failure::new(
            tonic::Code::InvalidArgument,
            "`form` has an unknown value; the .proto file lists the forms",
        )
    })?;
    let mut request = messages::request(message, &registries)?;
    *id = origin.id.name(&mut request);
    let (arrival, until, context) = (origin.arrival, origin.until, origin.context.clone());
    let text = if plans.keeps_request(message.trace) { messages::text(message) } else { Bytes::new() };
    let (trace, id) = (message.trace, id.clone());
    let call = PlanCall { request, text, within, until, arrival, trace, id, context };
    let answered = plans.run(&entry, call, &shared.runs).await?;
    Ok(messages::response(&answered, form, &registries.keys))
}

fn summary(entry: &Entry) -> proto::PlanSummary {
    let latency = entry.counts.latency.read();
    let (error_rate, degraded_rate) = entry.counts.rates();
    let (current, canary) = (entry.current.as_deref(), entry.canary.as_deref());
    proto::PlanSummary {
        name: entry.name.to_string(),
        version: current.map(|version| version.id.clone()).unwrap_or_default(),
        nodes: current.map_or(0, |version| version.explanation().nodes.len() as u32),
        deadline_ms: current.and_then(|version| version.plan.compiled().deadline).map(millis),
        requests: entry.counts.ended(),
        in_flight: entry.counts.in_flight(),
        p50_ms: latency.percentile_ms(0.5),
        p99_ms: latency.percentile_ms(0.99),
        error_rate,
        degraded_rate,
        problem: entry.problem.clone().unwrap_or_default(),
        canary_version: canary.map(|canary| canary.version.id.clone()).unwrap_or_default(),
        canary_share: canary.map_or(0.0, |canary| canary.share),
    }
}
