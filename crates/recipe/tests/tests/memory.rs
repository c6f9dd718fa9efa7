//! The memory of functions: never more than was granted, whatever the input.
#![allow(unsafe_code, reason = "an allocator cannot be written without")]

mod hostile;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use anabranch_recipe::{
    CallBudget, Fault, Function, Functions, Param, ParamKind, Params, Value, call, call_within,
};
use anabranch_testkit::Rng;
use bytes::Bytes;

use crate::kit::texts;

/// Counts the bytes that the current thread holds. C libraries have an allocator of their own, and are not counted.
struct CountingAllocator;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    // A thread that ends has no counters any more.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // The old and the new block exist at the same time, unless the block can grow where it is.
        count(size as isize);
        count(-(layout.size() as isize));
        // SAFETY: the caller's promise.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// The result of a call, and the most bytes that it held.
fn measured<T>(call: impl FnOnce() -> T) -> (T, u64) {
    let before = HELD.get();
    PEAK.set(before);
    let result = call();
    (result, (PEAK.get() - before) as u64)
}

/// Memory beyond the grant that is not the function's: chunks on their way, and small things.
const SLACK: u64 = 1 << 20;

/// The largest grant of an executor with the default settings.
const MOST: u64 = 192 << 20;

/// The memory of a parameter.
fn memory_behind(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(values) => values.iter().map(|value| size_of::<Value>() + memory_behind(value)).sum(),
        Value::Map(values) => values.iter().map(|(key, value)| key.len() + 64 + memory_behind(value)).sum(),
        _ => 0,
    }
}

/// Calls a function as an executor does, and checks its memory.
fn check(function: &Arc<dyn Function>, inputs: &[Vec<Bytes>], params: &Params, what: &str) {
    let need = function.signature().memory;
    let total: u64 = inputs.iter().flatten().map(|chunk| chunk.len() as u64).sum();
    let given: usize = params.iter().map(|(name, value)| name.len() + memory_behind(value)).sum();
    let fixed = need.base
        + need.per_input * inputs.len() as u64
        + need.per_input_byte * total
        + need.per_param_byte * given as u64;
    let mut claims = (64 << 10) + need.claims_per_input_byte * total;
    loop {
        claims = claims.min(MOST.saturating_sub(fixed));
        let budget = CallBudget::of_bytes(claims);
        let (result, held) = measured(|| call_within(function, inputs, params, &budget, drop));
        let granted = fixed + claims;
        let id = &function.signature().id;
        assert!(held <= granted + SLACK, "{id} of {what}: held {held} bytes, granted {granted}");
        match result {
            Err(Fault::Memory { needed, .. }) if granted < MOST => claims = (claims * 4).max(needed),
            _ => return,
        }
    }
}

/// A schema that looks at everything, in several ways.
const SCHEMA: &str = r##"{"uniqueItems": true, "maxItems": 1, "items": {"anyOf": [{"type": "string", "pattern": "^[a-z]"},
    {"$ref": "#"}], "enum": [0, "abc", {}], "additionalProperties": {"type": "null"}}}"##;

/// Values for all parameters that functions need.
const PARAMS: &[(&str, &str)] = &[
    ("pattern", "[a-c]+|\\w*1"),
    ("replacement", "<$0$0>"),
    ("patterns", "a,b"),
    ("n", "100000"),
    ("index", "0"),
    ("prefix", "> "),
    ("suffix", "<"),
    ("separator", ", "),
    ("max_line_bytes", "100"),
    ("seed", "7"),
    ("lines", "100000"),
    ("count", "3"),
    ("bytes", "100"),
    ("offset", "10"),
    ("length", "1000000"),
    ("size", "7"),
    ("block_size", "7"),
    ("word_size", "2"),
    ("mask", "7"),
    ("path", "/0"),
    ("columns", "a"),
    ("template", "{{ inputs | length }}"),
    ("target", "crlf"),
    ("from", "utf-8"),
    ("to", "utf-16"),
    ("schema", SCHEMA),
];

