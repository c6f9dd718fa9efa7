//! What functions of any bytes give does not depend on how their inputs are cut.

use anabranch_recipe::{Functions, Params};
use anabranch_testkit::Rng;

use crate::kit::{Texts, given, one, same_however_cut, texts};

type Source = fn(&mut Rng) -> Vec<u8>;

fn any(rng: &mut Rng) -> Vec<u8> {
    let len = rng.within(0..1 << rng.clone().within(1..12));
    (0..len).map(|_| rng.bits() as u8).collect()
}

/// More than compressors are given at a time, of few symbols.
fn long(rng: &mut Rng) -> Vec<u8> {
    few_symbols(rng, 150_000)
}

/// Several times that.
fn longer(rng: &mut Rng) -> Vec<u8> {
    few_symbols(rng, 1_000_000)
}

fn few_symbols(rng: &mut Rng, most: u64) -> Vec<u8> {
    (0..rng.within(0..most)).map(|_| *rng.choose(b"abc \n\x00")).collect()
}

fn text(rng: &mut Rng) -> Vec<u8> {
    let characters =
        ["a", "B", " ", "\n", "\t", "\u{e9}", "\u{20ac}", "\u{65e5}", "\u{1f600}", "\u{feff}", "{", "]"];
    let mut bytes: Vec<u8> = (0..rng.within(0..40)).flat_map(|_| rng.choose(&characters).bytes()).collect();
    if rng.percent(30) {
        bytes.truncate(bytes.len().saturating_sub(1));
    }
    bytes
}

fn brackets(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = symbols(rng, b" [[]]{}", 1);
    let end = *rng.choose(&["]", "] \n", "}", "] \u{e9}"]);
    bytes.extend_from_slice(end.as_bytes());
    bytes
}

fn symbols(rng: &mut Rng, from: &[u8], group: u64) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..rng.within(0..30) * group).map(|_| *rng.choose(from)).collect();
    if rng.percent(40) && !bytes.is_empty() {
        let at = rng.within(0..bytes.len() as u64) as usize;
        bytes[at] = *rng.choose(b"=! a");
    }
    let padding = bytes.len() - bytes.len().min(rng.within(0..3) as usize);
    bytes[padding..].fill(b'=');
    bytes
}

const WITHOUT: Texts<'static> = &[];

