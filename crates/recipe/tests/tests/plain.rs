//! Functions of any bytes: one by one, cut, put together, as text, counted.

use anabranch_recipe::{Functions, Params, Value};

use crate::kit::{given, golden, one, shown};

#[test]
fn bytes_are_changed() {
    golden(&[
        ("identity/1.0.0", &[b"abc"], &[], "abc"),
        ("identity/1.0.0", &[b"a", b"b"], &[], "! it takes 1 input, the recipe has 2"),
        ("identity/1.0.0", &[b"a"], &[("x", "1")], "! parameter `x`: unknown; it takes none"),
        ("concat/1.0.0", &[], &[], ""),
        ("concat/1.0.0", &[b"a", b"", b"bc"], &[], "abc"),
        ("xor/1.0.0", &[b"abc"], &[("key", "32")], "ABC"),
        ("xor/1.0.0", &[b"abc"], &[("key", "+032")], "ABC"),
        (
            "xor/1.0.0",
            &[b"abc"],
            &[],
            "! parameter `key`: missing: a whole number, 0 to 255 (the other operand)",
        ),
        (
            "xor/1.0.0",
            &[b"a"],
            &[("key", "256")],
            "! parameter `key`: \"256\" is not a whole number, 0 to 255",
        ),
        ("xor/1.0.0", &[b"a"], &[("key", " 1")], "! parameter `key`: \" 1\" is not a whole number, 0 to 255"),
        ("bitwise_and/1.0.0", &[b"abc\xff"], &[("mask", "95")], "ABC_"),
        ("bitwise_or/1.0.0", &[b"ABC"], &[("mask", "32")], "abc"),
        ("bitwise_not/1.0.0", &[b"\x00\xf0"], &[], "\\xff\\x0f"),
        ("byte_swap/1.0.0", &[b"abcdefgh"], &[("word_size", "2")], "badcfehg"),
        ("byte_swap/1.0.0", &[b"abcdefgh"], &[("word_size", "4")], "dcbahgfe"),
        ("byte_swap/1.0.0", &[b"abcdefgh"], &[("word_size", "8")], "hgfedcba"),
        ("byte_swap/1.0.0", &[b"ab"], &[("word_size", "3")], "! parameter `word_size`: 3 is not 2, 4 or 8"),
        (
            "byte_swap/1.0.0",
            &[b"abcde"],
            &[("word_size", "4")],
            "! input 1: 5 bytes are not a whole number of words of 4",
        ),
        ("pad/1.0.0", &[b"abc"], &[("block_size", "4")], "abc\\x01"),
        ("pad/1.0.0", &[b"abcd"], &[("block_size", "4")], "abcd\\x04\\x04\\x04\\x04"),
        ("pad/1.0.0", &[b""], &[("block_size", "1")], "\\x01"),
        (
            "pad/1.0.0",
            &[b""],
            &[("block_size", "256")],
            "! parameter `block_size`: \"256\" is not a whole number, 1 to 255",
        ),
        ("sort_bytes/1.0.0", &[b"banana\x00\xff"], &[], "\\x00aaabnn\\xff"),
        ("reverse/1.0.0", &[b"abc"], &[], "cba"),
        ("reverse_bytes/1.0.0", &[b"abc"], &[], "cba"),
        ("trim/1.0.0", &[b" \t\n\x0c\ra b\x0b \n"], &[], "a b\\x0b"),
        ("trim/1.0.0", &[b" \n"], &[], ""),
    ]);
}

#[test]
fn repeated_as_often_as_asked_and_not_without_bound() {
    golden(&[
        ("repeat/1.0.0", &[b"ab"], &[("count", "3")], "ababab"),
        ("repeat/1.0.0", &[b""], &[("count", "18446744073709551615")], ""),
        (
            "repeat/1.0.0",
            &[b"ab"],
            &[("count", "0")],
            "! parameter `count`: \"0\" is not a whole number, 1 or more",
        ),
        ("repeat/1.0.0", &[b"ab"], &[("count", "3"), ("max_bytes", "6")], "ababab"),
        (
            "repeat/1.0.0",
            &[b"ab"],
            &[("count", "4"), ("max_bytes", "6")],
            "! the output would have more than 6 bytes",
        ),
        (
            "repeat/1.0.0",
            &[b"ab"],
            &[("count", "18446744073709551615")],
            "! the output would have more than 1 GiB",
        ),
    ]);
}

