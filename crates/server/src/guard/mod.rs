//! The request guard, which every request passes before its handler.
//!
//! Every web page that the user opens can send requests to a server on loopback. So the guard refuses requests that a
//! page of another site made (`Origin`, `Sec-Fetch-Site`), requests to a name that an attacker pointed here by DNS
//! (`Host`), and bodies that a page can send without a preflight request. Then it compares the scope of the caller's
//! token with the scope of the route.

mod hosts;

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, WWW_AUTHENTICATE};
use axum::http::{Method, Request, StatusCode, Version};
use axum::response::Response;
use tonic::{Code, Status};

pub(crate) use hosts::Hosts;
pub use hosts::{AllowedHost, NotAHost};

use crate::access::{Caller, Denial, Peer, Scope};
use crate::api::{self, Needs, Place, RequestBody};
use crate::connections::Call;
use crate::deadline;
use crate::failure::{Failure, over_http, refusal};
use crate::http::plans;
use crate::load::{Slot, SlotRefusal, Work};
use crate::observe::Arrival;
use crate::service::Shared;
use hosts::HostPort;

/// The refusal of a request.
#[derive(Debug, PartialEq, Eq)]
struct Refusal {
    status: StatusCode,
    word: &'static str,
    message: String,
}

impl Refusal {
    fn forbidden(message: String) -> Refusal {
        Refusal { status: StatusCode::FORBIDDEN, word: "permission_denied", message }
    }

    fn media_type(message: impl Into<String>) -> Refusal {
        let (status, message) = (StatusCode::UNSUPPORTED_MEDIA_TYPE, message.into());
        Refusal { status, word: "unsupported_media_type", message }
    }

    /// The response, in the protocol of the request.
    fn answer(self, is_grpc: bool) -> Response {
        if is_grpc {
            // A gRPC client shows the message only if the response is gRPC.
            let code = match self.status {
                StatusCode::UNAUTHORIZED => Code::Unauthenticated,
                StatusCode::SERVICE_UNAVAILABLE => Code::Unavailable,
                StatusCode::TOO_MANY_REQUESTS => Code::ResourceExhausted,
                StatusCode::GATEWAY_TIMEOUT => Code::DeadlineExceeded,
                _ => Code::PermissionDenied,
            };
            return Status::new(code, self.message).into_http::<Body>();
        }
        let mut answer = refusal(self.status, self.word, &self.message);
        if self.status == StatusCode::UNAUTHORIZED {
            answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(CHALLENGE));
        }
        answer
    }
}

/// The value of `WWW-Authenticate`.
const CHALLENGE: &str = "Bearer realm=\"anabranch\"";

impl From<Denial> for Refusal {
    fn from(denial: Denial) -> Refusal {
        let message = denial.message();
        match denial {
            Denial::TooLittle { .. } => Refusal::forbidden(message),
            Denial::Unreadable => {
                Refusal { status: StatusCode::SERVICE_UNAVAILABLE, word: "unavailable", message }
            }
            Denial::Missing | Denial::Malformed | Denial::Unknown | Denial::Expired { .. } => {
                Refusal { status: StatusCode::UNAUTHORIZED, word: "unauthenticated", message }
            }
        }
    }
}

/// The response to a request that passed the guard or was refused by it.
pub(crate) struct GuardedAnswer {
    pub(crate) answer: Response,
    /// The name of the caller, unless the request was refused before it was known.
    pub(crate) caller: Option<Arc<str>>,
    /// The slot of the call until its response is read to the end.
    pub(crate) open: Option<Slot>,
}

/// Lets `handle` answer a request, or responds with the reason for its refusal.
pub(crate) async fn guard<B, A: Future<Output = Response>>(
    shared: &Shared,
    place: Place,
    peer: Peer,
    request: Request<B>,
    arrival: Arrival,
    handle: impl FnOnce(Caller, Request<B>) -> A,
) -> GuardedAnswer {
    let is_grpc = is_grpc(&request);
    let caller = match check(shared, place, peer, &request) {
        Ok(caller) => caller,
        Err(refused) => return GuardedAnswer { answer: refused.answer(is_grpc), caller: None, open: None },
    };
    let name = Some(Arc::clone(&caller.name));
    let until = arrival.deadline(deadline::of_client(request.uri(), request.headers()));
    if let Some(call) = Call::current() {
        call.set_client(&caller.name);
        until.into_iter().for_each(|until| call.set_deadline(until));
    }
    let is_free = place.route().is_some_and(|route| WITHOUT_SLOT.contains(&route.path));
    let slots = match is_free {
        true => Ok((None, None)),
        false => {
            let path = request.uri().path();
            // A plan has a time limit of its own, which counts only if the request must wait.
            let own = || arrival.deadline(plans::own_deadline(shared, place, path));
            slots(shared, place.work(path), &caller, || until.into_iter().chain(own()).min()).await
        }
    };
    match slots {
        Ok((_slot, open)) => GuardedAnswer { answer: handle(caller, request).await, caller: name, open },
        Err(shed) => {
            shared.metrics.shed(shed);
            GuardedAnswer { answer: Refusal::from(shed).answer(is_grpc), caller: name, open: None }
        }
    }
}

