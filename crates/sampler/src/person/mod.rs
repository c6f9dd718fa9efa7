//! Made-up persons from built-in tables of common names, places and occupations.
//!
//! The fields fit together: the age and the date of birth, the postcode and the city, the occupation and the education,
//! the address of the mail and the name. Persona texts are put together from sentence templates; a model that writes
//! better ones can be a column of its own.

mod locale;
mod table;
mod facts;
mod pattern;
mod persona;

use std::sync::Arc;

use anabranch_value::{Map, Value};

use crate::choice::Choice;
use crate::compile::FieldType;
use crate::error::{Error, hint};
use crate::params::{Person, Sex};
use crate::stream::Stream;
use crate::time::Date;
use facts::{EDUCATION, Facts, MARITAL, STUDY_FIELDS};
use table::{Place, Table};

const TRAIT: FieldType = FieldType::Struct(&[
    ("t_score", FieldType::Int),
    ("label", FieldType::Text),
    ("description", FieldType::Text),
]);

/// The fields of every person, then those of a person with a persona.
const FIELDS: [(&str, FieldType); 46] = [
    ("uuid", FieldType::Text),
    ("first_name", FieldType::Text),
    ("middle_name", FieldType::Text),
    ("last_name", FieldType::Text),
    ("sex", FieldType::Text),
    ("age", FieldType::Int),
    ("birth_date", FieldType::Text),
    ("marital_status", FieldType::Text),
    ("street_number", FieldType::Text),
    ("street_name", FieldType::Text),
    ("unit", FieldType::Text),
    ("postcode", FieldType::Text),
    ("zipcode", FieldType::Text),
    ("city", FieldType::Text),
    ("district", FieldType::Text),
    ("county", FieldType::Text),
    ("region", FieldType::Text),
    ("state", FieldType::Text),
    ("country", FieldType::Text),
    ("education_level", FieldType::Text),
    ("bachelors_field", FieldType::Text),
    ("occupation", FieldType::Text),
    ("locale", FieldType::Text),
    ("email_address", FieldType::Text),
    ("phone_number", FieldType::Text),
    ("national_id", FieldType::Text),
    ("persona", FieldType::Text),
    ("detailed_persona", FieldType::Text),
    ("professional_persona", FieldType::Text),
    ("finance_persona", FieldType::Text),
    ("healthcare_persona", FieldType::Text),
    ("sports_persona", FieldType::Text),
    ("arts_persona", FieldType::Text),
    ("travel_persona", FieldType::Text),
    ("culinary_persona", FieldType::Text),
    ("cultural_background", FieldType::Text),
    ("skills_and_expertise", FieldType::Text),
    ("skills_and_expertise_list", FieldType::Text),
    ("hobbies_and_interests", FieldType::Text),
    ("hobbies_and_interests_list", FieldType::Text),
    ("career_goals_and_ambitions", FieldType::Text),
    ("openness", TRAIT),
    ("conscientiousness", TRAIT),
    ("extraversion", TRAIT),
    ("agreeableness", TRAIT),
    ("neuroticism", TRAIT),
];

/// How many of the fields every person has.
const PLAIN_FIELDS: usize = 26;
const OLDEST: u32 = 114;
/// Persons drawn for one that `select_field_values` takes.
const MAX_TRIES: u32 = 5_000;

impl Person {
    /// The fields of a person and their types, in order.
    pub fn fields(&self) -> &'static [(&'static str, FieldType)] {
        const ALL: &[(&str, FieldType)] = &FIELDS;
        if self.with_synthetic_personas { ALL } else { &ALL[..PLAIN_FIELDS] }
    }
}

/// A person sampler that is ready to draw.
#[derive(Clone, Debug)]
pub(crate) struct CompiledPerson {
    locale: Arc<str>,
    table: &'static Table,
    sex: Option<Sex>,
    places: Vec<Place>,
    youngest: u32,
    ages: Choice,
    education: Choice,
    /// Indexes of fields, with the values one of which each must have.
    select: Vec<(usize, Vec<String>)>,
    /// Indexes of fields, with values one of which each gets: values that the table does not have.
    given: Vec<(usize, Vec<String>)>,
    names: Vec<Arc<str>>,
    as_of: Date,
}

impl CompiledPerson {
    pub(crate) fn new(
        person: &Person,
        as_of: Date,
        warnings: &mut Vec<String>,
    ) -> Result<CompiledPerson, Error> {
        let table = locale::resolve(&person.locale, warnings)?;
        let [youngest, oldest] = person.age_range;
        if youngest > oldest || oldest > OLDEST {
            return Err(Error::param(
                "age_range",
                format!("expected two ages in order, from 0 to {OLDEST}, found [{youngest}, {oldest}]"),
            ));
        }
        let ages: Vec<f64> = (youngest..=oldest).map(facts::age_weight).collect();
        let (select, given) = select(person, table, warnings)?;
        Ok(CompiledPerson {
            locale: person.locale.as_str().into(),
            table,
            sex: person.sex,
            places: places(person, table, &select, warnings)?,
            youngest,
            ages: Choice::new(&ages)?,
            education: Choice::new(&facts::EDUCATION_WEIGHTS)?,
            select,
            given,
            names: person.fields().iter().map(|(name, _)| Arc::from(*name)).collect(),
            as_of,
        })
    }

