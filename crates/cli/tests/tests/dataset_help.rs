//! The help of `dataset` and its verbs.

use expect_test::{Expect, expect};

use crate::binary::anabranch;

fn check(args: &[&str], expected: &Expect) {
    expected.assert_eq(&anabranch(&[&["dataset"], args].concat(), "").shown());
}

#[test]
fn verbs_are_listed() {
    check(
        &["--help"],
        &expect![[r#"
            Datasets: columns by rows of samplers, templates and calls of language models

            Usage: anabranch dataset [OPTIONS] <COMMAND>

            Commands:
              check    Checks a configuration: reports all errors at once, or shows its columns, models and seed
              preview  Generates a few rows in memory and shows them as readable records
              build    Generates rows into a folder of Parquet files
              status   Shows the state of a build: how far it is, what it spent, and how to go on
              export   Writes the rows of a built dataset as JSON lines or CSV
              new      Writes a small configuration that runs at once, and a template of a models file
              help     Print this message or the help of the given subcommand(s)

            Options:
                  --log <FORMAT>  Log lines on stderr: text or json, a level (off, error, warn, info, debug), or
                                  both: json,debug. The level is warn if not given, and info for `serve` [env:
                                  ANABRANCH_LOG] [default: text]
              -h, --help          Print help
            exit 0
        "#]],
    );
}

#[test]
fn help_of_build() {
    check(
        &["build", "--help"],
        &expect![[r#"
            Generates rows into a folder of Parquet files

            Usage: anabranch dataset build [OPTIONS] --rows <N> --out <DIR> <FILE>

            Arguments:
              <FILE>  The configuration: .yaml, .yml or .json, as DataDesigner writes it or in the short form

            Options:
                  --models <MODELS.yaml>  A file with `model_configs` and `providers`, for configurations that
                                          have none or not all. The configuration's own come first
                  --run-config <FILE>     A file with run options (buffer_size, max_retries, ...). The
                                          configuration's own come first
                  --seed <S>              Seeds all random values: the same seed gives the same samples and
                                          prompts [default: 0]
                  --demo                  Every model alias is answered by the built-in demo model: offline,
                                          without cost, with made-up texts
                  --ca-file <FILE>        A PEM file with certificates that are trusted beside the system's, for
                                          servers of models
                  --rows <N>              The number of rows to generate
                  --out <DIR>             The folder to write to. It is made if it is not there
                  --json                  Events on stdout as JSON lines, instead of the report
                  --log <FORMAT>          Log lines on stderr: text or json, a level (off, error, warn, info,
                                          debug), or both: json,debug. The level is warn if not given, and info
                                          for `serve` [env: ANABRANCH_LOG] [default: text]
              -h, --help                  Print help

            Continue:
                  --replace        Removes the dataset that is in the folder, and builds it anew. The journal
                                   stays: replies in it that still fit are used again, and cost nothing. Other
                                   files stay too
                  --retry-failed   Tries failed rows of an earlier build again. All other rows stay as they are
                  --journal <DIR>  The folder of the journal, which several datasets can share, one after
                                   another; `none` switches it off: what is not in row groups on disk is paid
                                   again [default: journal/ in the output folder]

            Flow (each flag is a run option of the file too, and wins over it):
                  --buffer-size <N>       Rows per row group, and per file [default: buffer_size, else 1000]
                  --row-groups <N>        Row groups in flight at once [default: max_concurrent_row_groups, else
                                          3]
                  --tasks <N>             Cells in flight at once, all row groups together [default:
                                          max_in_flight_tasks, else 1024]
                  --parallel <[ALIAS=]N>  The most calls in flight at once, of every model or of one alias; may
                                          be repeated. Below it the limit adapts to the server by itself
                                          [default: the model's max_parallel_requests, else 4]
                  --retries <N>           Retries of a call after a failure that may pass [default: max_retries,
                                          else 4]
                  --salvage-rounds <N>    Further retries after those, half a minute and more apart, behind all
                                          other work [default: salvage_rounds, else 2]
                  --error-rate <R>        The share of a model's latest calls, from 0 to 1, that must fail to
                                          stop the build early [default: shutdown_error_rate, else 0.5]
                  --error-window <N>      The number of latest calls that the share is taken over; less than 50
                                          counts as 50 [default: shutdown_error_window, else 100]
                  --no-early-stop         Goes on however many calls fail [default: disable_early_shutdown, else
                                          false]

            The folder gets Parquet files of one row group each (parquet-files/), the failed cells
            (errors.parquet, errors.jsonl), metadata.json, status.json, a copy of the configuration, and the
            journal: every reply of a model, written down before anything else is done with it.

            The same command goes on where a build ended, after Ctrl-C, a crash or a kill: row groups on disk
            stay, replies in the journal are not paid for again. More rows, another buffer size and other flags
            of the flow continue as well. Another configuration, seed or model is refused.

            Ctrl-C (or SIGTERM) finishes and saves the calls in flight, then ends; a second one ends at once,
            and those calls are paid again. A build also stops early if half of a model's last 100 calls failed.

            A failed cell drops its row, unless its column says `on_error: keep_null` or `fail_run`. Failures
            that may pass (rate limits, timeouts, server errors) are retried first. Servers are reached through
            the proxies that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name.

            stdout: the report, or with --json one event per line: start, progress (every second), stopping,
            errors, end.
            stderr: progress, in place on a terminal, else as a line every 5 seconds.

              anabranch dataset build tickets.yaml --rows 1000 --out tickets --demo
              anabranch dataset build tickets.yaml --rows 1000 --out tickets --models models.yaml --parallel 64
              anabranch dataset status tickets

            Exit codes: 0 built, now or before, also if some rows were dropped (the report says so); 1 refused,
            failed, stopped by a signal or early, or no row was left (stderr says why); 2 wrong usage.
            exit 0
        "#]],
    );
}

#[test]
fn help_of_preview() {
    check(
        &["preview", "--help"],
        &expect![[r#"
        Generates a few rows in memory and shows them as readable records

        Usage: anabranch dataset preview [OPTIONS] <FILE>

        Arguments:
          <FILE>  The configuration: .yaml, .yml or .json, as DataDesigner writes it or in the short form

        Options:
              --models <MODELS.yaml>  A file with `model_configs` and `providers`, for configurations that
                                      have none or not all. The configuration's own come first
              --run-config <FILE>     A file with run options (buffer_size, max_retries, ...). The
                                      configuration's own come first
              --seed <S>              Seeds all random values: the same seed gives the same samples and
                                      prompts [default: 0]
              --demo                  Every model alias is answered by the built-in demo model: offline,
                                      without cost, with made-up texts
              --ca-file <FILE>        A PEM file with certificates that are trusted beside the system's, for
                                      servers of models
              --rows <N>              The number of rows, at most 10000 [default: 5]
              --json                  One JSON object per row
              --log <FORMAT>          Log lines on stderr: text or json, a level (off, error, warn, info,
                                      debug), or both: json,debug. The level is warn if not given, and info
                                      for `serve` [env: ANABRANCH_LOG] [default: text]
          -h, --help                  Print help

        A preview generates its rows as a build does, in one row group, and writes no file. The same seed
        gives the rows that a build starts with.

        stdout: the records, or with --json one JSON object per row. stderr: failed cells and everything
        else.

          anabranch dataset preview tickets.yaml --demo
          anabranch dataset preview tickets.yaml --models models.yaml --rows 2 --json

        Exit codes: 0 fine, also if some rows were dropped; 1 refused or failed (stderr says why); 2 wrong
        usage.
        exit 0
    "#]],
    );
}

#[test]
fn help_of_check_and_export() {
    check(
        &["check", "--help"],
        &expect![[r#"
        Checks a configuration: reports all errors at once, or shows its columns, models and seed

        Usage: anabranch dataset check [OPTIONS] <FILE>

        Arguments:
          <FILE>  The configuration: .yaml, .yml or .json, as DataDesigner writes it or in the short form

        Options:
              --models <MODELS.yaml>  A file with `model_configs` and `providers`, for configurations that
                                      have none or not all. The configuration's own come first
              --run-config <FILE>     A file with run options (buffer_size, max_retries, ...). The
                                      configuration's own come first
              --log <FORMAT>          Log lines on stderr: text or json, a level (off, error, warn, info,
                                      debug), or both: json,debug. The level is warn if not given, and info
                                      for `serve` [env: ANABRANCH_LOG] [default: text]
          -h, --help                  Print help

        Every problem has its place, FILE:LINE:COLUMN, and all are reported at once. Nothing is generated,
        no model is called; the seed is opened. An alias without a model is not an error here: `build` can
        be given one.

          anabranch dataset check tickets.yaml
          anabranch dataset check tickets.yaml --models models.yaml

        Exit codes: 0 fine; 1 refused (stderr says why); 2 wrong usage.
        exit 0
    "#]],
    );
    check(
        &["export", "--help"],
        &expect![[r#"
        Writes the rows of a built dataset as JSON lines or CSV

        Usage: anabranch dataset export [OPTIONS] --format <FORMAT> <DIR>

        Arguments:
          <DIR>
                  The folder that `build --out` named

        Options:
              --format <FORMAT>
                  The format of the rows

                  Possible values:
                  - jsonl: One JSON object per line
                  - csv:   Comma-separated values below a header; lists and maps are written as JSON

          -o, --output <FILE>
                  Where to; stdout if not given, or `-`

              --log <FORMAT>
                  Log lines on stderr: text or json, a level (off, error, warn, info, debug), or both:
                  json,debug. The level is warn if not given, and info for `serve`

                  [env: ANABRANCH_LOG]
                  [default: text]

          -h, --help
                  Print help (see a summary with '-h')

        Exit codes: 0 fine; 1 refused or failed (stderr says why); 2 wrong usage.
        exit 0
    "#]],
    );
}

#[test]
fn every_verb_says_its_exit_codes() {
    for verb in ["check", "preview", "build", "status", "export", "new"] {
        let said = anabranch(&["dataset", verb, "--help"], "");
        assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{verb}");
        assert!(said.stdout.contains("Exit codes: 0"), "{verb}");
    }
}

#[test]
fn wrong_usage_is_exit_code_2() {
    check(
        &["build", "x.yaml", "--rows", "0", "--out", "o"],
        &expect![[r#"
        stderr: error: invalid value '0' for '--rows <N>': 0 is not in 1..=1000000000000
        stderr:
        stderr: For more information, try '--help'.
        exit 2
    "#]],
    );
    check(
        &["build", "x.yaml", "--rows", "5"],
        &expect![[r#"
        stderr: error: the following required arguments were not provided:
        stderr:   --out <DIR>
        stderr:
        stderr: Usage: anabranch dataset build --rows <N> --out <DIR> <FILE>
        stderr:
        stderr: For more information, try '--help'.
        exit 2
    "#]],
    );
}
