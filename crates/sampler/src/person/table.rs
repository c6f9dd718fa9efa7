//! The tables of a locale, read from `data/`.
//!
//! Lines are `key: item, item`; `include:` takes the keys that a file lacks from another one. A name may be followed by
//! its Latin letters (`太郎/Taro`). A city is `city|district|region|state|postcode|area code`. A job has the least
//! level of education before it.

use std::sync::Arc;

/// A name, also in Latin letters.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub(crate) text: &'static str,
    pub(crate) latin: &'static str,
}

/// A place; all parts but the name are empty for a city that the table lacks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    pub(crate) city: &'static str,
    pub(crate) district: &'static str,
    pub(crate) region: &'static str,
    pub(crate) state: &'static str,
    pub(crate) postcode: &'static str,
    pub(crate) area: &'static str,
    /// The name of a city that the table lacks.
    other: Option<Arc<str>>,
}

impl Place {
    pub(crate) fn named(city: &str) -> Place {
        Place { other: Some(city.into()), ..Place::default() }
    }

    pub(crate) fn city(&self) -> &str {
        self.other.as_deref().unwrap_or(self.city)
    }
}

/// Where a middle name comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Middle {
    #[default]
    None,
    Given,
    Last,
}

/// The tables of a locale.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) country: &'static str,
    pub(crate) female: Vec<Name>,
    pub(crate) male: Vec<Name>,
    pub(crate) last: Vec<Name>,
    pub(crate) middle: Middle,
    pub(crate) streets: Vec<&'static str>,
    pub(crate) houses: Vec<&'static str>,
    pub(crate) units: Vec<&'static str>,
    pub(crate) phone: &'static str,
    pub(crate) national_id: &'static str,
    pub(crate) places: Vec<Place>,
    /// The least level of education, and the job.
    pub(crate) jobs: Vec<(usize, &'static str)>,
    /// Occupations of persons without a job, such as students and pensioners.
    pub(crate) idle: Vec<&'static str>,
}

impl Table {
    /// Reads a file on top of the one that it includes.
    pub(crate) fn parse(text: &'static str, included: impl FnOnce(&str) -> Table) -> Table {
        let mut lines = text.lines().filter_map(|line| line.split_once(": ")).peekable();
        let mut table = match lines.next_if(|(key, _)| *key == "include") {
            Some((_, other)) => included(other),
            None => Table::default(),
        };
        let mut own_places = Vec::new();
        for (key, value) in lines {
            let items = || value.split(", ");
            match key {
                "country" => table.country = value,
                "female" => table.female = items().map(name).collect(),
                "male" => table.male = items().map(name).collect(),
                "last" => table.last = items().map(name).collect(),
                "middle" => {
                    table.middle = match value {
                        "given" => Middle::Given,
                        "last" => Middle::Last,
                        _ => Middle::None,
                    }
                }
                "street" => table.streets = items().collect(),
                "house" => table.houses = items().collect(),
                "unit" => table.units = items().collect(),
                "phone" => table.phone = value,
                "national_id" => table.national_id = value,
                "city" => own_places.push(place(value)),
                "job" => table.jobs = items().filter_map(job).collect(),
                "idle" => table.idle = items().collect(),
                other => debug_assert!(false, "unknown key `{other}` in a table of persons"),
            }
        }
        if !own_places.is_empty() {
            table.places = own_places;
        }
        table
    }
}

fn name(item: &'static str) -> Name {
    let (text, latin) = item.split_once('/').unwrap_or((item, item));
    Name { text, latin }
}

fn place(line: &'static str) -> Place {
    let mut parts = line.split('|');
    let mut next = || parts.next().unwrap_or_default();
    Place {
        city: next(),
        district: next(),
        region: next(),
        state: next(),
        postcode: next(),
        area: next(),
        other: None,
    }
}

fn job(item: &'static str) -> Option<(usize, &'static str)> {
    let (level, job) = item.split_once(' ')?;
    Some((level.parse().ok()?, job))
}
