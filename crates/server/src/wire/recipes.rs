//! Recipes, their functions and their values.

use std::collections::BTreeMap;
use std::time::Duration;

use anabranch_content::{Address, Cost, Memo, Time, Value};
use anabranch_recipe::{
    AddedRecipe, Draft, DraftInput, FetchedValue, FunctionId, Params, Recipe, Source, UnknownFunction,
};

use super::{MalformedMessage, address, addresses, from_address, from_addresses, known, set};
use crate::proto::recipes as proto;

pub(super) fn value(value: proto::Value) -> Result<Value, MalformedMessage> {
    use proto::value::Kind;
    Ok(match set("params", value.kind)? {
        Kind::Text(text) => Value::Text(text),
        Kind::Int(number) => Value::Int(number),
        Kind::Bool(bool) => Value::Bool(bool),
        Kind::Float(number) => Value::Float(number),
        Kind::Bytes(bytes) => Value::Bytes(bytes),
        Kind::List(list) => Value::List(list.values.into_iter().map(self::value).collect::<Result<_, _>>()?),
        Kind::Map(map) => Value::Map(params(map.values)?),
    })
}

pub(super) fn from_value(value: &Value) -> Result<proto::Value, MalformedMessage> {
    use proto::value::Kind;
    let kind = match value {
        Value::Text(text) => Kind::Text(text.clone()),
        Value::Int(number) => Kind::Int(*number),
        Value::Bool(bool) => Kind::Bool(*bool),
        Value::Float(number) => Kind::Float(*number),
        Value::Bytes(bytes) => Kind::Bytes(bytes.clone()),
        Value::List(list) => {
            Kind::List(proto::List { values: list.iter().map(from_value).collect::<Result<_, _>>()? })
        }
        Value::Map(map) => Kind::Map(proto::Map { values: from_params(map)? }),
        Value::Null | Value::Address(_) => {
            return Err(MalformedMessage(
                "a parameter is null or an address, which parameters cannot be".to_owned(),
            ));
        }
    };
    Ok(proto::Value { kind: Some(kind) })
}

fn params(params: BTreeMap<String, proto::Value>) -> Result<Params, MalformedMessage> {
    params.into_iter().map(|(name, found)| Ok((name, value(found)?))).collect()
}

fn from_params(params: &Params) -> Result<BTreeMap<String, proto::Value>, MalformedMessage> {
    params.iter().map(|(name, value)| Ok((name.clone(), from_value(value)?))).collect()
}

pub(super) fn function_id(id: Option<proto::FunctionId>) -> Result<FunctionId, MalformedMessage> {
    let proto::FunctionId { name, version } = set("function", id)?;
    Ok(FunctionId { name, version })
}

pub(super) fn from_function_id(id: &FunctionId) -> Option<proto::FunctionId> {
    Some(proto::FunctionId { name: id.name.clone(), version: id.version.clone() })
}

pub(crate) fn unknown(number: i32) -> Result<UnknownFunction, MalformedMessage> {
    Ok(match known("unknown_function", number)? {
        proto::UnknownFunction::Refuse => UnknownFunction::Refuse,
        proto::UnknownFunction::Accept => UnknownFunction::Accept,
    })
}

pub(crate) fn from_unknown(unknown: UnknownFunction) -> proto::UnknownFunction {
    match unknown {
        UnknownFunction::Refuse => proto::UnknownFunction::Refuse,
        UnknownFunction::Accept => proto::UnknownFunction::Accept,
    }
}

pub(crate) fn draft(draft: proto::Draft) -> Result<Draft, MalformedMessage> {
    use proto::input::Of;
    let input = |input: proto::Input| match set("inputs", input.of)? {
        Of::Address(bytes) => Ok(DraftInput::Address(address("inputs", &bytes)?)),
        Of::Earlier(place) => Ok(DraftInput::Earlier(place as usize)),
    };
    let inputs = draft.inputs.into_iter().map(input).collect::<Result<_, MalformedMessage>>()?;
    Ok(Draft { function: function_id(draft.function)?, inputs, params: params(draft.params)? })
}

