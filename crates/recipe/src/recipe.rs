//! Recipes and their addresses.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use anabranch_content::{Address, Context, Value, tag};

/// The context in which addresses of recipes are derived.
pub const CONTEXT: Context<'static> = Context("anabranch 2026-11 recipe");

/// The parameters of a call, by name. Null and addresses are not allowed as values: the inputs are the only addresses
/// that a recipe reads.
pub type Params = BTreeMap<String, Value>;

/// The approximate memory of a map in bytes: its first node, and each entry.
const MAP: u64 = 800;
const ENTRY: u64 = 160;

/// The approximate memory of parameters in bytes.
pub(crate) fn memory_of(params: &Params) -> u64 {
    let nodes = if params.is_empty() { 0 } else { MAP + params.len() as u64 * ENTRY };
    nodes + params.iter().map(|(name, value)| name.len() as u64 + memory_behind(value)).sum::<u64>()
}

/// The memory that a value points to.
fn memory_behind(value: &Value) -> u64 {
    match value {
        Value::Text(text) => text.capacity() as u64,
        Value::Bytes(bytes) => bytes.len() as u64,
        Value::List(values) => {
            let elements = (values.capacity() * size_of::<Value>()) as u64;
            elements + values.iter().map(memory_behind).sum::<u64>()
        }
        Value::Map(entries) => memory_of(entries),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Address(_) => 0,
    }
}

/// A function's name and version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId {
    /// Its name.
    pub name: String,
    /// Its version. Different versions may return different bytes.
    pub version: String,
}

impl FunctionId {
    /// The id with this name and version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> FunctionId {
        FunctionId { name: name.into(), version: version.into() }
    }
}

impl fmt::Display for FunctionId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.name, self.version)
    }
}

impl FromStr for FunctionId {
    type Err = MalformedRecipe;

    /// Parses `name/version`.
    fn from_str(text: &str) -> Result<FunctionId, MalformedRecipe> {
        match text.split_once('/') {
            Some((name, version)) => {
                let id = FunctionId::new(name, version);
                id.check()?;
                Ok(id)
            }
            None => Err(MalformedRecipe(format!("{text:?} is not a function; write `name/version`"))),
        }
    }
}

/// The reason why something is not a recipe.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct MalformedRecipe(pub String);

/// A computation: a function, its inputs and its parameters. Equal recipes have equal addresses.
///
/// ```
/// # use anabranch_recipe::{Address, FunctionId, Recipe};
/// let one = Recipe::new(FunctionId::new("concat", "1.0.0"), vec![Address::of(b"a"), Address::of(b"b")]);
/// let other = one.clone().with("separator", ", ");
/// assert_ne!(one.address()?, other.address()?);
/// assert_eq!(Recipe::decode(&one.encode()?)?, one);
/// # Ok::<(), anabranch_recipe::MalformedRecipe>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recipe {
    /// The function.
    pub function: FunctionId,
    /// The blobs and recipes that it reads, in order. Duplicates are allowed.
    pub inputs: Vec<Address>,
    /// Its parameters.
    pub params: Params,
}

impl Recipe {
    /// A recipe without parameters.
    pub fn new(function: FunctionId, inputs: Vec<Address>) -> Recipe {
        Recipe { function, inputs, params: Params::new() }
    }

