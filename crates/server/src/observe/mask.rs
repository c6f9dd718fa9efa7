//! Keeps secrets out of log lines.

/// The text with tokens, bearer headers and the passwords of URLs replaced by `***`.
pub(crate) fn mask(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    // The next secret of each kind. Each kind looks at the text once, so that the time is linear in its length.
    let mut next: Vec<_> = KINDS.iter().map(|kind| kind.find(text, &lower, 0)).collect();
    let (mut masked, mut from) = (String::with_capacity(text.len()), 0);
    while let Some((begin, len)) = next.iter().flatten().min().copied() {
        masked.push_str(&text[from..begin]);
        masked.push_str("***");
        from = begin + len;
        for (kind, next) in KINDS.iter().zip(&mut next) {
            if next.is_some_and(|(begin, _)| begin < from) {
                *next = kind.find(text, &lower, from);
            }
        }
    }
    masked.push_str(&text[from..]);
    masked
}

/// A kind of secret.
enum Kind {
    /// A token after this word.
    Token(&'static str),
    /// The value after this name in a query.
    Query(&'static str),
    /// The user and password of `scheme://user:password@host`.
    Url,
}

const KINDS: [Kind; 8] = [
    Kind::Token("anb_"),
    Kind::Token("bearer "),
    Kind::Query("token="),
    Kind::Query("api_key="),
    Kind::Query("apikey="),
    Kind::Query("password="),
    Kind::Query("secret="),
    Kind::Url,
];

impl Kind {
    /// The start and the length of the first secret that begins after `from`, with the word before it.
    fn find(&self, text: &str, lower: &str, from: usize) -> Option<(usize, usize)> {
        match self {
            Kind::Token("anb_") => after(text, from, "anb_", is_token),
            Kind::Token(word) => after(lower, from, word, is_token),
            Kind::Query(name) => after(lower, from, name, is_value),
            Kind::Url => of_url(text, from),
        }
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~+/=".contains(&byte)
}

fn is_value(byte: u8) -> bool {
    !byte.is_ascii_whitespace() && !b"&\"'#,;)}]".contains(&byte)
}

/// The text that follows a word, if it has at least one byte.
fn after(text: &str, mut from: usize, word: &str, fits: fn(u8) -> bool) -> Option<(usize, usize)> {
    while let Some(at) = text.get(from..)?.find(word) {
        let begin = from + at + word.len();
        let len = text.as_bytes()[begin..].iter().take_while(|byte| fits(**byte)).count();
        if len > 0 {
            return Some((begin, len));
        }
        from = begin;
    }
    None
}

/// The user and password of a URL.
fn of_url(text: &str, mut from: usize) -> Option<(usize, usize)> {
    while let Some(at) = text.get(from..)?.find("://") {
        let begin = from + at + 3;
        let is_part = |byte: &u8| !byte.is_ascii_whitespace() && !b"/?#\"'<>`".contains(byte);
        let rest = &text.as_bytes()[begin..];
        let authority = &rest[..rest.iter().take_while(|byte| is_part(byte)).count()];
        // Text that is already masked stays.
        match authority.iter().rposition(|byte| *byte == b'@') {
            Some(len) if len > 0 && authority[..len] != *b"***" => return Some((begin, len)),
            _ => from = begin,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::mask;

    #[test]
    fn secrets_are_masked() {
        for (text, masked) in [
            ("plain text", "plain text"),
            ("token anb_AbC-1_z, and more", "token anb_***, and more"),
            ("Authorization: Bearer xyz.123", "Authorization: Bearer ***"),
            ("redis://reader:s3cr3t@cache:6380/0 failed", "redis://***@cache:6380/0 failed"),
            ("http://u:p@a/ and http://v:q@b/", "http://***@a/ and http://***@b/"),
            ("GET /x?Token=abc&b=1", "GET /x?Token=***&b=1"),
            ("anb_ alone, bearer of news", "anb_ alone, bearer *** news"),
            ("http://host/a@b", "http://host/a@b"),
        ] {
            assert_eq!(mask(text), masked, "{text}");
        }
    }

    /// Looking at the rest of the text again after each secret would take hours.
    #[test]
    fn many_secrets_of_a_long_text_are_masked() {
        let count = 100_000;
        assert_eq!(mask(&"token=a&".repeat(count)), "token=***&".repeat(count));
    }
}
