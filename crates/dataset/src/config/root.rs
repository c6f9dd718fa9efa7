//! The root of the file, and the files that belong to it.

use anabranch_document::{Fields, Node, Notes, Tree};

use super::digest::digest;
use super::draft::Draft;
use super::{Environment, models, parse_root, prices, processors, seed, stages};

/// Reads all that a configuration says.
pub(super) fn read(
    run: &mut Draft,
    environment: Option<&Environment<'_>>,
    notes: &mut Notes<'_>,
) -> Option<()> {
    let root = parse_root(notes)?;
    let mut outer = notes.fields(&root, "a dataset configuration")?;
    let Some(inner) = outer.get("data_designer") else {
        // The shorthand: the root is the inner object.
        let mut fields = Fields::new(outer.table(), &root.at, "a dataset configuration");
        fields.ignore(&["library_version"]);
        return sections(fields, run, environment, notes);
    };
    outer.ignore(&["library_version"]);
    // Our own sections may also be outside of `data_designer`.
    let beside = [outer.get("providers"), outer.get("run")];
    prices::section(&mut outer, run, notes);
    outer.finish(notes);
    let fields = notes.fields(inner, "`data_designer`")?;
    let [providers, options] = beside;
    if let Some(node) = providers {
        models::providers(node, run, environment, notes);
    }
    if let Some(node) = options {
        run_options(node, run, notes);
    }
    sections(fields, run, environment, notes)
}

fn sections(
    mut fields: Fields<'_>,
    draft: &mut Draft,
    environment: Option<&Environment<'_>>,
    notes: &mut Notes<'_>,
) -> Option<()> {
    draft.digest = digest(fields.table());
    let columns = read_stages(&mut fields, draft, notes);
    if let Some(node) = fields.get("model_configs") {
        models::models(node, draft, notes);
    }
    if let Some(node) = fields.get("providers") {
        models::providers(node, draft, environment, notes);
    }
    prices::section(&mut fields, draft, notes);
    if let Some(node) = fields.get("run") {
        run_options(node, draft, notes);
    }
    if let Some(node) = fields.get("seed_config") {
        draft.has_seed = true;
        draft.seed = seed::seed(node, notes);
    }
    if let Some(node) = fields.get("constraints") {
        processors::constraints(node, draft, notes);
    }
    if let Some(node) = fields.get("processors") {
        processors::processors(node, draft, notes);
    }
    let is_empty = |node: &Node| matches!(&node.value, Tree::List(items) if items.is_empty());
    if let Some(node) = fields.get("tool_configs")
        && !is_empty(node)
    {
        let help = "take `tool_configs` away, or run the tools before and bring their results in as a seed";
        notes.note(&node.at, "tools (MCP) are not taken yet: a model call has no tools", help);
    }
    if let Some((key, node)) = fields.entry("profilers")
        && !node.value.is_null()
        && !is_empty(node)
    {
        notes.warn(
            &key.at,
            "`profilers` has no effect here",
            "the report of a build shows all columns by itself",
        );
    }
    if let Some(node) = columns
        && draft.columns.is_empty()
        && is_empty(node)
        && !draft.has_seed
    {
        notes.note(&node.at, "there is no column", "add one to `columns`, or a `seed_config`");
    }
    fields.finish(notes);
    Some(())
}

/// Reads the columns: of one stage, or of several in `stages`. Returns the node of a list that may be empty.
fn read_stages<'n>(fields: &mut Fields<'n>, draft: &mut Draft, notes: &mut Notes<'_>) -> Option<&'n Node> {
    let Some(several) = fields.get("stages") else {
        let columns = fields.need("columns", notes)?;
        stages::read_columns(columns, draft, notes);
        stages::stage(fields, "rows".to_owned(), draft, notes);
        return Some(columns);
    };
    for name in ["columns", "rows", "accept", "steps"] {
        if let Some((key, _)) = fields.entry(name) {
            let what = format!("`{name}` stands beside `stages`");
            notes.note(&key.at, what, "move it into one of the stages");
        }
    }
    stages::stages(several, draft, notes);
    None
}

fn run_options(node: &Node, draft: &mut Draft, notes: &mut Notes<'_>) {
    if let Some(fields) = notes.fields(node, "`run`") {
        draft.run.read(fields, notes);
    }
}

/// Reads a models file: `model_configs`, `providers`, `prices`, the `default` provider.
pub(super) fn models_file(
    draft: &mut Draft,
    environment: Option<&Environment<'_>>,
    notes: &mut Notes<'_>,
) -> Option<()> {
    let root = parse_root(notes)?;
    let mut fields = notes.fields(&root, "a models file")?;
    let (models, providers) = (fields.get("model_configs"), fields.get("providers"));
    if models.is_none() && providers.is_none() && fields.entry("model_configs").is_none() {
        notes.note(
            fields.at(),
            "the file has neither `model_configs` nor `providers`",
            "it needs one of them",
        );
    }
    if let Some(node) = models {
        models::models(node, draft, notes);
    }
    if let Some(node) = providers {
        models::providers(node, draft, environment, notes);
    }
    prices::section(&mut fields, draft, notes);
    draft.default_provider = fields.text("default", notes).map(str::to_owned);
    fields.finish(notes);
    Some(())
}

/// Reads a file of run options: a flat table, or one below `run`.
pub(super) fn run_file(draft: &mut Draft, notes: &mut Notes<'_>) -> Option<()> {
    let root = parse_root(notes)?;
    if root.value.is_null() {
        return Some(());
    }
    let mut fields = notes.fields(&root, "a file of run options")?;
    match fields.get("run") {
        Some(node) => {
            run_options(node, draft, notes);
            fields.finish(notes);
        }
        None => draft.run.read(Fields::new(fields.table(), &root.at, "a file of run options"), notes),
    }
    Some(())
}
