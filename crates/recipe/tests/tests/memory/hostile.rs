//! Parameters and inputs that are chosen to take memory, for the functions whose memory depends on them most.

use std::sync::Arc;

use anabranch_recipe::{Function, Functions, ParamKind, Params, Value};
use bytes::Bytes;

use super::{check, hostile, params_of};
use crate::kit::texts;

fn function(functions: &Functions, id: &str) -> Arc<dyn Function> {
    Arc::clone(functions.get(&id.parse().unwrap()).unwrap())
}

/// The beginning of a text, for the message of a failed check.
fn beginning(text: &str) -> &str {
    &text[..text.floor_char_boundary(60)]
}

/// A parameter with a few allowed texts takes each of them, for all hostile inputs.
#[test]
fn every_choice_holds_no_more_than_it_is_granted() {
    let functions = Functions::builtin();
    for (what, input) in hostile() {
        let input = Bytes::from(input);
        for function in functions.list() {
            let count = function.signature().inputs.least.max(1);
            for param in &function.signature().params {
                let ParamKind::OneOf(choices) = &param.kind else { continue };
                for choice in choices {
                    let mut params = params_of(function);
                    params.insert(param.name.to_string(), Value::Text(choice.to_string()));
                    let what = format!("{what} with `{}` {choice}", param.name);
                    check(function, &vec![vec![input.clone()]; count], &params, &what);
                }
            }
        }
    }
}

/// Templates are as large as they may be, and consist of much of one thing.
#[test]
fn templates_hold_no_more_than_they_are_granted() {
    const LEN: usize = 1 << 20;
    let functions = Functions::builtin();
    let template = function(&functions, "template/1");
    let repeated = |text: &str| text.repeat(LEN / text.len());
    let listed =
        |front: &str, item: &str, end: &str| format!("{front}{}1{end}", item.repeat((LEN - 64) / item.len()));
    let templates = [
        repeated("a"),
        repeated("{{1}}"),
        repeated("{{x}}"),
        repeated("{{x|e}}"),
        repeated("{{ x.a[0] }}"),
        repeated("{% if x %}{% endif %}"),
        repeated("{%for a in x%}{%endfor%}"),
        repeated("{##}"),
        repeated("{{''}}"),
        repeated("{{[]}}"),
        repeated("{{{}}}"),
        (0..LEN / 16).map(|at| format!("{{{{x{at}}}}}\n")).collect(),
        listed("{{ [", "1,", "] }}"),
        listed("{{ [", "[],", "] }}"),
        listed("{{ [", "'',", "] }}"),
        listed("{{ {", "1:1,", ":1} }}"),
        listed("{% for a in [", "x,", "] %}{% endfor %}"),
        listed("{{ range(", "1,", ") }}"),
        // As many words as a tag may have.
        repeated(&format!("{{{{[{}1]}}}}", "1,".repeat(250))),
        repeated(&format!("{{{{[{}1]}}}}", "[],".repeat(160))),
        repeated(&format!("{{{{ {{{}1:1}} }}}}", "1:1,".repeat(120))),
        repeated(&format!("{{{{x{}}}}}", "|e".repeat(250))),
        repeated(&format!("{{{{x{}}}}}", "+1".repeat(250))),
        repeated(&format!("{{{{{}x}}}}", "not ".repeat(100))),
        repeated(&format!("{{{{x{}}}}}", "[0]".repeat(100))),
        repeated(&format!("{{{{{}1{}}}}}", "(".repeat(30), ")".repeat(30))),
    ];
    let inputs = [vec![Bytes::from_static(b"input")]];
    for source in templates {
        let params = Params::from([
            ("template".to_owned(), Value::Text(source.clone())),
            ("values".to_owned(), Value::Map([("x".to_owned(), Value::from(vec![1, 2, 3]))].into())),
        ]);
        check(&template, &inputs, &params, beginning(&source));
    }
    let expressions = [
        "{{ range(100000) | list | length }}",
        "{{ range(100000) | join(',') | upper | length }}",
        "{{ inputs[0] | lines | sort | unique | reverse | length }}",
        "{{ inputs[0] | split('a') | join('-') }}",
        "{{ inputs[0] | lines | list | max }}",
        "{{ inputs[0] | split('') | length }}",
        "{{ inputs[0] | lines | sort(reverse=true) | join }}",
        "{{ inputs[0] | replace('a', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa') | length }}",
        "{{ [inputs[0], inputs[0]] | tojson }}",
        "{{ ('%s' ~ inputs[0]) ~ inputs[0] ~ inputs[0] }}",
    ];
    let inputs = [vec![Bytes::from("a\nb".repeat(100_000))]];
    for source in expressions {
        let params = texts(&[("template", source), ("fuel", "100000000")]);
        check(&template, &inputs, &params, source);
    }
}

