//! Runs the code of a plan: the only place that knows the JavaScript engine.
//!
//! The engine gets only what is needed to compute: no clock, no weak references, no files. The prelude (in JavaScript,
//! in `prelude/`) removes the rest, freezes the remaining objects, and records the calls of the code. The output is the
//! text of one JSON value.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::rc::Rc;
use std::thread::{Builder, ScopedJoinHandle, scope};
use std::time::Duration;

use anabranch_text::{closest, size};
use rquickjs::context::{EvalOptions, intrinsic};
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{Context, Ctx, Error, Function, Module, Object, Persistent, Runtime, Type, Value};
use rustix::time::{ClockId, clock_gettime};
use serde::Deserialize;

use crate::job::{Job, PlanRecord};
use crate::surface::ROOT;

/// The stack of the plan's code: a long chain of operators is as many calls inside one another. The engine's own
/// functions need some more.
const STACK: usize = 4 << 20;
const STACK_BESIDE: usize = 4 << 20;

/// The memory and CPU time for the prelude after the end of the code, to write its records.
const GRACE_MEMORY: usize = 64 << 20;
const GRACE_TIME: Duration = Duration::from_millis(500);

const PRELUDE: &str = concat!(
    "(function (job, nearest) {\n\"use strict\";\n",
    include_str!("prelude/faults.js"),
    include_str!("prelude/tokens.js"),
    include_str!("prelude/operators.js"),
    include_str!("prelude/natives.js"),
    include_str!("prelude/functions.js"),
    include_str!("prelude/plan.js"),
    include_str!("prelude/console.js"),
    include_str!("prelude/lockdown.js"),
    "return { ended, rejected, unheard, finish };\n})",
);

/// The module that replaces every package that plans import from.
const PACKAGE: &str = "anabranch";
const PACKAGE_CODE: &str = "export const { Key, P, EP, E, Pred, coalesce, regex, min, max, abs, log, exp, pow, clamp, \
    lower, upper, definePlan, CandidateSet, Context, Expr, Endpoint, Plan } = globalThis.__ab_exports;";

/// Code to run: the first file is number 0.
#[derive(Default)]
pub(crate) struct Program {
    /// The modules, by the number of their file.
    pub(crate) modules: BTreeMap<u32, String>,
    /// The targets of a file's imports.
    pub(crate) imports: BTreeMap<(u32, String), Target>,
}

/// The target of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// One of the packages.
    Package,
    /// The file of this number.
    File(u32),
}

/// The plan, faults and printed lines of a program that ran.
#[derive(Deserialize)]
pub(crate) struct ProgramOutput {
    pub(crate) faults: Vec<ProgramFault>,
    pub(crate) plan: Option<PlanRecord>,
    /// The lines that it printed.
    #[serde(default)]
    pub(crate) printed: Vec<Line>,
}

/// A line that the code printed, and where: file, line and column.
#[derive(Deserialize)]
pub(crate) struct Line {
    pub(crate) text: String,
    pub(crate) stack: Option<(u32, u32, u32)>,
}

/// A fault that the running code reported.
#[derive(Deserialize)]
pub(crate) struct ProgramFault {
    pub(crate) what: String,
    pub(crate) help: Option<String>,
    /// The place that it is about, and the option there.
    pub(crate) site: Option<u32>,
    pub(crate) option: Option<String>,
    /// Else where the code was: file, line and column.
    pub(crate) stack: Option<(u32, u32, u32)>,
    /// And the word there, or soon after, that it is about.
    pub(crate) word: Option<String>,
}

/// Runs a program within the limits of its job, on its own thread with a large enough stack.
pub(crate) fn run(job: &Job, program: Program) -> ProgramOutput {
    let thread = Builder::new().name("sandbox".to_owned()).stack_size(STACK + STACK_BESIDE);
    let ran = scope(|threads| {
        let running =
            thread.spawn_scoped(threads, || try_run(job, program).map_err(|error| error.to_string()));
        let joined = running.map_err(|error| error.to_string()).map(ScopedJoinHandle::join);
        joined.and_then(|ended| ended.unwrap_or_else(|panic| resume_unwind(panic)))
    });
    ran.unwrap_or_else(|cause| {
        let what = format!("the plan's code could not be run: {cause}");
        ProgramOutput { faults: vec![ProgramFault::new(what)], plan: None, printed: Vec::new() }
    })
}