fn params_of(function: &Arc<dyn Function>) -> Params {
    let signature = function.signature();
    let value = |param: &Param| match &param.kind {
        ParamKind::Bytes { least, .. } => "00".repeat(*least as usize),
        ParamKind::Int { least, most } => {
            let known = PARAMS.iter().find(|(known, _)| *known == param.name);
            let number = known.and_then(|(_, value)| value.parse().ok()).unwrap_or(7_i128);
            number.clamp(*least, *most).to_string()
        }
        _ => PARAMS.iter().find(|(known, _)| *known == param.name).map_or("7", |(_, value)| value).to_owned(),
    };
    let needed = signature.params.iter().filter(|param| param.is_needed());
    needed.map(|param| (param.name.to_string(), Value::from(value(param)))).collect()
}

/// Inputs that take much memory for their size, and such that do not.
fn hostile() -> Vec<(&'static str, Vec<u8>)> {
    let repeated = |text: &str, len: usize| text.repeat(len / text.len()).into_bytes();
    let listed = |item: &str, len: usize| {
        let items = vec![item; len / (item.len() + 1)].join(",");
        format!("[{items}]").into_bytes()
    };
    let packed = |id: &str| {
        let functions = Functions::builtin();
        let zeros = vec![vec![Bytes::from(vec![0; 8 << 20])]];
        call(functions.get(&id.parse().unwrap()).unwrap(), &zeros, &Params::new()).unwrap().concat()
    };
    const LEN: usize = 150_000;
    vec![
        ("nothing", Vec::new()),
        ("objects", listed("{\"\":0}", LEN)),
        ("numbers of JSON", listed("0", LEN)),
        ("texts", listed("\"abc\"", LEN)),
        ("nested lists", listed("[[],[0]]", LEN)),
        ("deep", [b"[".repeat(100), b"]".repeat(100)].concat()),
        ("line feeds", vec![b'\n'; LEN]),
        ("short lines", repeated("a\nb\n", LEN)),
        ("one line", vec![b'a'; 3 * LEN]),
        ("digits", repeated("10", LEN)),
        ("YAML", repeated("- a\n", LEN)),
        ("YAML of maps", repeated("- {a: 1}\n", LEN)),
        ("TOML", format!("a=[{}0]", "0,".repeat(LEN / 2)).into_bytes()),
        ("TOML of tables", (0..LEN / 10).map(|at| format!("[t{at}]\na=1\n")).collect::<String>().into()),
        ("CSV", repeated("a,b\n1,2\n", LEN)),
        ("bytes", (0..LEN as u64).map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()),
        ("zlib of zeros", packed("compress/1.0.0")),
        ("gzip of zeros", packed("gzip_compress/1.0.0")),
        ("brotli of zeros", packed("brotli_compress/1.0.0")),
        ("lz4 of zeros", packed("lz4_compress/1.0.0")),
        ("snappy of zeros", packed("snappy_compress/1.0.0")),
    ]
}

#[test]
fn functions_hold_no_more_than_they_are_granted() {
    let functions = Functions::builtin();
    for (what, input) in hostile() {
        let input = Bytes::from(input);
        for function in functions.list() {
            let arity = function.signature().inputs;
            let count = arity.least.max(1).min(arity.most.unwrap_or(2));
            // In one chunk, and in chunks as the store gives them.
            for chunks in [vec![input.clone()], input.chunks(64 << 10).map(Bytes::copy_from_slice).collect()]
            {
                let inputs = vec![chunks; count];
                check(function, &inputs, &params_of(function), what);
            }
        }
    }
}

