//! Rows: nothing vanishes, and one bad row never costs another.

use anabranch_dataset::config::OnRowError;
use anabranch_dataset::generator::{Cells, Contract, Grain, Output, Row, Rows, Work};
use anabranch_dataset::{BuildOptions, ColumnSettings, ColumnType, Dataset, Error, Fault, Generator};
use anabranch_testkit::Sim;
use anabranch_value::Value;
use expect_test::expect;

use crate::kit::{Log, ScriptedColumn, dataset, engine, scratch, shown, without_journal};

/// DataDesigner loses 100 of 200 rows when 4 cells before a full-column step fail.
#[test]
fn four_bad_cells_cost_four_rows() {
    let sim = Sim::new(1);
    let (engine, log) = (engine(&sim), Log::new(&sim));
    let columns = vec![
        ScriptedColumn::cell("a", &[], &log).fails_on(|row| row % 50 == 7),
        ScriptedColumn::batch("checked", &["a"], &log),
        ScriptedColumn::cell("b", &["checked"], &log),
    ];
    let mut dataset = dataset(&engine, columns);
    dataset.run_options().buffer_size = 100;
    let options =
        BuildOptions { rows: 200, out: scratch("four_bad_cells"), replace: false, ..without_journal() };
    let report = sim.block_on(async { dataset.build(options).await.unwrap().run().await.unwrap() });
    assert_eq!((report.rows, report.dropped, report.error_count), (196, 4, 4));
    assert!(log.has("checked of group 0 starts with 98"));
    assert_eq!(report.errors[0].row, 7);
}

/// A steady rate of permanent errors costs those rows: DataDesigner's window of ten ends the build.
#[test]
fn a_fifth_of_bad_rows_costs_a_fifth() {
    let sim = Sim::new(1);
    let (engine, log) = (engine(&sim), Log::new(&sim));
    let columns = vec![ScriptedColumn::cell("a", &[], &log).fails_on(|row| row % 5 == 0)];
    let preview = sim.block_on(dataset(&engine, columns).preview(1000).unwrap().preview()).unwrap();
    assert_eq!((preview.rows.ids.len(), preview.errors.len()), (800, 200));
}

