//! Functions of text and of lines.

use anabranch_recipe::{Functions, Params, Value};
use anabranch_testkit::Rng;
use bytes::Bytes;

use crate::kit::{given, golden, same_however_cut, shown, texts};

#[test]
fn characters() {
    golden(&[
        ("uppercase/1.0.0", &["straße é".as_bytes()], &[], r"STRASSE \xc3\x89"),
        ("uppercase/1.0.0", &[b"plain, 12"], &[], "PLAIN, 12"),
        ("uppercase/1.0.0", &[b"ab\xffc"], &[], "! input 1: not UTF-8 at byte 2"),
        ("uppercase/1.0.0", &[b"ab\xc3"], &[], "! input 1: not UTF-8 at byte 2"),
        ("lowercase/1.0.0", &["ABC É".as_bytes()], &[], r"abc \xc3\x89"),
        ("lowercase/1.0.0", &[b"A\xffB"], &[], r"a\xffb"),
        (
            "lowercase/2.0.0",
            &["ABC É ΟΔΟΣ".as_bytes()],
            &[],
            r"abc \xc3\xa9 \xce\xbf\xce\xb4\xce\xbf\xcf\x83",
        ),
        ("lowercase/2.0.0", &[b"A\xffB"], &[], "! input 1: not UTF-8 at byte 1"),
        ("utf8_validate/1.0.0", &["aé€𝄞".as_bytes()], &[], r"a\xc3\xa9\xe2\x82\xac\xf0\x9d\x84\x9e"),
        ("utf8_validate/1.0.0", &[b"abc\xe2\x82"], &[], "! input 1: not UTF-8 at byte 3"),
        ("utf8_validate/1.0.0", &[b"\xed\xa0\x80"], &[], "! input 1: not UTF-8 at byte 0"),
        ("line_ending/1.0.0", &[b"a\r\nb\rc\n\r\r\n\r"], &[("target", "lf")], r"a\nb\rc\n\r\n\r"),
        ("line_ending/1.0.0", &[b"a\nb\r\nc\r\n\n"], &[("target", "crlf")], r"a\r\nb\r\nc\r\n\r\n"),
        (
            "line_ending/1.0.0",
            &[b"a"],
            &[("target", "cr")],
            "! parameter `target`: \"cr\" is not `lf` or `crlf`",
        ),
    ]);
}

#[test]
fn one_line_after_the_other() {
    golden(&[
        ("head/1.0.0", &[b"a\r\nb\nc\n"], &[("n", "2")], r"a\nb"),
        ("head/1.0.0", &[b"a\nb\n\xff"], &[("n", "2")], r"a\nb"),
        ("head/1.0.0", &[b"a\nb"], &[("n", "0")], ""),
        ("head/1.0.0", &[b"a\nb"], &[("n", "99")], r"a\nb"),
        ("head/1.0.0", &[b"a"], &[("n", "-1")], "! parameter `n`: \"-1\" is not a whole number"),
        ("nth/1.0.0", &[b"a\r\nb\r\n"], &[("index", "1")], "b"),
        ("nth/1.0.0", &[b"a\nb\n"], &[("index", "2")], "! input 1: has 2 lines, none with index 2"),
        ("unique/1.0.0", &[b"a\na\r\nb\na\na"], &[], r"a\nb\na"),
        ("unique/1.0.0", &[b"\n\n\na\n"], &[], r"\na"),
        ("grep/1.0.0", &[b"one\ntwo\r\nthree\n"], &[("pattern", "^t.*e?$")], r"two\nthree"),
        (
            "grep/1.0.0",
            &[b"a"],
            &[("pattern", "(")],
            "! parameter `pattern`: regex parse error:\n    (\n    ^\nerror: unclosed group",
        ),
        (
            "grep/1.0.0",
            &[b"a\nbc\xff\n"],
            &[("pattern", "z")],
            "! input 1: line 2 is not UTF-8, at byte 4 of the input",
        ),
        ("grep_invert/1.0.0", &[b"one\ntwo\nthree"], &[("pattern", "t")], "one"),
        ("line_prefix/1.0.0", &[b"a\n\nb\n"], &[("prefix", "> ")], r"> a\n> \n> b"),
        ("line_prefix/1.0.0", &[b""], &[("prefix", "> ")], ""),
        ("line_number/1.0.0", &[b"a\nb"], &[], r"     1\ta\n     2\tb"),
        ("truncate_lines/1.0.0", &["abcd\nx\naéz".as_bytes()], &[("max_line_bytes", "2")], r"ab\nx\na"),
        ("truncate_lines/1.0.0", &[b"ab\nc"], &[("max_line_bytes", "0")], r"\n"),
    ]);
}