/// A random document of up to `most` bytes: JSON, YAML, TOML, CSV, lines, or bytes.
fn random_document(rng: &mut Rng, most: u64) -> Vec<u8> {
    let kind = rng.within(0..7);
    let mut made = Vec::new();
    let len = rng.within(0..most) as usize;
    if kind == 0 {
        made.push(b'[');
    }
    while made.len() < len {
        let word: String = (0..rng.within(0..12))
            .map(|_| char::from(b"abc019 -_.xyz"[rng.within(0..13) as usize]))
            .collect();
        let number = rng.within(0..1_000_000);
        let item = match kind {
            0 => format!("{{\"{word}\":[{number},\"{word}\"]}},"),
            1 => format!("- {{k{number}: [{number}, '{word}']}}\n"),
            2 => format!("[t{number}]\nk = \"{word}\"\n"),
            3 => format!("{word},{number}\n"),
            4 => format!("{word}\n"),
            5 => format!("{number}\n"),
            _ => String::from_utf8_lossy(&number.to_le_bytes()).into_owned(),
        };
        made.extend_from_slice(item.as_bytes());
    }
    if kind == 0 {
        made.extend_from_slice(b"0]");
    }
    made
}

/// Values for all parameters that functions need, and random ones for some of the others.
fn random_params(function: &Arc<dyn Function>, rng: &mut Rng) -> Params {
    let mut params = params_of(function);
    for param in &function.signature().params {
        if let ParamKind::Int { least, most } = &param.kind
            && rng.within(0..2) == 0
        {
            let span = u64::try_from((most - least).clamp(0, 1 << 20)).unwrap();
            let number = least + i128::from(rng.within(0..span + 1));
            params.insert(param.name.to_string(), Value::from(number.to_string()));
        }
    }
    params
}

/// Random inputs and parameters; and inputs that are much larger than the slack, so that a factor which is not declared
/// shows.
#[test]
fn functions_hold_no_more_than_they_are_granted_for_random_inputs() {
    for function in Functions::builtin().list() {
        let arity = function.signature().inputs;
        let is_quick = function.signature().nanos_per_kib < 10_000;
        for seed in 0..4 {
            let mut rng = Rng::new(seed);
            let most = if seed == 0 && is_quick { 3_000_000 } else { 60_000 };
            let count = rng.within(arity.least.max(1) as u64..arity.most.unwrap_or(3).max(1) as u64 + 1);
            let document = |rng: &mut Rng| {
                let bytes = Bytes::from(random_document(rng, most));
                bytes.chunks(64 << 10).map(Bytes::copy_from_slice).collect::<Vec<_>>()
            };
            let inputs: Vec<_> = (0..count).map(|_| document(&mut rng)).collect();
            check(function, &inputs, &random_params(function, &mut rng), &format!("seed {seed}"));
        }
    }
}

/// Parameters are as large as a recipe can be, of any kind that a function takes.
#[test]
fn functions_hold_no_more_than_they_are_granted_for_large_parameters() {
    const LEN: usize = 4 << 20;
    let repeated = |text: &str| Value::Text(text.repeat(LEN / text.len()));
    let numbers: String = (1..LEN / 8).map(|number| format!("{number},")).collect();
    let names: Vec<Value> = (0..LEN / 64).map(|at| Value::Text(format!("{at:x}"))).collect();
    let entries = (0..LEN / 64).map(|at| (format!("{at:x}"), Value::from("a")));
    let values = [
        ("blanks", repeated(" ")),
        ("commas", repeated(",")),
        ("slashes", repeated("/a")),
        ("dots", Value::Text("a.".repeat(LEN / 2) + "a")),
        ("digits", repeated("0a")),
        ("dollars", repeated("$0")),
        ("numbers", Value::Text(numbers.trim_end_matches(',').to_owned())),
        ("JSON", Value::Text(format!("[{}0]", "0,".repeat(LEN / 2)))),
        ("bytes", Value::Bytes(vec![7; LEN].into())),
        ("names", Value::List(names)),
        ("entries", Value::Map(entries.collect())),
    ];
    let lines = Bytes::from("a\nb\nc\nd\ne\n");
    for function in Functions::builtin().list() {
        let count = function.signature().inputs.least.max(1);
        for param in &function.signature().params {
            for (what, value) in values.iter().filter(|(_, value)| param.kind.takes(value)) {
                let mut params = params_of(function);
                params.insert(param.name.to_string(), value.clone());
                let what = format!("`{}` of {what}", param.name);
                check(function, &vec![vec![lines.clone()]; count], &params, &what);
            }
        }
    }
}

