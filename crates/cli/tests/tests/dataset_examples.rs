//! The examples of datasets: each is checked and built on the demo model, with the commands that it names.

use expect_test::expect;

use crate::binary::{in_folder, root};
use crate::dataset::{check, empty};

const EXAMPLES: [&str; 3] = ["support_tickets", "text_to_sql", "product_qa"];

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
        assert!(said.stdout.starts_with(&format!("{name}: 20 of 20 rows")), "{}", said.stdout);
    }
}

#[test]
fn an_example_is_readable() {
    let folder = root().join("examples/datasets");
    check(&folder, &["preview", "product_qa.yaml", "--rows", "1", "--demo"], &expect![[r#""#]]);
    check(&folder, &["preview", "text_to_sql.yaml", "--rows", "1", "--demo"], &expect![[r#""#]]);
    check(&folder, &["check", "support_tickets.yaml"], &expect![[r#""#]]);
}
