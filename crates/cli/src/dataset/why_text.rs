//! The history of a row as text.

use std::collections::HashMap;

use anabranch_dataset::config::{Column, Config};
use anabranch_dataset::output::Figures;
use anabranch_dataset::stages::StepFate;
use anabranch_dataset::{Answer, CallRequest, CellState, ForeseenCall, RecordedCall, TracedCell};
use anabranch_dataset_inspect::{RowPlace, StageStory, StepStory};
use anabranch_model::{ChatRequest, Role};
use anabranch_text::{Plain, count, duration, money, quote, utc};
use anabranch_value::Value;

use super::check;
use super::why::KnownRow;
use anabranch_dataset_inspect::grouped;

/// The most lines of a shortened text, and the most characters per line.
const LINES: usize = 6;
const LETTERS: usize = 200;

/// The history of a row, or of one of its columns.
pub(super) fn text(known: &KnownRow, column: Option<&str>, full: bool) -> String {
    let mut page = Page { text: String::new(), full };
    page.head(known);
    let mut shown: HashMap<String, Value> = HashMap::new();
    let mut has_cell = false;
    for story in &known.story.stages {
        if known.story.stages.len() > 1 || story.stage.is_some() {
            page.line(0, "");
            let name = story.stage.as_deref().unwrap_or_default();
            page.line(0, &format!("stage {}, row {}: {}", quote(name), story.row, place(known, story)));
        }
        for name in names(known, story) {
            let cell = known.cells.iter().find(|cell| is_of(cell, &name));
            let value = value_of(story, cell, &name);
            let is_new = value.as_ref().is_none_or(|value| shown.get(&name) != Some(value));
            if !is_new || column.is_some_and(|column| column != name) {
                continue;
            }
            page.cell(known, story, (&name, value.as_ref(), cell.filter(|_| !shown.contains_key(&name))));
            shown.extend(value.map(|value| (name, value)));
            has_cell = true;
        }
        page.steps(story);
    }
    if let Some(column) = column.filter(|_| !has_cell) {
        page.line(0, "");
        page.line(0, &format!("{column}: it was not made for this row"));
    }
    if !known.notes.is_empty() {
        page.line(0, "");
        known.notes.iter().for_each(|note| page.line(0, &format!("note: {note}")));
    }
    page.text
}

/// The columns of a row in a stage: first those of the files, then those that only the trace has.
pub(super) fn names(known: &KnownRow, story: &StageStory) -> Vec<String> {
    let mut names: Vec<String> = story.values.iter().map(|(name, _)| name.clone()).collect();
    let stage = number(known, story);
    let of_stage = |cell: &&TracedCell| {
        let column = known.config.as_ref().and_then(|config| column_named(config, &cell.column));
        column.map_or(0, |column| column.stage) == stage
    };
    // The condition of `accept` is a cell without a column.
    let has_column = |cell: &&TracedCell| {
        !cell.values.is_empty() || !cell.calls.is_empty() || cell.state != CellState::Computed
    };
    let traced =
        known.cells.iter().filter(of_stage).filter(has_column).flat_map(|cell| match &cell.values[..] {
            [] => vec![cell.column.clone()],
            values => values.iter().map(|(name, _)| name.clone()).collect(),
        });
    let errors = story.errors.iter().map(|error| error.column.clone());
    for name in traced.chain(errors) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

/// The index of a stage.
fn number(known: &KnownRow, story: &StageStory) -> usize {
    known.story.stages.iter().position(|other| std::ptr::eq(other, story)).unwrap_or(0)
}

pub(super) fn is_of(cell: &TracedCell, name: &str) -> bool {
    cell.column == name || cell.values.iter().any(|(other, _)| other == name)
}

/// The value in the files, or else the recomputed one.
pub(super) fn value_of(story: &StageStory, cell: Option<&TracedCell>, name: &str) -> Option<Value> {
    let find = |values: &[(String, Value)]| {
        values.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone())
    };
    find(&story.values).or_else(|| find(&cell?.values))
}

pub(super) fn column_named<'c>(config: &'c Config, name: &str) -> Option<&'c Column> {
    config.columns.iter().find(|column| column.name == name)
}

/// The kind of a column, in the words of the configuration.
pub(super) fn kind(config: Option<&Config>, name: &str) -> Option<&'static str> {
    let config = config?;
    if config.seed_columns.as_ref().is_some_and(|columns| columns.iter().any(|column| column == name)) {
        return Some("seed");
    }
    Some(check::kind(column_named(config, name)?))
}

