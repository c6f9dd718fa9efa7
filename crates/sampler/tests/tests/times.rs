//! Times: parsed, formatted, and back.

use anabranch_sampler::{ColumnKey, Sampler, TimeFormat, TimeUnit, Timedelta, parse_time};
use expect_test::expect;
use proptest::prelude::proptest;

use crate::support::compile;

const ISO: &str = "%Y-%m-%dT%H:%M:%S";

#[test]
fn forms() {
    let mut out = String::new();
    for text in [
        "2024",
        "2024-05",
        "2024-05-31",
        "2024/5/31",
        "20240531",
        "05/31/2024",
        "31 May 2024",
        "May 31, 2024",
        "31-Dec-1999",
        "2024-05-31T14:30",
        "2024-05-31 14:30:15",
        "2024-05-31T14:30:15.123456",
        "2024-05-31T14:30:15Z",
        "2024-05-31T14:30:15+02:00",
        "2024-05-31 14:30:15 -0530",
        "May 31, 2024 2:05 PM",
        "0001-01-01",
        "1969-12-31T23:59:59",
        "",
        "soon",
        "2024-13-01",
        "2023-02-29",
        "2024-05-31T24:00",
        "2024-05-31T",
        "2024-05-31x",
        "31/31/2024",
        "10000-01-01",
        "0001-01-01T00:00+01:00",
    ] {
        let iso = TimeFormat::new(ISO).unwrap();
        out += &format!("{text} -> {}\n", parse_time(text).map_or("-".to_owned(), |time| iso.format(time)));
    }
    expect![[r#"
        2024 -> 2024-01-01T00:00:00
        2024-05 -> 2024-05-01T00:00:00
        2024-05-31 -> 2024-05-31T00:00:00
        2024/5/31 -> 2024-05-31T00:00:00
        20240531 -> 2024-05-31T00:00:00
        05/31/2024 -> 2024-05-31T00:00:00
        31 May 2024 -> 2024-05-31T00:00:00
        May 31, 2024 -> 2024-05-31T00:00:00
        31-Dec-1999 -> 1999-12-31T00:00:00
        2024-05-31T14:30 -> 2024-05-31T14:30:00
        2024-05-31 14:30:15 -> 2024-05-31T14:30:15
        2024-05-31T14:30:15.123456 -> 2024-05-31T14:30:15
        2024-05-31T14:30:15Z -> 2024-05-31T14:30:15
        2024-05-31T14:30:15+02:00 -> 2024-05-31T12:30:15
        2024-05-31 14:30:15 -0530 -> 2024-05-31T20:00:15
        May 31, 2024 2:05 PM -> 2024-05-31T14:05:00
        0001-01-01 -> 0001-01-01T00:00:00
        1969-12-31T23:59:59 -> 1969-12-31T23:59:59
         -> -
        soon -> -
        2024-13-01 -> -
        2023-02-29 -> -
        2024-05-31T24:00 -> -
        2024-05-31T -> -
        2024-05-31x -> -
        31/31/2024 -> -
        10000-01-01 -> -
        0001-01-01T00:00+01:00 -> -
    "#]]
    .assert_eq(&out);
}

#[test]
fn directives() {
    let time = parse_time("2024-03-05T14:07:09").unwrap();
    let mut out = String::new();
    for format in [
        "%Y-%m-%d",
        "%d/%m/%y",
        "%B %-d, %Y",
        "%A %a %b %e",
        "%I:%M %p",
        "%j %U %W %G-W%V %u %w",
        "%H:%M:%S.%f",
        "%c",
        "%D %T %F %R",
        "%s",
        "100%%",
        "[%Z%z]",
    ] {
        out += &format!("{format} -> {}\n", TimeFormat::new(format).unwrap().format(time));
    }
    out += &TimeFormat::new("%Q").unwrap_err();
    out += "\n";
    out += &TimeFormat::new("50%").unwrap_err();
    expect![[r#"
        %Y-%m-%d -> 2024-03-05
        %d/%m/%y -> 05/03/24
        %B %-d, %Y -> March 5, 2024
        %A %a %b %e -> Tuesday Tue Mar  5
        %I:%M %p -> 02:07 PM
        %j %U %W %G-W%V %u %w -> 065 09 10 2024-W10 2 2
        %H:%M:%S.%f -> 14:07:09.000000
        %c -> Tue Mar  5 14:07:09 2024
        %D %T %F %R -> 03/05/24 14:07:09 2024-03-05 14:07
        %s -> 1709647629
        100%% -> 100%
        [%Z%z] -> []
        unknown directive %Q; use %Y %m %d %H %M %S %j %B %A or %%
        a single % at the end; write %% for the character itself"#]]
    .assert_eq(&out);
}

#[test]
fn iso_weeks_at_the_turn_of_the_year() {
    let week = TimeFormat::new("%G-W%V-%u").unwrap();
    for (date, expected) in [
        ("2021-01-03", "2020-W53-7"),
        ("2021-01-04", "2021-W01-1"),
        ("2024-12-30", "2025-W01-1"),
        ("2027-01-01", "2026-W53-5"),
    ] {
        assert_eq!(week.format(parse_time(date).unwrap()), expected);
    }
}

proptest! {
    #[test]
    fn there_and_back(time in -62_135_596_800i64..253_402_300_800) {
        for format in [ISO, "%d %B %Y %I:%M:%S %p", "%Y%m%d%H%M%S", "%A, %b %e %Y %T", "%Y-%j %T"] {
            let format = TimeFormat::new(format).unwrap();
            assert_eq!(format.parse(&format.format(time)), Some(time));
        }
        assert_eq!(parse_time(&TimeFormat::new(ISO).unwrap().format(time)), Some(time));
    }

    #[test]
    fn no_text_panics(text in ".{0,40}", format in "[%a-zA-Z -]{0,12}") {
        let _ = parse_time(&text);
        if let Ok(format) = TimeFormat::new(&format) {
            let _ = format.parse(&text);
        }
    }
}

#[test]
fn a_delta_reads_the_format_of_its_reference() {
    let sampler = Sampler::Timedelta(Timedelta {
        dt_min: 1,
        dt_max: 2,
        reference_column_name: "ordered".to_owned(),
        unit: TimeUnit::Day,
    });
    let format = TimeFormat::new("%d.%m.%y").unwrap();
    let compiled = compile(&sampler).with_reference_format(format);
    let mut stream = ColumnKey::new(1, "delivered").stream(0, 0);
    let value = compiled.sample(&mut stream, Some(&"28.02.24".into())).unwrap();
    assert_eq!(value, "2024-02-29T00:00:00".into());
}
