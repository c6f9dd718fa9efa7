//! Regexes: compiled at load, or when a request first brings the pattern.

use std::sync::{Arc, Mutex};

use regex::{Regex, RegexBuilder};

use super::Error;
use crate::value::{Scalar, Values};

/// The largest compiled regex, in bytes, so that a request cannot ask for gigabytes.
const SIZE_LIMIT: usize = 1 << 20;
/// How many patterns of requests are kept.
const KEPT: usize = 16;

/// A regex of a predicate.
#[derive(Debug)]
pub(super) struct Matcher {
    pub(super) source: Source,
    pub(super) ignore_case: bool,
    compiled: Compiled,
}

/// Where the pattern comes from.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Source {
    /// From the plan.
    Literal(String),
    /// From the parameter at this place, with this name.
    Param(usize, String),
}

#[derive(Debug)]
enum Compiled {
    Once(Arc<Regex>),
    /// The latest first.
    Latest(Mutex<Vec<(Arc<str>, Arc<Regex>)>>),
}

impl Matcher {
    pub(super) fn new(source: Source, ignore_case: bool) -> Result<Matcher, regex::Error> {
        let compiled = match &source {
            Source::Literal(pattern) => Compiled::Once(Arc::new(compile(pattern, ignore_case)?)),
            Source::Param(..) => Compiled::Latest(Mutex::default()),
        };
        Ok(Matcher { source, ignore_case, compiled })
    }

    /// The regex for a request with these parameters; `None` if it takes parameters and there are none yet.
    pub(super) fn regex(&self, params: Option<&Values>) -> Option<Result<Arc<Regex>, Error>> {
        let kept = match &self.compiled {
            Compiled::Once(regex) => return Some(Ok(Arc::clone(regex))),
            Compiled::Latest(kept) => kept,
        };
        let Source::Param(index, param) = &self.source else { unreachable!("literals are compiled at load") };
        Some(match &params?[*index] {
            Some(Scalar::Text(pattern)) => self.latest(kept, pattern, param),
            _ => Err(Error::NoPattern { param: param.clone() }),
        })
    }

    fn latest(
        &self,
        kept: &Mutex<Vec<(Arc<str>, Arc<Regex>)>>,
        pattern: &Arc<str>,
        param: &str,
    ) -> Result<Arc<Regex>, Error> {
        let lock = || kept.lock().expect("nothing panics while it is held");
        {
            let mut kept = lock();
            if let Some(at) = kept.iter().position(|(other, _)| other == pattern) {
                kept[..=at].rotate_right(1);
                return Ok(Arc::clone(&kept[0].1));
            }
        }
        let regex = compile(pattern, self.ignore_case)
            .map_err(|cause| Error::BadPattern { param: param.to_owned(), cause })?;
        let regex = Arc::new(regex);
        let mut kept = lock();
        kept.truncate(KEPT - 1);
        kept.insert(0, (Arc::clone(pattern), Arc::clone(&regex)));
        Ok(regex)
    }
}

fn compile(pattern: &str, ignore_case: bool) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).case_insensitive(ignore_case).size_limit(SIZE_LIMIT).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn param(pattern: &str) -> Values {
        Box::new([Some(Scalar::Text(Arc::from(pattern)))])
    }

    #[test]
    fn the_latest_patterns_of_requests_are_kept() {
        let matcher = Matcher::new(Source::Param(0, "pattern".to_owned()), false).unwrap();
        let regex = |pattern: &str| matcher.regex(Some(&param(pattern))).unwrap().unwrap();
        let first = regex("0");
        for pattern in 1..KEPT {
            regex(&pattern.to_string());
            assert!(Arc::ptr_eq(&first, &regex("0")), "still kept after {pattern} others");
        }
        for pattern in 100..100 + KEPT {
            regex(&pattern.to_string());
        }
        assert!(!Arc::ptr_eq(&first, &regex("0")), "pushed out by {KEPT} others");
        let Compiled::Latest(kept) = &matcher.compiled else { panic!() };
        assert_eq!(kept.lock().unwrap().len(), KEPT);
    }

    #[test]
    fn a_huge_regex_is_refused() {
        let huge = Matcher::new(Source::Literal("(((a{1000}){1000}){1000})".to_owned()), false);
        assert!(matches!(huge, Err(regex::Error::CompiledTooBig(_))), "{huge:?}");
    }
}
