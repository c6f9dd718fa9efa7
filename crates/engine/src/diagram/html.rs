//! A diagram as a page.

use anabranch_text::palette;

use super::{Diagram, Table};
use crate::timeline::escape::{Markup, shorten};

pub(super) fn write(diagram: &Diagram, table: &Table) -> String {
    let cells = |cells: &[String], tag: &str| {
        let cell = |cell: &String| format!("<{tag}>{}</{tag}>", Markup(cell));
        format!("<tr>{}</tr>\n", cells.iter().map(cell).collect::<String>())
    };
    let rows: String = table.rows.iter().map(|row| cells(row, "td")).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n<style>{}{}{}</style>\n</head>\n\
         <body>\n<div class=\"wide\">{}</div>\n<table>\n{}{rows}</table>\n</body>\n</html>\n",
        Markup(&shorten(&diagram.title, 80)),
        palette::css(),
        include_str!("../timeline/page.css"),
        include_str!("page.css"),
        diagram.svg().trim_end(),
        cells(&table.head, "th"),
    )
}
