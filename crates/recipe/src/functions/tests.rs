//! Long-running functions check their budget, so that they can be stopped.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anabranch_engine::clock::{Clock, Sleep, SystemClock};
use bytes::Bytes;

use crate::Value;
use crate::budget::{CallBudget, CallTime};
use crate::drive::{call, call_within};
use crate::function::{Call, Fault, Function, Out};
use crate::recipe::Params;
use crate::registry::{Functions, NO_ADDRESS};
use crate::signature::{Holds, Signature};

/// A clock that advances by one millisecond per reading.
struct SteppingClock(Instant, AtomicU32);

impl Clock for SteppingClock {
    fn now(&self) -> Instant {
        self.0 + Duration::from_millis(self.1.fetch_add(1, Ordering::Relaxed).into())
    }

    fn sleep_until(&self, _: Instant) -> Sleep {
        Box::pin(pending())
    }
}

/// A budget that ends after this many checks, and the number of checks so far.
pub(crate) fn counted_budget(most: u64) -> (Arc<CallBudget>, impl Fn() -> u64) {
    let stepping = Arc::new(SteppingClock(SystemClock.now(), AtomicU32::new(0)));
    let clock: Arc<dyn Clock> = Arc::clone(&stepping) as Arc<dyn Clock>;
    let time = CallTime::starting(stepping.0, Duration::from_millis(most), &clock);
    let budget = Arc::new(CallBudget::new(u64::MAX, Some(time)));
    (budget, move || stepping.1.load(Ordering::Relaxed).into())
}

/// Checks that a function is stopped after `looks` checks of its budget, and succeeds without a limit.
#[track_caller]
fn check(id: &str, inputs: &[&str], params: &[(&str, &str)], looks: u64) {
    let functions = Functions::builtin();
    let function = functions.get(&id.parse().unwrap()).unwrap();
    let inputs: Vec<Vec<Bytes>> = inputs.iter().map(|input| vec![(*input).to_owned().into()]).collect();
    let value = |(name, text): &(&str, &str)| ((*name).to_owned(), Value::Text((*text).to_owned()));
    let params: Params = params.iter().map(value).collect();
    let (budget, _) = counted_budget(looks);
    let stopped = call_within(function, &inputs, &params, &budget, drop);
    assert!(matches!(stopped, Err(Fault::TooLong { .. })), "{id}: {stopped:?}");
    assert!(call(function, &inputs, &params).is_ok(), "{id}");
}

/// Each of these functions checks its budget during long work.
#[test]
fn long_work_can_be_stopped() {
    // The driver itself checks the budget once per chunk and input. The limits below are higher.
    let lines: String = (0..200_000_u32).map(|at| format!("{:x}\n", at.wrapping_mul(0x9e37_79b9))).collect();
    check("sort/1.0.0", &[&lines], &[], 20);
    let binary: String = (0..200_000_u32).map(|at| if at % 3 == 0 { '1' } else { '0' }).collect();
    check("regex_replace/1.0.0", &[&binary], &[("pattern", "1[01]{900}[^01]"), ("replacement", "x")], 100);
    check("grep/1.0.0", &[&binary], &[("pattern", "1[01]{900}[^01]")], 100);
    let json = format!("[{}0]", "{\"a\":0},".repeat(20_000));
    check("minify_json/1.0.0", &[&json], &[], 20);
    check("json_validate/1.0.0", &[&json], &[], 20);
    check("json_to_yaml/2.0.0", &[&json], &[], 20);
    check("yaml_to_json/1.0.0", &["- {a: 1}\n".repeat(10_000).as_str()], &[], 20);
    let (old, new): (String, String) =
        (0..300).map(|at| (format!("{at}\n"), format!("{}\n", (at * 7) % 300))).collect();
    check("diff/2.0.0", &[&old, &new], &[], 20);
    let rounds = "{% for a in range(1000) %}{% for b in range(1000) %}{% endfor %}{% endfor %}";
    check("template/1", &[], &[("template", rounds), ("fuel", "10000000")], 20);
    let sum = "{{ range(100000) | sum }}".repeat(10);
    check("template/1", &[], &[("template", &sum), ("fuel", "10000000")], 20);
    check("repeat/1.0.0", &["x"], &[("count", "20000000")], 50);
}