const ROWS: &[(&str, Texts<'static>, Source)] = &[
    ("identity/1.0.0", WITHOUT, any),
    ("concat/1.0.0", WITHOUT, any),
    ("xor/1.0.0", &[("key", "77")], any),
    ("bitwise_and/1.0.0", &[("mask", "77")], any),
    ("bitwise_or/1.0.0", &[("mask", "77")], any),
    ("bitwise_not/1.0.0", WITHOUT, any),
    ("byte_swap/1.0.0", &[("word_size", "2")], any),
    ("byte_swap/1.0.0", &[("word_size", "8")], any),
    ("pad/1.0.0", &[("block_size", "7")], any),
    ("sort_bytes/1.0.0", WITHOUT, any),
    ("sort_bytes/1.0.0", WITHOUT, long),
    ("repeat/1.0.0", &[("count", "9")], long),
    ("repeat/1.0.0", &[("count", "9"), ("max_bytes", "2000")], any),
    ("reverse/1.0.0", WITHOUT, any),
    ("reverse_bytes/1.0.0", WITHOUT, any),
    ("trim/1.0.0", WITHOUT, text),
    ("take/1.0.0", &[("bytes", "100")], any),
    ("skip/1.0.0", &[("bytes", "100")], any),
    ("slice/1.0.0", &[("offset", "10"), ("length", "100")], any),
    ("select/1.0.0", &[("index", "0")], any),
    ("prefix/1.0.0", &[("prefix", "abc")], any),
    ("suffix/1.0.0", &[("suffix", "abc")], any),
    ("chunk_split/1.0.0", &[("size", "1")], any),
    ("chunk_split/1.0.0", &[("size", "13")], any),
    ("interleave/1.0.0", &[("block_size", "5")], any),
    ("zip_concat/1.0.0", WITHOUT, any),
    ("base64_encode/1.0.0", WITHOUT, any),
    ("base64_decode/1.0.0", WITHOUT, |rng| symbols(rng, b"ABab09+/Q", 4)),
    ("base32_encode/1.0.0", WITHOUT, any),
    ("base32_decode/1.0.0", WITHOUT, |rng| symbols(rng, b"ABCYZ27Q", 8)),
    ("hex_encode/1.0.0", WITHOUT, any),
    ("hex_decode/1.0.0", WITHOUT, |rng| symbols(rng, b"0123456789abcdefABCDEF", 2)),
    ("charset_convert/1.0.0", &[("from", "utf-8"), ("to", "utf-16le")], text),
    ("charset_convert/1.0.0", &[("from", "utf-8"), ("to", "iso-2022-jp")], text),
    ("charset_convert/1.0.0", &[("from", "utf-16be"), ("to", "utf-8")], any),
    ("charset_convert/1.0.0", &[("from", "shift_jis"), ("to", "utf-8")], any),
    ("charset_convert/1.0.0", &[("from", "latin1"), ("to", "utf-8")], long),
    ("sha256/1.0.0", WITHOUT, any),
    ("sha384/1.0.0", WITHOUT, any),
    ("sha512/1.0.0", WITHOUT, any),
    ("md5/1.0.0", WITHOUT, any),
    ("blake3/1.0.0", WITHOUT, any),
    ("caddr_compute/1.0.0", WITHOUT, any),
    ("caddr_embed/1.0.0", WITHOUT, any),
    ("crc32/1.0.0", WITHOUT, any),
    ("hmac_sha256/1.0.0", &[("key", "00ff")], any),
    ("merkle_root/1.0.0", WITHOUT, any),
    ("merkle_root/2.0.0", WITHOUT, any),
    ("chunk_hash/1.0.0", &[("block_size", "1")], any),
    ("chunk_hash/1.0.0", &[("block_size", "1")], long),
    ("chunk_hash/1.0.0", &[("block_size", "17")], any),
    ("encrypt/1.0.0", &[("key", ZERO), ("nonce", NONCE)], any),
    ("decrypt/1.0.0", &[("key", ZERO), ("nonce", NONCE)], any),
    ("aead_encrypt/1.0.0", &[("key", ZERO), ("nonce", "000102030405060708090a0b")], any),
    ("aead_decrypt/1.0.0", &[("key", ZERO), ("nonce", "000102030405060708090a0b")], any),
    ("size_limit/1.0.0", &[("max_bytes", "200")], any),
    ("non_empty/1.0.0", WITHOUT, any),
    ("magic_bytes/1.0.0", &[("expected", "61")], text),
    ("magic_bytes/1.0.0", &[("expected", "616161")], long),
    ("sha256_verify/1.0.0", &[("expected_hash", ZERO)], any),
    ("caddr_verify/1.0.0", &[("expected_caddr", ZERO)], any),
    ("crc32_verify/1.0.0", &[("expected_crc32", "00000000")], any),
    ("byte_count/1.0.0", WITHOUT, any),
    ("line_count/1.0.0", WITHOUT, text),
    ("word_count/1.0.0", WITHOUT, text),
    ("histogram/1.0.0", WITHOUT, any),
    ("entropy/2.0.0", WITHOUT, any),
    ("min_max/1.0.0", WITHOUT, any),
    ("content_type/1.0.0", WITHOUT, text),
    ("content_type/2.0.0", WITHOUT, text),
    ("content_type/2.0.0", WITHOUT, brackets),
];

const NONCE: &str = "000102030405060708090a0b0c0d0e0f";
const ZERO: &str = "0000000000000000000000000000000000000000000000000000000000000000";

#[test]
fn plain_functions() {
    let functions = Functions::builtin();
    for (id, params, source) in ROWS {
        let function = functions.get(&id.parse().unwrap()).unwrap();
        same_however_cut(function, &texts(params), 0..30, source);
    }
}

const COMPRESSORS: &[(&str, Texts<'static>)] = &[
    ("compress/1.0.0", WITHOUT),
    ("gzip_compress/1.0.0", &[("level", "1")]),
    ("gzip_compress/1.0.0", &[("level", "2")]),
    ("gzip_compress/1.0.0", &[("level", "4")]),
    ("gzip_compress/1.0.0", &[("level", "9")]),
    ("zstd_compress/1.0.0", WITHOUT),
    ("zstd_compress/1.0.0", &[("level", "1")]),
    ("brotli_compress/1.0.0", &[("quality", "0")]),
    ("brotli_compress/1.0.0", &[("quality", "1")]),
    ("brotli_compress/1.0.0", &[("quality", "4")]),
    ("lz4_compress/1.0.0", WITHOUT),
    ("snappy_compress/1.0.0", WITHOUT),
];

#[test]
fn compressors() {
    let functions = Functions::builtin();
    for (id, params) in COMPRESSORS {
        let function = functions.get(&id.parse().unwrap()).unwrap();
        same_however_cut(function, &texts(params), 0..12, &long);
        same_however_cut(function, &texts(params), 0..4, &longer);
        same_however_cut(function, &texts(params), 0..12, &any);
    }
}

/// Of whole streams, and of broken ones.
#[test]
fn decompressors() {
    let functions = Functions::builtin();
    for (id, params) in COMPRESSORS {
        let back = id.replace("compress", "decompress");
        let function = functions.get(&back.parse().unwrap()).unwrap();
        let broken = |rng: &mut Rng| {
            let source = rng.choose(&[any, long]);
            let bytes = source(rng);
            let mut stream = given(&functions, id, &one(&bytes), &texts(params)).unwrap();
            match rng.within(0..4) {
                0 => stream.truncate(rng.within(0..stream.len() as u64) as usize),
                1 => stream.extend_from_slice(&stream.clone()),
                2 => stream.push(b'x'),
                _ => {}
            }
            stream
        };
        same_however_cut(function, &Params::new(), 0..24, &broken);
    }
}
