//! Sampler columns.

use anabranch_document::{Fields, Key, Node, Notes, Span, Table, Tree};
use anabranch_sampler::{
    Category, Convert, Datetime, Distribution, Gaussian, Person, Sampler, Sex, Subcategory, TimeUnit,
    Timedelta, Uniform, Uuid,
};
use anabranch_text::{count as count_of, quote};
use anabranch_value::Value;

use super::column::Parts;
use super::draft::{Reference, Role};
use super::types::SamplerColumn;
use super::{template, value};

const TYPES: [&str; 14] = [
    "uuid",
    "category",
    "subcategory",
    "uniform",
    "gaussian",
    "bernoulli",
    "bernoulli_mixture",
    "binomial",
    "poisson",
    "scipy",
    "datetime",
    "timedelta",
    "person",
    "person_from_faker",
];

/// Reads the fields that only sampler columns have.
pub(super) fn column(
    fields: &mut Fields<'_>,
    parts: &mut Parts,
    notes: &mut Notes<'_>,
) -> Option<SamplerColumn> {
    let node = fields.need("sampler_type", notes)?;
    let word = notes.as_text(node, "sampler_type")?;
    if !TYPES.contains(&word) {
        fields.ignore(&["params", "conditional_params", "convert_to"]);
        let help =
            notes.did_you_mean(word, TYPES).unwrap_or_else(|| format!("samplers are {}", TYPES.join(", ")));
        notes.note(&node.at, format!("there is no sampler {}", quote(word)), help);
        return None;
    }
    let sampler = match fields.get("params") {
        Some(params) => params_of(word, params, parts, notes),
        None => {
            let empty = Table::new();
            let whole = Fields::new(&empty, fields.at(), &format!("the sampler of {}", fields.of()));
            read(word, whole, parts, notes)
        }
    };
    let conditional = conditional(word, fields, parts, notes);
    let convert_to = convert(word, fields, parts, notes);
    Some(SamplerColumn { sampler: sampler?, conditional: conditional?, convert_to })
}

fn params_of(word: &str, node: &Node, parts: &mut Parts, notes: &mut Notes<'_>) -> Option<Sampler> {
    let fields = notes.fields(node, &format!("a sampler of type `{word}`"))?;
    read(word, fields, parts, notes)
}

fn conditional(
    word: &str,
    fields: &mut Fields<'_>,
    parts: &mut Parts,
    notes: &mut Notes<'_>,
) -> Option<Vec<(super::types::TemplateText, Sampler)>> {
    let Some(node) = fields.get("conditional_params") else { return Some(Vec::new()) };
    let table = notes.as_table(node, "conditional_params", "parameters by condition")?;
    let mut all = Some(Vec::new());
    for (Key { at, name }, params) in table {
        let condition = template::condition(name, at, Role::Condition, &mut parts.references, notes);
        let before = parts.spots.len();
        let sampler = params_of(word, params, parts, notes);
        // The places of the plain parameters are the ones that checks point at.
        parts.spots.truncate(before);
        all = match (all, condition, sampler) {
            (Some(mut all), Some(condition), Some(sampler)) => {
                all.push((condition, sampler));
                Some(all)
            }
            _ => None,
        };
    }
    all
}

