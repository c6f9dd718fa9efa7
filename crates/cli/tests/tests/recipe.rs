//! `recipe`: what a user sees, verb by verb.

use std::path::{Path, PathBuf};

use expect_test::{Expect, expect};

use crate::binary::{Said, in_folder, root, scratch};

/// An empty folder of the test's own.
pub(crate) fn empty(test: &str) -> PathBuf {
    let folder = scratch(test);
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Runs `anabranch recipe` in a folder; the words of the command are parted by spaces.
pub(crate) fn recipe(folder: &Path, command: &str) -> Said {
    let args: Vec<&str> = std::iter::once("recipe").chain(command.split(' ')).collect();
    in_folder(folder, &args, "")
}

/// What a command says, addresses and times left out as far as they are not always the same.
fn check(folder: &Path, command: &str, expected: Expect) {
    let said = recipe(folder, command);
    expected.assert_eq(&timeless(&said.shown_from(folder)));
}

/// Times, which are never the same twice, as `TIME`.
fn timeless(text: &str) -> String {
    let mut shown = String::new();
    for line in text.lines() {
        let mut words: Vec<&str> = line.split(' ').collect();
        for at in 1..words.len() {
            if words[at].starts_with("ms") && words[at - 1].parse::<f64>().is_ok() {
                words[at - 1] = "TIME";
            }
        }
        for word in &mut words {
            let is_date = word.len() == 10 && word.chars().filter(|letter| *letter == '-').count() == 2;
            let is_clock = word.len() == 8 && word.chars().filter(|letter| *letter == ':').count() == 2;
            if (is_date || is_clock) && word.starts_with(|letter: char| letter.is_ascii_digit()) {
                *word = if is_date { "DATE" } else { "CLOCK" };
            }
        }
        shown.push_str(&words.join(" "));
        shown.push('\n');
    }
    shown
}

/// A folder with a store that has the example in it.
fn with_example(test: &str) -> PathBuf {
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
    check(&folder, "--help", expect![]);
    check(&folder, "add --help", expect![]);
    check(&folder, "get --help", expect![]);
    check(&folder, "ref --help", expect![]);
}

#[test]
fn a_file_is_put_and_its_page_computed_once() {
    let folder = with_example("recipe_file");
    check(&folder, "add --file page.toml", expect![]);
    check(&folder, "get page", expect![]);
    check(&folder, "get page -o again.txt", expect![]);
    let again = std::fs::read_to_string(folder.join("again.txt")).unwrap();
    assert_eq!(again, recipe(&folder, "get page").stdout);
    check(&folder, "get page --range 6..15", expect![]);
    check(&folder, "resolve page", expect![]);
    check(&folder, "resolve page.gz", expect![]);
    check(&folder, "status", expect![]);
    let names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 4, "nothing half written is left: {names:?}");
}

#[test]
fn recipes_one_by_one() {
    let folder = empty("recipe_single");
    std::fs::write(folder.join("a.txt"), "ab").unwrap();
    std::fs::write(folder.join("b.txt"), "cd").unwrap();
    check(&folder, "put a.txt --ref a", expect![]);
    check(&folder, "put a.txt b.txt", expect![]);
    check(&folder, "put a.txt --json", expect![]);
    check(&folder, "add repeat/1.0.0 -i a -p count:=3 --ref thrice", expect![]);
    check(&folder, "get thrice", expect![]);
    check(&folder, "resolve thrice", expect![]);
    check(&folder, "resolve a", expect![]);
    check(&folder, "invalidate a --cascade --dry-run --detail", expect![]);
    check(&folder, "invalidate thrice", expect![]);
    check(&folder, "invalidate thrice --json", expect![]);
    let unknown = format!("add concat/1.0.0 -i {} -i a", "0".repeat(64));
    check(&folder, &unknown, expect![]);
    check(&folder, "add nobody/9 -i a --allow-unknown --json", expect![]);
}

#[test]
fn pins_names_and_collection() {
    let folder = with_example("recipe_roots");
    recipe(&folder, "get page");
    check(&folder, "ref list", expect![]);
    check(&folder, "ref set front page", expect![]);
    check(&folder, "ref get front", expect![]);
    check(&folder, "ref drop page.gz", expect![]);
    check(&folder, "ref history page.gz", expect![]);
    check(&folder, "pin front", expect![]);
    check(&folder, "pin front", expect![]);
    check(&folder, "pins", expect![]);
    std::fs::write(folder.join("loose.txt"), "nobody wants this").unwrap();
    recipe(&folder, "put loose.txt");
    check(&folder, "collect", expect![]);
    check(&folder, "collect --grace 0 --keep-recipes --dry-run --detail", expect![]);
    check(&folder, "collect --grace 0 --detail", expect![]);
    check(&folder, "collect --grace 0 --json", expect![]);
    check(&folder, "unpin front", expect![]);
    check(&folder, "scrub", expect![]);
}

