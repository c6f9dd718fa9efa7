//! The rows that the plans read.

use std::fmt::Write as _;

/// How many users there are.
const USERS: i64 = 3_000;
const COUNTRIES: [&str; 3] = ["US", "CA", "GB"];

/// The user that all requests are of.
pub(super) const VIEWER: i64 = 1;

/// Users with a country; whom [`VIEWER`] follows, who is recommended to them, and ten media of each user: as a data file.
pub(super) fn json() -> String {
    let mut text = String::from("{\"hashes\":{");
    for user in 1..=USERS {
        let (comma, country) = (if user == 1 { "" } else { "," }, COUNTRIES[(user as usize - 1) % 3]);
        write!(text, "{comma}\"user:{user}\":{{\"id\":\"{user}\",\"country\":\"{country}\"}}").expect(GROWS);
    }
    text.push_str("},\"lists\":{");
    write!(text, "\"follow:{VIEWER}\":{:?},", (2..=1_001).collect::<Vec<i64>>()).expect(GROWS);
    write!(text, "\"recommendation:{VIEWER}\":{:?}", (1_002..=2_001).collect::<Vec<i64>>()).expect(GROWS);
    for user in 1..=USERS {
        let media: Vec<i64> = (1..=10).map(|number| user * 1_000 + number).collect();
        write!(text, ",\"media:{user}\":{media:?}").expect(GROWS);
    }
    text.push_str("}}");
    text
}

const GROWS: &str = "a string takes all that is written";
