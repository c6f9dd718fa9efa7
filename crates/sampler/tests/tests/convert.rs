//! Conversions of sampled values.

use anabranch_sampler::Convert;
use anabranch_value::Value;
use expect_test::expect;

fn check(target: &str, value: impl Into<Value>) -> String {
    let converted = Convert::parse(target).and_then(|convert| convert.compile()?.apply(&value.into()));
    converted.map_or_else(|fault| fault.to_string(), |value| value.to_json()) + "\n"
}

#[test]
fn numbers_and_text() {
    let mut out = String::new();
    for number in [0.5, 1.5, 2.5, -0.5, 2.7, 1e18, 1e19, f64::NAN] {
        out += &check("int", number);
    }
    out += &check("int", "7.6");
    out += &check("int", "many");
    out += &check("int", Value::Null);
    out += &check("float", 3);
    out += &check("float", "3");
    out += &check("float", true);
    for number in [3.0, 0.1, 1e16, 1.5e-5, -0.0, 123_456_789.125] {
        out += &check("str", number);
    }
    out += &check("str", 12);
    out += &check("str", true);
    out += &check("int", Value::list([]));
    expect![[r#"
        0
        2
        2
        0
        3
        1000000000000000000
        1e+19 cannot be converted to int: it does not fit into 64 bits
        nan cannot be converted to int: it is not finite
        8
        `many` cannot be converted to int: it is not a number
        null
        3.0
        3.0
        1.0
        "3.0"
        "0.1"
        "1e+16"
        "1.5e-05"
        "-0.0"
        "123456789.125"
        "12"
        "True"
        a list cannot be converted to int: it is not a number
    "#]]
    .assert_eq(&out);
}

#[test]
fn dates() {
    let mut out = check("%d %b %Y", "2024-05-31T14:30:00");
    out += &check("%d %b %Y", "soon");
    out += &check("%d %b %Y", 5);
    out += &check("%K", "2024-05-31");
    out += &check("date", "2024-05-31");
    expect![[r#"
        "31 May 2024"
        `soon` cannot be converted to a formatted date: it is not a date
        5 cannot be converted to a formatted date: it is not a date
        `convert_to`: unknown directive %K; use %Y %m %d %H %M %S %j %B %A or %%
        `convert_to`: expected int, float, str or a date format such as %Y-%m-%d, found `date`
    "#]]
    .assert_eq(&out);
}