#[test]
fn a_column_may_keep_rows_or_end_the_build() {
    let sim = Sim::new(1);
    let (engine, log) = (engine(&sim), Log::new(&sim));
    let mut keeps = Dataset::new("test", &engine);
    let keep = ColumnSettings { on_error: OnRowError::KeepNull, ..ColumnSettings::default() };
    keeps.column(ScriptedColumn::cell("a", &[], &log).fails_on(|row| row == 1), keep.clone());
    keeps.column(ScriptedColumn::batch("b", &["a"], &log).fails_on(|row| row == 0), keep);
    keeps.column(ScriptedColumn::cell("c", &["b"], &log), ColumnSettings::default());
    let preview = sim.block_on(keeps.preview(2).unwrap().preview()).unwrap();
    expect![[r#"
        {"a":"a0()","b":null,"c":"c0(-)"}
        {"a":null,"b":"b1(-)","c":"c1(b1(-))"}
        row 0 column b: bad_request after 1: row 0 is bad, row kept
        row 1 column a: bad_request after 1: row 1 is bad, row kept"#]]
    .assert_eq(&shown(&preview));

    for batch in [false, true] {
        let mut fails = Dataset::new("test", &engine);
        let column =
            if batch { ScriptedColumn::batch("a", &[], &log) } else { ScriptedColumn::cell("a", &[], &log) };
        let settings = ColumnSettings { on_error: OnRowError::FailRun, ..ColumnSettings::default() };
        fails.column(column.fails_on(|row| row == 1), settings);
        let error = sim.block_on(fails.preview(2).unwrap().preview()).unwrap_err();
        let place = if batch { "" } else { ", row 1" };
        assert_eq!(error.to_string(), format!("column `a`{place}: bad_request: row 1 is bad"));
    }
}

/// A generator that does what no generator should.
struct BrokenGenerator(Contract, fn(u64) -> Result<Cells, Fault>);

fn broken(grain: Grain, answer: fn(u64) -> Result<Cells, Fault>) -> BrokenGenerator {
    let fills = vec![Output { name: "x".to_owned(), column_type: ColumnType::Int }];
    BrokenGenerator(Contract { grain, reads: Vec::new(), fills, stateful: false }, answer)
}

impl Generator for BrokenGenerator {
    fn contract(&self) -> &Contract {
        &self.0
    }

    fn cell(&self, row: Row<'_>) -> Work<Cells> {
        let (answer, id) = (self.1, row.id);
        Work::blocking(move |_| answer(id))
    }

    fn batch(&self, rows: Rows) -> Work<Vec<Result<Cells, Fault>>> {
        Work::Ready(Ok(rows.ids.iter().skip(1).map(|id| (self.1)(*id)).collect()))
    }
}

#[test]
fn what_a_broken_generator_does_stays_in_its_rows() {
    let sim = Sim::new(1);
    let engine = engine(&sim);
    let run = |grain, answer| {
        let mut dataset = Dataset::new("test", &engine);
        dataset.column(broken(grain, answer), ColumnSettings::default());
        shown(&sim.block_on(dataset.preview(5).unwrap().preview()).unwrap())
    };
    let cells = run(Grain::Cell, |row| match row {
        0 => panic!("boom"),
        1 => Ok(Cells::new()),
        2 => Ok([Value::from("text")].into_iter().collect()),
        3 => Ok([Value::Float(3.0)].into_iter().collect()),
        _ => Ok([Value::Int(4)].into_iter().collect()),
    });
    expect![[r#"
        {"x":3}
        {"x":4}
        row 0 column x: panic after 1: panicked: boom
        row 1 column x: internal after 1: the generator gave 0 values for 1 columns
        row 2 column x: type after 1: column `x`: expected a whole number, found text"#]]
    .assert_eq(&cells);
    let batch = run(Grain::Batch, |_| Ok([Value::Int(4)].into_iter().collect()));
    assert_eq!(batch.lines().count(), 5);
    assert!(
        batch.starts_with("row 0 column x: internal after 1: the generator gave 4 results for 5 rows"),
        "{batch}"
    );
}

#[test]
fn columns_that_nothing_fills_or_that_wait_for_each_other_are_refused() {
    let sim = Sim::new(1);
    let (engine, log) = (engine(&sim), Log::new(&sim));
    let refused = |columns| match dataset(&engine, columns).preview(1) {
        Err(Error::Setup(what)) => what,
        _ => panic!("it was taken"),
    };
    let unknown = refused(vec![ScriptedColumn::cell("a", &["b"], &log)]);
    assert_eq!(unknown, "column `a` reads `b`, which nothing fills");
    let twice = refused(vec![ScriptedColumn::cell("a", &[], &log), ScriptedColumn::cell("a", &[], &log)]);
    assert_eq!(twice, "two generators fill column `a`");
    let circle =
        refused(vec![ScriptedColumn::cell("a", &["b"], &log), ScriptedColumn::cell("b", &["a"], &log)]);
    assert_eq!(circle, "columns depend on each other in a circle: a, b");
}

#[test]
fn all_files_have_the_declared_schema() {
    let sim = Sim::new(1);
    let (engine, log) = (engine(&sim), Log::new(&sim));
    // Group 0 has no value of `b`, group 1 no row.
    let columns = vec![
        ScriptedColumn::cell("a", &[], &log).fails_on(|row| (10..20).contains(&row)),
        ScriptedColumn::cell("b", &["a"], &log).answers(|row, _, _| match row {
            0..10 => Ok(Value::Null),
            _ => Ok(Value::from("text")),
        }),
    ];
    let mut dataset = dataset(&engine, columns);
    dataset.run_options().buffer_size = 10;
    let out = scratch("schemas");
    let options = BuildOptions { rows: 30, out: out.clone(), replace: false, ..without_journal() };
    sim.block_on(async { dataset.build(options).await.unwrap().run().await.unwrap() });
    let folder = anabranch_dataset::output::Folder::open(&out).unwrap();
    let files = folder.row_files().unwrap();
    let schema = |path: &std::path::PathBuf| {
        let file = std::fs::File::open(path).unwrap();
        let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        (reader.schema().fields().clone(), reader.metadata().file_metadata().num_rows())
    };
    let schemas: Vec<_> = files.iter().map(schema).collect();
    assert_eq!(schemas.iter().map(|(_, rows)| *rows).collect::<Vec<i64>>(), [10, 0, 10]);
    assert!(schemas.iter().all(|(fields, _)| *fields == schemas[0].0));
    let errors = std::fs::read_to_string(out.join("errors.jsonl")).unwrap();
    assert_eq!(errors.lines().count(), 10);
    assert!(errors.starts_with(
        r#"{"row":10,"column":"a","class":"bad_request","attempts":1,"message":"row 10 is bad","kept":false}"#
    ));
}

/// A group that cannot be written ends the build; the groups before it are whole, and nothing half-written has its name.
#[test]
fn a_folder_that_cannot_be_written_keeps_what_is_there() {
    let sim = Sim::new(1);
    let (engine, log) = (engine(&sim), Log::new(&sim));
    let columns = vec![ScriptedColumn::cell("a", &[], &log).fails_on(|row| row == 15)];
    let mut dataset = dataset(&engine, columns);
    dataset.run_options().buffer_size = 5;
    dataset.run_options().max_concurrent_row_groups = 1;
    let out = scratch("unwritable");
    let options = BuildOptions { rows: 30, out: out.clone(), replace: false, ..without_journal() };
    let error = sim.block_on(async {
        let build = dataset.build(options).await.unwrap();
        // The errors of the fourth group find a file in their way.
        std::fs::write(out.join("errors-files"), "").unwrap();
        build.run().await.unwrap_err()
    });
    assert!(
        error.to_string().starts_with("cannot create ") && error.to_string().ends_with("errors-files"),
        "{error}"
    );
    let files = anabranch_dataset::output::Folder::open(&out).unwrap().row_files().unwrap();
    assert_eq!(files.len(), 3);
    assert!(
        std::fs::read_dir(out.join("parquet-files")).unwrap().all(|entry| {
            entry.unwrap().path().extension().is_some_and(|extension| extension == "parquet")
        })
    );
}

#[test]
fn a_folder_that_holds_a_dataset_is_replaced_only_when_told_to() {
    let sim = Sim::new(1);
    let (engine, log) = (engine(&sim), Log::new(&sim));
    let out = scratch("replaced");
    let build = |rows, replace| {
        let options = BuildOptions { rows, out: out.clone(), replace, ..without_journal() };
        let dataset = dataset(&engine, vec![ScriptedColumn::cell("a", &[], &log)]);
        sim.block_on(async { dataset.build(options).await?.run().await })
    };
    build(3, false).unwrap();
    std::fs::write(out.join("notes.txt"), "mine").unwrap();
    let again = build(3, false).unwrap();
    assert_eq!((again.rows, again.resumed), (3, 3), "it is complete already");
    let error = build(2, false).unwrap_err();
    assert!(matches!(error, Error::FewerRows { rows: 3, .. }), "{error}");
    assert_eq!(build(2, true).unwrap().rows, 2);
    assert_eq!(std::fs::read_to_string(out.join("notes.txt")).unwrap(), "mine");
}
