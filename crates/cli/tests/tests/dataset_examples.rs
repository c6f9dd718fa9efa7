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
    check(&folder, &["preview", "support_tickets.yaml", "--rows", "1", "--demo"], &expect![[r#"
        row 0
          ticket_id: T-987C0850
          area: account
          issue: change of e-mail
          urgent: 0
          opened: 2026-01-12T03:00:00
          ticket: Here is a short take on sentences issue. There is a simple version and a careful
            version, and both have their place. A good example says more than a long definition. What
            matters in the end is whether it helps somebody. This is demo text, written offline without a
            language model.
          answer: Here is a short take on version place example. A good example says more than a long
            definition. What matters in the end is whether it helps somebody. The numbers are modest, and
            the effect is not. This is demo text, written offline without a language model.
          verdict:
            helpfulness:
              reasoning: Demo text: no text was read to come to this score.
              score: 3
            tone:
              reasoning: Demo text: the option was drawn at random.
              score: neutral
          escalation: null
        stderr: the demo model wrote the texts: they are made up
        exit 0
    "#]]);
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