fn try_run(job: &Job, program: Program) -> Result<ProgramOutput, Error> {
    let runtime = Runtime::new()?;
    runtime.set_memory_limit(job.memory.saturating_add(GRACE_MEMORY));
    runtime.set_max_stack_size(STACK);
    let watch = Watch::new(&runtime, Duration::from_millis(job.time_ms));
    let program = Rc::new(program);
    runtime.set_loader(Modules(program.clone()), Modules(program.clone()));
    type Intrinsics = (
        intrinsic::Eval,
        intrinsic::RegExpCompiler,
        intrinsic::RegExp,
        intrinsic::Json,
        intrinsic::Proxy,
        intrinsic::MapSet,
        intrinsic::Promise,
    );
    let context = Context::custom::<Intrinsics>(&runtime)?;
    let prelude = context.with(|ctx| prelude(&ctx, job))?;
    track_rejections(&runtime, &prelude);
    runtime.set_memory_limit(job.memory);
    let end = context.with(|ctx| evaluate(&ctx, &program, &watch));
    runtime.set_memory_limit(job.memory.saturating_add(GRACE_MEMORY));
    runtime.set_host_promise_rejection_tracker(None);
    let late = watch.is_over();
    watch.start(GRACE_TIME);
    context.with(|ctx| {
        ctx.run_gc();
        let prelude = prelude.restore(&ctx)?;
        let mut noted = note(&prelude, job, end, late);
        if !late {
            noted = noted.and_then(|()| prelude.get::<_, Function<'_>>("unheard")?.call(()));
        }
        watch.start(GRACE_TIME);
        let text: String = prelude.get::<_, Function<'_>>("finish")?.call(())?;
        let recorded: Result<ProgramOutput, _> = serde_json::from_str(&text);
        let mut recorded =
            recorded.map_err(|cause| Error::new_into_js_message("text", "plan", cause.to_string()))?;
        if noted.is_err() {
            // Inspecting an error can run code of the plan, and that code did not end.
            recorded
                .faults
                .push(ProgramFault::new("the plan's code threw an error that cannot be shown".to_owned()));
        }
        Ok(recorded)
    })
}

/// The end of the code.
enum End {
    Done,
    Thrown(Persistent<Value<'static>>),
    /// It waits for something that never happens.
    Waiting,
}

fn prelude(ctx: &Ctx<'_>, job: &Job) -> Result<Persistent<Object<'static>>, Error> {
    let mut options = EvalOptions::default();
    options.filename = Some("prelude".to_owned());
    let prelude: Function<'_> = ctx.eval_with_options(PRELUDE, options)?;
    let given = serde_json::json!({
        "keys": job.keys,
        "params": job.params,
        "endpoints": job.endpoints,
        "methods": job.methods,
        "root": ROOT,
    });
    let nearest = |name: String, names: Vec<String>| {
        closest(&name, names.iter().map(String::as_str)).map(str::to_owned)
    };
    let nearest = Function::new(ctx.clone(), nearest)?;
    let made: Object<'_> = prelude.call((ctx.json_parse(given.to_string())?, nearest))?;
    Ok(Persistent::save(ctx, made))
}

/// Has the prelude know about promises that are rejected.
fn track_rejections(runtime: &Runtime, prelude: &Persistent<Object<'static>>) {
    let prelude = prelude.clone();
    runtime.set_host_promise_rejection_tracker(Some(Box::new(move |ctx, promise, reason, asked| {
        let told = prelude.clone().restore(&ctx).and_then(|prelude| {
            prelude.get::<_, Function<'_>>("rejected")?.call::<_, ()>((promise, reason, asked))
        });
        if told.is_err() {
            // Out of time or memory, which ends the code anyway.
            ctx.catch();
        }
    })));
}

/// Evaluates the first module and its imports, and runs pending promise jobs.
fn evaluate(ctx: &Ctx<'_>, program: &Program, watch: &Watch) -> End {
    let caught = || End::Thrown(Persistent::save(ctx, ctx.catch()));
    let code = program.modules.get(&0).map(String::as_str).unwrap_or_default();
    let module = Module::declare(ctx.clone(), module_name(0), code).and_then(Module::eval);
    let Ok((_, promise)) = module else { return caught() };
    while !watch.is_over() && ctx.execute_pending_job() {}
    match promise.result::<Value<'_>>() {
        Some(Ok(_)) => End::Done,
        Some(Err(_)) => caught(),
        None => End::Waiting,
    }
}

/// Has the prelude note why the code ended, unless it was done.
fn note(prelude: &Object<'_>, job: &Job, end: End, late: bool) -> Result<(), Error> {
    let (value, waiting) = match end {
        End::Done if !late => return Ok(()),
        End::Thrown(value) => (value.restore(prelude.ctx())?, false),
        End::Done | End::Waiting => (Value::new_undefined(prelude.ctx().clone()), true),
    };
    let message = value.as_exception().and_then(rquickjs::Exception::message).unwrap_or_default();
    let (what, help) = if late {
        let what = format!("the plan's code used more than {} s of CPU time", job.time_ms as f64 / 1000.0);
        (Some(what), Some("is there a loop that never ends, here or in the lines below?"))
    } else if waiting {
        (Some("the plan's code waits for something that never comes".to_owned()), None)
    } else if message == "out of memory" {
        (Some(format!("the plan's code used more than {} of memory", size::format(job.memory as u64))), None)
    } else if value.is_null() || value.type_of() == Type::Uninitialized {
        // Without memory there is no error object either, and parts of the engine then fail to throw one.
        (
            Some(format!(
                "the plan's code threw null, or used more than {} of memory",
                size::format(job.memory as u64)
            )),
            None,
        )
    } else if message.starts_with("Maximum call stack size exceeded") {
        (
            Some("the plan's code ran out of stack".to_owned()),
            Some("does a function call itself without end?"),
        )
    } else {
        (None, None)
    };
    let value = Some(value).filter(|value| value.type_of() != Type::Uninitialized);
    prelude.get::<_, Function<'_>>("ended")?.call((value, what, help))
}

/// Ends the code when it has used up its CPU time. Wall time would make a plan fail because the machine is busy.
struct Watch(Rc<Limit>);

struct Limit {
    end: Cell<Duration>,
    over: Cell<bool>,
}

impl Watch {
    fn new(runtime: &Runtime, time: Duration) -> Watch {
        let limit = Rc::new(Limit { end: Cell::new(cpu_time() + time), over: Cell::new(false) });
        let watched = limit.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || watched.check())));
        Watch(limit)
    }

    fn start(&self, time: Duration) {
        self.0.end.set(cpu_time() + time);
        self.0.over.set(false);
    }

    fn is_over(&self) -> bool {
        self.0.check()
    }
}

