//! The memory of functions: never more than was granted, whatever the input.
#![allow(unsafe_code, reason = "an allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use anabranch_recipe::{
    CallBudget, Fault, Function, Functions, Param, ParamKind, Params, Value, call, call_within,
};
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

/// Calls a function as an executor does, and checks its memory.
fn check(function: &Arc<dyn Function>, inputs: &[Vec<Bytes>], params: &Params, what: &str) {
    let need = function.signature().memory;
    let total: u64 = inputs.iter().flatten().map(|chunk| chunk.len() as u64).sum();
    let fixed = need.base + need.per_input * inputs.len() as u64 + need.per_input_byte * total;
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
