//! Strings are looked at once per dictionary entry, and then by code.

use anabranch_engine::Check;
use anabranch_rows::Dictionary;

use super::Error;
use super::ast::Unary;

/// The number of entries are tested between two looks at whether to stop.
const ENTRIES_PER_CHECK: usize = 256;

/// One bit per code: set if its string passes.
#[derive(Debug)]
pub(super) struct Table(Box<[u64]>);

impl Table {
    /// Tests every entry once.
    pub(super) fn new(
        dictionary: &Dictionary,
        check: &Check<'_>,
        mut passes: impl FnMut(&str) -> bool,
    ) -> Result<Table, Error> {
        let mut words = vec![0u64; dictionary.len().div_ceil(64)];
        for (code, entry) in dictionary.iter().enumerate() {
            if code > 0 && code % ENTRIES_PER_CHECK == 0 && check.should_stop() {
                return Err(Error::Stopped);
            }
            words[code / 64] |= u64::from(passes(entry)) << (code % 64);
        }
        Ok(Table(words.into()))
    }

    /// True if a code's string passes. Rows that are null have codes that mean nothing.
    #[inline(always)]
    pub(super) fn has(&self, code: i32) -> bool {
        let code = code as usize;
        self.0.get(code / 64).is_some_and(|word| word >> (code % 64) & 1 == 1)
    }
}

/// A function of each entry, by code.
pub(super) fn ints(
    dictionary: &Dictionary,
    check: &Check<'_>,
    function: impl Fn(&str) -> i64,
) -> Result<Box<[i64]>, Error> {
    let mut values = Vec::with_capacity(dictionary.len());
    for (code, entry) in dictionary.iter().enumerate() {
        if code > 0 && code % ENTRIES_PER_CHECK == 0 && check.should_stop() {
            return Err(Error::Stopped);
        }
        values.push(function(entry));
    }
    Ok(values.into())
}

/// A dictionary of the same codes in another case.
pub(super) fn in_case(op: Unary, dictionary: &Dictionary) -> Dictionary {
    match op {
        Unary::Lower => Dictionary::new(dictionary.iter().map(str::to_lowercase)),
        Unary::Upper => Dictionary::new(dictionary.iter().map(str::to_uppercase)),
        _ => unreachable!("a function of numbers"),
    }
}

/// One dictionary for the codes of two operands: the entries of the second come after those of the first.
#[derive(Clone, Debug)]
pub(super) struct MergedDictionary {
    pub(super) dictionary: Dictionary,
    /// The number that is added to the second's codes.
    pub(super) offset: i32,
}

impl MergedDictionary {
    pub(super) fn new(first: &Dictionary, second: &Dictionary) -> MergedDictionary {
        if first.ptr_eq(second) {
            return MergedDictionary { dictionary: first.clone(), offset: 0 };
        }
        let offset = i32::try_from(first.len()).expect("a dictionary has fewer than 2^31 entries");
        MergedDictionary { dictionary: Dictionary::new(first.iter().chain(second.iter())), offset }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_tested_once() {
        let dictionary = Dictionary::new((0..1000).map(|entry| entry.to_string()));
        let mut tests = 0;
        let table = Table::new(&dictionary, &Check::never(), |entry| {
            tests += 1;
            entry.ends_with('7')
        });
        let table = table.unwrap();
        assert_eq!(tests, 1000);
        let passing = (0..1000).filter(|code| table.has(*code)).count();
        assert_eq!(passing, 100);
        assert!(!table.has(-1) && !table.has(1000) && !table.has(i32::MAX), "codes of null rows");
    }

    #[test]
    fn the_same_dictionary_is_not_merged_with_itself() {
        let dictionary = Dictionary::new(["a", "b"]);
        let merged = MergedDictionary::new(&dictionary, &dictionary.clone());
        assert!(merged.dictionary.ptr_eq(&dictionary));
        let merged = MergedDictionary::new(&dictionary, &Dictionary::new(["b", "c"]));
        assert_eq!(merged.dictionary, Dictionary::new(["a", "b", "b", "c"]));
        assert_eq!(merged.offset, 2);
    }
}