impl Limit {
    fn check(&self) -> bool {
        self.over.set(self.over.get() || cpu_time() >= self.end.get());
        self.over.get()
    }
}

/// The CPU time that this thread has used.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).expect("CPU time is not negative")
}

/// Finds modules in the program, and nowhere else.
struct Modules(Rc<Program>);

impl Resolver for Modules {
    fn resolve<'js>(
        &mut self,
        _ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<String, Error> {
        let target = module_number(base).and_then(|from| self.0.imports.get(&(from, name.to_owned())));
        match target {
            Some(Target::Package) => Ok(PACKAGE.to_owned()),
            Some(Target::File(number)) => Ok(module_name(*number)),
            None => Err(Error::new_resolving(base, name)),
        }
    }
}

impl Loader for Modules {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>, Error> {
        if name == PACKAGE {
            return Module::declare(ctx.clone(), name, PACKAGE_CODE);
        }
        match module_number(name).and_then(|number| self.0.modules.get(&number)) {
            Some(code) => Module::declare(ctx.clone(), name, code.as_str()),
            None => Err(Error::new_loading(name)),
        }
    }
}

/// The name of a file in the JavaScript engine; the prelude finds it in stack traces.
fn module_name(number: u32) -> String {
    format!("file:{number}")
}

fn module_number(name: &str) -> Option<u32> {
    name.strip_prefix("file:")?.parse().ok()
}

impl ProgramFault {
    fn new(what: String) -> ProgramFault {
        ProgramFault { what, help: None, site: None, option: None, stack: None, word: None }
    }
}

#[cfg(test)]
mod tests;
