//! Functions and their parameters, in lists.

use std::str::FromStr;

use anabranch_recipe::{Arity, Holds, Param, ParamKind, Signature};

use super::recipes::{from_function_id, from_value, function_id, value};
use super::{MalformedMessage, known, set, size};
use crate::proto::recipes as proto;
use crate::proto::recipes::param_kind::Form;

pub(crate) fn function(function: proto::Function) -> Result<Signature, MalformedMessage> {
    let holds = match known("holds", function.holds)? {
        proto::Holds::Chunks => Holds::Chunks,
        proto::Holds::Everything => Holds::Everything,
        proto::Holds::Unspecified => return Err(MalformedMessage("`holds` is not set".to_owned())),
    };
    let inputs = Arity {
        least: size("inputs_least", function.inputs_least)?,
        most: function.inputs_most.map(|most| size("inputs_most", most)).transpose()?,
    };
    let signature = Signature::new(function_id(function.id)?, function.about);
    Ok(Signature {
        inputs,
        params: function.params.into_iter().map(param).collect::<Result<_, _>>()?,
        other_params: function.other_params,
        holds,
        nanos_per_kib: function.nanos_per_kib,
        unlike_deriva: function.unlike_deriva.into(),
        ..signature
    })
}

pub(crate) fn from_function(signature: &Signature) -> proto::Function {
    let holds = match signature.holds {
        Holds::Chunks => proto::Holds::Chunks,
        Holds::Everything => proto::Holds::Everything,
    };
    proto::Function {
        id: from_function_id(&signature.id),
        about: signature.about.to_string(),
        inputs_least: signature.inputs.least as u64,
        inputs_most: signature.inputs.most.map(|most| most as u64),
        params: signature.params.iter().map(from_param).collect(),
        other_params: signature.other_params,
        holds: holds.into(),
        nanos_per_kib: signature.nanos_per_kib,
        unlike_deriva: signature.unlike_deriva.to_string(),
    }
}

fn param(param: proto::Param) -> Result<Param, MalformedMessage> {
    let declared = Param::new(param.name, kind(set("kind", param.kind)?)?, param.about);
    match param.default {
        Some(default) => Ok(declared.or(value(default)?)),
        None => Ok(declared),
    }
}

fn from_param(param: &Param) -> proto::Param {
    proto::Param {
        name: param.name.to_string(),
        about: param.about.to_string(),
        needed: param.is_needed(),
        kind: Some(from_kind(&param.kind)),
        // Every default can be encoded, because it is a valid value of a parameter.
        default: param.default.as_ref().and_then(|value| from_value(value).ok()),
    }
}

fn kind(kind: proto::ParamKind) -> Result<ParamKind, MalformedMessage> {
    fn bound<T: FromStr>(name: &str, digits: &str) -> Result<T, MalformedMessage> {
        digits.parse().map_err(|_| {
            MalformedMessage(format!("`{name}` of a parameter is {digits:?}, which is not a number"))
        })
    }
    let proto::ParamKind { form, least, most, texts, of } = kind;
    Ok(match known("form", form)? {
        Form::Unspecified => return Err(MalformedMessage("`form` is not set".to_owned())),
        Form::Text => ParamKind::Text,
        Form::OneOf => ParamKind::OneOf(texts.into_iter().map(Into::into).collect()),
        Form::TextOrBytes => ParamKind::TextOrBytes,
        Form::Int => ParamKind::Int { least: bound("least", &least)?, most: bound("most", &most)? },
        Form::Float => ParamKind::Float { least: bound("least", &least)?, most: bound("most", &most)? },
        Form::Bool => ParamKind::Bool,
        Form::Bytes => ParamKind::Bytes { least: bound("least", &least)?, most: bound("most", &most)? },
        Form::Names => ParamKind::Names,
        Form::List => ParamKind::List {
            of: Box::new(self::kind(*set("of", of)?)?),
            least: bound("least", &least)?,
            most: bound("most", &most)?,
        },
        Form::Map => ParamKind::Map,
    })
}

fn from_kind(kind: &ParamKind) -> proto::ParamKind {
    let of = |form: Form| proto::ParamKind { form: form.into(), ..proto::ParamKind::default() };
    let within = |form, least: String, most: String| proto::ParamKind { least, most, ..of(form) };
    match kind {
        ParamKind::Text => of(Form::Text),
        ParamKind::OneOf(texts) => {
            proto::ParamKind { texts: texts.iter().map(ToString::to_string).collect(), ..of(Form::OneOf) }
        }
        ParamKind::TextOrBytes => of(Form::TextOrBytes),
        ParamKind::Int { least, most } => within(Form::Int, least.to_string(), most.to_string()),
        ParamKind::Float { least, most } => within(Form::Float, least.to_string(), most.to_string()),
        ParamKind::Bool => of(Form::Bool),
        ParamKind::Bytes { least, most } => within(Form::Bytes, least.to_string(), most.to_string()),
        ParamKind::Names => of(Form::Names),
        ParamKind::List { of: element, least, most } => proto::ParamKind {
            of: Some(Box::new(from_kind(element))),
            ..within(Form::List, least.to_string(), most.to_string())
        },
        ParamKind::Map => of(Form::Map),
    }
}

#[cfg(test)]
mod tests {
    use anabranch_recipe::Functions;

    use super::*;

    #[test]
    fn functions_cross_the_wire_as_they_are() {
        for known in Functions::builtin().list() {
            let sent = known.signature();
            let got = function(from_function(sent)).unwrap();
            let facts = |signature: &Signature| {
                let params: Vec<String> = signature
                    .params
                    .iter()
                    .map(|param| format!("{} {param} {}", param.name, param.about))
                    .collect();
                format!("{} {} {} {params:?}", signature.id, signature.about, signature.unlike_deriva)
            };
            assert_eq!(facts(&got), facts(sent));
        }
    }
}