/// Reads the parameters of a sampler and checks them.
fn read(word: &str, mut fields: Fields<'_>, parts: &mut Parts, notes: &mut Notes<'_>) -> Option<Sampler> {
    if let Some(node) = fields.get("sampler_type")
        && let Some(inner) = notes.as_text(node, "sampler_type")
        && inner != word
    {
        let what = format!("the parameters are of a sampler {}, the column has `{word}`", quote(inner));
        notes.note(&node.at, what, "`sampler_type` can be left out of the parameters");
        return None;
    }
    let errors = notes.errors();
    let sampler = match word {
        "uuid" => Some(Sampler::Uuid(Uuid {
            prefix: fields.text("prefix", notes).map(str::to_owned),
            short_form: fields.bool("short_form", notes).unwrap_or(false),
            uppercase: fields.bool("uppercase", notes).unwrap_or(false),
        })),
        "category" => category(&mut fields, notes),
        "subcategory" => subcategory(&mut fields, parts, notes),
        "datetime" => datetime(&mut fields, notes),
        "timedelta" => timedelta(&mut fields, parts, notes),
        "person" | "person_from_faker" => person(word, &mut fields, notes),
        _ => numeric(word, &mut fields, notes),
    };
    let at = fields.at().clone();
    fields.finish(notes);
    let sampler = sampler.filter(|_| notes.errors() == errors)?;
    check_sampler(&sampler, &at, notes).then_some(sampler)
}

/// The sampler's own check of ranges, names and dates.
fn check_sampler(sampler: &Sampler, at: &Span, notes: &mut Notes<'_>) -> bool {
    match sampler.check() {
        Ok(warnings) => {
            warnings
                .into_iter()
                .for_each(|warning| notes.warn(at, warning, "name another one if that matters"));
            true
        }
        Err(error) => {
            notes.hint(at, error.to_string(), None);
            false
        }
    }
}

