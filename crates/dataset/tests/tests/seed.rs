//! Seeds: formats, types, order, selection, errors.

use std::path::Path;
use std::sync::Arc;

use anabranch_dataset::config::{SeedConfig, SeedOrder, SeedSelection, SeedSource};
use anabranch_dataset::seed::{Error, Seed};
use anabranch_value::Value;
use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::types::Int8Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray, Float64Array,
    Int32Array, Int64Array, RecordBatch, StringArray, StructArray, TimestampMicrosecondArray,
};
use expect_test::{Expect, expect};
use proptest::prelude::*;

use crate::support::Folder;

fn local(path: impl AsRef<Path>) -> SeedConfig {
    let source = SeedSource::Local { path: path.as_ref().to_owned() };
    SeedConfig { source, order: SeedOrder::Ordered, selection: None }
}

fn open(folder: &Folder, config: &SeedConfig) -> Result<Seed, Error> {
    Seed::open(config, folder.path(), 7)
}

/// The types and the rows of a seed.
fn check(folder: &Folder, config: &SeedConfig, expect: Expect) {
    let shown = match open(folder, config) {
        Ok(seed) => {
            let types = seed.columns().iter().map(|(name, column_type)| format!("{name}: {column_type:?}"));
            let mut lines = vec![types.collect::<Vec<_>>().join(", ")];
            let columns = seed.read(0..seed.len()).unwrap();
            for row in 0..seed.len() as usize {
                let cells = columns.iter().map(|column| column[row].to_json());
                lines.push(cells.collect::<Vec<_>>().join(" "));
            }
            lines.join("\n")
        }
        Err(error) => format!("error: {error}"),
    };
    expect.assert_eq(&folder.clean(shown));
}

fn check_file(name: &str, bytes: impl AsRef<[u8]>, expect: Expect) {
    let folder = Folder::new();
    folder.write(name, bytes);
    check(&folder, &local(name), expect);
}

