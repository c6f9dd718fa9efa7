//! `runs`, `run show` and `dataset submit` with a server, whose token they find.

use std::path::Path;

use expect_test::{Expect, expect};
use serde_json::Value;

use crate::binary::in_folder;
use crate::recipe::empty;
use crate::recipe_served::Server;

const TOPICS: &str = "
columns:
  - {name: topic, column_type: sampler, sampler_type: category, params: {values: [tea, coffee]}}
  - {name: poem, column_type: llm-text, model_alias: writer, prompt: 'A poem about {{ topic }}.'}
";

/// What a command says, without what differs from time to time: the server, ids, times.
fn said(folder: &Path, server: &Server, args: &[&str]) -> String {
    let shown = in_folder(folder, args, "").shown_from(folder).replace(&server.url, "SERVER");
    shown.lines().map(|line| words(line) + "\n").collect()
}

fn words(line: &str) -> String {
    let is_id = |word: &str| {
        word.len() > 10
            && word.contains('-')
            && word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
    };
    let word = |word: &str| {
        let (before, last) = word.rsplit_once('/').map_or(("", word), |(before, last)| (before, last));
        let bare = last.trim_end_matches(',');
        match is_id(bare) {
            true if before.is_empty() => last.replace(bare, "ID"),
            true => format!("{before}/{}", last.replace(bare, "ID")),
            false => word.to_owned(),
        }
    };
    let line: Vec<String> = line.split(' ').map(word).collect();
    line.join(" ")
}

#[track_caller]
fn check(folder: &Path, server: &Server, args: &[&str], expected: &Expect) {
    expected.assert_eq(&said(folder, server, args));
}

