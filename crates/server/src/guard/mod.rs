//! The request guard: the one layer that every request passes before its handler.
//!
//! Every web page that the user opens can send requests to a server on loopback. So the guard refuses requests that a
//! page of another site made (`Origin`, `Sec-Fetch-Site`), requests to a name that somebody pointed here by DNS
//! (`Host`), and bodies that a page can send without asking first. Then it compares the scope of the caller's token with
//! the scope of the route.

mod hosts;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{
    CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, RETRY_AFTER, WWW_AUTHENTICATE,
};
use axum::http::{Method, StatusCode, Version};
use axum::middleware::Next;
use axum::response::Response;
use tonic::{Code, Status};

pub(crate) use hosts::Hosts;
pub use hosts::{AllowedHost, NotAHost};

use crate::access::{Caller, Denial, Peer, Scope};
use crate::api::{self, Needs, RequestBody, Route};
use crate::failure::refusal;
use crate::load::{Shed, Slot};
use crate::observe::{CalledBy, OpenCall};
use crate::service::Shared;
use hosts::HostPort;

/// Why a request is refused.
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

    /// The answer, in the protocol of the request.
    fn answer(self, is_grpc: bool) -> Response {
        if is_grpc {
            // A gRPC client shows the sentence only if the answer is gRPC.
            let code = match self.status {
                StatusCode::UNAUTHORIZED => Code::Unauthenticated,
                StatusCode::SERVICE_UNAVAILABLE => Code::Unavailable,
                StatusCode::TOO_MANY_REQUESTS => Code::ResourceExhausted,
                _ => Code::PermissionDenied,
            };
            return Status::new(code, self.message).into_http::<Body>();
        }
        let mut answer = refusal(self.status, self.word, &self.message);
        if self.status == StatusCode::UNAUTHORIZED {
            answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(CHALLENGE));
        }
        if matches!(self.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        answer
    }
}

/// How to authenticate, for clients that ask.
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

/// Hands a request on, with its [`Caller`] as an extension, or answers why it is refused.
pub(crate) async fn guard(State(shared): State<Arc<Shared>>, mut request: Request, next: Next) -> Response {
    let is_grpc = is_grpc(&request);
    let caller = match check(&shared, &request) {
        Ok(caller) => caller,
        Err(refused) => return refused.answer(is_grpc),
    };
    let called_by = CalledBy(caller.clone());
    let is_free = route(&request).is_some_and(|route| WITHOUT_SLOT.contains(&route.path));
    let slots = match is_free {
        true => Ok((None, None)),
        false => slots(&shared, &caller).await,
    };
    let mut answer = match slots {
        Ok((slot, open)) => {
            request.extensions_mut().insert(caller);
            let mut answer = next.run(request).await;
            drop(slot);
            if let Some(open) = open {
                answer.extensions_mut().insert(open);
            }
            answer
        }
        Err(shed) => {
            shared.metrics.shed(shed);
            Refusal::from(shed).answer(is_grpc)
        }
    };
    answer.extensions_mut().insert(called_by);
    answer
}

/// Routes that tell how a server does, also when it has too much to do.
const WITHOUT_SLOT: [&str; 4] = ["/healthz", "/readyz", "/metrics", "/openapi.json"];

/// The slots of a request: for the work, and for the answer.
async fn slots(shared: &Shared, caller: &Caller) -> Result<(Option<Slot>, Option<OpenCall>), Shed> {
    let open = shared.open_calls.enter(&caller.name).await?;
    let slot = shared.slots.enter(&caller.name).await?;
    Ok((Some(slot), Some(OpenCall(Arc::new(open)))))
}

impl From<Shed> for Refusal {
    fn from(shed: Shed) -> Refusal {
        match shed {
            Shed::Client => Refusal {
                status: StatusCode::TOO_MANY_REQUESTS,
                word: "resource_exhausted",
                message: "this client has more requests under way than its share; try again later".to_owned(),
            },
            Shed::Server => Refusal {
                status: StatusCode::SERVICE_UNAVAILABLE,
                word: "unavailable",
                message: "the server has more requests than it can work on; try again later".to_owned(),
            },
        }
    }
}

