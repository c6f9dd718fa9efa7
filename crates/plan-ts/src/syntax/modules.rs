//! Imports and exports: which files a file needs, and which of their names are types and go.

use std::collections::{HashMap, HashSet};

use oxc_ast::ast::{
    BindingIdentifier, Declaration, ExportDefaultDeclarationKind, ExportSpecifier, ImportDeclaration,
    ImportDeclarationSpecifier, ImportOrExportKind, ModuleDeclaration, ModuleExportName, Program, Statement,
    StringLiteral, WithClause,
};
use oxc_ast_visit::walk_js;
use oxc_span::{GetSpan, Span};

use super::blank::is_type_declaration;
use super::walk::{IsType, Walk};
use super::{Forward, Import, Scan};
use crate::job::At;

/// The names at the top of a file.
#[derive(Default)]
pub(super) struct Names<'a> {
    types: HashSet<&'a str>,
    values: HashSet<&'a str>,
    /// The names that are imported as values, with their module and their name there.
    imported: HashMap<&'a str, (&'a str, &'a str)>,
}

impl<'a> Names<'a> {
    /// The names of a file.
    pub(super) fn of(program: &Program<'a>, is_type: IsType<'_>) -> Names<'a> {
        let mut names = Names::default();
        for statement in &program.body {
            match statement {
                Statement::ImportDeclaration(it) => names.import(it, is_type),
                Statement::ExportDeclaration(it) => names.declare(&it.declaration),
                other => other.as_declaration().into_iter().for_each(|it| names.declare(it)),
            }
        }
        names
    }

    /// True if a name is a type and nothing else.
    pub(super) fn is_type_only(&self, name: &str) -> bool {
        self.types.contains(name) && !self.values.contains(name)
    }

    fn import(&mut self, it: &ImportDeclaration<'a>, is_type: IsType<'_>) {
        let source = it.source.value.as_str();
        for specifier in it.specifiers.iter().flatten() {
            let (name, kind) = imported(specifier);
            let local = specifier.local().name.as_str();
            let called = [it.import_kind, kind].contains(&ImportOrExportKind::Type);
            if called || name.is_some_and(|name| is_type(source, name)) {
                self.types.insert(local);
            } else {
                self.values.insert(local);
                self.imported.extend(name.map(|name| (local, (source, name))));
            }
        }
    }

    fn declare(&mut self, it: &Declaration<'a>) {
        let names = if is_type_declaration(it) { &mut self.types } else { &mut self.values };
        names.extend(declared(it).into_iter().map(|id| id.name.as_str()));
    }
}

/// The names of a declaration.
fn declared<'e, 'a>(it: &'e Declaration<'a>) -> Vec<&'e BindingIdentifier<'a>> {
    match it {
        Declaration::VariableDeclaration(it) => {
            it.declarations.iter().flat_map(|it| it.id.get_binding_identifiers()).collect()
        }
        Declaration::FunctionDeclaration(it) => it.id.iter().collect(),
        Declaration::ClassDeclaration(it) => it.id.iter().collect(),
        Declaration::TSTypeAliasDeclaration(it) => vec![&it.id],
        Declaration::TSInterfaceDeclaration(it) => vec![&it.id],
        Declaration::TSEnumDeclaration(it) => vec![&it.id],
        Declaration::TSNamespaceDeclaration(it) => vec![&it.id],
        Declaration::TSImportEqualsDeclaration(it) => vec![&it.id],
        Declaration::TSExternalModuleDeclaration(_) | Declaration::TSGlobalDeclaration(_) => Vec::new(),
    }
}

/// The name that a specifier imports, unless it imports everything, and whether it is marked as a type.
fn imported<'a>(specifier: &ImportDeclarationSpecifier<'a>) -> (Option<&'a str>, ImportOrExportKind) {
    match specifier {
        ImportDeclarationSpecifier::ImportSpecifier(it) => (Some(name(&it.imported)), it.import_kind),
        ImportDeclarationSpecifier::ImportDefaultSpecifier(_) => (Some("default"), ImportOrExportKind::Value),
        ImportDeclarationSpecifier::ImportNamespaceSpecifier(_) => (None, ImportOrExportKind::Value),
    }
}

