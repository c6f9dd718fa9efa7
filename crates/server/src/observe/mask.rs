//! Keeps secrets out of log lines.

/// The text with tokens, bearer headers and the passwords of URLs replaced by `***`.
pub(crate) fn mask(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, secret)) = first_secret(rest) {
        masked.push_str(&rest[..at]);
        masked.push_str("***");
        rest = &rest[at + secret..];
    }
    masked.push_str(rest);
    masked
}

/// The start and the length of the first secret.
fn first_secret(text: &str) -> Option<(usize, usize)> {
    let found = [after(text, "anb_", is_token), after_word(text, "bearer "), of_query(text), of_url(text)];
    found.into_iter().flatten().min()
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~+/=".contains(&byte)
}

/// The text that follows a word, if it has at least one byte.
fn after(text: &str, word: &str, fits: impl Fn(u8) -> bool) -> Option<(usize, usize)> {
    let mut from = 0;
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

fn after_word(text: &str, word: &str) -> Option<(usize, usize)> {
    after(&text.to_ascii_lowercase(), word, is_token)
}

/// `token=...` and the like, in queries.
fn of_query(text: &str) -> Option<(usize, usize)> {
    let lower = text.to_ascii_lowercase();
    let fits = |byte: u8| !byte.is_ascii_whitespace() && !b"&\"'#,;)}]".contains(&byte);
    let names = ["token=", "api_key=", "apikey=", "password=", "secret="];
    names.into_iter().filter_map(|name| after(&lower, name, fits)).min()
}

/// The user and password of `scheme://user:password@host`.
fn of_url(text: &str) -> Option<(usize, usize)> {
    let mut from = 0;
    while let Some(at) = text.get(from..)?.find("://") {
        let begin = from + at + 3;
        let is_part = |byte: &u8| !byte.is_ascii_whitespace() && !b"/?#\"'<>`".contains(byte);
        let authority =
            text.as_bytes()[begin..].iter().copied().take_while(|byte| is_part(byte)).collect::<Vec<_>>();
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
}