/// An output that is much longer than the first input.
#[test]
fn patches_hold_no_more_than_they_are_granted() {
    let functions = Functions::builtin();
    let line = format!("+{}\n", "x".repeat(99));
    let diff = format!("--- a\n+++ b\n@@ -0,0 +1,43000 @@\n{}", line.repeat(43_000));
    for id in ["patch/1.0.0", "patch/2.0.0"] {
        let function = functions.get(&id.parse().unwrap()).unwrap();
        let inputs = vec![vec![], vec![Bytes::from(diff.clone())]];
        assert!(call(function, &inputs, &Params::new()).unwrap().concat().len() > 4_200_000);
        check(function, &inputs, &Params::new(), "a long diff");
    }
}

/// Compressors at their most costly.
#[test]
fn compressors_hold_no_more_than_they_are_granted() {
    let functions = Functions::builtin();
    let text: Vec<u8> = (0..3_000_000_u64).map(|at| b"abcdefgh \n"[(at * at % 97 % 10) as usize]).collect();
    let inputs = vec![vec![Bytes::from(text)]];
    for quality in [0, 4, 5, 9, 10, 11] {
        let function = functions.get(&"brotli_compress/1.0.0".parse().unwrap()).unwrap();
        let params = texts(&[("quality", &quality.to_string())]);
        check(function, &inputs, &params, &format!("quality {quality}"));
    }
}

/// TOML with much of one thing, and back.
#[test]
fn toml_takes_no_more_than_it_claims() {
    const LEN: usize = 150_000;
    let numbered = |item: &dyn Fn(usize) -> String| (0..LEN / item(0).len()).map(item).collect::<String>();
    let listed = |item: &str| format!("a=[{}]", item.repeat(LEN / item.len()));
    let documents = [
        numbered(&|at| format!("[{at:x}]\n")),
        numbered(&|at| format!("[t{at}]\na=1\n")),
        numbered(&|at| format!("[\"t\".{at}]\na.b=1.5\n")),
        numbered(&|at| format!("{at:x}=1\n")),
        numbered(&|at| format!("{at:x}.a.b.c.d=1\n")),
        numbered(&|at| format!("{at:x}={{a.b.c=1,d=\"\"}}\n")),
        "[[a]]\n".repeat(LEN / 6),
        "[[a.b]]\nc=[]\n".repeat(LEN / 13),
        "\n".repeat(LEN),
        "#\n".repeat(LEN / 2),
        format!("a=[\"\"\"\n\"\"\",{} \"\"]", "{a=1},".repeat(LEN / 6)),
        format!("a='{}'", "x".repeat(LEN)),
        format!("a=\"{}\"", "\\n".repeat(LEN / 2)),
    ];
    let items =
        ["0,", "1.5,", "{a=1},", "{a.b.c=1},", "[],", "[[]],", "{},", "'',", "0,\n", "0,#\n", "true,"];
    let functions = Functions::builtin();
    let function = |id: &str| functions.get(&id.parse().unwrap()).unwrap();
    for document in documents.into_iter().chain(items.map(listed)) {
        let what: String = document.chars().take(40).collect();
        let inputs = vec![vec![Bytes::from(document)]];
        let json = call(function("toml_to_json/2.0.0"), &inputs, &Params::new());
        check(function("toml_to_json/2.0.0"), &inputs, &Params::new(), &what);
        let json = json.unwrap_or_else(|fault| panic!("{what}: {fault}")).concat();
        check(function("json_to_toml/1.0.0"), &[vec![json.into()]], &Params::new(), &what);
    }
}