/// Describes the location of a row.
fn place(known: &KnownRow, story: &StageStory) -> String {
    match &story.place {
        RowPlace::InFile { file, position, rows } => {
            format!("at position {} of {} in {}", position, rows, file.display())
        }
        RowPlace::Dropped => {
            let error = story.errors.iter().find(|error| !error.kept);
            let error = error.map_or_else(String::new, |error| format!(" {} failed", quote(&error.column)));
            format!("dropped, because{error}")
        }
        RowPlace::NotAccepted => {
            let stage = known.config.as_ref().and_then(|config| config.stages.get(number(known, story)));
            let accept = stage.and_then(|stage| stage.accept.as_ref()).map_or(&[][..], |accept| &accept.when);
            let conditions: Vec<String> = accept.iter().map(|when| quote(&when.source)).collect();
            format!("not accepted: `accept` was not met ({})", conditions.join(", ")).replace(" ()", "")
        }
        RowPlace::Absent => {
            "not in the files: the build did not come to it, or had enough rows before".to_owned()
        }
        RowPlace::NoSuchPart { row } => format!("there is no row {row}: no step took the row apart"),
    }
}

/// Describes the outcome of a row.
fn outcome_of(known: &KnownRow, last: &StageStory) -> String {
    let stage = quote(last.stage.as_deref().unwrap_or_default());
    match &last.steps {
        StepStory::Passed => place(known, last),
        StepStory::Dropped { step, .. } => format!("dropped by {step} behind the stage {stage}"),
        StepStory::Became { step, .. } => format!("taken apart by {step} behind the stage {stage}"),
        StepStory::NoSuchPart { row, .. } => format!("there is no row {row}"),
    }
}

/// Describes the effect of a step.
pub(super) fn fate(fate: &StepFate) -> String {
    match fate {
        StepFate::FilteredOut => "its condition was not met".to_owned(),
        StepFate::Duplicate(other) => format!("it has the same values as row {other}, which was kept"),
        StepFate::Empty => "there was no item to make a row of".to_owned(),
        StepFate::NotDrawn => "it was not drawn".to_owned(),
        StepFate::Failed(message) => message.clone(),
        StepFate::Item { parent, item } => format!("it is item {item} of row {parent}"),
    }
}

/// The text so far. It contains no control characters.
struct Page {
    text: String,
    full: bool,
}

