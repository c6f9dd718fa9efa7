//! The compiler: a file in, a checked plan and its JSON out.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anabranch_plan::{Engine, Error, Plan, Problem, Problems};
use anabranch_text::Plain;
use serde_json::{Map, Value, json};

use crate::assemble::{Places, assemble, in_typescript, wrong_kinds};
use crate::child::Worker;
use crate::job::{At, EndpointName, Fault, Job, JobOutput};
use crate::make::make;
use crate::sources::{ENDING, SourceFile, Sources, look};
use crate::surface;

/// The CPU time and the memory that a plan's code may use.
const TIME: Duration = Duration::from_secs(2);
const MEMORY: usize = 64 << 20;

/// The most lines of a plan's code that are printed. The prelude has a smaller limit, but it runs in the same engine as
/// the plan's own code.
const MOST_LINES: usize = 1_000;

/// Compiles plans written in TypeScript.
#[derive(Clone, Debug)]
pub struct Compiler {
    /// The worker process that runs the plan's code. `None` runs it in this process.
    worker: Option<Worker>,
}

/// The result for a file.
pub struct Outcome {
    /// The files that it depends on: the plan's own file, then its imports, including missing ones.
    pub files: Vec<SourceFile>,
    /// The plan, or all of its problems.
    pub built: Result<CompiledPlan, Problems>,
    /// The lines that its code printed with `console.log`, each with its place: `feed.plan.ts:7: text`.
    pub printed: Vec<String>,
}

/// A plan that was compiled.
pub struct CompiledPlan {
    /// The plan, ready to run.
    pub plan: Plan,
    /// Its JSON.
    pub text: String,
}

impl Compiler {
    /// A compiler that runs the code of plans in processes of their own.
    pub fn new(worker: Worker) -> Compiler {
        Compiler { worker: Some(worker) }
    }

    /// A compiler that runs the code of plans in this process: for code that is trusted.
    pub fn in_place() -> Compiler {
        Compiler { worker: None }
    }

    /// Compiles a file. Its imports must be in `root`, the folder of all plans.
    pub fn compile(&self, engine: &Engine, file: &Path, root: &Path) -> Outcome {
        let look = look(file);
        let mut sources = match Sources::open(file, root) {
            Ok(sources) => sources,
            Err(problem) => {
                let file = SourceFile { path: file.to_owned(), look };
                return Outcome { files: vec![file], built: Err(problem.into()), printed: Vec::new() };
            }
        };
        let job = job(engine, &sources);
        let made = match &self.worker {
            None => Ok(make(&job, &mut sources)),
            Some(worker) => worker.make(&job, &mut sources),
        };
        let (built, printed) = match made {
            Ok(made) => {
                let lines = made.printed.iter().take(MOST_LINES);
                let lines = lines.map(|(at, text)| printed_line(&sources, *at, text)).collect();
                (check(engine, file, &sources, &made), lines)
            }
            Err(trouble) => (Err(sources.problem(None, trouble.to_string(), None).into()), Vec::new()),
        };
        Outcome { files: sources.into_looked_at(), built, printed }
    }
}

/// A line that the code printed, with nothing in it that a terminal would obey.
fn printed_line(sources: &Sources, at: Option<At>, text: &str) -> String {
    let place = sources.problem(at, "", None).place;
    format!("{place}: {}", Plain(text))
}

fn job(engine: &Engine, sources: &Sources) -> Job {
    let registries = engine.registries();
    let endpoints = registries.endpoints.iter().map(|endpoint| EndpointName {
        kind: endpoint.kind.to_string(),
        name: endpoint.name.clone(),
        id: endpoint.id.clone(),
    });
    Job {
        keys: registries.keys.iter().map(|key| key.name.clone()).collect(),
        params: registries.params.iter().map(|param| param.name.clone()).collect(),
        endpoints: endpoints.collect(),
        methods: engine.ops().and_builtin().iter().map(|op| surface::method(op.spec())).collect(),
        time_ms: TIME.as_millis() as u64,
        memory: MEMORY,
        file: sources.name(),
        text: sources.text().to_owned(),
    }
}