fn check(shared: &Shared, request: &Request) -> Result<Caller, Refusal> {
    let host = check_host(&shared.hosts, request)?;
    let own_port = if shared.tls.is_some() { 443 } else { 80 };
    let host = host.map(|host| host.or_port(own_port));
    if !opens_console(request) {
        check_site(&shared.hosts, host.as_ref(), request.headers())?;
    }
    let route = route(request);
    check_kind(request, route)?;
    let needs = match route {
        _ if is_grpc_path(request.uri().path()) => api::grpc_needs(request.uri().path()),
        Some(route) => route.needs,
        None => Needs::Token(Scope::Admin),
    };
    let peer = request.extensions().get::<Peer>().copied().unwrap_or(Peer::Unknown);
    match (shared.access.caller(request.headers(), peer), needs) {
        (Ok(caller), Needs::Nothing) => Ok(caller),
        (Ok(caller), Needs::Token(needed)) => {
            caller.check(needed)?;
            Ok(caller)
        }
        // Nobody needs a valid token for what needs none.
        (Err(_), Needs::Nothing) => Ok(Caller::nobody(peer)),
        (Err(denial), Needs::Token(_)) => Err(denial.into()),
    }
}

/// The row of the table for a request, if the router knows its path.
fn route(request: &Request) -> Option<&'static Route> {
    let path = request.extensions().get::<MatchedPath>()?;
    api::find(request.method(), path.as_str()).map(|at| &api::ROUTES[at])
}

fn is_grpc(request: &Request) -> bool {
    request.version() == Version::HTTP_2 && is_grpc_type(kind(request.headers()))
}

/// Every host that a request names must be ours. The answer is one of them; a request of HTTP/1.0 may have none.
fn check_host(hosts: &Hosts, request: &Request) -> Result<Option<HostPort>, Refusal> {
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
    Ok(named)
}

/// Whether a user follows a link to the console. Pages of other sites may have such links: they cannot read the page
/// that opens, and it does nothing until its user does.
fn opens_console(request: &Request) -> bool {
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

/// Whether a content type is this one, with or without parameters.
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

/// A body has the type of its route. A page can send `text/plain`, a form, or no type to any server, but must ask the
/// server before it sends another type.
fn check_kind(request: &Request, route: Option<&Route>) -> Result<(), Refusal> {
    let (path, headers) = (request.uri().path(), request.headers());
    let kind = kind(headers);
    let found = || kind.map_or_else(|| "none".to_owned(), anabranch_text::quote);
    let writes = [Method::POST, Method::PUT, Method::PATCH].contains(request.method());
    if is_grpc_path(path) {
        return match (request.version() == Version::HTTP_2, is_grpc_type(kind)) {
            (true, true) => Ok(()),
            (true, false) => Err(Refusal::media_type(format!(
                "a gRPC call has the content type `application/grpc`, this one has {}",
                found()
            ))),
            (false, _) => Err(Refusal {
                status: StatusCode::HTTP_VERSION_NOT_SUPPORTED,
                word: "http_version_not_supported",
                message: "gRPC calls come over HTTP/2".to_owned(),
            }),
        };
    }
    if !writes {
        return Ok(());
    }
    let takes = route.map_or(RequestBody::Json(""), |route| route.takes);
    let is_blob = takes == RequestBody::Bytes;
    let wanted = if is_blob { "application/octet-stream" } else { "application/json" };
    if takes == RequestBody::Empty && kind.is_none() {
        return Ok(());
    }
    // curl sends a form's type with `-d`; that is fine for a blob, as long as no browser sends it.
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

/// `/package.Service/Method`.
pub(crate) fn is_grpc_path(path: &str) -> bool {
    let mut parts = path.split('/').skip(1);
    let is_service = parts.next().is_some_and(|service| service.contains('.'));
    is_service && parts.next().is_some() && parts.next().is_none()
}
