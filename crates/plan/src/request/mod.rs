//! Requests: the user, the parameters and the candidates that a plan is run with.

mod candidates;
mod user;

use std::fmt;
use std::sync::Arc;

use anabranch_rows::{Kind, Rows};
use anabranch_text::{Problems, quote, size};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::json::{self, show, whole};
use crate::registry::{ParamEntry, Params, Registries, Shape, Status};
use crate::value::{List, Scalar, Values};

pub use user::UserId;

/// The longest request, in bytes.
const LONGEST_TEXT: usize = 4 << 20;
/// The fields of a request.
const FIELDS: [&str; 5] = ["user_id", "request_id", "plan", "param_overrides", "candidates"];
/// Fields that clients of rankd send and that have no effect.
const UNUSED: [&str; 2] = ["fragment_versions", "output_keys"];

/// The most unknown fields that are reported.
const MOST_TOLD: usize = 20;

/// One request for rows. The values that its plan computes with are checked as they are set.
#[derive(Clone, Debug)]
pub struct Request {
    /// The caller's name for the request; without it, one is made up.
    pub request_id: Option<String>,
    /// The name of the plan, where the request chooses it.
    pub plan: Option<String>,
    /// Fields of the request that have no effect, in words.
    pub warnings: Vec<String>,
    pub(crate) values: RequestValues,
}

/// The values of a request that nodes compute with.
#[derive(Clone, Debug)]
pub(crate) struct RequestValues {
    /// The user.
    pub(crate) user: UserId,
    /// The parameters, by their place in the registry.
    pub(crate) params: Values,
    /// The candidates, if the request brings any.
    pub(crate) candidates: Option<Rows>,
}

/// The reason why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RequestError {
    /// The part of the request that is wrong.
    pub error: &'static str,
    /// All problems of it.
    pub detail: String,
}

impl RequestError {
    fn json(detail: impl Into<String>) -> RequestError {
        RequestError { error: "Invalid JSON input", detail: detail.into() }
    }

    fn request(detail: impl Into<String>) -> RequestError {
        RequestError { error: "Invalid request", detail: detail.into() }
    }

    fn overrides(detail: impl Into<String>) -> RequestError {
        RequestError { error: "Invalid param_overrides", detail: detail.into() }
    }

    /// `{"error":..,"detail":..}`, as it is answered.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("two strings are JSON")
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.error, self.detail)
    }
}

impl std::error::Error for RequestError {}

impl Request {
    /// A request of this user, with the parameters' defaults and without candidates.
    pub fn new(user: impl Into<UserId>, registries: &Registries) -> Request {
        let params = registries.params.iter().map(|param| param.default.clone()).collect();
        let values = RequestValues { user: user.into(), params, candidates: None };
        Request { request_id: None, plan: None, warnings: Vec::new(), values }
    }

    /// A request without parameters, for tests that need no registry.
    #[cfg(test)]
    pub(crate) fn bare(user: i64) -> Request {
        let values = RequestValues { user: user.into(), params: Values::default(), candidates: None };
        Request { request_id: None, plan: None, warnings: Vec::new(), values }
    }

    /// The user.
    pub fn user_id(&self) -> &UserId {
        &self.values.user
    }

    /// The parameters, by their place in the registry.
    pub fn params(&self) -> &Values {
        &self.values.params
    }

    /// The candidates, if the request brings any.
    pub fn candidates(&self) -> Option<&Rows> {
        self.values.candidates.as_ref()
    }

    /// Sets all parameters at once, by their index in the registry, including those that requests may not set. For
    /// requests that were checked before and come from a store.
    pub fn restore_params(&mut self, params: Values, registries: &Registries) -> Result<(), RequestError> {
        let entries = registries.params.iter();
        if params.len() != entries.len() {
            let what = format!("there are {} parameters, not {}", entries.len(), params.len());
            return Err(RequestError::overrides(what));
        }
        for (entry, value) in entries.zip(&params) {
            if let Some(value) = value.as_ref().filter(|value| value.kind() != entry.kind) {
                let what = format!("{} must be {}, not {value:?}", quote(&entry.name), describe(entry));
                return Err(RequestError::overrides(what));
            }
        }
        self.values.params = params;
        Ok(())
    }

    /// Sets the candidates: their ids, and columns of registered keys.
    pub fn set_candidates(&mut self, rows: Rows, registries: &Registries) -> Result<(), RequestError> {
        candidates::check(&rows, &registries.keys).map_err(RequestError::request)?;
        self.values.candidates = Some(rows);
        Ok(())
    }

