//! Names: how they are quoted, and which one was meant.

/// A name in messages: in backticks, escaped, cut when long.
pub fn quote(name: &str) -> String {
    const LONGEST: usize = 60;
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("`{}...`", name[..end].escape_debug()),
        None => format!("`{}`", name.escape_debug()),
    }
}

/// A circle of names, the first one again at its end: "`a` needs `b` needs `a`". The middle of a long one is left out.
pub fn circle<'a>(names: impl ExactSizeIterator<Item = &'a str> + Clone, verb: &str) -> String {
    const MOST_NAMED: usize = 8;
    let left_out = names.len().saturating_sub(MOST_NAMED);
    let mut parts: Vec<String> = names.clone().take(MOST_NAMED).map(quote).collect();
    parts.extend((left_out > 0).then(|| format!("{left_out} more")));
    parts.extend(names.take(1).map(quote));
    parts.join(&format!(" {verb} "))
}

/// The most letters of a word that is compared, and how many of them may differ.
const LONGEST: usize = 64;
const MOST_EDITS: usize = 8;

/// The most candidates: with more of them, none is looked for.
const MOST_CANDIDATES: usize = 10_000;

/// The candidate closest to `word`, if one is close: for help such as "did you mean". The shorter the word, the closer
/// it must be; a single letter is not close to anything. Takes at most some tens of milliseconds for any input.
///
/// ```
/// assert_eq!(anabranch_text::closest("tkae", ["country", "take"]), Some("take"));
/// ```
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = Letters::of(word)?;
    let mut limit = ((word.count + 1) / 3).min(MOST_EDITS);
    let mut best = None;
    for (number, candidate) in candidates.into_iter().enumerate() {
        if number == MOST_CANDIDATES {
            return None;
        }
        let edits =
            Letters::of(candidate).and_then(|letters| edits(&word, &letters, limit.min(letters.count / 2)));
        if let Some(edits) = edits
            && best.is_none_or(|best| (edits, candidate) < best)
        {
            (best, limit) = (Some((edits, candidate)), edits);
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// A word that is short enough to be compared.
struct Letters {
    letters: [char; LONGEST],
    count: usize,
}

impl Letters {
    fn of(word: &str) -> Option<Letters> {
        let mut of = Letters { letters: ['\0'; LONGEST], count: 0 };
        for letter in word.chars() {
            *of.letters.get_mut(of.count)? = letter;
            of.count += 1;
        }
        Some(of)
    }

    fn all(&self) -> &[char] {
        &self.letters[..self.count]
    }
}

/// Edits between two words, if there are at most `limit`; two letters that changed places are one edit.
fn edits(a: &Letters, b: &Letters, limit: usize) -> Option<usize> {
    if a.count.abs_diff(b.count) > limit {
        return None;
    }
    let (a, b) = (a.all(), b.all());
    let mut rows = [[0; LONGEST + 1]; 3];
    rows[0] = std::array::from_fn(|column| column);
    for i in 0..a.len() {
        let [above, row, next] = [i + 2, i, i + 1].map(|row| row % 3);
        rows[next][0] = i + 1;
        for j in 0..b.len() {
            let changed = rows[row][j] + usize::from(a[i] != b[j]);
            let mut least = changed.min(rows[row][j + 1] + 1).min(rows[next][j] + 1);
            if i > 0 && j > 0 && (a[i], a[i - 1]) == (b[j - 1], b[j]) {
                least = least.min(rows[above][j - 1] + 1);
            }
            rows[next][j + 1] = least;
        }
        // Edits only become more, but for letters that change places: those are counted from the row above.
        if [row, next].iter().all(|row| rows[*row][..=b.len()].iter().all(|edits| *edits > limit)) {
            return None;
        }
    }
    Some(rows[a.len() % 3][b.len()]).filter(|edits| *edits <= limit)
}

#[cfg(test)]
mod tests {
    use super::{circle, closest, quote};

    #[test]
    fn the_shorter_the_closer() {
        let check = |word, near| assert_eq!(closest(word, ["take", "country", "a", "id"]), near, "{word}");
        check("b", None);
        check("i", None);
        check("ix", Some("id"));
        check("tke", Some("take"));
        check("tkae", Some("take"));
        check("time", None);
        check("contri", Some("country"));
        check("county_name", None);
        check("a1", None);
    }

    /// Comparing all letters with each other would take too long.
    #[test]
    fn a_name_of_15_mb_against_1000_keys_is_close_to_nothing() {
        let keys: Vec<String> = (0..1_000).map(|number| format!("key_{number}")).collect();
        let long = "key_1".repeat(3 << 20);
        assert_eq!(closest(&long, keys.iter().map(String::as_str)), None);
        assert_eq!(closest("key_1x", std::iter::repeat_n(&*long, 1_000).chain(["key_1"])), Some("key_1"));
    }

    /// Comparing only some of a list would make the help depend on its order.
    #[test]
    fn among_too_many_candidates_none_is_looked_for() {
        let near = |count| closest("tkae", std::iter::repeat_n("take", count));
        assert_eq!(near(10_000), Some("take"));
        assert_eq!(near(10_001), None);
    }

    #[test]
    fn names_are_quoted_and_cut() {
        assert_eq!(quote("a\u{1b}b"), "`a\\u{1b}b`");
        assert_eq!(quote(&"x".repeat(61)), format!("`{}...`", "x".repeat(60)));
        assert_eq!(circle(["a", "b"].into_iter(), "needs"), "`a` needs `b` needs `a`");
        assert_eq!(
            circle(["1", "2", "3", "4", "5", "6", "7", "8", "9", "10"].into_iter(), "reads"),
            "`1` reads `2` reads `3` reads `4` reads `5` reads `6` reads `7` reads `8` reads 2 more reads `1`"
        );
    }
}