fn name<'a>(it: &ModuleExportName<'a>) -> &'a str {
    it.name().as_str()
}

/// True if there are some, and all are types.
fn all<T>(list: &[T], is_type: impl Fn(&T) -> bool) -> bool {
    !list.is_empty() && list.iter().all(is_type)
}

/// Finds the imports of a file, and its exports that are types.
pub(super) fn scan(file: u32, program: &Program<'_>) -> Scan {
    let names = Names::of(program, &|_, _| false);
    let mut found = ModuleScan { file, seen: HashSet::new(), scan: Scan::default() };
    for statement in &program.body {
        if let Some(it) = statement.as_module_declaration() {
            found.module_statement(it, &names);
        }
    }
    found.scan
}

struct ModuleScan {
    file: u32,
    seen: HashSet<String>,
    scan: Scan,
}

impl ModuleScan {
    fn module_statement(&mut self, it: &ModuleDeclaration<'_>, names: &Names<'_>) {
        match it {
            ModuleDeclaration::ImportDeclaration(it) => {
                let types = |it: &ImportDeclarationSpecifier<'_>| imported(it).1 == ImportOrExportKind::Type;
                let erased = it.specifiers.as_ref().is_some_and(|list| all(list, types));
                if it.import_kind == ImportOrExportKind::Value && !erased {
                    self.import(&it.source);
                }
            }
            ModuleDeclaration::ExportAllDeclaration(it) => {
                let exported = it.exported.as_ref().map(name);
                match (it.export_kind, exported) {
                    (ImportOrExportKind::Type, Some(name)) => self.add_type(name),
                    (ImportOrExportKind::Type, None) => {}
                    (ImportOrExportKind::Value, exported) => {
                        self.import(&it.source);
                        match exported {
                            Some(name) => self.add_value(name),
                            None => self.forward(it.source.value.as_str(), None),
                        }
                    }
                }
            }
            ModuleDeclaration::ExportFromDeclaration(it) => {
                let mut values = it.specifiers.is_empty();
                for specifier in &it.specifiers {
                    let exported = name(&specifier.exported);
                    if [it.export_kind, specifier.export_kind].contains(&ImportOrExportKind::Type) {
                        self.add_type(exported);
                    } else {
                        values = true;
                        self.forward(it.source.value.as_str(), Some((name(&specifier.local), exported)));
                    }
                }
                if values && it.export_kind == ImportOrExportKind::Value {
                    self.import(&it.source);
                }
            }
            ModuleDeclaration::ExportNamedDeclaration(it) => {
                for specifier in &it.specifiers {
                    let called = [it.export_kind, specifier.export_kind].contains(&ImportOrExportKind::Type);
                    self.export(name(&specifier.local), name(&specifier.exported), called, names);
                }
            }
            ModuleDeclaration::ExportDeclaration(it) => {
                for id in declared(&it.declaration) {
                    self.export(id.name.as_str(), id.name.as_str(), false, names);
                }
            }
            ModuleDeclaration::ExportDefaultDeclaration(it) => match &it.declaration {
                ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => self.add_type("default"),
                ExportDefaultDeclarationKind::Identifier(it) => {
                    self.export(it.name.as_str(), "default", false, names);
                }
                _ => {}
            },
            ModuleDeclaration::TSExportAssignment(_) | ModuleDeclaration::TSNamespaceExportDeclaration(_) => {
            }
        }
    }

    fn import(&mut self, source: &StringLiteral<'_>) {
        let specifier = source.value.as_str();
        if self.seen.insert(specifier.to_owned()) {
            let at = At { file: self.file, start: source.span.start, end: source.span.end };
            self.scan.imports.push(Import { specifier: specifier.to_owned(), at });
        }
    }

