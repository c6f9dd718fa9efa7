//! Pages: entries that are stored together as one blob, which costs less than a blob each.

use anabranch_content::{Address, Memo};
use bytes::Bytes;

use super::tail::Entries;

/// A page is full at this many bytes.
const PAGE_BYTES: usize = 32 << 10;

/// A page with the keys of its entries.
pub(super) struct Page {
    pub(super) bytes: Bytes,
    pub(super) keys: Vec<Address>,
}

/// Copies the entries from a position on to a page, without those that are `known`, and advances the position. `None`
/// at the end.
pub(super) fn next_page(entries: &Entries, known: &[Option<Memo>], place: &mut usize) -> Option<Page> {
    let (mut bytes, mut keys) = (Vec::new(), Vec::new());
    while let Some((key, entry)) = entries.get_index(*place) {
        if !keys.is_empty() && bytes.len() + entry.len() > PAGE_BYTES {
            break;
        }
        if known.get(*place).is_none_or(Option::is_none) {
            bytes.extend(key.as_bytes());
            bytes.extend((entry.len() as u32).to_le_bytes());
            bytes.extend(&**entry);
            keys.push(*key);
        }
        *place += 1;
    }
    (!keys.is_empty()).then(|| Page { bytes: bytes.into(), keys })
}

/// The entry under a key on a page.
pub(super) fn find(page: &Bytes, key: &Address) -> Option<Bytes> {
    let mut rest = &**page;
    while let Some((head, tail)) = rest.split_at_checked(36) {
        let (found, length) = head.split_at(32);
        let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
        let (entry, next) = tail.split_at_checked(length)?;
        if found == key.as_bytes() {
            return Some(page.slice_ref(entry));
        }
        rest = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_on_one_page() {
        let entries: Entries = (0..3000_u32)
            .map(|number| (Address::of(&number.to_le_bytes()), Bytes::from(vec![7; number as usize % 100])))
            .chain([(Address::of(b"large"), Bytes::from(vec![1; 2 * PAGE_BYTES]))])
            .collect();
        let mut place = 0;
        let pages: Vec<Page> = std::iter::from_fn(|| next_page(&entries, &[], &mut place)).collect();
        assert_eq!(pages.iter().map(|page| page.keys.len()).sum::<usize>(), entries.len());
        for page in &pages {
            assert!(page.bytes.len() <= PAGE_BYTES + 36 * page.keys.len() || page.keys.len() == 1);
            for key in &page.keys {
                assert_eq!(find(&page.bytes, key).as_ref(), entries.get(key));
            }
            assert_eq!(find(&page.bytes, &Address::of(b"none")), None);
        }
        assert_eq!(find(&Bytes::from(vec![0; 40]), &Address::of(b"none")), None);
        assert_eq!(find(&Bytes::from(vec![255; 400]), &Address::of(b"none")), None);
    }
}