#[test]
fn sums() {
    golden(&[
        ("sum/1.0.0", &[b"1\n 2.5 \n\n-3e1\r\n"], &[], "-26.5"),
        ("sum/1.0.0", &[b""], &[], "0"),
        ("sum/1.0.0", &[b"0.1\n0.2"], &[], "0.30000000000000004"),
        ("sum/1.0.0", &[b"1\nnan"], &[], "! input 1: line 2: \"nan\" is not a number"),
        ("sum/1.0.0", &[b"1e999"], &[], "! input 1: line 1: \"1e999\" is not a number"),
        (
            "sum/1.0.0",
            &[b"1e308\n1e308"],
            &[],
            "! input 1: the sum of its numbers is too large for a 64-bit float",
        ),
        ("average/1.0.0", &[b"1\n2\n"], &[], "1.5"),
        ("average/1.0.0", &[b"\n"], &[], "! input 1: has no numbers, so they have no average"),
        ("average/1.0.0", &[b"x1"], &[], "! input 1: line 1: \"x1\" is not a number"),
    ]);
}

#[test]
fn orders() {
    let ten = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";
    golden(&[
        ("sort/1.0.0", &[b"b\r\na\nB\na"], &[], r"B\na\na\nb"),
        ("sort/1.0.0", &[b"b\nbad\xff"], &[], "! input 1: not UTF-8 at byte 5"),
        ("sort_unique/1.0.0", &[b"b\na\nb\na\n"], &[], r"a\nb"),
        ("tail/1.0.0", &[b"a\nb\r\nc\n"], &[("n", "2")], r"b\nc"),
        ("tail/1.0.0", &[b"a\nb"], &[("n", "0")], ""),
        ("tail/1.0.0", &[b"a\nb"], &[("n", "9")], r"a\nb"),
        ("shuffle/1.0.0", &[ten], &[("seed", "42")], r"8\n4\n10\n6\n1\n9\n7\n5\n3\n2"),
        ("shuffle/1.0.0", &[b""], &[("seed", "1")], ""),
        ("sample/1.0.0", &[ten], &[("lines", "3"), ("seed", "42")], r"6\n9\n10"),
        ("sample/1.0.0", &[b"a\nb\n"], &[("lines", "3"), ("seed", "42")], r"a\nb"),
        ("sample/1.0.0", &[ten], &[("lines", "0"), ("seed", "42")], ""),
    ]);
}

#[test]
fn lines_of_several_inputs() {
    golden(&[
        ("zip/1.0.0", &[b"a\nb\nc", b"1\r\n2\n"], &[("separator", "=")], r"a=1\nb=2"),
        ("zip/1.0.0", &[b"", b"1"], &[("separator", "=")], ""),
        ("zip/1.0.0", &[b"a"], &[("separator", "=")], "! it takes 2 inputs, the recipe has 1"),
        ("merge_sorted/1.0.0", &[b"a\nc\n", b"b\nc\nd", b""], &[], r"a\nb\nc\nc\nd"),
        (
            "merge_sorted/1.0.0",
            &[b"a", b"b\nc\na\n"],
            &[],
            "! input 2: line 3 is out of byte order; sort the input first",
        ),
    ]);
}

