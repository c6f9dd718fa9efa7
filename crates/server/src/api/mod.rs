//! The table of all routes: the scope that each needs, the body that it takes, and its description.
//!
//! A new route gets one row in `routes.rs`. A route without a row needs the scope `admin`, and a test finds it.

mod routes;

use axum::http::Method;

use crate::access::Scope;
pub(crate) use routes::{GRPC, ROUTES};

/// What a caller needs for a route.
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
    /// A body of this media type.
    Media(&'static str),
    /// None.
    Empty,
}

/// A route of HTTP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    /// `GET` also stands for `HEAD`.
    pub(crate) method: &'static str,
    /// As the router has it, `/v1/refs/{name}`.
    pub(crate) path: &'static str,
    pub(crate) needs: Needs,
    /// One sentence.
    pub(crate) about: &'static str,
    pub(crate) takes: RequestBody,
    pub(crate) answers: AnswerBody,
    /// The fields that may stand behind `?`, each with its description.
    pub(crate) query: &'static [(&'static str, &'static str)],
}

impl Route {
    const fn new(method: &'static str, path: &'static str, needs: Needs, about: &'static str) -> Route {
        let (takes, answers) = (RequestBody::Empty, AnswerBody::Empty);
        Route { method, path, needs, about, takes, answers, query: &[] }
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

    const fn query(self, query: &'static [(&'static str, &'static str)]) -> Route {
        Route { query, ..self }
    }
}

/// The place of a route in [`ROUTES`], by the method of a request and the path that the router matched.
pub(crate) fn find(method: &Method, path: &str) -> Option<usize> {
    let method = if *method == Method::HEAD { "GET" } else { method.as_str() };
    ROUTES.iter().position(|route| route.path == path && route.method == method)
}

/// What a call of gRPC needs, by its path.
pub(crate) fn grpc_needs(path: &str) -> Needs {
    let found = GRPC.iter().find(|(service, methods, _)| {
        let rest = path.strip_prefix('/').and_then(|path| path.strip_prefix(*service));
        let method = rest.and_then(|rest| rest.strip_prefix('/'));
        method.is_some_and(|method| methods.contains(&method))
    });
    found.map_or(Needs::Token(Scope::Admin), |(_, _, needs)| *needs)
}
