//! Functions of any bytes in a row come to what they come to one after the other.

use anabranch_recipe::{Address, Executor, Functions, Recipe, UnknownFunction};
use anabranch_testkit::Rng;

use crate::kit::{Texts, given, one, texts};
use crate::world::{get, leaf};

type Stage = (&'static str, Texts<'static>);

const STAGES: &[Stage] = &[
    ("identity/1.0.0", &[]),
    ("xor/1.0.0", &[("key", "77")]),
    ("pad/1.0.0", &[("block_size", "16")]),
    ("byte_swap/1.0.0", &[("word_size", "4")]),
    ("take/1.0.0", &[("bytes", "70000")]),
    ("skip/1.0.0", &[("bytes", "100")]),
    ("prefix/1.0.0", &[("prefix", "abc")]),
    ("suffix/1.0.0", &[("suffix", "abc")]),
    ("chunk_split/1.0.0", &[("size", "13")]),
    ("sort_bytes/1.0.0", &[]),
    ("hex_encode/1.0.0", &[]),
    ("hex_decode/1.0.0", &[]),
    ("base64_encode/1.0.0", &[]),
    ("base64_decode/1.0.0", &[]),
    ("charset_convert/1.0.0", &[("from", "latin1"), ("to", "utf-8")]),
    ("gzip_compress/1.0.0", &[("level", "1")]),
    ("gzip_decompress/1.0.0", &[]),
    ("zstd_compress/1.0.0", &[]),
    ("zstd_decompress/1.0.0", &[]),
    ("brotli_compress/1.0.0", &[("quality", "1")]),
    ("brotli_decompress/1.0.0", &[]),
    ("reverse/1.0.0", &[]),
    ("caddr_embed/1.0.0", &[]),
    ("chunk_hash/1.0.0", &[("block_size", "64")]),
    ("size_limit/1.0.0", &[("max_bytes", "300000")]),
    ("non_empty/1.0.0", &[]),
    ("line_count/1.0.0", &[]),
];

/// What undoes some of them, so that rows come to something more often.
const UNDONE: &[(&str, &str)] = &[
    ("hex_encode", "hex_decode"),
    ("base64_encode", "base64_decode"),
    ("gzip_compress", "gzip_decompress"),
    ("zstd_compress", "zstd_decompress"),
    ("brotli_compress", "brotli_decompress"),
];

fn row(rng: &mut Rng) -> Vec<Stage> {
    let mut row: Vec<Stage> = Vec::new();
    for _ in 0..rng.within(1..7) {
        let undoes = row.last().and_then(|(last, _)| UNDONE.iter().find(|(done, _)| last.starts_with(done)));
        let next = match undoes {
            Some((_, undo)) if rng.percent(60) => STAGES.iter().find(|(id, _)| id.starts_with(undo)).unwrap(),
            _ => rng.choose(STAGES),
        };
        row.push(*next);
    }
    row
}

async fn put(executor: &Executor, row: &[Stage], leaf: Address) -> Address {
    let mut last = leaf;
    for (id, params) in row {
        let recipe = Recipe { function: id.parse().unwrap(), inputs: vec![last], params: texts(params) };
        last = executor.add(&recipe, UnknownFunction::Refuse).await.unwrap().address;
    }
    last
}

async fn check(executor: &Executor, functions: &Functions, row: &[Stage], bytes: Vec<u8>) -> bool {
    let last = put(executor, row, leaf(executor, bytes.clone()).await).await;
    let expected =
        row.iter().try_fold(bytes, |bytes, (id, params)| given(functions, id, &one(&bytes), &texts(params)));
    let got = get(executor, last).await;
    match (&got, &expected) {
        (Ok(got), Ok(expected)) => assert!(got == expected, "{row:?} gave {} bytes", got.len()),
        (Err(got), Err(expected)) => {
            assert!(got.to_string().contains(&expected.to_string()), "{row:?}: {got}, not {expected}");
        }
        _ => panic!("{row:?}: {got:?}, not {expected:?}"),
    }
    got.is_ok()
}

#[tokio::test]
async fn rows_are_as_one_after_the_other() {
    let functions = Functions::builtin();
    let executor = Executor::in_memory(functions.clone()).unwrap();
    let mut came_to_something = 0;
    for seed in 0..150 {
        let mut rng = Rng::new(seed);
        let row = row(&mut rng);
        let len = rng.within(0..1 << rng.clone().within(1..19));
        let bytes = (0..len).map(|_| *rng.choose(b"abc \n\x00\xe9")).collect();
        came_to_something += u32::from(check(&executor, &functions, &row, bytes).await);
    }
    assert!((40..140).contains(&came_to_something), "{came_to_something} of 150 rows came to something");
}

#[tokio::test]
async fn a_bomb_in_a_row() {
    let functions = Functions::builtin();
    let executor = Executor::in_memory(functions.clone()).unwrap();
    let zeros = vec![0; 20 << 20];
    for (pack, unpack) in
        [("gzip_compress/1.0.0", "gzip_decompress/1.0.0"), ("zstd_compress/1.0.0", "zstd_decompress/1.0.0")]
    {
        let packed = given(&functions, pack, &one(&zeros), &texts(&[])).unwrap();
        let row: [Stage; 4] = [
            (unpack, &[]),
            ("hex_encode/1.0.0", &[]),
            ("take/1.0.0", &[("bytes", "1000000")]),
            ("chunk_hash/1.0.0", &[("block_size", "3")]),
        ];
        assert!(check(&executor, &functions, &row, packed.clone()).await);
        let row: [Stage; 2] = [(unpack, &[("max_bytes", "1000000")]), ("identity/1.0.0", &[])];
        assert!(!check(&executor, &functions, &row, packed).await);
    }
}
