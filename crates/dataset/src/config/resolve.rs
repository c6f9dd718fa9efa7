//! Names: each is defined once, and each that is read exists.

use anabranch_document::Notes;
use anabranch_engine::Dag;
use anabranch_text::{circle, quote};

use super::draft::{Draft, DraftColumn, Reference, Role};
use super::graph::{Names, Producer, REASONING, TRACE};
use super::template::place_of;
use super::types::{ColumnKind, ConstraintRhs};

/// The columns of the seed, as far as they are known.
pub(super) enum SeedNames {
    /// All of them.
    Known(Vec<String>),
    /// Any name may be one of them.
    Open,
}

/// The producer of each name. Duplicate names are reported.
pub(super) fn names(draft: &Draft, seed: &SeedNames, notes: &mut Notes<'_>) -> Names {
    let mut names = Names::default();
    for (number, column) in draft.columns.iter().enumerate() {
        if let Some(Producer::Column(first)) = names.add(&column.name, Producer::Column(number)) {
            let what = format!("column {} is there already", quote(&column.name));
            let help =
                format!("the first one is at {}; rename one of them", notes.place(&draft.columns[first].at));
            notes.note(&column.at, what, help);
        }
    }
    if let SeedNames::Known(seed) = seed {
        for (number, name) in seed.iter().enumerate() {
            if let Some(Producer::Column(column)) = names.add(name, Producer::Seed(number)) {
                let what = format!("the seed has a column {} as well", quote(name));
                notes.note(&draft.columns[column].at, what, "rename this one");
            }
        }
    }
    for (number, column) in draft.columns.iter().enumerate() {
        for name in &column.side_effects {
            if let Some(Producer::SideEffect(first)) = names.add(name, Producer::SideEffect(number)) {
                let first = &draft.columns[first];
                let what = format!("{} is filled by column {} as well", quote(name), quote(&first.name));
                let help = format!("that one is at {}; rename one of them", notes.place(&first.at));
                notes.note(&column.at, what, help);
            }
        }
    }
    names
}

/// Looks all references up, and finds columns that wait for each other. Returns the columns in their order of dependency.
pub(super) fn references(
    draft: &Draft,
    names: &Names,
    seed: &SeedNames,
    notes: &mut Notes<'_>,
) -> Vec<usize> {
    let is_open = matches!(seed, SeedNames::Open);
    let mut edges: Vec<Vec<usize>> = vec![Vec::new(); draft.columns.len()];
    for (number, column) in draft.columns.iter().enumerate() {
        for reference in &column.references {
            match names.get(&reference.name) {
                Some(producer) if producer.column() == Some(number) => own(column, reference, notes),
                Some(producer) => {
                    check_role(draft, (column, reference), producer, notes);
                    edges[number].extend(producer.column());
                }
                None if is_open => {}
                None => unknown(draft, reference, names, notes),
            }
        }
    }
    for found in &draft.constraints {
        let target = names.get(&found.constraint.target_column).and_then(Producer::column);
        if let (Some(target), ConstraintRhs::Column(name)) = (target, &found.constraint.rhs) {
            edges[target]
                .extend(names.get(name).and_then(Producer::column).filter(|column| *column != target));
        }
    }
    let processors = draft.processors.iter().flat_map(|processor| &processor.references);
    let stages = draft.stages.iter().flat_map(|stage| &stage.references);
    for reference in processors.chain(stages) {
        if names.get(&reference.name).is_none() && !is_open {
            unknown(draft, reference, names, notes);
        }
    }
    cycles(draft, &edges, notes)
}

fn field(role: Role) -> String {
    match role {
        Role::Template(field) | Role::Target(field) => format!("`{field}`"),
        Role::Skip => "`skip.when`".to_owned(),
        Role::Condition => "a condition of `conditional_params`".to_owned(),
        Role::Parent => "`category`".to_owned(),
        Role::Date => "`reference_column_name`".to_owned(),
    }
}

fn own(column: &DraftColumn, reference: &Reference, notes: &mut Notes<'_>) {
    let name = quote(&reference.name);
    let what = if reference.name == column.name {
        format!("{} reads {name}, the column itself", field(reference.role))
    } else {
        format!("{} reads {name}, which column {} fills itself", field(reference.role), quote(&column.name))
    };
    notes.note(
        &place_of(reference, notes),
        what,
        "it has no value before the column is filled; read another one",
    );
}

/// The conditions of samplers may read only samplers and the seed, because they are evaluated before anything else
/// exists.
fn check_role(
    draft: &Draft,
    (reader, reference): (&DraftColumn, &Reference),
    producer: Producer,
    notes: &mut Notes<'_>,
) {
    let Some(column) = producer.column().map(|column| &draft.columns[column]) else { return };
    if column.written_stage < reader.written_stage {
        return;
    }
    let is_sampler =
        column.column.as_ref().is_none_or(|column| matches!(column.kind, ColumnKind::Sampler(_)));
    if reference.role == Role::Condition && !is_sampler {
        let what =
            format!("a condition of a sampler reads {}, which is not a sampler", quote(&reference.name));
        let help = "samplers come first; conditions read samplers and columns of the seed";
        notes.note(&place_of(reference, notes), what, help);
    }
}

fn unknown(draft: &Draft, reference: &Reference, names: &Names, notes: &mut Notes<'_>) {
    let name = reference.name.as_str();
    let find = |name: &str| draft.columns.iter().find(|column| column.name == name);
    let mut help = None;
    for (ending, setting) in
        [(TRACE, "with_trace: all_messages"), (REASONING, "extract_reasoning_content: true")]
    {
        let Some(column) = name.strip_suffix(ending).and_then(find) else { continue };
        match &column.column {
            // The side effects of an invalid column are unknown.
            None => return,
            Some(found) if matches!(found.kind, ColumnKind::Llm(_)) => {
                help = Some(format!("set `{setting}` on column {}", quote(&column.name)));
            }
            Some(_) => help = Some(format!("column {} is not filled by a model call", quote(&column.name))),
        }
    }
    if notes.is_full() {
        notes.hint(&reference.at, "", None);
        return;
    }
    let help = help.or_else(|| notes.did_you_mean(name, names.all()));
    let what = format!("{} reads {}, which is not a column", field(reference.role), quote(name));
    let help = help.or_else(|| {
        let mut known: Vec<&str> = names.all().collect();
        known.sort_unstable();
        (known.len() <= 12 && !known.is_empty()).then(|| format!("columns are {}", known.join(", ")))
    });
    notes.hint(&place_of(reference, notes), what, help);
}

fn cycles(draft: &Draft, edges: &[Vec<usize>], notes: &mut Notes<'_>) -> Vec<usize> {
    let column = |place: &usize| &draft.columns[*place];
    Dag::sort(edges, |places| {
        let what = format!(
            "columns wait for each other: {}",
            circle(places.iter().map(|place| column(place).name.as_str()), "reads")
        );
        let others: Vec<String> = places[1..]
            .iter()
            .take(8)
            .map(|place| format!("{} is at {}", quote(&column(place).name), notes.place(&column(place).at)))
            .collect();
        let help = format!("take one of these references away; {}", others.join(", "));
        notes.note(&column(&places[0]).at, what, help);
    })
}
