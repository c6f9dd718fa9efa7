//! Names that go through several files.

use expect_test::expect;

use crate::world::Folder;

const PLAN: &str = "
    import { definePlan } from 'anabranch';
    import Same, { Shape, Other, Third, Renamed, LIMIT, Both } from './index';
    const count: Shape & Other & Third & Renamed & Same = LIMIT + Both;
    export default definePlan({ name: 'a', build: (ctx) =>
      ctx.viewer({ endpoint: EP.redis.redis_default }).take({ count }) });";

const INDEX: &str = "
    import { Third, Default as D } from './types';
    export * from './types';
    export * from './index';
    export { Other, Other as Renamed } from './types';
    export { Third };
    export default D;
    export const Both = 2;";

const TYPES: &str = "
    export type Shape = number; export interface Other {} export type Third = any; export type Default = number;
    export type Both = 1;
    export const LIMIT = 3;";

/// Nobody says `type`, and yet no type is looked for where values are.
#[test]
fn types_through_files() {
    let files = [("a.plan.ts", PLAN), ("index.ts", INDEX), ("types.ts", TYPES)];
    let folder = Folder::new("types-through-files", &files);
    let built = folder.compile("a.plan.ts").unwrap_or_else(|_| panic!("{}", folder.problems("a.plan.ts")));
    let json: serde_json::Value = serde_json::from_str(&built.text).unwrap();
    assert_eq!(json["nodes"][1]["params"]["count"], 5);
}

/// One file does not parse, another cannot be erased, a third is not there.
#[test]
fn faults_of_all_files() {
    let plan = "import { a } from './b'; import { c } from './c'; enum D {}";
    let files = [("a.plan.ts", plan), ("b.ts", "export const a = ; let")];
    expect![[r#"
        error: a.plan.ts:1:44: there is no file `./c`
          1 | import { a } from './b'; import { c } from './c'; enum D {}
            |                                            ^^^^^
          help: a path is relative to the file that imports it; `.ts` may be left out
        error: a.plan.ts:1:56: an enum cannot be erased
          1 | import { a } from './b'; import { c } from './c'; enum D {}
            |                                                        ^
          help: use an object: `const Color = { red: "red" } as const`
        error: b.ts:1:18: Unexpected token
          1 | export const a = ; let
            |                  ^
    "#]]
    .assert_eq(&Folder::new("faults-of-all-files", &files).problems("a.plan.ts"));
}
