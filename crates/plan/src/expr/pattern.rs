//! Regexes: compiled at load, or when a request first brings the pattern.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use regex::bytes::{Regex, RegexBuilder};

use super::Error;
use super::re2::translate;
use crate::value::{Scalar, Values};

/// The patterns of requests that each predicate keeps compiled. Each takes at most four times
/// [`Limits::REQUEST`]'s `compiled` bytes, so that all of them together take at most 16 MiB.
const KEPT: usize = 16;

/// A reason why a text is not a regex, or not one that is compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It does not follow the syntax.
    #[error("{what} (character {at} of the pattern)")]
    Syntax {
        /// The character that the mistake begins at, from 1.
        at: usize,
        /// The mistake.
        what: String,
    },
    /// It is longer than the bound.
    #[error("the pattern has {bytes} bytes; it may have {most}")]
    Long {
        /// Its length.
        bytes: usize,
        /// The bound.
        most: usize,
    },
    /// It has more classes of Unicode characters than the bound.
    #[error(
        "the pattern has {count} classes that hold more than ASCII, as `\\pL` and `[^a]` do; it may have {most}"
    )]
    Wide {
        /// The number of them.
        count: usize,
        /// The bound.
        most: usize,
    },
    /// Its compiled form is larger than the bound.
    #[error("the compiled pattern takes more than {most} bytes; repeat or list less")]
    Large {
        /// The bound.
        most: usize,
    },
}

/// Bounds on a pattern. Compiling cannot be interrupted, so that they also bound the time it takes.
struct Limits {
    /// Bytes of the pattern.
    bytes: usize,
    /// Classes that hold more than ASCII.
    wide_classes: usize,
    /// Bytes of the compiled form.
    compiled: usize,
}

impl Limits {
    /// A pattern that a plan brings: compiled once, when the plan is loaded.
    const PLAN: Limits = Limits { bytes: 32 << 10, wide_classes: 1_000, compiled: 1 << 20 };
    /// A pattern that a request brings.
    const REQUEST: Limits = Limits { bytes: 1 << 10, wide_classes: 16, compiled: 256 << 10 };
}

/// About how long compiling a request's pattern takes: a part that every pattern has, and one per byte.
const COMPILE: Duration = Duration::from_micros(200);
const COMPILE_BYTE: Duration = Duration::from_micros(2);

/// A regex of a predicate.
#[derive(Debug)]
pub(super) struct Matcher {
    pub(super) source: Source,
    pub(super) ignore_case: bool,
    compiled: Compiled,
}

/// The source of the pattern.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Source {
    /// From the plan.
    Literal(String),
    /// From the parameter at this index, with this name.
    Param(usize, String),
}

#[derive(Debug)]
enum Compiled {
    Once(Arc<Regex>),
    /// The latest first.
    Latest(Mutex<Vec<(Arc<str>, Arc<Regex>)>>),
}

impl Matcher {
    pub(super) fn new(source: Source, ignore_case: bool) -> Result<Matcher, PatternError> {
        let compiled = match &source {
            Source::Literal(pattern) => {
                Compiled::Once(Arc::new(compile(pattern, ignore_case, &Limits::PLAN)?))
            }
            Source::Param(..) => Compiled::Latest(Mutex::default()),
        };
        Ok(Matcher { source, ignore_case, compiled })
    }

    /// The regex for a request with these parameters; `None` if it takes parameters and there are none yet.
    pub(super) fn regex(&self, params: Option<&Values>) -> Option<Result<Arc<Regex>, Error>> {
        let (kept, index, param) = match (&self.compiled, &self.source) {
            (Compiled::Once(regex), _) => return Some(Ok(Arc::clone(regex))),
            (Compiled::Latest(kept), Source::Param(index, param)) => (kept, index, param),
            (Compiled::Latest(_), Source::Literal(_)) => unreachable!("literals are compiled at load"),
        };
        Some(match &params?[*index] {
            Some(Scalar::Text(pattern)) => self.latest(kept, pattern, param),
            _ => Err(Error::NoPattern { param: param.clone() }),
        })
    }

