//! Rule: files and functions stay short. What is longer today is recorded in the policy, and can only fall.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};

use crate::{Policy, Violation, Workspace};

/// Measures every Rust file and every function in it (functions that a macro writes are not seen).
pub fn check(tree: &Workspace, policy: &Policy) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut files = BTreeMap::new();
    let mut functions = BTreeMap::new();
    for (path, text) in tree.texts("rs") {
        files.insert(path.to_owned(), text.lines().count());
        match syn::parse_file(text) {
            Ok(file) => Functions { path: vec![path.to_owned()], lines: &mut functions }.visit_file(&file),
            Err(e) => {
                let place = format!("{path}:{}", e.span().start().line);
                found.push(Violation::new(place, format!("is not Rust: {e}"), "correct or rename it"));
            }
        }
    }
    let size = &policy.size;
    found.extend(compare("file", &files, size.file_lines, &size.files));
    found.extend(compare("function", &functions, size.function_lines, &size.functions));
    found
}

fn compare(
    kind: &str,
    lines: &BTreeMap<String, usize>,
    limit: usize,
    recorded: &BTreeMap<String, usize>,
) -> Vec<Violation> {
    let entry = format!("[size.{kind}s] of crates/tidy/policy.toml");
    let mut found = Vec::new();
    for (name, &lines) in lines {
        let allowed = recorded.get(name).copied().unwrap_or(limit);
        if lines > allowed {
            let what = format!("this {kind} has {lines} lines, more than {allowed}");
            found.push(Violation::new(name, what, "split it by idea"));
        }
    }
    for (name, &allowed) in recorded {
        let lines = lines.get(name).copied().unwrap_or(0);
        if lines <= limit {
            let what = format!("is within the {kind} limit now");
            found.push(Violation::new(name, what, format!("delete it from {entry}")));
        } else if lines < allowed {
            let what = format!("is recorded with {allowed} lines but has {lines}");
            found.push(Violation::new(name, what, format!("lower it to {lines} in {entry}")));
        }
    }
    found
}

/// Collects the lines of each function, named `file.rs::Type::method`; of equal names the longest counts.
struct Functions<'a> {
    path: Vec<String>,
    lines: &'a mut BTreeMap<String, usize>,
}

impl Functions<'_> {
    fn inside(&mut self, name: &str, visit: impl FnOnce(&mut Self)) {
        self.path.push(name.to_owned());
        visit(self);
        self.path.pop();
    }

    fn measure(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let start = signature.fn_token.span.start().line;
        let end = body.brace_token.span.close().end().line;
        let longest = self.lines.entry(self.path.join("::")).or_default();
        *longest = (*longest).max(end + 1 - start);
    }
}

impl<'ast> Visit<'ast> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.inside(&function.sig.ident.to_string(), |this| {
            this.measure(&function.sig, &function.block);
            visit::visit_item_fn(this, function);
        });
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.inside(&function.sig.ident.to_string(), |this| {
            this.measure(&function.sig, &function.block);
            visit::visit_impl_item_fn(this, function);
        });
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        self.inside(&function.sig.ident.to_string(), |this| {
            if let Some(body) = &function.default {
                this.measure(&function.sig, body);
            }
            visit::visit_trait_item_fn(this, function);
        });
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let name = match &*item.self_ty {
            syn::Type::Path(ty) => ty.path.segments.last().map(|segment| segment.ident.to_string()),
            _ => None,
        };
        self.inside(&name.unwrap_or_else(|| "impl".to_owned()), |this| visit::visit_item_impl(this, item));
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.inside(&item.ident.to_string(), |this| visit::visit_item_trait(this, item));
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.inside(&item.ident.to_string(), |this| visit::visit_item_mod(this, item));
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::violation::assert_found;
    use crate::{Policy, Workspace};

    /// Checks `a.rs` against limits of 9 lines a file and 3 a function, and the recorded entries.
    fn check(text: &str, files: &[(&str, usize)], functions: &[(&str, usize)], expected: &Expect) {
        let mut policy = Policy::of_this_repository();
        policy.size.file_lines = 9;
        policy.size.function_lines = 3;
        policy.size.files = files.iter().map(|&(name, lines)| (name.to_owned(), lines)).collect();
        policy.size.functions = functions.iter().map(|&(name, lines)| (name.to_owned(), lines)).collect();
        assert_found(&super::check(&Workspace::of([("a.rs", text)]), &policy), expected);
    }

    #[test]
    fn short_ones_pass() {
        check("\n\n\n\n\n/// Docs\n/// do not count.\n#[inline]\nfn a() {}", &[], &[], &expect![]);
    }

    #[test]
    fn long_files_are_found() {
        check(&"\n".repeat(10), &[], &[], &expect!["a.rs: this file has 10 lines, more than 9"]);
    }

    #[test]
    fn long_functions_are_found_wherever_they_are() {
        check("fn a() {\n\n\n}", &[], &[], &expect!["a.rs::a: this function has 4 lines, more than 3"]);
        check(
            "impl A {\npub async fn a() {\n\n\n}}",
            &[],
            &[],
            &expect!["a.rs::A::a: this function has 4 lines, more than 3"],
        );
        check(
            "trait A { fn a() {\n\n\n} fn b(); }",
            &[],
            &[],
            &expect!["a.rs::A::a: this function has 4 lines, more than 3"],
        );
        check(
            "mod tests {\n#[test]\nfn a() { fn b() {\n\n\n} } }",
            &[],
            &[],
            &expect![[r#"
                a.rs::tests::a: this function has 4 lines, more than 3
                a.rs::tests::a::b: this function has 4 lines, more than 3"#]],
        );
    }

    #[test]
    fn a_recorded_length_may_not_grow() {
        check(&"\n".repeat(12), &[("a.rs", 11)], &[], &expect!["a.rs: this file has 12 lines, more than 11"]);
        check(&"\n".repeat(11), &[("a.rs", 11)], &[], &expect![]);
    }

    #[test]
    fn a_recorded_length_must_fall_with_the_truth() {
        check(
            "fn a() {\n\n\n}",
            &[],
            &[("a.rs::a", 5)],
            &expect!["a.rs::a: is recorded with 5 lines but has 4"],
        );
        check(
            "fn a() {}",
            &[("b.rs", 10)],
            &[("a.rs::a", 5)],
            &expect![[r#"
                b.rs: is within the file limit now
                a.rs::a: is within the function limit now"#]],
        );
    }

    #[test]
    fn what_cannot_be_read_is_not_passed_over() {
        check("\nfn a( {}", &[], &[], &expect!["a.rs:2: is not Rust: cannot parse string into token stream"]);
    }
}
