//! The worked examples of the pages in `docs`: files are written and commands run as the pages show them.
//!
//! A block that begins with ` ```LANGUAGE FILE ` is the content of a file. A block of `console` has commands behind `$ `, each
//! with what it says on stdout and stderr; `...` stands for any text. `UPDATE_EXPECT=1` writes what was said into the
//! page. A block of `sh` has commands that succeed, one per line. A server is on a free port and runs while the page does.
//!
//! The commands of all pages, also of those without such blocks, are ones that the binary understands.

mod page;

use std::path::PathBuf;

use anabranch_testkit::{ModelScript, ModelServer, RedisServer};

use crate::binary::{in_folder, patient_examples, root, scratch, soon};
use page::{Page, said};

/// Runs the blocks of a page in an empty folder.
fn check(page: &str) {
    Page::new(page).check();
}

#[test]
fn functions() {
    check("functions.md");
}

#[test]
fn plans() {
    check("plans.md");
}

#[test]
fn why() {
    check("why.md");
}

#[test]
fn captures() {
    check("captures.md");
}

#[test]
fn deadlines() {
    check("deadlines.md");
}

#[test]
fn recipes() {
    check("recipes.md");
}

#[test]
fn folders() {
    check("folders.md");
}

#[test]
fn recipe_service() {
    check("recipe-service.md");
}

#[test]
fn serving() {
    let mut page = Page::new("serving.md");
    // A certificate that vouches for itself.
    page.done(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem -out cert.pem -days 2 \
         -subj /CN=localhost -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE",
    );
    page.done("SSL_CERT_FILE=cert.pem; export SSL_CERT_FILE");
    page.replace("recipes.example", "localhost");
    page.check();
}

#[test]
fn serving_plans() {
    Page::new("serving-plans.md").check();
}

#[test]
fn serving_datasets() {
    let page = Page::new("serving-datasets.md");
    page.link("examples/datasets/support_tickets.yaml", "tickets.yaml");
    page.check();
}

#[test]
fn runs() {
    let mut page = Page::new("runs.md");
    page.done("anabranch plan new feed");
    page.done("anabranch serve --data store");
    let header = "-H \"Authorization: Bearer $(cat store/token)\" -H 'Content-Type: application/json'";
    page.done(&format!(
        "curl {header} -d '{{\"user_id\": 7}}' 'http://127.0.0.1:7421/v1/plans/feed/run?trace=true'"
    ));
    // The server writes the run's file after the answer.
    let run = soon(|| {
        let listed = in_folder(&page.folder, &["runs", "--data", "store", "--json"], "").stdout;
        serde_json::from_str::<serde_json::Value>(listed.lines().next()?).ok()
    });
    page.replace("018f3c2a9d4b-0007", run["id"].as_str().unwrap());
    page.check();
}

/// The example of the page is a plan of the examples' project.
#[test]
fn typescript() {
    let page = Page::new("typescript.md");
    let folder = page.folder.join("examples");
    page.check();
    let copy =
        std::process::Command::new("cp").arg("-r").arg(patient_examples()).arg(&folder).status().unwrap();
    assert!(copy.success());
    let example = blocks("typescript.md", "ts").remove(0);
    std::fs::write(folder.join("plans/feed.plan.ts"), example).unwrap();
    let said = in_folder(&folder, &["plan", "run", "feed", "--request", "{\"user_id\": 7}"], "");
    assert_eq!(said.code, 0, "{}", said.stderr);
}

#[test]
fn from_rankd() {
    let redis = RedisServer::start();
    let mut page = Page::new("from-rankd.md");
    page.link("examples/plans/registry", "registry");
    page.link("examples/plans/anabranch.toml", "anabranch.toml");
    page.link("examples/plans/data.json", "data.json");
    page.link("examples/plans/plans", "plans");
    page.link("examples/plans/plans/simple_viewer.plan.json", "my_plan.plan.json");
    std::fs::write(page.folder.join("request.json"), "{\"user_id\": 7}").unwrap();
    page.replace(":6379", &format!(":{}", redis.port()));
    page.check();
}

#[test]
fn from_deriva() {
    Page::new("from-deriva.md").check();
}

#[test]
fn datasets() {
    let page = Page::new("datasets.md");
    page.write("tickets.yaml", &blocks("datasets.md", "yaml")[0]);
    page.check();
}

#[test]
fn dataset_plan() {
    check("dataset-plan.md");
}

#[test]
fn dataset_stages() {
    check("dataset-stages.md");
}

