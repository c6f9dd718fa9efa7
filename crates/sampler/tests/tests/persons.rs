//! Persons: consistent, filtered, in many locales.

use anabranch_sampler::{FieldType, Person, Sampler, Sex, parse_time};
use anabranch_value::Value;
use expect_test::expect;

use crate::support::{as_of, compile, draws, person};

const LOCALES: [&str; 21] = [
    "en_US",
    "en_GB",
    "en_CA",
    "en_AU",
    "en_IN",
    "en_SG",
    "fr_FR",
    "de_DE",
    "es_ES",
    "es_MX",
    "it_IT",
    "pt_BR",
    "pt_PT",
    "nl_NL",
    "sv_SE",
    "pl_PL",
    "hi_Deva_IN",
    "hi_Latn_IN",
    "ja_JP",
    "ko_KR",
    "zh_CN",
];

fn text<'a>(person: &'a Value, field: &str) -> &'a str {
    person.get(field).unwrap().as_text().unwrap_or_else(|| panic!("{field} of {}", person.to_json()))
}

fn age(person: &Value) -> i64 {
    person.get("age").unwrap().as_number().unwrap() as i64
}

fn check_type(name: &str, value: &Value, of: FieldType) {
    let optional = matches!(name, "middle_name" | "unit");
    match (of, value) {
        (FieldType::Text, Value::Text(text)) => assert!(!text.is_empty(), "{name}"),
        (FieldType::Text, Value::Null) if optional => {}
        (FieldType::Int, Value::Int(_)) => {}
        (FieldType::Struct(fields), Value::Map(map)) => {
            assert!(map.keys().map(|key| &**key).eq(fields.iter().map(|(name, _)| *name)));
        }
        _ => panic!("{name}: {}", value.to_json()),
    }
}

#[test]
fn fields_are_those_declared() {
    for locale in LOCALES {
        let mut params = person(locale);
        assert_eq!(Sampler::Person(params.clone()).check().unwrap(), Vec::<String>::new());
        params.age_range = [0, 114];
        params.with_synthetic_personas = true;
        for value in draws(&Sampler::Person(params.clone()), 60) {
            let map = value.as_map().unwrap();
            assert_eq!(map.len(), params.fields().len());
            for ((name, value), (field, of)) in map.iter().zip(params.fields()) {
                assert_eq!(&**name, *field);
                check_type(name, value, *of);
            }
        }
    }
}

#[test]
fn facts_fit_together() {
    let mut params = person("en_US");
    params.age_range = [0, 114];
    let mut adults = 0;
    for value in draws(&Sampler::Person(params), 2_000) {
        let birth: Vec<i64> =
            text(&value, "birth_date").split('-').map(|part| part.parse().unwrap()).collect();
        let today = as_of();
        let (year, month, day) = (i64::from(today.year()), i64::from(today.month()), i64::from(today.day()));
        let had_birthday = (birth[1], birth[2]) <= (month, day);
        assert_eq!(age(&value), year - birth[0] - i64::from(!had_birthday));
        assert!(parse_time(text(&value, "birth_date")).is_some());
        let degree = matches!(text(&value, "education_level"), "bachelors" | "graduate");
        assert_eq!(degree, text(&value, "bachelors_field") != "no_degree");
        if age(&value) < 18 {
            assert_eq!(text(&value, "marital_status"), "never_married");
            assert!(matches!(text(&value, "education_level"), "less_than_9th" | "9th_12th_no_diploma"));
        }
        if degree {
            assert!(age(&value) >= 22);
        }
        adults += usize::from(age(&value) >= 18);
        assert_eq!(text(&value, "postcode"), text(&value, "zipcode"));
        let first = text(&value, "first_name").to_lowercase();
        assert!(text(&value, "email_address").starts_with(&first[..1]), "{}", value.to_json());
        if text(&value, "city") == "Chicago" {
            assert_eq!(text(&value, "state"), "IL");
            assert!(text(&value, "postcode").starts_with("606"));
            assert!(text(&value, "phone_number").starts_with("(312)"));
        }
    }
    assert!(adults > 1_000);
}

fn all(params: &Person, count: u64) -> Vec<Value> {
    draws(&Sampler::Person(params.clone()), count)
}

#[test]
fn filters() {
    let mut params = person("en_US");
    params.sex = Some(Sex::Female);
    params.cities = vec!["Chicago".to_owned(), "boston".to_owned()];
    params.age_range = [30, 31];
    for value in all(&params, 100) {
        assert_eq!(text(&value, "sex"), "Female");
        assert!(matches!(text(&value, "city"), "Chicago" | "Boston"));
        assert!((30..=31).contains(&age(&value)));
    }
    let mut params = person("en_US");
    params.select_field_values = vec![
        ("state".to_owned(), vec!["NY".to_owned(), "CA".to_owned()]),
        ("education_level".to_owned(), vec!["graduate".to_owned()]),
        ("marital_status".to_owned(), vec!["widowed".to_owned()]),
    ];
    for value in all(&params, 50) {
        assert!(matches!(text(&value, "state"), "NY" | "CA"));
        assert_eq!(text(&value, "education_level"), "graduate");
        assert_eq!(text(&value, "marital_status"), "widowed");
    }
}