#[test]
fn parts_are_taken() {
    golden(&[
        ("take/1.0.0", &[b"abcdef"], &[("bytes", "2")], "ab"),
        ("take/1.0.0", &[b"abcdef"], &[("bytes", "0")], ""),
        ("take/1.0.0", &[b"abcdef"], &[("bytes", "99")], "abcdef"),
        ("take/1.0.0", &[b"a"], &[("bytes", "-1")], "! parameter `bytes`: \"-1\" is not a whole number"),
        ("skip/1.0.0", &[b"abcdef"], &[("bytes", "2")], "cdef"),
        ("skip/1.0.0", &[b"abcdef"], &[("bytes", "99")], ""),
        ("slice/1.0.0", &[b"abcdef"], &[("offset", "1"), ("length", "3")], "bcd"),
        ("slice/1.0.0", &[b"abcdef"], &[("offset", "5"), ("length", "3")], "f"),
        ("slice/1.0.0", &[b"abcdef"], &[("offset", "6"), ("length", "3")], ""),
        ("select/1.0.0", &[b"a", b"b"], &[("index", "1")], "b"),
        (
            "select/1.0.0",
            &[b"a", b"b"],
            &[("index", "2")],
            "! parameter `index`: 2 is past the last input, which is 1",
        ),
        ("prefix/1.0.0", &[b"b"], &[("prefix", "a")], "ab"),
        ("prefix/1.0.0", &[b""], &[("prefix", "a")], "a"),
        ("suffix/1.0.0", &[b"b"], &[("suffix", "\u{e9}")], "b\\xc3\\xa9"),
        ("chunk_split/1.0.0", &[b"abcde"], &[("size", "2")], "ab\\x00cd\\x00e"),
        ("chunk_split/1.0.0", &[b"abcd"], &[("size", "2")], "ab\\x00cd"),
        ("chunk_split/1.0.0", &[b""], &[("size", "2")], ""),
        (
            "chunk_split/1.0.0",
            &[b"a"],
            &[("size", "0")],
            "! parameter `size`: \"0\" is not a whole number, 1 or more",
        ),
        ("interleave/1.0.0", &[b"abc", b"12345", b""], &[], "a1b2c345"),
        ("interleave/1.0.0", &[b"abc", b"12345"], &[("block_size", "2")], "ab12c345"),
        ("interleave/1.0.0", &[b"abc"], &[], "! it takes 2 or more inputs, the recipe has 1"),
        ("zip_concat/1.0.0", &[b"ab", b"c"], &[], "\\x00\\x00\\x00\\x02\\x00\\x00\\x00\\x01abc"),
    ]);
}

#[test]
fn numbers_and_bytes_may_be_typed() {
    let functions = Functions::builtin();
    let check = |id: &str, name: &str, value: Value, expected: &str| {
        let params = Params::from([(name.to_owned(), value)]);
        assert_eq!(shown(&given(&functions, id, &one(b"abc"), &params)), expected);
    };
    check("take/1.0.0", "bytes", Value::Int(0), "");
    check("take/1.0.0", "bytes", Value::Int(2), "ab");
    check("take/1.0.0", "bytes", Value::Int(-2), "! parameter `bytes`: -2 is not a whole number");
    check("take/1.0.0", "bytes", Value::Float(2.0), "! parameter `bytes`: 2.0 is not a whole number");
    check("prefix/1.0.0", "prefix", Value::Bytes("\u{0}".into()), "\\x00abc");
    check("prefix/1.0.0", "prefix", Value::Int(1), "! parameter `prefix`: 1 is not text or bytes");
    check("magic_bytes/1.0.0", "expected", Value::Bytes("ab".into()), "abc");
}

