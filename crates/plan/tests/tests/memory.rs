//! The embedded store.

use std::sync::Arc;
use std::time::Duration;

use anabranch_plan::source::{Fault, Keys, Memory, MemoryData, Pattern, Read, Source};
use anabranch_plan::{Config, Engine, Problems, Registries};
use anabranch_rows::{Column, Kind};
use anabranch_testkit::Sim;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use expect_test::{Expect, expect};

use crate::sources::{ask, clock, country, fetch, fields, memory, show, users};

const DATA: &str = r#"{
  "hashes": {
    "user:1": {"country": "US", "age": 31, "score": 0.50, "vip": true},
    "user:2": {"country": "CA", "age": "9223372036854775807"},
    "user:007": {"country": "no id"},
    "user:3": {"country": "UK", "age": "3.0"},
    "feed:1:US": {"country": "whole"}
  },
  "lists": {"follow:1": [1, "2", 9007199254740993], "follow:2": ["7", "x7"], "user:9": [1]},
  "zsets": {"rank:1": {"10": 0.5, "11": 2, "9": 0.5}}
}"#;

async fn check(pattern: Pattern, read: Read, ids: &[i64], expected: Expect) {
    expected.assert_eq(&ask(&memory(DATA).with_strict_values(), &pattern, &read, ids).await);
}

