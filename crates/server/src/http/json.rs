//! Recipes as JSON; their parameters are read and written by `anabranch_recipe`.

use std::fmt;

use anabranch_content::{Address, Memo};
use anabranch_recipe::{
    AddedRecipe, FunctionId, JsonBudget, Params, ParamsAsJson, ParamsFromJson, Recipe, Status,
};
use anabranch_text::size;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserializer, Serialize};
use serde_json::{Value as Json, json};
use tonic::Code;

use crate::failure::Failure;
use crate::wire::{self, Target};

/// A recipe in the format of a request.
#[derive(Debug)]
pub(crate) struct WrittenRecipe {
    pub(crate) function: FunctionId,
    pub(crate) inputs: Vec<Input>,
    pub(crate) params: Params,
}

/// An input: an address or a name, or the index of an earlier recipe in the same list.
#[derive(Debug)]
pub(crate) enum Input {
    Place(usize),
    Target(Target),
}

/// One recipe, or a list of them.
#[derive(Debug)]
pub(crate) enum OneOrMany {
    Many(Vec<WrittenRecipe>),
    One(WrittenRecipe),
}

/// Parses one recipe or a list, using at most `memory_most` bytes of memory. Errors name the position in the text.
pub(crate) fn read(text: &[u8], memory_most: usize) -> Result<OneOrMany, Failure> {
    let budget = JsonBudget::new(memory_most);
    let mut reader = serde_json::Deserializer::from_slice(text);
    let read = OneOrManySeed(&budget).deserialize(&mut reader).and_then(|read| reader.end().map(|()| read));
    read.map_err(|error| match budget.is_exceeded() {
        true => Failure::new(
            Code::OutOfRange,
            format!(
                "the body has more values than fit into {} of memory; add the recipes in several calls",
                size::format(memory_most as u64)
            ),
        ),
        false => Failure::new(
            Code::InvalidArgument,
            format!("the body is neither a recipe nor a list of recipes: {error}"),
        ),
    })
}

#[derive(Clone, Copy)]
struct OneOrManySeed<'a>(&'a JsonBudget);

impl<'de> DeserializeSeed<'de> for OneOrManySeed<'_> {
    type Value = OneOrMany;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<OneOrMany, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for OneOrManySeed<'_> {
    type Value = OneOrMany;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a recipe or a list of recipes")
    }

    fn visit_map<A: MapAccess<'de>>(self, json: A) -> Result<OneOrMany, A::Error> {
        WrittenSeed(self.0).visit_map(json).map(OneOrMany::One)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut json: A) -> Result<OneOrMany, A::Error> {
        let mut list = Vec::new();
        while let Some(written) = json.next_element_seed(WrittenSeed(self.0))? {
            list.push(written);
        }
        Ok(OneOrMany::Many(list))
    }
}

#[derive(Clone, Copy)]
struct WrittenSeed<'a>(&'a JsonBudget);

impl<'de> DeserializeSeed<'de> for WrittenSeed<'_> {
    type Value = WrittenRecipe;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<WrittenRecipe, D::Error> {
        json.deserialize_map(self)
    }
}

/// While a list grows, it may have twice the memory that it needs, beside the old half.
const GROWTH: usize = 3;

impl<'de> Visitor<'de> for WrittenSeed<'_> {
    type Value = WrittenRecipe;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a recipe")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut json: A) -> Result<WrittenRecipe, A::Error> {
        self.0.take(GROWTH * size_of::<WrittenRecipe>())?;
        let (mut function, mut inputs, mut params) = (None, None, None);
        while let Some(key) = json.next_key::<String>()? {
            let is_new = match &*key {
                "function" => {
                    let text: String = json.next_value()?;
                    self.0.take(text.len())?;
                    let parsed = text.parse();
                    let malformed =
                        |malformed: anabranch_recipe::MalformedRecipe| A::Error::custom(malformed.0);
                    function.replace(parsed.map_err(malformed)?).is_none()
                }
                "inputs" => inputs.replace(json.next_value_seed(InputsSeed(self.0))?).is_none(),
                "params" => params.replace(json.next_value_seed(ParamsFromJson(self.0))?).is_none(),
                other => {
                    return Err(A::Error::unknown_field(other, &["function", "inputs", "params"]));
                }
            };
            if !is_new {
                return Err(A::Error::custom(format!("`{key}` is there twice")));
            }
        }
        let function = function.ok_or_else(|| A::Error::missing_field("function"))?;
        Ok(WrittenRecipe { function, inputs: inputs.unwrap_or_default(), params: params.unwrap_or_default() })
    }
}

#[derive(Clone, Copy)]
struct InputsSeed<'a>(&'a JsonBudget);

impl<'de> DeserializeSeed<'de> for InputsSeed<'_> {
    type Value = Vec<Input>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Vec<Input>, D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for InputsSeed<'_> {
    type Value = Vec<Input>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a list of inputs")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut json: A) -> Result<Vec<Input>, A::Error> {
        let mut inputs = Vec::new();
        while let Some(input) = json.next_element_seed(InputSeed(self.0))? {
            inputs.push(input);
        }
        Ok(inputs)
    }
}

#[derive(Clone, Copy)]
struct InputSeed<'a>(&'a JsonBudget);

