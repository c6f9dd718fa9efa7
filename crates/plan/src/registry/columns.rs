//! Keys, parameters and features.

use anabranch_rows::{Key, Kind};
use anabranch_text::{Problem, Problems};

use super::entries::{Feature, KeyEntry, KeyKind, Keys, ParamEntry, Params, Shape, Status};
use super::tables::{self, File, Unique};
use crate::fields::Fields;
use crate::json::show;
use crate::value::Scalar;

const STATUSES: [(&str, Status); 3] =
    [("active", Status::Active), ("deprecated", Status::Deprecated), ("blocked", Status::Blocked)];

const KINDS: [(&str, Kind); 4] =
    [("int", Kind::Int), ("float", Kind::Float), ("string", Kind::Text), ("bool", Kind::Bool)];

const PARAM_TYPES: [(&str, (Kind, Shape)); 6] = [
    ("int", (Kind::Int, Shape::One)),
    ("float", (Kind::Float, Shape::One)),
    ("string", (Kind::Text, Shape::One)),
    ("bool", (Kind::Bool, Shape::One)),
    ("int_list", (Kind::Int, Shape::List)),
    ("string_list", (Kind::Text, Shape::List)),
];

const KEY_KINDS: [(&str, KeyKind); 5] = [
    ("int", KeyKind::Column(Kind::Int)),
    ("float", KeyKind::Column(Kind::Float)),
    ("string", KeyKind::Column(Kind::Text)),
    ("bool", KeyKind::Column(Kind::Bool)),
    ("feature_bundle", KeyKind::FeatureBundle),
];

/// The fields that keys, parameters and features share.
struct Common {
    name: Option<String>,
    nullable: Option<bool>,
    status: Status,
    allow_read: bool,
    allow_write: bool,
    replaced_by: Option<u32>,
    doc: String,
}

fn common(fields: &mut Fields<'_, '_>) -> Common {
    let name: Option<String> = fields.required("name");
    if name.as_ref().is_some_and(String::is_empty) {
        fields.error("name", "must not be empty");
    }
    let status = fields.choice("status", &STATUSES).unwrap_or(Status::Active);
    Common {
        name,
        nullable: fields.required("nullable"),
        status,
        allow_read: fields.optional("allow_read").unwrap_or(true),
        allow_write: fields.optional("allow_write").unwrap_or(status == Status::Active),
        replaced_by: fields.optional("replaced_by"),
        doc: fields.optional("doc").unwrap_or_default(),
    }
}

/// A number that names an entry: from 1.
fn number(fields: &mut Fields<'_, '_>, field: &'static str, taken: &mut Unique) -> Option<u32> {
    let number: u32 = fields.required(field)?;
    if number == 0 {
        fields.error(field, "must be at least 1");
    }
    taken.claim(fields, field, &number);
    Some(number)
}

/// The `default`, which must be of the entry's kind.
fn default(fields: &mut Fields<'_, '_>, kind: Kind) -> Option<Scalar> {
    let value = fields.raw("default")?;
    let scalar = match kind {
        Kind::Int => value.as_i64().map(Scalar::Int),
        Kind::Float => value.as_f64().map(Scalar::Float),
        Kind::Bool => value.as_bool().map(Scalar::Bool),
        Kind::Text => value.as_str().map(|text| Scalar::Text(text.into())),
    };
    if scalar.is_none() {
        fields.error("default", format!("must be of type {kind}, as the entry is, not {}", show(value)));
    }
    scalar
}

/// Reads `keys.toml`.
pub(super) fn keys(file: File<'_>, problems: &mut Problems) -> Keys {
    let (mut numbers, mut names) = (Unique::default(), Unique::default());
    let mut entries = tables::read(file, "key", problems, |fields| key(fields, &mut numbers, &mut names));
    entries.sort_by_key(|entry| entry.key);
    check_replacements(file.name, &entries, problems);
    if !entries.iter().any(|entry| entry.key == Key::ID || entry.name == "id") {
        let help =
            "add [[key]] key_id = 1, name = \"id\", type = \"int\", nullable = false, allow_write = false";
        problems.error(Problem::new(file.name, "the key `id` is missing").help(help));
    }
    Keys { entries }
}

