//! Long-running functions check their budget, so that they can be stopped.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anabranch_engine::clock::{Clock, Sleep, SystemClock};
use bytes::Bytes;

use crate::Value;
use crate::budget::CallBudget;
use crate::drive::{call, call_within};
use crate::function::Fault;
use crate::recipe::Params;
use crate::registry::Functions;

/// A clock that advances by one millisecond per reading.
struct SteppingClock(Instant, AtomicU32);

impl Clock for SteppingClock {
    fn now(&self) -> Instant {
        self.0 + Duration::from_millis(self.1.fetch_add(1, Ordering::Relaxed).into())
    }

    fn sleep_until(&self, _: Instant) -> Sleep {
        Box::pin(pending())
    }
}

/// Checks that a function is stopped after `looks` checks of its budget, and succeeds without a limit.
#[track_caller]
fn check(id: &str, inputs: &[&str], params: &[(&str, &str)], looks: u64) {
    let functions = Functions::builtin();
    let function = functions.get(&id.parse().unwrap()).unwrap();
    let inputs: Vec<Vec<Bytes>> = inputs.iter().map(|input| vec![(*input).to_owned().into()]).collect();
    let value = |(name, text): &(&str, &str)| ((*name).to_owned(), Value::Text((*text).to_owned()));
    let params: Params = params.iter().map(value).collect();
    let clock = Arc::new(SteppingClock(SystemClock.now(), AtomicU32::new(0)));
    let time = Duration::from_millis(looks);
    let budget = Arc::new(CallBudget::new(u64::MAX, Arc::default(), Some((time, clock))));
    let stopped = call_within(function, &inputs, &params, &budget, drop);
    assert!(matches!(stopped, Err(Fault::TooLong { .. })), "{id}: {stopped:?}");
    assert!(call(function, &inputs, &params).is_ok(), "{id}");
}

/// Each of these functions checks its budget during long work.
#[test]
fn long_work_can_be_stopped() {
    // The driver itself checks the budget once per chunk and input. The limits below are higher.
    let lines: String = (0..200_000_u32).map(|at| format!("{:x}\n", at.wrapping_mul(0x9e37_79b9))).collect();
    check("sort/1.0.0", &[&lines], &[], 20);
    let binary: String = (0..200_000_u32).map(|at| if at % 3 == 0 { '1' } else { '0' }).collect();
    check("regex_replace/1.0.0", &[&binary], &[("pattern", "1[01]{900}[^01]"), ("replacement", "x")], 100);
    check("grep/1.0.0", &[&binary], &[("pattern", "1[01]{900}[^01]")], 100);
    let json = format!("[{}0]", "{\"a\":0},".repeat(20_000));
    check("minify_json/1.0.0", &[&json], &[], 20);
    check("json_validate/1.0.0", &[&json], &[], 20);
    check("json_to_yaml/2.0.0", &[&json], &[], 20);
    check("yaml_to_json/1.0.0", &["- {a: 1}\n".repeat(10_000).as_str()], &[], 20);
    let (old, new): (String, String) =
        (0..300).map(|at| (format!("{at}\n"), format!("{}\n", (at * 7) % 300))).collect();
    check("diff/2.0.0", &[&old, &new], &[], 20);
}

/// A search in steps finds the same matches as a single search.
#[test]
fn matches_by_steps_are_those_of_one_search() {
    let text = "über 12 ab 345 ẞx\n".repeat(20_000);
    for (pattern, replacement) in [
        ("\\d+", "<$0>"),
        ("(a)(b)?", "$2-$1"),
        ("x*", "."),
        ("(?m)^.", "^"),
        ("[^ ]+$", "end"),
        ("ß|ẞ|ü", "ss"),
        ("a|ab", "#"),
        ("(?-u:\\b)ab(?-u:\\b)", "word"),
        ("nowhere", ""),
    ] {
        // A pattern with many states forces the search to run in steps.
        let long = format!("{pattern}|{}", "\u{1}[0-9]{300}".repeat(3));
        let given = |pattern: &str| {
            let functions = Functions::builtin();
            let function = functions.get(&"regex_replace/1.0.0".parse().unwrap()).unwrap();
            let texts = [("pattern", pattern), ("replacement", replacement)];
            let params: Params = texts
                .iter()
                .map(|(name, text)| ((*name).to_owned(), Value::Text((*text).to_owned())))
                .collect();
            call(function, &[vec![text.clone().into()]], &params).unwrap().concat()
        };
        assert!(given(pattern) == given(&long), "{pattern}");
    }
}