#[test]
fn from_datadesigner() {
    let server = ModelServer::start(ModelScript::default());
    let page = Page::new("from-datadesigner.md");
    let models = format!(
        "model_configs: [{{alias: writer, model: small, provider: here}}]\n\
         providers: [{{name: here, endpoint: '{}', api_key: some-key}}]\n",
        server.endpoint()
    );
    page.write("models.yaml", &models);
    page.write(
        "my_config.yaml",
        "columns: [{name: poem, column_type: llm-text, model_alias: writer, prompt: A poem.}]\n",
    );
    page.check();
}

#[test]
fn dataset_report() {
    let mut page = Page::new("dataset-report.md");
    page.link("examples/datasets/support_tickets.yaml", "tickets.yaml");
    for folder in ["tickets-old", "monday", "tuesday"] {
        page.done(&format!("anabranch dataset build tickets.yaml --rows 12 --out {folder} --demo"));
    }
    page.check();
}

/// The client in Go is a part of a program.
#[test]
fn the_client_in_go_gets_an_answer() {
    if !crate::clients::is_installed("go", "version") {
        return;
    }
    let mut page = Page::new("client_in_go");
    page.done("anabranch plan new feed");
    page.done("anabranch serve --data store");
    let body = blocks("serving-plans.md", "go").remove(0);
    let program = format!(
        "package main\nimport (\"fmt\"; \"net/http\"; \"os\"; \"strings\")\nfunc main() {{\n{body}\n\
         if err != nil {{ panic(err) }}\nfmt.Println(response.StatusCode)\n}}\n"
    );
    page.write("client.go", &program);
    assert_eq!(page.done("go run client.go"), "200\n");
}

/// All pages: those of `docs`, and the README.
fn pages() -> Vec<PathBuf> {
    let docs = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = docs.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.chain([root().join("README.md")]).collect()
}

/// The commands in a text: lines that begin with one of these, a `$ ` before it or none. One that ends with `\` goes on in the
/// next line.
fn commands(text: &str, starts: &[&str]) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    let lines = joined.lines().map(|line| line.trim_start().trim_start_matches("$ "));
    lines.filter(|line| starts.iter().any(|start| line.starts_with(start))).map(str::to_owned).collect()
}

/// Asks for the help of each command behind its options, which refuses options and values that do not exist. Nothing runs.
const PARSE: &str = "anabranch() { command anabranch \"$@\" --help >/dev/null; }\n";

#[test]
fn all_commands_have_options_that_exist() {
    let folder = scratch("docs_commands");
    let mut checked = 0;
    for page in pages() {
        for command in commands(&std::fs::read_to_string(&page).unwrap(), &["anabranch "]) {
            // Files to read and programs behind a pipe are not there.
            let alone = command.split(['|', '<', '>']).next().unwrap();
            let told = said(&folder, &format!("{PARSE}{alone}"));
            assert_eq!(told, "", "{}: {command}", page.display());
            checked += 1;
        }
    }
    assert!(checked > 80, "{checked} commands");
}

/// The README is what newcomers type. Commands that need files of their own are indented, and not run.
#[test]
fn the_commands_of_the_readme_work() {
    let page = Page::new("../README.md");
    page.link("examples", "examples");
    page.check();
    let run = ["sh", "console"].map(|language| blocks("../README.md", language)).concat();
    let commands = commands(&run.concat(), &["anabranch ", "curl "]);
    assert!(
        commands.len() >= 10 && commands.iter().any(|command| command.starts_with("curl")),
        "{commands:?}"
    );
}

/// The blocks of a language in a page.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let text = std::fs::read_to_string(root().join("docs").join(page)).unwrap();
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).map(|part| part.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn configurations_of_datasets_are_right() {
    let folder = scratch("docs_configurations");
    let check = |name: &str, text: &str| {
        std::fs::write(folder.join("page.yaml"), text).unwrap();
        let told = said(&folder, "anabranch dataset check page.yaml || echo failed");
        assert!(!told.contains("failed"), "{name}:\n{text}\n{told}");
    };
    blocks("dataset-stages.md", "yaml").iter().for_each(|block| check("dataset-stages.md", block));
    let title = "columns:\n  - {name: title, column_type: sampler, sampler_type: uuid}\n";
    for block in blocks("from-datadesigner.md", "yaml") {
        check("from-datadesigner.md", &format!("{title}{block}"));
    }
}

#[test]
fn project_files_are_right() {
    let folder = scratch("docs_projects");
    for block in blocks("bounds.md", "toml") {
        std::fs::write(folder.join("anabranch.toml"), &block).unwrap();
        let told = said(&folder, "anabranch serve --print-config >/dev/null || echo failed");
        assert_eq!(told, "", "{block}");
    }
}
