//! Sources of several files: found, rewritten, run.

#![allow(clippy::needless_pass_by_value, reason = "an `expect!` is written where it is used")]

use std::fmt::Write as _;

use expect_test::{Expect, expect};

use super::make;
use crate::job::{At, EndpointName, Files, ImportResolution, Job, JobOutput, Method};

/// Files by name. A file is imported as `./NAME`.
struct Folder {
    texts: Vec<(&'static str, &'static str)>,
    asked: Vec<&'static str>,
}

impl Files for Folder {
    fn import(&mut self, _from: u32, specifier: &str) -> ImportResolution {
        let wanted = specifier.trim_start_matches("./");
        let Some((name, text)) = self.texts.iter().find(|(name, _)| *name == wanted) else {
            return ImportResolution::Refused { what: format!("there is no file `{specifier}`"), help: None };
        };
        let known = self.asked.iter().position(|asked| asked == name);
        let number = known.unwrap_or(self.asked.len()) as u32;
        self.asked.extend(known.is_none().then_some(name));
        ImportResolution::File {
            number,
            name: (*name).to_owned(),
            text: known.is_none().then(|| (*text).to_owned()),
        }
    }
}

fn job(text: &str) -> Job {
    let method = |op: &str, name: &str, input| Method {
        op: op.to_owned(),
        namespace: "core".to_owned(),
        name: name.to_owned(),
        input,
        bare: !input,
    };
    Job {
        keys: ["id", "score"].map(str::to_owned).to_vec(),
        params: vec!["weight".to_owned()],
        endpoints: vec![EndpointName { kind: "redis".into(), name: "users".into(), id: "ep_0001".into() }],
        methods: vec![
            method("core::viewer", "viewer", false),
            method("core::vm", "vm", true),
            method("core::take", "take", true),
        ],
        time_ms: 1000,
        memory: 16 << 20,
        file: "a".to_owned(),
        text: text.to_owned(),
    }
}

fn made(files: &[(&'static str, &'static str)]) -> (JobOutput, Folder) {
    let (_, text) = files[0];
    let mut folder = Folder { texts: files.to_vec(), asked: vec!["a"] };
    (make(&job(text), &mut folder), folder)
}

/// The result of files of which the first, called `a`, is the plan: faults with their text, then nodes.
fn check(files: &[(&'static str, &'static str)], expect: Expect) {
    let (made, folder) = made(files);
    let shown = |at: At| {
        let name = folder.asked[at.file as usize];
        let (_, text) = files.iter().find(|(known, _)| *known == name).expect("it was asked for");
        format!("{name} `{}`", &text[at.start as usize..at.end as usize])
    };
    let mut told = String::new();
    for fault in &made.faults {
        let help = fault.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
        writeln!(told, "{}: {}{help}", fault.at.map_or("?".to_owned(), shown), fault.what).unwrap();
    }
    for node in made.plan.iter().flat_map(|plan| &plan.nodes) {
        let site = node.site.map(|site| shown(made.sites[site as usize].at)).unwrap_or_default();
        writeln!(told, "{}{:?} {} at {site}", node.op, node.inputs, node.options).unwrap();
    }
    expect.assert_eq(&told);
}

