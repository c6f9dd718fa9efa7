//! Folders: put, written back, addressed by path, refused, stopped half-way.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anabranch_testkit::Rng;
use expect_test::expect_file;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::binary::in_folder;
use crate::recipe::{check, empty, recipe};
use crate::recipe_served::Server;

/// What is in a folder on disk: path, and kind with content.
type Model = BTreeMap<String, Item>;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Item {
    Folder,
    File(Vec<u8>, bool),
    Link(String),
}

/// Writes a model in an order of the caller's.
fn make(folder: &Path, model: &Model, backwards: bool) {
    fs::create_dir_all(folder).unwrap();
    let mut items: Vec<_> = model.iter().collect();
    if backwards {
        items.reverse();
    }
    for (path, item) in items {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match item {
            Item::Folder => fs::create_dir_all(&path).unwrap(),
            Item::Link(target) => symlink(target, &path).unwrap(),
            Item::File(bytes, executable) => {
                fs::write(&path, bytes).unwrap();
                let mode = if *executable { 0o755 } else { 0o644 };
                fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            }
        }
    }
}

/// Reads what is in a folder.
fn read(folder: &Path) -> Model {
    let mut model = Model::new();
    let mut waiting = vec![String::new()];
    while let Some(inside) = waiting.pop() {
        for entry in fs::read_dir(folder.join(&inside)).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let path = if inside.is_empty() { name } else { format!("{inside}/{name}") };
            let found = fs::symlink_metadata(entry.path()).unwrap();
            let item = if found.is_symlink() {
                Item::Link(fs::read_link(entry.path()).unwrap().to_str().unwrap().to_owned())
            } else if found.is_dir() {
                waiting.push(path.clone());
                Item::Folder
            } else {
                Item::File(fs::read(entry.path()).unwrap(), found.permissions().mode() & 0o100 != 0)
            };
            model.insert(path, item);
        }
    }
    model
}

fn random(rng: &mut Rng) -> Model {
    let names = ["a", "b c", "ä", "-x", "z.txt", "A", "{}", "a:b"];
    let mut folders = vec![String::new()];
    let mut model = Model::new();
    for _ in 0..rng.within(0..24) {
        let inside = folders[rng.within(0..folders.len() as u64) as usize].clone();
        let name = names[rng.within(0..names.len() as u64) as usize];
        let path = if inside.is_empty() { name.to_owned() } else { format!("{inside}/{name}") };
        if model.contains_key(&path) {
            continue;
        }
        let item = match rng.within(0..6) {
            0 | 1 if path.matches('/').count() < 5 => {
                folders.push(path.clone());
                Item::Folder
            }
            2 => Item::Link(
                ["a", "../..", "/etc/passwd", "nothing here"][rng.within(0..4) as usize].to_owned(),
            ),
            kind => {
                let len = [0, 5, 5, 70_000][rng.within(0..4) as usize];
                Item::File(vec![b'x'; len], kind == 3)
            }
        };
        model.insert(path, item);
    }
    model
}

#[test]
fn random_folders_come_back_as_they_were() {
    let folder = empty("folders_random");
    for seed in 0..12 {
        let model = random(&mut Rng::new(seed));
        let [one, other, back] = ["one", "other", "back"].map(|name| folder.join(format!("{name}{seed}")));
        make(&one, &model, false);
        make(&other, &model, true);
        let put = recipe(&folder, &format!("put one{seed}"));
        assert_eq!(put.code, 0, "seed {seed}: {}", put.shown());
        let again = recipe(&folder, &format!("put other{seed}"));
        assert_eq!(put.stdout, again.stdout, "seed {seed}: equal folders have equal addresses");
        let got = recipe(&folder, &format!("get {} -o back{seed}", put.stdout.trim()));
        assert_eq!(got.code, 0, "seed {seed}: {}", got.shown());
        assert_eq!(read(&back), model, "seed {seed}");
    }
}

fn site(folder: &Path) {
    let site = folder.join("site");
    let file = |text: &str| Item::File(text.as_bytes().to_vec(), false);
    let model = Model::from([
        ("index.html".to_owned(), file("<h1>Delta</h1>\n")),
        ("css/main.css".to_owned(), file("h1 { color: teal }\n")),
        ("old/main.css".to_owned(), file("h1 { color: teal }\n")),
        ("build.sh".to_owned(), Item::File(b"true\n".to_vec(), true)),
        ("home".to_owned(), Item::Link("index.html".to_owned())),
        ("empty".to_owned(), Item::Folder),
    ]);
    make(&site, &model, false);
}

