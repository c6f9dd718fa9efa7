//! Compression, and back.

use anabranch_recipe::{Address, Call, Executor, Functions, Holds, Out, Params, UnknownFunction};
use anabranch_testkit::Rng;
use bytes::Bytes;
use expect_test::expect;

use crate::kit::{given, golden, one, shown, texts};
use crate::world::{get, leaf, recipe, recipe_of};

/// The parameter that says how hard to try, and its bounds.
type Effort = (&'static str, u64, u64);

/// Compressor, decompressor, and the effort it takes.
const PAIRS: [(&str, &str, Option<Effort>); 6] = [
    ("compress/1.0.0", "decompress/1.0.0", None),
    ("gzip_compress/1.0.0", "gzip_decompress/1.0.0", Some(("level", 1, 9))),
    ("zstd_compress/1.0.0", "zstd_decompress/1.0.0", Some(("level", 1, 22))),
    ("brotli_compress/1.0.0", "brotli_decompress/1.0.0", Some(("quality", 0, 11))),
    ("lz4_compress/1.0.0", "lz4_decompress/1.0.0", None),
    ("snappy_compress/1.0.0", "snappy_decompress/1.0.0", None),
];

const HELLO: &[u8] = b"hello hello hello\n";

/// Text with repeats, then noise.
fn mixed(rng: &mut Rng, len: usize) -> Vec<u8> {
    let words = [&b"all "[..], b"at ", b"sea\n", b"ship "];
    let mut bytes = Vec::new();
    while bytes.len() < len / 2 {
        let word = *rng.choose(&words);
        bytes.extend_from_slice(word);
    }
    bytes.extend((bytes.len()..len).map(|_| rng.bits() as u8));
    bytes
}

#[test]
fn what_was_compressed_comes_back() {
    let functions = Functions::builtin();
    let mut rng = Rng::new(7);
    for (pack, unpack, effort) in PAIRS {
        let efforts = effort.map_or(vec![Params::new()], |(name, least, most)| {
            (least..=most.min(12)).chain([most]).map(|effort| texts(&[(name, &effort.to_string())])).collect()
        });
        for params in efforts {
            for len in [0, 1, 1000, 70_000] {
                let bytes = mixed(&mut rng, len);
                let packed = given(&functions, pack, &one(&bytes), &params).unwrap();
                let back = given(&functions, unpack, &one(&packed), &Params::new());
                assert!(back.as_ref() == Ok(&bytes), "{pack} {params:?} of {len} bytes: {}", shown(&back));
            }
        }
    }
}

/// The same id means the same bytes for good: a library that compresses to other bytes needs another version here.
#[test]
fn compressed_bytes_stay_the_same() {
    let functions = Functions::builtin();
    let mut digests = String::new();
    for (pack, _, effort) in PAIRS {
        let efforts = effort.map_or(vec![Params::new()], |(name, least, most)| {
            [least, most].map(|effort| texts(&[(name, &effort.to_string())])).to_vec()
        });
        for params in efforts {
            let packed = given(&functions, pack, &one(&mixed(&mut Rng::new(11), 300_000)), &params).unwrap();
            digests.push_str(&format!(
                "{pack} {:?} {} {:.16}\n",
                params.values(),
                packed.len(),
                Address::of(&packed)
            ));
        }
    }
    expect![[r#"
        compress/1.0.0 [] 168237 f11bf513b48f470b
        gzip_compress/1.0.0 [Text("1")] 206176 f47a63acb17bdeb7
        gzip_compress/1.0.0 [Text("9")] 166708 f693eef3f1179958
        zstd_compress/1.0.0 [Text("1")] 174563 62c3a3b239db0036
        zstd_compress/1.0.0 [Text("22")] 163377 ec44b1dbc2bbbbf9
        brotli_compress/1.0.0 [Text("0")] 182102 75ab561438ea3098
        brotli_compress/1.0.0 [Text("11")] 163872 169d804762928a13
        lz4_compress/1.0.0 [] 208822 2524d35e14793a70
        snappy_compress/1.0.0 [] 199397 5eb111e26f4644a3
    "#]]
    .assert_eq(&digests);
}

/// Letters of all scripts: the tables of Unicode change with the compiler, and then these need another version.
#[test]
fn letter_cases_stay_the_same() {
    let functions = Functions::builtin();
    let letters: String = ('\0'..=char::MAX).collect();
    let mut digests = String::new();
    for id in ["uppercase/1.0.0", "lowercase/2.0.0"] {
        let changed = given(&functions, id, &one(letters.as_bytes()), &Params::new()).unwrap();
        digests.push_str(&format!("{id} {} {:.16}\n", changed.len(), Address::of(&changed)));
    }
    expect![[r#"
        uppercase/1.0.0 4382765 0f6be5e707a2bdae
        lowercase/2.0.0 4382570 387ca4e8caa4ea94
    "#]]
    .assert_eq(&digests);
}

/// Each level and each window fits the largest grant of an executor with the default settings.
#[tokio::test]
async fn zstd_frames_of_all_windows_are_read_by_an_executor() {
    let executor = Executor::in_memory(Functions::builtin()).unwrap();
    let text = mixed(&mut Rng::new(3), 100_000);
    let data = leaf(&executor, text.clone()).await;
    for level in [1, 8, 9, 15, 19, 22] {
        let pack = recipe_of("zstd_compress", &[data]).with("level", level);
        let packed = executor.add(&pack, UnknownFunction::Refuse).await.unwrap().address;
        let back = recipe(&executor, "zstd_decompress", &[packed]).await;
        let back = get(&executor, back).await.unwrap_or_else(|error| panic!("level {level}: {error}"));
        assert!(back == text, "level {level}");
    }
    for window in 10..=28_u8 {
        // The header, then one raw block of 5 bytes.
        let frame = [&[0x28, 0xb5, 0x2f, 0xfd, 0, (window - 10) << 3, 41, 0, 0], &b"hello"[..]].concat();
        let frame = leaf(&executor, frame).await;
        let back = recipe(&executor, "zstd_decompress", &[frame]).await;
        match get(&executor, back).await {
            Ok(back) => assert!(back == "hello" && window <= 27, "window {window}"),
            Err(error) => {
                assert_eq!(window, 28, "{error}");
                assert!(error.to_string().contains("a window of more than 128 MiB"), "{error}");
            }
        }
    }
}

#[test]
fn effort_is_bounded() {
    golden(&[
        (
            "gzip_compress/1.0.0",
            &[b""],
            &[("level", "0")],
            "! parameter `level`: \"0\" is not a whole number, 1 to 9",
        ),
        (
            "zstd_compress/1.0.0",
            &[b""],
            &[("level", "23")],
            "! parameter `level`: \"23\" is not a whole number, 1 to 22",
        ),
        (
            "brotli_compress/1.0.0",
            &[b""],
            &[("quality", "12")],
            "! parameter `quality`: \"12\" is not a whole number, 0 to 11",
        ),
    ]);
}

/// Made by other programs, or by hand from the formats' descriptions.
const STREAMS: [(&str, &[u8]); 7] = [
    ("decompress/1.0.0", b"\x78\x9c\xcb\x48\xcd\xc9\xc9\x57\xc8\x40\x90\x5c\x00\x40\xb5\x06\x87"),
    (
        "gzip_decompress/1.0.0",
        b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xcb\x48\xcd\xc9\xc9\x57\xc8\x40\x90\x5c\x00\x3b\x7c\x8a\xdf\x12\0\0\0",
    ),
    ("zstd_decompress/1.0.0", b"\x28\xb5\x2f\xfd\x00\x58\x6d\x00\x00\x38hello \x0a\x01\x00\x31\x4a\x11"),
    (
        "zstd_decompress/1.0.0",
        b"\x28\xb5\x2f\xfd\x04\x58\x6d\x00\x00\x38hello \x0a\x01\x00\x31\x4a\x11\xa3\xaa\x74\xce",
    ),
    ("brotli_decompress/1.0.0", b"\x8b\x08\x80hello hello hello\n\x03"),
    ("lz4_decompress/1.0.0", b"\x12\0\0\0\x62hello \x06\0\x60hello\n"),
    ("snappy_decompress/1.0.0", b"\x12\x44hello hello hello\n"),
];

#[test]
fn streams_of_others_are_read() {
    let functions = Functions::builtin();
    for (id, stream) in STREAMS {
        assert_eq!(
            shown(&given(&functions, id, &one(stream), &Params::new())),
            "hello hello hello\\n",
            "{id}"
        );
    }
}

#[test]
fn a_stream_is_whole_and_alone() {
    let functions = Functions::builtin();
    for (id, stream) in STREAMS {
        for len in 0..stream.len() {
            let cut = given(&functions, id, &one(&stream[..len]), &Params::new());
            assert!(cut.is_err(), "{id}: the first {len} of {} bytes gave {}", stream.len(), shown(&cut));
        }
        let more = given(&functions, id, &one(&[stream, b"x"].concat()), &Params::new());
        assert!(more.is_err(), "{id}: with a byte more it gave {}", shown(&more));
    }
    golden(&[
        ("decompress/1.0.0", &[&STREAMS[0].1[..9]], &[], "! input 1: ends at byte 9, before the stream does"),
        ("decompress/1.0.0", &[b""], &[], "! input 1: ends at byte 0, before the stream does"),
        (
            "decompress/1.0.0",
            &[&[STREAMS[0].1, b"x"].concat()],
            &[],
            "! input 1: byte 17: something comes after the end of the stream",
        ),
        ("decompress/1.0.0", &[b"hello"], &[], "! input 1: is not a zlib stream: corrupt"),
        ("gzip_decompress/1.0.0", &[b"hello"], &[], "! input 1: is not a gzip stream: corrupt"),
        (
            "zstd_decompress/1.0.0",
            &[b"hello"],
            &[],
            "! input 1: is not a zstd stream: Unknown frame descriptor",
        ),
        (
            "lz4_decompress/1.0.0",
            &[b"abc"],
            &[],
            "! input 1: is not a size and an LZ4 block: it has fewer than 4 bytes",
        ),
        (
            "lz4_decompress/1.0.0",
            &[b"\x03\0\0\0\x20ab"],
            &[],
            "! input 1: is not a size and an LZ4 block: it says 3 bytes and has 2",
        ),
    ]);
}

#[test]
fn streams_behind_each_other_are_one_where_the_format_says_so() {
    let functions = Functions::builtin();
    for (id, stream) in [STREAMS[1], STREAMS[2]] {
        let back = given(&functions, id, &one(&[stream, stream].concat()), &Params::new());
        assert_eq!(back.unwrap(), [HELLO, HELLO].concat(), "{id}");
    }
}

#[test]
fn flipped_bits_never_pass_a_checksum() {
    let functions = Functions::builtin();
    for (id, stream) in [STREAMS[0], STREAMS[1], STREAMS[3]] {
        for bit in 0..stream.len() * 8 {
            let mut wrong = stream.to_vec();
            wrong[bit / 8] ^= 1 << (bit % 8);
            if let Ok(bytes) = given(&functions, id, &one(&wrong), &Params::new()) {
                assert_eq!(bytes, HELLO, "{id}, bit {bit}");
            }
        }
    }
}

#[test]
fn output_has_a_bound() {
    let functions = Functions::builtin();
    let zeros = vec![0; 1_000_000];
    for (pack, unpack, _) in PAIRS {
        let packed = given(&functions, pack, &one(&zeros), &Params::new()).unwrap();
        let up_to = |most: &str| given(&functions, unpack, &one(&packed), &texts(&[("max_bytes", most)]));
        assert!(up_to("1000000").as_ref() == Ok(&zeros), "{unpack}");
        assert_eq!(shown(&up_to("999999")), "! the output would have more than 999999 bytes", "{unpack}");
        assert_eq!(shown(&up_to("0")), "! the output would have more than 0 bytes", "{unpack}");
    }
}

#[test]
fn a_size_that_cannot_be_takes_no_memory() {
    let many = [b"\xff\xff\xff\xff".as_slice(), &[0; 100]].concat();
    golden(&[
        (
            "lz4_decompress/1.0.0",
            &[&many],
            &[],
            "! input 1: declares 4294967295 bytes, more than 100 compressed bytes can hold",
        ),
        (
            "snappy_decompress/1.0.0",
            &[b"\xff\xff\xff\xff\x0f\x00a"],
            &[],
            "! input 1: declares 4294967295 bytes, more than 7 compressed bytes can hold",
        ),
    ]);
}

/// A little of a bomb gives a little at a time, not all it has.
#[test]
fn a_bomb_is_given_in_pieces() {
    let functions = Functions::builtin();
    let zeros = vec![0; 8 << 20];
    for (pack, unpack, _) in &PAIRS[..4] {
        let packed: Bytes = given(&functions, pack, &one(&zeros), &Params::new()).unwrap().into();
        let function = functions.get(&unpack.parse().unwrap()).unwrap();
        assert_eq!(function.signature().holds, Holds::Chunks, "{unpack}");
        let mut kernel = function
            .begin(&Call::new(
                function.signature(),
                &Params::new(),
                &[u64::MAX],
                &anabranch_recipe::CallBudget::unlimited(),
            ))
            .unwrap();
        let (mut out, mut given) = (Out::default(), 0);
        kernel.push(0, packed, &mut out).unwrap();
        loop {
            assert!(out.len() < 2 * Out::FULL, "{unpack} gave {} bytes at once", out.len());
            given += out.len();
            match out.take() {
                (_, true) => kernel.resume(&mut out).unwrap(),
                (_, false) => break,
            }
        }
        kernel.finish(&mut out).unwrap();
        assert_eq!((given, out.len()), (zeros.len(), 0), "{unpack}");
    }
}
