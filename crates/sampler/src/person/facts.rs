//! The facts of one person, drawn so that they fit together.

use anabranch_value::Value;

use super::pattern::{ascii, fill};
use super::table::{Middle, Name, Place, Table};
use super::{CompiledPerson, PLAIN_FIELDS};
use crate::compile::hyphenated_uuid;
use crate::params::Sex;
use crate::stream::Stream;
use crate::time::Date;

/// Levels of education, in order.
pub(crate) const EDUCATION: [&str; 7] = [
    "less_than_9th",
    "9th_12th_no_diploma",
    "high_school",
    "some_college",
    "associates",
    "bachelors",
    "graduate",
];
pub(crate) const EDUCATION_WEIGHTS: [f64; 7] = [4.0, 6.0, 27.0, 18.0, 10.0, 22.0, 13.0];
/// The level from which on a person has a degree.
const DEGREE: usize = 5;

/// The first is for persons without a degree.
pub(crate) const STUDY_FIELDS: [&str; 6] =
    ["no_degree", "stem", "stem_related", "business", "education", "arts_humanities"];

pub(crate) const MARITAL: [&str; 5] =
    ["never_married", "married_present", "separated", "divorced", "widowed"];

/// The age from which on the row holds, and the percentage of each marital status.
const MARITAL_BY_AGE: [(u32, [u64; 5]); 6] = [
    (18, [88, 11, 1, 0, 0]),
    (25, [50, 43, 2, 5, 0]),
    (35, [25, 58, 3, 13, 1]),
    (50, [14, 62, 2, 18, 4]),
    (65, [6, 58, 1, 16, 19]),
    (80, [5, 40, 1, 9, 45]),
];

const DOMAINS: [&str; 3] = ["example.com", "example.org", "example.net"];

/// How frequent an age is, relative to others.
pub(crate) fn age_weight(age: u32) -> f64 {
    match age {
        0..60 => 1.0,
        60..100 => 1.0 - f64::from(age - 59) * 0.024,
        _ => 0.01,
    }
}

/// The facts of a person, before they become values.
pub(crate) struct Facts<'a> {
    pub(crate) table: &'static Table,
    pub(crate) sex: Sex,
    pub(crate) first: &'static Name,
    middle: Option<&'static str>,
    pub(crate) last: &'static Name,
    pub(crate) age: u32,
    birth: Date,
    pub(crate) marital: &'static str,
    pub(crate) education: usize,
    pub(crate) study: &'static str,
    pub(crate) occupation: &'static str,
    pub(crate) works: bool,
    pub(crate) place: &'a Place,
}

