//! Patterns of column names.

/// Returns whether a pattern with `*`, `?` and `[...]` matches a whole name.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        let step = match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
                continue;
            }
            Some('?') => Some(1),
            Some('[') => class(&pattern[p..], name[n]),
            Some(letter) if *letter == name[n] => Some(1),
            _ => None,
        };
        match (step, star) {
            (Some(width), _) => (p, n) = (p + width, n + 1),
            (None, Some((at, from))) => {
                (p, n) = (at + 1, from + 1);
                star = Some((at, from + 1));
            }
            (None, None) => return false,
        }
    }
    pattern[p..].iter().all(|letter| *letter == '*')
}

/// The width of a class such as `[a-z]` or `[!0]` that has the letter; an unclosed one is a plain bracket.
fn class(pattern: &[char], letter: char) -> Option<usize> {
    let negated = pattern.get(1) == Some(&'!');
    let start = if negated { 2 } else { 1 };
    let Some(len) = pattern.iter().skip(start + 1).position(|found| *found == ']') else {
        return (letter == '[').then_some(1);
    };
    let end = start + 1 + len;
    let mut body = &pattern[start..end];
    let mut has = false;
    while let Some(first) = body.first() {
        let range = matches!(body, [_, '-', _, ..]);
        let last = if range { body[2] } else { *first };
        has |= (*first..=last).contains(&letter);
        body = &body[if range { 3 } else { 1 }..];
    }
    (has != negated).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns() {
        let yes = [
            ("a", "a"),
            ("*", ""),
            ("a*", "abc"),
            ("*_raw", "x_raw"),
            ("a?c", "abc"),
            ("*a*b", "xaayb"),
            ("[a-c]1", "b1"),
        ];
        assert!(yes.iter().all(|(pattern, name)| matches(pattern, name)));
        let no = [("a", "ab"), ("?", ""), ("a*c", "ab"), ("*_raw", "raw_x"), ("", "a"), ("[!b]1", "b1")];
        assert!(!no.iter().any(|(pattern, name)| matches(pattern, name)));
    }
}