#[test]
fn a_dataset_is_submitted_awaited_and_shown() {
    let folder = empty("serve_remote");
    std::fs::write(folder.join("poems.yaml"), TOPICS).unwrap();
    let server = Server::begin_with(&folder, &["--data", "store"]);
    let at = ["--server", &server.url, "--data", "store"];
    let args = |command: &[&'static str]| -> Vec<&str> { [command, &at].concat() };

    let submit = ["dataset", "submit", "poems.yaml", "--rows", "20", "--demo"];
    check(
        &folder,
        &server,
        &args(&submit),
        &expect![[r#"
            ID
            stderr: accepted; see SERVER/#/datasets/ID, or anabranch run show ID --server SERVER
            exit 0
        "#]],
    );
    // The server of --data is found, and the same key makes one dataset.
    let wait = ["--data", "store", "--wait", "--json", "--idempotency-key", "order-7"];
    let once = in_folder(&folder, &[&submit[..], &wait].concat(), "");
    let again = in_folder(&folder, &[&submit[..], &wait].concat(), "");
    assert_eq!((once.code, again.code), (0, 0), "{}{}", once.stderr, again.stderr);
    let lines =
        |text: &str| -> Vec<Value> { text.lines().map(|line| serde_json::from_str(line).unwrap()).collect() };
    let (first, second) = (lines(&once.stdout), lines(&again.stdout));
    assert_eq!(first[0]["id"], second[0]["id"]);
    assert_eq!((&first[1]["state"], &first[1]["rows_done"]), (&"complete".into(), &20.into()));
    assert!(once.stderr.contains("complete: 20 rows, 0 dropped, "), "{}", once.stderr);

    let listed = in_folder(&folder, &args(&["runs", "--json", "--kind", "dataset"]), "");
    let runs = lines(&listed.stdout);
    assert_eq!(runs.len(), 2, "{}", listed.stdout);
    let id = runs[0]["id"].as_str().unwrap();
    let shown = in_folder(&folder, &[&["run", "show", id][..], &at].concat(), "");
    assert!(shown.stdout.starts_with("dataset poems: complete after "), "{}", shown.stdout);
    let json = in_folder(&folder, &[&["run", "show", id, "--json"][..], &at].concat(), "");
    assert_eq!(lines(&json.stdout)[0]["request"]["rows"], 20);
    let one = in_folder(&folder, &args(&["runs", "--limit", "1"]), "");
    assert_eq!(one.stderr, "older runs are left out; --limit N shows more\n");
}

/// A server whose token is elsewhere notes that in its folder, for the commands of the same user.
#[test]
fn a_token_in_another_file_is_found() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = empty("serve_remote_token_file");
    std::fs::write(folder.join("poems.yaml"), TOPICS).unwrap();
    let submit = ["dataset", "submit", "poems.yaml", "--rows", "2", "--demo", "--data", "store"];
    {
        let server = Server::begin_with(&folder, &["--data", "store", "--token-file", "secret"]);
        assert!(!folder.join("store/token").exists());
        let runs = ["runs", "--data", "store", "--server", &server.url];
        for command in [&submit[..], &runs, &["recipe", "status", "--data", "store", "--server", &server.url]]
        {
            let said = in_folder(&folder, command, "");
            assert_eq!(said.code, 0, "{command:?}: {}", said.shown());
        }
        let note = folder.join("store/token-file");
        assert_eq!(std::fs::metadata(&note).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_to_string(&note).unwrap(), folder.join("secret").to_str().unwrap());
    }
    // The next server has the usual file, and says so.
    let _server = Server::begin_with(&folder, &["--data", "store"]);
    let said = in_folder(&folder, &submit, "");
    assert_eq!(said.code, 0, "{}", said.shown());
    assert!(!folder.join("store/token-file").exists());
}

#[test]
fn what_a_server_refuses_is_told() {
    let folder = empty("serve_remote_refused");
    let server = Server::begin_with(&folder, &["--data", "store"]);
    let at = ["--server", &server.url];
    let none = "018f3c2a9d4b-0007";
    check(
        &folder,
        &server,
        &[&["run", "show", none, "--data", "store"][..], &at].concat(),
        &expect![[r#"
            stderr: error: no run ID is kept by SERVER; `anabranch runs --server SERVER` lists them
            exit 1
        "#]],
    );
    check(
        &folder,
        &server,
        &[&["runs", "--data", "store"][..], &at].concat(),
        &expect![[r#"
        stderr: no runs in SERVER
        exit 0
    "#]],
    );
    // Another store has another token.
    check(
        &folder,
        &server,
        &[&["runs", "--data", "other"][..], &at].concat(),
        &expect![[r#"
        stderr: error: this server needs a token: send `Authorization: Bearer TOKEN`; the server's token file has a token, and `anabranch token add NAME` makes others; this command takes a token from --token-file FILE or from the variable ANABRANCH_TOKEN
        exit 1
    "#]],
    );
}

#[test]
fn a_submission_that_is_refused_is_told() {
    let folder = empty("serve_remote_wrong");
    std::fs::write(folder.join("poems.yaml"), TOPICS).unwrap();
    std::fs::write(folder.join("wrong.yaml"), "columns: [{name: a, column_type: sampler}]\n").unwrap();
    let server = Server::begin_with(&folder, &["--data", "store"]);
    check(
        &folder,
        &server,
        &["dataset", "submit", "poems.yaml", "--data", "other"],
        &expect![[r#"
        stderr: error: no server serves other; `anabranch serve` starts one, --server URL names another
        exit 1
    "#]],
    );
    check(
        &folder,
        &server,
        &["dataset", "submit", "wrong.yaml", "--data", "store"],
        &expect![[r#"
        stderr: error: the configuration has 1 error:
        stderr: config.yaml:1:12: column `a` needs `sampler_type`
        exit 1
    "#]],
    );
    check(
        &folder,
        &server,
        &["dataset", "submit", "none.yaml", "--data", "store"],
        &expect![[r#"
        stderr: error: cannot read `none.yaml`: No such file or directory (os error 2)
        exit 1
    "#]],
    );
    check(
        &folder,
        &server,
        &["runs", "--server", "here", "--data", "store"],
        &expect![[r#"
        stderr: error: --server here: an address looks like http://127.0.0.1:7421
        exit 2
    "#]],
    );
}

#[track_caller]
fn check_help(args: &[&str], expected: &Expect) {
    let folder = empty(&format!("serve_remote_help_{}", args.join("_")));
    expected.assert_eq(&in_folder(&folder, &[args, &["--help"]].concat(), "").shown_from(&folder));
}

#[test]
fn help_of_runs() {
    check_help(
        &["runs"],
        &expect![[r#"
            Lists the runs that a server has kept: plans, recipes, datasets

            Usage: anabranch runs [OPTIONS]

            Options:
                  --data <DIR>         The folder of the store; without this, `.anabranch` here or in the
                                       nearest folder above [env: ANABRANCH_DATA]
                  --server <URL>       The server to use instead of the store of --data: http://HOST:PORT or
                                       https://HOST:PORT [env: ANABRANCH_SERVER]
                  --token-file <FILE>  The file of the token for --server. The default is the token in
                                       ANABRANCH_TOKEN, or, for a server that owns the store of --data, the
                                       token in that folder [env: ANABRANCH_TOKEN_FILE]
                  --ca-file <FILE>     A PEM file of the authorities to trust for https:// instead of the
                                       system's [env: ANABRANCH_CA_FILE]
                  --kind <KIND>        Only runs of a kind: plan, recipe, dataset
                  --state <STATE>      Only runs in a state: running, complete, degraded, failed, stopped
                  --name <NAME>        Only runs of the plan, recipe or dataset with this name
                  --limit <N>          The most runs in the list [default: 20]
                  --json               Prints one JSON object per line
                  --log <FORMAT>       Log lines on stderr: text or json, a level (off, error, warn, info,
                                       debug), or both: json,debug. The level is warn if not given, and info for
                                       `serve` [env: ANABRANCH_LOG] [default: text]
              -h, --help               Print help

            Reads the files that `anabranch serve` keeps in the folder `runs` of its store: runs with a
            timeline, and builds of datasets. With --server, the server is asked: it has the last 10,000 runs,
            and those under way.

            stdout: a table, the latest run first; with --json one JSON object per line.

              anabranch runs --kind dataset --state failed
              anabranch runs --server http://127.0.0.1:7421
              anabranch run show 018f3c2a9d4b-0007

            Exit codes: 0 fine; 1 refused or failed (stderr says why); 2 wrong usage.
            exit 0
        "#]],
    );
}

#[test]
fn help_of_run_show() {
    check_help(
        &["run", "show"],
        &expect![[r#"
            Shows a run: its state, failures, ledger and timeline

            Usage: anabranch run show [OPTIONS] <ID>

            Arguments:
              <ID>  The run, as `anabranch runs` lists it

            Options:
                  --data <DIR>         The folder of the store; without this, `.anabranch` here or in the
                                       nearest folder above [env: ANABRANCH_DATA]
                  --server <URL>       The server to use instead of the store of --data: http://HOST:PORT or
                                       https://HOST:PORT [env: ANABRANCH_SERVER]
                  --token-file <FILE>  The file of the token for --server. The default is the token in
                                       ANABRANCH_TOKEN, or, for a server that owns the store of --data, the
                                       token in that folder [env: ANABRANCH_TOKEN_FILE]
                  --ca-file <FILE>     A PEM file of the authorities to trust for https:// instead of the
                                       system's [env: ANABRANCH_CA_FILE]
                  --html <FILE>        Writes the timeline as an HTML page; `-` is stdout
                  --json               Prints the run with all details as one JSON object
                  --log <FORMAT>       Log lines on stderr: text or json, a level (off, error, warn, info,
                                       debug), or both: json,debug. The level is warn if not given, and info for
                                       `serve` [env: ANABRANCH_LOG] [default: text]
              -h, --help               Print help

            Failures and fallbacks come first, then the ledger (the degraded parts of the answer), then one bar
            per node: `-` waited for inputs, `.` waited for a slot, a limit or a retry, `=` worked. A `*` marks
            the critical path, `|` the deadline.

              anabranch run show 018f3c2a9d4b-0007
              anabranch run show 018f3c2a9d4b-0007 --html timeline.html
              anabranch run show 018f3c2a9d4b-0007 --server http://127.0.0.1:7421

            Exit codes: 0 fine; 1 refused or failed (stderr says why); 2 wrong usage.
            exit 0
        "#]],
    );
}

#[test]
fn help_of_dataset_submit() {
    check_help(
        &["dataset", "submit"],
        &expect![[r#"
            Has a server build a dataset: says its id, and waits for its end if you like

            Usage: anabranch dataset submit [OPTIONS] <FILE>

            Arguments:
              <FILE>  The configuration: .yaml, .yml or .json

            Options:
                  --data <DIR>             The folder of the store; without this, `.anabranch` here or in the
                                           nearest folder above [env: ANABRANCH_DATA]
                  --server <URL>           The server to use instead of the store of --data: http://HOST:PORT or
                                           https://HOST:PORT [env: ANABRANCH_SERVER]
                  --token-file <FILE>      The file of the token for --server. The default is the token in
                                           ANABRANCH_TOKEN, or, for a server that owns the store of --data, the
                                           token in that folder [env: ANABRANCH_TOKEN_FILE]
                  --ca-file <FILE>         A PEM file of the authorities to trust for https:// instead of the
                                           system's [env: ANABRANCH_CA_FILE]
                  --models <MODELS.yaml>   A file with `model_configs` and `providers`, for servers that allow
                                           it
                  --rows <N>               The number of rows [default: `rows` of the configuration]
                  --seed <S>               Seeds all random values: the same seed gives the same samples and
                                           prompts [default: 0]
                  --demo                   Every model alias is answered by the built-in demo model: offline,
                                           without cost, with made-up texts
                  --name <NAME>            The name of the dataset [default: the name of the file]
                  --idempotency-key <KEY>  The same key again answers with the same dataset, instead of building
                                           a second one
                  --wait                   Waits until the dataset is built
                  --json                   JSON on stdout
                  --log <FORMAT>           Log lines on stderr: text or json, a level (off, error, warn, info,
                                           debug), or both: json,debug. The level is warn if not given, and info
                                           for `serve` [env: ANABRANCH_LOG] [default: text]
              -h, --help                   Print help

            Budget (a build that is continued counts all of its runs):
                  --max-cost <DOLLARS>  The most money, by `prices` of the configuration or the models file.
                                        Calls in flight count as mean ones, so it is exceeded by less than those
                                        [default: none]
                  --max-tokens <N>      The most tokens, input and output together, counted in the same way
                                        [default: none]
                  --max-calls <N>       The most calls. Conversations that have begun may still correct their
                                        replies [default: none]
                  --deadline <TIME>     The time for this run, such as 90s or 2h: no call begins after it
                                        [default: none]

            The server checks the configuration and keeps the job, which outlives this command and restarts of
            the server. With --wait, the command waits up to a minute for a server that restarts. Which models
            there are, and which files a seed may come from, is up to the server: see docs/serving-datasets.md.
            Without --server, the server of --data is asked.

            stdout: the id of the dataset; with --json its id, run and page, and with --wait then its state at
            the end.
            stderr: where to look; with --wait how far the build is, in place on a terminal, else as a line
            every
            5 seconds.

              anabranch dataset submit tickets.yaml --rows 1000 --demo
              anabranch dataset submit tickets.yaml --rows 1000 --server http://127.0.0.1:7421 --wait

            Exit codes: 0 accepted, and with --wait built; 1 refused, failed or stopped (stderr says why); 2
            wrong usage.
            exit 0
        "#]],
    );
}
