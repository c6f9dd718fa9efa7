//! Random programs, each written twice: with types, and without.

use proptest::prelude::*;

/// A part of a program.
#[derive(Clone, Debug)]
pub(super) struct Both {
    pub(super) typed: String,
    pub(super) plain: String,
}

/// Fills a pattern: `#` is the next part. Text in `‹›` is only for the version with types, text in `«»` only for the
/// one without.
fn filled(pattern: &str, parts: &[Both]) -> Both {
    let mut out = Both { typed: String::new(), plain: String::new() };
    let mut parts = parts.iter();
    let mut only = None;
    for letter in pattern.chars() {
        match letter {
            '‹' | '«' => only = Some(letter),
            '›' | '»' => only = None,
            '#' => {
                let part = parts.next().expect("a part for each place");
                out.typed += &part.typed;
                out.plain += &part.plain;
            }
            letter => {
                out.typed.extend((only != Some('«')).then_some(letter));
                out.plain.extend((only != Some('‹')).then_some(letter));
            }
        }
    }
    out
}

/// `t(n)` notes that it is called.
const LEAVES: [&str; 14] = [
    "t(1)",
    "t(2)",
    "t(3)",
    "t(4)‹!›",
    "t(5)",
    "a",
    "b‹!›",
    "Key.x",
    "P.y.z",
    "EP.k.n",
    "7",
    "'s'",
    "null",
    "EP?.k.n",
];

const EXPRESSIONS: [&str; 47] = [
    "# + #",
    "#\n  - #",
    "# * /* c */ #",
    "#/#",
    "(#) % (#)",
    "(#) ** (#)",
    "(#) == (#)",
    "(#) !== #",
    "(#) < (#)",
    "(#) >= (#)",
    "(#)in o",
    "(#) && (#)",
    "(#) || #",
    "(#) // c\n ?? (#)",
    "(#) ? # : #",
    "(#)\n? (#)\n: (#)",
    "!(#)",
    "-(#)",
    "+(#)",
    "!#",
    "typeof(#)",
    "void #",
    "(a += #)",
    "(b &&= #)",
    "(a ??= #)",
    "(o.x -= #)",
    "(b = #)",
    "(# ‹as T›)",
    "(‹<T>›(#))",
    "(# ‹satisfies T<U>›)",
    "(#)‹!›",
    "(#, #)",
    "[#, #][0]",
    "({ p: #, [#]: 1 }).p",
    "`x${#}y${#}`",
    "o.take(#, #)",
    "o?.f(#)",
    "o.n?.f(#)",
    "P.f‹<T>›(#)",
    "t(#, ...[#])",
    "((x‹: T›, y‹?: U›)‹: T› => #)(#)",
    "(function ‹<T>›(‹this: any, ›x‹: T› = #)‹: T› { return(#) })()",
    "new (class‹<T>› ‹implements I› { ‹private› x‹: T› = #\n ‹declare y: T\n› static z‹?: T› })().x",
    "[...(function* ()‹: G› { yield # && (yield #) })()].length",
    "(‹<T>›(x‹: T›) => { return#‹!› })(1)",
    "min(#, #)",
    "new o.C(#).x",
];

const STATEMENTS: [&str; 20] = [
    "a = # ‹as T›\n«;»",
    "b = #;",
    "t(#)\n;",
    "‹type A = B<C>\n›",
    "‹interface I { a: B; c(): D }›",
    "if (#) { # } else { # }",
    "if (#, #) t(8)\n",
    "for (let i‹: T› = 0; i < 2; i++) { # }",
    "{ # }",
    "for (const x of [#, #]) { t(x) }",
    "switch (#) { case #: # break\n case (#)+1: # default: # }",
    "let n = 0\n do { # } while (n++ < 1 && #)",
    "‹function f(x: A): B\nfunction f(x: B): C\n›function f(x‹?: A›)‹: B› { return x }",
    "try { # } catch (e‹: unknown›) { # }",
    "var q‹: T›\n«;»(#)\n;",
    "while (m-- > 0) { # }",
    "throw_(#);",
    "label: for (const k in o) { if (#) continue label\n else break\n }",
    "a *= #;",
    "b ??= #;",
];

fn expression() -> impl Strategy<Value = Both> + Clone {
    let leaf = prop::sample::select(&LEAVES[..]).prop_map(|leaf| filled(leaf, &[]));
    leaf.prop_recursive(4, 24, 3, |inner| {
        let parts = prop::collection::vec(inner, 3);
        (prop::sample::select(&EXPRESSIONS[..]), parts).prop_map(|(pattern, parts)| {
            let both = filled(pattern, &parts);
            Both { typed: format!("({})", both.typed), plain: format!("({})", both.plain) }
        })
    })
}

fn statement() -> impl Strategy<Value = Both> {
    let leaf = expression().prop_map(|part| filled("t(#);", &[part]));
    leaf.prop_recursive(3, 12, 3, |inner| {
        (prop::sample::select(&STATEMENTS[..]), prop::collection::vec(expression(), 6), inner).prop_map(
            |(pattern, mut parts, statement)| {
                // A block gets a statement, a value gets an expression.
                let places: Vec<usize> = pattern.match_indices('#').map(|(at, _)| at).collect();
                for (part, at) in parts.iter_mut().zip(places) {
                    let after = pattern[at + 1..].trim_start();
                    let before = pattern[..at].trim_end();
                    let block = before.ends_with(['{', ':']) && after.starts_with(['}', 'b', 'd']);
                    if block {
                        *part = statement.clone();
                    }
                }
                filled(&format!("{{ {pattern} }}"), &parts)
            },
        )
    })
}

/// A program.
pub(super) fn program() -> impl Strategy<Value = Both> {
    prop::collection::vec(statement(), 1..5).prop_map(|statements| {
        let typed: Vec<&str> = statements.iter().map(|part| part.typed.as_str()).collect();
        let plain: Vec<&str> = statements.iter().map(|part| part.plain.as_str()).collect();
        Both { typed: typed.join("\n"), plain: plain.join("\n") }
    })
}
