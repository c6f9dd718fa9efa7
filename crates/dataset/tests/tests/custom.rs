//! Custom columns: workers that answer, lie, hang and die.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anabranch_dataset::config::{CustomColumn, WorkerConfig};
use anabranch_dataset::custom::{Ask, NoModels, Question, WorkerOptions, generators};
use anabranch_dataset::generator::{Generator, Row};
use anabranch_dataset::post::{Post, PostError, PostReply};
use anabranch_dataset::{ColumnType, Fault};
use anabranch_engine::clock::{Clock, SystemClock};
use anabranch_engine::workload::BoxFuture;
use anabranch_value::Value;
use expect_test::{Expect, expect};
use futures_util::future::join_all;

use crate::support::{Folder, done, rows, shown};

/// What a well-behaved worker begins with.
const READY: &str = r#"read hello; echo '{"ready":true,"functions":{"f":{}}}';"#;

pub(crate) fn custom(command: &[&str]) -> CustomColumn {
    CustomColumn {
        worker: WorkerConfig::Command { command: command.iter().map(|word| (*word).to_owned()).collect() },
        function: "f".into(),
        params: Value::Null,
        required_columns: vec!["a".into()],
        side_effect_columns: Vec::new(),
        model_aliases: Vec::new(),
        full_column: false,
        stateful: false,
        column_types: vec![("c".into(), ColumnType::Int)],
        timeout: Duration::from_secs(60),
        resizes: false,
    }
}

fn shell(script: &str) -> CustomColumn {
    custom(&["/bin/sh", "-c", script])
}

pub(crate) fn options(ask: impl Ask) -> WorkerOptions {
    let folder = PathBuf::from("/");
    WorkerOptions::new(folder, Arc::new(SystemClock), Arc::new(crate::kit::client()), Arc::new(ask))
}

pub(crate) fn one(column: &CustomColumn, options: &WorkerOptions) -> Box<dyn Generator> {
    generators(&[("c", column)], options).remove(0)
}

pub(crate) async fn cell(generator: &dyn Generator, id: u64, values: &[Value]) -> String {
    shown(vec![done(generator.cell(Row { id, values })).await])
}

/// The results of calls that are made at once.
async fn check(column: CustomColumn, calls: u64, expect: Expect) {
    let options = WorkerOptions { max_restarts: 1, ..options(NoModels) };
    let generator = one(&column, &options);
    let values: Vec<Value> = (0..calls as i64).map(Value::Int).collect();
    let calls = values
        .iter()
        .enumerate()
        .map(|(row, value)| cell(&*generator, row as u64, std::slice::from_ref(value)));
    expect.assert_eq(&join_all(calls).await.join("\n"));
}