#[test]
fn replacements() {
    golden(&[
        (
            "replace/1.0.0",
            &[b"ab12cd3"],
            &[("pattern", r"(\d)(\d)?"), ("replacement", "<$1${2}$$>")],
            "ab<12$>cd<3$>",
        ),
        ("regex_replace/1.0.0", &[b"abc"], &[("pattern", ""), ("replacement", "-")], "-a-b-c-"),
        ("regex_replace/1.0.0", &[b"abc"], &[("pattern", "x"), ("replacement", "-")], "abc"),
        (
            "regex_replace/1.0.0",
            &[b"a\xff"],
            &[("pattern", "x"), ("replacement", "-")],
            "! input 1: not UTF-8 at byte 1",
        ),
        (
            "redact/1.0.0",
            &[b"tel 123, RED"],
            &[("patterns", r"\d+, RED")],
            "tel [[REDACTED]ACTED], [REDACTED]",
        ),
        (
            "redact/1.0.0",
            &[b"a"],
            &[("patterns", "a,")],
            "! parameter `patterns`: an empty pattern matches everywhere; leave it out",
        ),
        (
            "redact/2.0.0",
            &[b"a"],
            &[("patterns", "a")],
            "! parameter `patterns`: \"a\" is not a list of texts, one or more",
        ),
    ]);
    let list =
        |texts: &[&str]| Value::List(texts.iter().map(|text| Value::Text((*text).to_owned())).collect());
    let redact = |patterns: &[&str], input: &'static str| {
        let params = Params::from([("patterns".to_owned(), list(patterns))]);
        shown(&given(&Functions::builtin(), "redact/2.0.0", &[vec![input.into()]], &params))
    };
    assert_eq!(redact(&[r"\d{2,3}", "RED"], "tel 123, RED"), "tel [REDACTED], [REDACTED]");
    assert_eq!(redact(&["(?i)a", "B"], "aAbB"), "[REDACTED][REDACTED]b[REDACTED]");
    assert!(redact(&[], "a").starts_with("! parameter `patterns`: a list of 0 is not"));
    assert!(redact(&["a", ""], "a").starts_with("! parameter `patterns`: an empty pattern"));
    assert!(redact(&["(?x)a # b", "c"], "a").starts_with("! parameter `patterns`: regex parse error"));
}

#[test]
fn differences() {
    golden(&[
        ("diff/2.0.0", &[b"a\nb\n", b"a\nb\n"], &[], r"--- a\n+++ b\n"),
        ("diff/2.0.0", &[b"", b"a\n"], &[], r"--- a\n+++ b\n@@ -0,0 +1 @@\n+a\n"),
        (
            "diff/2.0.0",
            &[b"1\n2\n3\n4\n5\n6\n7\n8\n9\n", b"1\n2\n3\n4\n5\nsix\n7\n8\n9"],
            &[],
            r"--- a\n+++ b\n@@ -3,7 +3,7 @@\n 3\n 4\n 5\n-6\n+six\n 7\n 8\n-9\n+9\n\\ No newline at end of file\n",
        ),
        ("patch/2.0.0", &[b"a\nb\n", b""], &[], r"a\nb\n"),
        ("patch/2.0.0", &[b"a\r\n", b"--- a\n+++ b\n"], &[], r"a\r\n"),
        ("patch/2.0.0", &[b"a\nb\nc\n", b"@@ -2 +1,0 @@\n-b\n"], &[], r"a\nc\n"),
        (
            "patch/2.0.0",
            &[b"a\n", b"@@ -1 +1 @@\n-b\n+c\n"],
            &[],
            r#"! input 2: line 2: "b\n" is not line 1 of the original: "a\n""#,
        ),
        ("patch/2.0.0", &[b"a\n", b"@@ -1 +1 @@\n-a\n"], &[], "! input 2: line 2: the hunk ends early"),
        (
            "patch/2.0.0",
            &[b"a\n", b"@@ -0,0 +1 @@\n+b\n+c\n"],
            &[],
            r#"! input 2: line 3: "+c\n" is not `@@ -line,count +line,count @@`"#,
        ),
        (
            "patch/2.0.0",
            &[b"a\n", b"@@ -7,0 +8 @@\n+b\n"],
            &[],
            "! input 2: line 1: the header places the hunk after line 7; expected a line from 0 to 1",
        ),
        (
            "patch/2.0.0",
            &[b"a\n", b"hello\n"],
            &[],
            "! input 2: line 1: not a unified diff: no `--- ` and `+++ ` before the hunks",
        ),
    ]);
}

#[test]
fn a_diff_makes_the_second_out_of_the_first() {
    let functions = Functions::builtin();
    let one = |bytes: &[u8]| vec![Bytes::copy_from_slice(bytes)];
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let words: [&[u8]; 6] = [b"a", b"b", b"c", b"", b"@@ -1 +1 @@", b"\\ No"];
        let ends: [&[u8]; 4] = [b"\n", b"\r\n", b"\n", b"\xff\n"];
        let text = |rng: &mut Rng| {
            let mut text = Vec::new();
            for _ in 0..rng.within(0..30) {
                text.extend_from_slice(rng.choose::<&[u8]>(&words));
                text.extend_from_slice(rng.choose::<&[u8]>(&ends));
            }
            text.truncate(text.len() - rng.within(0..2).min(text.len() as u64) as usize);
            text
        };
        let (old, new) = (text(&mut rng), text(&mut rng));
        let diff = given(&functions, "diff/2.0.0", &[one(&old), one(&new)], &Params::new()).unwrap();
        let made = given(&functions, "patch/2.0.0", &[one(&old), one(&diff)], &Params::new());
        assert_eq!(shown(&made), shown(&Ok(new)), "seed {seed}\n{}", diff.escape_ascii());
    }
}

