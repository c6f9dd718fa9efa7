//! A few rows, as readable records.

use std::fmt::Write as _;

use anabranch_value::Value;

use super::columns::shortened;
use super::escape::Html;
use crate::report::Sample;

/// Longer texts are folded.
const FOLDED: usize = 400;
/// Characters of a folded text that are shown.
const SHOWN: usize = 240;

/// The section with some rows.
pub(super) fn write(samples: &[Sample]) -> String {
    if samples.is_empty() {
        return String::new();
    }
    let mut html = String::from("<h2>Sample rows</h2>");
    for (at, sample) in samples.iter().enumerate() {
        let name =
            sample.name.as_ref().map_or_else(|| "a row".to_owned(), |name| format!("row {}", Html(name)));
        let open = if at == 0 { " open" } else { "" };
        write!(
            html,
            "<details class=\"record\"{open}><summary>{name}</summary>{}</details>",
            value(&sample.row, 0)
        )
        .expect("a String takes it all");
    }
    html
}

/// Levels of lists and maps that are laid out; deeper ones are JSON.
const MAX_DEPTH: usize = 4;

fn value(shown: &Value, depth: usize) -> String {
    match shown {
        Value::Null => "<span class=\"null\">null</span>".to_owned(),
        Value::Text(written) => text(written),
        Value::Map(map) if depth < MAX_DEPTH => {
            let mut html = String::from("<dl class=\"map\">");
            for (name, field) in map.iter() {
                write!(
                    html,
                    "<div><dt dir=\"auto\">{}</dt><dd>{}</dd></div>",
                    Html(name),
                    value(field, depth + 1)
                )
                .expect("a String takes it all");
            }
            html.push_str("</dl>");
            html
        }
        Value::List(items) if depth < MAX_DEPTH && items.iter().any(is_long) => {
            let items: String =
                items.iter().map(|item| format!("<li>{}</li>", value(item, depth + 1))).collect();
            format!("<ol>{items}</ol>")
        }
        other => text(&other.to_json()),
    }
}

/// True of values that need lines of their own.
fn is_long(value: &Value) -> bool {
    match value {
        Value::Text(text) => text.chars().count() > 30,
        Value::Map(_) | Value::List(_) => true,
        _ => false,
    }
}

fn text(text: &str) -> String {
    if text.chars().count() <= FOLDED {
        return format!("<p class=\"text\" dir=\"auto\">{}</p>", Html(text));
    }
    format!(
        "<details class=\"long\"><summary dir=\"auto\">{}</summary><p class=\"text\" dir=\"auto\">{}</p></details>",
        Html(&shortened(text, SHOWN)),
        Html(text)
    )
}