#[test]
fn what_commands_say_of_folders() {
    let folder = empty("folders_said");
    site(&folder);
    fs::create_dir(folder.join("taken")).unwrap();
    fs::write(folder.join("taken/file"), "mine").unwrap();
    fs::write(
        folder.join("page.toml"),
        "[blob.site]\nfolder = \"site\"\n\n[recipe.page]\nfunction = \"concat/1.0.0\"\n\
         inputs = [\"site:index.html\", \"site:css/main.css\"]\nref = true\n",
    )
    .unwrap();
    let commands = [
        "put site --ref site",
        "put site --json",
        "resolve site",
        "resolve site:css --json",
        "tree site",
        "get site",
        "get site:index.html",
        "get site:css/main.css",
        "get site:index.htm",
        "get site:home",
        "get site:index.html/x",
        "get site -o taken",
        "get site -o taken --force",
        "get site:old -o old",
        "add uppercase/1.0.0 -i site:index.html --ref loud",
        "get loud",
        "add --file page.toml",
        "get page",
        "put nothing",
    ];
    check(&folder, &commands, &expect_file!["recipe_said/folders.txt"]);
    assert_eq!(read(&folder.join("taken")), read(&folder.join("site")));
    assert_eq!(fs::read_dir(folder.join("old")).unwrap().count(), 1);
}

#[test]
fn a_pin_holds_all_files_and_an_archive_has_them() {
    let folder = empty("folders_held");
    site(&folder);
    let address = recipe(&folder, "put site").stdout.trim().to_owned();
    assert_eq!(recipe(&folder, &format!("pin {address}")).code, 0);
    assert_eq!(recipe(&folder, "collect --grace 0s").code, 0);
    let exported = recipe(&folder, &format!("export site.archive {address}"));
    assert_eq!(exported.code, 0, "{}", exported.shown());
    let other = empty("folders_held_elsewhere");
    fs::copy(folder.join("site.archive"), other.join("site.archive")).unwrap();
    assert_eq!(recipe(&other, "import site.archive").code, 0);
    let got = recipe(&other, &format!("get {address} -o site"));
    assert_eq!(got.code, 0, "{}", got.shown());
    assert_eq!(read(&other.join("site")), read(&folder.join("site")));

    assert_eq!(recipe(&folder, &format!("unpin {address}")).code, 0);
    assert_eq!(recipe(&folder, "collect --grace 0s").code, 0);
    assert_eq!(recipe(&folder, &format!("get {address}:index.html")).code, 1);
}

#[test]
fn folders_go_through_a_server() {
    let folder = empty("folders_served");
    site(&folder);
    let server = Server::begin(&folder);
    let there = |command: &str| {
        let command = format!("{command} --server {}", server.url);
        let said = recipe(&folder, &command);
        assert_eq!(said.code, 0, "{command}: {}", said.shown());
        said.stdout
    };
    there("put site --ref site");
    there("get site -o back");
    assert_eq!(read(&folder.join("back")), read(&folder.join("site")));
    assert_eq!(there("get site:css/main.css"), "h1 { color: teal }\n");
}