#[test]
fn a_diff_of_texts_without_a_line_in_common_is_quick() {
    let functions = Functions::builtin();
    let text = |mark: &str| (0..20_000).map(|line| format!("{mark}{line}\n")).collect::<String>();
    let inputs = [vec![text("a").into()], vec![text("b").into()]];
    let diff = given(&functions, "diff/2.0.0", &inputs, &Params::new()).unwrap();
    assert!(diff.starts_with(b"--- a\n+++ b\n@@ -1,20000 +1,20000 @@\n-a0\n"));
}

/// Text with what line functions look at: line ends of all kinds, repeats, wide characters, rarely bad bytes.
fn prose(rng: &mut Rng) -> Vec<u8> {
    let parts = ["a", "b", "\n", "\n", "\r\n", "\r", "é", "€", "𝄞", "12", "word ", "Σ", "", "\n\n"];
    let mut text = Vec::new();
    for _ in 0..rng.within(0..200) {
        text.extend_from_slice(rng.choose(&parts).as_bytes());
    }
    if rng.percent(20) {
        let at = rng.within(0..text.len() as u64 + 1) as usize;
        text.insert(at, 0xe2);
    }
    text
}

#[test]
fn no_cut_shows() {
    let functions = Functions::builtin();
    let sorted = |rng: &mut Rng| {
        let text = String::from_utf8_lossy(&prose(rng)).into_owned();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        lines.join("\n").into_bytes()
    };
    let numbers = |rng: &mut Rng| {
        let parts = ["1", "2.5", "\n", "\n", "\r\n", "-3", " ", "\n7\n", "\n1e3\n"];
        (0..rng.within(0..60)).flat_map(|_| rng.choose(&parts).bytes()).collect()
    };
    let rows: &[(&str, &[(&str, &str)])] = &[
        ("uppercase/1.0.0", &[]),
        ("lowercase/1.0.0", &[]),
        ("lowercase/2.0.0", &[]),
        ("utf8_validate/1.0.0", &[]),
        ("line_ending/1.0.0", &[("target", "lf")]),
        ("line_ending/1.0.0", &[("target", "crlf")]),
        ("head/1.0.0", &[("n", "5")]),
        ("nth/1.0.0", &[("index", "7")]),
        ("unique/1.0.0", &[]),
        ("grep/1.0.0", &[("pattern", "a|1")]),
        ("grep_invert/1.0.0", &[("pattern", "a|1")]),
        ("line_prefix/1.0.0", &[("prefix", "> ")]),
        ("line_number/1.0.0", &[]),
        ("truncate_lines/1.0.0", &[("max_line_bytes", "4")]),
        ("sort/1.0.0", &[]),
        ("sort_unique/1.0.0", &[]),
        ("tail/1.0.0", &[("n", "5")]),
        ("shuffle/1.0.0", &[("seed", "7")]),
        ("sample/1.0.0", &[("seed", "7"), ("lines", "5")]),
        ("zip/1.0.0", &[("separator", "=")]),
        ("merge_sorted/1.0.0", &[]),
        ("replace/1.0.0", &[("pattern", "[ab]\n"), ("replacement", "$0$0")]),
        ("regex_replace/1.0.0", &[("pattern", "a"), ("replacement", "b")]),
        ("redact/1.0.0", &[("patterns", "a,b")]),
        ("diff/2.0.0", &[]),
        ("sum/1.0.0", &[]),
        ("average/1.0.0", &[]),
    ];
    for (id, params) in rows {
        let function = functions.get(&id.parse().unwrap()).unwrap();
        same_however_cut(function, &texts(params), 0..60, &prose);
        same_however_cut(function, &texts(params), 60..90, &sorted);
        same_however_cut(function, &texts(params), 90..120, &numbers);
    }
}

