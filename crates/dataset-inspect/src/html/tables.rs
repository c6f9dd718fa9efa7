//! Tables: spend, estimates, errors, inputs.

use std::fmt::Write as _;
use std::time::Duration;

use anabranch_dataset::Totals;
use anabranch_text::duration;

use super::escape::Html;
use crate::number::{grouped, money};
use crate::report::{BuildSpend, ColumnSpent, ErrorExample, ErrorSummary, PlanComparison, Section};

/// A number that a program can read back from the page.
pub(super) fn figure(field: &str, number: u64) -> String {
    format!("<data class=\"{field}\" value=\"{number}\">{}</data>", grouped(number))
}

/// An amount of money that a program can read back; a dash if there is none.
pub(super) fn amount(field: &str, cost: Option<f64>) -> String {
    match cost {
        Some(cost) => format!("<data class=\"{field}\" value=\"{cost}\">{}</data>", money(cost)),
        None => "<span class=\"muted\">–</span>".to_owned(),
    }
}

/// The section on calls, tokens and money.
pub(super) fn spend(spent: &BuildSpend, by_column: bool) -> String {
    if spent.lines.is_empty() {
        return String::new();
    }
    let head = if by_column { "column" } else { "alias" };
    let mut html = format!(
        "<h2>Calls, tokens and cost</h2><div class=\"scroll\"><table class=\"wide spend\"><thead><tr>\
         <th scope=\"col\">{head}</th><th scope=\"col\">model</th><th scope=\"col\" class=\"num\">calls</th>\
         <th scope=\"col\" class=\"num\">reused</th><th scope=\"col\" class=\"num\">tokens in</th>\
         <th scope=\"col\" class=\"num\">tokens out</th><th scope=\"col\" class=\"num\">time in calls</th>\
         <th scope=\"col\" class=\"num\">cost</th></tr></thead><tbody>"
    );
    for ColumnSpent { name, spend } in &spent.lines {
        write!(
            html,
            "<tr><th scope=\"row\" dir=\"auto\">{}</th><td>{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td>\
             <td class=\"num\">{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td></tr>",
            Html(name),
            Html(&spend.model),
            grouped(spend.calls),
            grouped(spend.reused),
            grouped(spend.input_tokens),
            grouped(spend.output_tokens),
            if spend.took_ms == 0 { "–".to_owned() } else { duration::format(Duration::from_millis(spend.took_ms)) },
            spend.cost.map_or_else(|| "–".to_owned(), money),
        )
        .expect("a String takes it all");
    }
    let took: u64 = spent.lines.iter().map(|line| line.spend.took_ms).sum();
    write!(
        html,
        "</tbody><tfoot><tr><th scope=\"row\">all</th><td></td><td class=\"num\">{}</td><td class=\"num\">{}</td>\
         <td class=\"num\">{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td><td class=\"num\">{}{}</td></tr></tfoot></table></div>",
        figure("calls", spent.calls),
        figure("reused", spent.reused),
        figure("input_tokens", spent.input_tokens),
        figure("output_tokens", spent.output_tokens),
        if took == 0 { "–".to_owned() } else { duration::format(Duration::from_millis(took)) },
        if spent.cost_is_partial && spent.cost.is_some() { "≥ " } else { "" },
        amount("cost", spent.cost),
    )
    .expect("a String takes it all");
    html.push_str(
        "<p class=\"note\">Reused replies came from the journal and were not paid for again. \
         Costs are in the currency of the price table.</p>",
    );
    html
}

/// The section that compares the saved plan with the build.
pub(super) fn estimate(estimated: &PlanComparison, spent: &BuildSpend) -> String {
    let mut html = String::from(
        "<h2>Estimated and actual</h2><div class=\"scroll\"><table class=\"wide estimate\"><thead><tr><th scope=\"col\">column</th>\
         <th scope=\"col\" class=\"num\">calls planned</th><th scope=\"col\" class=\"num\">made</th>\
         <th scope=\"col\" class=\"num\">tokens planned</th><th scope=\"col\" class=\"num\">used</th>\
         <th scope=\"col\" class=\"num\">cost planned</th><th scope=\"col\" class=\"num\">actual</th>\
         <th scope=\"col\" class=\"num\">time planned</th><th scope=\"col\" class=\"num\">actual</th>\
         <th scope=\"col\" class=\"num\">actual / planned</th></tr></thead><tbody>",
    );
    let dash = || "–".to_owned();
    for column in estimated.columns.iter().filter(|_| estimated.is_from_start) {
        let actual = spent.lines.iter().find(|line| line.name == column.name);
        let actual = actual.map(|line| line.spend.clone()).unwrap_or_default();
        let planned = Figures {
            calls: column.calls,
            tokens: column.input_tokens + column.output_tokens,
            cost: column.cost,
        };
        let actual = Figures {
            calls: actual.calls,
            tokens: actual.input_tokens + actual.output_tokens,
            cost: actual.cost,
        };
        html.push_str(&estimate_line(&column.name, &planned, &actual, [dash(), dash()]));
    }
    html.push_str("</tbody><tfoot>");
    let PlanComparison { planned, actual, .. } = estimated;
    let figures = |totals: &Totals| Figures {
        calls: totals.calls,
        tokens: totals.input_tokens + totals.output_tokens,
        cost: totals.cost,
    };
    let times =
        [planned, actual].map(|totals| duration::format(Duration::from_secs_f64(totals.seconds.max(0.0))));
    html.push_str(&estimate_line("all", &figures(planned), &figures(actual), times));
    html.push_str("</tfoot></table></div>");
    html
}

/// The part of a plan, or of a build, that a line shows.
struct Figures {
    calls: u64,
    tokens: u64,
    cost: Option<f64>,
}

