//! The examples of datasets: each is checked and built on the demo model, with the commands that it names.

use expect_test::expect;

use crate::binary::{in_folder, root};
use crate::dataset::{check, empty};
use crate::recipe::timeless;

const EXAMPLES: [&str; 4] = ["support_tickets", "text_to_sql", "product_qa", "interview"];

#[test]
fn examples_check_clean_and_build() {
    let out = empty("dataset_examples");
    let shipped = std::fs::read_dir(root().join("examples/datasets")).unwrap();
    let yaml =
        shipped.filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|end| end == "yaml"));
    assert_eq!(yaml.count(), EXAMPLES.len() + 1, "all are here, beside models.yaml");
    for name in EXAMPLES {
        let file = format!("examples/datasets/{name}.yaml");
        let text = std::fs::read_to_string(root().join(&file)).unwrap();
        assert!(
            text.contains(&format!("anabranch dataset preview {file} --demo")),
            "{name} says how to run it"
        );
        let models = ["--models", "examples/datasets/models.yaml"];
        let said = in_folder(&root(), &[&["dataset", "check", &file], &models[..]].concat(), "");
        assert_eq!(said.code, 0, "{}", said.stderr);
        assert!(!said.stderr.contains("warning"), "{}", said.stderr);
        let out = out.join(name);
        let build = ["dataset", "build", &file, "--rows", "20", "--demo", "--out", out.to_str().unwrap()];
        let said = in_folder(&root(), &build, "");
        assert_eq!(said.code, 0, "{}", said.stderr);
        let rows = if name == "interview" { " rows, seed 0" } else { "20 of 20 rows" };
        assert!(
            said.stdout.starts_with(&format!("{name}: ")) && said.stdout.contains(rows),
            "{}",
            said.stdout
        );
    }
}

#[test]
fn an_example_is_readable() {
    let folder = root().join("examples/datasets");
    check(
        &folder,
        &["preview", "support_tickets.yaml", "--rows", "1", "--demo"],
        &expect![[r#"
            row 0
              ticket_id: T-A44A83B7
              area: delivery
              issue: parcel is lost
              urgent: 0
              opened: 2026-03-16T15:00:00
              ticket: A few words about issue parcel delivery. A good example says more than a long
                definition. This is demo text, written offline without a language model.
              answer: In brief, about definition. Most people notice it only when something is missing. It
                works best when each part has one clear purpose. There is a simple version and a careful
                version, and both have their place. All of this is demo text from an offline stand-in.
              verdict:
                helpfulness:
                  reasoning: Demo text: no text was read to come to this score.
                  score: 3
                tone:
                  reasoning: Demo text: no text was read to come to this score.
                  score: rude
              escalation: null
            stderr: the demo model wrote the texts: they are made up
            exit 0
        "#]],
    );
    check(
        &folder,
        &["check", "support_tickets.yaml"],
        &expect![[r#"
        column      kind        reads                     model   remarks
        ----------  ----------  ------------------------  ------  ----------------
        ticket_id   sampler
        area        sampler
        issue       sampler     area
        urgent      sampler
        opened      sampler
        ticket      llm-text    issue, area, urgent       writer
        answer      llm-text    ticket                    writer
        verdict     llm-judge   ticket, answer            judge   null if it fails
        escalation  expression  issue, ticket_id, urgent          may be skipped

        model `judge`: no model
        model `writer`: no model
        stderr: note: no model is configured for the aliases `writer`, `judge`; give a file with `model_configs` and `providers` (--models FILE), or use the offline demo model (--demo)
        stderr: support_tickets.yaml: fine
        exit 0
    "#]],
    );
}

/// A text without times, and without limits that adapt to them.
fn steady(text: &str) -> String {
    let timeless = timeless(text);
    let lines = timeless.lines().filter(|line| !line.starts_with("  demo/demo "));
    lines.map(|line| format!("{line}\n")).collect()
}

/// The commands of a page say what it shows, with its first block of YAML as the configuration, which `changed` may change
/// before one of its blocks of commands. UPDATE_EXPECT=1 rewrites the page.
fn is_right(page: &str, config_file: &str, changed: impl Fn(usize, &str) -> Option<String>) {
    let path = root().join("docs").join(page);
    let text = std::fs::read_to_string(&path).unwrap();
    let folder = empty(&page.replace(['-', '.'], "_"));
    let config = text.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    std::fs::write(folder.join(config_file), config).unwrap();
    let mut parts = text.split("```console\n");
    let mut rewritten = parts.next().unwrap().to_owned();
    for (number, part) in parts.enumerate() {
        let (shown, rest) = part.split_once("```").unwrap();
        if let Some(changed) = changed(number, config) {
            assert_ne!(changed, config);
            std::fs::write(folder.join(config_file), changed).unwrap();
        }
        let mut said = String::new();
        for command in shown.lines().filter_map(|line| line.strip_prefix("$ anabranch ")) {
            let got = in_folder(&folder, &command.split(' ').collect::<Vec<_>>(), "");
            said.push_str(&format!("$ anabranch {command}\n{}{}", got.stdout, got.stderr));
        }
        let is_right = steady(&said) == steady(shown);
        rewritten.push_str(&format!("```console\n{}```{rest}", if is_right { shown } else { &said }));
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &rewritten).unwrap();
    } else {
        assert_eq!(rewritten, text);
    }
}

#[test]
fn the_page_about_durability_is_right() {
    is_right("dataset-durability.md", "greetings.yaml", |number, config| {
        (number == 1).then(|| config.replace("goodbye", "good night"))
    });
}

#[test]
fn the_page_about_spend_is_right() {
    is_right("dataset-spend.md", "names.yaml", |_, _| None);
}
