//! The table of all routes: the scope that each needs, the body that it takes, and its description.
//!
//! A new route gets one row in `routes.rs`. A route without a row needs the scope `admin`, and a test finds it.

mod openapi;
mod routes;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use axum::http::Method;

use crate::access::Scope;
use crate::guard::is_grpc_path;
use crate::load::Work;
pub(crate) use openapi::answer as openapi;
pub(crate) use routes::{GRPC, ROUTES};

/// The most runs in one response.
pub(crate) const RUNS_MOST: u64 = 1_000;
/// The most datasets in one response.
pub(crate) const DATASETS_MOST: u64 = 200;
/// The most rows or failed cells of a dataset in one response.
pub(crate) const ROWS_MOST: u64 = 10_000;
/// The most nodes of a graph in one response.
pub(crate) const NODES_MOST: u64 = 10_000;

/// The path of the route that runs a plan.
pub(crate) const RUN_PLAN: &str = "/v1/plans/{name}/run";

/// The credentials that a route needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// No token.
    Nothing,
    /// A token with at least this scope.
    Token(Scope),
}

/// The body that a route takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestBody {
    /// None.
    Empty,
    /// JSON of this schema.
    Json(&'static str),
    /// Bytes of any kind.
    Bytes,
}

/// The body that a route answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerBody {
    /// JSON of this schema of `schemas.json`.
    Json(&'static str),
    /// A body of one of these media types.
    Media(&'static [&'static str]),
    /// JSON of this schema, or a body of one of these media types.
    JsonOrMedia(&'static str, &'static [&'static str]),
    /// None.
    Empty,
}

/// The values of a query parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ParamKind {
    Text,
    /// A number from the first to the second bound. Other numbers are refused.
    Count(u64, u64),
    /// A number of at least this.
    AtLeast(u64),
    /// A duration such as `150ms`.
    Time,
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Word(&'static [&'static str]),
    /// The id of a run or a dataset.
    Id,
    /// The id of an event of all runs.
    EventId,
}

/// A header that a route reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestHeader {
    IdempotencyKey,
    IfMatch,
    /// `If-None-Match: *` of a request that gives a name an address.
    IfNew,
    /// The tags of a cache.
    IfNoneMatch,
    IfRange,
    /// The number of the last event of a run that the client has.
    LastEventNumber,
    /// The id of the last event of all runs that the client has.
    LastEventId,
    Range,
    RequestTimeout,
}

/// A header of the responses of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseHeader {
    ETag,
    Location,
    PlanVersion,
    RunId,
}

/// A query parameter: its name, its values and its description.
pub(crate) type QueryParam = (&'static str, ParamKind, &'static str);

/// An HTTP route.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    /// `GET` also stands for `HEAD`.
    pub(crate) method: &'static str,
    /// The pattern of the router, such as `/v1/refs/{name}`.
    pub(crate) path: &'static str,
    pub(crate) needs: Needs,
    /// A description of one sentence.
    pub(crate) about: &'static str,
    pub(crate) takes: RequestBody,
    pub(crate) answers: AnswerBody,
    pub(crate) query: &'static [QueryParam],
    /// The headers that it reads, besides those that all routes read.
    pub(crate) headers: &'static [RequestHeader],
    /// The headers of its responses, besides those of all routes.
    pub(crate) answer_headers: &'static [ResponseHeader],
}

impl Route {
    const fn new(method: &'static str, path: &'static str, needs: Needs, about: &'static str) -> Route {
        let (takes, answers) = (RequestBody::Empty, AnswerBody::Empty);
        Route { method, path, needs, about, takes, answers, query: &[], headers: &[], answer_headers: &[] }
    }

    const fn takes(self, takes: RequestBody) -> Route {
        Route { takes, ..self }
    }

    const fn answers(self, answers: AnswerBody) -> Route {
        Route { answers, ..self }
    }

    /// Answers with JSON of a schema.
    const fn json(self, schema: &'static str) -> Route {
        self.answers(AnswerBody::Json(schema))
    }