    /// The same recipe with one more parameter: text, a number, a truth value, bytes, a list or a map.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Recipe {
        self.params.insert(name.to_owned(), value.into());
        self
    }

    /// The recipe's address.
    pub fn address(&self) -> Result<Address, MalformedRecipe> {
        Ok(Address::derive(CONTEXT, &self.encode()?))
    }

    /// The canonical encoding of the recipe.
    pub fn encode(&self) -> Result<Vec<u8>, MalformedRecipe> {
        encode(&self.function, self.inputs.iter(), &self.params)
    }

    fn check(&self) -> Result<(), MalformedRecipe> {
        self.function.check()?;
        self.params.iter().try_for_each(|(name, value)| check_param(name, value))
    }

    /// Decodes a recipe. Only the canonical encoding, as made by [`Recipe::encode`], is accepted.
    pub fn decode(encoding: &[u8]) -> Result<Recipe, MalformedRecipe> {
        let broken = || MalformedRecipe("not the encoding of a recipe".to_owned());
        let value = Value::decode(encoding).map_err(|_| broken())?;
        let Value::List(parts) = value else { return Err(broken()) };
        let Ok([Value::Text(name), Value::Text(version), Value::List(inputs), Value::Map(params)]) =
            <[Value; 4]>::try_from(parts)
        else {
            return Err(broken());
        };
        let address = |input: Value| match input {
            Value::Address(address) => Ok(address),
            _ => Err(broken()),
        };
        let inputs = inputs.into_iter().map(address).collect::<Result<_, _>>()?;
        let recipe = Recipe { function: FunctionId { name, version }, inputs, params };
        recipe.check()?;
        Ok(recipe)
    }
}

/// The canonical encoding of a recipe with these parts. It is written without a tree of values for speed: every added
/// recipe is encoded, and so is every recipe whose inputs are computed.
pub(crate) fn encode<'a>(
    function: &FunctionId,
    inputs: impl ExactSizeIterator<Item = &'a Address>,
    params: &Params,
) -> Result<Vec<u8>, MalformedRecipe> {
    function.check()?;
    params.iter().try_for_each(|(name, value)| check_param(name, value))?;
    encode_checked(function, inputs, params)
}

/// The same, for a function and parameters that come from a recipe.
pub(crate) fn encode_checked<'a>(
    function: &FunctionId,
    inputs: impl ExactSizeIterator<Item = &'a Address>,
    params: &Params,
) -> Result<Vec<u8>, MalformedRecipe> {
    let texts = function.name.len() + function.version.len();
    let mut out = Vec::with_capacity(FRONT.len() + texts + 36 + inputs.len() * ADDRESS_LEN);
    out.extend_from_slice(FRONT);
    for text in [&function.name, &function.version] {
        out.push(tag::TEXT);
        out.extend_from_slice(&(text.len() as u64).to_be_bytes());
        out.extend_from_slice(text.as_bytes());
    }
    out.push(tag::LIST);
    out.extend_from_slice(&(inputs.len() as u64).to_be_bytes());
    for input in inputs {
        out.push(tag::ADDRESS);
        out.extend_from_slice(input.as_bytes());
    }
    if params.is_empty() {
        out.extend_from_slice(NO_PARAMS);
        return Ok(out);
    }
    // The parameters are encoded inside a list, as in the recipe, so that the limit on nesting is the same.
    let listed = Value::List(vec![Value::Map(params.clone())]).encode();
    let listed = listed.map_err(|_| MalformedRecipe(TOO_DEEP.to_owned()))?;
    out.extend_from_slice(&listed[FRONT.len()..]);
    Ok(out)
}

/// The function and parameters of an encoded recipe. The inputs are known from elsewhere.
pub(crate) struct SkimmedRecipe<'a> {
    pub name: &'a str,
    pub version: &'a str,
    pub params: Params,
}