impl Page {
    fn line(&mut self, indent: usize, line: &str) {
        let line = format!("{}{}", " ".repeat(indent), Plain(line));
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    /// Adds a text with a label, shortened unless the whole text is requested.
    fn labelled(&mut self, label: &str, text: &str) {
        const INDENT: usize = 2;
        const WIDTH: usize = 10;
        let lines: Vec<&str> = text.lines().collect();
        let most = if self.full { lines.len() } else { lines.len().min(LINES) };
        let mut left: usize = lines[most..].iter().map(|line| line.chars().count() + 1).sum();
        for (number, line) in lines[..most].iter().enumerate() {
            let label = if number == 0 { label } else { "" };
            let end = line.char_indices().nth(LETTERS).filter(|_| !self.full).map(|(end, _)| end);
            left += end.map_or(0, |end| line[end..].chars().count());
            let line = end.map_or(*line, |end| &line[..end]);
            self.line(INDENT, &format!("{label:<WIDTH$}{line}"));
        }
        if lines.is_empty() {
            self.line(INDENT, &format!("{label:<WIDTH$}(nothing)"));
        }
        if left > 0 {
            let more = format!("... {} more characters (--full)", grouped(left as u64));
            self.line(INDENT, &format!("{:<WIDTH$}{more}", ""));
        }
    }

    fn head(&mut self, known: &KnownRow) {
        let story = &known.story;
        let name =
            if story.metadata.dataset_name.is_empty() { "the dataset" } else { &story.metadata.dataset_name };
        let outcome = story.stages.last();
        let outcome = outcome.map_or_else(|| "not in the files".to_owned(), |last| outcome_of(known, last));
        let folder = known.folder.display();
        self.line(0, &format!("row {} of {name} ({folder}): {outcome}", story.row));
        if let Some(built) = &known.built {
            let demo = if built.demo { ", the demo model" } else { "" };
            let began = format!("{} UTC", utc(built.began_ms));
            let here = std::env::current_dir().unwrap_or_default();
            let config = built.config.strip_prefix(&here).unwrap_or(&built.config).display();
            self.line(0, &format!("built from {config}, seed {}{demo}, begun {began}", built.seed));
        }
    }

    fn cell(&mut self, known: &KnownRow, story: &StageStory, (name, value, cell): ShownCell<'_>) {
        let config = known.config.as_ref();
        let error = story.errors.iter().find(|error| error.column == name);
        let kind = kind(config, name);
        let calls = cell.filter(|cell| cell.column == name).map_or(&[][..], |cell| &cell.calls);
        let state = cell.map(|cell| cell.state);
        let is_plain = calls.is_empty() && error.is_none() && !matches!(state, Some(CellState::Skipped));
        let told = match (is_plain, value) {
            (true, Some(value)) => Some(value_text(value)),
            _ => None,
        };
        if let Some(told) = told.filter(|told| !told.contains('\n') && told.chars().count() < LETTERS) {
            let kind = kind.map_or_else(String::new, |kind| format!(" ({kind})"));
            self.line(0, "");
            return self.line(0, &format!("{name}{kind}: {told}"));
        }
        let model = cell.filter(|cell| cell.column == name).map_or_else(Vec::new, |cell| models(known, cell));
        let words: Vec<String> = kind.map(str::to_owned).into_iter().chain(model).collect();
        let words = if words.is_empty() { String::new() } else { format!(" ({})", words.join(", ")) };
        self.line(0, "");
        self.line(0, &format!("{name}{words}"));
        let alias = cell.and_then(|cell| cell.models.first());
        self.calls(known, alias.map(String::as_str), calls);
        if let Some(error) = error {
            let kept = if error.kept { "the row is kept" } else { "the row is dropped" };
            let tries = count(u64::from(error.attempts), "try").replace("trys", "tries");
            self.labelled("failed", &format!("{} after {tries}, {kept}: {}", error.class, error.message));
        }
        let note = cell.and_then(|cell| state_text(config, cell)).filter(|_| error.is_none());
        note.into_iter().for_each(|note| self.labelled("", &note));
        if let Some(value) = value.filter(|value| !is_last_answer(value, calls)) {
            self.labelled("value", &value_text(value));
        }
    }

    fn calls(&mut self, known: &KnownRow, alias: Option<&str>, calls: &[ForeseenCall]) {
        let mut before: Option<&ChatRequest> = None;
        for call in calls {
            match &call.asked {
                CallRequest::Chat(request) => {
                    self.asked(request, before);
                    before = Some(request);
                }
                CallRequest::Text(text) => self.labelled("embedded", text),
            }
            match &call.recorded {
                Some(recorded) => self.answered(known, alias, recorded),
                None => self.labelled("answered", "the journal has no reply to this request"),
            }
        }
    }

    /// Adds the messages of a request that the previous request of the conversation did not have.
    fn asked(&mut self, request: &ChatRequest, before: Option<&ChatRequest>) {
        let messages = &request.messages;
        let same = before.map_or(0, |before| {
            let pairs = before.messages.iter().zip(messages.iter());
            pairs.take_while(|(one, other)| one.role == other.role && one.text == other.text).count()
        });
        if same == messages.len() {
            return self.labelled("asked", &format!("the same once more (attempt {})", request.attempt + 1));
        }
        for message in &messages[same..] {
            let label = match message.role {
                Role::System => "system",
                Role::User => "asked",
                // The reply was already shown.
                Role::Assistant => continue,
            };
            self.labelled(label, &message.text);
        }
        let sampling = &request.sampling;
        let numbers = [
            ("temperature", sampling.temperature.map(|number| number.to_string())),
            ("top_p", sampling.top_p.map(|number| number.to_string())),
            ("max_tokens", sampling.max_tokens.map(|number| number.to_string())),
        ];
        let numbers: Vec<String> =
            numbers.into_iter().filter_map(|(name, number)| Some(format!("{name} {}", number?))).collect();
        if !numbers.is_empty() && before.is_none() {
            self.labelled("with", &numbers.join(", "));
        }
    }

    fn answered(&mut self, known: &KnownRow, alias: Option<&str>, recorded: &RecordedCall) {
        match &recorded.answer {
            Answer::Reply(reply) => {
                self.labelled("answered", &reply.text);
                if let Some(reasoning) = &reply.reasoning {
                    self.labelled("reasoning", reasoning);
                }
            }
            Answer::Refusal(message) => self.labelled("refused", message),
            Answer::Vector(dimensions) => self.labelled("answered", &count(*dimensions, "dimension")),
        }
        let usage = recorded.usage;
        let mut facts =
            vec![format!("{} tokens in, {} out", grouped(usage.input_tokens), grouped(usage.output_tokens))];
        facts.extend(recorded.took.map(|took| match took.as_millis() {
            0 => "took under 1 ms".to_owned(),
            _ => format!("took {}", duration::format(took)),
        }));
        facts.extend(cost(known, alias, recorded).map(money::format));
        facts.push(format!("recorded {} UTC", utc(recorded.at_ms)));
        facts.extend(paid_in_build(known, recorded).map(|paid| match paid {
            true => "paid for by this build".to_owned(),
            false => "paid for before this build, which reused it".to_owned(),
        }));
        self.labelled("", &facts.join(", "));
    }

    fn steps(&mut self, story: &StageStory) {
        let told = match &story.steps {
            StepStory::Passed => return,
            StepStory::Dropped { step, fate: found } => format!("{step} dropped the row: {}", fate(found)),
            StepStory::Became { step, rows } => format!("{step} took the row apart: {}", rows.join(", ")),
            StepStory::NoSuchPart { step, row, rows } => {
                format!("{step} took the row apart into {}; {row} is not among them", count(*rows, "row"))
            }
        };
        self.line(0, "");
        self.line(0, &told);
    }
}

/// A column, its value, and its cell.
type ShownCell<'a> = (&'a str, Option<&'a Value>, Option<&'a TracedCell>);

