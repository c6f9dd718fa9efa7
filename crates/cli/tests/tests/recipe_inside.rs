//! `recipe ls`, `du` and `rm`, short addresses, and pictures of graphs: on a store, beside a server that owns it, and over
//! `--server`.

use std::path::Path;

use anabranch_content::Address;
use expect_test::expect_file;
use serde_json::Value as Json;

use crate::binary::{CommandOutput, in_folder};
use crate::recipe::{check, empty, recipe, with_example};
use crate::recipe_served::Server;

fn json(said: &CommandOutput) -> Json {
    serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{}", said.shown()))
}

#[test]
fn a_store_is_listed_and_measured() {
    let folder = with_example("recipe_inside");
    std::fs::write(folder.join("loose.txt"), "nobody wants this").unwrap();
    recipe(&folder, "get page");
    recipe(&folder, "put loose.txt");
    let commands = [
        "ls",
        "ls page",
        "ls 43133e",
        "ls --kind recipes --most 2",
        "ls --kind recipes --most 2 --after 43133e3657e0800f923af2fc8c2027168aa44b04aaedd25d5458326f49212f83",
        "ls pagg",
        "ls --after page",
        "du",
        "du --most 1",
    ];
    check(&folder, &commands, &expect_file!["recipe_said/inside.txt"]);
}

/// A user copies the commands that messages suggest, and a name may be a stranger's.
#[test]
fn suggested_commands_name_a_name_in_one_word() {
    let folder = empty("recipe_words");
    std::fs::write(folder.join("a.txt"), "ab").unwrap();
    let run = |args: &[&str]| in_folder(&folder, &[&["recipe"], args].concat(), "");
    let long = "n".repeat(200);
    for (name, word) in [
        ("plain/name-1.0", "plain/name-1.0"),
        ("my report", "'my report'"),
        ("$(reboot); `reboot`", "'$(reboot); `reboot`'"),
        ("it's", r"'it'\''s'"),
        (&*long, &*long),
    ] {
        assert_eq!(run(&["put", "a.txt", "--ref", name]).code, 0);
        assert_eq!(run(&["ref", "set", "zebra", name]).code, 0);
        let listed = run(&["ls", "--kind", "names", "--most", "1"]).stderr;
        assert!(listed.ends_with(&format!("--kind names --after {word}`\n")), "{listed}");
        assert_eq!(run(&["ref", "drop", "zebra", "--history"]).code, 0);
        let held = run(&["rm", name]).stderr;
        assert!(held.contains(&format!("`anabranch recipe ref drop {word} --history`")), "{held}");
        assert_eq!(run(&["ref", "drop", name, "--history"]).code, 0);
    }
}

#[test]
fn single_items_are_removed_unless_they_are_held() {
    let folder = empty("recipe_removed");
    std::fs::write(folder.join("a.txt"), "ab").unwrap();
    let commands = [
        "put a.txt --ref a",
        "rm 123456",
        "add repeat/1.0.0 -i a -p count:=3 --ref thrice",
        "get thrice -o thrice.txt",
        "rm thrice",
        "rm a",
        "ref drop thrice",
        "rm RECIPE",
        "ref drop thrice --history",
        "ref drop a --history",
        "rm RECIPE --dry-run",
        "rm --value RECIPE",
        "rm --value RECIPE",
        "get RECIPE",
        "pin RECIPE",
        "rm RECIPE",
        "unpin RECIPE",
        "rm RECIPE BLOB --json",
        "ls",
    ];
    let graph = "[blob.a]\ntext = \"ab\"\n\
        [recipe.thrice]\nfunction = \"repeat/1.0.0\"\ninputs = [\"a\"]\nparams = { count = 3 }\n";
    std::fs::write(folder.join("graph.toml"), graph).unwrap();
    let added = json(&recipe(&folder, "add --file graph.toml --json --data elsewhere"));
    let address = |name: &str| {
        let found = added.as_array().into_iter().flatten().find(|it| it["name"] == name);
        found.unwrap_or_else(|| panic!("{added}"))["address"].as_str().unwrap()[..8].to_owned()
    };
    let fill = |command: &&str| command.replace("RECIPE", &address("thrice")).replace("BLOB", &address("a"));
    let commands: Vec<String> = commands.iter().map(fill).collect();
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    check(&folder, &commands, &expect_file!["recipe_said/removed.txt"]);
}

