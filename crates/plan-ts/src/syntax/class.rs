//! What is a type goes, in classes.

use oxc_ast::ast::{
    Class, ClassElement, MethodDefinition, MethodDefinitionType, PropertyDefinition, PropertyDefinitionType,
    PropertyKey,
};
use oxc_parser::Kind;
use oxc_span::{GetSpan, Span};

use super::walk::Walk;

impl<'a> Walk<'_, 'a> {
    pub(super) fn blank_class(&mut self, it: &Class<'a>) {
        let words = self.words;
        let modifiers = words.from(it.span.start).take_while(|word| word.kind() != Kind::Class);
        for word in modifiers.filter(|word| word.kind() == Kind::Abstract) {
            self.blank(word.start(), word.end());
        }
        if let Some(types) = &it.type_parameters {
            self.blank(types.span.start, types.span.end);
        }
        if let Some(types) = it.heritage.as_ref().and_then(|heritage| heritage.type_arguments.as_ref()) {
            self.blank(types.span.start, types.span.end);
        }
        if let (Some(first), Some(last)) = (it.implements.first(), it.implements.last()) {
            let start = words.last(first.span.start).map_or(first.span.start, |word| word.start());
            self.blank(start, last.span.end);
        }
    }

    /// Removes an element that is a type only, and refuses what JavaScript does not have.
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
        let end = key.span().start;
        let words = self.words;
        for word in words.from(element.start).take_while(|word| word.start() < end) {
            let erased = matches!(
                word.kind(),
                Kind::Public
                    | Kind::Private
                    | Kind::Protected
                    | Kind::Readonly
                    | Kind::Override
                    | Kind::Abstract
            );
            if erased {
                self.blank(word.start(), word.end());
            }
        }
    }

    /// Removes the mark after a name.
    fn blank_key_mark(&mut self, key: &PropertyKey<'a>) {
        let words = self.words;
        let mark = words.from(key.span().end).find(|word| word.kind() != Kind::RBrack);
        if let Some(mark) = mark
            && matches!(mark.kind(), Kind::Question | Kind::Bang)
        {
            self.blank(mark.start(), mark.end());
        }
    }
}