/// Converts the description from the code to plan JSON, and checks it like any plan JSON.
fn check(
    engine: &Engine,
    file: &Path,
    sources: &Sources,
    made: &JobOutput,
) -> Result<CompiledPlan, Problems> {
    let (ops, registries) = (&engine.ops().and_builtin(), &**engine.registries());
    let mut problems = Problems::default();
    let mut faults = made.faults.clone();
    let Some(plan) = &made.plan else {
        if faults.is_empty() {
            faults.push(Fault::maybe(None, "the file describes no plan"));
        }
        tell(sources, &faults, &mut problems);
        return Err(problems.in_order());
    };
    let mut assembled = assemble(made, plan, (ops, registries), &mut faults);
    faults.extend(misnamed(file, made, &assembled.json));
    tell(sources, &faults, &mut problems);
    assembled.json.insert("built_by".to_owned(), built_by(sources));
    let mut text = serde_json::to_string_pretty(&sorted(&Value::Object(assembled.json.clone())))
        .expect("a value without maps of anything but text can be written");
    text.push('\n');
    let base = file.parent().unwrap_or(Path::new(""));
    let places = Places { made, plan, assembled: &assembled, ops, sources };
    let find = |problem: &Problem, told| places.find(&in_typescript(problem, ops), told);
    let compiled = engine.compile(&text, base);
    if !faults.is_empty() || compiled.is_err() {
        let kinds = wrong_kinds(&assembled.json, registries);
        problems.errors.extend(kinds.iter().filter_map(|problem| find(problem, true)));
    }
    match compiled {
        Ok(compiled) if problems.is_fine() => {
            let warnings = compiled.warnings().iter().filter_map(|warning| find(warning, false)).collect();
            let warnings = Problems { warnings, ..Problems::default() }.in_order().warnings;
            Ok(CompiledPlan { plan: compiled.warned(warnings), text })
        }
        Ok(_) => Err(problems.in_order()),
        Err(Error::Plan(found)) => {
            let told = !faults.is_empty();
            problems.errors.extend(found.errors.iter().filter_map(|problem| find(problem, told)));
            // For a plan with reported errors, the loader may have nothing new.
            if problems.is_fine() {
                problems.errors.extend(found.errors);
            }
            problems.warnings.extend(found.warnings.iter().filter_map(|problem| find(problem, told)));
            Err(problems.in_order())
        }
        Err(error) => {
            problems.error(sources.problem(None, error.to_string(), None));
            Err(problems)
        }
    }
}

fn tell(sources: &Sources, faults: &[Fault], problems: &mut Problems) {
    for fault in faults {
        problems.error(sources.problem(fault.at, &fault.what, fault.help.clone()));
    }
}

/// A plan is called as its file is, so that it can be found.
fn misnamed(file: &Path, made: &JobOutput, json: &Map<String, Value>) -> Option<Fault> {
    let name = json.get("plan_name")?.as_str()?;
    let file = file.file_name()?.to_string_lossy();
    let stem = file.strip_suffix(ENDING).unwrap_or(&file);
    if name == stem {
        return None;
    }
    let site = made.plan.as_ref().and_then(|plan| made.sites.get(plan.site? as usize));
    let at = site.and_then(|site| site.options.iter().find(|(option, ..)| option == "name"));
    let fault =
        Fault::maybe(at.map(|(_, _, at)| *at), format!("the plan is called `{name}`, its file `{file}`"));
    Some(fault.help(format!("call both the same: `{stem}`, or {name}{ENDING}")))
}

fn built_by(sources: &Sources) -> Value {
    json!({
        "tool": "anabranch",
        "tool_version": env!("CARGO_PKG_VERSION"),
        "backend": "quickjs",
        "bundle_digest": sources.digest(),
    })
}

/// The same, with the fields of all objects sorted, regardless of the order of maps in this build.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let names: BTreeSet<&String> = fields.keys().collect();
            names.into_iter().map(|name| (name.clone(), sorted(&fields[name]))).collect::<Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}