/// An item may have several holders. The command is about the one that the error names.
#[test]
fn a_refusal_tells_how_to_drop_the_holder_that_it_names() {
    let folder = empty("recipe_holders");
    std::fs::write(folder.join("a.txt"), "ab").unwrap();
    for (command, holder) in [
        ("put a.txt --ref zeta", "name \"zeta\" holds it; `anabranch recipe ref drop zeta --history`"),
        ("add repeat/1.0.0 -i zeta -p count:=3 --ref alpha", "`anabranch recipe ref drop zeta --history`"),
        (
            "ref drop zeta",
            "the history of name \"zeta\" holds it; `anabranch recipe ref drop zeta --history`",
        ),
        ("pin 2dc99999", "holds it; `anabranch recipe unpin 2dc99999a6aa`"),
    ] {
        assert_eq!(recipe(&folder, command).code, 0, "{command}");
        let refused = recipe(&folder, "rm 2dc99999");
        assert!(refused.code == 1 && refused.stderr.contains(holder), "{command}: {}", refused.shown());
    }
    let again = recipe(&folder, "ref drop zeta");
    assert!(again.code == 1 && again.stderr.contains("is dropped already"), "{}", again.shown());
    assert_eq!(recipe(&folder, "ref drop zeta --history").code, 0);
    let long = recipe(&folder, &format!("get {}", "7".repeat(65)));
    assert!(long.stderr.contains("which has 64 hex digits, not 65;"), "{}", long.shown());
}

#[test]
fn several_items_are_removed_together() {
    let folder = empty("recipe_removed_together");
    let graph = "[blob.a]\ntext = \"ab\"\n\
        [recipe.twice]\nfunction = \"repeat/1.0.0\"\ninputs = [\"a\"]\nparams = { count = 2 }\n\
        [recipe.both]\nfunction = \"concat/1.0.0\"\ninputs = [\"a\", \"a\"]\n";
    std::fs::write(folder.join("graph.toml"), graph).unwrap();
    let added = json(&recipe(&folder, "add --file graph.toml --json"));
    let of = |name: &str| {
        let found = added.as_array().into_iter().flatten().find(|it| it["name"] == name);
        found.unwrap_or_else(|| panic!("{added}"))["address"].as_str().unwrap()[..8].to_owned()
    };
    let commands = [
        "get TWICE -o value",
        "get BOTH -o value",
        "rm --value TWICE BOTH",
        "get TWICE -o value",
        "get BOTH -o value",
        "rm TWICE BOTH BLOB --dry-run",
        "rm BLOB TWICE --dry-run",
        "pin BOTH",
        "rm TWICE BOTH BLOB",
        "unpin BOTH",
        "rm BOTH BLOB",
    ];
    let fill = |command: &&str| {
        command.replace("TWICE", &of("twice")).replace("BOTH", &of("both")).replace("BLOB", &of("a"))
    };
    let commands: Vec<String> = commands.iter().map(fill).collect();
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    check(&folder, &commands, &expect_file!["recipe_said/removed_together.txt"]);
}

#[test]
fn the_beginning_of_an_address_is_enough() {
    let folder = with_example("recipe_short");
    for (command, told) in [
        ("get 43133e", "Where the delta begins"),
        ("resolve 43133e36", "concat/1.0.0"),
        ("tree 43133e3657e0", "sha256/1.0.0"),
        ("explain 43133e", "a get would compute nothing"),
        ("pin 43133e", "pinned"),
        ("unpin 43133e", "unpinned"),
        ("ref set short 43133e", "43133e3657e0800f"),
        ("invalidate 43133e", "forgot 1 value"),
        ("export short.archive 43133e", "2 names"),
        ("add identity/1.0.0 -i 43133e --ref same", ""),
        ("get same", "Where the delta begins"),
        (
            "get 43133",
            "it is not an address: 64 hex digits, or its first 6 or more; `anabranch recipe ls` lists",
        ),
        ("put story.txt --ref abcdef", "`abcdef` looks like the beginning of an address"),
        ("add identity/1.0.0 -i page --ref fedcba", "`fedcba` looks like the beginning of an address"),
        ("get 431330", "no address here begins with it; `anabranch recipe ls` lists"),
        ("get shorr", "did you mean `short`?"),
    ] {
        let said = recipe(&folder, command);
        assert!(said.stdout.contains(told) || said.stderr.contains(told), "{command}: {}", said.shown());
    }
    // A name wins.
    assert_eq!(recipe(&folder, "ref set 43133e page.gz").code, 0);
    assert!(recipe(&folder, "resolve 43133e").stdout.contains("gzip_compress/1.0.0"));
}

