//! Figures of a stream of values in bounded memory.

mod distinct;
mod frequent;
mod numbers;

pub(crate) use distinct::Distinct;
pub(crate) use frequent::Frequent;
pub(crate) use numbers::{Numbers, WeightedNumbers};

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use anabranch_value::Value;

/// A number that equal values share, the same in every run.
pub(crate) fn digest(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    add(value, &mut hasher);
    hasher.finish()
}

fn add(value: &Value, hasher: &mut DefaultHasher) {
    match value {
        Value::Null => 0_u8.hash(hasher),
        Value::Bool(truth) => (1_u8, truth).hash(hasher),
        Value::Int(int) => (2_u8, int).hash(hasher),
        Value::Float(float) => (3_u8, float.to_bits()).hash(hasher),
        Value::Text(text) => (4_u8, &**text).hash(hasher),
        Value::List(items) => {
            (5_u8, items.len()).hash(hasher);
            items.iter().for_each(|item| add(item, hasher));
        }
        Value::Map(map) => {
            (6_u8, map.len()).hash(hasher);
            for (name, value) in map.iter() {
                (**name).hash(hasher);
                add(value, hasher);
            }
        }
    }
}