fn numeric(word: &str, fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<Sampler> {
    Some(match word {
        "uniform" => {
            let (low, high) = (fields.need_float("low", notes), fields.need_float("high", notes));
            let decimal_places = decimal_places(fields, notes);
            Sampler::Uniform(Uniform { low: low?, high: high?, decimal_places })
        }
        "gaussian" => {
            let (mean, stddev) = (fields.need_float("mean", notes), fields.need_float("stddev", notes));
            let decimal_places = decimal_places(fields, notes);
            Sampler::Gaussian(Gaussian { mean: mean?, stddev: stddev?, decimal_places })
        }
        "bernoulli" => Sampler::Bernoulli { p: fields.need_float("p", notes)? },
        "bernoulli_mixture" => {
            let (p, distribution) = (fields.need_float("p", notes), distribution(fields, notes));
            Sampler::BernoulliMixture { p: p?, distribution: distribution? }
        }
        "binomial" => {
            let (n, p) = (count(fields, "n", notes), fields.need_float("p", notes));
            Sampler::Binomial { n: n?, p: p? }
        }
        "poisson" => Sampler::Poisson { mean: fields.need_float("mean", notes)? },
        _ => {
            let distribution = distribution(fields, notes);
            let decimal_places = decimal_places(fields, notes);
            Sampler::Scipy { distribution: distribution?, decimal_places }
        }
    })
}

/// A whole number that is not negative and must be there.
fn count(fields: &mut Fields<'_>, name: &'static str, notes: &mut Notes<'_>) -> Option<u64> {
    let node = fields.need(name, notes)?;
    let found = notes.as_int(node, name)?;
    let count = u64::try_from(found).ok();
    if count.is_none() {
        notes.hint(&node.at, format!("`{name}` is 0 or more, this is {found}"), None);
    }
    count
}

fn decimal_places(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<u32> {
    let node = fields.get("decimal_places")?;
    let found = notes.as_int(node, "decimal_places")?;
    let places = u32::try_from(found).ok().filter(|places| *places <= 17);
    if places.is_none() {
        notes.hint(&node.at, format!("`decimal_places` is between 0 and 17, this is {found}"), None);
    }
    places
}

fn distribution(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<Distribution> {
    let name = fields.need_text("dist_name", notes);
    let mut params = Some(Vec::new());
    if let Some(node) = fields.get("dist_params") {
        for (key, node) in notes.as_table(node, "dist_params", "numbers by name")? {
            let number = notes.as_float(node, &key.name);
            params = params.zip(number).map(|(mut params, number)| {
                params.push((key.name.clone(), number));
                params
            });
        }
    }
    Some(Distribution { name: name?.to_owned(), params: params? })
}

/// The values of a category: text and numbers.
fn values(node: &Node, name: &str, notes: &mut Notes<'_>) -> Option<Vec<Value>> {
    let items = notes.as_list(node, name)?;
    if items.is_empty() {
        notes.hint(&node.at, format!("`{name}` has no value"), None);
        return None;
    }
    let mut values = Vec::with_capacity(items.len());
    for item in items {
        match item.value {
            Tree::Text(_) | Tree::Int(_) | Tree::Float(_) | Tree::Big(_) => {
                values.push(value::value(item, notes));
            }
            _ => notes.mismatch(item, "a value", "text or a number", Some("put it in quotes")),
        }
    }
    (values.len() == items.len()).then_some(values)
}

fn category(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<Sampler> {
    let values = fields.need("values", notes).and_then(|node| values(node, "values", notes));
    let mut weights = None;
    if let Some(node) = fields.get("weights") {
        let items = notes.as_list(node, "weights")?;
        let numbers: Vec<f64> = items.iter().filter_map(|item| notes.as_float(item, "a weight")).collect();
        let wrong = match &values {
            Some(values) if values.len() != items.len() => {
                let (values, weights) = (values.len() as u64, items.len() as u64);
                Some(format!("{} with {}", count_of(values, "value"), count_of(weights, "weight")))
            }
            _ if numbers.iter().any(|weight| *weight < 0.0) => Some("a weight is negative".to_owned()),
            _ if numbers.len() == items.len() && numbers.iter().sum::<f64>() <= 0.0 => {
                Some("the weights add up to 0".to_owned())
            }
            _ => None,
        };
        wrong.into_iter().for_each(|what| notes.hint(&node.at, what, None));
        weights = Some(numbers);
    }
    Some(Sampler::Category(Category { values: values?, weights }))
}

fn subcategory(fields: &mut Fields<'_>, parts: &mut Parts, notes: &mut Notes<'_>) -> Option<Sampler> {
    let category = column_name("category", Role::Parent, fields, parts, notes);
    let node = fields.need("values", notes)?;
    parts.spots.push(("values", node.at.clone()));
    let table = notes.as_table(node, "values", "lists by the category's value")?;
    let mut all = Vec::with_capacity(table.len());
    for (key, node) in table {
        if let Some(values) = values(node, &key.name, notes) {
            all.push((key.name.clone(), values));
        }
    }
    Some(Sampler::Subcategory(Subcategory { category: category?, values: all }))
}

fn column_name(
    name: &'static str,
    role: Role,
    fields: &mut Fields<'_>,
    parts: &mut Parts,
    notes: &mut Notes<'_>,
) -> Option<String> {
    let node = fields.need(name, notes)?;
    let column = notes.as_text(node, name)?.to_owned();
    parts.references.push(Reference { name: column.clone(), at: node.at.clone(), role, source: None });
    Some(column)
}

const UNITS: [(&str, TimeUnit); 6] = [
    ("Y", TimeUnit::Year),
    ("M", TimeUnit::Month),
    ("D", TimeUnit::Day),
    ("h", TimeUnit::Hour),
    ("m", TimeUnit::Minute),
    ("s", TimeUnit::Second),
];

fn datetime(fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<Sampler> {
    let (start, end) = (fields.need_text("start", notes), fields.need_text("end", notes));
    let unit = fields.choice("unit", &UNITS, notes).unwrap_or(TimeUnit::Day);
    Some(Sampler::Datetime(Datetime { start: start?.to_owned(), end: end?.to_owned(), unit }))
}

fn timedelta(fields: &mut Fields<'_>, parts: &mut Parts, notes: &mut Notes<'_>) -> Option<Sampler> {
    let (dt_min, dt_max) = (count(fields, "dt_min", notes), count(fields, "dt_max", notes));
    let reference = column_name("reference_column_name", Role::Date, fields, parts, notes);
    let unit = fields.choice("unit", &UNITS[2..], notes).unwrap_or(TimeUnit::Day);
    let (dt_min, dt_max) = (dt_min?, dt_max?);
    if dt_max <= dt_min {
        notes.hint(
            fields.at(),
            format!("`dt_max` is more than `dt_min`, these are {dt_max} and {dt_min}"),
            None,
        );
    }
    Some(Sampler::Timedelta(Timedelta { dt_min, dt_max, reference_column_name: reference?, unit }))
}

fn person(word: &str, fields: &mut Fields<'_>, notes: &mut Notes<'_>) -> Option<Sampler> {
    let locale = fields.text("locale", notes).unwrap_or("en_US").to_owned();
    let sex = fields.choice("sex", &[("Male", Sex::Male), ("Female", Sex::Female)], notes);
    let cities = match fields.get("city") {
        Some(Node { value: Tree::List(_), .. }) => {
            let cities = fields.texts("city", notes).unwrap_or_default();
            cities.into_iter().map(|(city, _)| city.to_owned()).collect()
        }
        _ => fields.text("city", notes).map(str::to_owned).into_iter().collect(),
    };
    let age_range = fields.get("age_range").map_or(Some([18, 114]), |node| age_range(node, notes));
    let mut select_field_values = Vec::new();
    let is_faker = word == "person_from_faker";
    let with_synthetic_personas = !is_faker && fields.bool("with_synthetic_personas", notes).unwrap_or(false);
    if !is_faker && let Some(node) = fields.get("select_field_values") {
        for (key, node) in notes.as_table(node, "select_field_values", "lists of text by field")? {
            let items = notes.as_list(node, &key.name)?;
            let texts =
                items.iter().filter_map(|item| notes.as_text(item, "a value").map(str::to_owned)).collect();
            select_field_values.push((key.name.clone(), texts));
        }
    }
    Some(Sampler::Person(Person {
        locale,
        sex,
        cities,
        age_range: age_range?,
        select_field_values,
        with_synthetic_personas,
        from_faker: is_faker,
    }))
}

fn age_range(node: &Node, notes: &mut Notes<'_>) -> Option<[u32; 2]> {
    let items = notes.as_list(node, "age_range")?;
    let ages: Vec<i64> = items.iter().filter_map(|item| notes.as_int(item, "an age")).collect();
    match ages[..] {
        [least, most] if 0 <= least && least < most && most <= 114 => Some([least as u32, most as u32]),
        _ => {
            notes.hint(
                &node.at,
                "`age_range` is two ages between 0 and 114, the smaller first: [18, 65]",
                None,
            );
            None
        }
    }
}

fn convert(word: &str, fields: &mut Fields<'_>, parts: &mut Parts, notes: &mut Notes<'_>) -> Option<Convert> {
    let node = fields.get("convert_to")?;
    parts.spots.push(("convert_to", node.at.clone()));
    let text = notes.as_text(node, "convert_to")?;
    match word {
        "datetime" | "timedelta" if text.contains('%') => Some(Convert::Strftime(text.to_owned())),
        "datetime" | "timedelta" => {
            let what = format!("{} is not a format of dates", quote(text));
            notes.note(&node.at, what, "write it as strftime has it: `%Y-%m-%d`");
            None
        }
        "uuid" | "person" | "person_from_faker" => {
            notes.hint(&node.at, format!("values of the sampler `{word}` are not converted"), None);
            None
        }
        _ => {
            let words = [("int", Convert::Int), ("float", Convert::Float), ("str", Convert::Text)];
            let found = words.into_iter().find(|(known, _)| *known == text).map(|(_, convert)| convert);
            if found.is_none() {
                let what = format!("`convert_to` is `int`, `float` or `str` here, this is {}", quote(text));
                notes.hint(&node.at, what, None);
            }
            found
        }
    }
}
