//! Validation: verdicts of parsers, programs and endpoints, each for its own row.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anabranch_dataset::config::{CodeLang, RemoteValidator, ValidationColumn, Validator};
use anabranch_dataset::post::{Post, PostError, PostReply};
use anabranch_dataset::validation::{Services, Tools, generator};
use anabranch_engine::clock::{Clock, SystemClock};
use anabranch_engine::workload::BoxFuture;
use anabranch_value::Value;
use expect_test::{Expect, expect};
use futures_util::future::join;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{Folder, JumpClock, done, rows, shown};

fn services(tools: Tools) -> Services {
    Services { tools, post: Arc::new(crate::kit::client()), clock: Arc::new(SystemClock) }
}

fn column(targets: &[&str], batch_size: usize, validator: Validator) -> ValidationColumn {
    let target_columns = targets.iter().map(|target| (*target).to_owned()).collect();
    ValidationColumn { target_columns, batch_size, validator }
}

fn texts(codes: &[&str]) -> Vec<Value> {
    codes.iter().map(|code| Value::from(*code)).collect()
}

async fn check_code(lang: &str, tools: Tools, batch_size: usize, columns: Vec<Vec<Value>>, expect: Expect) {
    let names = ["code", "other"];
    let lang = CodeLang::new(lang).unwrap();
    let column = column(&names[..columns.len()], batch_size, Validator::Code { lang });
    let generator = generator("verdict", &column, &services(tools)).unwrap();
    expect.assert_eq(&shown(done(generator.batch(rows(columns))).await.unwrap()));
}

#[tokio::test]
async fn the_parser_finds_syntax_errors_of_python() {
    let codes = [
        "x = [1, 2\n",
        "def f(:\n    pass\n",
        "if x:\n    a()\n  b()\n",
        "x = 1\n  y = 2\n",
        "def f():\nreturn 1\n",
        "def f():\n    # nothing\n",
        "print 'x'\n",
        "x = 'abc\n",
        "for i in range(3) print(i)",
    ];
    for code in codes {
        let lang = CodeLang::new("python").unwrap();
        let column = column(&["code"], 10, Validator::Code { lang });
        let generator = generator("verdict", &column, &services(Tools::none())).unwrap();
        let verdicts = done(generator.batch(rows(vec![texts(&[code])]))).await.unwrap();
        let verdict = &verdicts[0].as_ref().unwrap()[0];
        assert_eq!(verdict.get("is_valid"), Some(&Value::Bool(false)), "{code}: {}", verdict.to_json());
    }
}

#[tokio::test]
async fn the_parser_takes_valid_python() {
    let codes = [
        "",
        "x = 1; y = 2\n",
        "class A:\n    def f(self, *, a: int = 1) -> None:\n        '''doc'''\n        return [x for x in y if x]\n\n    b = 1\n",
        "if x: pass\nelif y:\n\tz()\nelse:\n    w()\n",
        "match p:\n    case [1, *rest] if rest:\n        pass\n    case _:\n        pass\n",
        "async def f():\n    async with a as b, c:\n        await d\n\n# end",
        "try:\n    f(f\"{a!r:>{w}}\")\nexcept* E as e:\n    raise X from e\n",
        "def f(a, /, b): return (yield a)\n@d\ndef g():\n  if a:\n      b\n  # comment\n  c\n",
    ];
    let lang = CodeLang::new("python").unwrap();
    let column = column(&["code"], 3, Validator::Code { lang });
    let generator = generator("verdict", &column, &services(Tools::none())).unwrap();
    let verdicts = done(generator.batch(rows(vec![texts(&codes)]))).await.unwrap();
    for (verdict, code) in verdicts.iter().zip(codes) {
        let verdict = &verdict.as_ref().unwrap()[0];
        assert_eq!(verdict.get("is_valid"), Some(&Value::Bool(true)), "{code}: {}", verdict.to_json());
    }
}

