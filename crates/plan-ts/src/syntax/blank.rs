//! Removes types. A removed part leaves one space and no newline, so that it can neither join two words nor
//! end a statement; and each statement gets the semicolon that its newline stood for.

use oxc_ast::ast::{
    ArrowFunctionExpression, Declaration, ExportDefaultDeclarationKind, FormalParameter, Function,
    ImportOrExportKind, ModuleDeclaration, Statement, TSModuleReference, TSNamespaceDeclaration,
    TSNamespaceDeclarationBody, TSTypeAnnotation, VariableDeclaration, VariableDeclarationKind,
};
use oxc_span::{GetSpan, Span};

use super::walk::Walk;

impl<'a> Walk<'_, 'a> {
    /// Removes a part.
    pub(super) fn blank(&mut self, start: u32, end: u32) {
        self.edits.replace(start, end, " ");
    }

    /// Removes a part and the space up to the next word, for places where a newline would have a meaning.
    fn blank_to_next(&mut self, start: u32, end: u32) {
        self.blank(start, self.words.next(end));
    }

    /// Removes an annotation with everything between it and the annotated part: a mark `?` or `!`, a comment.
    pub(super) fn blank_annotation(&mut self, annotation: Option<&TSTypeAnnotation<'a>>, from: u32) {
        if let Some(annotation) = annotation {
            self.blank(from, annotation.span.end);
        }
    }

    pub(super) fn blank_parameter(&mut self, it: &FormalParameter<'a>) {
        if it.accessibility.is_some() || it.readonly || it.r#override {
            let help = "declare the field and assign it in the constructor";
            self.fault(it.span, "a parameter cannot declare a field", help);
        }
        let end = it.pattern.span().end;
        match &it.type_annotation {
            None if it.optional => self.blank_mark(end),
            annotation => self.blank_annotation(annotation.as_deref(), end),
        }
    }

    /// Removes the mark that comes next.
    pub(super) fn blank_mark(&mut self, from: u32) {
        let mark = self.words.next(from);
        if matches!(self.words.byte(mark), Some(b'?' | b'!')) {
            self.blank(mark, mark + 1);
        }
    }

    pub(super) fn blank_function(&mut self, it: &Function<'a>) {
        if let Some(types) = &it.type_parameters {
            self.blank(types.span.start, types.span.end);
        }
        if let Some(this) = &it.this_param {
            let end = this.type_annotation.as_ref().map_or(this.span.end, |types| types.span.end);
            let end = self.words.past_comma(end);
            self.blank(this.span.start, end);
        }
        if let Some(types) = &it.return_type {
            self.blank(types.span.start, types.span.end);
        }
    }

    pub(super) fn blank_arrow(&mut self, it: &ArrowFunctionExpression<'a>) {
        // `return <T>` and `async <T>` must not end with the line, nor must the part before `=>`.
        if let Some(types) = &it.type_parameters {
            self.blank_to_next(types.span.start, types.span.end);
        }
        if let Some(types) = &it.return_type {
            self.blank_to_next(types.span.start, types.span.end);
        }
    }

    /// True if nothing is left of a statement.
    pub(super) fn is_erased(&self, it: &Statement<'a>) -> bool {
        if let Some(declaration) = it.as_declaration() {
            return is_type_declaration(declaration);
        }
        match it.as_module_declaration() {
            Some(ModuleDeclaration::ExportDeclaration(it)) => is_type_declaration(&it.declaration),
            Some(ModuleDeclaration::ExportDefaultDeclaration(it)) => match &it.declaration {
                ExportDefaultDeclarationKind::TSInterfaceDeclaration(_) => true,
                ExportDefaultDeclarationKind::FunctionDeclaration(it) => it.body.is_none(),
                ExportDefaultDeclarationKind::Identifier(it) => self.names.is_type_only(it.name.as_str()),
                _ => false,
            },
            Some(other) => self.is_erased_module_statement(other),
            None => false,
        }
    }

    /// Reports a statement that needs a runtime feature that JavaScript does not have.
    pub(super) fn refused(&mut self, it: &Statement<'a>) -> bool {
        let declaration = match it.as_module_declaration() {
            Some(ModuleDeclaration::ExportDeclaration(it)) => Some(&it.declaration),
            Some(ModuleDeclaration::TSExportAssignment(it)) => {
                self.fault(it.span, "`export =` is of another module system", "use `export default`");
                return true;
            }
            Some(ModuleDeclaration::TSNamespaceExportDeclaration(it)) => {
                self.fault(it.span, "a plan exports no global namespace", "remove this line");
                return true;
            }
            _ => it.as_declaration(),
        };
        match declaration {
            Some(Declaration::TSEnumDeclaration(it)) => {
                let help = "use an object: `const Color = { red: \"red\" } as const`";
                self.fault(it.id.span, "an enum cannot be erased", help);
            }
            Some(Declaration::TSNamespaceDeclaration(it)) => {
                let help = "use a module of its own, or an object";
                self.fault(it.id.span, "a namespace with values cannot be erased", help);
            }
            Some(Declaration::TSImportEqualsDeclaration(it)) => {
                let help = match it.module_reference {
                    TSModuleReference::ExternalModuleReference(_) => "use `import x from \"./x\"`",
                    _ => "use `const x = y.z`, or `type X = Y.Z`",
                };
                self.fault(it.span, "`import x = ..` cannot be erased", help);
            }
            _ => return false,
        }
        true
    }

    pub(super) fn refuse_using(&mut self, it: &VariableDeclaration<'a>) {
        if matches!(it.kind, VariableDeclarationKind::Using | VariableDeclarationKind::AwaitUsing) {
            self.fault(it.span, "a plan has nothing to dispose of", "use `const`");
        }
    }

    /// Ends a statement that may end with a semicolon with one.
    pub(super) fn end_statement(&mut self, it: &Statement<'a>) {
        let takes = match it {
            Statement::BreakStatement(_)
            | Statement::ContinueStatement(_)
            | Statement::DebuggerStatement(_)
            | Statement::DoWhileStatement(_)
            | Statement::ExpressionStatement(_)
            | Statement::ReturnStatement(_)
            | Statement::ThrowStatement(_)
            | Statement::VariableDeclaration(_)
            | Statement::ImportDeclaration(_)
            | Statement::ExportAllDeclaration(_)
            | Statement::ExportNamedDeclaration(_)
            | Statement::ExportFromDeclaration(_) => true,
            Statement::ExportDeclaration(it) => matches!(it.declaration, Declaration::VariableDeclaration(_)),
            Statement::ExportDefaultDeclaration(it) => !matches!(
                it.declaration,
                ExportDefaultDeclarationKind::FunctionDeclaration(_)
                    | ExportDefaultDeclarationKind::ClassDeclaration(_)
            ),
            _ => false,
        };
        if takes {
            self.end_with_semicolon(it.span());
        }
    }

    pub(super) fn end_with_semicolon(&mut self, span: Span) {
        let last = (span.end as usize).checked_sub(1).and_then(|last| self.text.as_bytes().get(last));
        if last != Some(&b';') {
            self.edits.insert(span.end, ";");
        }
    }
}

