//! The registries as types: keys, parameters, endpoints, capabilities.

use std::collections::BTreeMap;

use anabranch_plan::registry::{Endpoint, KeyEntry, KeyKind, ParamEntry, Shape, Status};
use anabranch_plan::{Kind, Registries, Scalar};

use super::page::{Page, member, one_of, sentence};

/// Declares all of them.
pub(super) fn declare(page: &mut Page, registries: &Registries) {
    let keys = registries.keys.iter().filter(|entry| entry.status != Status::Blocked);
    page.block("interface Keys {", |page| keys.for_each(|entry| key(page, entry, registries)), "}");
    page.line("");
    let params = registries.params.iter().filter(|entry| entry.status != Status::Blocked);
    page.block("interface Params {", |page| params.for_each(|entry| param(page, entry)), "}");
    page.line("");
    let mut by_kind: BTreeMap<String, Vec<&Endpoint>> = BTreeMap::new();
    for endpoint in registries.endpoints.iter() {
        by_kind.entry(endpoint.kind.to_string()).or_default().push(endpoint);
    }
    let endpoints = |page: &mut Page| by_kind.iter().for_each(|(kind, list)| endpoints(page, kind, list));
    page.block("interface Endpoints {", endpoints, "}");
    page.line("");
    page.doc(&["Extensions that plans may require.".to_owned()], &[]);
    let supported = registries.capabilities.iter().filter(|capability| capability.supported);
    page.line(&format!("type Capability = {};", one_of(supported.map(|capability| capability.id.as_str()))));
}

fn key(page: &mut Page, entry: &KeyEntry, registries: &Registries) {
    let (kind, declared) = match entry.kind {
        KeyKind::Column(kind) => (format!("`{kind}`"), format!("Column<{}>", scalar(kind))),
        KeyKind::FeatureBundle => ("feature bundle".to_owned(), "FeatureBundle".to_owned()),
    };
    let mut facts = vec![kind];
    facts.extend(entry.nullable.then(|| "may be null".to_owned()));
    facts.extend((!entry.allow_read).then(|| "plans may not read it".to_owned()));
    facts.extend((!entry.allow_write).then(|| "plans may not write it".to_owned()));
    let instead = entry.replaced_by.and_then(|key| registries.keys.get(key));
    let instead = instead.map(|entry| format!(" Use `Key.{}`.", entry.name)).unwrap_or_default();
    page.doc(&[sentence(&entry.doc), sentence(&facts.join(", "))], &deprecated(entry.status, &instead));
    page.line(&format!("readonly {}: {declared};", member(&entry.name)));
}

fn param(page: &mut Page, entry: &ParamEntry) {
    let unset = match &entry.default {
        Some(Scalar::Text(text)) => format!("`{text}` if not set"),
        Some(value) => format!("{value} if not set"),
        None => "null if not set".to_owned(),
    };
    let facts = format!("`{}`, {unset}", entry.type_name());
    page.doc(&[sentence(&entry.doc), sentence(&facts)], &deprecated(entry.status, ""));
    let declared = match entry.shape {
        Shape::One => "Param",
        Shape::List => "ListParam",
    };
    page.line(&format!("readonly {}: {declared}<{}>;", member(&entry.name), scalar(entry.kind)));
}

fn endpoints(page: &mut Page, kind: &str, endpoints: &[&Endpoint]) {
    let inside = |page: &mut Page| {
        for endpoint in endpoints {
            page.doc(&[format!("`{}`", endpoint.id)], &[]);
            page.line(&format!("readonly {}: Endpoint<\"{kind}\">;", member(&endpoint.name)));
        }
    };
    page.block(&format!("readonly {kind}: {{"), inside, "};");
}

fn deprecated(status: Status, instead: &str) -> Vec<String> {
    let tag = || format!("@deprecated{instead}");
    (status == Status::Deprecated).then(tag).into_iter().collect()
}

fn scalar(kind: Kind) -> &'static str {
    match kind {
        Kind::Int | Kind::Float => "number",
        Kind::Bool => "boolean",
        Kind::Text => "string",
    }
}
