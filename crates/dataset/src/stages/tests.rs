//! Steps against a naive model of them: rows in a list, changed step by step.

use std::sync::Arc;

use anabranch_template::Template;
use anabranch_value::Value;
use proptest::prelude::*;

use super::{StageRows, StepSetting, after_steps, child_id, gather, select};
use crate::column_type::ColumnType;
use crate::config::{SampleSize, SortKey, StepConfig, TemplateText};
use crate::output::Folder;
use crate::processor::{Table, TableColumn};

fn filter(source: &str) -> StepConfig {
    let template = Arc::new(Template::expression(source).unwrap());
    StepConfig::Filter { when: TemplateText { template, source: source.into(), place: "test".to_owned() } }
}

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|name| (*name).to_owned()).collect()
}

fn columns() -> Vec<(String, ColumnType)> {
    let list = || ColumnType::List(Box::new(ColumnType::Int));
    let types = [
        ("k", ColumnType::Int),
        ("t", ColumnType::Text),
        ("l", list()),
        ("m", list()),
        ("j", ColumnType::Json),
    ];
    types.map(|(name, column_type)| (name.to_owned(), column_type)).to_vec()
}

/// A value of each column.
fn row() -> impl Strategy<Value = [Value; 5]> {
    let list = || {
        let items = proptest::collection::vec(0..3_i64, 0..3)
            .prop_map(|items| Value::list(items.into_iter().map(Value::Int)));
        prop_oneof![1 => Just(Value::Null), 6 => items]
    };
    let number = prop_oneof![1 => Just(Value::Null), 5 => (0..4_i64).prop_map(Value::Int)];
    let text = prop_oneof![Just(Value::Null), Just("a".into()), Just("b".into())];
    let json = prop_oneof![Just(Value::Int(1)), Just(Value::map([("x", Value::Int(2))])), Just("1".into())];
    (number, text, list(), list(), json).prop_map(|(k, t, l, m, j)| [k, t, l, m, j])
}

fn step() -> impl Strategy<Value = StepConfig> {
    let sort = |column: &str, descending| SortKey { column: column.to_owned(), descending };
    prop_oneof![
        Just(filter("t == 'a'")),
        Just(filter("k and k > 1")),
        Just(StepConfig::Dedupe { by: names(&["t"]) }),
        Just(StepConfig::Dedupe { by: names(&["k", "l", "j"]) }),
        Just(StepConfig::Explode { columns: names(&["l"]) }),
        Just(StepConfig::Explode { columns: names(&["m"]) }),
        Just(StepConfig::Explode { columns: names(&["l", "m"]) }),
        (1..8_u64).prop_map(|rows| StepConfig::Sample { size: SampleSize::Rows(rows) }),
        (0.1..1.0_f64).prop_map(|share| StepConfig::Sample { size: SampleSize::Share(share) }),
        any::<bool>().prop_map(move |down| StepConfig::Sort { by: vec![sort("k", down)] }),
        any::<bool>().prop_map(move |down| StepConfig::Sort { by: vec![sort("t", down), sort("k", !down)] }),
    ]
}

/// No column is exploded twice, because the result is not a list.
fn steps() -> impl Strategy<Value = Vec<StepConfig>> {
    proptest::collection::vec(step(), 0..5).prop_map(|steps| {
        let mut exploded: Vec<String> = Vec::new();
        let mut is_fine = |step: &StepConfig| match step {
            StepConfig::Explode { columns } => {
                let is_new = columns.iter().all(|column| !exploded.contains(column));
                exploded.extend(columns.iter().filter(|_| is_new).cloned());
                is_new
            }
            _ => true,
        };
        steps.into_iter().filter(|step| is_fine(step)).collect()
    })
}

type Row = (u64, Vec<(String, Value)>);

fn get<'r>(row: &'r Row, name: &str) -> &'r Value {
    &row.1.iter().find(|(column, _)| column == name).unwrap().1
}

/// The rows after a step; `sample` is not modelled: it says which of the rows stay.
fn naive(rows: Vec<Row>, step: &StepConfig, stays: impl Fn(u64) -> bool) -> Vec<Row> {
    match step {
        StepConfig::Filter { when } => rows
            .into_iter()
            .filter(|row| match &*when.source {
                "t == 'a'" => get(row, "t").as_text() == Some("a"),
                _ => matches!(get(row, "k"), Value::Int(k) if *k > 1),
            })
            .collect(),
        StepConfig::Dedupe { by } => {
            let mut kept: Vec<Row> = Vec::new();
            for row in rows {
                let is_equal = |other: &&Row| by.iter().all(|name| get(other, name) == get(&row, name));
                if kept.iter().find(is_equal).is_none() {
                    kept.push(row);
                }
            }
            kept
        }
        StepConfig::Explode { columns } => {
            let mut made = Vec::new();
            for row in rows {
                let lists: Vec<&[Value]> =
                    columns.iter().map(|name| get(&row, name).as_list().unwrap_or_default()).collect();
                if lists.iter().any(|list| list.len() != lists[0].len()) {
                    continue;
                }
                for item in 0..lists[0].len() {
                    let mut child = (child_id(row.0, item as u32), row.1.clone());
                    for (name, list) in columns.iter().zip(&lists) {
                        child.1.iter_mut().find(|(column, _)| column == name).unwrap().1 = list[item].clone();
                    }
                    made.push(child);
                }
            }
            made
        }
        StepConfig::Sample { .. } => rows.into_iter().filter(|row| stays(row.0)).collect(),
        StepConfig::Sort { by } => {
            let mut sorted: Vec<Row> = Vec::new();
            for row in rows {
                // Behind the last row that does not come after it.
                let comes_after = |other: &Row| {
                    for key in by {
                        let (one, two) = (get(&row, &key.column), get(other, &key.column));
                        let rank = |value: &Value| match value {
                            Value::Null => (1, 0, String::new()),
                            Value::Int(int) => (0, *int, String::new()),
                            other => (0, 0, other.as_text().unwrap().to_owned()),
                        };
                        let (one, two) = (rank(one), rank(two));
                        if one != two {
                            return if one.0 != two.0 { one < two } else { (one < two) != key.descending };
                        }
                    }
                    false
                };
                let place = sorted.iter().position(comes_after).unwrap_or(sorted.len());
                sorted.insert(place, row);
            }
            sorted
        }
    }
}

