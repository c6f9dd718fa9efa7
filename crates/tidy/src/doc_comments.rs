//! Rule: every `pub` item has a doc comment. Fields and enum variants need one only where their name is not enough.
//!
//! The compiler's own lint (`missing_docs`) has no exception for fields, and so produced comments such as "Its name.".

use syn::visit::{self, Visit};
use syn::{Attribute, Visibility};

use crate::{Policy, Violation, Workspace};

/// Checks the source files of every crate; a file that does not parse is reported by the rule on size.
pub fn check(tree: &Workspace, _: &Policy) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, text) in tree.texts("rs").filter(|(path, _)| path.contains("/src/")) {
        if let Ok(file) = syn::parse_file(text) {
            PublicItems { path, found: &mut found }.visit_file(&file);
        }
    }
    found
}

struct PublicItems<'a> {
    path: &'a str,
    found: &'a mut Vec<Violation>,
}

impl PublicItems<'_> {
    fn check(&mut self, visibility: &Visibility, attributes: &[Attribute], name: &syn::Ident) {
        if matches!(visibility, Visibility::Public(_)) {
            self.check_public(attributes, name);
        }
    }

    fn check_public(&mut self, attributes: &[Attribute], name: &syn::Ident) {
        if !attributes.iter().any(|attribute| attribute.path().is_ident("doc")) {
            let place = format!("{}:{}", self.path, name.span().start().line);
            let what = format!("`{name}` is public and has no doc comment");
            self.found.push(Violation::new(place, what, "add one sentence, or make the item private"));
        }
    }
}

impl<'ast> Visit<'ast> for PublicItems<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if is_test(&item.attrs) {
            return;
        }
        // The comment of a module in its own file is the `//!` at the top of that file.
        if item.content.is_some() {
            self.check(&item.vis, &item.attrs, &item.ident);
        }
        visit::visit_item_mod(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.check(&item.vis, &item.attrs, &item.ident);
        for member in item.items.iter().filter(|_| matches!(item.vis, Visibility::Public(_))) {
            match member {
                syn::TraitItem::Fn(member) => self.check_public(&member.attrs, &member.sig.ident),
                syn::TraitItem::Type(member) => self.check_public(&member.attrs, &member.ident),
                syn::TraitItem::Const(member) => self.check_public(&member.attrs, &member.ident),
                _ => {}
            }
        }
        visit::visit_item_trait(self, item);
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.check(&item.vis, &item.attrs, &item.sig.ident);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.check(&item.vis, &item.attrs, &item.sig.ident);
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.check(&item.vis, &item.attrs, &item.ident);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.check(&item.vis, &item.attrs, &item.ident);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.check(&item.vis, &item.attrs, &item.ident);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.check(&item.vis, &item.attrs, &item.ident);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.check(&item.vis, &item.attrs, &item.ident);
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.check(&item.vis, &item.attrs, &item.ident);
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    let is_test = |attribute: &Attribute| match &attribute.meta {
        syn::Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        _ => false,
    };
    attributes.iter().any(is_test)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::violation::assert_found;
    use crate::{Policy, Workspace};

    fn check(text: &str, expected: &Expect) {
        let tree =
            Workspace::of([("crates/a/src/lib.rs", text), ("crates/a/tests/tests.rs", "pub fn a() {}")]);
        assert_found(&super::check(&tree, &Policy::of_this_repository()), expected);
    }

    #[test]
    fn fields_variants_and_private_items_need_none() {
        check(
            "/// A.\npub struct A { pub b: u32 }\n/// C.\npub enum C { D, E { f: u32 } }
            pub(crate) struct F; fn g() {} trait H { fn h(); } pub mod i; pub use i::J;
            impl Clone for A { fn clone(&self) -> A {} }
            #[cfg(test)] mod tests { pub fn k() {} }",
            &expect![],
        );
    }

    #[test]
    fn every_kind_of_public_item_is_found() {
        check(
            "pub struct A;\npub enum B {}\npub fn c() {}\npub type D = u8;\npub const E: u8 = 1;
             pub static F: u8 = 1;\npub mod g { pub fn h() {} }\nimpl A { pub fn i() {} pub const J: u8 = 1; }
             pub trait K { fn l(); type M; const N: u8; }",
            &expect![[r#"
                crates/a/src/lib.rs:1: `A` is public and has no doc comment
                crates/a/src/lib.rs:2: `B` is public and has no doc comment
                crates/a/src/lib.rs:3: `c` is public and has no doc comment
                crates/a/src/lib.rs:4: `D` is public and has no doc comment
                crates/a/src/lib.rs:5: `E` is public and has no doc comment
                crates/a/src/lib.rs:6: `F` is public and has no doc comment
                crates/a/src/lib.rs:7: `g` is public and has no doc comment
                crates/a/src/lib.rs:7: `h` is public and has no doc comment
                crates/a/src/lib.rs:8: `i` is public and has no doc comment
                crates/a/src/lib.rs:8: `J` is public and has no doc comment
                crates/a/src/lib.rs:9: `K` is public and has no doc comment
                crates/a/src/lib.rs:9: `l` is public and has no doc comment
                crates/a/src/lib.rs:9: `M` is public and has no doc comment
                crates/a/src/lib.rs:9: `N` is public and has no doc comment"#]],
        );
    }
}
