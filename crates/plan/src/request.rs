//! Requests: who asks, and with which parameters.

use std::fmt;
use std::sync::Arc;

use anabranch_text::{Problems, quote};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::json::{self, show, whole};
use crate::registry::{ParamEntry, Params, Registries, Shape, Status};
use crate::value::{List, Scalar, Values};
use anabranch_rows::Kind;

/// The longest request.
const LONGEST_TEXT: usize = 1 << 20;
/// The largest user id.
const LAST_USER: i64 = u32::MAX as i64;
/// What a request may hold besides what is read here; nothing follows from it.
const UNUSED: [&str; 2] = ["fragment_versions", "output_keys"];

/// One request for rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Who asks.
    pub user_id: i64,
    /// What the asker calls the request; without it, one is made up.
    pub request_id: Option<String>,
    /// The plan it asks for, where that is for the request to say.
    pub plan: Option<String>,
    /// The parameters, by their place in the registry.
    pub params: Values,
    /// What the request holds to no effect.
    pub warnings: Vec<String>,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RequestError {
    /// Which part of it is wrong.
    pub error: &'static str,
    /// Everything wrong there.
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
    /// A request of this user, with the parameters' defaults.
    pub fn new(user_id: i64, registries: &Registries) -> Request {
        let params = registries.params.iter().map(|param| param.default.clone()).collect();
        Request { user_id, request_id: None, plan: None, params, warnings: Vec::new() }
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
        self.params[entry.index] = match (value, entry.kind) {
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
        self.params.set_list(entry.index, list.map(Arc::new));
        Ok(())
    }

    /// Reads a JSON request. Of what is wrong in its parameters, all is told.
    pub fn parse(text: impl AsRef<[u8]>, registries: &Registries) -> Result<Request, RequestError> {
        let text = text.as_ref();
        if text.len() > LONGEST_TEXT {
            let what = format!("the request has {} bytes; {LONGEST_TEXT} may be", text.len());
            return Err(RequestError::request(what));
        }
        if text.trim_ascii().is_empty() {
            return Err(RequestError::json("there is no request; the least is {\"user_id\": 1}"));
        }
        let value = json::parse(text).map_err(|error| {
            RequestError::json(format!("line {}, column {}: {}", error.line, error.column, error.what))
        })?;
        let Value::Object(map) = value else {
            return Err(RequestError::request(format!("must be an object, not {}", show(&value))));
        };
        let user_id = user_id(map.get("user_id")).map_err(RequestError::request)?;
        let mut request = Request::new(user_id, registries);
        request.request_id = request.label(&map, "request_id");
        request.plan = request.label(&map, "plan");
        match map.get("param_overrides") {
            None | Some(Value::Null) => {}
            Some(Value::Object(overrides)) => request.override_params(overrides, &registries.params)?,
            Some(other) => {
                return Err(RequestError::overrides(format!("must be an object, not {}", show(other))));
            }
        }
        for name in map.keys() {
            let known = ["user_id", "request_id", "plan", "param_overrides"].contains(&name.as_str());
            if UNUSED.contains(&name.as_str()) {
                request.warnings.push(format!("`{name}` has no effect"));
            } else if !known {
                request.warnings.push(format!("there is no field {}; it has no effect", quote(name)));
            }
        }
        Ok(request)
    }

    fn label(&mut self, map: &Map<String, Value>, name: &str) -> Option<String> {
        let value = map.get(name).filter(|value| !value.is_null())?;
        let text = value.as_str().map(str::to_owned);
        if text.is_none() {
            self.warnings.push(format!("`{name}` is no string but {}; it has no effect", show(value)));
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
                Shape::One => scalar(entry, value).map(|value| self.params[entry.index] = value),
                Shape::List => {
                    list(entry, value).map(|list| self.params.set_list(entry.index, list.map(Arc::new)))
                }
            });
            wrong.extend(set.err());
        }
        if wrong.is_empty() { Ok(()) } else { Err(RequestError::overrides(wrong.join("; "))) }
    }
}

fn user_id(value: Option<&Value>) -> Result<i64, String> {
    let number = match value {
        None => return Err("`user_id` is missing".to_owned()),
        Some(Value::Number(number)) => number.as_i64(),
        Some(Value::String(text)) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            text.parse().ok()
        }
        Some(_) => None,
    };
    number.filter(|number| (1..=LAST_USER).contains(number)).ok_or_else(|| {
        let found = value.map(show).unwrap_or_default();
        format!("`user_id` must be a whole number from 1 to {LAST_USER}, or a string of one, not {found}")
    })
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

/// The value that a request gives a parameter.
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

/// The list that a request gives a parameter.
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