/// Decodes a canonical encoding with `inputs` addresses, without reading the addresses themselves. It accepts the same
/// encodings as [`Recipe::decode`].
pub(crate) fn skim(encoding: &[u8], inputs: usize) -> Option<SkimmedRecipe<'_>> {
    let mut rest = encoding.strip_prefix(FRONT)?;
    let name = skim_text(&mut rest)?;
    let version = skim_text(&mut rest)?;
    check_id(name, version).ok()?;
    let (count, list) = rest.strip_prefix(&[tag::LIST])?.split_first_chunk::<8>()?;
    if u64::from_be_bytes(*count) != inputs as u64 {
        return None;
    }
    let (inputs, params) = list.split_at_checked(inputs.checked_mul(ADDRESS_LEN)?)?;
    if inputs.chunks_exact(ADDRESS_LEN).any(|input| input[0] != tag::ADDRESS) {
        return None;
    }
    if params == NO_PARAMS {
        return Some(SkimmedRecipe { name, version, params: Params::new() });
    }
    match Value::decode(&[&[Value::ENCODING_VERSION], params].concat()) {
        Ok(Value::Map(params)) => {
            params.iter().try_for_each(|(name, value)| check_param(name, value)).ok()?;
            Some(SkimmedRecipe { name, version, params })
        }
        _ => None,
    }
}

fn skim_text<'a>(rest: &mut &'a [u8]) -> Option<&'a str> {
    let (len, behind) = rest.strip_prefix(&[tag::TEXT])?.split_first_chunk::<8>()?;
    let (text, behind) = behind.split_at_checked(usize::try_from(u64::from_be_bytes(*len)).ok()?)?;
    *rest = behind;
    str::from_utf8(text).ok()
}

/// The length of an encoded address, with its tag.
const ADDRESS_LEN: usize = 33;

/// The beginning of an encoded recipe: the version, and a list of four.
const FRONT: &[u8] = &[Value::ENCODING_VERSION, tag::LIST, 0, 0, 0, 0, 0, 0, 0, 4];

/// An empty map.
const NO_PARAMS: &[u8] = &[tag::MAP, 0, 0, 0, 0, 0, 0, 0, 0];

const TOO_DEEP: &str = "the parameters are nested too deep; 60 lists and maps may be around a value";

/// The maximum length of a function's name or version, in bytes.
const NAME_MOST: usize = 255;

impl FunctionId {
    /// Checks that the id is valid.
    pub fn check(&self) -> Result<(), MalformedRecipe> {
        check_id(&self.name, &self.version)
    }
}

fn check_id(name: &str, version: &str) -> Result<(), MalformedRecipe> {
    for (what, text) in [("name", name), ("version", version)] {
        // Nearly all are plain ASCII.
        let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        if text.is_empty() || text.len() > NAME_MOST || (!is_plain && text.chars().any(char::is_control)) {
            return Err(MalformedRecipe(format!(
                "{text:?} is not a function's {what}: 1 to {NAME_MOST} bytes without control characters"
            )));
        }
    }
    match name.contains('/') {
        true => Err(MalformedRecipe(format!("{name:?} is not a function's name: it has a `/`"))),
        false => Ok(()),
    }
}

fn check_param(name: &str, value: &Value) -> Result<(), MalformedRecipe> {
    match value {
        Value::Null => Err(MalformedRecipe(format!("parameter `{name}` is null; leave it out instead"))),
        Value::Address(_) => {
            Err(MalformedRecipe(format!("parameter `{name}` is an address; make it an input")))
        }
        Value::List(values) => values.iter().try_for_each(|value| check_param(name, value)),
        Value::Map(values) => values.values().try_for_each(|value| check_param(name, value)),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Text(_) | Value::Bytes(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{FunctionId, Recipe, skim};
    use anabranch_content::Address;

    #[test]
    fn skimming_finds_what_decoding_does() {
        for inputs in 0..3 {
            let plain = Recipe::new(FunctionId::new("name", "2"), vec![Address::of(b"x"); inputs]);
            let full = plain.clone().with("text", "words").with("number", 7);
            for recipe in [plain, full] {
                let encoding = recipe.encode().expect("it is a recipe");
                let skimmed = skim(&encoding, inputs).expect("it was encoded");
                let id = FunctionId::new(skimmed.name, skimmed.version);
                assert_eq!((id, skimmed.params), (recipe.function, recipe.params));
                assert!(skim(&encoding[..encoding.len() - 1], inputs).is_none());
            }
        }
    }
}