fn estimate_line(name: &str, planned: &Figures, actual: &Figures, times: [String; 2]) -> String {
    let ratio = match (planned.cost, actual.cost) {
        (Some(planned), Some(actual)) if planned > 0.0 => format!("{:.2}", actual / planned),
        _ if planned.tokens > 0 => format!("{:.2}", actual.tokens as f64 / planned.tokens as f64),
        _ => "–".to_owned(),
    };
    let money = |cost: Option<f64>| cost.map_or_else(|| "–".to_owned(), money);
    let [planned_time, actual_time] = times;
    let cells = [
        grouped(planned.calls),
        grouped(actual.calls),
        grouped(planned.tokens),
        grouped(actual.tokens),
        money(planned.cost),
        money(actual.cost),
        planned_time,
        actual_time,
        ratio,
    ];
    let cells: String = cells.iter().map(|text| format!("<td class=\"num\">{text}</td>")).collect();
    format!("<tr><th scope=\"row\" dir=\"auto\">{}</th>{cells}</tr>", Html(name))
}

/// The section on failed cells.
pub(super) fn errors(errors: &ErrorSummary) -> String {
    if errors.groups.is_empty() {
        return String::new();
    }
    let mut html = String::from(
        "<h2>Errors</h2><div class=\"scroll\"><table class=\"wide errors\"><thead><tr><th scope=\"col\">column</th><th scope=\"col\">class</th>\
         <th scope=\"col\" class=\"num\">cells</th><th scope=\"col\" class=\"num\">rows dropped</th>\
         <th scope=\"col\" class=\"num\">most tries</th><th scope=\"col\">messages</th></tr></thead><tbody>",
    );
    for group in &errors.groups {
        let mut messages = group.examples.iter().map(|ErrorExample { row, message, .. }| {
            format!("<p dir=\"auto\"><span class=\"muted\">row {}:</span> {}</p>", Html(row), Html(message))
        });
        let first = messages.next().unwrap_or_default();
        let rest: String = messages.collect();
        let rest = match rest.is_empty() {
            true => rest,
            false => format!("<details><summary>other messages</summary>{rest}</details>"),
        };
        write!(
            html,
            "<tr><th scope=\"row\" dir=\"auto\">{}</th><td>{}</td><td class=\"num\">{}</td><td class=\"num\">{}</td>\
             <td class=\"num\">{}</td><td class=\"message\">{first}{rest}</td></tr>",
            Html(&group.column),
            Html(&group.class),
            grouped(group.cells),
            grouped(group.dropped),
            group.attempts,
        )
        .expect("a String takes it all");
    }
    html.push_str("</tbody></table></div>");
    html
}

/// The row counts of the stages; empty if there is only one stage.
pub(super) fn stages(section: &Section) -> String {
    let metadata = &section.metadata;
    if !section.has_stages() {
        return String::new();
    }
    let mut html = String::from(
        "<h2>From candidates to rows</h2><div class=\"scroll\"><table class=\"wide stages\"><thead><tr><th scope=\"col\">stage</th>\
         <th scope=\"col\" class=\"num\">generated</th><th scope=\"col\" class=\"num\">failed</th>\
         <th scope=\"col\" class=\"num\">not accepted</th><th scope=\"col\" class=\"num\">surplus</th>\
         <th scope=\"col\" class=\"num\">kept</th><th scope=\"col\">rows</th></tr></thead><tbody>",
    );
    let counts = metadata
        .stages
        .iter()
        .flat_map(|stage| stage.steps.iter().map(|step| step.after).chain([stage.candidates, stage.rows]));
    let most = counts.max().unwrap_or(0).max(1);
    let track = |count: u64| {
        let width = count as f64 / most as f64 * 100.0;
        format!(
            "<td class=\"track\"><svg width=\"100%\" height=\"14\" aria-hidden=\"true\">\
             <rect class=\"bar yes\" width=\"{width:.2}%\" height=\"14\" rx=\"2\"/></svg></td>"
        )
    };
    for stage in &metadata.stages {
        let name = if stage.name.is_empty() { "rows" } else { &stage.name };
        let counts = [stage.candidates, stage.dropped, stage.rejected, stage.surplus, stage.rows];
        let counts: String =
            counts.map(|count| format!("<td class=\"num\">{}</td>", grouped(count))).concat();
        write!(
            html,
            "<tr><th scope=\"row\" dir=\"auto\">{}</th>{counts}{}</tr>",
            Html(name),
            track(stage.rows)
        )
        .expect("a String takes it all");
        for step in &stage.steps {
            write!(
                html,
                "<tr class=\"step\"><th scope=\"row\" dir=\"auto\">then {}</th><td class=\"num\">{}</td><td></td><td></td><td></td>\
                 <td class=\"num\">{}</td>{}</tr>",
                Html(&step.step),
                grouped(step.before),
                grouped(step.after),
                track(step.after)
            )
            .expect("a String takes it all");
        }
    }
    html.push_str("</tbody></table></div>");
    html
}

/// The digests of everything that decides about the values.
pub(super) fn inputs(section: &Section) -> String {
    if section.metadata.inputs.is_empty() {
        return String::new();
    }
    let rows = section.metadata.inputs.iter().map(|(name, digest)| {
        format!("<tr><th scope=\"row\">{}</th><td><code>{}</code></td></tr>", Html(name), Html(digest))
    });
    format!(
        "<details class=\"inputs\"><summary>Inputs of the build</summary><div class=\"scroll\"><table><thead><tr>\
         <th scope=\"col\">input</th><th scope=\"col\">digest</th></tr></thead><tbody>{}</tbody></table></div></details>",
        rows.collect::<String>()
    )
}
