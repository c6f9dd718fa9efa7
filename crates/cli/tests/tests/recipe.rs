//! `recipe`: what a user sees, verb by verb.

use std::path::{Path, PathBuf};

use expect_test::{ExpectFile, expect_file};

use crate::binary::{CommandOutput, in_folder, root, scratch};

/// An empty folder of the test's own.
pub(crate) fn empty(test: &str) -> PathBuf {
    let folder = scratch(test);
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs `anabranch recipe` in a folder; the words of the command are parted by spaces.
pub(crate) fn recipe(folder: &Path, command: &str) -> CommandOutput {
    let args: Vec<&str> = std::iter::once("recipe").chain(command.split(' ')).collect();
    in_folder(folder, &args, "")
}

/// What commands say, one after the other: as a terminal would show it.
pub(crate) fn check(folder: &Path, commands: &[&str], expected: &ExpectFile) {
    let mut transcript = String::new();
    for command in commands {
        let said = timeless(&recipe(folder, command).shown_from(folder));
        transcript.push_str(&format!("$ anabranch recipe {command}\n{said}\n"));
    }
    expected.assert_eq(&transcript);
}

/// Times, which are never the same twice, as `TIME`.
pub(crate) fn timeless(text: &str) -> String {
    let mut shown = String::new();
    for line in text.lines() {
        let mut words: Vec<&str> = line.split(' ').collect();
        for at in 1..words.len() {
            let is_unit = ["ns", "µs", "ms", "s"].contains(&words[at]);
            if is_unit && words[at - 1].parse::<f64>().is_ok() {
                (words[at - 1], words[at]) = ("TIME", "\0");
            }
        }
        for word in &mut words {
            let is_date = word.len() == 10 && word.chars().filter(|letter| *letter == '-').count() == 2;
            let is_clock = word.len() == 8 && word.chars().filter(|letter| *letter == ':').count() == 2;
            if (is_date || is_clock) && word.starts_with(|letter: char| letter.is_ascii_digit()) {
                *word = if is_date { "DATE" } else { "CLOCK" };
            }
        }
        let line = words.join(" ").replace(" \0", "");
        // How many there are is told elsewhere, and grows.
        let line = if line.starts_with("functions  ") { "functions  COUNT" } else { &line };
        shown.push_str(line);
        shown.push('\n');
    }
    shown
}

/// A folder with a store that has the example in it.
pub(crate) fn with_example(test: &str) -> PathBuf {
    let folder = empty(test);
    for file in ["page.toml", "story.txt"] {
        std::fs::copy(root().join("examples/recipes").join(file), folder.join(file)).unwrap();
    }
    let said = recipe(&folder, "add --file page.toml");
    assert_eq!(said.code, 0, "{}", said.shown());
    folder
}

#[test]
fn help_of_recipes() {
    let folder = empty("recipe_help");
    let commands = [
        "--help",
        "add --help",
        "get --help",
        "collect --help",
        "ref --help",
        "ls --help",
        "du --help",
        "rm --help",
        "explain --help",
    ];
    check(&folder, &commands, &expect_file!["recipe_said/help.txt"]);
}

#[test]
fn a_file_is_put_and_its_page_computed_once() {
    let folder = with_example("recipe_file");
    let commands = [
        "add --file page.toml",
        "get page",
        "get page -o again.txt",
        "get page --range 6..15",
        "resolve page",
        "resolve page.gz",
        "status",
    ];
    check(&folder, &commands, &expect_file!["recipe_said/file.txt"]);
    let again = std::fs::read_to_string(folder.join("again.txt")).unwrap();
    assert_eq!(again, recipe(&folder, "get page").stdout);
    let json: serde_json::Value =
        serde_json::from_str(&recipe(&folder, "resolve page --json").stdout).unwrap();
    assert_eq!((&json["function"], &json["memo"]["size"]), (&"concat/1.0.0".into(), &365.into()));
    let names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 4, "nothing half written is left: {names:?}");
}

