//! Columns: a card per column, and the scores of judges.

use std::fmt::Write as _;

use anabranch_value::Value;

use super::escape::Html;
use super::plot::{Bar, Ids, bars, histogram, unit};
use crate::column::{ColumnStats, Distribution, Measure};
use crate::number::{grouped, percent, short};

/// The section on all columns.
pub(super) fn write(ids: &mut Ids, columns: &[ColumnStats]) -> String {
    if columns.is_empty() {
        return String::new();
    }
    let mut html = String::from("<h2>Columns</h2><div class=\"cards\">");
    for column in columns {
        html.push_str(&card(ids, column));
    }
    html.push_str("</div>");
    html
}

fn card(ids: &mut Ids, column: &ColumnStats) -> String {
    let wide = if column.fields.is_empty() { "" } else { " wide" };
    let mut html = format!("<article class=\"card{wide}\">{}", head(column, "h3"));
    html.push_str(&body(ids, column, &column.name));
    html.push_str("</article>");
    html
}

/// The name, the type and the counts of a column.
fn head(column: &ColumnStats, level: &str) -> String {
    let mut html = format!(
        "<header><{level} dir=\"auto\">{}</{level}><code class=\"type\">{}</code><p class=\"facts\">",
        Html(&column.name),
        Html(&shortened(&column.column_type, 120)),
    );
    let mut facts = Vec::new();
    if let Some(distinct) = column.distinct {
        let about = if distinct.exact { "" } else { "≈ " };
        facts.push(format!("{about}{} distinct", grouped(distinct.count)));
    }
    facts.push(match column.nulls {
        0 => "no nulls".to_owned(),
        nulls => format!("{} null ({})", grouped(nulls), percent(nulls, column.cells)),
    });
    html.push_str(&Html(&facts.join(" · ")).to_string());
    html.push_str("</p></header>");
    html
}

/// The plots of a column, or of a field of one.
fn body(ids: &mut Ids, column: &ColumnStats, path: &str) -> String {
    let filled = column.filled();
    if filled == 0 {
        return "<p class=\"muted\">no values</p>".to_owned();
    }
    if let Some(trues) = column.trues {
        let bar = |label: &str, count, class| Bar { label: label.to_owned(), count, class };
        let both = [bar("true", trues, "yes"), bar("false", filled - trues, "no")];
        return bars(&format!("Values of {path}"), &both, filled, false);
    }
    let mut html = match &column.distribution {
        _ if column.is_categorical() => categories(column, path),
        Some(found) if found.min == found.max => {
            format!("<p class=\"same\">{}</p>", all_same(found, column.measure))
        }
        Some(found) => histogram(ids, path, found, column.measure) + &quantiles(found, column.measure),
        None => String::new(),
    };
    let is_repeated = column.top.first().is_some_and(|top| top.count > 1);
    if !column.is_categorical() && column.measure == Measure::Characters && is_repeated {
        html.push_str("<details><summary>repeated values</summary>");
        html.push_str(&categories(column, path));
        html.push_str("</details>");
    }
    if !column.fields.is_empty() {
        html.push_str("<div class=\"fields\">");
        for field in &column.fields {
            let path = format!("{path}.{}", field.name);
            write!(
                html,
                "<section class=\"field\">{}{}</section>",
                head(field, "h4"),
                body(ids, field, &path)
            )
            .expect("a String takes it all");
        }
        html.push_str("</div>");
    }
    html
}

fn categories(column: &ColumnStats, path: &str) -> String {
    let filled = column.filled();
    let bar = |top: &crate::column::TopValue| Bar { label: label(&top.value), count: top.count, class: "" };
    let mut shown: Vec<Bar> = column.top.iter().map(bar).collect();
    let counted: u64 = shown.iter().map(|bar| bar.count).sum();
    if column.top_error == 0 && counted < filled {
        shown.push(Bar { label: "all others".to_owned(), count: filled - counted, class: "rest" });
    }
    bars(&format!("Most frequent values of {path}"), &shown, filled, column.top_error > 0)
}

fn label(value: &Value) -> String {
    match value {
        Value::Text(text) if text.is_empty() => "(empty)".to_owned(),
        Value::Text(text) => shortened(text, 80),
        other => other.to_json(),
    }
}

/// A text without its end, on one line.
pub(super) fn shortened(text: &str, most: usize) -> String {
    let line: String = text.chars().map(|letter| if letter.is_whitespace() { ' ' } else { letter }).collect();
    match line.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn all_same(found: &Distribution, measure: Measure) -> String {
    let number = short(found.min);
    match measure {
        Measure::Characters => format!("all have <strong>{number}</strong> characters"),
        Measure::Items => format!("all have <strong>{number}</strong> items"),
        Measure::Value | Measure::None => format!("all are <strong>{number}</strong>"),
    }
}

fn quantiles(found: &Distribution, measure: Measure) -> String {
    let about = if found.exact { "" } else { "≈ " };
    let numbers = [
        ("min", "", found.min),
        ("5%", about, found.p5),
        ("median", about, found.p50),
        ("mean", "", found.mean),
        ("95%", about, found.p95),
        ("max", "", found.max),
    ];
    let mut html = format!("<dl class=\"quantiles\" aria-label=\"quantiles{}\">", unit(measure));
    for (name, about, number) in numbers {
        write!(html, "<div><dt>{name}</dt><dd>{about}{}</dd></div>", short(number))
            .expect("a String takes it all");
    }
    html.push_str("</dl>");
    if measure != Measure::Value {
        write!(html, "<p class=\"unit\">{}</p>", unit(measure).trim().trim_matches(['(', ')']))
            .expect("a String takes it all");
    }
    html
}

/// The section on the scores of judges; empty if there is none.
pub(super) fn judges(columns: &[ColumnStats]) -> String {
    let mut cards = String::new();
    for column in columns {
        if column.is_judgement {
            cards.push_str(&judgement(&column.name, column));
        }
        for field in column.fields.iter().filter(|field| field.is_judgement) {
            cards.push_str(&judgement(&format!("{}: {}", column.name, field.name), field));
        }
    }
    match cards.is_empty() {
        true => cards,
        false => format!("<h2>Scores of judges</h2><div class=\"cards\">{cards}</div>"),
    }
}

fn judgement(name: &str, judged: &ColumnStats) -> String {
    let Some(score) = judged.fields.iter().find(|field| field.name == "score") else { return String::new() };
    let filled = score.filled();
    let mut top: Vec<_> = score.top.iter().collect();
    top.sort_by(|one, other| match (one.value.as_number(), other.value.as_number()) {
        (Some(one), Some(other)) => one.total_cmp(&other),
        _ => label(&one.value).cmp(&label(&other.value)),
    });
    let shown = top.iter().map(|top| Bar { label: label(&top.value), count: top.count, class: "score" });
    let mean = match (&score.distribution, score.measure) {
        (Some(found), Measure::Value) => {
            format!("<p class=\"mean\">{}<span>mean</span></p>", short(found.mean))
        }
        _ => String::new(),
    };
    format!(
        "<article class=\"card judge\"><header><h3 dir=\"auto\">{}</h3><p class=\"facts\">{} of {} rows scored</p></header>{mean}{}</article>",
        Html(name),
        grouped(filled),
        grouped(score.cells),
        bars(&format!("Scores of {name}"), &shown.collect::<Vec<_>>(), filled, score.top_error > 0)
    )
}
