//! The report as one HTML page: no script, no request, everything in it.

mod columns;
mod course;
mod escape;
mod plot;
mod samples;
mod tables;

use std::fmt::Write as _;
use std::time::Duration;

use anabranch_dataset::output::BuildState;
use anabranch_text::duration;
use sha2::{Digest as _, Sha256};

use crate::number::grouped;
use crate::report::{Report, Section};
use escape::Html;
use plot::Ids;
use tables::{amount, figure};

const STYLE: &str = include_str!("page.css");

impl Report {
    /// The report as one page that needs nothing else: no script, no font, no image, no network.
    pub fn html(&self) -> String {
        let title = self.sections.first().map_or_else(|| "dataset".to_owned(), Section::title);
        let sheet = anabranch_text::palette::css() + STYLE;
        let style = data_encoding::BASE64.encode(&Sha256::digest(&sheet));
        let mut html = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{}: dataset report</title>\n<style>{sheet}</style>\n</head>\n<body>\n",
            Html(&title)
        );
        let mut ids = Ids::default();
        if self.sections.len() > 1 {
            html.push_str(&contents(&self.sections));
        }
        for (at, section) in self.sections.iter().enumerate() {
            html.push_str(&write(&mut ids, section, at));
        }
        html.push_str("</body>\n</html>\n");
        html
    }
}

/// Links to the stages.
fn contents(sections: &[Section]) -> String {
    let mut html = String::from("<nav aria-label=\"stages\"><ul>");
    for (at, section) in sections.iter().enumerate() {
        let name = section.stage.as_deref().unwrap_or("dataset");
        write!(html, "<li><a href=\"#s{at}\">{}</a></li>", Html(name)).expect("a String takes it all");
    }
    html.push_str("</ul></nav>\n");
    html
}

fn write(ids: &mut Ids, section: &Section, at: usize) -> String {
    let mut html = format!("<section class=\"dataset\" id=\"s{at}\" aria-labelledby=\"name{at}\">");
    html.push_str(&header(section, at));
    html.push_str(&tiles(section));
    html.push_str(&remarks(section));
    html.push_str(&tables::stages(section));
    html.push_str(&columns::judges(&section.columns));
    html.push_str(&columns::write(ids, &section.columns));
    html.push_str(&samples::write(&section.samples));
    html.push_str(&tables::errors(&section.errors));
    html.push_str(&course::write(ids, section));
    html.push_str(&tables::spend(&section.spent, !section.metadata.spent.is_empty()));
    if let Some(estimated) = &section.estimated {
        html.push_str(&tables::estimate(estimated, &section.spent));
    }
    html.push_str(&tables::inputs(section));
    html.push_str("</section>\n");
    html
}

fn header(section: &Section, at: usize) -> String {
    let metadata = &section.metadata;
    let kicker = section
        .stage
        .as_deref()
        .map_or_else(|| "Dataset report".to_owned(), |stage| format!("Stage {stage}"));
    let mut facts = vec![format!("seed <data class=\"seed\" value=\"{0}\">{0}</data>", metadata.seed)];
    let (done, all) = (metadata.num_completed_batches, metadata.total_num_batches);
    facts.push(match done == all {
        true => anabranch_text::count(all, "row group"),
        false => format!("{} of {} row groups", grouped(done), grouped(all)),
    });
    if metadata.retry_rounds > 0 {
        facts.push(format!("failed rows tried again {} times", metadata.retry_rounds));
    }
    if !metadata.anabranch_version.is_empty() {
        facts.push(format!("anabranch {}", Html(&metadata.anabranch_version)));
    }
    let name = if metadata.dataset_name.is_empty() { "dataset" } else { &metadata.dataset_name };
    format!(
        "<header class=\"top\"><p class=\"kicker\">{}</p><h1 id=\"name{at}\" dir=\"auto\">{}</h1>\
         <p class=\"facts\"><span class=\"state {state}\">{state}</span>{}</p></header>",
        Html(&kicker),
        Html(name),
        facts.join(" · "),
        state = section.state_name(),
    )
}

/// The numbers that a reader looks for first.
fn tiles(section: &Section) -> String {
    let (metadata, spent) = (&section.metadata, &section.spent);
    let mut html = String::from("<dl class=\"tiles\">");
    let mut tile = |name: &str, value: &str, below: &str| {
        write!(html, "<div><dt>{name}</dt><dd>{value}<small>{below}</small></dd></div>")
            .expect("a String takes it all");
    };
    let asked = format!("of {} asked for", figure("target_num_records", metadata.target_num_records));
    tile("rows", &figure("rows", section.rows), &asked);
    tile("dropped", &figure("dropped_num_records", metadata.dropped_num_records), "rows with a failed cell");
    let refused = metadata.rejected_num_records + metadata.surplus_num_records;
    if refused > 0 {
        let surplus = format!("{} more were surplus", grouped(metadata.surplus_num_records));
        tile("not accepted", &figure("rejected_num_records", metadata.rejected_num_records), &surplus);
    }
    let columns = match section.errors.groups.len() {
        0 => "every cell has its value",
        _ => "by column and class below",
    };
    tile("failed cells", &figure("failed_cells", section.errors.cells), columns);
    if spent.calls + spent.reused > 0 {
        let reused = format!("and {} reused replies", grouped(spent.reused));
        tile("calls", &grouped(spent.calls), &reused);
        let both = format!("{} in, {} out", grouped(spent.input_tokens), grouped(spent.output_tokens));
        tile("tokens", &grouped(spent.input_tokens + spent.output_tokens), &both);
    }
    if spent.cost.is_some() {
        let below =
            if spent.cost_is_partial { "at least: a model has no price" } else { "by the price table" };
        tile("cost", &amount("total_cost", spent.cost), below);
    }
    let time = section.elapsed_ms();
    if time > 0 {
        let runs = match section.timeline.starts.len() {
            0 | 1 => "from start to end".to_owned(),
            runs => format!("in {runs} runs"),
        };
        let shown = format!(
            "<data class=\"elapsed_ms\" value=\"{time}\">{}</data>",
            duration::format(Duration::from_millis(time))
        );
        tile("time", &shown, &runs);
    }
    html.push_str("</dl>");
    html
}

/// Facts that a reader must know before the figures.
fn remarks(section: &Section) -> String {
    let mut html = String::new();
    let metadata = &section.metadata;
    let has_ended = matches!(section.state, BuildState::Complete | BuildState::Stopped);
    if has_ended && section.rows != metadata.actual_num_records {
        write!(
            html,
            "<p class=\"remark\">The files have {} rows, but metadata.json says {}.</p>",
            grouped(section.rows),
            grouped(metadata.actual_num_records)
        )
        .expect("a String takes it all");
    }
    if section.state == BuildState::Running {
        html.push_str("<p class=\"remark\">The build is still running: the figures are those of the row groups on disk.</p>");
    }
    let is_exact = |column: &crate::ColumnStats| {
        column.distinct.is_none_or(|distinct| distinct.exact)
            && column.distribution.as_ref().is_none_or(|found| found.exact)
    };
    if !section.columns.iter().all(is_exact) {
        html.push_str(
            "<p class=\"note\">With so many rows some figures are estimates: quantiles and histograms \
             (ranks within 0.5%), and counts marked with ≈ (usually within 2%) or ≥. All others are exact.</p>",
        );
    }
    html
}
