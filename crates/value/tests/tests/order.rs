//! Maps keep the order of insertion.

use anabranch_value::Value;
use proptest::prelude::{prop, proptest};

proptest! {
    #[test]
    fn entries_stay_in_order(names in prop::collection::hash_set("[a-z]{1,8}", 0..20)) {
        let names: Vec<String> = names.into_iter().collect();
        let map = Value::map(names.iter().enumerate().map(|(index, name)| (name.as_str(), Value::Int(index as i64))));
        let back = Value::from_json(&map.to_json()).unwrap();
        for value in [&map, &back] {
            let found: Vec<&str> = value.as_map().unwrap().keys().map(|name| &**name).collect();
            assert_eq!(found, names);
        }
        for (index, name) in names.iter().enumerate() {
            assert_eq!(back.get(name), Some(&Value::Int(index as i64)));
        }
    }
}

#[test]
fn the_last_of_equal_names_counts_in_the_first_place() {
    let value = Value::from_json(r#"{"b":1,"a":2,"b":3}"#).unwrap();
    assert_eq!(value.to_json(), r#"{"b":3,"a":2}"#);
    assert_eq!(value, Value::map([("b", Value::Int(1)), ("a", Value::Int(2)), ("b", Value::Int(3))]));
}

#[test]
fn parts_by_kind() {
    let value = Value::from_json(r#"{"list":[1,2.5],"text":"x","none":null,"yes":true}"#).unwrap();
    let list = value.get("list").unwrap();
    assert_eq!(list.as_list().unwrap()[1].as_number(), Some(2.5));
    assert_eq!(list.as_list().unwrap()[0].as_number(), Some(1.0));
    assert_eq!(value.get("text").unwrap().as_text(), Some("x"));
    assert!(value.get("none").unwrap().is_null());
    assert_eq!(value.get("yes"), Some(&Value::Bool(true)));
    assert_eq!(value.get("missing"), None);
    assert_eq!(list.get("text"), None);
    let kinds: Vec<&str> = value.as_map().unwrap().values().map(Value::kind).collect();
    assert_eq!(kinds, ["a list", "text", "null", "true or false"]);
}

#[test]
fn clones_share_their_parts() {
    let text = Value::from("shared");
    let (Value::Text(one), Value::Text(other)) = (&text, &text.clone()) else { panic!("text") };
    assert!(std::ptr::eq(one.as_ptr(), other.as_ptr()));
}