/// DataDesigner gives all rows of the second column the verdict of row 0.
#[tokio::test]
async fn every_row_of_every_target_has_its_own_verdict() {
    let mut first = texts(&["x = 1", "x ="]);
    first.push(Value::Null);
    let second = texts(&["y =", "y = 2", "y = 3"]);
    check_code("python", Tools::none(), 2, vec![first, second], expect![[r#"
        {"code":{"is_valid":true,"python_linter_score":10.0,"python_linter_severity":"none","python_linter_messages":[],"validator":"parser"},"other":{"is_valid":false,"python_linter_score":0.0,"python_linter_severity":"fatal","python_linter_messages":[{"type":"fatal","symbol":"syntax-error","line":1,"column":1,"message":"invalid syntax near `y =`"}],"validator":"parser"}}
        {"code":{"is_valid":false,"python_linter_score":0.0,"python_linter_severity":"fatal","python_linter_messages":[{"type":"fatal","symbol":"syntax-error","line":1,"column":1,"message":"invalid syntax near `x =`"}],"validator":"parser"},"other":{"is_valid":true,"python_linter_score":10.0,"python_linter_severity":"none","python_linter_messages":[],"validator":"parser"}}
        {"code":{"is_valid":false,"python_linter_score":0.0,"python_linter_severity":"fatal","python_linter_messages":[{"type":"fatal","symbol":"no-code","line":1,"column":1,"message":"expected code as text, found null"}],"validator":"parser"},"other":{"is_valid":true,"python_linter_score":10.0,"python_linter_severity":"none","python_linter_messages":[],"validator":"parser"}}"#]]).await;
}

#[tokio::test]
async fn sql_is_parsed_by_its_dialect() {
    let codes = [
        "SELECT a FROM t WHERE b > 1;",
        "SELEC a",
        "",
        "CREATE TABLE t (a DECIMAL(10), b DECIMAL(10, 2))",
        "SELECT (1",
    ];
    check_code("sql:ansi", Tools::none(), 10, vec![texts(&codes)], expect![[r#"
        {"is_valid":true,"error_messages":"","validator":"parser"}
        {"is_valid":false,"error_messages":"sql parser error: Expected: an SQL statement, found: SELEC at Line: 1, Column: 1","validator":"parser"}
        {"is_valid":false,"error_messages":"there is no statement","validator":"parser"}
        {"is_valid":false,"error_messages":"line 1: `DECIMAL(10)` has no scale: write DECIMAL(precision, scale)","validator":"parser"}
        {"is_valid":false,"error_messages":"sql parser error: Expected: ), found: EOF","validator":"parser"}"#]]).await;
    let special = texts(&["SELECT TOP 5 [a b] FROM t", "SELECT `a` FROM `p.d.t`", "SELECT a::int FROM t"]);
    for dialect in ["sql:tsql", "sql:bigquery", "sql:postgres"] {
        let lang = CodeLang::new(dialect).unwrap();
        let column = column(&["code"], 10, Validator::Code { lang });
        let generator = generator("verdict", &column, &services(Tools::none())).unwrap();
        let verdicts = done(generator.batch(rows(vec![special.clone()]))).await.unwrap();
        assert!(
            verdicts
                .iter()
                .any(|verdict| { verdict.as_ref().unwrap()[0].get("is_valid") == Some(&Value::Bool(true)) })
        );
    }
}

/// Each of these is cheap to write and could be dear to check.
#[tokio::test]
async fn hostile_code_is_bounded() {
    let parens = |count: usize| format!("SELECT {}1{}", "(".repeat(count), ")".repeat(count));
    let tables = |count: usize| format!("SELECT * FROM {}t{}", "(".repeat(count), ")".repeat(count));
    let sql = [
        parens(30),
        parens(10_000),
        tables(20),
        tables(10_000),
        format!("SELECT {}1", "1+".repeat(3_900)),
        format!("SELECT {}1", "1+".repeat(100_000)),
        format!("SELECT 1 {}", "UNION SELECT 1 ".repeat(1_900)),
        format!("SELECT {}1", "NOT ".repeat(10_000)),
        format!("SELECT {}1{}", "CASE WHEN ".repeat(200), " END".repeat(200)),
        "x".repeat(2 << 20),
    ];
    let python = [
        "(".repeat(100_000),
        "[".repeat(50_000) + &"]".repeat(50_000),
        "x = ".to_owned() + &"1+".repeat(100_000) + "1",
        "if x:\n".to_owned()
            + &(1..500).map(|depth| format!("{}if x:\n", " ".repeat(depth))).collect::<String>(),
    ];
    for (lang, codes) in [("sql:ansi", &sql[..]), ("sql:postgres", &sql[..]), ("python", &python[..])] {
        let lang = CodeLang::new(lang).unwrap();
        let column = column(&["code"], 10, Validator::Code { lang });
        let generator = generator("verdict", &column, &services(Tools::none())).unwrap();
        let codes = codes.iter().map(|code| Value::from(code.as_str())).collect();
        let verdicts = done(generator.batch(rows(vec![codes]))).await.unwrap();
        assert!(verdicts.iter().all(Result::is_ok));
    }
}

#[tokio::test]
async fn languages_without_a_validator_are_refused() {
    let lang = CodeLang::new("bash").unwrap();
    let error = generator("v", &column(&["code"], 10, Validator::Code { lang }), &services(Tools::none()))
        .err()
        .unwrap();
    expect!["the validation column `v` cannot check `bash`: only python and sql:* can be"].assert_eq(&error);
}

/// A program in ruff's place: it says that files with `bad` are wrong, and lists them backwards.
const RUFF: &str = r#"
if [ "$1" = --version ]; then echo "ruff 9.8.7"; exit; fi
printf '['
for file in $(ls -r); do
  grep -q bad "$file" && printf '%s{"code":"F821","message":"bad","filename":"%s","location":{"row":1,"column":2}}' "$comma" "$PWD/$file" && comma=,
done
printf ']'
"#;

#[tokio::test]
async fn the_verdicts_of_a_program_are_aligned_by_row() {
    let folder = Folder::new();
    let tools = Tools { ruff: Some(folder.script("ruff", RUFF)), ..Tools::none() };
    let codes = texts(&["a = 1\nb = 2", "bad", "c", "d", "bad = 1\nx = bad\ny\nz\nw\n"]);
    check_code("python", tools, 2, vec![codes], expect![[r#"
        {"is_valid":true,"python_linter_score":10.0,"python_linter_severity":"none","python_linter_messages":[],"validator":"ruff 9.8.7"}
        {"is_valid":false,"python_linter_score":0.0,"python_linter_severity":"error","python_linter_messages":[{"type":"error","symbol":"F821","line":1,"column":2,"message":"bad"}],"validator":"ruff 9.8.7"}
        {"is_valid":true,"python_linter_score":10.0,"python_linter_severity":"none","python_linter_messages":[],"validator":"ruff 9.8.7"}
        {"is_valid":true,"python_linter_score":10.0,"python_linter_severity":"none","python_linter_messages":[],"validator":"ruff 9.8.7"}
        {"is_valid":false,"python_linter_score":0.0,"python_linter_severity":"error","python_linter_messages":[{"type":"error","symbol":"F821","line":1,"column":2,"message":"bad"}],"validator":"ruff 9.8.7"}"#]]).await;
}

#[tokio::test]
async fn a_program_that_fails_or_hangs_costs_its_batch_only() {
    let folder = Folder::new();
    let script = "grep -q boom *.py && { echo 'no memory' >&2; exit 3; }\ngrep -q hang *.py && sleep 100000\necho '[]'";
    let tools = Tools {
        ruff: Some(folder.script("ruff", script)),
        wall: Duration::from_millis(300),
        ..Tools::none()
    };
    let lang = CodeLang::new("python").unwrap();
    let column = column(&["code"], 1, Validator::Code { lang });
    let generator = generator("verdict", &column, &services(tools)).unwrap();
    let rows = rows(vec![texts(&["boom", "hang", "fine"])]);
    let verdicts = shown(done(generator.batch(rows)).await.unwrap());
    expect![[r#"
        Transient x1 validator: `ruff` gave no result: no memory
        Transient x1 validator: `ruff` did not end within 0.3 s and was killed
        {"is_valid":true,"python_linter_score":10.0,"python_linter_severity":"none","python_linter_messages":[],"validator":"ruff"}"#]].assert_eq(&folder.clean(verdicts));
}

/// Replies from a list, and the bodies that were posted.
#[derive(Default)]
struct ScriptedPost {
    replies: Mutex<Vec<Option<Result<PostReply, PostError>>>>,
    posted: Mutex<Vec<String>>,
}

impl Post for ScriptedPost {
    fn post(&self, _: &str, body: String) -> BoxFuture<PostReply, PostError> {
        self.posted.lock().unwrap().push(body);
        let mut replies = self.replies.lock().unwrap();
        let reply = if replies.is_empty() { None } else { replies.remove(0) };
        Box::pin(async move {
            match reply {
                Some(reply) => reply,
                None => std::future::pending().await,
            }
        })
    }
}

fn reply(status: u16, body: &str) -> Option<Result<PostReply, PostError>> {
    Some(Ok(PostReply { status, retry_after: None, body: body.into() }))
}

fn remote(schema: Option<&str>) -> RemoteValidator {
    RemoteValidator {
        endpoint_url: "http://v/check".into(),
        output_schema: schema.map(|schema| Value::from_json(schema).unwrap()),
        timeout: Duration::from_secs(30),
        max_retries: 2,
        retry_backoff: 2.0,
        max_parallel_requests: 1,
    }
}

async fn check_remote(
    remote: RemoteValidator,
    replies: Vec<Option<Result<PostReply, PostError>>>,
    expect: Expect,
) {
    let post = Arc::new(ScriptedPost { replies: Mutex::new(replies), ..ScriptedPost::default() });
    let clock = JumpClock::new();
    let services = Services {
        tools: Tools::none(),
        post: Arc::clone(&post) as Arc<dyn Post>,
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
    };
    let column = column(&["a", "b"], 2, Validator::Remote(remote));
    let generator = generator("verdict", &column, &services).unwrap();
    let ints = |from: i64| (from..from + 3).map(Value::Int).collect();
    let verdicts = done(generator.batch(rows(vec![ints(1), ints(11)]))).await.unwrap();
    let posted = post.posted.lock().unwrap().join("\n");
    let pauses: Vec<Duration> = clock.slept.lock().unwrap().clone();
    let pauses: Vec<u64> = pauses.iter().map(Duration::as_secs).filter(|seconds| *seconds != 30).collect();
    expect.assert_eq(&format!("{posted}\n{}\npauses {pauses:?}", shown(verdicts)));
}

#[tokio::test]
async fn a_remote_validator_gets_batches() {
    let replies = vec![
        reply(200, r#"{"data":[{"is_valid":true,"why":"x"},{"is_valid":false}]}"#),
        reply(200, r#"{"data":[{"is_valid":null}]}"#),
    ];
    check_remote(
        remote(None),
        replies,
        expect![[r#"
        {"data":[{"a":1,"b":11},{"a":2,"b":12}]}
        {"data":[{"a":3,"b":13}]}
        {"is_valid":true,"why":"x"}
        {"is_valid":false}
        {"is_valid":null}
        pauses []"#]],
    )
    .await;
}

/// DataDesigner fills a failed batch with nothing; here its rows have faults, and no other row has.
#[tokio::test]
async fn a_remote_batch_that_fails_costs_its_rows_only() {
    let refused = Some(Err(PostError { message: "connection refused".into(), transient: true }));
    let replies = vec![reply(503, "busy"), refused, None, reply(200, r#"{"data":[{"is_valid":true}]}"#)];
    check_remote(
        remote(None),
        replies,
        expect![[r#"
        {"data":[{"a":1,"b":11},{"a":2,"b":12}]}
        {"data":[{"a":1,"b":11},{"a":2,"b":12}]}
        {"data":[{"a":1,"b":11},{"a":2,"b":12}]}
        {"data":[{"a":3,"b":13}]}
        Permanent x3 remote_validator: the validator at http://v/check did not answer within 30 s
        Permanent x3 remote_validator: the validator at http://v/check did not answer within 30 s
        {"is_valid":true}
        pauses [1, 2]"#]],
    )
    .await;
    let replies = vec![reply(400, "bad"), reply(200, r#"{"data":[]}"#)];
    check_remote(
        remote(None),
        replies,
        expect![[r#"
        {"data":[{"a":1,"b":11},{"a":2,"b":12}]}
        {"data":[{"a":3,"b":13}]}
        Permanent x1 remote_validator: the validator at http://v/check answered with status 400: bad
        Permanent x1 remote_validator: the validator at http://v/check answered with status 400: bad
        Permanent x1 remote_validator: the validator at http://v/check answered 0 verdicts for 1 records
        pauses []"#]],
    )
    .await;
}

#[tokio::test]
async fn remote_verdicts_fit_the_schema() {
    let schema = r##"{"properties":{"data":{"type":"array","items":{"$ref":"#/$defs/V"}}},
        "$defs":{"V":{"type":"object","required":["is_valid","score"],"properties":{"score":{"type":"number"}}}}}"##;
    let replies = vec![
        reply(200, r#"{"data":[{"is_valid":true,"score":1},{"is_valid":true,"score":"x"}]}"#),
        reply(200, r#"{"data":[{"score":2}]}"#),
    ];
    check_remote(remote(Some(schema)), replies, expect![[r#"
        {"data":[{"a":1,"b":11},{"a":2,"b":12}]}
        {"data":[{"a":3,"b":13}]}
        {"is_valid":true,"score":1}
        Permanent x1 remote_validator: the validator at http://v/check answered a verdict that does not fit `output_schema`: $.score: expected number, found "x"
        Permanent x1 remote_validator: the validator at http://v/check answered a verdict without `is_valid`: a map
        pauses []"#]]).await;
}

#[tokio::test]
async fn the_http_client_posts_and_reads() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v", listener.local_addr().unwrap());
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut seen = Vec::new();
        while !seen.ends_with(b"{\"x\":1}") {
            assert_ne!(stream.read_buf(&mut seen).await.unwrap(), 0);
        }
        let reply = "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nwait";
        stream.write_all(reply.as_bytes()).await.unwrap();
    };
    let client = crate::kit::client();
    let ((), reply) = join(serve, client.post(&url, "{\"x\":1}".into())).await;
    let reply = reply.unwrap();
    assert_eq!((reply.status, reply.retry_after), (429, Some(Duration::from_secs(7))));
    assert_eq!(reply.body, b"wait");
    let error = client.post("ftp://x/", String::new()).await.unwrap_err();
    assert!(!error.transient && error.message.contains("is not an http:// or https:// URL"), "{error}");
}