fn key(fields: &mut Fields<'_, '_>, numbers: &mut Unique, names: &mut Unique) -> Option<KeyEntry> {
    let number = number(fields, "key_id", numbers);
    let kind = fields.required_choice("type", &KEY_KINDS);
    let common = common(fields);
    if let Some(name) = &common.name {
        names.claim(fields, "name", name);
    }
    let default = match kind {
        Some(KeyKind::Column(kind)) => default(fields, kind),
        Some(KeyKind::FeatureBundle) => {
            if fields.raw("default").is_some() {
                fields.error("default", "a feature_bundle has none");
            }
            None
        }
        None => fields.raw("default").and(None),
    };
    let entry = KeyEntry {
        key: Key(number?),
        name: common.name?,
        kind: kind?,
        nullable: common.nullable?,
        status: common.status,
        allow_read: common.allow_read,
        allow_write: common.allow_write,
        default,
        replaced_by: common.replaced_by.map(Key),
        doc: common.doc,
    };
    check_key(fields, &entry);
    Some(entry)
}

fn check_key(fields: &mut Fields<'_, '_>, entry: &KeyEntry) {
    if entry.key != Key::ID && entry.name != "id" {
        if !entry.nullable && entry.default.is_none() {
            let help = "add a default, or make it nullable";
            fields.error_with_help("default", "a key that is never null needs one", help);
        }
        return;
    }
    if entry.key != Key::ID {
        fields.error("key_id", format!("the key `id` has number 1, not {}", entry.key));
    }
    if entry.name != "id" {
        fields.error("name", "key 1 is called `id`");
    }
    if entry.kind != KeyKind::Column(Kind::Int) {
        fields.error("type", "the key `id` is an int");
    }
    if entry.nullable {
        fields.error("nullable", "the key `id` is never null; write false");
    }
    if entry.allow_write {
        fields.error("allow_write", "no plan writes the key `id`; write false");
    }
}

fn check_replacements(file: &str, entries: &[KeyEntry], problems: &mut Problems) {
    for entry in entries {
        if let Some(by) = entry.replaced_by
            && entries.binary_search_by_key(&by, |entry| entry.key).is_err()
        {
            let place = format!("{file}, key `{}`, replaced_by", entry.name);
            problems.error(Problem::new(place, format!("there is no key {by}")));
        }
    }
}

/// Reads `params.toml`.
pub(super) fn params(file: File<'_>, problems: &mut Problems) -> Params {
    let (mut numbers, mut names) = (Unique::default(), Unique::default());
    let mut entries = tables::read(file, "param", problems, |fields| {
        let id = number(fields, "param_id", &mut numbers);
        let kind = fields.required_choice("type", &PARAM_TYPES);
        let common = common(fields);
        if let Some(name) = &common.name {
            names.claim(fields, "name", name);
        }
        let default = match kind {
            Some((kind, Shape::One)) => default(fields, kind),
            Some((_, Shape::List)) => {
                if fields.raw("default").is_some() {
                    fields.error("default", "a list has none: it is null unless a request sets it");
                }
                None
            }
            None => fields.raw("default").and(None),
        };
        let (kind, shape) = kind.unzip();
        Some(ParamEntry {
            id: id?,
            index: 0,
            name: common.name?,
            kind: kind?,
            shape: shape?,
            nullable: common.nullable?,
            status: common.status,
            allow_read: common.allow_read,
            allow_write: common.allow_write,
            default,
            doc: common.doc,
        })
    });
    entries.sort_by_key(|entry| entry.id);
    entries.iter_mut().enumerate().for_each(|(index, entry)| entry.index = index);
    Params { entries }
}

/// Reads `features.toml`.
pub(super) fn features(file: File<'_>, problems: &mut Problems) -> Vec<Feature> {
    let (mut numbers, mut names) = (Unique::default(), Unique::default());
    tables::read(file, "feature", problems, |fields| {
        let id = number(fields, "feature_id", &mut numbers);
        let stage: Option<String> = fields.required("stage");
        let kind = fields.required_choice("type", &KINDS);
        let common = common(fields);
        if let (Some(stage), Some(name)) = (&stage, &common.name) {
            names.claim(fields, "name", &format!("{stage}.{name}"));
        }
        if let Some(kind) = kind {
            default(fields, kind);
        }
        Some(Feature { id: id?, stage: stage?, name: common.name?, kind: kind? })
    })
}