impl<'a> Facts<'a> {
    pub(crate) fn draw(person: &'a CompiledPerson, stream: &mut Stream) -> Facts<'a> {
        let table = person.table;
        let sex = match person.sex {
            Some(sex) => sex,
            None if stream.chance(0.5) => Sex::Female,
            None => Sex::Male,
        };
        let given = if sex == Sex::Female { &table.female } else { &table.male };
        let first = stream.pick(given);
        let last = stream.pick(&table.last);
        let middle = match table.middle {
            Middle::None => None,
            Middle::Given => Some(stream.pick(given)).filter(|name| name.text != first.text),
            Middle::Last => Some(stream.pick(&table.last)),
        };
        let age = person.youngest + person.ages.draw(stream) as u32;
        let education = person.education.draw(stream).min(highest_education(age));
        let degree = education >= DEGREE;
        let study = if degree { *stream.pick(&STUDY_FIELDS[1..]) } else { STUDY_FIELDS[0] };
        let (occupation, works) = occupation(table, age, education, stream);
        Facts {
            table,
            sex,
            first,
            middle: middle.map(|name| name.text),
            last,
            age,
            birth: birth_date(person.as_of, age, stream),
            marital: marital_status(age, stream),
            education,
            study,
            occupation,
            works,
            place: stream.pick(&person.places),
        }
    }

    /// The values of the plain fields, in the order of [`super::FIELDS`].
    pub(crate) fn values(&self, locale: &str, stream: &mut Stream) -> [Value; PLAIN_FIELDS] {
        let (table, place) = (self.table, self.place);
        let uuid = hyphenated_uuid(stream);
        let postcode = known(&fill(place.postcode, &[], stream));
        let unit: &str = if stream.chance(0.35) { stream.pick::<&str>(&table.units) } else { "" };
        let unit = known(&fill(unit, &[], stream));
        let house: &str = stream.pick::<&str>(&table.houses);
        let house = fill(house, &[], stream);
        [
            uuid.into(),
            self.first.text.into(),
            self.middle.map_or(Value::Null, Value::from),
            self.last.text.into(),
            if self.sex == Sex::Female { "Female" } else { "Male" }.into(),
            Value::Int(self.age.into()),
            self.birth.to_string().into(),
            self.marital.into(),
            house.into(),
            (*stream.pick(&table.streets)).into(),
            unit,
            postcode.clone(),
            postcode,
            place.city().into(),
            known(place.district),
            known(place.district),
            known(place.region),
            known(place.state),
            table.country.into(),
            EDUCATION[self.education].into(),
            self.study.into(),
            self.occupation.into(),
            locale.into(),
            self.email(stream).into(),
            self.phone(stream).into(),
            self.national_id(stream).into(),
        ]
    }

    fn email(&self, stream: &mut Stream) -> String {
        let (first, last) = (ascii(self.first.latin), ascii(self.last.latin));
        let initial = &first[..first.len().min(1)];
        let name = match stream.below(4) {
            0 => format!("{first}.{last}"),
            1 => format!("{initial}{last}"),
            2 => format!("{first}.{last}{}", stream.below(90) + 10),
            _ => format!("{first}{}", self.birth.year()),
        };
        format!("{name}@{}", stream.pick(&DOMAINS))
    }

    fn phone(&self, stream: &mut Stream) -> String {
        // A place that the table lacks has no area code; this one belongs to no place.
        let area = if self.place.area.is_empty() { "500" } else { self.place.area };
        fill(self.table.phone, &[("area", area)], stream)
    }

    fn national_id(&self, stream: &mut Stream) -> String {
        let year = format!("{:04}", self.birth.year());
        let month = format!("{:02}", self.birth.month());
        let day = format!("{:02}", self.birth.day());
        let sex = if self.sex == Sex::Male { "1" } else { "2" };
        let variables = [("yyyy", &*year), ("yy", &year[2..]), ("mm", &*month), ("dd", &*day), ("sex", sex)];
        fill(self.table.national_id, &variables, stream)
    }
}

fn known(text: &str) -> Value {
    if text.is_empty() { Value::Null } else { text.into() }
}

/// A day on which a person was born who has this age.
fn birth_date(as_of: Date, age: u32, stream: &mut Stream) -> Date {
    let last = as_of.years_before(age).days();
    let first = as_of.years_before(age + 1).days() + 1;
    Date::from_days(first + stream.below((last - first + 1).max(1) as u64) as i64)
}

fn highest_education(age: u32) -> usize {
    match age {
        0..15 => 0,
        15..18 => 1,
        18..20 => 3,
        20..22 => 4,
        22..25 => 5,
        _ => 6,
    }
}

fn marital_status(age: u32, stream: &mut Stream) -> &'static str {
    let Some((_, shares)) = MARITAL_BY_AGE.iter().rev().find(|(from, _)| age >= *from) else {
        return MARITAL[0];
    };
    let mut left = stream.below(100);
    for (status, share) in MARITAL.iter().zip(shares) {
        if left < *share {
            return status;
        }
        left -= share;
    }
    MARITAL[1]
}

/// The occupation, and whether it is work.
fn occupation(
    table: &'static Table,
    age: u32,
    education: usize,
    stream: &mut Stream,
) -> (&'static str, bool) {
    let [student, pensioner, other] =
        [0, 1, 2].map(|index| table.idle.get(index).copied().unwrap_or_default());
    let studies = age < 16 || (age < 24 && stream.chance(0.5));
    if studies {
        return (student, false);
    }
    if age >= 66 && stream.chance(if age < 76 { 0.8 } else { 1.0 }) {
        return (pensioner, false);
    }
    if stream.chance(0.08) {
        return (other, false);
    }
    let fits = |(level, _): &&(usize, &str)| *level <= education && *level + 3 > education;
    let count = table.jobs.iter().filter(fits).count() as u64;
    let job = table.jobs.iter().filter(fits).nth(stream.below(count) as usize);
    job.map_or((other, false), |(_, job)| (*job, true))
}
