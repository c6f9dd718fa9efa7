//! Measures Anabranch side by side with others: `anabranch-bench engine`, `content`, `plan`, `recipe`, `dataset` or `serve`; and flips bits
//! in the files of the store's index and its peers: `anabranch-bench flips`.
//!
//! Every figure is made in the same run, on the same machine, from the same graphs or bytes as its peers' and floors',
//! and every contender's result is checked. The tables go to the terminal and to a dated file in `bench/runs/`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program whose product is text")]
#![allow(clippy::disallowed_methods, reason = "measures the real clock, and peers that spawn freely")]

mod content;
mod counting;
mod dataset;
mod engine;
mod flips;
mod indexes;
mod plan;
mod recipe;
mod report;
mod serve;
mod watch;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] | ["engine"] => on_a_deep_stack(engine::bench),
        ["content"] => on_a_deep_stack(content::bench),
        ["content", "--only", "index"] => on_a_deep_stack(content::index_alone),
        ["flips", ref settings @ ..] => flips::bench(settings),
        ["plan"] => on_a_deep_stack(plan::bench),
        ["plan", "--quick"] => on_a_deep_stack(plan::try_out),
        ["plan", "--only", part] => {
            let part = part.to_owned();
            on_a_deep_stack(move || plan::one_part(&part))
        }
        ["dataset", "child", ref settings @ ..] => dataset::child(settings),
        ["dataset", ref settings @ ..] => {
            let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
            on_a_deep_stack(move || dataset::bench(&settings))
        }
        ["recipe"] => on_a_deep_stack(|| recipe::bench(None)),
        ["recipe", "--only", part] => {
            let part = part.to_owned();
            on_a_deep_stack(move || recipe::bench(Some(&part)))
        }
        ["serve"] => on_a_deep_stack(|| serve::bench(None)),
        ["serve", "--only", part] => {
            let part = part.to_owned();
            on_a_deep_stack(move || serve::bench(Some(&part)))
        }
        ["serve", "floor", folder] => {
            let folder = folder.to_owned();
            on_a_deep_stack(move || serve::run_floor(&folder))
        }
        _ => {
            let whats = "engine | content [--only index] | plan [--quick | --only PART] | recipe [--only PART] | serve [--only PART]";
            eprintln!("usage: anabranch-bench [{whats} | {} | {}]", dataset::USAGE, flips::USAGE);
            ExitCode::from(2)
        }
    }
}

/// Recursive peers need far more stack than a thread usually has; memory is taken only as far as they reach.
const STACK: usize = 1 << 30;

fn on_a_deep_stack(bench: impl FnOnce() -> std::io::Result<()> + Send + 'static) -> ExitCode {
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(bench);
    match thread.map(|thread| thread.join().expect("the bench does not panic")) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) | Err(error) => {
            eprintln!("anabranch-bench: {error}");
            ExitCode::FAILURE
        }
    }
}