#[tokio::test]
async fn reads_fields() {
    let all = fields(&[
        ("country", Kind::Text),
        ("age", Kind::Int),
        ("score", Kind::Float),
        ("vip", Kind::Bool),
        ("shoes", Kind::Int),
    ]);
    check(
        users(),
        all,
        &[2, 1, 7, 2],
        expect![[r#"
        "CA" 9223372036854775807 null null null
        "US" 31 0.5 true null
        null null null null null
        "CA" 9223372036854775807 null null null"#]],
    )
    .await;
    check(users(), fields(&[("age", Kind::Text)]), &[1], expect![[r#""31""#]]).await;
    check(users(), fields(&[]), &[1], expect![""]).await;
}

#[tokio::test]
async fn a_value_that_cannot_be_read_costs_its_field() {
    let read = fields(&[("country", Kind::Text), ("age", Kind::Int)]);
    let reply = fetch(&memory(DATA).bind(&users(), &read), Keys::Ids(vec![1, 3, 9])).await;
    assert_eq!(show(&reply), "\"US\" 31\n\"UK\" null\nnull null");
    assert_eq!(reply.unwrap().malformed.count, 2);
}

#[tokio::test]
async fn what_cannot_be_read_is_named() {
    let age = fields(&[("country", Kind::Text), ("age", Kind::Int)]);
    check(
        users(),
        age.clone(),
        &[1, 3],
        expect![[r#"ep_test answered `HMGET user:3 age` with "3.0", not a 64-bit integer"#]],
    )
    .await;
    check(users(), age, &[9], expect!["ep_test refused `HMGET user:9`: WRONGTYPE Operation against a key holding the wrong kind of value"]).await;
    let follow = Pattern::of_id("follow:");
    check(
        follow.clone(),
        Read::List { limit: 5 },
        &[2],
        expect![[r#"ep_test answered `LRANGE follow:2` with the item "x7", not an id (a 64-bit integer)"#]],
    )
    .await;
    check(follow, Read::List { limit: 1 }, &[2], expect!["[7]"]).await;
}

#[tokio::test]
async fn reads_lists() {
    let follow = Pattern::of_id("follow:");
    check(
        follow.clone(),
        Read::List { limit: 10 },
        &[5, 1, 1],
        expect![[r#"
        []
        [1 2 9007199254740993]
        [1 2 9007199254740993]"#]],
    )
    .await;
    check(follow.clone(), Read::List { limit: 2 }, &[1], expect!["[1 2]"]).await;
    check(
        follow,
        Read::List { limit: 0 },
        &[1, 2],
        expect![[r#"
        []
        []"#]],
    )
    .await;
    let rank = Pattern::of_id("rank:");
    check(
        rank.clone(),
        Read::Scored { limit: 2 },
        &[1, 2],
        expect![[r#"
        [11@2 9@0.5]
        []"#]],
    )
    .await;
    check(rank, Read::Scored { limit: 9 }, &[1], expect!["[11@2 9@0.5 10@0.5]"]).await;
}

#[tokio::test]
async fn counts_what_it_was_asked() {
    let source = memory(DATA);
    let bound = source.bind(&users(), &country());
    let reply = fetch(&bound, Keys::Ids(vec![1, 2, 99])).await.unwrap();
    assert_eq!((reply.trips, reply.commands), (1, 3));
    let reply = fetch(&bound, Keys::Ids(vec![])).await.unwrap();
    assert_eq!((reply.trips, reply.commands), (0, 0));
}

#[tokio::test]
async fn long_dictionaries_are_not_handed_around() {
    let hashes: Vec<String> =
        (0..1_000).map(|id| format!(r#""user:{id}": {{"country": "c{id}", "few": "{}"}}"#, id % 7)).collect();
    let source = memory(&format!(r#"{{"hashes": {{{}}}}}"#, hashes.join(",")));
    let bound = source.bind(&users(), &fields(&[("country", Kind::Text), ("few", Kind::Text)]));
    let reply = fetch(&bound, Keys::Ids(vec![5, 3, 5, -1])).await;
    expect![[r#"
        "c5" "5"
        "c3" "3"
        "c5" "5"
        null null"#]]
    .assert_eq(&show(&reply));
    let anabranch_plan::source::Data::Columns(columns) = reply.unwrap().data else { panic!() };
    let lens: Vec<usize> = columns
        .iter()
        .map(|column| match column {
            Column::Text(text) => text.dictionary().len(),
            _ => panic!(),
        })
        .collect();
    assert_eq!(lens, [2, 7]);
}

fn refused(result: Result<(), Problems>, expected: &Expect) {
    expected.assert_eq(&result.unwrap_err().to_string());
}

#[test]
fn bad_data_files_are_refused() {
    let json = |text: &str| MemoryData::default().add_json("data.json", text);
    refused(
        json(r#"{"hash": {}}"#),
        &expect![
            "data.json: is not a data file: unknown field `hash`, expected one of `hashes`, `lists`, `zsets` at line 1 column 7"
        ],
    );
    refused(
        json(
            r#"{"hashes": {"a": {"f": null, "g": [1]}, "b": {"f": 1, "f": 2}},
            "lists": {"c": [{}], "b": [1]}, "zsets": {"d": {"m": "x"}}}"#,
        ),
        &expect![[r#"
            data.json, hash `a`, field `f`: "null" is not a value (values are strings, numbers, true and false; leave out what is not there)
            data.json, hash `a`, field `g`: "[1]" is not a value (values are strings, numbers, true and false; leave out what is not there)
            data.json, hash `b`: has the field `f` twice
            data.json, list `c`, item 0: "{}" is not a value (values are strings, numbers, true and false; leave out what is not there)
            data.json, list `b`: the key `b` is there twice
            data.json, sorted set `d`, member `m`: the score "x" is not a finite number"#]],
    );
    let file = |name: &str| MemoryData::default().add_file(std::path::Path::new(name), None);
    refused(file("gone.json"), &expect!["gone.json: cannot be read: No such file or directory (os error 2)"]);
}

const CSV: &str = "id,country,age\n1,US,30\n2,,\n3,\"U,K\",40\n";

#[tokio::test]
async fn tables_are_hashes() {
    let mut data = MemoryData::default();
    data.add_csv("users.csv", CSV.as_bytes(), "user:{id}").unwrap();
    let columns: [(&str, ArrayRef); 4] = [
        ("id", Arc::new(Int64Array::from(vec![4, i64::MAX]))),
        ("country", Arc::new(StringArray::from(vec![Some("MX"), None]))),
        ("age", Arc::new(Float64Array::from(vec![1.5, 2.0]))),
        ("vip", Arc::new(BooleanArray::from(vec![true, false]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut file = Vec::new();
    let mut writer = parquet::arrow::ArrowWriter::try_new(&mut file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    data.add_parquet("users.parquet", file, "user:{id}").unwrap();
    let source = Memory::new("ep_test", Arc::new(data), clock());
    let read = fields(&[("country", Kind::Text), ("age", Kind::Float), ("vip", Kind::Bool)]);
    expect![[r#"
        "US" 30.0 null
        null null null
        "U,K" 40.0 null
        "MX" 1.5 true
        null 2.0 false"#]]
    .assert_eq(&ask(&source, &users(), &read, &[1, 2, 3, 4, i64::MAX]).await);
}

#[test]
fn bad_tables_are_refused() {
    let csv = |text: &str, key: &str| MemoryData::default().add_csv("t.csv", text.as_bytes(), key);
    refused(
        csv(CSV, "user:{ID}"),
        &expect!["t.csv, pattern `user:{ID}`: the table has no column `ID`; it has id, country, age"],
    );
    refused(
        csv(CSV, "user"),
        &expect!["t.csv, pattern `user`: names no column, so all rows would have the same key"],
    );
    refused(csv(CSV, "u:{country}"), &expect!["t.csv, row 2: `country`, of which its key is made, is empty"]);
    refused(csv("id\n1\n1\n", "u:{id}"), &expect!["t.csv, row 2: the key `u:1` is there twice"]);
    refused(
        csv("id,a\n1\n", "u:{id}"),
        &expect![
            "t.csv: CSV error: record 1 (line: 2, byte: 5): found record with 1 fields, but the previous record has 2 fields"
        ],
    );
    let parquet = MemoryData::default().add_parquet("t.parquet", b"PAR1".to_vec(), "u:{id}");
    refused(
        parquet,
        &expect![
            "t.parquet: is not a Parquet file that can be read: EOF: Parquet file too small. Size is 4 but need 8"
        ],
    );
}

/// The bytes of a Parquet file with a column of times, which no plan can read.
fn parquet_with(compression: parquet::basic::Compression) -> Vec<u8> {
    let columns: [(&str, ArrayRef); 3] = [
        ("id", Arc::new(Int64Array::from(vec![4, 5]))),
        ("country", Arc::new(StringArray::from(vec!["MX", "PE"]))),
        ("when", Arc::new(arrow_array::TimestampMicrosecondArray::from(vec![1, 2]))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let properties = parquet::file::properties::WriterProperties::builder().set_compression(compression);
    let mut file = Vec::new();
    let mut writer =
        parquet::arrow::ArrowWriter::try_new(&mut file, batch.schema(), Some(properties.build())).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    file
}

#[tokio::test]
async fn parquet_of_every_usual_compression_is_read() {
    use parquet::basic::Compression;
    let kinds = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::ZSTD(Default::default()),
        Compression::GZIP(Default::default()),
        Compression::BROTLI(Default::default()),
    ];
    for compression in kinds {
        let mut data = MemoryData::default();
        data.add_parquet("users.parquet", parquet_with(compression), "user:{id}").unwrap();
        let source = Memory::new("ep_test", Arc::new(data), clock());
        expect![[r#"
            "MX"
            "PE""#]]
        .assert_eq(&ask(&source, &users(), &country(), &[4, 5]).await);
    }
}

#[tokio::test]
async fn a_column_that_cannot_be_read_matters_only_to_those_who_read_it() {
    let file = || parquet_with(parquet::basic::Compression::UNCOMPRESSED);
    let mut data = MemoryData::default();
    data.add_parquet("users.parquet", file(), "user:{id}").unwrap();
    data.add_csv("items.csv", b"id,when\n4,noon\n", "item:{id}").unwrap();
    let source = Memory::new("ep_test", Arc::new(data), clock());
    let when = fields(&[("country", Kind::Text), ("when", Kind::Text)]);
    expect!["ep_test refused `HMGET user:{id}`: column `when` of users.parquet is of type Timestamp(\u{b5}s); columns of integers, floats, booleans and strings are read"]
        .assert_eq(&ask(&source, &users(), &when, &[4]).await);
    let of_items = fields(&[("when", Kind::Text)]);
    expect![[r#""noon""#]].assert_eq(&ask(&source, &Pattern::of_id("item:"), &of_items, &[4]).await);
    refused(
        MemoryData::default().add_parquet("users.parquet", file(), "user:{when}"),
        &expect![
            "users.parquet, pattern `user:{when}`: column `when` of users.parquet is of type Timestamp(µs) (columns of integers, floats, booleans and strings are read)"
        ],
    );
}

#[test]
fn a_plan_that_reads_a_column_that_cannot_be_read_is_warned_of() {
    let keys = r#"key = [
        { key_id = 1, name = "id", type = "int", nullable = false, allow_write = false },
        { key_id = 2, name = "country", type = "string", nullable = true },
        { key_id = 3, name = "when", type = "string", nullable = true }]"#;
    let endpoints = "[[endpoint]]\nendpoint_id = \"ep_1\"\nname = \"users\"\nkind = \"redis\"\n\
                     resolver = { type = \"static\", host = \"127.0.0.1\", port = 1 }";
    let files = [("keys.toml", keys), ("endpoints.dev.toml", endpoints)];
    let (registries, _) = Registries::parse(files, Some("dev")).unwrap();
    let mut data = MemoryData::default();
    let file = parquet_with(parquet::basic::Compression::UNCOMPRESSED);
    data.add_parquet("users.parquet", file, "user:{id}").unwrap();
    let source = Memory::new("users", Arc::new(data), clock());
    let engine = Engine::load(Config::new(registries, vec![Arc::new(source)])).unwrap();
    let warnings = |field: &str| {
        let text = format!(
            r#"{{"schema_version": 1, "plan_name": "p", "outputs": ["users"], "nodes": [
            {{"node_id": "ids", "op": "core::candidates", "inputs": []}},
            {{"node_id": "users", "op": "core::lookup", "inputs": ["ids"],
              "params": {{"endpoint": "users", "key": "user:{{id}}", "fields": ["{field}"]}}}}]}}"#
        );
        let plan = engine.compile(&text, ".".as_ref()).unwrap();
        plan.warnings().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    expect![""].assert_eq(&warnings("country"));
    expect!["node `users` (core::lookup): users refused `HGET user:{id}`: column `when` of users.parquet is of type Timestamp(µs); columns of integers, floats, booleans and strings are read"]
        .assert_eq(&warnings("when"));
}

#[test]
fn a_quote_that_is_never_closed_is_refused() {
    let csv = |text: &str| MemoryData::default().add_csv("t.csv", text.as_bytes(), "u:{id}");
    refused(
        csv("id,name\n1,\"Ann\n2,Bob\n"),
        &expect![[
            r#"t.csv, line 2: a quoted cell has no closing quote (close it with `"`, or write `""` for a quote inside of a cell)"#
        ]],
    );
    refused(
        csv("id,name\n1,\"An\"\"n\n\"\n2,\"\"\"Bob\n3,x\n"),
        &expect![[
            r#"t.csv, line 4: a quoted cell has no closing quote (close it with `"`, or write `""` for a quote inside of a cell)"#
        ]],
    );
    for fine in ["id,name\n1,\"An\"\"n\"\n", "id,name\n1,An\"n\n2,\"a,\nb\"\n", "\u{feff}id\n\"1\"\n"] {
        csv(fine).unwrap();
    }
}

#[test]
fn trouble_on_order() {
    let sim = Sim::new(1);
    let data = Arc::new(MemoryData::from_json("data.json", DATA).unwrap());
    let slow = Fault { delay: Duration::from_millis(30), fail_every: 2, ..Fault::default() };
    let source = Memory::new("ep_test", data, sim.clock()).with_fault("user:", slow);
    let start = sim.clock().now();
    let mut told = Vec::new();
    for _ in 0..3 {
        told.push(sim.block_on(ask(&source, &users(), &country(), &[1])));
    }
    expect![[r#"
        "US"
        no connection to ep_test: trip 2 was told to fail
        "US""#]]
    .assert_eq(&told.join("\n"));
    assert_eq!(sim.clock().now() - start, Duration::from_millis(90));
    let follow = Pattern::of_id("follow:");
    assert_eq!(sim.block_on(ask(&source, &follow, &Read::List { limit: 1 }, &[1])), "[1]");
    assert_eq!(sim.clock().now() - start, Duration::from_millis(90));
}