    /// Sets a parameter; `None` is null.
    pub fn set(
        &mut self,
        name: &str,
        value: Option<Scalar>,
        registries: &Registries,
    ) -> Result<(), RequestError> {
        let entry = settable(name, &registries.params).map_err(RequestError::overrides)?;
        if entry.shape == Shape::List && value.is_some() {
            let what = format!("`{name}` must be {}, not one value; `set_list` takes it", describe(entry));
            return Err(RequestError::overrides(what));
        }
        let fits = match (&value, entry.kind) {
            (None, _) => entry.nullable,
            (Some(Scalar::Float(value)), _) if !value.is_finite() => false,
            (Some(Scalar::Int(_)), Kind::Float) => true,
            (Some(value), kind) => value.kind() == kind,
        };
        if !fits {
            let what = format!("`{name}` must be {}, not {value:?}", describe(entry));
            return Err(RequestError::overrides(what));
        }
        self.values.params[entry.index] = match (value, entry.kind) {
            (Some(Scalar::Int(value)), Kind::Float) => Some(Scalar::Float(value as f64)),
            (value, _) => value,
        };
        Ok(())
    }

    /// Sets a parameter that is a list; `None` is null.
    pub fn set_list(
        &mut self,
        name: &str,
        list: Option<List>,
        registries: &Registries,
    ) -> Result<(), RequestError> {
        let entry = settable(name, &registries.params).map_err(RequestError::overrides)?;
        let fits = match &list {
            None => entry.nullable,
            Some(list) => list.kind() == entry.kind && list.len() <= List::MOST_ITEMS,
        };
        if !fits || entry.shape != Shape::List {
            let found = list.map_or("null".to_owned(), |list| format!("a list of {} values", list.len()));
            return Err(RequestError::overrides(format!(
                "`{name}` must be {}, not {found}",
                describe(entry)
            )));
        }
        self.values.params.set_list(entry.index, list.map(Arc::new));
        Ok(())
    }

    /// Parses a JSON request. All mistakes in its parameters are reported at once, and so are those in its candidates.
    pub fn parse(text: impl AsRef<[u8]>, registries: &Registries) -> Result<Request, RequestError> {
        let text = text.as_ref();
        if text.len() > LONGEST_TEXT {
            let (found, most) = (text.len(), size::format(LONGEST_TEXT as u64));
            let what = format!("the request has {found} bytes; at most {most} are allowed");
            return Err(RequestError::request(what));
        }
        if text.trim_ascii().is_empty() {
            return Err(RequestError::json("the request is empty; the smallest one is {\"user_id\": 1}"));
        }
        let value = json::parse(text).map_err(|error| {
            RequestError::json(format!("line {}, column {}: {}", error.line, error.column, error.what))
        })?;
        let Value::Object(map) = value else {
            return Err(RequestError::request(format!("must be an object, not {}", show(&value))));
        };
        let user = UserId::parse(map.get("user_id"), &registries.limits).map_err(RequestError::request)?;
        let mut request = Request::new(user, registries);
        request.fields(&map)?;
        request.request_id = request.label(&map, "request_id");
        request.plan = request.label(&map, "plan");
        match map.get("param_overrides") {
            None | Some(Value::Null) => {}
            Some(Value::Object(overrides)) => request.override_params(overrides, &registries.params)?,
            Some(other) => {
                return Err(RequestError::overrides(format!("must be an object, not {}", show(other))));
            }
        }
        if let Some(value) = map.get("candidates").filter(|value| !value.is_null()) {
            let rows = candidates::parse(value, &registries.keys).map_err(RequestError::request)?;
            request.values.candidates = Some(rows);
        }
        Ok(request)
    }

