//! Plans and registries that never run out of time.

/// The texts before the number of a time limit, in TypeScript plans, JSON plans and registries.
const LIMITS: [&str; 7] = [
    "timeoutMs: ",
    "deadlineMs: ",
    "PATIENCE_MS = ",
    "connect_timeout_ms = ",
    "request_timeout_ms = ",
    "\"timeout_ms\": ",
    "\"deadline_ms\": ",
];

/// The text of a plan or a registry, with ten minutes in place of each time limit that is written out: for tests of
/// what comes of a plan when nothing is late, however busy the machine is.
pub fn patient(text: &str) -> String {
    LIMITS.iter().fold(text.to_owned(), |text, limit| {
        let mut parts = text.split(limit);
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, rest| {
            let number = rest.bytes().take_while(u8::is_ascii_digit).count();
            let time = if number > 0 { "600000" } else { "" };
            format!("{text}{limit}{time}{}", &rest[number..])
        })
    })
}

#[cfg(test)]
mod tests {
    use super::patient;

    #[test]
    fn each_time_limit_is_ten_minutes() {
        let text =
            "{ timeoutMs: 5, deadlineMs: LONG }\nconst PATIENCE_MS = 40;\nrequest_timeout_ms = 20\nport = 7";
        let expected = "{ timeoutMs: 600000, deadlineMs: LONG }\nconst PATIENCE_MS = 600000;\n\
            request_timeout_ms = 600000\nport = 7";
        assert_eq!(patient(text), expected);
    }
}
