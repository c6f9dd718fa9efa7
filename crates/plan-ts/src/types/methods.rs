//! Ops as types: methods of the context and of rows, and their options.

use std::collections::{BTreeMap, BTreeSet};

use anabranch_plan::op::{Ops, ParamKind, ParamSpec, Spec};
use anabranch_plan::registry::Limits;

use super::page::{Page, member, one_of, sentence};
use crate::job::Method;
use crate::surface::{self, ROOT};

/// Ops by namespace, the root first.
type ByNamespace<'a> = BTreeMap<(bool, String), Vec<DeclaredOp<'a>>>;

/// An op, and the name of its options type.
struct DeclaredOp<'a> {
    spec: &'a Spec,
    method: Method,
    options: String,
}

/// Declares all ops, the context and rows.
pub(super) fn declare(page: &mut Page, ops: &Ops, limits: &Limits) {
    let (mut sources, mut steps) = (ByNamespace::new(), ByNamespace::new());
    let mut taken = BTreeSet::new();
    for op in ops.iter() {
        let (spec, method) = (op.spec(), surface::method(op.spec()));
        let prefix = if method.namespace == ROOT { "" } else { method.namespace.as_str() };
        let options = unique(&format!("{}{}Options", pascal(prefix), pascal(&method.name)), &mut taken);
        let of = if method.input { &mut steps } else { &mut sources };
        let namespace = (method.namespace != ROOT, method.namespace.clone());
        of.entry(namespace).or_default().push(DeclaredOp { spec, method, options });
    }
    let context = "What a plan begins with: ops that need no rows.";
    interface(page, ("Context", "Sources", context), &sources, |page| {
        page.doc(&["Requires an extension.".to_owned()], &[]);
        page.line("requireCapability(id: Capability, payload?: Json): void;");
    });
    page.line("");
    let rows = "Rows, and what can be made of them. Each method makes new ones; these stay as they are.";
    interface(page, ("CandidateSet", "Ops", rows), &steps, |page| {
        page.line("readonly [kind]: \"rows\";");
    });
    for declared in sources.values().chain(steps.values()).flatten() {
        page.line("");
        Options { spec: declared.spec, limits }.declare(page, &declared.method, &declared.options);
    }
}

/// Declares the methods of each namespace, and the interface that has all namespaces.
fn interface(
    page: &mut Page,
    (name, suffix, doc): (&str, &str, &str),
    namespaces: &ByNamespace<'_>,
    more: impl FnOnce(&mut Page),
) {
    let mut taken = BTreeSet::new();
    let mut named: Vec<(&str, String)> = Vec::new();
    for ((_, namespace), methods) in namespaces {
        let interface = unique(&format!("{}{suffix}", pascal(namespace)), &mut taken);
        let inside = |page: &mut Page| methods.iter().for_each(|declared| method(page, declared));
        page.block(&format!("interface {interface} {{"), inside, "}");
        page.line("");
        named.push((namespace, interface));
    }
    let root = named.iter().find(|(namespace, _)| *namespace == ROOT);
    let extends = root.map(|(_, interface)| format!(" extends {interface}")).unwrap_or_default();
    page.doc(&[doc.to_owned()], &[]);
    let inside = |page: &mut Page| {
        for (namespace, interface) in &named {
            page.line(&format!("readonly {}: {interface};", member(namespace)));
        }
        more(page);
    };
    page.block(&format!("interface {name}{extends} {{"), inside, "}");
}

fn method(page: &mut Page, DeclaredOp { spec, method, options }: &DeclaredOp<'_>) {
    page.doc(&[sentence(spec.doc)], &[]);
    let optional = if method.bare { "?" } else { "" };
    page.line(&format!("{}(options{optional}: {options}): CandidateSet;", member(&method.name)));
}

/// The options of an op.
struct Options<'a> {
    spec: &'a Spec,
    limits: &'a Limits,
}

