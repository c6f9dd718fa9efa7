//! Removes types from classes.

use oxc_ast::ast::{
    Class, ClassElement, MethodDefinition, MethodDefinitionType, PropertyDefinition, PropertyDefinitionType,
    PropertyKey,
};
use oxc_span::{GetSpan, Span};

use super::walk::Walk;

impl<'a> Walk<'_, 'a> {
    pub(super) fn blank_class(&mut self, it: &Class<'a>) {
        if self.words.name(it.span.start) == "abstract" {
            self.blank(it.span.start, it.span.start + "abstract".len() as u32);
        }
        let mut head = it.id.as_ref().map_or(it.span.start, |id| id.span.end);
        head = it.heritage.as_ref().map_or(head, |heritage| heritage.expression.span().end);
        if let Some(types) = &it.type_parameters {
            self.blank(types.span.start, types.span.end);
            head = head.max(types.span.end);
        }
        if let Some(types) = it.heritage.as_ref().and_then(|heritage| heritage.type_arguments.as_ref()) {
            self.blank(types.span.start, types.span.end);
            head = head.max(types.span.end);
        }
        if let (Some(first), Some(last)) = (it.implements.first(), it.implements.last()) {
            let word = self.words.names(head, first.span.start).last();
            self.blank(word.map_or(first.span.start, |(start, _)| start), last.span.end);
        }
    }

    /// Removes an element that is only a type, and refuses elements that JavaScript does not have.
    pub(super) fn blank_element(&mut self, it: &ClassElement<'a>) -> bool {
        let erased = match it {
            ClassElement::TSIndexSignature(_) => true,
            ClassElement::MethodDefinition(it) => {
                it.r#type == MethodDefinitionType::TSAbstractMethodDefinition || it.value.body.is_none()
            }
            ClassElement::PropertyDefinition(it) => {
                it.r#type == PropertyDefinitionType::TSAbstractPropertyDefinition || it.declare
            }
            ClassElement::AccessorProperty(it) => {
                self.fault(it.span, "`accessor` cannot be erased", "write a getter and a setter");
                return true;
            }
            ClassElement::StaticBlock(_) => false,
        };
        if erased {
            self.edits.replace(it.span().start, it.span().end, ";");
        }
        erased
    }

    pub(super) fn blank_method(&mut self, it: &MethodDefinition<'a>) {
        self.blank_modifiers(it.span, &it.key);
        if it.optional {
            self.blank_key_mark(&it.key);
        }
    }

    pub(super) fn blank_property(&mut self, it: &PropertyDefinition<'a>) {
        self.blank_modifiers(it.span, &it.key);
        if it.optional || it.definite {
            self.blank_key_mark(&it.key);
        }
        if let Some(types) = &it.type_annotation {
            self.blank(types.span.start, types.span.end);
        }
    }

    /// Removes the words before a name that JavaScript does not know.
    fn blank_modifiers(&mut self, element: Span, key: &PropertyKey<'a>) {
        let words = self.words;
        for (start, word) in words.names(element.start, key.span().start) {
            if ["public", "private", "protected", "readonly", "override", "abstract"].contains(&word) {
                self.blank(start, start + word.len() as u32);
            }
        }
    }

    /// Removes the mark after a name.
    fn blank_key_mark(&mut self, key: &PropertyKey<'a>) {
        let next = self.words.next(key.span().end);
        let end = if self.words.byte(next) == Some(b']') { next + 1 } else { next };
        self.blank_mark(end);
    }
}
