//! Checks that need more than one column: samplers that follow others, constraints, validators, dropped columns.

use std::collections::HashSet;

use anabranch_document::{Notes, Span};
use anabranch_sampler::{Convert, Sampler};
use anabranch_text::quote;
use anabranch_value::Value;

use super::draft::Draft;
use super::graph::{Names, Producer};
use super::pattern::matches;
use super::resolve::SeedNames;
use super::types::{Column, ColumnKind, ConstraintRhs, LlmOutput, SamplerColumn, Validator};
use super::value::category_text;

/// Checks everything that needs more than one column.
pub(super) fn check(draft: &mut Draft, names: &Names, seed: &SeedNames, notes: &mut Notes<'_>) {
    for number in 0..draft.columns.len() {
        subcategory(number, draft, names, notes);
        timedelta(number, draft, names, notes);
        code_validator(number, draft, names, notes);
        braces(number, draft, names, notes);
    }
    constraints(draft, names, notes);
    dropped(draft, names, seed, notes);
}

fn column_of<'d>(draft: &'d Draft, names: &Names, name: &str) -> Option<&'d Column> {
    match names.get(name)? {
        Producer::Column(column) => draft.columns[column].column.as_ref(),
        _ => None,
    }
}

fn sampler_of(column: &Column) -> Option<&SamplerColumn> {
    match &column.kind {
        ColumnKind::Sampler(sampler) => Some(sampler),
        _ => None,
    }
}

/// The plain sampler of a column and those of its conditions.
fn all_samplers(column: &SamplerColumn) -> impl Iterator<Item = &Sampler> {
    std::iter::once(&column.sampler).chain(column.conditional.iter().map(|(_, sampler)| sampler))
}

/// The parent of a subcategory is a category, and each of its values has a list.
fn subcategory(number: usize, draft: &mut Draft, names: &Names, notes: &mut Notes<'_>) {
    let Some(column) = draft.columns[number].column.as_ref().and_then(sampler_of) else { return };
    let mut wrong: Vec<(Span, String, String)> = Vec::new();
    for (place, sampler) in all_samplers(column).enumerate() {
        let Sampler::Subcategory(subcategory) = sampler else { continue };
        let at = if place == 0 { draft.columns[number].spot("values") } else { &draft.columns[number].at };
        let producer = names.get(&subcategory.category);
        let Some(parent) = column_of(draft, names, &subcategory.category) else {
            if matches!(producer, Some(Producer::Seed(_) | Producer::SideEffect(_))) {
                wrong.push(not_a_category(at, &subcategory.category));
            }
            continue;
        };
        let values = sampler_of(parent).and_then(|parent| {
            let lists = all_samplers(parent).map(|sampler| match sampler {
                Sampler::Category(category) => Some(category.values.iter().map(category_text)),
                _ => None,
            });
            lists.collect::<Option<Vec<_>>>()
        });
        let Some(values) = values else {
            wrong.push(not_a_category(at, &subcategory.category));
            continue;
        };
        let values: Vec<String> = values.into_iter().flatten().collect();
        let wanted: HashSet<&str> = values.iter().map(String::as_str).collect();
        let keys: HashSet<&str> = subcategory.values.iter().map(|(key, _)| key.as_str()).collect();
        let missing: Vec<&str> =
            values.iter().map(String::as_str).filter(|value| !keys.contains(value)).collect();
        let extra: Vec<&str> = subcategory
            .values
            .iter()
            .map(|(key, _)| key.as_str())
            .filter(|key| !wanted.contains(key))
            .collect();
        let category = quote(&subcategory.category);
        if !missing.is_empty() {
            let what = format!("values of category {category} have no list: {}", some(&missing));
            wrong.push((at.clone(), what, "add a list for each".to_owned()));
        }
        if !extra.is_empty() {
            let what = format!("category {category} has no such values: {}", some(&extra));
            wrong.push((at.clone(), what, "take these lists away, or add the values there".to_owned()));
        }
    }
    wrong.into_iter().for_each(|(at, what, help)| notes.note(&at, what, help));
}

fn not_a_category(at: &Span, name: &str) -> (Span, String, String) {
    let what = format!("{} is not a sampler of type `category`", quote(name));
    (at.clone(), what, "a subcategory follows a category".to_owned())
}

/// The first of several names.
fn some(names: &[&str]) -> String {
    const SHOWN: usize = 5;
    let mut shown: Vec<String> = names.iter().take(SHOWN).map(|name| quote(name)).collect();
    if names.len() > SHOWN {
        shown.push(format!("{} more", names.len() - SHOWN));
    }
    shown.join(", ")
}

fn timedelta(number: usize, draft: &Draft, names: &Names, notes: &mut Notes<'_>) {
    let found = &draft.columns[number];
    let Some(column) = found.column.as_ref().and_then(sampler_of) else { return };
    for sampler in all_samplers(column) {
        let Sampler::Timedelta(timedelta) = sampler else { continue };
        let name = &timedelta.reference_column_name;
        let is_date = match names.get(name) {
            // Already reported, or a column of a seed that was not opened.
            None => true,
            Some(Producer::Column(place)) => draft.columns[place].column.as_ref().is_none_or(|column| {
                sampler_of(column).is_some_and(|column| matches!(column.sampler, Sampler::Datetime(_)))
            }),
            Some(_) => false,
        };
        if !is_date {
            let what = format!("{} is not a sampler of type `datetime`", quote(name));
            let reference = found.references.iter().find(|reference| reference.name == *name);
            let at = reference.map_or(&found.at, |reference| &reference.at);
            notes.note(at, what, "a timedelta is added to a datetime");
        }
    }
}