    /// An estimate of the time that a request with these parameters waits for compiling its pattern.
    pub(super) fn compile_time(&self, params: &Values) -> Duration {
        let (Compiled::Latest(kept), Source::Param(index, _)) = (&self.compiled, &self.source) else {
            return Duration::ZERO;
        };
        match &params[*index] {
            Some(Scalar::Text(pattern)) if pattern.len() <= Limits::REQUEST.bytes => {
                let kept = kept.lock().expect("nothing panics while it is held");
                match kept.iter().any(|(other, _)| other == pattern) {
                    true => Duration::ZERO,
                    false => COMPILE + COMPILE_BYTE * pattern.len() as u32,
                }
            }
            // Refused at once.
            _ => Duration::ZERO,
        }
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
        let regex = compile(pattern, self.ignore_case, &Limits::REQUEST)
            .map_err(|cause| Error::BadPattern { param: param.to_owned(), cause })?;
        let regex = Arc::new(regex);
        let mut kept = lock();
        kept.truncate(KEPT - 1);
        kept.insert(0, (Arc::clone(pattern), Arc::clone(&regex)));
        Ok(regex)
    }
}

fn compile(pattern: &str, ignore_case: bool, limits: &Limits) -> Result<Regex, PatternError> {
    if pattern.len() > limits.bytes {
        return Err(PatternError::Long { bytes: pattern.len(), most: limits.bytes });
    }
    let translated = translate(pattern)?;
    if translated.wide_classes > limits.wide_classes {
        return Err(PatternError::Wide { count: translated.wide_classes, most: limits.wide_classes });
    }
    let built = RegexBuilder::new(&translated.pattern)
        .case_insensitive(ignore_case)
        .size_limit(limits.compiled)
        .dfa_size_limit(limits.compiled)
        .build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => PatternError::Large { most: limits.compiled },
        error => {
            // All but the last line shows the translated pattern, which its author does not know.
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            PatternError::Syntax { at: 1, what: last.trim_start_matches("error: ").to_owned() }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn param(pattern: &str) -> Values {
        [Some(Scalar::Text(Arc::from(pattern)))].into()
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
        assert!(matches!(huge, Err(PatternError::Large { .. })), "{huge:?}");
    }

    /// Compilation cannot be interrupted, so no pattern may take long.
    #[test]
    fn what_a_request_may_ask_for_is_bounded_before_it_is_compiled() {
        let error = |pattern: &str| match compile(pattern, true, &Limits::REQUEST) {
            Ok(_) => "compiled".to_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(error(&"\\pL".repeat(20_000)), "the pattern has 60000 bytes; it may have 1024");
        assert!(error(&"\\pL".repeat(17)).contains("17 classes"), "{}", error(&"\\pL".repeat(17)));
        assert!(error(&"[^a]".repeat(17)).contains("17 classes"));
        assert!(error(&"\\W".repeat(17)).contains("17 classes"));
        assert_eq!(error(&"a".repeat(1024)), "compiled");
        assert_eq!(
            error("(.{1000}){1000}"),
            "the compiled pattern takes more than 262144 bytes; repeat or list less"
        );
    }

    #[test]
    fn only_a_pattern_that_is_not_kept_takes_time() {
        let matcher = Matcher::new(Source::Param(0, "pattern".to_owned()), false).unwrap();
        let values = param("a+");
        assert!(matcher.compile_time(&values) >= COMPILE);
        matcher.regex(Some(&values)).unwrap().unwrap();
        assert_eq!(matcher.compile_time(&values), Duration::ZERO);
        assert_eq!(matcher.compile_time(&param(&"a".repeat(5_000))), Duration::ZERO, "refused at once");
    }
}
