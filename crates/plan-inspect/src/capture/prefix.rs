//! Captures by the first digits of their addresses.

use anabranch_content::{Address, Store};

use super::error::Error;
use super::sets::CAPTURE;

/// Derivations looked up at a time.
const PAGE: usize = 100;

/// The captures whose addresses begin with these hex digits, in order, at most so many.
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
                // They come in order: behind the digits there is none.
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
