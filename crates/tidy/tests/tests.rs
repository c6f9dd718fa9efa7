//! Runs every house rule on this repository.

use std::path::Path;

use anabranch_tidy::{Metadata, Policy, Violation, Workspace, report};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the crate is two folders down")
}

fn hold(rule: fn(&Workspace, &Policy) -> Vec<Violation>) {
    let tree = Workspace::read(root()).unwrap_or_else(|e| panic!("{e}"));
    agree(&rule(&tree, &Policy::of_this_repository()));
}

fn agree(violations: &[Violation]) {
    assert!(violations.is_empty(), "{} house rule(s) broken\n\n{}", violations.len(), report(violations));
}

#[test]
fn crates_use_only_what_they_may() {
    hold(anabranch_tidy::check_edges);
}

#[test]
fn lower_crates_name_no_workload() {
    hold(anabranch_tidy::check_words);
}

#[test]
fn files_and_functions_are_short() {
    hold(anabranch_tidy::check_size);
}

#[test]
fn documents_are_true_and_few() {
    hold(anabranch_tidy::check_docs);
}

#[test]
fn figures_were_measured() {
    hold(anabranch_tidy::check_figures);
}

#[test]
fn public_items_have_doc_comments() {
    hold(anabranch_tidy::check_doc_comments);
}

#[test]
fn crates_are_whole() {
    hold(anabranch_tidy::check_crates);
}

#[test]
fn nothing_is_left_unfinished() {
    hold(anabranch_tidy::check_marks);
}

#[test]
fn licences_are_allowed() {
    let metadata = Metadata::of(root()).unwrap_or_else(|e| panic!("{e}"));
    agree(&anabranch_tidy::check_licences(&metadata, &Policy::of_this_repository()));
}

#[test]
fn notices_name_all_that_is_linked() {
    let notices = anabranch_tidy::notices::linked(root(), "anabranch-cli").unwrap_or_else(|e| panic!("{e}"));
    let text = anabranch_tidy::notices::document(&notices);
    for part in ["\nblake3 1.", "\nzstd-sys 2.", "Fabrice Bellard", "Apache License"] {
        assert!(text.contains(part), "`{part}` is missing");
    }
    for part in ["\nserde_derive ", "\nprotox ", "\nproptest ", "\nanabranch"] {
        assert!(!text.contains(part), "`{part}` is not linked, or ours");
    }
}
