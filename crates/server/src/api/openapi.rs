//! `/openapi.json`: the table of routes as an OpenAPI document.

use std::sync::LazyLock;

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::{AnswerBody, Needs, ParamKind, ROUTES, RequestBody, RequestHeader, ResponseHeader, Route};

/// The schemas of bodies.
const SCHEMAS: &str = include_str!("schemas.json");

static DOCUMENT: LazyLock<String> = LazyLock::new(|| document().to_string());

/// Answers with the document.
pub(crate) async fn answer() -> Response {
    ([(CONTENT_TYPE, "application/json")], DOCUMENT.as_str()).into_response()
}

fn document() -> Value {
    let schemas: Value = serde_json::from_str(SCHEMAS).expect("a test reads it");
    let mut paths: Map<String, Value> = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path.replace("{*", "{")).or_insert_with(|| json!({}));
        path[route.method.to_ascii_lowercase()] = operation(route);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Anabranch",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Plans, recipes and datasets over HTTP. Errors are {\"error\": {\"code\", \"message\"}}.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn operation(route: &Route) -> Value {
    let mut operation = json!({
        "operationId": operation_id(route),
        "tags": [tag(route)],
        "summary": route.about,
        "parameters": parameters(route),
        "responses": { "2XX": answer_of(route), "default": error(route) },
    });
    if route.method == "GET" && route.headers.contains(&RequestHeader::IfNoneMatch) {
        operation["responses"]["304"] = json!({
            "description": "the client has it already: an empty response",
            "headers": answer_headers(route, false),
        });
    }
    match route.needs {
        Needs::Nothing => operation["security"] = json!([]),
        Needs::Token(scope) => {
            operation["security"] = json!([{ "token": [] }]);
            operation["x-scope"] = scope.word().into();
        }
    }
    // A blob may be empty.
    let (is_required, body) = match route.takes {
        RequestBody::Empty => return operation,
        RequestBody::Json(schema) => (true, content(&["application/json"], &reference(schema))),
        RequestBody::Bytes => (false, content(&["application/octet-stream"], &json!({}))),
    };
    operation["requestBody"] = json!({ "required": is_required, "content": body });
    operation
}

/// The parts of a path without its version and braces.
fn words(route: &Route) -> impl Iterator<Item = &'static str> {
    let parts = route.path.split('/').filter(|part| !part.is_empty() && *part != "v1");
    parts.map(|part| part.trim_matches(['{', '*', '}']))
}

/// Such as `get_runs_id_events`. Generated clients use it as the name of a function.
fn operation_id(route: &Route) -> String {
    let method = route.method.to_ascii_lowercase();
    let id = words(route).fold(method, |id, word| format!("{id}_{}", word.replace('.', "_")));
    if route.path == "/" { format!("{id}_console") } else { id }
}

/// The area of a route: its first word, such as `runs`.
fn tag(route: &Route) -> &'static str {
    match words(route).next() {
        Some(area) if route.path.starts_with("/v1/") => area,
        Some("console") | None => "console",
        Some(_) => "server",
    }
}

fn parameters(route: &Route) -> Vec<Value> {
    let of_path = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let of_path = of_path.map(|name| {
        let name = name.trim_start_matches('*');
        json!({ "name": name, "in": "path", "required": true, "schema": path_schema(name) })
    });
    let of_query = route.query.iter().map(|(name, kind, about)| {
        json!({ "name": name, "in": "query", "required": false, "description": about, "schema": schema(*kind) })
    });
    let of_route = route.headers.iter().map(|header| header_param(*header));
    of_path.chain(of_query).chain(of_route).chain(all_headers()).collect()
}

