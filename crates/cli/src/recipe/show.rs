//! Formats values, sizes and facts, for people and as JSON.

use anabranch_content::Address;
use anabranch_recipe::Source;
use anabranch_text::{Plain, count};
use serde_json::{Value as Json, json};

use crate::failure::Failure;
use crate::out;
use crate::table::Table;

/// Writes JSON to stdout.
pub(super) fn json(value: &Json) -> Result<(), Failure> {
    out::data(&format!("{value:#}\n"))
}

/// Writes facts, one per line, as a table without a header. They have no control characters, because recipes and names
/// may be untrusted.
pub(super) fn facts(facts: &[(&str, String)]) -> Result<(), Failure> {
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let line =
        |(name, fact): &(&str, String)| format!("{}\n", Plain(format!("{name:<width$}  {fact}").trim_end()));
    out::data(&facts.iter().map(line).collect::<String>())
}

/// A name as one word of a command that a user may copy to a shell. It is quoted if a shell would read it otherwise.
pub(super) fn shell_word(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:@%+=,".contains(&byte);
    match !name.is_empty() && name.bytes().all(is_plain) {
        true => name.to_owned(),
        false => format!("'{}'", name.replace('\'', r"'\''")),
    }
}

/// Addresses as text.
pub(super) fn addresses(addresses: &[Address]) -> Vec<String> {
    addresses.iter().map(Address::to_string).collect()
}

/// Writes addresses to stdout, one per line.
pub(super) fn lines(addresses: &[Address]) -> Result<(), Failure> {
    out::data(&addresses.iter().map(|address| format!("{address}\n")).collect::<String>())
}

/// Warns about inputs that are neither blobs nor recipes yet.
pub(super) fn dangling(of: Option<&str>, addresses: &[Address]) {
    let of = of.map(|of| format!(" of `{of}`")).unwrap_or_default();
    addresses
        .iter()
        .for_each(|address| out::note(&format!("warning: input {address}{of} is not in the store yet")));
}

/// Writes a table, or the message `none` if it has no rows.
pub(super) fn table(table: &Table, rows: usize, none: &str) -> Result<(), Failure> {
    if rows == 0 {
        out::note(none);
        return Ok(());
    }
    out::data(&table.text(0))
}

/// Describes the origin of a value.
pub(super) fn source(source: Source) -> String {
    match source {
        Source::Blob => "a blob".to_owned(),
        Source::Memo => "remembered".to_owned(),
        Source::Computed(recipes) => format!("computed with {}", count(recipes, "recipe")),
    }
}

/// The origin of a value as JSON.
pub(super) fn source_json(source: Source) -> Json {
    match source {
        Source::Blob => json!({"source": "blob"}),
        Source::Memo => json!({"source": "memo"}),
        Source::Computed(count) => json!({"source": "computed", "computed": count}),
    }
}