/// A schema of one byte of work per level and twice as much at the next. It never ends, unless it is stopped.
#[test]
fn a_schema_that_doubles_its_work_is_stopped() {
    let levels = (0..60).map(|at| {
        let next = format!(r##"{{"$ref":"#/$defs/a{}"}}"##, at + 1);
        format!(r#""a{at}":{{"allOf":[{next},{next}]}},"#)
    });
    let schema = format!(r##"{{"$ref":"#/$defs/a0","$defs":{{{}"a60":true}}}}"##, levels.collect::<String>());
    let functions = Functions::builtin();
    let function = functions.get(&"schema_validate/1.0.0".parse().unwrap()).unwrap();
    let params = Params::from([("schema".to_owned(), Value::from(schema))]);
    let (budget, checks) = counted_budget(1000);
    let stopped = call_within(function, &[vec!["1".into()]], &params, &budget, drop);
    assert!(matches!(stopped, Err(Fault::TooLong { .. })), "{stopped:?}");
    assert_eq!(checks(), 1001);
}

/// A wait for a thread does not count as time of the call.
#[test]
fn a_call_that_waited_has_its_whole_time() {
    let checks_after = |wait| {
        let (budget, checks) = counted_budget(10);
        budget.waited(Duration::from_millis(wait));
        while budget.check().is_ok() {}
        checks()
    };
    assert_eq!(checks_after(5), checks_after(0) + 5);
}

/// Patterns are compiled one after the other, and the budget is checked between them.
#[test]
fn patterns_check_their_budget_one_by_one() {
    let texts = |count: usize| (0..count).map(|at| format!("word{at}")).collect::<Vec<_>>();
    let begin = |id: &str, name: &str, value: Value| checks_of(id, "{}".to_owned(), &[(name, value)])[0];
    let listed = Value::List(texts(200).into_iter().map(Value::Text).collect());
    assert!(begin("redact/1.0.0", "patterns", texts(200).join(",").into()) >= 200);
    assert!(begin("redact/2.0.0", "patterns", listed) >= 200);
    let schema = |patterns: &[String]| {
        let rules: Vec<String> = patterns.iter().map(|it| format!("\"{it}\":true")).collect();
        Value::from(format!(r#"{{"patternProperties":{{{}}}}}"#, rules.join(",")))
    };
    // Each schema in a schema is checked anyway.
    let [all, one] = [60, 1].map(|count| begin("schema_validate/1.0.0", "schema", schema(&texts(count))));
    let plain = |count: usize| {
        let rules: Vec<String> = texts(count).iter().map(|it| format!("\"{it}\":true")).collect();
        Value::from(format!(r#"{{"properties":{{{}}}}}"#, rules.join(",")))
    };
    let [all_plain, one_plain] = [60, 1].map(|count| begin("schema_validate/1.0.0", "schema", plain(count)));
    assert!(all - one >= all_plain - one_plain + 59, "{all}, {one}, {all_plain}, {one_plain}");
}

/// A function of whole inputs may take at most this long between two checks of its budget.
const INTERVAL: Duration = Duration::from_millis(20);

/// The cost per KiB from which a function of whole inputs must check its budget: with less, the largest input that the
/// memory of a call allows takes about a tenth of a second.
const NANOS_UNCHECKED: u64 = 1500;

/// Functions that hold their inputs and have no checks of their own.
const UNCHECKED: [&str; 6] = [
    // They work on chunks.
    "interleave",
    "repeat",
    // Formats of a single block, which their libraries cannot pause in. The largest input that the memory of a call allows
    // takes ten intervals, a fifth of a second.
    "lz4_compress",
    "lz4_decompress",
    "snappy_compress",
    "snappy_decompress",
];

/// The length of each document of [`documents`].
const LEN: usize = 512 << 10;

/// Large documents of the formats that functions read.
fn documents() -> [Bytes; 7] {
    let repeated = |text: &str| Bytes::from(text.repeat(LEN / text.len()));
    let listed =
        |item: &str| Bytes::from(format!("[{}{item}]", format!("{item},").repeat(LEN / (item.len() + 1))));
    let lines: String = (0..LEN / 8).map(|at| format!("{:07x}\n", at * 7919 % (LEN / 8))).collect();
    [
        listed("{\"a\":0}"),
        Bytes::from(format!("{{\"a\":{}}}", str::from_utf8(&listed("1")).unwrap())),
        Bytes::from(lines),
        repeated("a,b\n1,2\n"),
        repeated("- {a: 1}\n"),
        Bytes::from((0..LEN / 12).map(|at| format!("a{at:06}=1\n")).collect::<String>()),
        repeated("{\"a\":1}\n"),
    ]
}

/// Each function of whole inputs checks its budget while it works, as often as its declared cost requires. The driver
/// checks it for the others, between chunks.
#[test]
fn functions_of_whole_inputs_check_their_budget() {
    let documents = documents();
    let given = [
        ("pattern", "[a-c]+"),
        ("replacement", "x"),
        ("columns", "a"),
        ("path", "/0"),
        ("schema", "{}"),
        ("template", "{% for a in range(100000) %}{% endfor %}"),
        ("n", "10"),
        ("seed", "7"),
        ("names", "a"),
        ("key", "a"),
        ("separator", ","),
        ("from", "utf-8"),
        ("to", "utf-16"),
        ("target", "crlf"),
        ("column", "a"),
    ];
    let list = Value::List(vec!["a".into()]);
    let mut wrong = Vec::new();
    for function in Functions::builtin().list() {
        let signature = function.signature();
        let nanos = match signature.nanos_per_kib {
            Signature::OPAQUE => NANOS_UNCHECKED + 1,
            nanos => nanos.into(),
        };
        let is_alias = signature.id.name.starts_with("streaming_");
        let is_unchecked = is_alias || UNCHECKED.contains(&&*signature.id.name);
        if signature.holds == Holds::Chunks || nanos <= NANOS_UNCHECKED || is_unchecked {
            continue;
        }
        let needed = signature.params.iter().filter(|param| param.is_needed());
        let value = |name: &str| match (&*signature.id.name, name) {
            ("toml_select", "path") => "/a000001",
            _ => given.iter().find(|(known, _)| *known == name).map_or("1", |(_, value)| value),
        };
        let params: Params = needed
            .map(|param| match value(&param.name) {
                _ if param.kind.takes(&list) => (param.name.to_string(), list.clone()),
                text => (param.name.to_string(), Value::from(text)),
            })
            .collect();
        let counts = documents.iter().filter_map(|document| {
            let inputs = vec![document.clone(); signature.inputs.least.max(1)];
            checks(function, &inputs, &params).map(|[.., finish]| finish)
        });
        let Some(checks) = counts.max() else {
            wrong.push(format!("{}: no document fits", signature.id));
            continue;
        };
        let due = (nanos * (LEN as u64 >> 10)) / INTERVAL.as_nanos() as u64;
        if checks < due.max(1) {
            wrong.push(format!("{}: {checks} checks, {} are due", signature.id, due.max(1)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Compressors receive at most this much between two checks, also at their highest levels.
#[test]
fn compressors_check_their_budget_between_blocks() {
    const BLOCKS: u64 = 5;
    let highest = [
        ("compress/1.0.0", None),
        ("gzip_compress/1.0.0", Some(("level", 9))),
        ("zstd_compress/1.0.0", Some(("level", 22))),
        ("brotli_compress/1.0.0", Some(("quality", 11))),
    ];
    for (id, level) in highest {
        let params: Vec<_> = level.into_iter().map(|(name, level)| (name, Value::from(level))).collect();
        let [_, push, finish] =
            checks_of(id, "few words. ".repeat((BLOCKS as usize * (64 << 10)) / 11), &params);
        assert!(push >= BLOCKS - 1 && finish >= 1, "{id}: {push}, {finish}");
    }
}

/// The number of checks when a call begins, when it reads its inputs in one chunk each, and after that; `None` if it
/// fails.
fn checks(function: &Arc<dyn Function>, inputs: &[Bytes], params: &Params) -> Option<[u64; 3]> {
    let (budget, checks) = counted_budget(u64::MAX >> 20);
    let sizes: Vec<u64> = inputs.iter().map(|input| input.len() as u64).collect();
    let addresses = vec![NO_ADDRESS; inputs.len()];
    let call = Call::new(function.signature(), params, &sizes, &budget).of(&addresses);
    let mut kernel = function.begin(&call).ok()?;
    let begin = checks();
    let mut out = Out::default();
    for (input, bytes) in inputs.iter().enumerate() {
        kernel.push(input, bytes.clone(), &mut out).ok()?;
        while out.take().1 {
            kernel.resume(&mut out).ok()?;
        }
        kernel.end(input, &mut out).ok()?;
    }
    let push = checks() - begin;
    kernel.finish(&mut out).ok()?;
    while out.take().1 {
        kernel.resume(&mut out).ok()?;
    }
    Some([begin, push, checks() - push - begin])
}

/// The number of checks of a call of a built-in function.
#[track_caller]
fn checks_of(id: &str, input: String, params: &[(&str, Value)]) -> [u64; 3] {
    let functions = Functions::builtin();
    let function = functions.get(&id.parse().unwrap()).unwrap();
    let params = params.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    checks(function, &[input.into()], &params).unwrap()
}

/// A chunk is not one interval if the parameters are large, or the work for each of its bytes is much.
#[test]
fn functions_of_chunks_check_their_budget_within_a_chunk() {
    let names: Vec<String> = (0..65_536).map(|at| format!("column{at}")).collect();
    let table = format!("{0}\n{0}\n", names.join(","));
    let [begin, push, _] = checks_of("csv_select/1", table, &[("columns", names.into())]);
    assert!(begin >= 2 && push >= 3, "{begin}, {push}");
    let numbers: Vec<String> = (1..200_000).map(|number| number.to_string()).collect();
    let [begin, ..] = checks_of("lines_select/1", "a\n".to_owned(), &[("lines", numbers.join(",").into())]);
    assert!(begin >= 3, "{begin}");
    let lines = format!("{}\n", "01".repeat(500)).repeat(200);
    let [_, push, _] = checks_of("grep/1.0.0", lines, &[("pattern", "[01]*1[01]{300}[^01]".into())]);
    // 300 states, 200 lines of 1000 bytes.
    assert!(push >= 50, "{push}");
}

/// The checks that a schema adds to those of an empty one.
#[track_caller]
fn checks_of_schema(schema: &str, value: &str) -> u64 {
    let [schema, empty] = [schema, "{}"].map(|schema| {
        let [.., finish] = checks_of("schema_validate/1.0.0", value.to_owned(), &[("schema", schema.into())]);
        finish
    });
    schema - empty
}

/// The work of one keyword for one value can be much.
#[test]
fn a_schema_checks_its_budget_within_a_keyword() {
    let entries: Vec<String> = (0..5_000).map(|at| format!("\"name{at}\":0")).collect();
    let object = format!("{{{}}}", entries.join(","));
    let patterns: Vec<String> = (0..64).map(|at| format!("\"^x{at}y\":false")).collect();
    let patterns = format!(r#""patternProperties":{{{}}}"#, patterns.join(","));
    // 64 patterns for each of 5,000 names.
    let checks = checks_of_schema(&format!("{{{patterns}}}"), &object);
    assert!(checks >= 20, "{checks}");
    let checks = checks_of_schema(&format!(r#"{{{patterns},"additionalProperties":true}}"#), &object);
    assert!(checks >= 5_000 + 40, "{checks}");
    let lists: Vec<String> = (0..50_000).map(|at| format!("[0,1,2,3,4,5,6,7,8,{at}]")).collect();
    // 550,000 values in 50,000 lists.
    let checks = checks_of_schema(r#"{"uniqueItems":true}"#, &format!("[{}]", lists.join(",")));
    assert!(checks >= 4, "{checks}");
    let list = format!("[{}]", "0,".repeat(300_000) + "0");
    let checks = checks_of_schema(&format!(r#"{{"const":{list}}}"#), &list);
    assert!(checks >= 2, "{checks}");
}

/// The text with its matches replaced, found by a single search each.
fn replaced(text: &str, pattern: &str, replacement: &str) -> String {
    let regex = regex_automata::meta::Regex::new(pattern).unwrap();
    let (mut made, mut from) = (String::new(), 0);
    for groups in regex.captures_iter(text) {
        let span = groups.get_match().unwrap().span();
        made.push_str(&text[from..span.start]);
        groups.interpolate_string_into(text, replacement, &mut made);
        from = span.end;
    }
    made + &text[from..]
}

/// A search in steps finds the same matches as a single search.
#[test]
fn matches_by_steps_are_those_of_one_search() {
    let text = "über 12 ab 345 ẞx\n".repeat(20_000);
    for (pattern, replacement) in [
        ("\\d+", "<$0>"),
        ("(a)(b)?", "$2-$1"),
        ("x*", "."),
        ("(?m)^.", "^"),
        ("[^ ]+$", "end"),
        ("ß|ẞ|ü", "ss"),
        ("a|ab", "#"),
        ("(?-u:\\b)ab(?-u:\\b)", "word"),
        ("nowhere", ""),
        // The lazy DFA does not know these beyond ASCII.
        ("\\bab\\b", "word"),
        ("\\b", "|"),
        ("(\\w+)\\b (?<number>\\d+)", "${number} $1"),
        // The groups of a long match.
        ("(?s)12(.*)(ẞ)(x)?", "<$3$2>"),
        ("(?s)(b.*?)(345|$)(.*)", "$2"),
    ] {
        // A pattern with many states forces the search to run in steps.
        let long = format!("{pattern}|{}", "\u{1}[0-9]{300}".repeat(3));
        let given = |pattern: &str| {
            let functions = Functions::builtin();
            let function = functions.get(&"regex_replace/1.0.0".parse().unwrap()).unwrap();
            let texts = [("pattern", pattern), ("replacement", replacement)];
            let params: Params = texts
                .iter()
                .map(|(name, text)| ((*name).to_owned(), Value::Text((*text).to_owned())))
                .collect();
            call(function, &[vec![text.clone().into()]], &params).unwrap().concat()
        };
        assert!(given(&long) == replaced(&text, pattern, replacement).as_bytes(), "{pattern}");
    }
}