#[test]
fn files_import_one_another() {
    check(
        &[
            (
                "a",
                "import { definePlan } from 'anabranch'; import { top, type Many, Few } from './b'; import './b';
                export default definePlan({ name: 'a', build: (ctx) => top(ctx.viewer(), 3 as Few) });",
            ),
            (
                "b",
                "import type { CandidateSet } from 'anabranch'; import * as c from './c'; export type Few = number;
                export const top = (rows: CandidateSet, n: number) => rows.take({ count: c.twice(n) });",
            ),
            ("c", "import { top } from './b'; export const twice = (n: number) => n * 2; export const again = () => top;"),
        ],
        expect![[r#"
            core::viewer[] {} at a `viewer`
            core::take[0] {"count":6} at b `take`
        "#]],
    );
}

#[test]
fn what_is_wrong_with_any_file_is_told_at_once() {
    check(
        &[
            ("a", "import './b'; import './nowhere'; import './c'; enum A {}"),
            ("b", "let x = ;"),
            ("c", "import './d'; import 'lodash';"),
        ],
        expect![[r#"
            a `'./nowhere'`: there is no file `./nowhere`
            b `;`: Unexpected token
            c `'./d'`: there is no file `./d`
            c `'lodash'`: there is no file `lodash`
            a `A`: an enum cannot be erased (use an object: `const Color = { red: "red" } as const`)
        "#]],
    );
    check(
        &[("a", "import './b'; enum A {}"), ("b", "namespace B { export const b = 1 }")],
        expect![[r#"
        a `A`: an enum cannot be erased (use an object: `const Color = { red: "red" } as const`)
        b `B`: a namespace with values cannot be erased (use a module of its own, or an object)
    "#]],
    );
}

#[test]
fn errors_of_running_code_are_where_they_come_from() {
    check(
        &[
            ("a", "import { f } from './b';\ndefinePlan({ build: (ctx) => f(ctx) })"),
            (
                "b",
                "export function f(ctx: any): any {\n  const { scroe } = Key;\n  return ctx.viewer().tkae().vm({ x: Key['nope'], y: NaN }).boom.boom();\n}",
            ),
        ],
        expect![[r#"
            b `scroe`: there is no key `scroe` (did you mean `score`?)
            b `tkae`: there is no method `tkae` of rows (did you mean `take`?)
            b `nope`: there is no key `nope` (there is `id`, `score`)
            b `NaN`: `y` is NaN, which no plan can say
            b `boom`: there is no method `boom` of rows (there is `core`, `vm`, `take`)
            b `boom`: TypeError: not a function
            core::viewer[] {} at b `viewer`
            core::vm[0] {"x":{"$":"bad"},"y":{"$":"bad"}} at b `vm`
        "#]],
    );
    check(
        &[("a", "import { g } from './b';"), ("b", "export const f = 1;")],
        expect![[r#"
            a `'./b'`: `b` does not export `g`
        "#]],
    );
    check(
        &[("a", "import { definePlann } from 'anabranch';")],
        expect![[r#"
            a `'anabranch'`: `anabranch` does not export `definePlann`
        "#]],
    );
    check(
        &[("a", "import './b';"), ("b", "const a: any = null;\n/* ö */ a.b.c;")],
        expect![[r#"
        b `a`: TypeError: cannot read property 'b' of null
    "#]],
    );
    check(
        &[("a", "import './b'; definePlan({ build: (ctx) => ctx.viewer() })"), ("b", "for (;;) {}")],
        expect![[r#"
        b `for`: the plan's code used more than 1 s of CPU time (is there a loop that never ends, here or in the lines below?)
    "#]],
    );
}

#[test]
fn a_plan_is_made_of_few_files() {
    struct Endless(u32);
    impl Files for Endless {
        fn import(&mut self, _from: u32, _specifier: &str) -> ImportResolution {
            self.0 += 1;
            ImportResolution::File {
                number: self.0,
                name: "next".to_owned(),
                text: Some("import './next'".to_owned()),
            }
        }
    }
    let mut files = Endless(0);
    let made = make(&job("import './next'"), &mut files);
    expect!["a plan is made of at most 200 files"].assert_eq(&made.faults[0].what);
    assert_eq!((made.faults.len(), files.0), (1, 200));
}

#[test]
fn the_same_files_make_the_same() {
    let files = [
        (
            "a",
            "import { w } from './b'; definePlan({ build: (ctx) => ctx.viewer().vm({ x: Key.id * w + Key.nope }) })",
        ),
        ("b", "export const w = P.weight ?? 0.5;"),
    ];
    let text = || serde_json::to_string(&made(&files).0).expect("it can be written");
    assert_eq!(text(), text());
}
