//! Ids of runs. They are sorted by time, and unique across restarts.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The id of a run: milliseconds since 1970 and a number within the millisecond, in hexadecimal, as in
/// `018f3c2a9d4b-0007`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId {
    millis: u64,
    number: u16,
}

/// A text that is not the id of a run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not the id of a run; ids look like 018f3c2a9d4b-0007")]
pub struct NotARunId(String);

impl RunId {
    /// The id of the next run. It is larger than all earlier ones even if the clock goes back.
    pub(super) fn next(self, now: SystemTime) -> RunId {
        let millis = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        if millis > self.millis {
            return RunId { millis, number: 0 };
        }
        match self.number.checked_add(1) {
            Some(number) => RunId { number, ..self },
            None => RunId { millis: self.millis + 1, number: 0 },
        }
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:012x}-{:04x}", self.millis, self.number)
    }
}

impl FromStr for RunId {
    type Err = NotARunId;

    fn from_str(text: &str) -> Result<RunId, NotARunId> {
        let parsed = || {
            let (millis, number) = text.split_once('-')?;
            let is_hex = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            let fits = millis.len() == 12 && number.len() == 4 && is_hex(millis) && is_hex(number);
            let id = RunId {
                millis: u64::from_str_radix(millis, 16).ok()?,
                number: u16::from_str_radix(number, 16).ok()?,
            };
            fits.then_some(id)
        };
        parsed().ok_or_else(|| NotARunId(anabranch_text::quote(text)))
    }
}

impl Serialize for RunId {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: Deserializer<'de>>(text: D) -> Result<RunId, D::Error> {
        let text = String::deserialize(text)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn ids_rise_whatever_the_clock_does() {
        let at = |millis| UNIX_EPOCH + Duration::from_millis(millis);
        let first = RunId::default().next(at(5));
        let again = first.next(at(5));
        let back = again.next(at(1));
        assert_eq!(
            [first, again, back].map(|id| id.to_string()),
            ["000000000005-0000", "000000000005-0001", "000000000005-0002"]
        );
        let full = RunId { millis: 5, number: u16::MAX };
        assert_eq!(full.next(at(5)), RunId { millis: 6, number: 0 });
        assert_eq!(full.next(at(5)).next(at(9)), RunId { millis: 9, number: 0 });
    }

    #[test]
    fn texts() {
        let id: RunId = "018f3c2a9d4b-0007".parse().unwrap();
        assert_eq!(id.to_string(), "018f3c2a9d4b-0007");
        for wrong in ["", "-", "018f3c2a9d4b", "018F3C2A9D4B-0007", "18f3c2a9d4b-0007", "018f3c2a9d4b-+007"] {
            let error = wrong.parse::<RunId>().unwrap_err().to_string();
            assert!(error.ends_with("is not the id of a run; ids look like 018f3c2a9d4b-0007"), "{error}");
        }
    }
}