/// Two texts whose addresses begin with the same six digits.
fn alike() -> (String, String, String) {
    let mut seen = std::collections::HashMap::new();
    for number in 0_u32.. {
        let text = number.to_string();
        let short = Address::of(text.as_bytes()).to_string()[..6].to_owned();
        if let Some(other) = seen.insert(short.clone(), text.clone()) {
            return (short, other, text);
        }
    }
    unreachable!("there are more numbers than beginnings")
}

#[test]
fn an_ambiguous_address_is_an_error_that_lists_all() {
    let folder = empty("recipe_ambiguous");
    let (short, one, other) = alike();
    for (file, text) in [("one", &one), ("other", &other)] {
        std::fs::write(folder.join(file), text).unwrap();
        assert_eq!(recipe(&folder, &format!("put {file}")).code, 0);
    }
    let refused = |folder: &Path, at: &str| {
        let said = recipe(folder, &format!("get {short}{at}"));
        assert!(
            said.code == 1 && said.stderr.contains("is the beginning of several addresses"),
            "{}",
            said.shown()
        );
        for text in [&one, &other] {
            assert!(said.stderr.contains(&Address::of(text.as_bytes()).to_string()), "{}", said.shown());
        }
    };
    refused(&folder, "");
    assert_eq!(recipe(&folder, &format!("ls {short}")).stdout.lines().count(), 4);
    let server = Server::begin(&folder);
    refused(&folder, "");
    refused(&folder, &format!(" --server {}", server.url));
}

#[test]
fn a_look_inside_a_server() {
    let folder = with_example("recipe_inside_served");
    recipe(&folder, "get page");
    let local = json(&recipe(&folder, "ls --json"));
    let usage = json(&recipe(&folder, "du --json"));
    let server = Server::begin_with(&folder, &["--anonymous", "admin"]);
    for at in [String::new(), format!(" --data elsewhere --server {}", server.url)] {
        assert_eq!(json(&recipe(&folder, &format!("ls --json{at}"))), local);
        let served = json(&recipe(&folder, &format!("du --json{at}")));
        assert_eq!((&served["holders"], &served["put"]), (&usage["holders"], &usage["put"]));
        let refused = recipe(&folder, &format!("rm page{at}"));
        assert!(
            refused.stderr.contains("name \"page\" holds it; `anabranch recipe ref drop page"),
            "{}",
            refused.shown()
        );
        let explained = recipe(&folder, &format!("explain 338ea1c0 --svg picture.svg{at}"));
        assert!(explained.stderr.contains("would compute 1 recipe and"), "{}", explained.shown());
        std::fs::write(folder.join("loose.txt"), "loose").unwrap();
        let loose = recipe(&folder, &format!("put loose.txt{at}")).stdout;
        let removed = recipe(&folder, &format!("rm {}{at}", &loose[..10]));
        assert!(removed.stderr.ends_with("freed 5 bytes\n"), "{}", removed.shown());
        assert_eq!(recipe(&folder, &format!("ref set gone page{at}")).code, 0);
        let dropped = recipe(&folder, &format!("ref drop gone --history{at}"));
        assert!(dropped.code == 0 && dropped.stderr.contains("and its history"), "{}", dropped.shown());
    }
    drop(server);
}

/// A look is not a get: it is not counted as one, and no cache hit.
#[test]
fn a_look_inside_a_server_is_not_counted_as_a_get() {
    let folder = with_example("recipe_look_uncounted");
    recipe(&folder, "get page");
    let server = Server::begin_with(&folder, &["--anonymous", "admin"]);
    let blob = Address::of(&std::fs::read(folder.join("story.txt")).unwrap());
    for at in [String::new(), format!(" --data elsewhere --server {}", server.url)] {
        for look in
            ["ls", "ls page", "tree page", "explain page.gz --svg page.svg", &format!("resolve {blob}")]
        {
            let said = recipe(&folder, &format!("{look}{at}"));
            assert_eq!(said.code, 0, "{look}{at}: {}", said.shown());
        }
        let status = json(&recipe(&folder, &format!("status --json{at}")));
        assert_eq!((&status["gets"], &status["hits"]), (&0.into(), &0.into()), "{at}: {status}");
    }
}

/// A folder with the recipe `report`, whose input is computed from a file that can change.
fn with_report(test: &str) -> std::path::PathBuf {
    let folder = empty(test);
    let file = "[blob.sales]\nfile = \"sales.txt\"\n\
        [recipe.oslo]\nfunction = \"grep/1.0.0\"\ninputs = [\"sales\"]\nparams = { pattern = \"Oslo\" }\nref = true\n\
        [recipe.report]\nfunction = \"sha256/1.0.0\"\ninputs = [\"oslo\"]\nref = true\n";
    std::fs::write(folder.join("graph.toml"), file).unwrap();
    std::fs::write(folder.join("sales.txt"), "Oslo 1\nBergen 2\n").unwrap();
    recipe(&folder, "add --file graph.toml");
    folder
}

