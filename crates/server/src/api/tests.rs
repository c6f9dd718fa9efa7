//! The table is complete. These tests compare its rows with the sources of the router and of the gRPC services.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{GRPC, ROUTES};

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
    found
}

/// `METHOD path` of every `.route("path", get(..).put(..))` in a text.
fn routed(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for call in text.split(".route(\"").skip(1) {
        let (path, rest) = call.split_once('"').unwrap();
        let mut depth = 1;
        let end = rest.find(|c: char| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0
        });
        let handlers = &rest[..end.unwrap()];
        for method in ["get", "post", "put", "delete", "patch"] {
            let is_it = |(at, _): (usize, &str)| {
                !handlers[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':')
            };
            if handlers.match_indices(&format!("{method}(")).any(is_it) {
                found.insert(format!("{} {path}", method.to_uppercase()));
            }
        }
    }
    found
}

#[test]
fn every_route_has_a_row_and_every_row_a_route() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = BTreeSet::new();
    for file in files(&source, ".rs") {
        if !file.ends_with("api/tests.rs") {
            found.extend(routed(&fs::read_to_string(file).unwrap()));
        }
    }
    let rows: Vec<String> = ROUTES.iter().map(|route| format!("{} {}", route.method, route.path)).collect();
    assert_eq!(rows.len(), rows.iter().collect::<BTreeSet<_>>().len(), "a row is there twice");
    assert_eq!(found, rows.into_iter().collect());
}

#[test]
fn every_call_of_grpc_has_a_row_and_every_row_a_call() {
    let protos = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("proto"), ".proto");
    let mut found = BTreeSet::new();
    for file in protos {
        let text = fs::read_to_string(file).unwrap();
        let after = |line: &str, word: &str| {
            let rest = line.trim().strip_prefix(word)?;
            Some(rest.split(['(', ' ', ';', '{']).next().unwrap().to_owned())
        };
        let package = text.lines().find_map(|line| after(line, "package ")).unwrap();
        let service = text.lines().find_map(|line| after(line, "service "));
        let calls = text.lines().filter_map(|line| after(line, "rpc "));
        found.extend(calls.map(|call| format!("{package}.{}/{call}", service.as_deref().unwrap())));
    }
    let rows =
        GRPC.iter().flat_map(|(service, calls, _)| calls.iter().map(move |call| format!("{service}/{call}")));
    let rows: Vec<String> = rows.filter(|row| !row.starts_with("grpc.")).collect();
    assert_eq!(rows.len(), rows.iter().collect::<BTreeSet<_>>().len(), "a row is there twice");
    assert_eq!(found, rows.into_iter().collect());
}
