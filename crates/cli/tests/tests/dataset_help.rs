//! The help of `dataset` and its verbs.

use expect_test::{Expect, expect, expect_file};

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
              plan     Says what a build would cost, and makes no call: calls, tokens, money and time, by column
              submit   Has a server build a dataset: says its id, and waits for its end if you like
              status   Shows the state of a build: how far it is, what it spent, and how to go on
              report   Shows a built dataset: columns, distributions, errors, spend; as text or as one HTML page
              diff     Compares two built datasets: rows, columns, cells, settings, spend
              why      Tells the story of one row: prompts, replies, cost and time of each cell, or what dropped
                       it
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
    let said = anabranch(&["dataset", "build", "--help"], "");
    expect_file!["dataset_build_help.txt"].assert_eq(&said.shown());
    assert!(said.stdout.lines().all(|line| line.chars().count() <= 100));
}

#[test]
fn help_of_status() {
    check(
        &["status", "--help"],
        &expect![[r#"
            Shows the state of a build: how far it is, what it spent, and how to go on

            Usage: anabranch dataset status [OPTIONS] <DIR>

            Arguments:
              <DIR>  The folder that `build --out` named

            Options:
                  --json          One JSON object
                  --log <FORMAT>  Log lines on stderr: text or json, a level (off, error, warn, info, debug), or
                                  both: json,debug. The level is warn if not given, and info for `serve` [env:
                                  ANABRANCH_LOG] [default: text]
              -h, --help          Print help

            The state is running, complete, stopped (by a signal, by its budget, or early because calls failed),
            failed, or interrupted (its process was killed or crashed). A build writes its state every second; a
            running one is not disturbed. Calls, tokens, money and time are those of all runs since the build
            began; cells are those since it was last continued.

              anabranch dataset status tickets
              anabranch dataset status tickets --json

            Exit codes: 0 the state was read, whatever it is; 1 there is no build, or its files cannot be read
            (stderr says why); 2 wrong usage.
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
fn help_of_report_and_diff() {
    check(
        &["report", "--help"],
        &expect![[r#"
            Shows a built dataset: columns, distributions, errors, spend; as text or as one HTML page

            Usage: anabranch dataset report [OPTIONS] <DIR>

            Arguments:
              <DIR>  The folder that `build --out` named

            Options:
                  --html [<FILE>]  Writes the report as one HTML page: to this file, `-` for stdout, or
                                   DIR/report.html if no file is named
                  --json           One JSON object
                  --log <FORMAT>   Log lines on stderr: text or json, a level (off, error, warn, info, debug),
                                   or both: json,debug. The level is warn if not given, and info for `serve`
                                   [env: ANABRANCH_LOG] [default: text]
              -h, --help           Print help

            The rows are read once, in bounded memory; figures of many rows that are estimates say so. A build
            that runs is not disturbed: its report is about the row groups on disk.

            stdout: the report as text, or with --json one JSON object. With --html: nothing; the page is one
            file
            without scripts that loads nothing from anywhere, so it can be sent to others as it is.

              anabranch dataset report tickets
              anabranch dataset report tickets --html
              anabranch dataset report tickets --html /tmp/tickets.html

            Exit codes: 0 the dataset was read; 1 there is no dataset, or its files cannot be read (stderr says
            why); 2 wrong usage.
            exit 0
        "#]],
    );
    check(
        &["diff", "--help"],
        &expect![[r#"
        Compares two built datasets: rows, columns, cells, settings, spend

        Usage: anabranch dataset diff [OPTIONS] <A> <B>

        Arguments:
          <A>  The folder of the first dataset
          <B>  The folder of the second dataset

        Options:
              --json          One JSON object
              --log <FORMAT>  Log lines on stderr: text or json, a level (off, error, warn, info, debug), or
                              both: json,debug. The level is warn if not given, and info for `serve` [env:
                              ANABRANCH_LOG] [default: text]
          -h, --help          Print help

        Rows are the same row if they have the same stable number, whatever their order and row groups; rows
        that a processor added have none and are compared in their order. Settings, inputs and models that
        differ, failed cells and spend are shown beside the rows, but do not make datasets different.

          anabranch dataset diff tickets-monday tickets-tuesday
          anabranch dataset diff tickets-monday tickets-tuesday --json

        Exit codes: 0 rows, columns and cells are equal; 1 they differ, or a dataset cannot be read (stderr
        says why); 2 wrong usage.
        exit 0
    "#]],
    );
}

#[test]
fn every_verb_says_its_exit_codes() {
    for verb in ["check", "preview", "build", "status", "report", "diff", "export", "new"] {
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
            stderr: Usage: anabranch dataset build --out <DIR> --rows <N> <FILE>
            stderr:
            stderr: For more information, try '--help'.
            exit 2
        "#]],
    );
}
