//! Capabilities: the extensions that plans may require.

use anabranch_text::{Problems, quote};
use regex::Regex;

use super::entries::Capability;
use super::payload::Payload;
use super::tables::{self, File, Unique};
use crate::fields::Fields;

/// Reads `capabilities.toml`.
pub(super) fn capabilities(file: File<'_>, problems: &mut Problems) -> Vec<Capability> {
    let shape = Regex::new(r"^cap\.rfc\.[0-9]{4}\.[a-z0-9_]+\.v[0-9]+$").expect("the pattern is a regex");
    let mut ids = Unique::default();
    tables::read(file, "capability", problems, |fields| capability(fields, &shape, &mut ids))
}

fn capability(fields: &mut Fields<'_, '_>, shape: &Regex, ids: &mut Unique) -> Option<Capability> {
    let id: Option<String> = fields.required("id");
    if let Some(id) = &id {
        if !shape.is_match(id) {
            fields.error("id", format!("must look like `cap.rfc.0001.some_name.v1`, not {}", quote(id)));
        }
        ids.claim(fields, "id", id);
    }
    for prose in ["rfc", "name", "doc"] {
        fields.optional::<&str>(prose);
    }
    // Deprecated ones still work; drafts do not yet.
    let statuses = [("implemented", true), ("deprecated", true), ("draft", false), ("blocked", false)];
    let supported = fields.required_choice("status", &statuses);
    let schema: Option<&str> = fields.optional("payload_schema");
    let payload = match schema.filter(|text| !text.trim().is_empty()) {
        Some(text) => Some(Payload::parse(text, &fields.place("payload_schema"), fields.problems)?),
        None => None,
    };
    Some(Capability { id: id?, supported: supported?, payload })
}