#[test]
fn a_line_is_bounded_and_what_is_given_at_once_too() {
    let functions = Functions::builtin();
    let chunks: Vec<Bytes> = (0..65).map(|_| vec![b'a'; 256 << 10].into()).collect();
    let given_long = given(&functions, "grep/1.0.0", &[chunks], &texts(&[("pattern", "b")]));
    assert_eq!(shown(&given_long), "! a line would have more than 16 MiB");

    let function = functions.get(&"line_prefix/1.0.0".parse().unwrap()).unwrap();
    let prefix = "p".repeat(100 << 10);
    let given = anabranch_recipe::call(
        function,
        &[vec![Bytes::from_static(&[b'\n'; 100])]],
        &texts(&[("prefix", &prefix)]),
    )
    .unwrap();
    assert_eq!(given.iter().map(Bytes::len).sum::<usize>(), 100 * (100 << 10) + 99);
}

#[test]
fn output_is_bounded() {
    let functions = Functions::builtin();
    let short = |id: &str, inputs: &[&[u8]], params: &[(&str, &str)]| {
        let inputs: Vec<Vec<Bytes>> =
            inputs.iter().map(|input| vec![Bytes::copy_from_slice(input)]).collect();
        format!("{:.100}", shown(&given(&functions, id, &inputs, &texts(params))))
    };
    let (lines, long) = (b"\n".repeat(400), "x".repeat(10_000));
    let bound = ("max_bytes", "1000000");
    let most = "! the output would have more than 1000000 bytes";
    assert_eq!(short("line_prefix/1.0.0", &[&lines], &[("prefix", &long), bound]), most);
    assert_eq!(short("zip/1.0.0", &[&lines, &lines], &[("separator", &long), bound]), most);
    let few = [("prefix", "abc"), ("max_bytes", "9")];
    assert_eq!(short("line_prefix/1.0.0", &[b"x\ny"], &few), r"abcx\nabcy");
    assert_eq!(short("line_prefix/1.0.0", &[b"xx\ny"], &few), "! the output would have more than 9 bytes");
    let again = [("pattern", "(?s)(.*)"), ("replacement", &*"$1".repeat(1 << 20))];
    let large = "x".repeat(1 << 20);
    let most_held = "! the output would have more than 1 GiB";
    assert_eq!(short("regex_replace/1.0.0", &[large.as_bytes()], &again), most_held);
    assert_eq!(short("redact/1.0.0", &[large.as_bytes()], &[("patterns", "z*"), bound]), most);
    let redacted = |pattern: &str, count| {
        short("redact/1.0.0", &[b"x"], &[("patterns", &vec![pattern; count].join(","))])
    };
    let wrong = "! parameter `patterns`: ";
    assert_eq!(redacted(r"\w{200}", 300), format!("{wrong}there are 300 patterns; there may be 256"));
    assert_eq!(
        redacted(&"x".repeat(1000), 20),
        format!("{wrong}the patterns have 20100 bytes; they may have 16384")
    );
    let large = format!("{wrong}the compiled pattern takes more than 2097152 bytes; repeat less");
    assert_eq!(redacted(r"(\w{50}){100}", 1), large);
}

#[test]
fn much_in_another_order_is_refused() {
    let numbers = |numbers: &mut dyn Iterator<Item = u32>| -> Bytes {
        numbers.map(|number| format!("{number}\n")).collect::<String>().into()
    };
    let functions = Functions::builtin();
    let diff = |old: Bytes, new: Bytes| {
        shown(&given(&functions, "diff/2.0.0", &[vec![old], vec![new]], &Params::new()))
    };
    let refused = "! input 2: has too many lines of the first input in a different order; sort both, or compare parts of them";
    assert_eq!(diff(numbers(&mut (0..200_000)), numbers(&mut (0..200_000).rev())), refused);
    let repeated = Bytes::from("a\nb\n".repeat(100_000));
    assert_eq!(diff(repeated, Bytes::from_static(b"b\na\n")), refused);
    let all_new = diff(numbers(&mut (0..200_000)), numbers(&mut (200_000..400_000)));
    assert!(all_new.starts_with(r"--- a\n+++ b\n@@ -1,200000 +1,200000 @@\n-0\n"));
    let one = diff(numbers(&mut (0..200_000)), numbers(&mut (1..200_001)));
    assert!(one.ends_with(r"@@ -199998,3 +199997,4 @@\n 199997\n 199998\n 199999\n+200000\n"), "{one}");
}