    fn export(&mut self, local: &str, exported: &str, called: bool, names: &Names<'_>) {
        if called || names.is_type_only(local) {
            self.add_type(exported);
        } else if let Some((source, name)) = names.imported.get(local) {
            self.forward(source, Some((name, exported)));
        } else {
            self.add_value(exported);
        }
    }

    fn add_type(&mut self, exported: &str) {
        self.scan.types.insert(exported.to_owned());
    }

    fn add_value(&mut self, exported: &str) {
        self.scan.values.insert(exported.to_owned());
    }

    fn forward(&mut self, specifier: &str, names: Option<(&str, &str)>) {
        let names = names.map(|(name, exported)| (name.to_owned(), exported.to_owned()));
        self.scan.forwards.push(Forward { specifier: specifier.to_owned(), names });
    }
}

impl<'a> Walk<'_, 'a> {
    /// True if nothing is left of an import or an export.
    pub(super) fn is_erased_module_statement(&self, it: &ModuleDeclaration<'a>) -> bool {
        match it {
            ModuleDeclaration::ImportDeclaration(it) => {
                it.import_kind == ImportOrExportKind::Type
                    || it.specifiers.as_ref().is_some_and(|list| all(list, |it| self.drops_import(it)))
            }
            ModuleDeclaration::ExportNamedDeclaration(it) => {
                it.export_kind == ImportOrExportKind::Type
                    || all(&it.specifiers, |specifier| self.drops_export(specifier, None))
            }
            ModuleDeclaration::ExportFromDeclaration(it) => {
                let source = it.source.value.as_str();
                it.export_kind == ImportOrExportKind::Type
                    || all(&it.specifiers, |specifier| self.drops_export(specifier, Some(source)))
            }
            ModuleDeclaration::ExportAllDeclaration(it) => it.export_kind == ImportOrExportKind::Type,
            _ => false,
        }
    }

    fn drops_import(&self, specifier: &ImportDeclarationSpecifier<'a>) -> bool {
        self.names.is_type_only(specifier.local().name.as_str())
    }

    fn drops_export(&self, specifier: &ExportSpecifier<'a>, source: Option<&str>) -> bool {
        let local = name(&specifier.local);
        specifier.export_kind == ImportOrExportKind::Type
            || match source {
                Some(source) => (self.is_type)(source, local),
                None => self.names.is_type_only(local),
            }
    }

    /// Removes the types from an import or an export of names; whether it was one.
    pub(super) fn module_statement(&mut self, it: &Statement<'a>) -> bool {
        match it {
            Statement::ImportDeclaration(it) => {
                if it.phase.is_some() {
                    self.fault(it.span, "an import has no phases here", "use a plain import");
                }
                self.refuse_attributes(it.with_clause.as_deref());
                for specifier in it.specifiers.iter().flatten() {
                    if self.drops_import(specifier) {
                        self.blank_item(specifier.span());
                    }
                }
                walk_js::walk_import_declaration(self, it);
            }
            Statement::ExportNamedDeclaration(it) => self.blank_exports(&it.specifiers, None),
            Statement::ExportFromDeclaration(it) => {
                self.refuse_attributes(it.with_clause.as_deref());
                self.blank_exports(&it.specifiers, Some(it.source.value.as_str()));
            }
            Statement::ExportAllDeclaration(it) => self.refuse_attributes(it.with_clause.as_deref()),
            _ => return false,
        }
        true
    }

    fn blank_exports(&mut self, specifiers: &[ExportSpecifier<'a>], source: Option<&str>) {
        for specifier in specifiers {
            if self.drops_export(specifier, source) {
                self.blank_item(specifier.span);
            }
        }
    }

    fn blank_item(&mut self, span: Span) {
        let end = self.words.past_comma(span.end);
        self.blank(span.start, end);
    }

    fn refuse_attributes(&mut self, clause: Option<&WithClause<'a>>) {
        if let Some(clause) = clause {
            self.fault(
                clause.span,
                "an import has no attributes here",
                "import TypeScript, or write the data out",
            );
        }
    }
}