/// Whether a declaration declares only types, or something that is defined elsewhere.
pub(super) fn is_type_declaration(it: &Declaration<'_>) -> bool {
    match it {
        Declaration::TSTypeAliasDeclaration(_) | Declaration::TSInterfaceDeclaration(_) => true,
        Declaration::TSExternalModuleDeclaration(_) | Declaration::TSGlobalDeclaration(_) => true,
        Declaration::VariableDeclaration(it) => it.declare,
        Declaration::FunctionDeclaration(it) => it.declare || it.body.is_none(),
        Declaration::ClassDeclaration(it) => it.declare,
        Declaration::TSEnumDeclaration(it) => it.declare,
        Declaration::TSNamespaceDeclaration(it) => it.declare || has_types_only(it),
        Declaration::TSImportEqualsDeclaration(it) => it.import_kind == ImportOrExportKind::Type,
    }
}

fn has_types_only(it: &TSNamespaceDeclaration<'_>) -> bool {
    match &it.body {
        TSNamespaceDeclarationBody::TSNamespaceDeclaration(it) => has_types_only(it),
        TSNamespaceDeclarationBody::TSModuleBlock(it) => it.body.iter().all(|statement| match statement {
            Statement::ExportDeclaration(it) => is_type_declaration(&it.declaration),
            Statement::EmptyStatement(_) => true,
            other => other.as_declaration().is_some_and(is_type_declaration),
        }),
    }
}