fn table(rows: &[[Value; 5]]) -> Table {
    let column = |(number, (name, column_type)): (usize, (String, ColumnType))| TableColumn {
        name,
        column_type,
        values: rows.iter().map(|row| row[number].clone()).collect(),
    };
    let ids = (0..rows.len() as u64).map(|row| Some(row * 3)).collect();
    Table { ids, columns: columns().into_iter().enumerate().map(column).collect() }
}

fn rows_of(table: &Table) -> Vec<Row> {
    let row = |(row, id): (usize, &Option<u64>)| {
        let cells = table.columns.iter().map(|column| (column.name.clone(), column.values[row].clone()));
        (id.unwrap(), cells.collect())
    };
    table.ids.iter().enumerate().map(row).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn steps_do_what_a_naive_model_does(rows in proptest::collection::vec(row(), 0..12), steps in steps()) {
        let input = StageRows::in_memory(table(&rows));
        let mut expected = rows_of(&table(&rows));
        for number in 0..steps.len() {
            let setting = StepSetting { steps: &steps[..=number], seed: 7 };
            let selection = select(&input, setting).unwrap();
            let made = rows_of(&gather(&input, &selection, 0..selection.len()).unwrap());
            let stays = |id| made.iter().any(|row| row.0 == id);
            let before = expected.len();
            expected = naive(expected, &steps[number], stays);
            if let StepConfig::Sample { size } = steps[number] {
                let wanted = match size {
                    SampleSize::Rows(rows) => before.min(rows as usize),
                    SampleSize::Share(share) => (before as f64 * share).round() as usize,
                };
                prop_assert_eq!(made.len(), wanted);
            }
            prop_assert_eq!(&made, &expected);
            let report = &selection.reports[number];
            prop_assert_eq!((report.before, report.after), (before as u64, expected.len() as u64));
            // Every row that is gone has one fate.
            let gone = selection.fates.iter().filter(|fate| fate.step as usize == number);
            let left: Vec<u64> = gone
                .filter(|fate| !matches!(fate.fate, super::StepFate::Item { .. }))
                .map(|fate| fate.row)
                .collect();
            prop_assert!(left.iter().all(|row| expected.iter().all(|kept| kept.0 != *row)));
        }
    }
}

#[test]
fn rows_in_files_come_to_the_same_and_are_not_made_twice() {
    let path = std::env::temp_dir().join(format!("anabranch-steps-{}", std::process::id()));
    let folder = Folder::create(&path).unwrap();
    let rows: Vec<[Value; 5]> = (0..50)
        .map(|row| {
            let list = Value::list((0..row % 4).map(Value::Int));
            let json = if row % 2 == 0 { Value::map([("x", Value::Int(row))]) } else { "1".into() };
            [Value::Int(row * 7 % 10), "a".into(), list.clone(), list, json]
        })
        .collect();
    let whole = table(&rows);
    // No candidate of some groups was accepted: the first, one between others, and the last.
    for (group, (start, end)) in
        [(0, 0), (0, 8), (8, 16), (16, 16), (16, 40), (40, 50), (50, 50)].into_iter().enumerate()
    {
        folder.write_table("parquet-files", group as u64, &whole.slice(start..end), &[]).unwrap();
    }
    let steps = [
        StepConfig::Explode { columns: names(&["l", "m"]) },
        filter("k > 1"),
        StepConfig::Sort { by: vec![SortKey { column: "k".to_owned(), descending: true }] },
    ];
    let setting = StepSetting { steps: &steps, seed: 0 };
    let (after, reports) = after_steps(&folder, columns(), setting, 6).unwrap();
    let memory = StageRows::in_memory(whole);
    let selection = select(&memory, setting).unwrap();
    let expected = gather(&memory, &selection, 0..selection.len()).unwrap();
    assert_eq!(rows_of(&after.read(0..after.len()).unwrap()), rows_of(&expected));
    assert_eq!(reports, selection.reports);
    // A part that begins in one file and ends in another, and goes around the end.
    let part = after.read(4..after.len() + 2).unwrap();
    assert_eq!(rows_of(&part)[..3], rows_of(&expected)[4..7]);
    assert_eq!(part.columns[0].values.last(), expected.columns[0].values.get(1));
    assert_ne!(part.ids.last(), expected.ids.get(1), "a row that is used again has an id of its own");
    let written = std::fs::metadata(path.join("steps.json")).unwrap().modified().unwrap();
    let again = after_steps(&folder, columns(), setting, 6).unwrap().0;
    assert_eq!(again.ids, after.ids);
    assert_eq!(std::fs::metadata(path.join("steps.json")).unwrap().modified().unwrap(), written);
    std::fs::remove_dir_all(&path).unwrap();
}