/// The headers that every route reads. A value that is not well-formed is ignored, so any text fits.
fn all_headers() -> [Value; 2] {
    [
        header(
            "X-Request-Id",
            "the id of the request in its response and the log: up to 128 letters, digits and `._:-`; another value is ignored",
            &ignorable("order-7"),
        ),
        header(
            "traceparent",
            "the W3C trace context; one that is not well-formed is ignored",
            &ignorable("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        ),
    ]
}

fn header(name: &str, about: &str, schema: &Value) -> Value {
    json!({ "name": name, "in": "header", "required": false, "description": about, "schema": schema })
}

/// The schema of a header whose value is ignored if it is not well-formed.
fn ignorable(example: &str) -> Value {
    json!({ "type": "string", "examples": [example] })
}

fn header_param(param: RequestHeader) -> Value {
    let pattern = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    let (name, about, schema) = match param {
        RequestHeader::IdempotencyKey => (
            "Idempotency-Key",
            "a second submission with the same key and body is the first one",
            pattern("^[!-~]([\\t -~]{0,198}[!-~])?$"),
        ),
        RequestHeader::IfMatch => {
            ("If-Match", "the address that the name must have", pattern("^\"[0-9a-f]{64}\"$"))
        }
        RequestHeader::IfNew => ("If-None-Match", "`*`: the name must not have an address", pattern("^\\*$")),
        RequestHeader::IfNoneMatch => {
            ("If-None-Match", "`*`, or the tags that the client has", ignorable("*"))
        }
        RequestHeader::IfRange => (
            "If-Range",
            "the tag that a Range is for; with another tag, the response has all bytes",
            ignorable("\"af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262\""),
        ),
        RequestHeader::LastEventNumber => (
            "Last-Event-ID",
            "the number of the last event that the client has",
            schema(ParamKind::AtLeast(0)),
        ),
        RequestHeader::LastEventId => {
            ("Last-Event-ID", "the id of the last event that the client has", schema(ParamKind::EventId))
        }
        RequestHeader::Range => (
            "Range",
            "one part of the value; the response to a range that is not well-formed has all bytes",
            ignorable("bytes=0-3"),
        ),
        RequestHeader::RequestTimeout => {
            ("Request-Timeout", "how long the response may take, as in `150ms`", schema(ParamKind::Time))
        }
    };
    header(name, about, &schema)
}

/// The headers of a response.
fn answer_headers(route: &Route, is_error: bool) -> Value {
    let header = |about: &str| json!({ "description": about, "schema": { "type": "string" } });
    let mut headers = json!({ "X-Request-Id": header("the id of the request") });
    if is_error {
        headers["Retry-After"] = header("seconds until a retry makes sense, for 429 and 503");
        return headers;
    }
    for own in route.answer_headers {
        let (name, about) = match own {
            ResponseHeader::ETag => ("ETag", "the address of the content, quoted"),
            ResponseHeader::Location => ("Location", "the path of the new resource"),
            ResponseHeader::PlanVersion => ("X-Plan-Version", "the version of the plan that answered"),
            ResponseHeader::RunId => ("X-Run-Id", "the run, if its details are kept"),
        };
        headers[name] = header(about);
    }
    headers
}

/// The schema of a parameter in a path, by its name.
fn path_schema(name: &str) -> Value {
    match name {
        "id" => schema(ParamKind::Id),
        "address" => json!({ "type": "string", "pattern": "^[0-9a-f]{64}$" }),
        "file" => schema(ParamKind::Word(&["timeline.html", "timeline.svg", "timeline.json"])),
        // Names have at most 255 bytes.
        _ => json!({
            "type": "string", "minLength": 1, "maxLength": 63,
            "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]+$",
        }),
    }
}

fn schema(kind: ParamKind) -> Value {
    match kind {
        ParamKind::Text => json!({ "type": "string" }),
        ParamKind::Count(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        ParamKind::AtLeast(least) => json!({ "type": "integer", "minimum": least, "maximum": u64::MAX }),
        ParamKind::Time => {
            let pattern = "^[0-9]{1,4}(\\.[0-9]{1,3})?(us|ms|s|m|h)$";
            json!({ "type": "string", "pattern": pattern, "examples": ["150ms"] })
        }
        ParamKind::Flag => json!({ "type": "boolean" }),
        ParamKind::Word(words) => json!({ "type": "string", "enum": words }),
        ParamKind::EventId => json!({ "type": "string", "pattern": "^([0-9a-f]{1,16}-)?[0-9]{1,15}$" }),
        ParamKind::Id => json!({ "type": "string", "pattern": "^[0-9a-f]{12}-[0-9a-f]{4}$" }),
    }
}

fn answer_of(route: &Route) -> Value {
    let any = json!({});
    let content = match route.answers {
        AnswerBody::Json(schema) => content(&["application/json"], &reference(schema)),
        AnswerBody::Media(kinds) => content(kinds, &any),
        AnswerBody::JsonOrMedia(schema, kinds) => {
            let mut all = content(kinds, &any);
            all["application/json"] = json!({ "schema": reference(schema) });
            all
        }
        AnswerBody::Empty => {
            return json!({ "description": "an empty response", "headers": answer_headers(route, false) });
        }
    };
    json!({ "description": "the response", "headers": answer_headers(route, false), "content": content })
}

fn error(route: &Route) -> Value {
    let content = content(&["application/json"], &reference("Error"));
    json!({ "description": "the error, with advice", "headers": answer_headers(route, true), "content": content })
}

/// The media types of a body, all with this schema.
fn content(kinds: &[&str], schema: &Value) -> Value {
    kinds.iter().map(|kind| ((*kind).to_owned(), json!({ "schema": schema }))).collect::<Map<_, _>>().into()
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every schema that a route names exists, and a route uses every schema.
    #[test]
    fn schemas_and_routes_fit() {
        let text = document().to_string();
        let schemas: Map<String, Value> = serde_json::from_str(SCHEMAS).unwrap();
        for name in schemas.keys() {
            assert!(text.contains(&format!("\"#/components/schemas/{name}\"")), "nothing uses {name}");
        }
        let mut ids = std::collections::BTreeSet::new();
        for route in ROUTES {
            let taken = match route.takes {
                RequestBody::Json(schema) => Some(schema),
                RequestBody::Bytes | RequestBody::Empty => None,
            };
            let answered = match route.answers {
                AnswerBody::Json(schema) | AnswerBody::JsonOrMedia(schema, _) => Some(schema),
                AnswerBody::Media(_) | AnswerBody::Empty => None,
            };
            for name in taken.into_iter().chain(answered) {
                assert!(schemas.contains_key(name), "{} {}: no schema {name}", route.method, route.path);
            }
            assert!(ids.insert(operation_id(route)), "two are called {}", operation_id(route));
            assert!(route.about.ends_with('.') && !route.about.contains('\n'), "{}", route.about);
        }
    }
}
