//! The built-in processors, one file each.

mod schema_transform;

pub(crate) use schema_transform::SchemaTransform;

/// Whether a column's name matches a pattern, in which `*` stands for any text and `?` for one character.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    // Where the last `*` was, and up to where the name was taken for it.
    let (mut at, mut place, mut star) = (0, 0, None);
    while place < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, place));
                at += 1;
            }
            Some(wanted) if *wanted == '?' || *wanted == name[place] => {
                at += 1;
                place += 1;
            }
            _ => match &mut star {
                Some((star, taken)) => {
                    *taken += 1;
                    (at, place) = (*star + 1, *taken);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns() {
        let yes =
            [("a", "a"), ("*", ""), ("a*", "abc"), ("*_raw", "x_raw"), ("a?c", "abc"), ("*a*b", "xaayb")];
        assert!(yes.iter().all(|(pattern, name)| matches(pattern, name)));
        let no = [("a", "ab"), ("?", ""), ("a*c", "ab"), ("*_raw", "raw_x"), ("", "a")];
        assert!(!no.iter().any(|(pattern, name)| matches(pattern, name)));
    }
}