/// True if this build paid for a reply, false if it found it in the journal, `None` if that is unknown.
pub(super) fn paid_in_build(known: &KnownRow, recorded: &RecordedCall) -> Option<bool> {
    Some(recorded.at_ms >= known.built.as_ref()?.began_ms)
}

/// The cost of a reply; `None` if its model has no price.
pub(super) fn cost(known: &KnownRow, alias: Option<&str>, recorded: &RecordedCall) -> Option<f64> {
    let config = known.config.as_ref()?;
    let is_demo = known.built.as_ref().is_some_and(|built| built.demo);
    let model = config.models.iter().find(|model| Some(&*model.alias) == alias);
    let (provider, model) = match model {
        Some(model) if !is_demo => (&*model.provider, &*model.model),
        _ => ("demo", "demo"),
    };
    let usage = recorded.usage;
    let figures = Figures {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cached_tokens: usage.cached_tokens.unwrap_or(0),
        ..Figures::default()
    };
    config.prices.cost(alias?, provider, model, &figures)
}

/// The models of a cell, such as `writer: openai/gpt-4o-mini`.
pub(super) fn models(known: &KnownRow, cell: &TracedCell) -> Vec<String> {
    let is_demo = known.built.as_ref().is_some_and(|built| built.demo);
    let model = |alias: &String| {
        let configured = known.config.as_ref()?.models.iter().find(|model| model.alias == *alias);
        match configured {
            _ if is_demo => Some(format!("{alias}: the demo model")),
            Some(model) => Some(format!("{alias}: {}/{}", model.provider, model.model)),
            None => Some(alias.clone()),
        }
    };
    cell.models.iter().filter_map(model).collect()
}

/// Describes the state of a cell, unless its calls show it.
fn state_text(config: Option<&Config>, cell: &TracedCell) -> Option<String> {
    match cell.state {
        CellState::Computed | CellState::Reused | CellState::Failed | CellState::Lacking => None,
        CellState::Unknown => {
            let reads = cell.reads.iter().map(|name| quote(name)).collect::<Vec<_>>().join(", ");
            let reads = if reads.is_empty() { String::new() } else { format!(" It reads {reads}.") };
            Some(format!("How it was made is not known: it depends on a value or a program outside.{reads}"))
        }
        CellState::Skipped => {
            let skip = config.and_then(|config| column_named(config, &cell.column)?.skip.as_ref());
            Some(match skip {
                Some(skip) => format!("skipped: {}, or a column that it reads was skipped", skip.when.source),
                None => "skipped, because a column that it reads was skipped".to_owned(),
            })
        }
    }
}

/// Whether a value is the text of the last reply, which was already shown.
fn is_last_answer(value: &Value, calls: &[ForeseenCall]) -> bool {
    let last = calls.last().and_then(|call| call.recorded.as_ref());
    match (last.map(|recorded| &recorded.answer), value) {
        (Some(Answer::Reply(reply)), Value::Text(text)) => reply.text.trim() == &**text,
        _ => false,
    }
}

fn value_text(value: &Value) -> String {
    match value {
        Value::Text(text) => text.to_string(),
        other => other.to_json(),
    }
}
