//! With JavaScript's own operators, the code has the meaning of the source, in the same order of evaluation.

use proptest::prelude::*;
use rquickjs::{Context, Runtime};

use super::made;
use super::programs::program;

const BEFORE: &str = r#""use strict";
const trace = [];
const values = [0, 1, "", "s", null, undefined, 2.5, -3];
const t = (...all) => {
    trace.push(String(all[0]));
    return typeof all[0] === "number" ? values[Math.abs(all[0] | 0) % values.length] : all[0];
};
const throw_ = (x) => { if (x) throw new RangeError("thrown"); };
const min = (x, y) => [x, y].length;
const Key = { x: 3 }, P = { y: { z: 4 }, f(x) { return [this === P, x]; } }, EP = { k: { n: 5 } };
const o = { x: 1, n: null, f(x) { return [this === o, x]; }, take(x, y) { return [this === o, x, y]; }, C: class { constructor(x) { this.x = x; } } };
const __ab_get = (site, object, name) => object[name], __ab_at = (site, value) => value, __ab_test = __ab_at;
const __ab_typeof = (value) => typeof value;
const __ab_if = (site, test, yes, no) => test ? yes() : no();
const __ab_logic = (site, operator, x, y) =>
    operator === "&&" ? x && y() : operator === "||" ? x || y() : x ?? y();
const __ab_unary = (site, operator, x) => operator === "!" ? !x : operator === "-" ? -x : +x;
const __ab_op = (site, operator, x, y) => {
    switch (operator) {
        case "+": return x + y; case "-": return x - y; case "*": return x * y; case "/": return x / y;
        case "%": return x % y; case "**": return x ** y; case "==": return x == y; case "!=": return x != y;
        case "===": return x === y; case "!==": return x !== y; case "<": return x < y; case "<=": return x <= y;
        case ">": return x > y; case ">=": return x >= y; case "in": return x in y;
    }
};
let a = 1, b = "s", m = 2;
try {
"#;

const AFTER: &str = r#"
} catch (error) { trace.push(error.name); }
trace.push(a, b, o.x);
trace.map((value) => { try { return String(value); } catch { return "?"; } }).join();
"#;

fn run(code: &str) -> Result<String, String> {
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    let context = Context::full(&runtime).map_err(|error| error.to_string())?;
    context.with(|ctx| {
        let outcome = ctx.eval::<String, _>(format!("{BEFORE}{code}{AFTER}"));
        outcome.map_err(|error| format!("{error}: {:?}", ctx.catch().as_exception().map(|e| e.to_string())))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn programs_mean_the_same(program in program()) {
        let (unit, _) = made(&program.typed).map_err(|faults| TestCaseError::fail(format!("{faults:?}")))?;
        let (before, after) = (run(&program.plain), run(&unit.code));
        prop_assert!(before.is_ok(), "{before:?}\n{}", program.plain);
        prop_assert_eq!(before, after, "{}\n--\n{}\n--\n{}", program.typed, program.plain, unit.code);
    }
}
