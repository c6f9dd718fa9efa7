//! Captures by the first digits of their addresses.

use anabranch_content::{Address, Store};

use super::error::Error;
use super::sets::CAPTURE;

/// Derivations looked up at a time.
const PAGE: usize = 100;

/// The captures whose addresses begin with these hex digits, in order, at most `most`.
pub async fn captures_with_prefix(store: &Store, digits: &str, most: usize) -> Result<Vec<Address>, Error> {
    let digits = digits.to_ascii_lowercase();
    let mut found = Vec::new();
    let mut after = before(&digits);
    loop {
        let page = store.derivations(after, PAGE).await?;
        let Some(last) = page.last().copied() else { return Ok(found) };
        for address in page {
            let text = address.to_string();
            if !text.starts_with(&digits) {
                // The addresses are in order, so no further one matches.
                if text.as_str() > digits.as_str() {
                    return Ok(found);
                }
                continue;
            }
            let described = store.derivation(&address).await?;
            if described.is_some_and(|described| described.context == CAPTURE.0) {
                found.push(address);
            }
            if found.len() == most {
                return Ok(found);
            }
        }
        after = Some(last);
    }
}

/// The address just before all that begin with these digits; none if they begin with the first one.
fn before(digits: &str) -> Option<Address> {
    let first: Address = format!("{digits:0<64}").parse().ok()?;
    let mut bytes = *first.as_bytes();
    for byte in bytes.iter_mut().rev() {
        let (less, borrowed) = byte.overflowing_sub(1);
        *byte = less;
        if !borrowed {
            return Some(Address::from_bytes(bytes));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use anabranch_content::{Config, Context, Store, Value};

    use super::{CAPTURE, captures_with_prefix};

    #[tokio::test]
    async fn captures_are_found_by_any_first_digits_and_nothing_else_is() {
        let store = Store::in_memory(Config::default()).unwrap();
        let mut all = Vec::new();
        for number in 0..60 {
            let bytes = Value::Text(number.to_string()).encode().unwrap();
            all.push(store.put_derivation(CAPTURE, bytes.clone()).await.unwrap());
            store.put_derivation(Context("something else"), bytes).await.unwrap();
        }
        all.sort();
        for digits in ["0", "7", "f", "F", "00", "ff", "a", "3c", ""] {
            let wanted = all.iter().filter(|address| address.to_string().starts_with(&digits.to_lowercase()));
            let wanted: Vec<_> = wanted.copied().collect();
            assert_eq!(captures_with_prefix(&store, digits, 100).await.unwrap(), wanted, "{digits}");
            let first: Vec<_> = wanted.into_iter().take(2).collect();
            assert_eq!(captures_with_prefix(&store, digits, 2).await.unwrap(), first, "{digits}");
        }
        let whole = all[7].to_string();
        assert_eq!(captures_with_prefix(&store, &whole, 2).await.unwrap(), [all[7]]);
    }
}