    /// Refuses fields that there are not: one that is misspelt would have no effect.
    fn fields(&mut self, map: &Map<String, Value>) -> Result<(), RequestError> {
        let mut wrong = Vec::new();
        for name in map.keys().map(String::as_str) {
            if wrong.len() == MOST_TOLD {
                break;
            }
            if UNUSED.contains(&name) {
                self.warnings.push(format!("`{name}` has no effect"));
            } else if !FIELDS.contains(&name) {
                let help = Problems::default().did_you_mean(name, FIELDS);
                let help = help.map(|help| format!(" ({help})")).unwrap_or_default();
                wrong.push(format!("there is no field {}{help}", quote(name)));
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(RequestError::request(wrong.join("; "))) }
    }

    fn label(&mut self, map: &Map<String, Value>, name: &str) -> Option<String> {
        let value = map.get(name).filter(|value| !value.is_null())?;
        let text = value.as_str().map(str::to_owned);
        if text.is_none() {
            self.warnings.push(format!("`{name}` must be a string, not {}; it has no effect", show(value)));
        }
        text
    }

    fn override_params(
        &mut self,
        overrides: &Map<String, Value>,
        params: &Params,
    ) -> Result<(), RequestError> {
        let mut wrong = Vec::new();
        for (name, value) in overrides {
            let entry = settable(name, params);
            let set = entry.and_then(|entry| match entry.shape {
                Shape::One => scalar(entry, value).map(|value| self.values.params[entry.index] = value),
                Shape::List => list(entry, value)
                    .map(|list| self.values.params.set_list(entry.index, list.map(Arc::new))),
            });
            wrong.extend(set.err());
        }
        if wrong.is_empty() { Ok(()) } else { Err(RequestError::overrides(wrong.join("; "))) }
    }
}

/// The parameter called `name`, if requests may set it.
fn settable<'a>(name: &str, params: &'a Params) -> Result<&'a ParamEntry, String> {
    let shown = quote(name);
    let Some(entry) = params.named(name) else {
        let known = params.iter().map(|param| param.name.as_str());
        let help = Problems::default().did_you_mean(name, known);
        let help = help.map(|help| format!(" ({help})")).unwrap_or_default();
        return Err(format!("there is no parameter {shown}{help}"));
    };
    match entry.status {
        Status::Active if entry.allow_write => Ok(entry),
        Status::Active => Err(format!("{shown} is not writable")),
        Status::Deprecated => Err(format!("{shown} is deprecated")),
        Status::Blocked => Err(format!("{shown} is blocked")),
    }
}

/// The value of a parameter in a request.
fn scalar(entry: &ParamEntry, value: &Value) -> Result<Option<Scalar>, String> {
    if value.is_null() && entry.nullable {
        return Ok(None);
    }
    let scalar = match entry.kind {
        Kind::Int => whole(value).map(Scalar::Int),
        Kind::Float => value.as_f64().map(Scalar::Float),
        Kind::Bool => value.as_bool().map(Scalar::Bool),
        Kind::Text => value.as_str().map(|text| Scalar::Text(text.into())),
    };
    let Some(scalar) = scalar else {
        return Err(format!("{} must be {}, not {}", quote(&entry.name), describe(entry), show(value)));
    };
    Ok(Some(scalar))
}

/// The list of a parameter in a request.
fn list(entry: &ParamEntry, value: &Value) -> Result<Option<List>, String> {
    if value.is_null() && entry.nullable {
        return Ok(None);
    }
    let wrong = |found: String| format!("{} must be {}, not {found}", quote(&entry.name), describe(entry));
    let items = value.as_array().ok_or_else(|| wrong(show(value)))?;
    if items.len() > List::MOST_ITEMS {
        return Err(wrong(format!("a list of {}", items.len())));
    }
    let of_item = |at: usize| wrong(format!("{} as item {}", show(&items[at]), at + 1));
    let each = items.iter().enumerate();
    Ok(Some(match entry.kind {
        Kind::Text => {
            let text = |(at, item): (usize, &Value)| item.as_str().map(Arc::from).ok_or_else(|| of_item(at));
            List::texts(each.map(text).collect::<Result<Vec<Arc<str>>, _>>()?)
        }
        _ => {
            let int = |(at, item): (usize, &Value)| whole(item).ok_or_else(|| of_item(at));
            List::ints(each.map(int).collect::<Result<Vec<i64>, _>>()?)
        }
    }))
}

fn describe(entry: &ParamEntry) -> String {
    if entry.shape == Shape::List {
        let items = if entry.kind == Kind::Text { "strings" } else { "ints of 64 bits" };
        let null = if entry.nullable { " or null" } else { "" };
        return format!("a list of at most {} {items}{null}", List::MOST_ITEMS);
    }
    let kind = match entry.kind {
        Kind::Int => "an int of 64 bits",
        Kind::Float => "a finite float",
        Kind::Bool => "a bool",
        Kind::Text => "a string",
    };
    if entry.nullable { format!("{kind} or null") } else { kind.to_owned() }
}
