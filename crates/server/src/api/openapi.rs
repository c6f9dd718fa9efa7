//! `/openapi.json`: the table of routes as an OpenAPI document.

use std::sync::LazyLock;

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::{AnswerBody, Needs, ROUTES, RequestBody, Route};

/// The schemas of bodies.
const SCHEMAS: &str = include_str!("schemas.json");

static DOCUMENT: LazyLock<String> = LazyLock::new(|| document().to_string());

/// The document.
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
        "summary": route.about,
        "parameters": parameters(route),
        "responses": { "2XX": answer_of(route), "default": error() },
    });
    match route.needs {
        Needs::Nothing => operation["security"] = json!([]),
        Needs::Token(scope) => {
            operation["security"] = json!([{ "token": [] }]);
            operation["x-scope"] = scope.word().into();
        }
    }
    match route.takes {
        RequestBody::Empty => {}
        RequestBody::Json(schema) => {
            operation["requestBody"] = content("application/json", &reference(schema));
        }
        RequestBody::Bytes => operation["requestBody"] = content("application/octet-stream", &json!({})),
    }
    operation
}

fn parameters(route: &Route) -> Vec<Value> {
    let text = json!({ "type": "string" });
    let of_path = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let of_path = of_path.map(|name| {
        json!({ "name": name.trim_start_matches('*'), "in": "path", "required": true, "schema": text })
    });
    let of_query = route.query.iter().map(|(name, about)| {
        json!({ "name": name, "in": "query", "required": false, "description": about, "schema": text })
    });
    of_path.chain(of_query).collect()
}

fn answer_of(route: &Route) -> Value {
    let mut answer = match route.answers {
        AnswerBody::Json(schema) => content("application/json", &reference(schema)),
        AnswerBody::Media(kind) => content(kind, &json!({})),
        AnswerBody::Empty => json!({}),
    };
    answer["description"] = "the answer".into();
    answer
}

fn error() -> Value {
    let mut answer = content("application/json", &reference("Error"));
    answer["description"] = "what is wrong".into();
    answer
}

fn content(kind: &str, schema: &Value) -> Value {
    json!({ "content": { kind: { "schema": schema } } })
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every schema is there, and every schema is used.
    #[test]
    fn schemas_and_routes_fit() {
        let text = document().to_string();
        let schemas: Map<String, Value> = serde_json::from_str(SCHEMAS).unwrap();
        for name in schemas.keys() {
            assert!(text.contains(&format!("\"#/components/schemas/{name}\"")), "nothing uses {name}");
        }
        for route in ROUTES {
            let named = match (route.takes, route.answers) {
                (RequestBody::Json(taken), AnswerBody::Json(answered)) => vec![taken, answered],
                (RequestBody::Json(named), _) | (_, AnswerBody::Json(named)) => vec![named],
                _ => Vec::new(),
            };
            for name in named {
                assert!(schemas.contains_key(name), "{} {}: no schema {name}", route.method, route.path);
            }
            assert!(route.about.ends_with('.') && !route.about.contains('\n'), "{}", route.about);
        }
    }
}