#[test]
fn text_of_few_symbols() {
    golden(&[
        ("base64_encode/1.0.0", &[b"hello\xff\xfe"], &[], "aGVsbG///g=="),
        ("base64_encode/1.0.0", &[b""], &[], ""),
        ("base64_decode/1.0.0", &[b"aGVsbG///g=="], &[], "hello\\xff\\xfe"),
        ("base64_decode/1.0.0", &[b""], &[], ""),
        ("base64_decode/1.0.0", &[b"aGVsbG8"], &[], "! input 1: ends at byte 7, inside a group of 4 symbols"),
        ("base64_decode/1.0.0", &[b"aGVs bG8="], &[], "! input 1: byte 4: ` ` is not a base64 symbol"),
        (
            "base64_decode/1.0.0",
            &[b"aGVsbG9="],
            &[],
            "! input 1: byte 6: `9` has spare bits that are not zero",
        ),
        (
            "base64_decode/1.0.0",
            &[b"aA==aA=="],
            &[],
            "! input 1: byte 4: something comes after the padding, which is the end",
        ),
        ("base64_decode/1.0.0", &[b"a==="], &[], "! input 1: byte 1: no such padding"),
        ("base32_encode/1.0.0", &[b"foobar"], &[], "MZXW6YTBOI======"),
        ("base32_encode/1.0.0", &[b"fooba"], &[], "MZXW6YTB"),
        ("base32_decode/1.0.0", &[b"MZXW6YTBOI======"], &[], "foobar"),
        ("base32_decode/1.0.0", &[b"mzxw6ytb"], &[], "! input 1: byte 0: `m` is not a base32 symbol"),
        (
            "base32_decode/1.0.0",
            &[b"MZXW6YTBOI"],
            &[],
            "! input 1: ends at byte 10, inside a group of 8 symbols",
        ),
        ("hex_encode/1.0.0", &[b"\x00\xafz"], &[], "00af7a"),
        ("hex_decode/1.0.0", &[b"00aF7a"], &[], "\\x00\\xafz"),
        ("hex_decode/1.0.0", &[b"+f"], &[], "! input 1: byte 0: `+` is not a hex digit"),
        ("hex_decode/1.0.0", &[b"0="], &[], "! input 1: byte 1: `=` is not a hex digit"),
        ("hex_decode/1.0.0", &[b"abc"], &[], "! input 1: ends at byte 3, inside a group of 2 symbols"),
    ]);
}

#[test]
fn character_encodings() {
    let to_utf8 = |from: &'static str| [("from", from), ("to", "utf-8")];
    let from_utf8 = |to: &'static str| [("from", "utf-8"), ("to", to)];
    golden(&[
        ("charset_convert/1.0.0", &[b"caf\xe9 \x80"], &to_utf8("latin1"), "caf\\xc3\\xa9 \\xe2\\x82\\xac"),
        ("charset_convert/1.0.0", &["caf\u{e9}".as_bytes()], &from_utf8("latin1"), "caf\\xe9"),
        ("charset_convert/1.0.0", &["\u{65e5}".as_bytes()], &from_utf8("shift_jis"), "\\x93\\xfa"),
        ("charset_convert/1.0.0", &[b"\x1b$BF|\x1b(B"], &to_utf8("iso-2022-jp"), "\\xe6\\x97\\xa5"),
        ("charset_convert/1.0.0", &["\u{65e5}".as_bytes()], &from_utf8("iso-2022-jp"), "\\x1b$BF|\\x1b(B"),
        (
            "charset_convert/1.0.0",
            &["a\u{1f600}".as_bytes()],
            &from_utf8("utf-16le"),
            "a\\x00=\\xd8\\x00\\xde",
        ),
        ("charset_convert/1.0.0", &[b"a"], &from_utf8("utf-16be"), "\\x00a"),
        ("charset_convert/1.0.0", &[b"\xff\xfea\x00"], &to_utf8("utf-16le"), "a"),
        ("charset_convert/1.0.0", &[b"\xef\xbb\xbfa"], &to_utf8("utf-8"), "a"),
        ("charset_convert/1.0.0", &[b"\xff\xfea"], &to_utf8("latin1"), "\\xc3\\xbf\\xc3\\xbea"),
        ("charset_convert/1.0.0", &[b"ab\xffc"], &to_utf8("utf-8"), "! input 1: byte 2: not UTF-8"),
        ("charset_convert/1.0.0", &[b"ab\xe2\x82"], &to_utf8("utf-8"), "! input 1: byte 2: not UTF-8"),
        (
            "charset_convert/1.0.0",
            &["a\u{65e5}".as_bytes()],
            &from_utf8("latin1"),
            "! input 1: windows-1252 has no '\u{65e5}' (U+65E5)",
        ),
        (
            "charset_convert/1.0.0",
            &[b"a"],
            &from_utf8("klingon"),
            "! parameter `to`: \"klingon\" is not a label of the WHATWG encoding standard, such as utf-8, utf-16le, \
             latin1 (which is windows-1252)",
        ),
    ]);
}