    /// Answers with a body of this media type.
    const fn media(self, kinds: &'static [&'static str]) -> Route {
        self.answers(AnswerBody::Media(kinds))
    }

    const fn query(self, query: &'static [QueryParam]) -> Route {
        Route { query, ..self }
    }

    const fn headers(self, headers: &'static [RequestHeader]) -> Route {
        Route { headers, ..self }
    }

    const fn answer_headers(self, answer_headers: &'static [ResponseHeader]) -> Route {
        Route { answer_headers, ..self }
    }
}

/// The row of the table that a request belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The index of a row in [`ROUTES`]; `None` if no row has this path.
    Http(Option<usize>),
    /// No row with this path has this method.
    OtherMethod,
    /// The index of a call among all calls of [`GRPC`]; `None` if there is no such call.
    Grpc(Option<usize>),
}

/// The rows of each path of [`ROUTES`].
static PATHS: LazyLock<matchit::Router<Vec<usize>>> = LazyLock::new(|| {
    let mut paths = matchit::Router::new();
    for (row, route) in ROUTES.iter().enumerate() {
        let is_first = ROUTES.iter().position(|other| other.path == route.path) == Some(row);
        let rows = || (0..ROUTES.len()).filter(|other| ROUTES[*other].path == route.path).collect();
        if is_first {
            paths.insert(route.path, rows()).expect("the patterns of the table are valid and differ");
        }
    }
    paths
});

impl Place {
    /// The place of a request.
    pub(crate) fn of(method: &Method, path: &str) -> Place {
        if is_grpc_path(path) {
            return Place::Grpc(grpc_place(path));
        }
        let Ok(rows) = PATHS.at(path) else { return Place::Http(None) };
        let method = if *method == Method::HEAD { "GET" } else { method.as_str() };
        match rows.value.iter().find(|row| ROUTES[**row].method == method) {
            Some(row) => Place::Http(Some(*row)),
            None => Place::OtherMethod,
        }
    }

    pub(crate) fn is_grpc(self) -> bool {
        matches!(self, Place::Grpc(_))
    }

    /// The index in the table.
    pub(crate) fn index(self) -> Option<usize> {
        match self {
            Place::Http(index) | Place::Grpc(index) => index,
            Place::OtherMethod => None,
        }
    }

    /// The work of a request with this path.
    pub(crate) fn work(self, path: &str) -> Work {
        let is_plan = match self {
            Place::Grpc(_) => {
                matches!(grpc_parts(path), Some(("anabranch.plan.v1.Plans", "Run" | "RunMany")))
            }
            Place::Http(_) | Place::OtherMethod => self.route().is_some_and(|route| route.path == RUN_PLAN),
        };
        if is_plan { Work::Plan } else { Work::Other }
    }

    /// The row of an HTTP request.
    pub(crate) fn route(self) -> Option<&'static Route> {
        match self {
            Place::Http(row) => row.map(|row| &ROUTES[row]),
            Place::OtherMethod | Place::Grpc(_) => None,
        }
    }
}

/// Splits the path of a gRPC call, `/package.Service/Method`.
fn grpc_parts(path: &str) -> Option<(&str, &str)> {
    path.strip_prefix('/')?.split_once('/')
}

/// The credentials that a gRPC call needs, by its path.
pub(crate) fn grpc_needs(path: &str) -> Needs {
    let parts = grpc_parts(path);
    let is_it = |(service, methods, _): &&(&str, &[&str], Needs)| {
        parts.is_some_and(|(wanted, method)| *service == wanted && methods.contains(&method))
    };
    GRPC.iter().find(is_it).map_or(Needs::Token(Scope::Admin), |(_, _, needs)| *needs)
}

/// The index of a call among all calls of [`GRPC`], by its path.
pub(crate) fn grpc_place(path: &str) -> Option<usize> {
    let parts = grpc_parts(path)?;
    let all =
        GRPC.iter().flat_map(|(service, methods, _)| methods.iter().map(move |method| (*service, *method)));
    all.into_iter().position(|known| known == parts)
}