    /// A person that the filters take.
    pub(crate) fn sample(&self, stream: &mut Stream) -> Result<Value, Error> {
        for _ in 0..MAX_TRIES {
            let facts = Facts::draw(self, stream);
            let mut values = facts.values(&self.locale, stream);
            let taken = self.select.iter().all(|(field, wanted)| {
                let text = crate::number::value_text(&values[*field]);
                wanted.contains(&text)
            });
            if !taken {
                continue;
            }
            for (field, wanted) in &self.given {
                values[*field] = stream.pick(wanted).as_str().into();
            }
            let mut map = Map::with_capacity(self.names.len());
            map.extend(self.names.iter().cloned().zip(values));
            if self.names.len() > PLAIN_FIELDS {
                let persona = persona::values(&facts, stream);
                map.extend(self.names[PLAIN_FIELDS..].iter().cloned().zip(persona));
            }
            return Ok(map.into());
        }
        Err(Error::Draw(format!(
            "none of {MAX_TRIES} persons fits `select_field_values`; allow more values or widen `age_range`"
        )))
    }
}

/// Values by index of field.
type FieldValues = Vec<(usize, Vec<String>)>;

/// The filters, and the fields with values that no person of the table has: those are given to any person.
fn select(
    person: &Person,
    table: &Table,
    warnings: &mut Vec<String>,
) -> Result<(FieldValues, FieldValues), Error> {
    let (mut filters, mut given) = (Vec::new(), Vec::new());
    for (name, wanted) in &person.select_field_values {
        let param = format!("select_field_values.{name}");
        let plain = || FIELDS[..PLAIN_FIELDS].iter().map(|(field, _)| *field);
        let Some(index) = plain().position(|field| field == name) else {
            let what = format!("persons cannot be selected by this field{}", hint(name, plain()));
            return Err(Error::param(param, what));
        };
        if wanted.is_empty() {
            return Err(Error::param(param, "the list is empty; give at least one value"));
        }
        let possible = possible(name, table);
        let missing = wanted.iter().find(|value| !possible.is_empty() && !possible.contains(&value.as_str()));
        match missing {
            None => filters.push((index, wanted.clone())),
            Some(value) if name == "sex" => {
                return Err(Error::param(param, format!("no person has `{value}`{}", hint(value, possible))));
            }
            Some(value) => {
                warnings.push(format!(
                    "`{param}`: `{value}` is not in the built-in table, so the field is set to one of these values and \
                     the others do not depend on it{}",
                    hint(value, possible)
                ));
                given.push((index, wanted.clone()));
            }
        }
    }
    Ok((filters, given))
}

/// All values of a field, or none if they cannot be listed.
fn possible<'a>(field: &str, table: &'a Table) -> Vec<&'a str> {
    let place = |part: fn(&Place) -> &'static str| table.places.iter().map(part).collect();
    match field {
        "sex" => vec!["Male", "Female"],
        "marital_status" => MARITAL.to_vec(),
        "education_level" => EDUCATION.to_vec(),
        "bachelors_field" => STUDY_FIELDS.to_vec(),
        "occupation" => table.jobs.iter().map(|(_, job)| *job).chain(table.idle.iter().copied()).collect(),
        "country" => vec![table.country],
        "city" => place(|place| place.city),
        "district" | "county" => place(|place| place.district),
        "region" => place(|place| place.region),
        "state" => place(|place| place.state),
        _ => Vec::new(),
    }
}

/// The places that the filters leave.
fn places(
    person: &Person,
    table: &Table,
    select: &[(usize, Vec<String>)],
    warnings: &mut Vec<String>,
) -> Result<Vec<Place>, Error> {
    let mut places = Vec::new();
    for city in &person.cities {
        let found = table.places.iter().filter(|place| place.city.eq_ignore_ascii_case(city)).count();
        if found > 0 {
            continue;
        }
        warnings.push(format!(
            "`city`: `{city}` is not in the built-in table, so persons there have no postcode, district, region or state{}",
            hint(city, table.places.iter().map(|place| place.city))
        ));
        places.push(Place::named(city));
    }
    let wanted = |place: &&Place| {
        person.cities.is_empty() || person.cities.iter().any(|city| place.city.eq_ignore_ascii_case(city))
    };
    places.extend(table.places.iter().filter(wanted).cloned());
    for (field, values) in select {
        let part: fn(&Place) -> &str = match FIELDS[*field].0 {
            "city" => Place::city,
            "district" | "county" => |place| place.district,
            "region" => |place| place.region,
            "state" => |place| place.state,
            _ => continue,
        };
        places.retain(|place| values.iter().any(|value| value == part(place)));
    }
    if places.is_empty() {
        return Err(Error::param(
            "select_field_values",
            "no city fits all of `city`, `district`, `region` and `state`",
        ));
    }
    Ok(places)
}
