//! Patterns as RE2's documentation has them, with texts that they match and texts that they do not.

use regex::bytes::Regex;

use super::translate;

/// True if the pattern is found in the text.
fn found(pattern: &str, text: &str) -> bool {
    let translated = translate(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    let regex = Regex::new(&translated.pattern);
    regex.unwrap_or_else(|error| panic!("{pattern}: {error}")).is_match(text.as_bytes())
}

fn check(pattern: &str, yes: &[&str], no: &[&str]) {
    for text in yes {
        assert!(found(pattern, text), "{pattern} is in {text:?}");
    }
    for text in no {
        assert!(!found(pattern, text), "{pattern} is not in {text:?}");
    }
}

#[test]
fn perl_classes_are_ascii() {
    check(r"^\w+$", &["abc_1"], &["Ünï", "é", "a b"]);
    check(r"^\d+$", &["123"], &["١٢٣", "४"]);
    check(r"^\s$", &[" ", "\t", "\n", "\x0c", "\r"], &["\x0b", "\u{a0}", "\u{2003}"]);
    check(r"^[\s\d]$", &[" ", "7"], &["\x0b", "٣", "a"]);
    check(r"^\W$", &["é", "-", "\n"], &["a", "_", "0"]);
    check(r"^[^\W_]+$", &["a1"], &["_", "é"]);
    check(r"^\D\S$", &["éé"], &["1a", "a "]);
}

#[test]
fn word_boundaries_are_ascii() {
    check(r"\bna\b", &["na", "a na!", "éna"], &["nan", "_na"]);
    check(r"né\b", &["néa"], &["né", "né!"]);
    check(r"^\Bé", &["é"], &[]);
    // There is no boundary between the bytes of a character.
    check(r"\B", &["aéb", "", "ab"], &["a"]);
}

#[test]
fn classes_have_no_operators() {
    check(r"^[a&&b]$", &["a", "b", "&"], &["c", ""]);
    check(r"^[[a]b]$", &["[b]", "ab]"], &["a", "b"]);
    check(r"^[%--b]$", &["%", "&", "-", "b"], &["."]);
    check(r"^[a~~b]$", &["~", "a"], &["c"]);
    check(r"^[]a]$", &["]", "a"], &["b"]);
    check(r"^[^]a]$", &["b"], &["]", "a"]);
    check(r"^[a-]$", &["a", "-"], &["b"]);
    check(r"^[\d-z]$", &["5", "-", "z"], &["y"]);
    check(r"^[+--]$", &["+", ",", "-"], &["."]);
    check(r"^[[:alpha:][:digit:]]$", &["a", "5"], &["é", "-"]);
    check(r"^[[:^alpha:]]$", &["5", "é"], &["a"]);
    check(r"^[[:word:]][[:space:]]$", &["_\x0b", "a "], &["é "]);
    check(r"^[[:punct:]]+$", &[r##"!"#$%&'()*+,-./:;<=>?@[\]^_`{|}~"##], &["a", " "]);
    check(r"^[[:alpha]$", &["[", ":", "a", "p"], &["z"]);
    check(r"^[[=a=]]$", &["a]", "=]", "[]"], &["a"]);
    check(r"^[\x{d800}a]$", &["a"], &["b"]);
    check(r"^[^\x{d800}]$", &["b"], &[]);
    check(r"^[\x{d000}-\x{dfff}]$", &["\u{d7ff}"], &["\u{e000}"]);
    check(r"\x{d800}", &[], &["", "a"]);
}

#[test]
fn unicode_classes_have_names() {
    check(r"^\pL\p{Lu}$", &["éÉ"], &["éé"]);
    check(r"^\p{Greek}\P{Greek}$", &["αa"], &["aα"]);
    check(r"^\p{^Greek}\P{^Greek}$", &["aα"], &["αa"]);
    check(r"^[\p{Greek}\d]$", &["α", "1"], &["a"]);
    check(r"^\p{Any}$", &["\n", "é"], &["ab"]);
}

#[test]
fn escapes() {
    check(r"^\<\>\_\!\-\ $", &["<>_!- "], &["a"]);
    check(r"^\101\0\x41\x{1F600}$", &["A\0A😀"], &["AA"]);
    check(r"^\08$", &["\08"], &[]);
    check(r"^\1234$", &["S4"], &[]);
    check(r"^\a\f\t\n\r\v$", &["\x07\x0c\t\n\r\x0b"], &[]);
    check(r"^[\101\n\]]$", &["A", "\n", "]"], &["\\"]);
    check(r"^\Qa.b*\E+$", &["a.b*", "a.b***"], &["axb", "a.b"]);
    check(r"^\Q[({\\E\d$", &[r"[({\5"], &[]);
    check(r"^\Q\E$", &[""], &["a"]);
    check(r"a\Qb.", &["ab."], &["abc"]);
    check(r"^.\C\C$", &["aé", "éé", "a12"], &["é", "a1"]);
    check(r"^\C$", &["\n", "a"], &["é"]);
}

#[test]
fn braces_that_count_nothing_are_characters() {
    check(r"^x{,3}$", &["x{,3}"], &["xxx", ""]);
    check(r"^{$", &["{"], &[]);
    check(r"^a{$", &["a{"], &["a"]);
    check(r"^{}{a}{1,a}$", &["{}{a}{1,a}"], &[]);
    check(r"^a{01}$", &["a{01}"], &["a"]);
    check(r"^a{ 2 }$", &["a{ 2 }"], &["aa"]);
    check(r"^a{2}$", &["aa"], &["a", "aaa"]);
    check(r"^a{1,}b{0,1}?$", &["a", "aab"], &["b", "abb"]);
    check(r"^a}]$", &["a}]"], &[]);
}

#[test]
fn anchors_and_flags() {
    check("^a$", &["a"], &["a\n", "b\na"]);
    check("(?m)^a$", &["a\n", "b\na"], &["ab"]);
    check(r"(?m)\Aa\z", &["a"], &["a\n"]);
    check("^.$", &["é"], &["\n"]);
    check("(?s)^.$", &["\n"], &[]);
    check("(?i)straße|k", &["STRAßE", "\u{212a}"], &["STRASSE"]);
    check("(?i)a(?-i)b|c", &["Ab", "c"], &["AB", "C"]);
    check("(?i:a)b", &["Ab"], &["AB"]);
    check("a(?)b", &["ab"], &["a?b"]);
    check("(?ii-i:a)", &["a"], &["A"]);
    check("(?U)^a+$", &["aa"], &["b"]);
    check("(?P<n>a)(?<m>b)()|", &["ab", "", "x"], &[]);
    check(r"(?i)^\w$", &["k", "\u{212a}", "ſ"], &["é"]);
    check(r"(?i)^\W$", &["é"], &["k", "\u{212a}"]);
    check(r"(?i)^[[:^upper:]]$", &["1", "é"], &["a", "A"]);
    check("a#b c", &["a#b c"], &["a"]);
}

#[test]
fn mistakes_have_a_place() {
    for (pattern, error) in [
        ("(", "`(` is not closed (character 1 of the pattern)"),
        ("a)", "`)` closes no group (character 2 of the pattern)"),
        ("é[a", "`[` is not closed (character 2 of the pattern)"),
        ("[]", "`[` is not closed (character 1 of the pattern)"),
        ("[a--b]", "the range `a--` ends before it begins (character 2 of the pattern)"),
        ("[z-a]", "the range `z-a` ends before it begins (character 2 of the pattern)"),
        (r"[a-\d]", r"`\d` is not an escape (character 4 of the pattern)"),
        ("[[:alphs:]]", "`[:alphs:]` is not a class (character 2 of the pattern)"),
        ("*a", "`*` has nothing to repeat (character 1 of the pattern)"),
        ("a|{2}", "`{2,2}` has nothing to repeat (character 3 of the pattern)"),
        ("a**", "`*` repeats a repetition; put the inner one in parentheses (character 3 of the pattern)"),
        ("a++", "`+` repeats a repetition; put the inner one in parentheses (character 3 of the pattern)"),
        ("a(?i)*", "`*` stands after flags; put it before them (character 6 of the pattern)"),
        ("a{1001}", "`{1001}` repeats more than 1000 times (character 2 of the pattern)"),
        ("a{99999999999}", "`{99999999999}` repeats more than 1000 times (character 2 of the pattern)"),
        ("a{3,2}", "`{3,2}` ends before it begins (character 2 of the pattern)"),
        (r"\", r"`\` at the end escapes nothing (character 1 of the pattern)"),
        (r"\1", r"`\1`: there are no references to groups (character 1 of the pattern)"),
        (r"\q", r"`\q` is not an escape (character 1 of the pattern)"),
        (r"\E", r"`\E` is not an escape (character 1 of the pattern)"),
        (r"\Z", r"`\Z` is not an escape (character 1 of the pattern)"),
        (r"\é", r"`\é` is not an escape (character 1 of the pattern)"),
        (r"\x4", r"`\x` is not an escape (character 1 of the pattern)"),
        (r"\x{110000}", r"`\x` is not an escape (character 1 of the pattern)"),
        (
            r"\p{Gr=k}",
            r"`\p` takes the name of a Unicode class, as in `\pL` or `\p{Greek}` (character 1 of the pattern)",
        ),
        ("(?x)a", "after `(?` there are `:`, a name or the flags i, m, s, U (character 1 of the pattern)"),
        ("(?i-)a", "after `(?` there are `:`, a name or the flags i, m, s, U (character 1 of the pattern)"),
        ("(?=a)", "`(?=`: there is no looking around (character 1 of the pattern)"),
        ("(?<n>a)(?P<n>b)", "two groups have the same name (character 8 of the pattern)"),
        ("(?P<n-m>a)", "a group's name has letters, digits and `_` (character 1 of the pattern)"),
    ] {
        let found = translate(pattern).map(|translated| translated.pattern);
        assert_eq!(found.map_err(|error| error.to_string()), Err(error.to_owned()), "{pattern}");
    }
}