/// The routes that report the state of the server. They also work when the server is overloaded.
const WITHOUT_SLOT: [&str; 4] = ["/healthz", "/readyz", "/metrics", "/openapi.json"];

/// The slots of a request: for the work, and for the response. It does not wait for them longer than its client does.
async fn slots(
    shared: &Shared,
    work: Work,
    caller: &Caller,
    deadline: impl Fn() -> Option<Instant>,
) -> Result<(Option<Slot>, Option<Slot>), SlotRefusal> {
    let open = shared.open_calls.enter(&caller.name, &deadline).await?;
    let slot = shared.slots.of(work).enter(&caller.name, &deadline).await?;
    Ok((Some(slot), Some(open)))
}

impl From<SlotRefusal> for Refusal {
    fn from(shed: SlotRefusal) -> Refusal {
        let Failure { code, message } = shed.of_request();
        let (status, word) = over_http(code);
        let status = StatusCode::from_u16(status).expect("the table has statuses of three digits");
        Refusal { status, word, message }
    }
}

fn check<B>(shared: &Shared, place: Place, peer: Peer, request: &Request<B>) -> Result<Caller, Refusal> {
    let host = check_host(&shared.hosts, request)?;
    let own_port = if shared.tls.is_some() { 443 } else { 80 };
    let host = host.map(|host| host.or_port(own_port));
    if !opens_console(request) {
        check_site(&shared.hosts, host.as_ref(), request.headers())?;
    }
    if place == Place::OtherMethod {
        // The router answers that the route does not have this method.
        return Ok(Caller::nobody(peer));
    }
    check_kind(request, place)?;
    let needs = match place {
        Place::Grpc(_) => api::grpc_needs(request.uri().path()),
        Place::Http(_) | Place::OtherMethod => {
            place.route().map_or(Needs::Token(Scope::Admin), |route| route.needs)
        }
    };
    match (shared.access.caller(request.headers(), peer), needs) {
        (Ok(caller), Needs::Nothing) => Ok(caller),
        (Ok(caller), Needs::Token(needed)) => {
            caller.check(needed)?;
            Ok(caller)
        }
        // Routes that need no token ignore a wrong one.
        (Err(_), Needs::Nothing) => Ok(Caller::nobody(peer)),
        (Err(denial), Needs::Token(_)) => Err(denial.into()),
    }
}

fn is_grpc<B>(request: &Request<B>) -> bool {
    request.version() == Version::HTTP_2 && is_grpc_type(kind(request.headers()))
}

/// Checks that every host that a request names is ours, and returns the last one. A request of HTTP/1.1 must name one. No
/// request may have two `Host` headers: a proxy in front of this server may have checked the other one.
fn check_host<B>(hosts: &Hosts, request: &Request<B>) -> Result<Option<HostPort>, Refusal> {
    let authority = request.uri().authority().map(|authority| Some(authority.as_str()));
    let headers = request.headers().get_all(HOST).iter().map(|host| host.to_str().ok());
    let mut named = None;
    for text in authority.into_iter().chain(headers) {
        let host = text.and_then(HostPort::parse).filter(|host| hosts.is_ours(host));
        match host {
            Some(host) => named = Some(host),
            None => {
                let name = text.map_or_else(|| "that is not text".to_owned(), anabranch_text::quote);
                let message = format!(
                    "the host {name} is not one of this server's; if it should be, name it with \
                     `anabranch serve --allow-host NAME`"
                );
                return Err(Refusal {
                    status: StatusCode::MISDIRECTED_REQUEST,
                    word: "misdirected_request",
                    message,
                });
            }
        }
    }
    let hosts = request.headers().get_all(HOST).iter().count();
    if hosts > 1 || (named.is_none() && request.version() == Version::HTTP_11) {
        return Err(Refusal {
            status: StatusCode::BAD_REQUEST,
            word: "invalid_argument",
            message: format!("the request has {hosts} `Host` headers, and must have one"),
        });
    }
    Ok(named)
}

/// Whether browsers should use only TLS for the host of a request. A loopback name belongs to all programs of the machine.
pub(crate) fn is_for_tls<B>(shared: &Shared, peer: Peer, request: &Request<B>) -> bool {
    let header = || request.headers().get(HOST)?.to_str().ok();
    let host = || request.uri().authority().map(|authority| authority.as_str()).or_else(header);
    let is_named = || host().and_then(HostPort::parse).is_some_and(|host| !host.is_loopback());
    shared.tls.is_some() && peer != Peer::Socket && is_named()
}

