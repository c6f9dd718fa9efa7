//! Processors: before a group's main columns, behind them, and over the whole dataset.

use anabranch_dataset::output::{ExportFormat, Folder, export};
use anabranch_dataset::processor::{Points, Table};
use anabranch_dataset::{BuildOptions, ColumnSettings, Dataset, Fault, Processor};
use anabranch_testkit::Sim;
use anabranch_value::Value;
use expect_test::expect;

use crate::kit::{Log, ScriptedColumn, engine, scratch, shown, without_journal};

/// Removes odd rows and adds one, before the main columns; in the end, keeps the last rows only.
struct Change(Points);

impl Processor for Change {
    fn name(&self) -> &str {
        "change"
    }

    fn points(&self) -> Points {
        self.0
    }

    fn before_batch(&self, mut table: Table) -> Result<Table, Fault> {
        let keep: Vec<bool> = table.ids.iter().map(|id| id.unwrap() % 2 == 0).collect();
        let mut kept = keep.iter();
        table.ids.retain(|_| *kept.next().unwrap());
        table.ids.push(None);
        for column in &mut table.columns {
            let mut kept = keep.iter();
            column.values.retain(|_| *kept.next().unwrap());
            column.values.push(Value::from("added"));
        }
        Ok(table)
    }

    fn after_batch(&self, mut table: Table) -> Result<Table, Fault> {
        table.ids.pop();
        table.columns.iter_mut().for_each(|column| drop(column.values.pop()));
        Ok(table)
    }

    fn after_generation(&self, mut table: Table) -> Result<Table, Fault> {
        table.ids.truncate(3);
        table.columns.iter_mut().for_each(|column| column.values.truncate(3));
        Ok(table)
    }
}

fn make(engine: &anabranch_engine::Engine, log: &Log, points: Points) -> Dataset {
    let mut dataset = Dataset::new("test", engine);
    let initial = ColumnSettings { is_initial: true, ..ColumnSettings::default() };
    dataset.column(ScriptedColumn::batch("seed", &[], log), initial);
    dataset.column(ScriptedColumn::cell("text", &["seed"], log), ColumnSettings::default());
    dataset.processor(Change(points));
    dataset
}

#[test]
fn a_processor_may_add_and_remove_rows_before_the_main_columns() {
    let sim = Sim::new(1);
    let (engine, log) = (engine(&sim), Log::new(&sim));
    let points = Points { before_batch: true, ..Points::default() };
    let preview = sim.block_on(make(&engine, &log, points).preview(5).unwrap().preview()).unwrap();
    let lines = shown(&preview);
    expect![[r#"
        {"seed":"seed0()","text":"text0(seed0())"}
        {"seed":"seed2()","text":"text2(seed2())"}
        {"seed":"seed4()","text":"text4(seed4())"}"#]]
    .assert_eq(&lines.lines().take(3).collect::<Vec<&str>>().join("\n"));
    assert!(lines.ends_with("(added)\"}"), "{lines}");
    // The barrier: the main column starts when the processor has seen the whole group.
    assert!(log.at("text0 starts") >= log.at("seed of group 0 ends"));
}

#[test]
fn a_processor_keeps_the_number_of_rows_of_a_complete_group() {
    let sim = Sim::new(1);
    let (engine, log) = (engine(&sim), Log::new(&sim));
    let points = Points { after_batch: true, ..Points::default() };
    let error = sim.block_on(make(&engine, &log, points).preview(5).unwrap().preview()).unwrap_err();
    assert_eq!(error.to_string(), "processor `change`: it must keep the number of rows: 5 became 4");
}

#[test]
fn a_processor_may_change_the_whole_dataset() {
    let sim = Sim::new(1);
    let (engine, log) = (engine(&sim), Log::new(&sim));
    let mut dataset = make(&engine, &log, Points { after_generation: true, ..Points::default() });
    dataset.run_options().buffer_size = 2;
    let out = scratch("after_generation");
    let options = BuildOptions { rows: 7, out: out.clone(), replace: false, ..without_journal() };
    sim.block_on(async { dataset.build(options).await.unwrap().run().await.unwrap() });
    let folder = Folder::open(&out).unwrap();
    assert_eq!(folder.row_files().unwrap().len(), 2);
    let exported = |format| {
        let mut text = Vec::new();
        assert_eq!(export(&folder, format, "out".as_ref(), &mut text).unwrap(), 3);
        String::from_utf8(text).unwrap()
    };
    expect![[r#"
        {"seed":"seed0()","text":"text0(seed0())"}
        {"seed":"seed1()","text":"text1(seed1())"}
        {"seed":"seed2()","text":"text2(seed2())"}
    "#]]
    .assert_eq(&exported(ExportFormat::Jsonl));
    expect![[r#"
        seed,text
        seed0(),text0(seed0())
        seed1(),text1(seed1())
        seed2(),text2(seed2())
    "#]]
    .assert_eq(&exported(ExportFormat::Csv));
    let metadata: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(out.join("metadata.json")).unwrap()).unwrap();
    assert_eq!((&metadata["actual_num_records"], &metadata["is_complete"]), (&3.into(), &true.into()));
}