/// The message of a draft. `earlier` replaces references to earlier recipes of the list.
pub(crate) fn from_draft(
    draft: &Draft,
    earlier: impl Fn(usize) -> DraftInput,
) -> Result<proto::Draft, MalformedMessage> {
    use proto::input::Of;
    let input = |input: &DraftInput| {
        let input = match *input {
            DraftInput::Address(address) => DraftInput::Address(address),
            DraftInput::Earlier(place) => earlier(place),
        };
        let of = match input {
            DraftInput::Address(address) => Of::Address(from_address(&address)),
            DraftInput::Earlier(place) => {
                let far = |_| MalformedMessage(format!("a list of recipes has no place {place}"));
                Of::Earlier(u32::try_from(place).map_err(far)?)
            }
        };
        Ok(proto::Input { of: Some(of) })
    };
    let inputs = draft.inputs.iter().map(input).collect::<Result<_, MalformedMessage>>()?;
    Ok(proto::Draft {
        function: from_function_id(&draft.function),
        inputs,
        params: from_params(&draft.params)?,
    })
}

pub(crate) fn added(added: &proto::AddedRecipe) -> Result<AddedRecipe, MalformedMessage> {
    Ok(AddedRecipe {
        address: address("address", &added.address)?,
        new: added.new,
        dangling: addresses("dangling", &added.dangling)?,
    })
}

pub(crate) fn from_added(added: &AddedRecipe) -> proto::AddedRecipe {
    proto::AddedRecipe {
        address: from_address(&added.address),
        new: added.new,
        dangling: from_addresses(&added.dangling),
    }
}

/// The message of a recipe that was checked and not stored.
pub(crate) fn from_checked(address: &Address) -> proto::AddedRecipe {
    proto::AddedRecipe { address: from_address(address), new: false, dangling: Vec::new() }
}

pub(crate) fn recipe(recipe: proto::Recipe) -> Result<Recipe, MalformedMessage> {
    Ok(Recipe {
        function: function_id(recipe.function)?,
        inputs: addresses("inputs", &recipe.inputs)?,
        params: params(recipe.params)?,
    })
}

pub(crate) fn from_recipe(recipe: &Recipe) -> Result<proto::Recipe, MalformedMessage> {
    Ok(proto::Recipe {
        function: from_function_id(&recipe.function),
        inputs: from_addresses(&recipe.inputs),
        params: from_params(&recipe.params)?,
    })
}

pub(crate) fn memo(derivation: Address, memo: &proto::Memo) -> Result<Memo, MalformedMessage> {
    Ok(Memo {
        derivation,
        output: address("output", &memo.output)?,
        size: memo.size,
        cost: Cost { cpu: Duration::from_micros(memo.cpu_micros), ..Cost::default() },
        at: Time(memo.at),
    })
}

pub(crate) fn from_memo(memo: &Memo) -> proto::Memo {
    proto::Memo {
        output: from_address(&memo.output),
        size: memo.size,
        cpu_micros: u64::try_from(memo.cost.cpu.as_micros()).unwrap_or(u64::MAX),
        at: memo.at.0,
    }
}

/// The header of a value, which precedes its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) output: Address,
    pub(crate) size: u64,
    pub(crate) source: Source,
    /// The number of recipes that did not run because their inputs have the same values as in an earlier call.
    pub(crate) cut_off: u32,
}

impl Part {
    pub(crate) fn of(got: &FetchedValue) -> Part {
        Part { output: got.output, size: got.size, source: got.source, cut_off: got.cut_off }
    }
}

pub(crate) fn header(header: &proto::Header) -> Result<Part, MalformedMessage> {
    let source = match known("source", header.source)? {
        proto::Source::Blob => Source::Blob,
        proto::Source::Memo => Source::Memo,
        proto::Source::Computed => Source::Computed(header.computed),
        proto::Source::Unspecified => return Err(MalformedMessage("`source` is not set".to_owned())),
    };
    let (output, cut_off) = (address("output", &header.output)?, header.cut_off);
    Ok(Part { output, size: header.size, source, cut_off })
}

pub(crate) fn from_header(part: &Part) -> proto::Header {
    let (source, computed) = match part.source {
        Source::Blob => (proto::Source::Blob, 0),
        Source::Memo => (proto::Source::Memo, 0),
        Source::Computed(count) => (proto::Source::Computed, count),
    };
    let (output, cut_off) = (from_address(&part.output), part.cut_off);
    proto::Header { output, size: part.size, source: source.into(), computed, cut_off }
}
