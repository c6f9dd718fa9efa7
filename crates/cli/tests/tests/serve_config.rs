//! `serve --print-config`, and settings that are refused.

use std::fs;
use std::path::Path;
use std::process::Command;

use expect_test::{Expect, expect};

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
    let file = "[serve]\nlisten = '127.0.0.1:1'\ndata = 'store'\ncache = '1GiB'\ngrace = '3s'\nmax_queue = 7\n\
                allow_hosts = ['recipes.example', 'other.example:7421']\n";
    fs::write(folder.join("anabranch.toml"), file).unwrap();
    let text = printed(
        &folder,
        &["--grace", "4s", "--max-body", "1MiB"],
        &[("ANABRANCH_GRACE", "5s"), ("ANABRANCH_CACHE", "2GiB"), ("ANABRANCH_ANONYMOUS", "read")],
    );
    let file = folder.join("anabranch.toml").display().to_string();
    let folder = folder.display().to_string();
    expect![[r#""#]].assert_eq(&text.replace(&file, "FILE").replace(&folder, "FOLDER"));
}

#[test]
fn wrong_settings_are_told() {
    let folder = empty("serve_wrong");
    let check = |file: &str, args: &[&str], expected: Expect| {
        fs::write(folder.join("anabranch.toml"), file).unwrap();
        expected.assert_eq(&in_folder(&folder, &[&["serve"], args].concat(), "").shown());
    };
    check("[serve]\nmax_conections = 5", &[], expect![[r#""#]]);
    check("[serve]\ngrace = 'soon'", &[], expect![[r#""#]]);
    check("[serve]\nthreads = 0", &[], expect![[r#""#]]);
    check("", &["--listen", "0.0.0.0:0"], expect![[r#""#]]);
    check("", &["--tls-cert", "cert.pem"], expect![[r#""#]]);
    check("", &["--anonymous", "all"], expect![[r#""#]]);
}
