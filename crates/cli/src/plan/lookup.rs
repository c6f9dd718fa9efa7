//! Plans by name: finds the file of a name on the command line, and compiles it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anabranch_plan::{Engine, Plan, Problem, Problems, with_lines};
pub(super) use anabranch_plan_ts::{BUILT, SOURCE};
use anabranch_plan_ts::{CompiledPlan, Compiler, Outcome, import_root, plan_files};
use anabranch_text::closest;

use super::project_args::{PROJECT_FILE, no_folder};
use crate::failure::Failure;
use crate::{out, worker};

/// The plan of a name. The name is a file if the file exists or the name ends like one. Otherwise it is a plan of the
/// folder, and its source is preferred if there is one.
pub(crate) fn plan(engine: &Engine, name: &str) -> Result<Plan, Failure> {
    match found(engine, name)? {
        PlanLocation::Source(file) => Ok(built(engine, &file)?.plan),
        PlanLocation::File(file) => {
            let base = file.parent().unwrap_or(Path::new(""));
            let text = read(&file)?;
            engine.compile(&text, base).map_err(|error| placed(error, &file, &text))
        }
        PlanLocation::Name => engine.plan(name).map_err(|error| match (engine.folder(), &error) {
            (Some(folder), anabranch_plan::Error::Plan(_)) => {
                let file = folder.join(format!("{name}{BUILT}"));
                // A file that has changed since then has other lines, and the problems have none.
                placed(error, &file, &std::fs::read_to_string(&file).unwrap_or_default())
            }
            _ => unknown(engine, name, error),
        }),
    }
}

/// The failure of a refused plan file, with the lines of the file.
fn placed(error: anabranch_plan::Error, file: &Path, text: &str) -> Failure {
    match error {
        anabranch_plan::Error::Plan(problems) => {
            Failure::Refused(with_lines(&file.display().to_string(), text, problems).in_order())
        }
        error => error.into(),
    }
}

/// The warnings of a plan, with the lines of its file if it is JSON.
pub(super) fn warnings(engine: &Engine, name: &str, plan: &Plan) -> Vec<Problem> {
    let warnings = Problems { errors: Vec::new(), warnings: plan.warnings().to_vec() };
    let file = match found(engine, name) {
        _ if warnings.warnings.is_empty() => None,
        Ok(PlanLocation::File(file)) => Some(file),
        Ok(PlanLocation::Name) => engine.folder().map(|folder| folder.join(format!("{name}{BUILT}"))),
        _ => None,
    };
    match file.and_then(|file| Some((std::fs::read_to_string(&file).ok()?, file))) {
        Some((text, file)) => with_lines(&file.display().to_string(), &text, warnings).in_order().warnings,
        None => warnings.warnings,
    }
}

/// The JSON text of the plan of a name.
pub(super) fn text(engine: &Engine, name: &str) -> Result<String, Failure> {
    match (found(engine, name)?, engine.folder()) {
        (PlanLocation::Source(file), _) => Ok(built(engine, &file)?.text),
        (PlanLocation::File(file), _) => read(&file),
        (PlanLocation::Name, Some(folder)) if names(engine)?.iter().any(|other| other == name) => {
            read(&folder.join(format!("{name}{BUILT}")))
        }
        (PlanLocation::Name, folder) => {
            let folder = folder.map(Path::to_owned);
            let error = anabranch_plan::Error::NoPlan { name: name.to_owned(), folder, cause: None };
            Err(unknown(engine, name, error))
        }
    }
}

/// The location of a plan.
enum PlanLocation {
    /// A file to compile.
    Source(PathBuf),
    /// A file to read.
    File(PathBuf),
    /// A plan of the folder.
    Name,
}