#[test]
fn recipes_one_by_one() {
    let folder = empty("recipe_single");
    std::fs::write(folder.join("a.txt"), "ab").unwrap();
    std::fs::write(folder.join("b.txt"), "cd").unwrap();
    let commands = [
        "put a.txt --ref a",
        "put a.txt b.txt",
        "put a.txt --json",
        "add repeat/1.0.0 -i a -p count:=3 --ref thrice",
        "get thrice",
        "resolve thrice",
        "resolve a",
        "invalidate a --cascade --dry-run --detail",
        "invalidate thrice",
        "invalidate thrice --json",
        "add concat/1.0.0 -i 0000000000000000000000000000000000000000000000000000000000000000 -i a",
        "add nobody/9 -i a --allow-unknown --json",
    ];
    check(&folder, &commands, &expect_file!["recipe_said/single.txt"]);
}

#[test]
fn pins_names_and_collection() {
    let folder = with_example("recipe_roots");
    recipe(&folder, "get page");
    std::fs::write(folder.join("loose.txt"), "nobody wants this").unwrap();
    let commands = [
        "ref list",
        "ref set front page",
        "ref get front",
        "ref drop page.gz",
        "ref history page.gz",
        "pin front",
        "pin front",
        "pins",
        "put loose.txt",
        "collect",
        "collect --grace 0 --keep-recipes --dry-run --detail",
        "collect --grace 0",
        "collect --grace 0 --json",
        "unpin front",
    ];
    check(&folder, &commands, &expect_file!["recipe_said/roots.txt"]);
    let scrub = recipe(&folder, "scrub");
    assert!(scrub.code == 0 && scrub.stderr.ends_with("all is well\n"), "{}", scrub.shown());
    assert!(recipe(&folder, "get page").stdout.starts_with("Where the delta begins\n"));
}

#[test]
fn archives_move_between_stores() {
    let folder = with_example("recipe_archive");
    let page = recipe(&folder, "get page").stdout;
    let commands = [
        "export page.archive page",
        "import page.archive --data other",
        "import page.archive --data other --json",
        "import page.archive --data other --trust-memos --label again",
        "imports drop 000000000000 --data other",
    ];
    check(&folder, &commands, &expect_file!["recipe_said/archive.txt"]);
    assert_eq!(recipe(&folder, "get page --data other").stdout, page);
    let collected = recipe(&folder, "collect --grace 0 --data other");
    assert!(collected.stderr.starts_with("removed 0 blobs"), "{}", collected.shown());
    let listed: serde_json::Value =
        serde_json::from_str(&recipe(&folder, "imports --data other --json").stdout).unwrap();
    let labels: Vec<_> = listed.as_array().unwrap().iter().map(|it| it["label"].clone()).collect();
    assert_eq!(labels, ["page.archive", "again"]);
    for import in listed.as_array().unwrap() {
        let id = import["id"].as_str().unwrap();
        let dropped = recipe(&folder, &format!("imports drop {id} --data other"));
        assert!(dropped.stderr.contains("no longer holds"), "{}", dropped.shown());
    }
    assert_eq!(recipe(&folder, "ref list --data other").stdout, "", "names go with the import that set them");
    let collected = recipe(&folder, "collect --grace 0 --data other");
    assert!(!collected.stderr.starts_with("removed 0 blobs"), "{}", collected.shown());
    let half = std::fs::read(folder.join("page.archive")).unwrap();
    std::fs::write(folder.join("half.archive"), &half[..half.len() / 2]).unwrap();
    let said = recipe(&folder, "import half.archive --data third");
    assert!(said.code == 1 && said.stderr.contains("the archive is damaged"), "{}", said.shown());
}

#[test]
fn a_name_is_set_if_it_is_as_expected() {
    let folder = with_example("recipe_expected");
    let page = recipe(&folder, "ref get page").stdout;
    let taken = recipe(&folder, &format!("ref set page {} --if-is none", page.trim()));
    assert!(taken.code == 1 && taken.stderr.contains("but no address was expected"), "{}", taken.shown());
    let set = recipe(&folder, "ref set copy page --if-is none");
    assert_eq!((set.code, set.stdout), (0, page.clone()));
    let same = recipe(&folder, "ref set copy page --if-is page");
    assert_eq!((same.code, same.stdout), (0, page));
    let history = recipe(&folder, "ref history copy --json").stdout;
    assert_eq!(history.matches("address").count(), 1, "{history}");
    let stays = recipe(&folder, "ref drop copy --if-is page.gz");
    assert!(stays.code == 1 && stays.stderr.contains("as expected"), "{}", stays.shown());
    assert_eq!(recipe(&folder, "ref drop copy --if-is page").code, 0);
}

