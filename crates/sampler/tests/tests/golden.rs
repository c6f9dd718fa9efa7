//! The exact values of each sampler: a change of any of them breaks the datasets of others.

use anabranch_sampler::{
    Category, Datetime, Distribution, Gaussian, Sampler, Subcategory, TimeUnit, Timedelta, Uniform, Uuid,
};
use anabranch_value::Value;
use expect_test::{Expect, expect, expect_file};

use crate::support::{draws, draws_with, lines, person, scipy};

fn check(sampler: &Sampler, expected: &Expect) {
    expected.assert_eq(&lines(&draws(sampler, 4)));
}

fn texts(items: &[&str]) -> Vec<Value> {
    items.iter().map(|item| Value::from(*item)).collect()
}

#[test]
fn identifiers() {
    check(
        &Sampler::Uuid(Uuid::default()),
        &expect![[r#"
        "bbed6f302f2c44689084bc0f25f9acab"
        "72b9b802d4c34a08aa371ae67411c086"
        "1ea53664adcc42a78d56c75e20bbd8ef"
        "9853d5f8c1d84df78147dbe683d3fe3b"
    "#]],
    );
    let short = Uuid { prefix: Some("user-".to_owned()), short_form: true, uppercase: true };
    check(
        &Sampler::Uuid(short),
        &expect![[r#"
        "user-BBED6F30"
        "user-72B9B802"
        "user-1EA53664"
        "user-9853D5F8"
    "#]],
    );
}

#[test]
fn categories() {
    let values = texts(&["red", "green", "blue"]);
    check(
        &Sampler::Category(Category { values: values.clone(), weights: None }),
        &expect![[r#"
        "blue"
        "green"
        "red"
        "green"
    "#]],
    );
    let weights = Some(vec![1.0, 0.0, 9.0]);
    check(
        &Sampler::Category(Category { values, weights }),
        &expect![[r#"
        "blue"
        "blue"
        "blue"
        "blue"
    "#]],
    );
    let numbers = vec![Value::Int(1), Value::Float(2.5)];
    check(
        &Sampler::Category(Category { values: numbers, weights: None }),
        &expect![[r#"
        2.5
        1.0
        1.0
        2.5
    "#]],
    );
}

#[test]
fn subcategories() {
    let params = Subcategory {
        category: "animal".to_owned(),
        values: vec![("cat".to_owned(), texts(&["tabby", "siamese"])), ("5".to_owned(), texts(&["five"]))],
    };
    assert_eq!(params.list_for(&Value::Float(5.0)), Some(texts(&["five"]).as_slice()));
    assert_eq!(params.list_for(&"dog".into()), None);
    let sampler = Sampler::Subcategory(params);
    assert_eq!(sampler.depends_on(), Some("animal"));
    expect![[r#"
        "siamese"
        "tabby"
        "tabby"
        "siamese"
    "#]]
    .assert_eq(&lines(&draws_with(&sampler, 4, Some(&"cat".into()))));
    expect![[r#"
        "five"
    "#]]
    .assert_eq(&lines(&draws_with(&sampler, 1, Some(&Value::Int(5)))));
    assert_eq!(draws_with(&sampler, 1, Some(&Value::Float(5.0))), texts(&["five"]));
}

#[test]
fn numbers() {
    check(
        &Sampler::Uniform(Uniform { low: -1.0, high: 1.0, decimal_places: None }),
        &expect![[r#"
        0.46818342068431384
        -0.1037073122192591
        -0.7605831154254701
        0.19005846639965518
    "#]],
    );
    check(
        &Sampler::Uniform(Uniform { low: 0.0, high: 100.0, decimal_places: Some(2) }),
        &expect![[r#"
        73.41
        44.81
        11.97
        59.5
    "#]],
    );
    check(
        &Sampler::Gaussian(Gaussian { mean: 10.0, stddev: 2.0, decimal_places: None }),
        &expect![[r#"
        11.250470775508
        9.739308000099062
        7.647108928890951
        10.481002914728155
    "#]],
    );
    check(
        &Sampler::Gaussian(Gaussian { mean: 10.0, stddev: 2.0, decimal_places: Some(1) }),
        &expect![[r#"
        11.3
        9.7
        7.6
        10.5
    "#]],
    );
    check(
        &Sampler::Bernoulli { p: 0.5 },
        &expect![[r#"
        0
        1
        1
        0
    "#]],
    );
}

#[test]
fn counts_and_mixtures() {
    let distribution = Distribution::new("expon", vec![("scale".to_owned(), 10.0)]).unwrap();
    check(
        &Sampler::BernoulliMixture { p: 0.5, distribution },
        &expect![[r#"
        0.0
        4.081136071236728
        2.205152718940941
        0.0
    "#]],
    );
    check(
        &Sampler::Binomial { n: 10, p: 0.3 },
        &expect![[r#"
        4
        3
        1
        3
    "#]],
    );
    check(
        &Sampler::Binomial { n: 1_000_000, p: 0.3 },
        &expect![[r#"
        300322
        299933
        299376
        300124
    "#]],
    );
    check(
        &Sampler::Poisson { mean: 3.5 },
        &expect![[r#"
        5
        3
        1
        4
    "#]],
    );
    check(
        &Sampler::Poisson { mean: 1e6 },
        &expect![[r#"
        1000703
        999854
        998639
        1000270
    "#]],
    );
}

#[test]
fn times() {
    let start = "2024-01-01".to_owned();
    for (unit, expected) in [
        (
            TimeUnit::Year,
            expect![[r#"
            "2025-01-01T00:00:00"
            "2024-01-01T00:00:00"
            "2024-01-01T00:00:00"
            "2025-01-01T00:00:00"
        "#]],
        ),
        (
            TimeUnit::Month,
            expect![[r#"
            "2025-06-01T00:00:00"
            "2024-11-01T00:00:00"
            "2024-03-01T00:00:00"
            "2025-03-01T00:00:00"
        "#]],
        ),
        (
            TimeUnit::Day,
            expect![[r#"
            "2025-06-20T00:00:00"
            "2024-11-23T00:00:00"
            "2024-03-28T00:00:00"
            "2025-03-10T00:00:00"
        "#]],
        ),
        (
            TimeUnit::Hour,
            expect![[r#"
            "2025-06-20T14:00:00"
            "2024-11-23T14:00:00"
            "2024-03-28T12:00:00"
            "2025-03-10T23:00:00"
        "#]],
        ),
        (
            TimeUnit::Second,
            expect![[r#"
            "2025-06-20T14:54:17"
            "2024-11-23T14:16:46"
            "2024-03-28T12:09:53"
            "2025-03-10T23:11:34"
        "#]],
        ),
    ] {
        let params = Datetime { start: start.clone(), end: "2026-01-01".to_owned(), unit };
        check(&Sampler::Datetime(params), &expected);
    }
    let sampler = Sampler::Timedelta(Timedelta {
        dt_min: 1,
        dt_max: 5,
        reference_column_name: "ordered".to_owned(),
        unit: TimeUnit::Day,
    });
    assert_eq!(sampler.depends_on(), Some("ordered"));
    expect![[r#"
        "2024-03-01T12:00:00"
        "2024-02-29T12:00:00"
        "2024-02-28T12:00:00"
        "2024-03-01T12:00:00"
    "#]]
    .assert_eq(&lines(&draws_with(&sampler, 4, Some(&"2024-02-27T12:00:00".into()))));
}

#[test]
fn distributions() {
    let mut out = String::new();
    for text in crate::statistics::DISTRIBUTIONS {
        let (text, _, _) = *text;
        let values: Vec<String> = draws(&scipy(text), 2).iter().map(Value::to_json).collect();
        out += &format!("{text}: {}\n", values.join(" "));
    }
    expect_file!["./distributions.txt"].assert_eq(&out);
    // Each of them is pinned.
    let pinned: Vec<&str> =
        crate::statistics::DISTRIBUTIONS.iter().map(|(text, _, _)| text.split(' ').next().unwrap()).collect();
    for name in Distribution::names() {
        assert!(pinned.contains(&name), "{name} has no pinned values");
    }
}

#[test]
fn persons() {
    for (locale, expected) in [
        (
            "en_US",
            expect![[r#"
        {"uuid":"bfa8fdee-53c0-4e7a-9e26-715ba16abe1b","first_name":"Kyle","middle_name":"Benjamin","last_name":"Evans","sex":"Male","age":60,"birth_date":"1966-10-15","marital_status":"divorced","street_number":"282","street_name":"Sunset Boulevard","unit":"Apt 2","postcode":"89580","zipcode":"89580","city":"Reno","district":"Washoe County","county":"Washoe County","region":"Nevada","state":"NV","country":"United States","education_level":"graduate","bachelors_field":"stem","occupation":"physical therapist","locale":"en_US","email_address":"kyle.evans@example.org","phone_number":"(775) 555-0141","national_id":"920-02-4933"}
        {"uuid":"b04333e4-a4ea-4791-a1f2-aa2bdb0783e5","first_name":"Teresa","middle_name":"Carolyn","last_name":"Fisher","sex":"Female","age":39,"birth_date":"1987-06-09","marital_status":"married_present","street_number":"628","street_name":"2nd Street","unit":null,"postcode":"62721","zipcode":"62721","city":"Springfield","district":"Sangamon County","county":"Sangamon County","region":"Illinois","state":"IL","country":"United States","education_level":"bachelors","bachelors_field":"stem_related","occupation":"marketing manager","locale":"en_US","email_address":"teresa.fisher@example.net","phone_number":"(217) 555-0156","national_id":"989-05-5736"}
    "#]],
        ),
        (
            "ja_JP",
            expect![[r#"
        {"uuid":"e90c9f58-0643-421e-9cfc-a3740ccd51ff","first_name":"学","middle_name":null,"last_name":"木村","sex":"Male","age":55,"birth_date":"1970-12-21","marital_status":"married_present","street_number":"1-2","street_name":"本町","unit":null,"postcode":"890-0057","zipcode":"890-0057","city":"鹿児島市","district":"鹿児島市","county":"鹿児島市","region":"鹿児島県","state":"九州","country":"日本","education_level":"high_school","bachelors_field":"no_degree","occupation":"無職","locale":"ja_JP","email_address":"manabu.kimura@example.com","phone_number":"090-0000-2824","national_id":"1541 2024 9336"}
        {"uuid":"796c3e73-dcb4-4358-a3ed-93e0634db878","first_name":"咲良","middle_name":null,"last_name":"後藤","sex":"Female","age":59,"birth_date":"1967-05-15","marital_status":"married_present","street_number":"3-82-2","street_name":"末広町","unit":"903号室","postcode":"920-0863","zipcode":"920-0863","city":"金沢市","district":"金沢市","county":"金沢市","region":"石川県","state":"中部","country":"日本","education_level":"high_school","bachelors_field":"no_degree","occupation":"漁師","locale":"ja_JP","email_address":"sakura.goto65@example.net","phone_number":"090-0000-9557","national_id":"4624 1865 4536"}
    "#]],
        ),
        (
            "pt_BR",
            expect![[r#"
        {"uuid":"bfa8fdee-53c0-4e7a-9e26-715ba16abe1b","first_name":"Mateus","middle_name":"Barbosa","last_name":"Rocha","sex":"Male","age":60,"birth_date":"1966-10-15","marital_status":"divorced","street_number":"154","street_name":"Avenida Brasil","unit":"Casa 2","postcode":"66802-111","zipcode":"66802-111","city":"Belém","district":"Belém","county":"Belém","region":"Pará","state":"PA","country":"Brasil","education_level":"graduate","bachelors_field":"stem","occupation":"psicólogo","locale":"pt_BR","email_address":"mateus.rocha@example.com","phone_number":"(11) 92493-3611","national_id":"445.699.029-54"}
        {"uuid":"b04333e4-a4ea-4791-a1f2-aa2bdb0783e5","first_name":"Beatriz","middle_name":"Dias","last_name":"Azevedo","sex":"Female","age":39,"birth_date":"1987-06-09","marital_status":"married_present","street_number":"95","street_name":"Rua Santos Dumont","unit":"Casa 3","postcode":"24021-925","zipcode":"24021-925","city":"Niterói","district":"Niterói","county":"Niterói","region":"Rio de Janeiro","state":"RJ","country":"Brasil","education_level":"bachelors","bachelors_field":"stem_related","occupation":"contador","locale":"pt_BR","email_address":"beatriz1987@example.net","phone_number":"(11) 95573-6241","national_id":"865.453.673-72"}
    "#]],
        ),
    ] {
        expected.assert_eq(&lines(&draws(&Sampler::Person(person(locale)), 2)));
    }
    let mut with_persona = person("en_GB");
    with_persona.with_synthetic_personas = true;
    expect![[r#"
        {"uuid":"bfa8fdee-53c0-4e7a-9e26-715ba16abe1b","first_name":"Hamish","middle_name":"William","last_name":"Hill","sex":"Male","age":60,"birth_date":"1966-10-15","marital_status":"divorced","street_number":"240","street_name":"Albert Road","unit":"Flat 2","postcode":"OX9 1FD","zipcode":"OX9 1FD","city":"Oxford","district":"Oxford","county":"Oxford","region":"Oxfordshire","state":"England","country":"United Kingdom","education_level":"graduate","bachelors_field":"stem","occupation":"physical therapist","locale":"en_GB","email_address":"hhill@example.com","phone_number":"07700 900202","national_id":"QQ 49 33 61 A","persona":"Hamish, 60, from Oxford, works as a physical therapist, prefers what is proven and cooperates but holds a line.","detailed_persona":"Hamish Hill is 60 years old and lives in Oxford. He works as a physical therapist, has a graduate degree and is divorced. He prefers what is proven, enjoys company in moderation, and worries now and then. In free time he enjoys astronomy, genealogy and long walks. Hamish eats simply and early.","professional_persona":"Hamish works as a physical therapist and plans when it matters.","finance_persona":"Hamish compares prices with care and waits for sales.","healthcare_persona":"Hamish sleeps too little and knows it.","sports_persona":"Hamish runs short distances before breakfast.","arts_persona":"Hamish goes to concerts of bands from their youth.","travel_persona":"Hamish plans each trip in a spreadsheet.","culinary_persona":"Hamish cooks the dishes of the family by heart.","cultural_background":"Hamish grew up with the customs of Oxfordshire, United Kingdom.","skills_and_expertise":"Hamish is good at data analysis, negotiation and public speaking.","skills_and_expertise_list":"data analysis, negotiation, public speaking","hobbies_and_interests":"In free time Hamish enjoys astronomy, genealogy and long walks.","hobbies_and_interests_list":"astronomy, genealogy, long walks","career_goals_and_ambitions":"Hamish wants to teach what experience taught.","openness":{"t_score":39,"label":"low","description":"Hamish prefers what is proven."},"conscientiousness":{"t_score":50,"label":"average","description":"Hamish plans when it matters."},"extraversion":{"t_score":49,"label":"average","description":"Hamish enjoys company in moderation."},"agreeableness":{"t_score":52,"label":"average","description":"Hamish cooperates but holds a line."},"neuroticism":{"t_score":55,"label":"average","description":"Hamish worries now and then."}}
    "#]].assert_eq(&lines(&draws(&Sampler::Person(with_persona), 1)));
}