#[test]
fn a_city_without_a_table() {
    let mut params = person("en_US");
    params.cities = vec!["Atlantis".to_owned()];
    let warnings = Sampler::Person(params.clone()).check().unwrap();
    expect!["`city`: `Atlantis` is not in the built-in table, so persons there have no postcode, district, region or state; did you mean `Atlanta`?"].assert_eq(&warnings.join("\n"));
    let value = &all(&params, 1)[0];
    assert_eq!(text(value, "city"), "Atlantis");
    assert_eq!(value.get("postcode"), Some(&Value::Null));
    assert_eq!(value.get("state"), Some(&Value::Null));
}

#[test]
fn locales_without_a_table() {
    let mut out = String::new();
    for locale in
        ["en-us", "fr_CA", "es_AR", "es", "zh_TW", "no_NO", "hi_IN", "fi_FI", "", "english", "en__US", "x y"]
    {
        let found = Sampler::Person(person(locale)).check();
        let found = found.map_or_else(|fault| fault.to_string(), |warnings| warnings.join("; "));
        out += &format!("{locale}: {found}\n");
    }
    expect![[r#"
        en-us: 
        fr_CA: `locale`: no built-in table of persons for fr_CA; the one for fr_FR is used
        es_AR: `locale`: no built-in table of persons for es_AR; the one for es_MX is used
        es: `locale`: no built-in table of persons for es; the one for es_ES is used
        zh_TW: `locale`: no built-in table of persons for zh_TW; the one for zh_CN is used
        no_NO: `locale`: no built-in table of persons for no_NO; the one for sv_SE is used
        hi_IN: `locale`: no built-in table of persons for hi_IN; the one for hi_Deva_IN is used
        fi_FI: `locale`: no built-in table of persons for fi_FI; the one for en_US is used
        : `locale`: expected a locale such as en_US, found ``
        english: `locale`: expected a locale such as en_US, found `english`
        en__US: `locale`: expected a locale such as en_US, found `en__US`
        x y: `locale`: expected a locale such as en_US, found `x y`
    "#]]
    .assert_eq(&out);
}

#[test]
fn filters_that_nobody_fits() {
    let mut out = String::new();
    for (field, value) in [("colour", "red"), ("persona", "x"), ("sex", "female")] {
        let mut params = person("en_US");
        params.select_field_values = vec![(field.to_owned(), vec![value.to_owned()])];
        out += &format!("{}\n", Sampler::Person(params).check().unwrap_err());
    }
    let mut params = person("en_US");
    params.age_range = [50, 20];
    out += &format!("{}\n", Sampler::Person(params.clone()).check().unwrap_err());
    params.age_range = [18, 200];
    out += &format!("{}\n", Sampler::Person(params.clone()).check().unwrap_err());
    params.age_range = [18, 20];
    params.cities = vec!["Chicago".to_owned()];
    params.select_field_values = vec![("state".to_owned(), vec!["NY".to_owned()])];
    out += &format!("{}\n", Sampler::Person(params.clone()).check().unwrap_err());
    params.cities.clear();
    params.select_field_values = vec![("education_level".to_owned(), vec!["graduate".to_owned()])];
    let compiled = compile(&Sampler::Person(params));
    let mut stream = anabranch_sampler::ColumnKey::new(1, "p").stream(0, 0);
    out += &format!("{}\n", compiled.sample(&mut stream, None).unwrap_err());
    expect![[r#"
        `select_field_values.colour`: persons cannot be selected by this field
        `select_field_values.persona`: persons cannot be selected by this field
        `select_field_values.sex`: no person has `female`; did you mean `Female`?
        `age_range`: expected two ages in order, from 0 to 114, found [50, 20]
        `age_range`: expected two ages in order, from 0 to 114, found [18, 200]
        `select_field_values`: no city fits all of `city`, `district`, `region` and `state`
        none of 5000 persons fits `select_field_values`; allow more values or widen `age_range`
    "#]]
    .assert_eq(&out);
}

/// A configuration for other tables of persons still runs: the field gets the value, and a warning says so.
#[test]
fn values_that_the_table_does_not_have_are_given() {
    let mut params = person("en_US");
    params.select_field_values = vec![
        ("marital_status".to_owned(), vec!["single".to_owned()]),
        ("state".to_owned(), vec!["XX".to_owned(), "TX".to_owned()]),
    ];
    let sampler = Sampler::Person(params);
    expect![[r#"
        `select_field_values.marital_status`: `single` is not in the built-in table, so the field is set to one of these values and the others do not depend on it; it is one of never_married, married_present, separated, divorced, widowed
        `select_field_values.state`: `XX` is not in the built-in table, so the field is set to one of these values and the others do not depend on it; did you mean `TX`?"#]].assert_eq(&sampler.check().unwrap().join("\n"));
    let compiled = compile(&sampler);
    let key = anabranch_sampler::ColumnKey::new(1, "p");
    let mut states: Vec<String> = (0..50)
        .map(|row| {
            let person = compiled.sample(&mut key.stream(row, 0), None).unwrap();
            assert_eq!(person.get("marital_status").unwrap().as_text(), Some("single"));
            person.get("state").unwrap().as_text().unwrap().to_owned()
        })
        .collect();
    states.sort();
    states.dedup();
    assert_eq!(states, ["TX", "XX"]);
}