#[tokio::test]
async fn answers_come_in_any_order() {
    let script = format!(
        "{READY} read a; read b; echo '{{\"id\":2,\"values\":{{\"c\":20}}}}'; echo; echo '{{\"id\":1,\"values\":{{\"c\":10}}}}'; cat"
    );
    check(
        shell(&script),
        2,
        expect![[r#"
        10
        20"#]],
    )
    .await;
}

#[tokio::test]
async fn a_worker_sees_the_call() {
    let folder = Folder::new();
    let seen = folder.path().join("seen");
    let script = format!(
        "read hello; echo \"$hello\" > {0}; echo '{{\"ready\":true,\"functions\":{{\"f\":{{}}}}}}'; read a; echo \"$a\" >> {0}; echo '{{\"id\":1,\"values\":{{\"c\":1}}}}'; cat",
        seen.display()
    );
    check(shell(&script), 1, expect!["1"]).await;
    expect![[r#"
        {"anabranch":1,"functions":["f"]}
        {"id":1,"function":"f","column":"c","params":null,"row":{"a":0}}
    "#]]
    .assert_eq(&std::fs::read_to_string(seen).unwrap());
}

#[tokio::test]
async fn wrong_answers_fail_their_call_only() {
    let answers = [
        r#"{"id":1,"values":{"c":"text"}}"#,
        r#"{"id":2,"values":{"d":1}}"#,
        r#"{"id":3,"values":{}}"#,
        r#"{"id":4}"#,
        r#"{"id":5,"error":{"class":"ValueError","message":"no","transient":true}}"#,
        r#"{"id":6,"error":"plain"}"#,
        r#"{"id":7,"values":{"c":7}}"#,
    ];
    let echo: String = answers.iter().map(|answer| format!("read x; echo '{answer}';")).collect();
    check(
        shell(&format!("{READY} {echo} cat")),
        7,
        expect![[r#"
        Permanent x1 reply_format: the column `c` got text, which is not its type
        Permanent x1 reply_format: the worker filled the column `d`: add it to `side_effect_columns`
        Permanent x1 reply_format: the worker did not fill the column `c`
        Permanent x1 reply_format: the answer has no "values"
        Transient x1 valueerror: no
        Permanent x1 custom: plain
        7"#]],
    )
    .await;
}

#[tokio::test]
async fn declarations_are_checked() {
    let declared = |functions: &str| {
        shell(&format!("read hello; echo '{{\"ready\":true,\"functions\":{functions}}}'; cat"))
    };
    check(declared(r#"{"g":{},"h":{}}"#), 1, expect!["Permanent x1 worker: the worker `/bin/sh`: the worker has no function `f`, which the column `c` names; it has: g, h"]).await;
    check(declared(r#"{"f":{"required_columns":["z"]}}"#), 1, expect!["Permanent x1 worker: the worker `/bin/sh`: the function `f` declares the required columns [z], and the column `c` has [a]: change one of them"]).await;
    check(declared(r#"{"f":{"side_effect_columns":["z"]}}"#), 1, expect!["Permanent x1 worker: the worker `/bin/sh`: the function `f` declares the side-effect columns [z], and the column `c` has []: change one of them"]).await;
    check(declared(r#"{"f":{"generation_strategy":"full_column"}}"#), 1, expect!["Permanent x1 worker: the worker `/bin/sh`: the function `f` declares the generation strategy full_column, and the column `c` has cell_by_cell: change one of them"]).await;
    check(
        shell("read hello; echo '{\"error\":\"no module\"}'; cat"),
        1,
        expect!["Permanent x1 worker: the worker `/bin/sh`: no module"],
    )
    .await;
}

#[tokio::test]
async fn a_worker_that_dies_fails_its_calls_and_is_started_again() {
    let folder = Folder::new();
    let script = format!(
        "{READY} read a; if [ -e {0} ]; then echo '{{\"id\":1,\"values\":{{\"c\":5}}}}'; cat; fi; touch {0}; echo one >&2; echo 'last words' >&2; exit 3",
        folder.path().join("died").display()
    );
    let generator = one(&shell(&script), &options(NoModels));
    expect!["Transient x1 worker: the worker `/bin/sh` ended (exit status: 3); its last lines on stderr: one | last words"]
        .assert_eq(&cell(&*generator, 0, &[Value::Int(1)]).await);
    expect!["5"].assert_eq(&cell(&*generator, 0, &[Value::Int(1)]).await);
}

#[tokio::test]
async fn a_worker_that_always_dies_is_given_up() {
    let options = WorkerOptions { max_restarts: 1, ..options(NoModels) };
    let generator = one(&shell("exit 4"), &options);
    let mut said = Vec::new();
    for row in 0..3 {
        said.push(cell(&*generator, row, &[Value::Int(1)]).await);
    }
    expect![[r#"
        Transient x1 worker: the worker `/bin/sh` ended (exit status: 4)
        Transient x1 worker: the worker `/bin/sh` ended (exit status: 4)
        Permanent x1 worker: the worker `/bin/sh` ended (exit status: 4); it was started 2 times and is not started again (the last run answered 0 calls)"#]].assert_eq(&said.join("\n"));
    let generator = one(&custom(&["/nowhere/at/all"]), &options);
    expect!["Permanent x1 worker: the worker `/nowhere/at/all` could not be started: No such file or directory (os error 2)"]
        .assert_eq(&cell(&*generator, 0, &[Value::Int(1)]).await);
}

#[tokio::test]
async fn hostile_output_is_bounded() {
    check(shell("echo nonsense; exec sleep 100000"), 1, expect!["Transient x1 worker: the worker `/bin/sh` said a line that is not of the protocol (expected ident at line 1 column 2): nonsense"]).await;
    check(
        shell(&format!("{READY} echo '{{\"id\":99,\"values\":{{}}}}'; exec sleep 100000")),
        1,
        expect![[r#"Transient x1 worker: the worker `/bin/sh` said a line without the id of a call: {"id":99,"values":{}}"#]],
    )
    .await;
    check(
        shell(&format!("{READY} exec tr '\\0' 'x' < /dev/zero")),
        1,
        expect!["Transient x1 worker: the worker `/bin/sh` said a line of more than 16 MiB"],
    )
    .await;
    check(
        shell(&format!("{READY} printf '\\377\\n'; exec sleep 100000")),
        1,
        expect!["Transient x1 worker: the worker `/bin/sh` said a line that is not UTF-8"],
    )
    .await;
}

#[tokio::test]
async fn a_silent_worker_is_killed() {
    let mute = CustomColumn { timeout: Duration::from_millis(50), ..shell("exec sleep 100000") };
    check(mute, 1, expect!["Transient x1 timeout: the worker did not become ready and was killed within 0.05 s; `timeout` of the column sets the time"]).await;
}

/// A call that hangs in a worker that serves others fails alone.
#[tokio::test]
async fn a_call_that_hangs_fails_alone() {
    let chatter = format!(
        "{READY} read a; read b; while :; do echo '{{\"id\":2,\"values\":{{\"c\":2}}}}'; sleep 0.01; done"
    );
    let column = CustomColumn { timeout: Duration::from_millis(300), ..shell(&chatter) };
    check(
        column,
        2,
        expect![[r#"
        Transient x1 timeout: the call was not answered within 0.3 s; `timeout` of the column sets the time
        2"#]],
    )
    .await;
}

#[tokio::test]
async fn nothing_is_left_running() {
    let folder = Folder::new();
    let pids = folder.path().join("pids");
    let script = format!(
        "{READY} sleep 100000 & echo \"$$ $!\" > {}; read a; echo '{{\"id\":1,\"values\":{{\"c\":1}}}}'; cat",
        pids.display()
    );
    let generator = one(&shell(&script), &options(NoModels));
    assert_eq!(cell(&*generator, 0, &[Value::Int(1)]).await, "1");
    drop(generator);
    let pids = std::fs::read_to_string(pids).unwrap();
    for pid in pids.split_whitespace() {
        let runs = || {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // The state stands behind the name in parentheses; a zombie runs nothing.
            stat.rsplit(')')
                .next()
                .is_some_and(|rest| !rest.trim().is_empty() && !rest.trim().starts_with('Z'))
        };
        for _ in 0..1000 {
            if !runs() {
                break;
            }
            SystemClock.sleep_until(SystemClock.now() + Duration::from_millis(5)).await;
        }
        assert!(!runs(), "process {pid} is left");
    }
}

#[tokio::test]
async fn row_groups_have_a_result_per_row() {
    let column = |answer: &str| {
        let script = format!("{READY} read a; echo '{answer}'; cat");
        let side_effect_columns = vec!["s".to_owned()];
        CustomColumn { full_column: true, side_effect_columns, ..shell(&script) }
    };
    let run = async |answer: &str| {
        let generator = one(&column(answer), &options(NoModels));
        let rows = rows(vec![vec![Value::Int(1), Value::Int(2), Value::Int(3)]]);
        done(generator.batch(rows)).await.map_or_else(|fault| fault.to_string(), shown)
    };
    let answer = r#"{"id":1,"rows":[{"c":1,"s":{"x":[1]}},{"error":"row is bad"},{"s":null,"c":null}]}"#;
    expect![[r#"
        1 {"x":[1]}
        Permanent x1 custom: row is bad
        null null"#]]
    .assert_eq(&run(answer).await);
    expect!["reply_format: the answer has 1 rows for 3: a custom column keeps the number of rows"]
        .assert_eq(&run(r#"{"id":1,"rows":[{"c":1,"s":1}]}"#).await);
}

/// Answers with the question.
pub(crate) struct Echo;

impl Ask for Echo {
    fn ask(&self, question: Question) -> BoxFuture<String, Fault> {
        let content = question.messages.as_list().and_then(|list| list.last()?.get("content").cloned());
        let text = content.as_ref().and_then(Value::as_text).unwrap_or_default().to_owned();
        let Question { column, row, number, model, .. } = question;
        Box::pin(async move {
            if text == "fail" {
                return Err(Fault::transient("rate_limited", "later"));
            }
            Ok(format!("{model}/{column}/{row:?}/{number}: {text}"))
        })
    }
}

#[tokio::test]
async fn custom_code_asks_models() {
    let ask = |model: &str, content: &str| {
        format!(
            r#"read a; echo '{{"id":1,"ask":1,"model":"{model}","messages":[{{"role":"user","content":"{content}"}}]}}'; read b; printf '{{"id":1,"error":"'; printf '%s' "$b" | tr '"' "'"; echo '"}}'; cat"#
        )
    };
    for (model, content, expect) in [
        ("writer", "hi", expect!["Permanent x1 custom: {'id':1,'answer':1,'text':'writer/c/Some(4)/1: hi'}"]),
        (
            "writer",
            "fail",
            expect![
                "Permanent x1 custom: {'id':1,'answer':1,'error':{'class':'rate_limited','message':'later','transient':true}}"
            ],
        ),
        (
            "other",
            "hi",
            expect![
                "Permanent x1 custom: {'id':1,'answer':1,'error':{'class':'model','message':'the column `c` asks the model `other`, which is not in its `model_aliases`: add it there','transient':false}}"
            ],
        ),
    ] {
        let column = CustomColumn {
            model_aliases: vec!["writer".into()],
            ..shell(&format!("{READY} {}", ask(model, content)))
        };
        expect.assert_eq(&cell(&*one(&column, &options(Echo)), 4, &[Value::Int(1)]).await);
    }
}

struct FixedPost(u16, &'static str);

impl Post for FixedPost {
    fn post(&self, _: &str, body: String) -> BoxFuture<PostReply, PostError> {
        let reply =
            PostReply { status: self.0, retry_after: None, body: self.1.replace("BODY", &body).into() };
        Box::pin(async { Ok(reply) })
    }
}

#[tokio::test]
async fn an_endpoint_answers_calls() {
    let worker = WorkerConfig::Http { url: "http://w/".into() };
    let column = CustomColumn { worker, column_types: Vec::new(), ..shell("") };
    for (status, body, expect) in [
        (
            200,
            r#"{"values":{"c":BODY}}"#,
            expect![[r#"{"id":1,"function":"f","column":"c","params":null,"row":{"a":1}}"#]],
        ),
        (200, r#"{"error":"no"}"#, expect!["Permanent x1 custom: no"]),
        (
            200,
            "hm",
            expect![
                "Permanent x1 reply_format: the worker at http://w/ answered (expected value at line 1 column 1): hm"
            ],
        ),
        (
            503,
            "busy",
            expect!["Throttled { retry_after: None } x1 worker: the worker at http://w/ answered 503: busy"],
        ),
    ] {
        let options = WorkerOptions { post: Arc::new(FixedPost(status, body)), ..options(NoModels) };
        expect.assert_eq(&cell(&*one(&column, &options), 0, &[Value::Int(1)]).await);
    }
}

#[tokio::test]
async fn columns_with_one_command_share_a_process() {
    let script = "read hello; echo '{\"ready\":true,\"functions\":{\"f\":{},\"g\":{}}}'; n=0; while read call; do n=$((n+1)); echo \"{\\\"id\\\":$n,\\\"values\\\":{\\\"c$n\\\":$$}}\"; done";
    let column = CustomColumn { column_types: Vec::new(), ..shell(script) };
    let other = CustomColumn { function: "g".into(), ..column.clone() };
    let both = generators(&[("c1", &column), ("c2", &other)], &options(NoModels));
    let first = cell(&*both[0], 0, &[Value::Int(1)]).await;
    assert_eq!(first, cell(&*both[1], 0, &[Value::Int(1)]).await);
    assert!(first.parse::<u32>().is_ok(), "{first}");
}