#[test]
fn archives_move_between_stores() {
    let folder = with_example("recipe_archive");
    let page = recipe(&folder, "get page").stdout;
    check(&folder, "export page.archive page", expect![]);
    check(&folder, "import page.archive --data other", expect![]);
    check(&folder, "import page.archive --data other --json", expect![]);
    let address = recipe(&folder, "ref get page").stdout;
    let other = recipe(&folder, &format!("get {} --data other", address.trim()));
    assert_eq!(other.stdout, page);
    let half = std::fs::read(folder.join("page.archive")).unwrap();
    std::fs::write(folder.join("half.archive"), &half[..half.len() / 2]).unwrap();
    let said = recipe(&folder, "import half.archive --data third");
    assert!(said.code == 1 && said.stderr.contains("the archive is damaged"), "{}", said.shown());
}

#[test]
fn functions_are_listed() {
    let folder = empty("recipe_functions");
    let said = recipe(&folder, "functions");
    assert!(said.code == 0 && said.stdout.lines().count() > 20, "{}", said.shown());
    check(&folder, "functions take", expect![]);
    check(&folder, "functions concat/1.0.0 --json", expect![]);
    check(&folder, "functions concta", expect![]);
    assert!(!folder.join(".anabranch").exists(), "no store is needed for that");
}

#[test]
fn what_is_wrong_is_said_with_the_way_out() {
    let folder = empty("recipe_errors");
    check(&folder, "get page", expect![]);
    check(&folder, "status --data nowhere", expect![]);
    assert!(!folder.join(".anabranch").exists() && !folder.join("nowhere").exists());
    check(&folder, "put missing.txt", expect![]);
    check(&folder, "put .", expect![]);
    check(&folder, "get page", expect![]);
    check(&folder, "add concta/1.0.0", expect![]);
    check(&folder, "add take/1.0.0 -i x", expect![]);
    check(&folder, "add concat", expect![]);
    check(&folder, "add concat/1.0.0 -p count", expect![]);
    check(&folder, "add concat/1.0.0 -p count:=x", expect![]);
    check(&folder, "add", expect![]);
    check(&folder, "get page --range 9..3", expect![]);
    check(&folder, "get page --json", expect![]);
    check(&folder, "collect --grace soon", expect![]);
    check(&folder, "status --server localhost:1", expect![]);
    check(&folder, "ref get page", expect![]);
    std::fs::write(folder.join("no.txt"), "").unwrap();
    recipe(&folder, "put no.txt --ref empty");
    recipe(&folder, "add non_empty/1.0.0 -i empty --ref refused");
    check(&folder, "get refused -o never.txt", expect![]);
    assert!(!folder.join("never.txt").exists());
}

#[test]
fn problems_of_files_are_told_with_their_lines() {
    let folder = empty("recipe_problems");
    std::fs::write(
        folder.join("wrong.toml"),
        "[blob.a]\ntext = 7\n\n[recipe.b]\nfunction = \"take/1.0.0\"\ninputs = [\"aa\"]\nparams = { bytes = \"x\", byte = 1 }\n",
    )
    .unwrap();
    check(&folder, "add --file wrong.toml", expect![]);
    std::fs::write(
        folder.join("wrong.yaml"),
        "recipe:\n  a: {function: concat/1.0.0, inputs: [b]}\n  b: {function: concat/1.0.0, inputs: [a]}\n",
    )
    .unwrap();
    check(&folder, "add --file wrong.yaml", expect![]);
    check(&folder, "add --file missing.toml", expect![]);
    check(&folder, "add --file recipe.txt", expect![]);
    std::fs::write(
        folder.join("ref.toml"),
        "[recipe.a]\nfunction = \"concat/1.0.0\"\ninputs = [\"ref:old\"]\n",
    )
    .unwrap();
    check(&folder, "add --file ref.toml", expect![]);
}

#[test]
fn the_bench_measures() {
    let folder = empty("recipe_bench");
    let said = recipe(&folder, "bench --count 20");
    assert_eq!(said.code, 0, "{}", said.shown());
    assert_eq!(said.stdout.lines().count(), 6, "{}", said.stdout);
}
