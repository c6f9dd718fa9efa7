//! How tests call functions.

use std::ops::Range;
use std::sync::Arc;

use anabranch_recipe::{Fault, Function, FunctionId, Functions, Params, Value, call};
use anabranch_testkit::Rng;
use bytes::Bytes;

/// An id, its inputs, its parameters; and what it gives, or its error behind `! `. Bytes are as in
/// `escape_ascii`, or hex digits behind `0x`.
pub(crate) type Row<'a> = (&'a str, &'a [&'a [u8]], Texts<'a>, &'a str);

/// Parameters that are texts, by name.
pub(crate) type Texts<'a> = &'a [(&'a str, &'a str)];

/// All rows are as they say.
#[track_caller]
pub(crate) fn golden(rows: &[Row<'_>]) {
    let functions = Functions::builtin();
    let wrong: Vec<String> = rows.iter().filter_map(|row| wrong(&functions, row)).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn wrong(functions: &Functions, (id, inputs, params, expected): &Row<'_>) -> Option<String> {
    let inputs: Vec<Vec<Bytes>> = inputs.iter().map(|input| vec![Bytes::copy_from_slice(input)]).collect();
    let got = match given(functions, id, &inputs, &texts(params)) {
        Ok(bytes) if expected.starts_with("0x") => {
            bytes.iter().fold("0x".to_owned(), |hex, byte| format!("{hex}{byte:02x}"))
        }
        given => shown(&given),
    };
    (got != *expected).then(|| format!("{id} {params:?}\n  expected {expected}\n  got      {got}"))
}

/// What a function of this crate gives.
pub(crate) fn given(
    functions: &Functions,
    id: &str,
    inputs: &[Vec<Bytes>],
    params: &Params,
) -> Result<Vec<u8>, Fault> {
    let id: FunctionId = id.parse().unwrap();
    let function = functions.get(&id).unwrap_or_else(|| panic!("no function {id}"));
    call(function, inputs, params).map(|chunks| chunks.concat())
}

/// An input in one chunk.
pub(crate) fn one(bytes: &[u8]) -> Vec<Vec<Bytes>> {
    vec![vec![Bytes::copy_from_slice(bytes)]]
}

/// Bytes with escapes, or `! ` and the error.
pub(crate) fn shown(given: &Result<Vec<u8>, Fault>) -> String {
    match given {
        Ok(bytes) => bytes.escape_ascii().to_string(),
        Err(fault) => format!("! {fault}"),
    }
}

/// Parameters that are texts.
pub(crate) fn texts(params: Texts<'_>) -> Params {
    params.iter().map(|(name, text)| ((*name).to_owned(), Value::Text((*text).to_owned()))).collect()
}

/// However inputs are cut, the function gives the same: with inputs from `input`, once for each seed.
#[track_caller]
pub(crate) fn same_however_cut(
    function: &Arc<dyn Function>,
    params: &Params,
    seeds: Range<u64>,
    input: &dyn Fn(&mut Rng) -> Vec<u8>,
) {
    let least = function.signature().inputs.least as u64;
    let most = function.signature().inputs.most.map_or(least + 3, |most| most as u64);
    for seed in seeds {
        let mut rng = Rng::new(seed);
        let whole: Vec<Vec<Bytes>> =
            (0..rng.within(least..most + 1)).map(|_| vec![Bytes::from(input(&mut rng))]).collect();
        let longest = 1 << rng.within(0..18);
        let cut: Vec<Vec<Bytes>> = whole.iter().map(|input| cut(&mut rng, &input[0], longest)).collect();
        let expected = call(function, &whole, params).map(|chunks| chunks.concat());
        let got = call(function, &cut, params).map(|chunks| chunks.concat());
        assert!(
            got == expected,
            "{} {params:?}, seed {seed}, chunks up to {longest}\n whole {}\n cut   {}",
            function.signature().id,
            shown(&expected),
            shown(&got)
        );
    }
}

fn cut(rng: &mut Rng, input: &Bytes, longest: u64) -> Vec<Bytes> {
    let mut left = input.clone();
    let mut chunks = Vec::new();
    while !left.is_empty() {
        let len = rng.within(1..longest.min(left.len() as u64) + 1);
        chunks.push(left.split_to(len as usize));
    }
    chunks
}