/// Schemas are as large as they may be.
#[test]
fn schemas_hold_no_more_than_they_are_granted() {
    const LEN: usize = 1 << 20;
    let functions = Functions::builtin();
    let validate = function(&functions, "schema_validate/1.0.0");
    let listed = |front: &str, item: &str, last: &str, end: &str| {
        format!("{front}{}{last}{end}", item.repeat((LEN - 64) / item.len()))
    };
    let numbered = |front: &str, item: &dyn Fn(usize) -> String, last: &str, end: &str| {
        let items: String = (0..(LEN - 64) / (item(LEN).len() + 1)).map(item).collect();
        format!("{front}{items}{last}{end}")
    };
    let schemas = [
        listed(r#"{"enum":["#, "0,", "0", "]}"),
        listed(r#"{"enum":["#, "[],", "0", "]}"),
        listed(r#"{"const":["#, r#"{"":0},"#, "0", "]}"),
        listed(r#"{"allOf":["#, "{},", "{}", "]}"),
        listed(r#"{"anyOf":["#, "true,", "true", "]}"),
        listed(r#"{"oneOf":["#, r#"{"$ref":""},"#, "true", "]}"),
        listed(r#"{"prefixItems":["#, r#"{"type":"null"},"#, "true", "]}"),
        numbered(r#"{"required":["#, &|at| format!("\"{at}\","), r#""""#, "]}"),
        numbered(r#"{"properties":{"#, &|at| format!("\"{at}\":true,"), r#""":true"#, "}}"),
        numbered(r#"{"$defs":{"#, &|at| format!("\"{at}\":{{}},"), r#""":true"#, "}}"),
        numbered(r#"{"dependentRequired":{"#, &|at| format!("\"{at}\":[],"), r#""":[]"#, "}}"),
        numbered(r#"{"properties":{"#, &|at| format!(r#""{at}":{{"pattern":"{at}"}},"#), r#""":true"#, "}}"),
    ];
    let values =
        ["[0,1,2]".to_owned(), r#"{"a":0,"b":[]}"#.to_owned(), format!("[{}0]", "0,".repeat(50_000))];
    for schema in schemas {
        for value in &values {
            let params = texts(&[("schema", &schema)]);
            check(&validate, &[vec![value.clone().into()]], &params, beginning(&schema));
        }
    }
    // The same names and values again and again, in a value.
    let strict = r#"{"items":{"uniqueItems":true,"properties":{"a":{"type":"string"}}},"uniqueItems":true}"#;
    for item in ["{\"a\":0},", "[0,1],", "\"abc\",", "1.5,"] {
        let value = format!("[{}0]", item.repeat(300_000 / item.len()));
        check(&validate, &[vec![value.into()]], &texts(&[("schema", strict)]), item);
    }
}

/// Patterns have automata as large as they may be, and searches fill their caches.
#[test]
fn patterns_hold_no_more_than_they_are_granted() {
    let functions = Functions::builtin();
    let patterns = [
        "a{8000}".to_owned(),
        "(?i)a{2000}".to_owned(),
        "\\w{60}".to_owned(),
        "[01]*1[01]{5000}".to_owned(),
        "(a|b|ab|ba)*c?(\\d+|[a-z]+)*$".to_owned(),
        "(((((((((a*)*)*)*)*)*)*)*)*)*b".to_owned(),
        "()".repeat(4_000),
        "(a)".repeat(2_000),
        "(x|y)?".repeat(1_000),
        (0..2_000).map(|at| format!("w{at}|")).collect(),
        "\\pL".repeat(200),
        format!("(?i){}", "\\pL".repeat(200)),
        "[\\w\\d]".repeat(80),
        "\\w{6}".to_owned(),
        "\\b".repeat(4_000),
        ".*".repeat(2_000),
    ];
    let words = "ab ba 10 w17 ".repeat(3_000);
    let noise: String = (0..40_000_u64).map(|at| char::from(b"01ab"[(at * at % 97 % 4) as usize])).collect();
    for pattern in &patterns {
        for text in [&words, &noise] {
            let input = [vec![Bytes::from(text.clone())]];
            let given: &[(&str, &[(&str, &str)])] = &[
                ("grep/1.0.0", &[("pattern", pattern)]),
                ("regex_replace/1.0.0", &[("pattern", pattern), ("replacement", "<$0>$1")]),
                ("redact/1.0.0", &[("patterns", pattern)]),
            ];
            for (id, params) in given {
                check(&function(&functions, id), &input, &texts(params), beginning(pattern));
            }
            let list = Value::List(vec![Value::Text(pattern.clone())]);
            let params = Params::from([("patterns".to_owned(), list)]);
            check(&function(&functions, "redact/2.0.0"), &input, &params, beginning(pattern));
        }
    }
}

/// Two inputs that differ: all of it, every other line, or its order.
#[test]
fn differing_inputs_hold_no_more_than_they_are_granted() {
    let functions = Functions::builtin();
    let lines =
        |count: usize, line: &dyn Fn(usize) -> String| Bytes::from((0..count).map(line).collect::<String>());
    let pairs = [
        (lines(10_000, &|at| format!("{at}\n")), lines(10_000, &|at| format!("x{at}\n"))),
        (lines(10_000, &|at| format!("{at}\n")), lines(10_000, &|at| format!("{}\n", at / 2 * 2))),
        (lines(30_000, &|_| "\n".to_owned()), lines(20_000, &|_| "\n".to_owned())),
        (lines(500, &|at| format!("{at}\n")), lines(500, &|at| format!("{}\n", at * 7 % 500))),
        (lines(30_000, &|at| format!("{}\n", at % 2)), lines(3, &|_| "1\n".to_owned())),
        (Bytes::new(), lines(30_000, &|_| "\n".to_owned())),
    ];
    for (one, other) in pairs {
        for inputs in [[&one, &other], [&other, &one]] {
            let what = format!("{} and {} bytes", inputs[0].len(), inputs[1].len());
            let inputs = inputs.map(|input| input.chunks(64 << 10).map(Bytes::copy_from_slice).collect());
            for function in functions.list() {
                let arity = function.signature().inputs;
                if arity.takes(2) && arity.most != Some(1) {
                    check(function, &inputs, &params_of(function), &what);
                }
            }
        }
    }
}