#[test]
fn counts() {
    golden(&[
        ("byte_count/1.0.0", &[b"abc"], &[], "0x0000000000000003"),
        ("line_count/1.0.0", &[b"a\nb\n\nc"], &[], "3"),
        ("line_count/1.0.0", &[b""], &[], "0"),
        ("word_count/1.0.0", &[b" one\ttwo\x0bx\n\r three"], &[], "3"),
        ("word_count/1.0.0", &[b" \n"], &[], "0"),
        ("entropy/2.0.0", &[b"hello"], &[], "1.921928"),
        ("entropy/2.0.0", &[b"aaaa"], &[], "0.000000"),
        ("entropy/2.0.0", &[b""], &[], "0.000000"),
        ("min_max/1.0.0", &[b"hello"], &[], "eo"),
        ("min_max/1.0.0", &[b"\xff"], &[], "\\xff\\xff"),
        ("min_max/1.0.0", &[b""], &[], "! input 1: is empty: it has no smallest byte"),
    ]);
    let every: Vec<u8> = (0..=255).chain([7]).collect();
    let functions = Functions::builtin();
    let counted = given(&functions, "histogram/1.0.0", &one(&every), &Params::new()).unwrap();
    let counts: Vec<u64> =
        counted.as_chunks::<8>().0.iter().map(|count| u64::from_be_bytes(*count)).collect();
    assert_eq!(counts.len(), 256);
    assert_eq!((counts[6], counts[7], counts[255]), (1, 2, 1));
}

#[test]
fn media_types() {
    golden(&[
        ("content_type/1.0.0", &[b"\x89PNG\r\n\x1a\n"], &[], "image/png"),
        ("content_type/1.0.0", &[b"\xff\xd8\xff\xe0"], &[], "image/jpeg"),
        ("content_type/1.0.0", &[b"GIF89a"], &[], "image/gif"),
        ("content_type/1.0.0", &[b"PK\x03\x04"], &[], "application/zip"),
        ("content_type/1.0.0", &[b"\x1f\x8b"], &[], "application/gzip"),
        ("content_type/1.0.0", &[b"%PDF-1.7"], &[], "application/pdf"),
        ("content_type/1.0.0", &[b"\x28\xb5\x2f\xfd"], &[], "application/zstd"),
        ("content_type/1.0.0", &[b"[\xff"], &[], "application/json"),
        ("content_type/1.0.0", &[b""], &[], "text/plain"),
        ("content_type/1.0.0", &[b"caf\xc3\xa9"], &[], "text/plain"),
        ("content_type/1.0.0", &[b"caf\xc3"], &[], "application/octet-stream"),
        ("content_type/2.0.0", &[b"GIF89a"], &[], "image/gif"),
        ("content_type/2.0.0", &[b" {\"a\": 1}\n"], &[], "application/json"),
        ("content_type/2.0.0", &[b"[1, 2"], &[], "text/plain"),
        ("content_type/2.0.0", &[b"[\xff]"], &[], "application/octet-stream"),
        ("content_type/2.0.0", &[b""], &[], "application/octet-stream"),
        ("content_type/2.0.0", &[b" "], &[], "text/plain"),
    ]);
}
