//! `serve --print-config`, and settings that are refused.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::binary::in_folder;
use crate::recipe::empty;

/// What `serve --print-config` prints, with variables.
fn printed(folder: &Path, args: &[&str], variables: &[(&str, &str)]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_anabranch"))
        .arg("serve")
        .args(args)
        .arg("--print-config")
        .current_dir(folder)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn settings_say_where_they_come_from() {
    let folder = empty("serve_config");
    let file = "[serve]\nlog = 'json'\nlisten = '127.0.0.1:1'\ndata = 'store'\ncache = '1GiB'\ngrace = '3s'\nmax_queue = 7\n\
                allow_hosts = ['recipes.example', 'other.example:7421']\ncanary = 0.05\nkeep_requests = true\n\
                batch_threads = 5\ndataset_files = ['seeds', '/srv/seeds']\ndataset_builds = 3\ndataset_allow_custom = true\n\
                [engine]\ncpu_threads = 3\n";
    fs::write(folder.join("anabranch.toml"), file).unwrap();
    let text = printed(
        &folder,
        &["--grace", "4s", "--max-body", "1MiB", "--keep-requests=false"],
        &[
            ("ANABRANCH_GRACE", "5s"),
            ("ANABRANCH_CACHE", "2GiB"),
            ("ANABRANCH_ANONYMOUS", "read"),
            ("ANABRANCH_DATASET_DISK", "1GiB"),
            ("ANABRANCH_DATASET_OPEN", "9"),
            ("ANABRANCH_ACCEPT_LOSS", "true"),
        ],
    );
    let file = folder.join("anabranch.toml").display().to_string();
    let folder = folder.display().to_string();
    let text = text.replace(&file, "FILE").replace(&folder, "FOLDER");
    let lines: Vec<String> =
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in [
        "setting value from",
        "project FILE found",
        "log json,info FILE",
        "listen 127.0.0.1:1 FILE",
        "data FOLDER/store FILE",
        "token_file FOLDER/store/token default",
        "anonymous read environment",
        "tls_cert none default",
        "insecure_listen false default",
        "allow_hosts recipes.example, other.example:7421 FILE",
        "cache 2 GiB environment",
        "quota none default",
        "max_body 1 MiB flag",
        "max_queue 7 FILE",
        "cpu_threads 3 FILE",
        "batch_threads 5 FILE",
        "grace 4 s flag",
        "accept_loss true environment",
        "canary 0.05 FILE",
        "canary_for 10m 00s default",
        "keep_requests false flag",
        "dataset_models none default",
        "dataset_files FOLDER/seeds, /srv/seeds FILE",
        "dataset_builds 3 FILE",
        "dataset_open 9 environment",
        "dataset_kept 1000 default",
        "dataset_disk 1 GiB environment",
        "dataset_allow_custom true FILE",
        "dataset_ca_file none default",
    ] {
        assert!(lines.iter().any(|found| found == line), "no {line:?} in:\n{text}");
    }
}

#[test]
fn the_project_and_the_log_are_options_and_variables_too() {
    let folder = empty("serve_config_log");
    fs::write(folder.join("other.toml"), "[serve]\nlog = 'error'\n").unwrap();
    let check = |args: &[&str], variables: &[(&str, &str)], project: &str, log: &str| {
        let text = printed(&folder, args, variables);
        let line = |name: &str| {
            let line = text.lines().find(|line| line.starts_with(name)).unwrap();
            line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
        };
        assert_eq!((line("project "), line("log ")), (project.to_owned(), log.to_owned()), "{text}");
    };
    check(&[], &[], "none default", "text,info default");
    check(&["--log", "json,debug"], &[], "none default", "json,debug flag");
    check(&["--project", "other.toml"], &[], "other.toml flag", "text,error other.toml");
    let both = [("ANABRANCH_PROJECT", "other.toml"), ("ANABRANCH_LOG", "json")];
    check(&[], &both, "other.toml environment", "json,info environment");
}

#[test]
fn wrong_settings_are_told() {
    let folder = empty("serve_wrong");
    let check = |file: &str, args: &[&str], code: i32, told: &[&str]| {
        fs::write(folder.join("anabranch.toml"), file).unwrap();
        let said = in_folder(&folder, &[&["serve"], args].concat(), "");
        assert_eq!(said.code, code, "{}", said.shown());
        told.iter().for_each(|told| assert!(said.stderr.contains(told), "no {told:?} in {}", said.shown()));
    };
    let typo = ["anabranch.toml:2:1", "there is no such field", "did you mean `max_connections`?"];
    check("[serve]\nmax_conections = 5", &[], 1, &typo);
    check("[serve]\ngrace = 'soon'", &[], 1, &["anabranch.toml:2:", "serve, grace"]);
    check("[serve]\nthreads = 0", &[], 1, &["serve, threads", "expected a whole number from 1"]);
    check("[serve]\ncanary = 2", &[], 1, &["serve, canary", "expected a number from 0 to 1"]);
    check("[serve]\ncanary = 'some'", &[], 1, &["anabranch.toml:2:", "must be a number"]);
    check("[serve]\ndataset_builds = 0", &[], 1, &["serve, dataset_builds", "a whole number from 1 to 1000"]);
    check("[serve]\nlog = 'loud'", &[], 1, &["serve, log", "expected text or json"]);
    check("[serve]\nquota = 0", &[], 1, &["serve, quota", "leaves no room"]);
    check("", &["--listen", "0.0.0.0:0"], 2, &["is not loopback", "--tls-cert FILE", "--insecure-listen"]);
    check("", &["--tls-cert", "cert.pem"], 2, &["--tls-cert needs --tls-key"]);
    check("", &["--anonymous", "all"], 2, &["expected read, run or admin"]);
}