/// Recipes of the function `folder` that are no folders, or would write elsewhere.
#[test]
fn hostile_folders_write_nothing() {
    let folder = empty("folders_hostile");
    fs::write(folder.join("payload"), "payload").unwrap();
    let put = recipe(&folder, "put payload --ref payload");
    assert_eq!(put.code, 0);
    for (at, name) in ["..", ".", "", "/etc/x", "../../x", "a/b", "a\0b"].iter().enumerate() {
        let params = format!("files:={}", serde_json::json!([name]));
        let file = format!(
            "recipe:\n  r:\n    function: folder/1.0.0\n    inputs: [\"ref:payload\"]\n    params: {{files: [{}]}}\n    ref: hostile{at}\n",
            serde_json::Value::from(*name)
        );
        fs::write(folder.join("hostile.yaml"), &file).unwrap();
        let by_file = recipe(&folder, "add --file hostile.yaml");
        assert_eq!(by_file.code, 1, "{name:?}: {}", by_file.shown());
        let args = ["recipe", "add", "folder/1.0.0", "-i", "payload", "-p", &params];
        let by_hand = in_folder(&folder, &args, "");
        assert_eq!(by_hand.code, 1, "{name:?}: {}", by_hand.shown());
    }
    // A link and a folder cannot have one name, so nothing is written through a link.
    let params = r#"links:={"out":"/tmp"}"#;
    let args = ["recipe", "add", "folder/1.0.0", "-i", "payload", "-p", r#"files:=["out"]"#, "-p", params];
    assert_eq!(in_folder(&folder, &args, "").code, 1);
}

#[test]
fn special_files_and_names_that_are_not_text_are_refused() {
    use std::os::unix::ffi::OsStrExt as _;
    let folder = empty("folders_special");
    fs::create_dir(folder.join("odd")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(folder.join("odd/socket")).unwrap();
    let said = recipe(&folder, "put odd");
    assert_eq!(said.code, 1);
    assert!(said.stderr.contains("odd/socket: not a file, a folder or a link"), "{}", said.stderr);
    fs::remove_file(folder.join("odd/socket")).unwrap();

    fs::write(folder.join("odd").join(std::ffi::OsStr::from_bytes(b"caf\xe9")), "").unwrap();
    let said = recipe(&folder, "put odd");
    assert_eq!(said.code, 1);
    assert!(said.stderr.contains(r#"the name "caf\xe9" is not UTF-8"#), "{}", said.stderr);
}

/// X16: a name cannot clear the screen, or colour it, or turn the text around.
#[test]
fn names_cannot_write_to_the_terminal() {
    let folder = empty("folders_escapes");
    let name = "\u{1b}[2J\u{7}\u{202e}";
    fs::create_dir(folder.join("odd")).unwrap();
    fs::write(folder.join("odd").join(name), "x").unwrap();
    symlink(name, folder.join("odd/link")).unwrap();
    fs::write(folder.join("odd.toml"), format!("[blob.odd]\nfile = \"{}\"\n", name.escape_debug())).unwrap();
    let run = |args: &[&str]| {
        let said = in_folder(&folder, &[&["recipe"], args].concat(), "");
        let all = format!("{}{}", said.stdout, said.stderr);
        assert!(!all.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{args:?}: {all:?}");
        (said.code, all)
    };
    assert_eq!(run(&["put", "odd", "--ref", "odd"]).0, 0);
    let (code, tree) = run(&["tree", "odd"]);
    assert_eq!(code, 0);
    assert!(tree.contains(r"\u{1b}[2J\u{7}\u{202e}: "), "{tree}");
    for args in [
        &["get", "odd:link"][..],
        &["get", &format!("odd:{name}x")],
        &["get", name],
        &["put", &format!("odd/{name}y")],
        &["add", name],
        &["ref", "set", name, "odd"],
        &["check", "odd.toml"],
    ] {
        assert_ne!(run(args).0, 0, "{args:?}");
    }
    assert_eq!(run(&["get", &format!("odd:{name}")]), (0, "x".to_owned()));
    assert_eq!(run(&["ls"]).0, 0);
    assert_eq!(run(&["get", "odd", "-o", "back"]).0, 0);
    assert!(folder.join("back").join(name).is_file());
}

#[test]
fn the_store_itself_is_left_out() {
    let folder = empty("folders_store");
    fs::write(folder.join("file"), "text").unwrap();
    let first = recipe(&folder, "put .");
    assert_eq!(first.code, 0, "{}", first.shown());
    let second = recipe(&folder, "put .");
    assert_eq!(first.stdout, second.stdout, "{}", second.shown());
}

#[test]
fn a_get_never_replaces_the_store_or_a_part_of_it() {
    let folder = empty("folders_over_store");
    site(&folder);
    let site = folder.join("site");
    assert_eq!(recipe(&site, "put . --ref site").code, 0);
    let server = Server::begin_with(&site, &["--anonymous", "admin"]);
    let beside = format!("get site -o . --force --data elsewhere --server {}", server.url);
    for (inside, command, problem) in [
        (&site, "get site -o . --force", "contains the store"),
        (&site, &*beside, "contains the store"),
        (&site.join("css"), "get site -o ../../site --force", "contains the store"),
        (&folder, "get site -o site --force --data site/.anabranch", "contains the store"),
        (&folder, "get site -o site/.anabranch --force --data site/.anabranch", "is in the store"),
        (&site, "get site:css -o .anabranch/css", "is in the store"),
        (&site, "get site:index.html -o .anabranch/format", "is in the store"),
        (&site, "export .anabranch/socket", "is in the store"),
    ] {
        let said = recipe(inside, command);
        assert!(said.code == 1 && said.stderr.contains(problem), "{command}: {}", said.shown());
    }
    drop(server);
    let other = recipe(&folder, "put site/css --data other --ref css");
    assert_eq!(other.code, 0, "{}", other.shown());
    let said = recipe(&folder, "get css -o site --force --data other");
    assert!(said.code == 1 && said.stderr.contains("contains the store"), "{}", said.shown());
    assert_eq!(recipe(&site, "get site:index.html").stdout, "<h1>Delta</h1>\n");
}

/// A put of a folder with a large file, and whether it is under way.
fn large_put(folder: &Path, bytes: u64) -> Child {
    fs::create_dir_all(folder.join("large")).unwrap();
    // A file with a hole takes no time to make, and some time to read.
    fs::File::create(folder.join("large/file")).unwrap().set_len(bytes).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    let command = command.args(["recipe", "put", "large"]).current_dir(folder);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    while incoming(folder) == 0 && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    child
}

/// A folder that changes at any time while it is put is refused, or was put before.
#[test]
fn a_folder_that_changes_while_it_is_put_is_refused() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 6] = [
        ("edited", |large| fs::write(large.join("before"), "new").unwrap()),
        ("grown", |large| {
            fs::OpenOptions::new().append(true).open(large.join("file")).unwrap().write_all(b"x").unwrap();
        }),
        ("removed", |large| fs::remove_file(large.join("inside/last")).unwrap()),
        ("added", |large| fs::write(large.join("inside/new"), "").unwrap()),
        ("relinked", |large| {
            fs::remove_file(large.join("link")).unwrap();
            symlink("after", large.join("link")).unwrap();
        }),
        ("replaced", |large| {
            fs::write(large.join("other"), "old").unwrap();
            fs::rename(large.join("other"), large.join("before")).unwrap();
        }),
    ];
    for (name, change) in changes {
        let folder = empty(&format!("folders_changed_{name}"));
        let large = folder.join("large");
        fs::create_dir_all(large.join("inside")).unwrap();
        fs::write(large.join("before"), "old").unwrap();
        fs::write(large.join("inside/last"), "last").unwrap();
        symlink("before", large.join("link")).unwrap();
        let mut child = large_put(&folder, 256 << 20);
        let id = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        kill_process(id, Signal::STOP).unwrap();
        let (_, stopped) = waitpid(Some(id), WaitOptions::UNTRACED).unwrap().unwrap();
        if !stopped.stopped() {
            continue; // It had ended before.
        }
        change(&large);
        kill_process(id, Signal::CONT).unwrap();
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(1), "{name}: {said}");
        let problem = "changed while the folder was read; put the folder again";
        assert!(said.contains(problem), "{name}: {said}");
        let status = recipe(&folder, "status --json");
        let status: serde_json::Value = serde_json::from_str(&status.stdout).unwrap();
        assert_eq!(status["recipes"], 0, "{name}: {status}");
        fs::remove_dir_all(&folder).unwrap();
    }
}

fn incoming(folder: &Path) -> usize {
    match fs::read_dir(folder.join(".anabranch/incoming")) {
        Ok(entries) => entries.count(),
        Err(error) if error.kind() == ErrorKind::NotFound => 0,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_put_that_is_stopped_leaves_nothing_behind() {
    for (name, signal) in [("int", Signal::INT), ("kill", Signal::KILL)] {
        let folder = empty(&format!("folders_stopped_{name}"));
        let mut child = large_put(&folder, 1 << 30);
        let id = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        // It may have ended by itself.
        let _ = kill_process(id, signal);
        let code = child.wait().unwrap().code();
        if signal == Signal::INT {
            assert!(matches!(code, Some(0 | 130)), "{code:?}");
            assert_eq!(incoming(&folder), 0);
        }
        let status = recipe(&folder, "status --json");
        assert_eq!((status.code, incoming(&folder)), (0, 0), "{}", status.shown());
        let status: serde_json::Value = serde_json::from_str(&status.stdout).unwrap();
        assert_eq!(status["health"]["fine"], true, "{status}");
        // A folder is there with its file, or not at all.
        assert!(status["recipes"] == 0 || status["blobs"] == 1, "{status}");
        fs::remove_dir_all(&folder).unwrap();
    }
}

#[test]
fn a_get_that_is_stopped_leaves_nothing_behind() {
    let folder = empty("folders_get_stopped");
    fs::create_dir_all(folder.join("large")).unwrap();
    fs::File::create(folder.join("large/file")).unwrap().set_len(64 << 20).unwrap();
    assert_eq!(recipe(&folder, "put large --ref large").code, 0);
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    let command = command.args(["recipe", "get", "large", "-o", "back"]).current_dir(&folder);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let partial = || {
        let names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().ends_with(".partial")).count()
    };
    while partial() == 0 && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    let id = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    let _ = kill_process(id, Signal::INT);
    let code = child.wait().unwrap().code();
    assert!(matches!(code, Some(0 | 130)), "{code:?}");
    assert_eq!(partial(), 0);
    assert_eq!(folder.join("back").exists(), code == Some(0));
    fs::remove_dir_all(&folder).unwrap();
}