/// A name takes precedence over the beginning of an address, so an archive of a stranger must not bring such a name.
#[test]
fn a_name_that_looks_like_an_address_is_not_imported() {
    let folder = with_example("recipe_facade");
    let set = recipe(&folder, "ref set facade page");
    assert!(
        set.code == 0 && set.stderr.contains("looks like the beginning of an address"),
        "{}",
        set.shown()
    );
    recipe(&folder, "export page.archive facade");
    let imported = recipe(&folder, "import page.archive --data other");
    assert!(imported.stderr.contains("skipped the name `facade`"), "{}", imported.shown());
    assert!(!recipe(&folder, "ref list --data other").stdout.contains("facade"));
}

/// X16: what a stranger's archive brings cannot clear the screen, nor turn a line around.
#[test]
fn recipes_of_strangers_cannot_write_to_the_terminal() {
    let folder = empty("recipe_escapes");
    let run = |args: &[&str]| {
        let said = in_folder(&folder, &[&["recipe"], args].concat(), "");
        let all = format!("{}{}", said.stdout, said.stderr);
        assert!(!all.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{args:?}: {all:?}");
        assert_eq!(said.code, 0, "{args:?}: {all}");
        all
    };
    let odd = "odd\u{202e}";
    let function = format!("{odd}/1");
    run(&["add", &function, "--allow-unknown", "-p", "note=\u{9b}2J\u{1b}[2J\u{202e}", "--ref", odd]);
    run(&["export", "odd.archive", odd]);
    let imported = run(&["import", "odd.archive", "--data", "other"]);
    assert!(imported.contains(r" odd\u{202e}"), "{imported}");
    let resolved = run(&["resolve", odd, "--data", "other"]);
    assert!(resolved.contains(r"odd\u{202e}/1"), "{resolved}");
    assert!(resolved.contains(r#"note = "\u{9b}2J\u001b[2J\u{202e}""#), "{resolved}");
    for args in [&["ls"][..], &["ref", "list"], &["tree", odd], &["explain", odd], &["imports"]] {
        run(&[args, &["--data", "other"]].concat());
    }
}

#[test]
fn functions_are_listed() {
    let folder = empty("recipe_functions");
    let said = recipe(&folder, "functions");
    assert!(said.code == 0 && said.stdout.lines().count() > 20, "{}", said.shown());
    let commands = ["functions take", "functions concat/1.0.0 --json", "functions concta"];
    check(&folder, &commands, &expect_file!["recipe_said/functions.txt"]);
    assert!(!folder.join(".anabranch").exists(), "no store is needed for that");
}

#[test]
fn what_is_wrong_is_said_with_the_way_out() {
    let folder = empty("recipe_errors");
    let commands = ["get page", "status --data nowhere"];
    check(&folder, &commands, &expect_file!["recipe_said/no_store.txt"]);
    assert!(!folder.join(".anabranch").exists() && !folder.join("nowhere").exists());
    std::fs::write(folder.join("no.txt"), "").unwrap();
    let commands = [
        "put no.txt --ref empty",
        "put missing.txt",
        "put .",
        "get page",
        "add concta/1.0.0",
        "add take/1.0.0 -i x",
        "add concat",
        "add concat/1.0.0 -p count",
        "add concat/1.0.0 -p count:=x",
        "add",
        "get page --range 9..3",
        "get page --json",
        "get page --json -o -",
        "collect --grace soon",
        "status --server localhost:1",
        "status --server http://localhost:1 --token-file missing",
        "ref get page",
        "add non_empty/1.0.0 -i empty --ref refused",
        "get refused -o never.txt",
    ];
    check(&folder, &commands, &expect_file!["recipe_said/wrong.txt"]);
    assert!(!folder.join("never.txt").exists());
}

#[test]
fn problems_of_files_are_told_with_their_lines() {
    let folder = empty("recipe_problems");
    let files = [
        (
            "wrong.toml",
            "[blob.a]\ntext = 7\n\n[recipe.b]\nfunction = \"take/1.0.0\"\ninputs = [\"aa\"]\n\
             params = { bytes = \"x\", byte = 1 }\n",
        ),
        (
            "wrong.yaml",
            "recipe:\n  a: {function: concat/1.0.0, inputs: [b]}\n  b: {function: concat/1.0.0, inputs: [a]}\n",
        ),
        (
            "ref.toml",
            "[recipe.a]\nfunction = \"concat/1.0.0\"\ninputs = [\"ref:old\", \"ref:123456\"]\n\n\
             [recipe.b]\nfunction = \"concat/1.0.0\"\ninputs = [\"ref:old\", \"ref:deltas\"]\n",
        ),
        (
            "inside.toml",
            "[blob.site]\nfolder = \"site\"\n\n[recipe.a]\nfunction = \"concat/1.0.0\"\n\
             inputs = [\"site:index.htm\", \"site:index.html\", \"site:css/none.css\"]\n",
        ),
    ];
    std::fs::create_dir_all(folder.join("site/css")).unwrap();
    std::fs::write(folder.join("site/index.html"), "<h1>Delta</h1>\n").unwrap();
    files.iter().for_each(|(name, text)| std::fs::write(folder.join(name), text).unwrap());
    std::fs::write(folder.join("latin.toml"), b"# caf\xe9\n").unwrap();
    let commands = [
        "add --file wrong.toml",
        "add --file wrong.yaml",
        "add --file missing.toml",
        "add --file recipe.txt",
        "add --file latin.toml",
        "put site/index.html --ref delta",
        "add --file ref.toml",
        "add --file inside.toml",
    ];
    check(&folder, &commands, &expect_file!["recipe_said/problems.txt"]);
}

#[test]
fn links_and_devices_stay_what_they_are() {
    let folder = with_example("recipe_links");
    std::fs::write(folder.join("meant"), "old").unwrap();
    for (link, to) in [("to_file", "meant"), ("to_device", "/dev/null")] {
        std::os::unix::fs::symlink(to, folder.join(link)).unwrap();
        for verb in [format!("get page -o {link}"), format!("export {link} page")] {
            let said = recipe(&folder, &verb);
            assert_eq!(said.code, 0, "{}", said.shown());
            assert!(folder.join(link).is_symlink(), "{verb}");
        }
    }
    assert!(std::fs::read(folder.join("meant")).unwrap().starts_with(b"anabranch archive"));
    std::fs::create_dir(folder.join("below")).unwrap();
    for (link, to) in
        [("dangling", "below/missing"), ("twice", "dangling"), ("nowhere", "gone/missing"), ("loop", "loop")]
    {
        std::os::unix::fs::symlink(to, folder.join(link)).unwrap();
    }
    let said = recipe(&folder, "get page -o twice");
    assert_eq!(said.code, 0, "{}", said.shown());
    assert!(folder.join("twice").is_symlink() && folder.join("dangling").is_symlink());
    let value = std::fs::read_to_string(folder.join("below/missing")).unwrap();
    assert_eq!(value, recipe(&folder, "get page").stdout);
    for link in ["nowhere", "loop"] {
        let said = recipe(&folder, &format!("get page -o {link}"));
        assert!(said.code == 1 && said.stderr.contains(&format!("cannot write {link}")), "{}", said.shown());
        assert!(folder.join(link).is_symlink());
    }
}

#[test]
fn files_are_put_all_or_none() {
    let folder = empty("recipe_all_or_none");
    std::fs::write(folder.join("one"), "one").unwrap();
    let said = recipe(&folder, "put one another");
    assert_eq!(said.code, 1);
    assert!(said.stderr.contains("cannot read another"), "{}", said.stderr);
    assert!(!folder.join(".anabranch").exists());
}

#[test]
fn the_store_of_a_folder_above_is_found() {
    let folder = empty("recipe_above");
    let below = folder.join("one/two");
    std::fs::create_dir_all(&below).unwrap();
    std::fs::write(folder.join("a.txt"), "ab").unwrap();
    let said = recipe(&folder, "put a.txt --ref a");
    assert_eq!(said.stderr, format!("made a new store in {}\n", folder.join(".anabranch").display()));
    assert_eq!(recipe(&below, "get a").stdout, "ab");
    assert_eq!(recipe(&below, "put ../../a.txt").stderr, "", "no other store is made");
    let said = recipe(&below, "put ../../a.txt --data own");
    assert_eq!(said.stderr, format!("made a new store in {}\n", below.join("own").display()));
    std::fs::rename(below.join("own"), below.join(".anabranch")).unwrap();
    assert_eq!(recipe(&below, "get a").code, 1, "the nearest one is meant");
}

#[test]
fn files_of_a_recipe_file_are_in_its_folder() {
    let folder = empty("recipe_outside");
    std::fs::create_dir_all(folder.join("inner/deep")).unwrap();
    for file in ["secret.txt", "inner/own.txt", "inner/deep/own.txt"] {
        std::fs::write(folder.join(file), file).unwrap();
    }
    std::os::unix::fs::symlink("../secret.txt", folder.join("inner/link.txt")).unwrap();
    let file = |name: &str| format!("[blob.a]\nfile = {name:?}\nref = true\n");
    let absolute = folder.join("secret.txt");
    for outside in ["../secret.txt", "link.txt", "deep/../../secret.txt", absolute.to_str().unwrap()] {
        std::fs::write(folder.join("inner/outside.toml"), file(outside)).unwrap();
        let said = recipe(&folder, "add --file inner/outside.toml");
        assert!(
            said.code == 1 && said.stderr.contains("is outside of the recipe file's folder"),
            "{}",
            said.shown()
        );
        assert!(!folder.join(".anabranch").exists());
    }
    for inside in ["own.txt", "deep/own.txt", "deep/../own.txt"] {
        std::fs::write(folder.join("inner/inside.toml"), file(inside)).unwrap();
        let said = recipe(&folder, "add --file inner/inside.toml");
        assert_eq!(said.code, 0, "{}", said.shown());
        let said = recipe(&folder.join("inner"), "add --file inside.toml");
        assert_eq!(said.code, 0, "{}", said.shown());
    }
    let said = recipe(&folder, "add --file inner/outside.toml --allow-files-outside");
    assert_eq!(said.code, 0, "{}", said.shown());
    assert_eq!(recipe(&folder, "get a").stdout, "secret.txt");
}

#[test]
fn names_and_functions_that_were_meant_are_told() {
    let folder = empty("recipe_meant");
    std::fs::write(folder.join("graph.toml"), "[blob.total]\ntext = \"7\"\n").unwrap();
    std::fs::write(folder.join("report.csv"), "a,b\n").unwrap();
    let commands = [
        "add --file graph.toml",
        "get total",
        "put report.csv --ref report",
        "get reprot",
        "ref get reprot",
        "add concat -i report",
        "add contact -i report",
        "add concat/1.0.0 -i report -i report.csv --ref both",
        "add concat/1.0.0 -i report -i missing.csv",
        "functions concta",
    ];
    check(&folder, &commands, &expect_file!["recipe_said/meant.txt"]);
    let listed = recipe(&folder, "functions rep").stdout;
    assert!(listed.contains("repeat/1.0.0") && listed.contains("replace/1.0.0"), "{listed}");
    assert!(!recipe(&folder, "functions").stdout.contains('…'), "nothing is cut in a pipe");
}

#[test]
fn graphs_are_shown_and_explained_without_computing() {
    let folder = with_example("recipe_look");
    std::fs::write(folder.join("wrong.toml"), "[recipe.a]\nfunction = \"concta/1.0.0\"\n").unwrap();
    let missing = "0".repeat(64);
    let dangling = format!("add concat/1.0.0 -i {missing} -i page --ref dangling");
    let commands = [
        "check page.toml",
        "check wrong.toml page.toml",
        "tree page.gz",
        "explain page.gz",
        "get page -o page.txt",
        "explain page.gz",
        "explain page",
        dangling.as_str(),
        "explain dangling",
        "tree dangling --most 2",
        "explain page --json",
    ];
    check(&folder, &commands, &expect_file!["recipe_said/look.txt"]);
    let tree = recipe(&folder, "tree page").stdout;
    let first = tree.lines().nth(2).unwrap();
    assert!(
        first.starts_with("concat/1.0.0 ") && first.contains("365 bytes  stored, computed in "),
        "{tree}"
    );
    let tree = recipe(&folder, "tree page --json").stdout;
    let tree: serde_json::Value = serde_json::from_str(&tree).unwrap();
    assert_eq!(
        (&tree[0]["value"], &tree[0]["size"], &tree[1]["depth"]),
        (&"stored".into(), &365.into(), &1.into())
    );
}

/// A changed input that leaves a value as it was costs nothing downstream.
#[test]
fn a_get_tells_of_recipes_that_need_not_run() {
    let folder = empty("recipe-cut-off");
    let file = "[blob.sales]\nfile = \"sales.csv\"\n\
                [recipe.oslo]\nfunction = \"grep/1.0.0\"\ninputs = [\"sales\"]\nparams = { pattern = \"Oslo\" }\n\
                [recipe.report]\nfunction = \"sort/1.0.0\"\ninputs = [\"oslo\"]\nref = true\n";
    std::fs::write(folder.join("report.toml"), file).unwrap();
    let report = |sales: &str| {
        std::fs::write(folder.join("sales.csv"), sales).unwrap();
        assert_eq!(recipe(&folder, "add --file report.toml").code, 0);
        let said = recipe(&folder, "get report -o report.txt");
        assert_eq!(std::fs::read_to_string(folder.join("report.txt")).unwrap(), "Oslo 1");
        timeless(&said.stderr)
    };
    assert_eq!(report("Oslo 1\nBergen 2\n"), "6 bytes, computed with 2 recipes, in TIME\n");
    let again = "6 bytes, computed with 1 recipe (1 more recipe had equal inputs before), in TIME\n";
    assert_eq!(report("Oslo 1\nBergen 3\n"), again);
}

#[test]
fn names_checks_and_drops_are_told_as_json() {
    let folder = with_example("recipe_json");
    std::fs::write(folder.join("wrong.toml"), "[recipe.a]\nfunction = \"concta/1.0.0\"\n").unwrap();
    let json = |command: &str, code: i32| -> serde_json::Value {
        let said = recipe(&folder, command);
        assert_eq!(said.code, code, "{}", said.shown());
        serde_json::from_str(&said.stdout).unwrap()
    };
    let page = recipe(&folder, "ref get page").stdout;
    let set = json("ref set front page --json", 0);
    assert_eq!(set, serde_json::json!({"name": "front", "address": page.trim()}));
    let checked = json("check page.toml wrong.toml --json", 1);
    assert_eq!(checked[0], serde_json::json!({"file": "page.toml", "errors": [], "blobs": 4, "recipes": 6}));
    let error = &checked[1]["errors"][0];
    assert_eq!((&error["line"], &error["help"]), (&2.into(), &"did you mean `concat/1.0.0`?".into()));
    assert_eq!(recipe(&folder, "export page.archive page").code, 0);
    let import = json("import page.archive --data other --json", 0)["import"].clone();
    let drop = format!("imports drop {} --data other --json", import.as_str().unwrap());
    let dropped = json(&drop, 0);
    assert_eq!((&dropped["id"], &dropped["names"]), (&import, &2.into()), "page and front");
}

#[test]
fn the_bench_measures() {
    let folder = empty("recipe_bench");
    let said = recipe(&folder, "bench --count 20");
    assert_eq!(said.code, 0, "{}", said.shown());
    assert_eq!(said.stdout.lines().count(), 6, "{}", said.stdout);
}
