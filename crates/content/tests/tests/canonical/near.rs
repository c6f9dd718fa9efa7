//! Values that a careless encoding would mix up.

use std::collections::BTreeMap;

use anabranch_content::Value;

/// Values that are like this one: cut otherwise, wrapped, of another kind with the same bytes, one step off.
pub(crate) fn neighbours(value: &Value) -> Vec<Value> {
    let mut near = vec![
        Value::List(vec![value.clone()]),
        Value::Map(BTreeMap::from([(String::new(), value.clone())])),
        Value::Bytes(value.encode().unwrap().into()),
    ];
    near.extend(match value {
        Value::Null => vec![Value::Bool(false), Value::List(vec![]), Value::Text(String::new())],
        Value::Bool(truth) => vec![Value::Null, Value::Bool(!truth), Value::Int(i64::from(*truth))],
        Value::Int(int) => near_int(*int),
        Value::Float(float) => near_float(*float),
        Value::Text(text) => near_bytes(text.as_bytes()),
        Value::Bytes(bytes) => near_bytes(bytes),
        Value::Address(address) => near_bytes(address.as_bytes()),
        Value::List(list) => near_list(list),
        Value::Map(map) => near_map(map),
    });
    near
}

fn near_int(int: i64) -> Vec<Value> {
    let ints = [int.wrapping_add(1), int.wrapping_neg(), int.swap_bytes()].map(Value::Int);
    let floats = [int as f64, f64::from_bits(int as u64)].map(Value::Float);
    [ints.as_slice(), floats.as_slice(), &[Value::Bytes(int.to_be_bytes().to_vec().into())]].concat()
}

fn near_float(float: f64) -> Vec<Value> {
    let bits = float.to_bits();
    let floats = [-float, float.next_up(), f64::from_bits(bits ^ 1), float.trunc()].map(Value::Float);
    [floats.as_slice(), &[Value::Int(bits as i64), Value::Int(float as i64)]].concat()
}

fn near_bytes(bytes: &[u8]) -> Vec<Value> {
    let mut near = vec![Value::List(bytes.iter().map(|byte| Value::Int(i64::from(*byte))).collect())];
    let shorter = &bytes[..bytes.len().saturating_sub(1)];
    for bytes in [bytes, shorter, &[bytes, &[0]].concat()] {
        near.push(Value::Bytes(bytes.to_vec().into()));
        near.push(Value::Text(String::from_utf8_lossy(bytes).into_owned()));
    }
    near
}

fn near_list(list: &[Value]) -> Vec<Value> {
    let mut near = vec![
        Value::List(list.iter().rev().cloned().collect()),
        Value::List(list.iter().chain([&Value::Null]).cloned().collect()),
        Value::Map(
            list.iter().enumerate().map(|(place, value)| (place.to_string(), value.clone())).collect(),
        ),
    ];
    if let Some((last, before)) = list.split_last() {
        near.push(Value::List(before.to_vec()));
        near.push(Value::List(vec![Value::List(before.to_vec()), last.clone()]));
        let with_last = |last| Value::List(before.iter().cloned().chain([last]).collect());
        near.extend(neighbours(last).into_iter().map(with_last));
        if let Value::List(inner) = last {
            near.push(Value::List(before.iter().chain(inner).cloned().collect()));
        }
    }
    near
}

fn near_map(map: &BTreeMap<String, Value>) -> Vec<Value> {
    let mut near = vec![
        Value::List(map.values().cloned().collect()),
        Value::List(map.iter().flat_map(|(key, value)| [Value::Text(key.clone()), value.clone()]).collect()),
    ];
    if let Some((key, value)) = map.last_key_value() {
        let changed = |change: &dyn Fn(&mut BTreeMap<String, Value>)| {
            let mut map = map.clone();
            change(&mut map);
            Value::Map(map)
        };
        near.push(changed(&|map| drop(map.remove(key))));
        near.push(changed(&|map| drop(map.insert(format!("{key}a"), value.clone()))));
        near.push(changed(&|map| {
            map.remove(key);
            map.insert(format!("a{key}"), value.clone());
        }));
        near.extend(
            neighbours(value)
                .into_iter()
                .map(|near| changed(&|map| drop(map.insert(key.clone(), near.clone())))),
        );
    }
    near
}