#[test]
fn csv_types_are_those_of_all_rows() {
    check_file(
        "a.csv",
        "\u{feff}id,price,flag,zip,long,text,none\n1,2,true,02134,1234567890123456789,\"a,\"\"b\",\n-2,2.5,FALSE,,1,5x,\n",
        expect![[r#"
            id: Int, price: Float, flag: Bool, zip: Text, long: Text, text: Text, none: Text
            1 2.0 true "02134" "1234567890123456789" "a,\"b" null
            -2 2.5 false null "1" "5x" null"#]],
    );
    check_file(
        "b.csv",
        "n,m\n1,1e3\ntrue,1.5e-2\n",
        expect![[r#"
        n: Text, m: Float
        "1" 1000.0
        "true" 0.015"#]],
    );
    check_file(
        "c.csv",
        "n,m\n.5,1.\n1e999,+1\nNaN,0x1\n",
        expect![[r#"
        n: Text, m: Text
        ".5" "1."
        "1e999" "+1"
        "NaN" "0x1""#]],
    );
}

#[test]
fn json_values_keep_their_shape() {
    check_file(
        "a.jsonl",
        "{\"a\": 1, \"p\": {\"x\": 1, \"y\": \"s\"}, \"l\": [1, 2.5]}\n\n{\"a\": 2.5, \"p\": {\"x\": 2}, \"late\": \"{}\", \"m\": true}\n{\"m\": \"t\", \"l\": [], \"p\": null, \"a\": null}\n",
        expect![[r#"
            a: Float, p: Struct([("x", Int), ("y", Text)]), l: List(Float), late: Text, m: Json
            1.0 {"x":1,"y":"s"} [1.0,2.5] null null
            2.5 {"x":2,"y":null} null "{}" true
            null null [] null "t""#]],
    );
    let rows = "{\"a\": 1}\n{\"a\": 2, \"b\": [1, \"x\"]}";
    let as_array = format!("[{}]", rows.replace('\n', ",\n"));
    for text in [rows.to_owned(), as_array] {
        check_file(
            "a.json",
            text,
            expect![[r#"
                a: Int, b: List(Json)
                1 null
                2 [1,"x"]"#]],
        );
    }
}

#[test]
fn errors_name_file_line_and_column() {
    check_file(
        "a.csv",
        "a,b\n1,2\n3\n",
        expect!["error: a.csv:3: the row has 1 cells, and the header has 2: is a quote or a comma missing?"],
    );
    check_file(
        "a.csv",
        "a,a\n1,2\n",
        expect!["error: a.csv:1: the header has the column `a` twice: rename one"],
    );
    check_file(
        "a.csv",
        b"a,b\n1,\xff\n",
        expect!["error: a.csv:2: cell 2 is not UTF-8: convert the file to UTF-8"],
    );
    check_file("a.csv", "", expect!["error: a.csv:1: the file is empty: the first line names the columns"]);
    check_file(
        "a.csv",
        "a\n",
        expect!["error: the seed `a.csv` has no rows: give it a file with at least one row"],
    );
    check_file(
        "a.jsonl",
        "{\"a\":1}\n[1]\n",
        expect![
            "error: a.jsonl:2: expected one JSON object per line: invalid type: sequence, expected an object with one entry per column at line 1 column 0"
        ],
    );
    check_file(
        "a.jsonl",
        "{\"a\":1,\"a\":2}\n",
        expect!["error: a.jsonl:1: the object has the key `a` twice"],
    );
    check_file(
        "a.json",
        "[{\"a\":1},\n3]",
        expect![
            "error: a.json:2: expected an array of objects: invalid type: integer `3`, expected an object with one entry per column at line 2 column 1"
        ],
    );
    check_file(
        "a.parquet",
        "no",
        expect![
            "error: a.parquet: cannot be read as Parquet (EOF: Parquet file too small. Size is 2 but need 8): write it with Snappy or Zstandard, or as CSV"
        ],
    );
    check_file(
        "a.xlsx",
        "",
        expect!["error: `a.xlsx` is not a seed format: use .parquet, .csv, .json or .jsonl"],
    );
    let folder = Folder::new();
    check(&folder, &local("b.csv"), expect!["error: the seed path `b.csv` does not exist"]);
    check(
        &folder,
        &local("b*.csv"),
        expect!["error: no file matches the seed path `b*.csv`: check the path and the file name pattern"],
    );
    check(
        &folder,
        &local("*/b.csv"),
        expect!["error: the seed path `*/b.csv` has a wildcard in a folder: only the file name may have one"],
    );
}

#[test]
fn files_of_a_pattern_are_one_table() {
    let folder = Folder::new();
    folder.write("part-2.csv", "b,a\nx,2.5\n");
    folder.write("part-1.csv", "a,b\n1,007\n");
    folder.write("other.csv", "z\n");
    check(
        &folder,
        &local("part-*.csv"),
        expect![[r#"
        a: Float, b: Text
        1.0 "007"
        2.5 "x""#]],
    );
    folder.write("part-3.csv", "a\n1\n");
    check(
        &folder,
        &local("part-*.csv"),
        expect![
            "error: part-3.csv, column `b`: it is missing, and `part-1.csv` has it; the files of a seed have the same columns"
        ],
    );
    folder.write("x1.jsonl", "{\"a\": true}\n");
    folder.write("x2.jsonl", "{\"a\": 1}\n");
    check(
        &folder,
        &local("x*.jsonl"),
        expect![
            "error: x2.jsonl, column `a`: it is a whole number here and true or false in `x1.jsonl`; write both files with one type"
        ],
    );
}

fn parquet(folder: &Folder, name: &str, columns: Vec<(&str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = std::fs::File::create(folder.path().join(name)).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn parquet_columns_become_typed_columns() {
    let folder = Folder::new();
    let mut list = ListBuilder::new(StringBuilder::new());
    list.append_value([Some("a"), None]);
    list.append_null();
    let inner: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let field = Arc::new(arrow_schema::Field::new("x", arrow_schema::DataType::Int32, false));
    let decimal = Decimal128Array::from(vec![12345, -5]).with_precision_and_scale(10, 2).unwrap();
    let dictionary: DictionaryArray<Int8Type> = vec![Some("k"), None].into_iter().collect();
    parquet(
        &folder,
        "a.parquet",
        vec![
            ("flag", Arc::new(BooleanArray::from(vec![Some(true), None]))),
            ("int", Arc::new(Int64Array::from(vec![Some(i64::MAX), None]))),
            ("float", Arc::new(Float64Array::from(vec![0.1, 2.0]))),
            ("text", Arc::new(StringArray::from(vec![Some("é"), None]))),
            ("dictionary", Arc::new(dictionary)),
            ("list", Arc::new(list.finish())),
            ("struct", Arc::new(StructArray::from(vec![(field, inner)]))),
            ("decimal", Arc::new(decimal)),
            ("date", Arc::new(Date32Array::from(vec![0, 20_000]))),
            ("time", Arc::new(TimestampMicrosecondArray::from(vec![1_500_000, 0]))),
            ("zoned", Arc::new(TimestampMicrosecondArray::from(vec![0, 1]).with_timezone("UTC"))),
        ],
    );
    check(
        &folder,
        &local("a.parquet"),
        expect![[r#"
        flag: Bool, int: Int, float: Float, text: Text, dictionary: Text, list: List(Text), struct: Struct([("x", Int)]), decimal: Float, date: Text, time: Text, zoned: Text
        true 9223372036854775807 0.1 "é" "k" ["a",null] {"x":1} 123.45 "1970-01-01" "1970-01-01T00:00:01.500" "1970-01-01T00:00:00Z"
        null null 2.0 null null null {"x":2} -0.05 "2024-10-04" "1970-01-01T00:00:00" "1970-01-01T00:00:00.000001Z""#]],
    );
    parquet(&folder, "b.parquet", vec![("raw", Arc::new(BinaryArray::from(vec![b"x" as &[u8]])))]);
    check(
        &folder,
        &local("b.parquet"),
        expect![
            "error: b.parquet, column `raw`: a seed cannot have the Arrow type Binary; convert the column to text or numbers, or leave it out"
        ],
    );
}

fn numbers(
    folder: &Folder,
    count: u64,
    order: SeedOrder,
    selection: Option<SeedSelection>,
) -> Result<Seed, Error> {
    let rows: String = (0..count).map(|row| format!("{row}\n")).collect();
    folder.write("n.csv", format!("n\n{rows}"));
    open(folder, &SeedConfig { order, selection, ..local("n.csv") })
}

fn taken(seed: &Seed, rows: std::ops::Range<u64>) -> Vec<i64> {
    let int = |value: &Value| if let Value::Int(int) = value { *int } else { -1 };
    seed.read(rows).unwrap()[0].iter().map(int).collect()
}

#[test]
fn selections_are_exact() {
    let folder = Folder::new();
    let select = |selection| {
        numbers(&folder, 10, SeedOrder::Ordered, Some(selection))
            .map_or_else(|error| error.to_string(), |seed| format!("{:?}", taken(&seed, 0..seed.len() + 2)))
    };
    let range = |start, end| select(SeedSelection::IndexRange { start, end });
    expect!["[2, 3, 4, 2, 3]"].assert_eq(&range(2, 4));
    expect![
        "the selection of seed rows from 5 to 10 does not fit: the seed has 10 rows, numbered from 0 to 9"
    ]
    .assert_eq(&range(5, 10));
    let block = |index, num_partitions| select(SeedSelection::Partition { index, num_partitions });
    expect!["[3, 4, 5, 3, 4]"].assert_eq(&block(1, 3));
    expect!["[6, 7, 8, 9, 6, 7]"].assert_eq(&block(2, 3));
    expect!["the selection of seed rows as block 3 of 3 blocks does not fit: the seed has 10 rows, numbered from 0 to 9"].assert_eq(&block(3, 3));
    expect!["the selection of seed rows as block 0 of 11 blocks does not fit: the seed has 10 rows, numbered from 0 to 9"].assert_eq(&block(0, 11));
}

/// DataDesigner has 912 of 1,000 ids after a resumed shuffle.
#[test]
fn a_resumed_shuffle_loses_and_repeats_nothing() {
    let folder = Folder::new();
    let first = numbers(&folder, 1000, SeedOrder::Shuffle, None).unwrap();
    let mut seen = taken(&first, 0..400);
    let resumed = numbers(&folder, 1000, SeedOrder::Shuffle, None).unwrap();
    seen.extend(taken(&resumed, 400..1000));
    assert_ne!(seen, (0..1000).collect::<Vec<i64>>());
    let mut sorted = seen.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..1000).collect::<Vec<i64>>());
    let second_cycle = taken(&resumed, 1000..2000);
    assert_ne!(second_cycle, seen);
    assert_eq!(resumed.read_row(1234).unwrap(), [Value::Int(second_cycle[234])]);
}

#[test]
fn directories_are_sorted_and_links_in_circles_end() {
    let folder = Folder::new();
    folder.write("d/b.txt", "B");
    folder.write("d/sub/a.txt", "\u{feff}A");
    folder.write("d/c.md", "C");
    std::os::unix::fs::symlink(folder.path().join("d"), folder.path().join("d/sub/loop")).unwrap();
    let config = |recursive, encoding: Option<&str>| {
        let (path, file_pattern) = ("d".into(), "*.txt".to_owned());
        let source = match encoding {
            None => SeedSource::Directory { path, file_pattern, recursive },
            Some(encoding) => {
                SeedSource::FileContents { path, file_pattern, recursive, encoding: encoding.into() }
            }
        };
        SeedConfig { source, order: SeedOrder::Ordered, selection: None }
    };
    check(
        &folder,
        &config(true, None),
        expect![[r#"
        source_kind: Text, source_path: Text, relative_path: Text, file_name: Text
        "directory_file" "d/b.txt" "b.txt" "b.txt"
        "directory_file" "d/sub/a.txt" "sub/a.txt" "a.txt""#]],
    );
    check(
        &folder,
        &config(true, Some("utf-8-sig")),
        expect![[r#"
        source_kind: Text, source_path: Text, relative_path: Text, file_name: Text, content: Text
        "file_contents" "d/b.txt" "b.txt" "b.txt" "B"
        "file_contents" "d/sub/a.txt" "sub/a.txt" "a.txt" "A""#]],
    );
    check(
        &folder,
        &config(false, Some("utf-9")),
        expect!["error: the encoding `utf-9` of the seed is not known: use utf-8, utf-8-sig or latin-1"],
    );
    folder.write("d/x.txt", b"\xe9");
    let seed = open(&folder, &config(false, Some("utf-8"))).unwrap();
    assert_eq!(seed.read_row(0).unwrap()[4], Value::from("B"));
    let fault = seed.read(0..2).unwrap_err();
    expect!["seed: `d/x.txt` is not UTF-8 at byte 0: convert it, set `encoding: latin-1`, or narrow `file_pattern`"].assert_eq(&folder.clean(fault));
    let seed = open(&folder, &config(false, Some("latin-1"))).unwrap();
    assert_eq!(seed.read_row(1).unwrap()[4], Value::from("é"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the cells are, they come back as they are in the file, up to the notation of numbers.
    #[test]
    fn csv_cells_come_back(cells in proptest::collection::vec("[-+.0-9eEtrufalsx]{1,6}", 1..6)) {
        let folder = Folder::new();
        folder.write("a.csv", format!("c\n{}\n", cells.join("\n")));
        let seed = open(&folder, &local("a.csv")).unwrap();
        let column = seed.read(0..seed.len()).unwrap().remove(0);
        prop_assert_eq!(column.len(), cells.len());
        for (value, cell) in column.iter().zip(&cells) {
            let same = match value {
                Value::Text(text) => **text == **cell,
                Value::Int(int) => int.to_string() == *cell || cell == "-0",
                Value::Float(float) => cell.parse::<f64>().is_ok_and(|parsed| parsed == *float),
                Value::Bool(truth) => truth.to_string() == *cell,
                _ => false,
            };
            prop_assert!(same, "{cell} became {value:?}");
        }
    }
}