#[test]
fn explain_knows_as_much_over_a_server() {
    let folder = with_report("recipe_explained");
    recipe(&folder, "get report -o out.bin");
    std::fs::write(folder.join("sales.txt"), "Oslo 1\nBergen 3\n").unwrap();
    recipe(&folder, "add --file graph.toml");
    recipe(&folder, "add nobody/9 -i oslo --allow-unknown --ref unknown");
    let explained = |at: &str| {
        let mut said = String::new();
        for command in ["explain report", "explain unknown"] {
            said.push_str(&recipe(&folder, &format!("{command}{at}")).shown());
        }
        recipe(&folder, &format!("get oslo -o oslo.txt{at}"));
        for command in ["explain report", "explain report --json"] {
            said.push_str(&recipe(&folder, &format!("{command}{at}")).shown());
        }
        recipe(&folder, &format!("get report -o out.bin{at}"));
        recipe(&folder, &format!("invalidate report{at}"));
        said.push_str(&recipe(&folder, &format!("explain report{at}")).shown());
        said
    };
    let local = explained("");
    expect_file!["recipe_said/explained.txt"].assert_eq(&local);
    // The same again: a file that gives the same lines of Oslo, and a value of the report that is not invalidated.
    recipe(&folder, "get report -o out.bin");
    std::fs::write(folder.join("sales.txt"), "Oslo 1\nBergen 4\n").unwrap();
    recipe(&folder, "add --file graph.toml");
    recipe(&folder, "add nobody/9 -i oslo --allow-unknown --ref unknown");
    let server = Server::begin_with(&folder, &["--anonymous", "admin"]);
    let served = explained(&format!(" --data elsewhere --server {}", server.url));
    let plain = |text: &str| {
        let is_address = |word: &str| word.trim_matches(['"', ',']).len() == 64;
        text.split_whitespace().filter(|word| !is_address(word)).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(plain(&served), plain(&local));
}

#[test]
fn a_server_tells_of_early_cut_off() {
    let folder = with_report("recipe_cut_off");
    let server = Server::begin_with(&folder, &["--anonymous", "admin"]);
    recipe(&folder, "get report -o out.bin");
    std::fs::write(folder.join("sales.txt"), "Oslo 1\nBergen 3\n").unwrap();
    recipe(&folder, "add --file graph.toml");
    let said = recipe(&folder, "get report -o out.bin --json");
    assert_eq!(
        (&json(&said)["computed"], &json(&said)["cut_off"]),
        (&1.into(), &1.into()),
        "{}",
        said.shown()
    );
    drop(server);
}

#[test]
fn a_graph_is_drawn_up_to_a_number_of_boxes() {
    let folder = with_example("recipe_drawn");
    let said = recipe(&folder, "explain page.gz --svg page.svg --html page.html");
    assert!(said.code == 0 && !said.stderr.contains("not drawn"), "{}", said.shown());
    let svg = std::fs::read_to_string(folder.join("page.svg")).unwrap();
    // Six recipes and four blobs.
    assert_eq!((svg.matches("<g>").count(), svg.matches("box compute").count()), (10, 7));
    for part in [
        "page: concat/1.0.0",
        "level = 9",
        "6 recipes and 4 blobs; a get would compute 6 recipes",
        "prefers-color-scheme:dark",
    ] {
        assert!(svg.contains(part), "{part}: {svg}");
    }
    let page = std::fs::read_to_string(folder.join("page.html")).unwrap();
    assert!(
        page.starts_with("<!doctype html>")
            && page.contains(svg.trim_end())
            && page.contains("43133e3657e0800f")
    );
    recipe(&folder, "get page");
    recipe(&folder, "explain page --svg page.svg");
    let svg = std::fs::read_to_string(folder.join("page.svg")).unwrap();
    assert_eq!(svg.matches("box compute").count(), 1, "only the legend has it");
    let said = recipe(&folder, "explain page.gz --svg page.svg --draw 3");
    assert!(
        said.stderr
            .contains("the picture has the 3 nearest nodes, 4 more inputs not drawn; --draw draws more"),
        "{}",
        said.shown()
    );
    let svg = std::fs::read_to_string(folder.join("page.svg")).unwrap();
    assert_eq!((svg.matches("<g>").count(), svg.contains("4 more inputs not drawn")), (4, true));
}