impl<'de> DeserializeSeed<'de> for InputSeed<'_> {
    type Value = Input;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Input, D::Error> {
        self.0.take(GROWTH * size_of::<Input>())?;
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for InputSeed<'_> {
    type Value = Input;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an input: an address, a name, or the place of an earlier recipe of the list")
    }

    fn visit_u64<E: serde::de::Error>(self, place: u64) -> Result<Input, E> {
        // An index that is too large is past the end of every list.
        Ok(Input::Place(usize::try_from(place).unwrap_or(usize::MAX)))
    }

    /// In JSON, `1.0` is the number `1`.
    fn visit_f64<E: serde::de::Error>(self, place: f64) -> Result<Input, E> {
        match place >= 0.0 && place.fract() == 0.0 {
            true => Ok(Input::Place(place as usize)),
            false => Err(E::invalid_type(Unexpected::Float(place), &self)),
        }
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Input, E> {
        let target = Target::from(text);
        if let Target::Name(name) = &target {
            self.0.take(name.len())?;
        }
        Ok(Input::Target(target))
    }
}

/// A recipe in a response. It is serialized directly from the parameters, because a JSON tree would take much more
/// memory.
#[derive(Debug, Serialize)]
pub(super) struct DescribedRecipe<'a> {
    function: String,
    inputs: Vec<String>,
    params: ParamsAsJson<'a>,
}

impl<'a> From<&'a Recipe> for DescribedRecipe<'a> {
    fn from(recipe: &'a Recipe) -> DescribedRecipe<'a> {
        DescribedRecipe {
            function: recipe.function.to_string(),
            inputs: texts(&recipe.inputs),
            params: ParamsAsJson(&recipe.params),
        }
    }
}

pub(super) fn memo(memo: &Memo) -> Json {
    json!({
        "output": memo.output.to_string(),
        "size": memo.size,
        "cpu_micros": memo.cost.cpu.as_micros() as u64,
        "at": memo.at.0,
    })
}

pub(super) fn added(added: &AddedRecipe) -> Json {
    json!({
        "address": added.address.to_string(),
        "new": added.new,
        "dangling": texts(&added.dangling),
    })
}

fn texts(addresses: &[Address]) -> Vec<String> {
    addresses.iter().map(Address::to_string).collect()
}

pub(super) fn status(status: &Status) -> Json {
    let health = &status.store.health;
    let status = wire::from_status(status);
    json!({
        "blobs": status.blobs,
        "blob_bytes": status.blob_bytes,
        "recipes": status.recipes,
        "memos": status.memos,
        "pins": status.pins,
        "names": status.names,
        "used_bytes": status.used_bytes,
        "index_bytes": status.index_bytes,
        "cache_entries": status.cache_entries,
        "cache_bytes": status.cache_bytes,
        "cache_hits": status.cache_hits,
        "cache_misses": status.cache_misses,
        "functions": status.functions,
        "gets": status.gets,
        "hits": status.hits,
        "computed": status.computed,
        "failed": status.failed,
        "computing": status.computing,
        "health": {
            "fine": health.is_fine(),
            "lost": health.lost,
            "damaged": health.damaged,
            "diverged": health.diverged,
            "failures": health.failures,
            "index_damaged": health.index_damaged,
            "index_rebuilt": health.index_rebuilt,
            "over_quota": health.over_quota,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocated::peak_of;

    #[test]
    fn memory_is_bounded_by_the_budget() {
        let list = |one: &str, count: usize| format!("[{}]", vec![one; count].join(","));
        let tree = |leaf: &str| {
            let values = list(leaf, 100_000);
            format!(r#"{{"function":"template/1","params":{{"values":{{"a":{values}}}}}}}"#)
        };
        let inputs = format!(r#"{{"function":"a/1","inputs":{}}}"#, list("0", 100_000));
        for text in [tree(r#"{"":0}"#), tree("[]"), tree("0"), inputs, list(r#"{"function":"a/1"}"#, 100_000)]
        {
            let (read, peak) = peak_of(|| read(text.as_bytes(), 1 << 20));
            let failure = read.unwrap_err();
            assert_eq!(failure.code, Code::OutOfRange, "{text:.60}");
            assert!(failure.message.contains("1 MiB of memory; add the recipes in several"), "{failure}");
            assert!(peak < 1 << 20, "{peak} bytes for {text:.60}");
        }
    }

    /// Without the limit, this body of ten megabytes takes three gigabytes.
    #[test]
    fn a_hostile_body_is_refused_cheaply() {
        let values = vec![r#"{"":0}"#; 10_000_000 / 7].join(",");
        let body =
            format!(r#"{{"function":"template/1","params":{{"template":"x","values":{{"a":[{values}]}}}}}}"#);
        let memory_most = crate::Settings::default().body_memory_most;
        let (read, peak) = peak_of(|| read(body.as_bytes(), memory_most));
        assert_eq!(read.unwrap_err().code, Code::OutOfRange);
        assert!(peak + (body.len() as i64) < 64 << 20, "{peak}");
    }

    #[test]
    fn wrong_texts_say_where() {
        for (text, why) in [
            ("", "EOF"),
            ("1", "expected a recipe or a list of recipes"),
            ("{}", "missing field `function`"),
            (r#"{"function":"concat"}"#, "at line 1 column"),
            (r#"{"function":"a/1","input":[]}"#, "unknown field `input`"),
            (r#"{"function":"a/1","inputs":[-1]}"#, "an earlier recipe of the list at line 1"),
            (r#"{"function":"a/1","inputs":[[]]}"#, "expected an input"),
            (r#"{"function":"a/1","function":"a/1"}"#, "`function` is there twice"),
            (r#"[{"function":"a/1","params":{"x":null}}]"#, "parameter `x`: null is not a value"),
            (r#"{"function":"a/1"} 1"#, "trailing characters"),
        ] {
            let failure = read(text.as_bytes(), 1 << 20).unwrap_err();
            assert_eq!(failure.code, Code::InvalidArgument, "{text}");
            assert!(failure.message.contains(why), "{text}: {failure}");
        }
    }
}