/// Whether a user follows a link to the console. Other sites may have such links. They cannot read the page, and the
/// page does nothing before its user acts.
fn opens_console<B>(request: &Request<B>) -> bool {
    let has = |name: &str, value: &str| request.headers().get(name).is_some_and(|found| found == value);
    request.method() == Method::GET
        && request.uri().path() == "/"
        && has("sec-fetch-mode", "navigate")
        && has("sec-fetch-dest", "document")
}

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Pages of this server, of loopback and of configured hosts may send requests. Programs other than browsers send
/// neither header.
fn check_site(hosts: &Hosts, host: Option<&HostPort>, headers: &HeaderMap) -> Result<(), Refusal> {
    let mut origins = headers.get_all(ORIGIN).iter();
    let mut configured = false;
    let mut allowed = false;
    if let Some(origin) = origins.next() {
        let parsed = origin.to_str().ok().and_then(HostPort::of_origin);
        configured = parsed.as_ref().is_some_and(|origin| hosts.is_configured(origin));
        let is_own =
            |origin: &HostPort| origin.is_loopback() || host.is_some_and(|host| host.is_origin(origin));
        allowed = origins.next().is_none() && (configured || parsed.as_ref().is_some_and(is_own));
        if !allowed {
            let origin = anabranch_text::quote(&String::from_utf8_lossy(origin.as_bytes()));
            return Err(Refusal::forbidden(format!(
                "a page of {origin} sent the request; pages of other sites may not, unless their host is named with \
                 `anabranch serve --allow-host NAME`"
            )));
        }
    }
    let fits = |site: &str| match site {
        "same-origin" | "none" => true,
        "same-site" => allowed,
        _ => configured,
    };
    match headers.get_all(SEC_FETCH_SITE).iter().all(|site| site.to_str().is_ok_and(fits)) {
        true => Ok(()),
        false => Err(Refusal::forbidden(
            "a page of another site sent the request (`Sec-Fetch-Site`); pages of other sites may not, unless \
             their host is named with `anabranch serve --allow-host NAME`"
                .to_owned(),
        )),
    }
}

fn kind(headers: &HeaderMap) -> Option<&str> {
    headers.get(CONTENT_TYPE)?.to_str().ok()
}

/// Whether a content type is the wanted one, ignoring parameters.
fn is_type(found: &str, wanted: &str) -> bool {
    found.split(';').next().is_some_and(|found| found.trim().eq_ignore_ascii_case(wanted))
}

fn is_grpc_type(kind: Option<&str>) -> bool {
    let is_grpc = |found: &str| {
        let found = found.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        found.strip_prefix("application/grpc").is_some_and(|rest| rest.is_empty() || rest.starts_with('+'))
    };
    kind.is_some_and(is_grpc)
}

/// Checks that a body has the content type of its route. A page can send `text/plain`, a form, or no type to any
/// server, but other types need a preflight request.
fn check_kind<B>(request: &Request<B>, place: Place) -> Result<(), Refusal> {
    let headers = request.headers();
    let kind = kind(headers);
    let found = || kind.map_or_else(|| "none".to_owned(), anabranch_text::quote);
    let writes = [Method::POST, Method::PUT, Method::PATCH].contains(request.method());
    if place.is_grpc() {
        return match (request.version() == Version::HTTP_2, is_grpc_type(kind)) {
            (true, true) => Ok(()),
            (true, false) => Err(Refusal::media_type(format!(
                "a gRPC call has the content type `application/grpc`, this one has {}",
                found()
            ))),
            (false, _) => Err(Refusal {
                status: StatusCode::HTTP_VERSION_NOT_SUPPORTED,
                word: "http_version_not_supported",
                message: "gRPC needs HTTP/2, and this call came over HTTP/1".to_owned(),
            }),
        };
    }
    if !writes {
        return Ok(());
    }
    let takes = place.route().map_or(RequestBody::Json(""), |route| route.takes);
    let is_blob = takes == RequestBody::Bytes;
    let wanted = if is_blob { "application/octet-stream" } else { "application/json" };
    // A page of another program of this machine can send a request without a body and type, too.
    if takes == RequestBody::Empty && kind.is_none() && !headers.contains_key(ORIGIN) {
        return Ok(());
    }
    // curl sends the type of a form with `-d`. That is accepted for a blob unless a browser sends it.
    let from_browser =
        headers.contains_key(ORIGIN) || headers.keys().any(|name| name.as_str().starts_with("sec-fetch-"));
    match (is_blob && !from_browser) || kind.is_some_and(|found| is_type(found, wanted)) {
        true => Ok(()),
        false => Err(Refusal::media_type(format!(
            "this route takes a body with `Content-Type: {wanted}`, this one has {}",
            found()
        ))),
    }
}

/// Whether the path has the form `/package.Service/Method`.
pub(crate) fn is_grpc_path(path: &str) -> bool {
    let mut parts = path.split('/').skip(1);
    let is_service = parts.next().is_some_and(|service| service.contains('.'));
    is_service && parts.next().is_some() && parts.next().is_none()
}