impl Options<'_> {
    fn declare(&self, page: &mut Page, method: &Method, options: &str) {
        let spec = self.spec;
        page.doc(&[format!("Options of `{}`.", method.name)], &[]);
        let renamed = |param: &&ParamSpec| surface::alias(spec, param).is_some();
        let aliased = spec.params.iter().find(renamed);
        let simple: Vec<&ParamSpec> = spec.params.iter().filter(|param| !renamed(param)).collect();
        let inside = |page: &mut Page| {
            simple.iter().for_each(|param| self.option(page, param, &surface::option(param)));
        };
        match (&simple[..], aliased) {
            ([], None) => page.line(&format!("interface {options} extends NodeOptions {{}}")),
            (_, None) => page.block(&format!("interface {options} extends NodeOptions {{"), inside, "}"),
            ([], Some(param)) => {
                let inside = |page: &mut Page| self.either(page, param);
                page.block(&format!("type {options} = NodeOptions & ("), inside, ");");
            }
            (_, Some(param)) => {
                page.block(&format!("type {options} = NodeOptions & {{"), inside, "} & (");
                page.indented(|page| self.either(page, param));
                page.line(");");
            }
        }
    }

    /// An option under one of two names, never both.
    fn either(&self, page: &mut Page, param: &ParamSpec) {
        let name = surface::option(param);
        let alias = surface::alias(self.spec, param).expect("only an option with another name comes here");
        for (this, other) in [(name.as_str(), alias), (alias, name.as_str())] {
            let inside = |page: &mut Page| {
                self.option(page, param, this);
                page.line(&format!("readonly {}?: never;", member(other)));
            };
            page.block("| {", inside, "}");
        }
    }

    fn option(&self, page: &mut Page, param: &ParamSpec, name: &str) {
        let range = match param.kind {
            ParamKind::Int(i64::MIN, i64::MAX) => String::new(),
            ParamKind::Int(least, i64::MAX) => format!("At least {least}."),
            ParamKind::Int(least, most) => format!("From {least} to {most}."),
            _ => String::new(),
        };
        let default =
            surface::default(self.spec, param).map(|count| count.min(self.limits.max_fanout.into()));
        let default = default.map(|count| format!("{count} if not given.")).unwrap_or_default();
        page.doc(&[sentence(param.doc), range, default], &[]);
        let optional = if surface::is_required(self.spec, param) { "" } else { "?" };
        page.line(&format!("readonly {}{optional}: {};", member(name), kind(param.kind)));
    }
}

fn kind(kind: ParamKind) -> String {
    let name = match kind {
        ParamKind::Int(..) | ParamKind::Float => "Plain<number>",
        ParamKind::Bool => "Plain<boolean>",
        ParamKind::Text => "Plain<string>",
        ParamKind::Choice(words) => return one_of(words.iter().copied()),
        ParamKind::Key => "AnyKey",
        ParamKind::SortKeys => "SortKeys",
        ParamKind::Node => "CandidateSet",
        ParamKind::Nodes => "readonly CandidateSet[]",
        ParamKind::Endpoint(None) => "Endpoint",
        ParamKind::Endpoint(Some(kind)) => return format!("Endpoint<\"{kind}\">"),
        ParamKind::Expr => "Scalar | null",
        ParamKind::Pred => "boolean",
        ParamKind::Json => "Json",
    };
    name.to_owned()
}

/// A name that nothing else has yet.
fn unique(name: &str, taken: &mut BTreeSet<String>) -> String {
    let numbered = (2..).map(|number: u32| format!("{name}{number}"));
    let free = std::iter::once(name.to_owned()).chain(numbered).find(|name| !taken.contains(name));
    let free = free.expect("there are more numbers than names");
    taken.insert(free.clone());
    free
}

/// Converts `fixed_source` and `fixedSource` to `FixedSource`. Characters that are not valid in a name are left out.
fn pascal(name: &str) -> String {
    let name: String =
        name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
    let camel = surface::camel(&name);
    let mut letters = camel.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
