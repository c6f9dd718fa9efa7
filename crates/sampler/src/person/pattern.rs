//! Numbers by pattern, and names as the ASCII of a mail address.

use crate::stream::Stream;

/// Letters that are hard to mistake for others.
const LETTERS: &[u8] = b"ABDEFGHJLNPQRSTUWXYZ";

/// Fills `#` with a digit, `%` with one from 1 to 9, `@` with a letter and `{name}` with a variable.
pub(crate) fn fill(pattern: &str, variables: &[(&str, &str)], stream: &mut Stream) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(next) = rest.chars().next() {
        let after = &rest[next.len_utf8()..];
        rest = after;
        match next {
            '#' => out.push(char::from(b'0' + stream.below(10) as u8)),
            '%' => out.push(char::from(b'1' + stream.below(9) as u8)),
            '@' => out.push(char::from(*stream.pick(LETTERS))),
            '{' => {
                let (name, tail) = after.split_once('}').unwrap_or((after, ""));
                out.push_str(
                    variables.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value),
                );
                rest = tail;
            }
            other => out.push(other),
        }
    }
    out
}

/// The name in lower-case ASCII letters alone.
pub(crate) fn ascii(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for letter in name.chars().flat_map(char::to_lowercase) {
        let folded = match letter {
            'a'..='z' => {
                out.push(letter);
                continue;
            }
            'à'..='å' | 'ā' | 'ă' | 'ą' => "a",
            'æ' => "ae",
            'ç' | 'ć' | 'č' => "c",
            'ď' | 'đ' | 'ð' => "d",
            'è'..='ë' | 'ē' | 'ė' | 'ę' | 'ě' => "e",
            'ğ' => "g",
            'ì'..='ï' | 'ı' | 'ī' => "i",
            'ł' => "l",
            'ñ' | 'ń' | 'ň' => "n",
            'ò'..='ö' | 'ø' | 'ō' | 'ő' => "o",
            'œ' => "oe",
            'ř' => "r",
            'ś' | 'ş' | 'š' | 'ș' => "s",
            'ß' => "ss",
            'ț' | 'ť' => "t",
            'ù'..='ü' | 'ū' | 'ů' | 'ű' => "u",
            'ý' | 'ÿ' => "y",
            'ź' | 'ż' | 'ž' => "z",
            _ => "",
        };
        out.push_str(folded);
    }
    out
}
