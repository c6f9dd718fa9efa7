//! Endpoints: per environment, where rows come from.

use std::collections::BTreeMap;
use std::time::Duration;

use anabranch_text::{Problem, Problems, quote};
use serde_json::{Map, Value, json};

use super::entries::{Endpoint, EndpointKind, Endpoints};
use super::tables::{self, File, Unique};
use crate::fields::Fields;
use crate::json::digest;

/// The longest id of an endpoint.
const LONGEST_ID: usize = 64;

const KINDS: [(&str, EndpointKind); 2] = [("redis", EndpointKind::Redis), ("http", EndpointKind::Http)];

/// Reads `endpoints.ENV.toml`.
pub(super) fn from_toml(file: File<'_>, problems: &mut Problems) -> Endpoints {
    let mut taken = UsedNames::default();
    index(tables::read(file, "endpoint", problems, |fields| endpoint(fields, &mut taken)))
}

/// Reads the generated `endpoints.ENV.json`, which carries digests of itself.
pub(super) fn from_json(file: File<'_>, env: &str, problems: &mut Problems) -> Endpoints {
    let mut top = Fields::new(file.map, file.name, problems);
    let version: Option<i64> = top.required("schema_version");
    if let Some(version) = version.filter(|version| *version != 1) {
        top.error("schema_version", format!("version {version} is not known; this program reads version 1"));
    }
    if let Some(found) = top.required::<&str>("env").filter(|found| *found != env) {
        top.error("env", format!("the file is of environment {}, not `{env}`", quote(found)));
    }
    let digests = [top.required::<&str>("registry_digest"), top.required::<&str>("config_digest")];
    let list: Option<&[Value]> = top.required("endpoints");
    if let Some(list) = list {
        let computed = [registry_digest(list), digest(&json!({"schema_version": 1, "endpoints": list}))];
        for (name, (said, computed)) in
            ["registry_digest", "config_digest"].into_iter().zip(digests.into_iter().zip(computed))
        {
            if said.is_some_and(|said| said != computed) {
                let what = format!("does not match the endpoints of the file, whose digest is {computed}");
                top.error_with_help(name, what, "generate the file anew");
            }
        }
    }
    top.finish();
    let mut taken = UsedNames::default();
    let list = list.unwrap_or_default();
    index(tables::read_list(file.name, "endpoint", list, problems, |fields| endpoint(fields, &mut taken)))
}

/// A digest of everything that is the same in all environments.
pub(super) fn registry_digest(endpoints: &[Value]) -> String {
    let entries: Vec<Value> = endpoints
        .iter()
        .map(|endpoint| {
            let field = |name: &str| endpoint.get(name).cloned().unwrap_or_default();
            json!({
                "endpoint_id": field("endpoint_id"),
                "kind": field("kind"),
                "name": field("name"),
            })
        })
        .collect();
    digest(&json!({"schema_version": 1, "entries": entries}))
}

#[derive(Default)]
struct UsedNames {
    ids: Unique,
    names: Unique,
}

fn index(mut entries: Vec<Endpoint>) -> Endpoints {
    entries.iter_mut().enumerate().for_each(|(index, endpoint)| endpoint.index = index);
    Endpoints { entries }
}

fn endpoint(fields: &mut Fields<'_, '_>, taken: &mut UsedNames) -> Option<Endpoint> {
    let id: Option<String> = fields.required("endpoint_id");
    if let Some(id) = &id {
        if !id.starts_with("ep_") {
            fields.error("endpoint_id", format!("must start with `ep_`, not {}", quote(id)));
        }
        if id.len() > LONGEST_ID {
            fields.error("endpoint_id", format!("has {} characters; at most {LONGEST_ID} may be", id.len()));
        }
        taken.ids.claim(fields, "endpoint_id", id);
    }
    let name: Option<String> = fields.required("name");
    if let Some(name) = &name {
        taken.names.claim(fields, "name", name);
    }
    let kind = fields.required_choice("kind", &KINDS);
    let address = fields.required::<&Map<String, Value>>("resolver").and_then(|map| {
        let place = fields.place("resolver");
        address(Fields::new(map, place, fields.problems))
    });
    let empty = Map::new();
    let policy = fields.optional::<&Map<String, Value>>("policy").unwrap_or(&empty);
    let place = fields.place("policy");
    let mut policy = Fields::new(policy, place, fields.problems);
    let [max_inflight, connect, request] =
        ["max_inflight", "connect_timeout_ms", "request_timeout_ms"].map(|name| positive(&mut policy, name));
    policy.finish();
    let (host, port) = address?;
    Some(Endpoint {
        index: 0,
        id: id?,
        name: name?,
        kind: kind?,
        host,
        port,
        max_inflight,
        connect_timeout: connect.map(|ms| Duration::from_millis(ms.into())),
        request_timeout: request.map(|ms| Duration::from_millis(ms.into())),
    })
}

fn address(mut fields: Fields<'_, '_>) -> Option<(String, u16)> {
    if let Some(word) = fields.required::<&str>("type") {
        match word {
            "static" => {}
            "consul" | "dns_srv" | "https" => {
                let what = format!("the resolver `{word}` does not exist yet");
                fields.error_with_help("type", what, "`static` with a host and a port does");
            }
            other => fields.error("type", format!("must be `static`, not {}", quote(other))),
        }
    }
    let host: Option<String> = fields.required("host");
    if host.as_ref().is_some_and(String::is_empty) {
        fields.error("host", "must not be empty");
    }
    let number: Option<i64> = fields.required("port");
    let port = number.and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
    if let (Some(number), None) = (number, port) {
        fields.error("port", format!("must be from 1 to 65535, not {number}"));
    }
    fields.finish();
    Some((host?, port?))
}

fn positive(fields: &mut Fields<'_, '_>, name: &'static str) -> Option<u32> {
    let value: u32 = fields.optional(name)?;
    if value == 0 {
        fields.error_with_help(name, "must be at least 1", "leave it out for the default");
    }
    Some(value)
}

/// Reports differences between two environments that plans can see: ids, names, kinds.
pub(super) fn compare(
    (file, endpoints): (&str, &Endpoints),
    (other_file, other): (&str, &Endpoints),
    problems: &mut Problems,
) {
    let others: BTreeMap<&str, &Endpoint> = other.iter().map(|other| (other.id.as_str(), other)).collect();
    for endpoint in endpoints.iter() {
        let place = format!("{other_file}, endpoint `{}`", endpoint.id);
        match others.get(endpoint.id.as_str()) {
            None => problems.error(Problem::new(place, format!("is missing; {file} has it"))),
            Some(other) => {
                for (field, here, there) in [
                    ("name", endpoint.name.clone(), other.name.clone()),
                    ("kind", endpoint.kind.to_string(), other.kind.to_string()),
                ] {
                    if here != there {
                        let what = format!("is `{there}`, but `{here}` in {file}; environments must agree");
                        problems.error(Problem::new(format!("{place}, {field}"), what));
                    }
                }
            }
        }
    }
    for id in others.keys().filter(|id| endpoints.get(id).is_none()) {
        let place = format!("{file}, endpoint `{id}`");
        problems.error(Problem::new(place, format!("is missing; {other_file} has it")));
    }
}
