//! Help and usage.

use expect_test::expect;

use crate::binary::anabranch;

#[test]
fn help_goes_to_stdout() {
    expect![[r#"
        Runs graphs of work: nodes that wait on the network or use the CPU, each started as soon as its
        inputs are ready

        Usage: anabranch [OPTIONS] <COMMAND>

        Commands:
          plan         Ranking plans: rows from sources, expressions, filters, sorts
          recipe       Recipes: functions of blobs and of each other, computed once and kept
          dataset      Datasets: columns by rows of samplers, templates and calls of language models
          serve        Serves plans, recipes and datasets over HTTP and gRPC, with a console for browsers
          runs         Lists the runs that a server has kept: plans, recipes, datasets
          run          One run: its state, failures and timeline
          token        Tokens, which let clients call a server
          demo         Runs an example feed, recipes and a dataset on built-in data, then serves a console
                       that shows them
          completions  Prints the completions for a shell
          man          Prints a manual page, or writes all of them
          version      Prints the version
          help         Print this message or the help of the given subcommand(s)

        Options:
              --log <FORMAT>  Log lines on stderr: text or json, a level (off, error, warn, info, debug), or
                              both: json,debug. The level is warn if not given, and info for `serve` [env:
                              ANABRANCH_LOG] [default: text]
          -h, --help          Print help
          -V, --version       Print version

        Exit codes: 0 fine; 1 refused or failed (stderr says why); 2 wrong usage; 3 done, but data that had
        been acknowledged was lost (the log says what).
        exit 0
    "#]]
    .assert_eq(&anabranch(&["--help"], "").shown());
}

#[test]
fn help_of_a_verb_lists_its_options() {
    expect![[r#"
        Answers one request: reads it from stdin, writes the answer as one line of JSON

        Usage: anabranch plan run [OPTIONS] <FILE|NAME>

        Arguments:
          <FILE|NAME>  A plan file, or the name of a plan in the plan folder

        Options:
              --registry <DIR>           The registry folder: keys.toml, params.toml, endpoints.ENV.toml,
                                         ...
              --env <NAME>               The environment, which chooses endpoints.ENV.toml. Without --data
                                         and --redis, rows come from those endpoints
              --data <FILE[=PATTERN]>    Rows from this file (.json, .csv, .parquet), held in memory; may be
                                         given several times. Tables need a pattern for the keys of their
                                         rows: `users.csv=user:{id}`
              --redis <ADDRESS>          Rows from this Redis, for all Redis endpoints of the registry:
                                         HOST:PORT, or a redis://, rediss://, redis-cluster:// or
                                         rediss-cluster:// URL
              --plans <DIR>              The folder of NAME.plan.ts and NAME.plan.json files
              --project <FILE>           The project file; without this option, the nearest anabranch.toml
                                         in this folder or above
              --test-ops                 Allow the ops for tests (test::sleep, test::busy_cpu), as `test_ops
                                         = true` in the project file does
              --request <JSON>           The request, instead of stdin
              --cpu-threads <N>          Threads for CPU work that is too large to run in place; by default
                                         one per core
              --inline-threshold <TIME>  CPU work that is expected to take longer than this runs on those
                                         threads: 50us, 1ms, 0
              --sequential               Runs one node at a time, for comparison
              --deadline-ms <N>          How long the answer may take; if not given, what the plan says
              --node-timeout-ms <N>      A timeout for every node, in addition to those of the plan
              --trace <FILE>             Writes a timeline of the run; the ending says which kind: .html,
                                         .svg, or .json for Perfetto
              --table                    Writes the answer as a table
              --by-output                Writes one list of rows per output of the plan, by its name
              --log <FORMAT>             Log lines on stderr: text or json, a level (off, error, warn, info,
                                         debug), or both: json,debug. The level is warn if not given, and
                                         info for `serve` [env: ANABRANCH_LOG] [default: text]
          -h, --help                     Print help

        stdout: {"request_id", "engine_request_id", "candidates": [{"id", "fields"}], "ledger"} on one line,
        or {"error", "detail"} if the request is refused. Problems of the plan, and errors while it runs, go
        to stderr.

          anabranch plan run feed.plan.json --registry DIR --data DATA.json < request.json
          anabranch plan run feed --request '{"user_id": 1}' --table --trace feed.html

        Exit codes: 0 answered; 1 refused or failed; 2 wrong usage.
        exit 0
    "#]]
    .assert_eq(&anabranch(&["plan", "run", "--help"], "").shown());
    for verb in ["check", "explain", "why", "bench", "list", "seed", "info", "ops", "types", "new"] {
        let said = anabranch(&["plan", verb, "--help"], "");
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{verb}");
        assert!(said.stdout.contains("Exit codes: 0"), "{verb} says its exit codes");
    }
}

#[test]
fn wrong_usage_is_exit_code_2() {
    let check =
        |args: &[&str], expected: expect_test::Expect| expected.assert_eq(&anabranch(args, "").shown());
    check(
        &["plan", "rum"],
        expect![[r#"
            stderr: error: unrecognized subcommand 'rum'
            stderr:
            stderr:   tip: a similar subcommand exists: 'run'
            stderr:
            stderr: Usage: anabranch plan [OPTIONS] <COMMAND>
            stderr:
            stderr: For more information, try '--help'.
            exit 2
        "#]],
    );
    check(
        &["plan", "run", "feed", "--inline-threshold", "50"],
        expect![[r#"
            stderr: error: invalid value '50' for '--inline-threshold <TIME>': a duration is a number and a unit: 50us, 1.5ms, 2s, 5m, 24h, or 0
            stderr:
            stderr: For more information, try '--help'.
            exit 2
        "#]],
    );
    check(
        &["plan", "run", "feed", "--data", "data.json", "--redis", "localhost:1"],
        expect![[r#"
            stderr: error: the argument '--data <FILE[=PATTERN]>' cannot be used with '--redis <ADDRESS>'
            stderr:
            stderr: Usage: anabranch plan run --data <FILE[=PATTERN]> <FILE|NAME>
            stderr:
            stderr: For more information, try '--help'.
            exit 2
        "#]],
    );
}
