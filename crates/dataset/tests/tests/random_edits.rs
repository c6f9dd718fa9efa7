//! Random edits of random configurations: a build pays for the requests that were never paid for, and for no others.

use std::collections::HashSet;

use anabranch_dataset::BuildOptions;
use proptest::prelude::*;

use crate::resume::{Case, CountingModel};

/// A column of a random configuration. Names are numbers, so that a rename is another number.
#[derive(Clone, Debug)]
enum RandomColumn {
    Category { values: usize },
    Text { prompt: usize, reads: Vec<usize> },
    Structured { prompt: usize, reads: Vec<usize> },
}

#[derive(Clone, Debug)]
enum Edit {
    Prompt {
        column: usize,
        prompt: usize,
    },
    Add {
        place: usize,
        column: RandomColumn,
    },
    Remove {
        column: usize,
    },
    Move {
        from: usize,
        to: usize,
    },
    /// Puts a letter in front of all names.
    Rename,
    Back,
}

/// The columns by their numbers, which stay while columns move.
#[derive(Clone, Debug, Default)]
struct RandomConfig {
    columns: Vec<(usize, RandomColumn)>,
    renames: usize,
    next: usize,
}

impl RandomConfig {
    fn add(&mut self, place: usize, column: RandomColumn) {
        let place = place % (self.columns.len() + 1);
        self.columns.insert(place, (self.next, column));
        self.next += 1;
    }

    fn apply(&mut self, edit: &Edit) {
        let count = self.columns.len();
        match edit {
            Edit::Prompt { column, prompt: new } => {
                if let Some((
                    _,
                    RandomColumn::Text { prompt, .. } | RandomColumn::Structured { prompt, .. },
                )) = self.columns.get_mut(column % count)
                {
                    *prompt = *new;
                }
            }
            Edit::Add { place, column } => self.add(*place, column.clone()),
            Edit::Remove { column } if count > 1 => drop(self.columns.remove(column % count)),
            Edit::Move { from, to } => {
                let moved = self.columns.remove(from % count);
                self.columns.insert(to % count, moved);
            }
            Edit::Rename => self.renames += 1,
            Edit::Remove { .. } | Edit::Back => {}
        }
    }

    fn name(&self, number: usize) -> String {
        format!("{}c{number}", "r".repeat(self.renames))
    }

    /// A column reads columns that were made before it, so that there is no circle.
    fn prompt(&self, number: usize, prompt: usize, reads: &[usize]) -> String {
        let older: Vec<usize> =
            self.columns.iter().map(|(other, _)| *other).filter(|other| *other < number).collect();
        let mut text = format!("Prompt {prompt}");
        if !older.is_empty() {
            reads
                .iter()
                .for_each(|read| text += &format!(" {{{{ {} }}}}", self.name(older[read % older.len()])));
        }
        text
    }

    fn yaml(&self) -> String {
        let mut text = "columns:\n".to_owned();
        for (number, column) in &self.columns {
            let name = self.name(*number);
            text += &match column {
                RandomColumn::Category { values } => {
                    let values: Vec<String> = (0..=*values).map(|value| format!("v{value}")).collect();
                    let values = values.join(", ");
                    format!(
                        "  - {{name: {name}, column_type: sampler, sampler_type: category, params: {{values: [{values}]}}}}\n"
                    )
                }
                RandomColumn::Text { prompt, reads } => {
                    let prompt = self.prompt(*number, *prompt, reads);
                    format!(
                        "  - {{name: {name}, column_type: llm-text, model_alias: m, prompt: '{prompt}'}}\n"
                    )
                }
                RandomColumn::Structured { prompt, reads } => {
                    let prompt = self.prompt(*number, *prompt, reads);
                    format!(
                        "  - {{name: {name}, column_type: llm-structured, model_alias: m, prompt: '{prompt}', \
                         output_format: {{type: object, properties: {{x: {{type: integer}}}}, required: [x]}}}}\n"
                    )
                }
            };
        }
        text
    }
}

fn column() -> impl Strategy<Value = RandomColumn> {
    let reads = || prop::collection::vec(0..6usize, 0..3);
    prop_oneof![
        (0..4usize).prop_map(|values| RandomColumn::Category { values }),
        (0..3usize, reads()).prop_map(|(prompt, reads)| RandomColumn::Text { prompt, reads }),
        (0..3usize, reads()).prop_map(|(prompt, reads)| RandomColumn::Structured { prompt, reads }),
    ]
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        (0..9usize, 0..4usize).prop_map(|(column, prompt)| Edit::Prompt { column, prompt }),
        (0..9usize, column()).prop_map(|(place, column)| Edit::Add { place, column }),
        (0..9usize).prop_map(|column| Edit::Remove { column }),
        (0..9usize, 0..9usize).prop_map(|(from, to)| Edit::Move { from, to }),
        Just(Edit::Rename),
        Just(Edit::Back),
    ]
}

/// Answers few texts, so that edited prompts come out equal now and then. Of three structured replies, one does not fit at
/// first.
fn model() -> CountingModel {
    CountingModel::new(|request| {
        let prompt = &request.messages.last().unwrap().text;
        let digest = blake3::hash(prompt.as_bytes()).as_bytes()[0];
        let is_misfit = request.format.is_some() && digest.is_multiple_of(3) && request.attempt == 0;
        Ok(match (&request.format, is_misfit) {
            (_, true) => "no".to_owned(),
            (Some(_), false) => format!("{{\"x\": {}}}", digest % 4),
            (None, false) => format!("reply {}", digest % 4),
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn a_build_pays_for_requests_that_were_never_paid_for(
        columns in prop::collection::vec(column(), 1..6),
        edits in prop::collection::vec(edit(), 1..6),
        number in any::<u32>(),
    ) {
        const ROWS: u64 = 7;
        let mut config = RandomConfig::default();
        columns.into_iter().for_each(|column| config.add(usize::MAX - 1, column));
        let case = Case::new(&format!("random_edits_{number}"), &config.yaml(), model());
        let first = config.clone();
        let mut paid: HashSet<(String, u64, u32)> = HashSet::new();
        let mut versions = vec![(config.clone(), None)];
        versions.extend(edits.iter().map(|edit| {
            if matches!(edit, Edit::Back) { config = first.clone() } else { config.apply(edit) }
            (config.clone(), Some(edit))
        }));
        let folder = case.folder.clone();
        for (version, edit) in versions {
            let text = version.yaml();
            case.configure(&text);
            let report = case.build(BuildOptions { replace: true, ..case.options(ROWS) });
            prop_assert_eq!(report.unwrap().rows, ROWS);
            let asked = std::mem::take(&mut *case.model.asked.lock().unwrap());
            let calls = asked.len();
            for request in asked {
                prop_assert!(paid.insert(request.clone()), "{:?} was paid for twice by {:?} in\n{}", request, edit, text);
            }
            if matches!(edit, Some(Edit::Rename | Edit::Back)) {
                prop_assert_eq!(calls, 0, "{:?} in\n{}", edit, text);
            }
            // The files hold what the journal does.
            let rows = case.rows();
            case.build(BuildOptions { replace: true, ..case.options(ROWS) }).unwrap();
            prop_assert_eq!((case.rows(), case.model.calls()), (rows, 0));
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
