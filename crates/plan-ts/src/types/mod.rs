//! Type declarations for editors and `tsc`: the names that plans may use, and the options of each op.
//!
//! The text is a script, not a module, so that its declarations are available without an import, and so that it may
//! declare the packages that plans import from.

mod page;
mod columns;
mod methods;

use anabranch_plan::Registries;
use anabranch_plan::op::Ops;

use crate::surface::{PACKAGES, TYPES};
use page::Page;

/// The part that does not depend on registries and ops.
const LANGUAGE: &str = include_str!("language.d.ts");

/// Like other declarations of it, so that it is compatible with those of a browser or of Node.
const CONSOLE: &str = "\
// Lines for whoever writes the plan, printed when it is checked, built or run.
interface Console {
  log(...values: unknown[]): void;
  info(...values: unknown[]): void;
  warn(...values: unknown[]): void;
  error(...values: unknown[]): void;
  debug(...values: unknown[]): void;
}
declare var console: Console;
";

const HEAD: &str = "\
// Types of plans: keys, parameters, endpoints, ops. Made from the registries by `anabranch plan types`; make it anew
// when they change.
";

/// Values that plans use without an import, and may import.
const VALUES: [&str; 17] = [
    "definePlan",
    "Key",
    "P",
    "EP",
    "E",
    "Pred",
    "coalesce",
    "regex",
    "min",
    "max",
    "abs",
    "log",
    "exp",
    "pow",
    "clamp",
    "lower",
    "upper",
];

/// Declares everything that plans may use to TypeScript, as one `.d.ts` file.
pub fn declarations(ops: &Ops, registries: &Registries) -> String {
    let mut page = Page::default();
    page.text.push_str(HEAD);
    page.line("");
    page.block("declare namespace Anabranch {", |page| columns::declare(page, registries), "}");
    page.line("");
    page.block("declare namespace Anabranch {", |page| methods::declare(page, ops, &registries.limits), "}");
    page.line("");
    page.text.push_str(LANGUAGE);
    page.line("");
    page.text.push_str(CONSOLE);
    page.line("");
    page.line("// Everything is there without an import.");
    let names = || VALUES.into_iter().chain(TYPES);
    names().for_each(|name| page.line(&format!("import {name} = Anabranch.{name};")));
    let [package, others @ ..] = PACKAGES;
    page.line("");
    let exports = |page: &mut Page| {
        names().for_each(|name| page.line(&format!("export import {name} = Anabranch.{name};")));
    };
    page.block(&format!("declare module \"{package}\" {{"), exports, "}");
    for other in others {
        page.block(
            &format!("declare module \"{other}\" {{"),
            |page| page.line(&format!("export * from \"{package}\";")),
            "}",
        );
    }
    page.text
}