fn found(engine: &Engine, name: &str) -> Result<PlanLocation, Failure> {
    let file = Path::new(name);
    if name.ends_with(SOURCE) {
        return Ok(PlanLocation::Source(file.to_owned()));
    }
    if file.is_file() || name.ends_with(BUILT) {
        return Ok(PlanLocation::File(file.to_owned()));
    }
    // A name is not a path, so it cannot reach anything outside of the folder.
    let is_name = engine.registries().limits.plan_name.is_match(name);
    let source = engine.folder().filter(|_| is_name).map(|folder| folder.join(format!("{name}{SOURCE}")));
    // The type of the file does not matter, even if it is a dangling link. Reading it reports the error.
    Ok(source
        .filter(|source| source.symlink_metadata().is_ok())
        .map_or(PlanLocation::Name, PlanLocation::Source))
}

/// Compiles a plan from its source.
pub(super) fn built(engine: &Engine, file: &Path) -> Result<CompiledPlan, Failure> {
    Ok(compile(engine, file).built?)
}

/// Compiles a plan from its source, and lists the files that it depends on. The output of its code goes to stderr.
pub(super) fn compile(engine: &Engine, file: &Path) -> Outcome {
    let outcome = Compiler::new(worker::here()).compile(engine, file, &import_root(engine, file));
    outcome.printed.iter().for_each(|line| out::note(line));
    outcome
}

/// Warns if a built plan differs from the source beside it.
pub(super) fn warn_if_behind(engine: &Engine, name: &str) {
    let Some(stem) = name.strip_suffix(BUILT) else { return };
    let source = PathBuf::from(format!("{stem}{SOURCE}"));
    if !source.is_file() {
        return;
    }
    let parsed = |text: &str| -> Option<serde_json::Value> {
        let mut plan: serde_json::Value = serde_json::from_str(text).ok()?;
        // A difference in the compiler's version does not matter.
        plan.as_object_mut()?.remove("built_by");
        Some(plan)
    };
    let same = match (compile(engine, &source).built, read(Path::new(name))) {
        (Ok(built), Ok(text)) => parsed(&built.text) == parsed(&text),
        _ => false,
    };
    if !same {
        let source = source.display();
        out::note(&format!(
            "warning: {name} differs from {source}; `anabranch plan build` compiles it again"
        ));
    }
}

fn read(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file)
        .map_err(|error| Failure::of(format!("cannot read {}: {error}", file.display())))
}

/// The names of the plans in the engine's folder, in order.
pub(super) fn names(engine: &Engine) -> Result<Vec<String>, Failure> {
    Ok(files(engine, &[SOURCE, BUILT])?.into_keys().collect())
}

/// The files of the engine's folder with these endings, by the names of their plans, in order.
pub(super) fn files(engine: &Engine, endings: &[&str]) -> Result<BTreeMap<String, PathBuf>, Failure> {
    let folder = engine.folder().ok_or_else(no_folder)?;
    plan_files(folder, endings)
        .map_err(|error| Failure::of(format!("cannot read the folder {}: {error}", folder.display())))
}

/// The failure of an unknown plan: the places that were searched, and the known plans.
fn unknown(engine: &Engine, name: &str, error: anabranch_plan::Error) -> Failure {
    if !matches!(error, anabranch_plan::Error::NoPlan { .. }) {
        return error.into();
    }
    if engine.folder().is_none() {
        return Failure::of(format!(
            "there is no file {name}, and no plan folder to look for the name in; give --plans DIR, or write one \
             into {PROJECT_FILE}"
        ));
    }
    let names = match names(engine) {
        Ok(names) => names,
        Err(failure) => return failure,
    };
    let mut what = error.to_string();
    match (closest(name, names.iter().map(String::as_str)), &names[..]) {
        (Some(near), _) => what.push_str(&format!("; did you mean `{near}`?")),
        (None, []) => what.push_str("; there is none at all (`anabranch plan new NAME` makes one)"),
        (None, names) => what.push_str(&format!("; there are: {}", names.join(", "))),
    }
    Failure::of(what)
}
