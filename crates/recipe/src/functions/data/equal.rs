//! Equal JSON values, in which 1 and 1.0 are equal. Every look at a value counts as work of the call.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use serde_json::{Number, Value as Json};

use crate::budget::CallBudget;
use crate::function::Fault;

/// The steps of work to look at a value.
const STEPS: u64 = 8;

/// The memory of an element that is looked for among others, in bytes.
const HASHED: u64 = 150;

/// The first element that is equal to one before it.
pub(super) fn twice<'a>(values: &'a [Json], budget: &CallBudget) -> Result<Option<&'a Json>, Fault> {
    let claimed = values.len() as u64 * HASHED;
    budget.claim(claimed)?;
    let random = RandomState::new();
    let mut met: HashMap<u64, Vec<&Json>> = HashMap::new();
    for value in values {
        let mut hasher = random.build_hasher();
        hash(value, &mut hasher, budget)?;
        let alike = met.entry(hasher.finish()).or_insert_with(|| Vec::with_capacity(1));
        for other in &*alike {
            if is_same(other, value, budget)? {
                budget.release(claimed);
                return Ok(Some(value));
            }
        }
        alike.push(value);
    }
    budget.release(claimed);
    Ok(None)
}

/// Whether two values are equal.
pub(super) fn is_same(one: &Json, other: &Json, budget: &CallBudget) -> Result<bool, Fault> {
    budget.work(STEPS)?;
    match (one, other) {
        (Json::Number(one), Json::Number(other)) => Ok(compare_numbers(one, other) == Ordering::Equal),
        (Json::Array(one), Json::Array(other)) if one.len() == other.len() => {
            for (one, other) in one.iter().zip(other) {
                if !is_same(one, other, budget)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Json::Object(one), Json::Object(other)) if one.len() == other.len() => {
            for ((key, one), (other_key, other)) in one.iter().zip(other) {
                if key != other_key || !is_same(one, other, budget)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Json::Array(_) | Json::Object(_), _) => Ok(false),
        _ => Ok(one == other),
    }
}

/// Hashes a value so that equal values have equal hashes.
fn hash(value: &Json, hasher: &mut impl Hasher, budget: &CallBudget) -> Result<(), Fault> {
    budget.work(STEPS)?;
    std::mem::discriminant(value).hash(hasher);
    match value {
        Json::Null => {}
        Json::Bool(value) => value.hash(hasher),
        // Adding 0.0 makes zero and minus zero equal.
        Json::Number(number) => (number.as_f64().unwrap_or(f64::NAN) + 0.0).to_bits().hash(hasher),
        Json::String(text) => text.hash(hasher),
        Json::Array(values) => {
            for value in values {
                hash(value, hasher, budget)?;
            }
        }
        Json::Object(entries) => {
            for (key, value) in entries {
                key.hash(hasher);
                hash(value, hasher, budget)?;
            }
        }
    }
    Ok(())
}

/// The order of two numbers.
pub(super) fn compare_numbers(one: &Number, other: &Number) -> Ordering {
    match (one.as_i128(), other.as_i128()) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => {
            let [one, other] = [one, other].map(|number| number.as_f64().unwrap_or(f64::NAN));
            // Adding 0.0 makes zero and minus zero equal.
            (one + 0.0).total_cmp(&(other + 0.0))
        }
    }
}
