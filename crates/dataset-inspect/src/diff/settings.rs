//! Settings, errors and spend, side by side.

use std::collections::BTreeMap;

use anabranch_dataset::output::Metadata;
use serde::Serialize;

use crate::report::BuildSpend;

/// A setting, an input or a model that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Setting {
    pub name: String,
    pub before: Option<String>,
    pub after: Option<String>,
}

/// The failed cells of a column and class in both datasets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CountChange {
    pub column: String,
    pub class: String,
    pub before: u64,
    pub after: u64,
}

/// The spend of both datasets.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SpendChange {
    pub before: BuildSpend,
    pub after: BuildSpend,
}

/// Everything of two metadata that decides about values, where it differs.
pub(super) fn compare(before: &Metadata, after: &Metadata) -> Vec<Setting> {
    let [old, new] = [before, after].map(settings);
    let names = old.keys().chain(new.keys().filter(|name| !old.contains_key(*name)));
    let setting = |name: &String| Setting {
        name: name.clone(),
        before: old.get(name).cloned(),
        after: new.get(name).cloned(),
    };
    names.map(setting).filter(|setting| setting.before != setting.after).collect()
}

fn settings(metadata: &Metadata) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::from([
        ("name".to_owned(), metadata.dataset_name.clone()),
        ("rows asked for".to_owned(), metadata.target_num_records.to_string()),
        ("seed".to_owned(), metadata.seed.to_string()),
        ("version".to_owned(), metadata.anabranch_version.clone()),
        ("is complete".to_owned(), metadata.is_complete.to_string()),
    ]);
    settings.extend(metadata.inputs.iter().map(|(name, digest)| (format!("input {name}"), digest.clone())));
    settings
        .extend(metadata.models.iter().map(|(alias, used)| (format!("model {alias}"), used.model.clone())));
    settings
}

/// The failed cells of both, by column and class.
pub(super) fn errors(before: &Metadata, after: &Metadata) -> Vec<CountChange> {
    let mut counts: BTreeMap<(&str, &str), [u64; 2]> = BTreeMap::new();
    for (side, metadata) in [before, after].into_iter().enumerate() {
        for (column, classes) in &metadata.errors {
            for (class, count) in classes {
                counts.entry((column, class)).or_default()[side] += count;
            }
        }
    }
    let change = |((column, class), [before, after]): ((&str, &str), [u64; 2])| CountChange {
        column: column.to_owned(),
        class: class.to_owned(),
        before,
        after,
    };
    counts.into_iter().map(change).collect()
}