/// The values of a sampler column are numbers.
fn is_numeric(column: &Column) -> bool {
    let Some(column) = sampler_of(column) else { return false };
    let is_number = |sampler: &Sampler| match sampler {
        Sampler::Uniform(_)
        | Sampler::Gaussian(_)
        | Sampler::Bernoulli { .. }
        | Sampler::BernoulliMixture { .. }
        | Sampler::Binomial { .. }
        | Sampler::Poisson { .. }
        | Sampler::Scipy { .. } => true,
        Sampler::Category(category) => {
            category.values.iter().all(|value| matches!(value, Value::Int(_) | Value::Float(_)))
        }
        _ => false,
    };
    all_samplers(column).all(is_number) && column.convert_to != Some(Convert::Text)
}

fn constraints(draft: &Draft, names: &Names, notes: &mut Notes<'_>) {
    for found in &draft.constraints {
        let rhs = match &found.constraint.rhs {
            ConstraintRhs::Column(name) => Some((name, &found.rhs_at)),
            ConstraintRhs::Number(_) => None,
        };
        for (name, at) in std::iter::once((&found.constraint.target_column, &found.target_at)).chain(rhs) {
            match names.get(name) {
                None => {
                    let samplers =
                        draft.columns.iter().filter(|column| column.column.as_ref().is_some_and(is_numeric));
                    let help = notes.did_you_mean(name, samplers.map(|column| column.name.as_str()));
                    notes.hint(
                        at,
                        format!("a constraint names {}, which is not a column", quote(name)),
                        help,
                    );
                }
                Some(Producer::Column(place))
                    if draft.columns[place].column.as_ref().is_none_or(is_numeric) => {}
                Some(_) => {
                    let what =
                        format!("a constraint names {}, which is not a sampler of numbers", quote(name));
                    notes.note(at, what, "constraints compare sampled numbers");
                }
            }
        }
        if rhs.is_some_and(|(name, _)| *name == found.constraint.target_column) {
            notes.note(&found.rhs_at, "a constraint compares a column with itself", "name another one");
        }
    }
}

/// A validator of code is for columns of code in the same language.
fn code_validator(number: usize, draft: &Draft, names: &Names, notes: &mut Notes<'_>) {
    let found = &draft.columns[number];
    let Some(ColumnKind::Validation(validation)) = found.column.as_ref().map(|column| &column.kind) else {
        return;
    };
    let Validator::Code { lang } = validation.validator else { return };
    for name in &validation.target_columns {
        let at = found
            .references
            .iter()
            .find(|reference| reference.name == *name)
            .map_or(&found.at, |found| &found.at);
        let Some(Producer::Column(place)) = names.get(name) else { continue };
        let target = draft.columns[place].column.as_ref().map(|column| &column.kind);
        match target {
            Some(ColumnKind::Llm(llm)) => match llm.output {
                LlmOutput::Code { lang: other } if other != lang => {
                    let what = format!(
                        "column {} has code in `{}`, the validator is for `{}`",
                        quote(name),
                        other.0,
                        lang.0
                    );
                    notes.note(at, what, "use the same `code_lang` in both");
                }
                LlmOutput::Code { .. } => {}
                _ => notes.warn(at, not_code(name), "use `column_type: llm-code` for it"),
            },
            Some(_) => notes.warn(at, not_code(name), "use `column_type: llm-code` for it"),
            None => {}
        }
    }
}

fn not_code(name: &str) -> String {
    format!("column {} is validated as code and is not of type `llm-code`", quote(name))
}

/// Names in single braces that are columns are probably meant as references.
fn braces(number: usize, draft: &Draft, names: &Names, notes: &mut Notes<'_>) {
    for (name, at) in &draft.columns[number].braces {
        if names.get(name).is_some() {
            let what = format!("`{{{name}}}` is sent to the model as it is");
            notes.warn(at, what, format!("write `{{{{ {name} }}}}` for the value of the column"));
        }
    }
}

/// Patterns match a column each, and a column is left.
fn dropped(draft: &Draft, names: &Names, seed: &SeedNames, notes: &mut Notes<'_>) {
    let is_open = matches!(seed, SeedNames::Open);
    let mut patterns: Vec<&str> = Vec::new();
    for (pattern, at) in draft.processors.iter().flat_map(|processor| &processor.patterns) {
        if !is_open && !names.all().any(|name| matches(pattern, name)) {
            let help = notes.did_you_mean(pattern, names.all());
            notes.hint(at, format!("{} matches no column", quote(pattern)), help);
        }
        patterns.push(pattern);
    }
    let is_dropped = |name: &str, drop: bool| drop || patterns.iter().any(|pattern| matches(pattern, name));
    let SeedNames::Known(seed) = seed else { return };
    let all_of_seed = seed.iter().all(|name| is_dropped(name, false));
    let drops = |column: &super::draft::DraftColumn| column.column.as_ref().is_some_and(|found| found.drop);
    let all = draft.columns.iter().all(|column| is_dropped(&column.name, drops(column)));
    if all && all_of_seed && !draft.columns.is_empty() {
        let at = draft.columns[0].at.clone();
        notes.note(&at, "every column is dropped, nothing is left", "keep one: `drop: false`");
    }
}
