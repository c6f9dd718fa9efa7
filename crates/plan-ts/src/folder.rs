//! The plans of a folder: `NAME.plan.ts`, which people write, and `NAME.plan.json`, which the engine reads.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use anabranch_plan::{Engine, Error, Plan, Problem, Problems, with_lines};

use crate::compiler::Compiler;
use crate::sources::{ENDING, SourceFile, look};

/// The extension of plans that people write.
pub const SOURCE: &str = ENDING;
/// The extension of plans that the engine reads.
pub const BUILT: &str = ".plan.json";

/// A plan of a folder, or all that is wrong with it.
pub struct LoadedPlan {
    /// The files that it depends on, including missing ones.
    pub files: Vec<SourceFile>,
    /// The plan.
    pub plan: Result<Plan, Problems>,
    /// The lines that its code printed with `console.log`, each with its place.
    pub printed: Vec<String>,
}

/// The files of a folder that have one of these extensions, by the names of their plans, in order; each name once.
pub fn plan_files(folder: &Path, extensions: &[&str]) -> io::Result<BTreeMap<String, PathBuf>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let file = entry?.file_name();
        // Editors keep locks and copies under names that begin with a dot.
        let seen = file.to_str().filter(|file| !file.starts_with('.'));
        let name = seen.and_then(|file| extensions.iter().find_map(|ending| file.strip_suffix(ending)));
        found.extend(name.map(|name| (name.to_owned(), folder.join(&file))));
    }
    Ok(found)
}

/// The folder that the imports of a plan must be in: the engine's plan folder if the plan is in there, or else the
/// folder of the plan itself.
pub fn import_root(engine: &Engine, file: &Path) -> PathBuf {
    let own = file.parent().unwrap_or(Path::new(""));
    let within = |folder: &&Path| match (file.canonicalize(), folder.canonicalize()) {
        (Ok(file), Ok(folder)) => file.starts_with(folder),
        _ => false,
    };
    engine.folder().filter(within).unwrap_or(own).to_owned()
}

impl Compiler {
    /// Loads the plan with this name from the current files in the engine's folder. The source is preferred if there is
    /// one.
    pub fn load(&self, engine: &Engine, name: &str) -> LoadedPlan {
        let folder = engine.folder().unwrap_or(Path::new(""));
        let (source, built) = (folder.join(format!("{name}{SOURCE}")), folder.join(format!("{name}{BUILT}")));
        // A dangling link is a source, too. The error of reading it is reported.
        if source.symlink_metadata().is_ok() {
            let outcome = self.compile(engine, &source, &import_root(engine, &source));
            let plan = outcome.built.map(|built| built.plan);
            let mut files = outcome.files;
            files.extend(plan.iter().flat_map(|plan| named_files(plan, folder)));
            return LoadedPlan { files, plan, printed: outcome.printed };
        }
        let mut files = vec![
            SourceFile { look: look(&built), path: built.clone() },
            // A source that appears later takes the place of the JSON.
            SourceFile { look: None, path: source },
        ];
        let plan = load_json(engine, &built, folder);
        files.extend(plan.iter().flat_map(|plan| named_files(plan, folder)));
        LoadedPlan { files, plan, printed: Vec::new() }
    }
}

/// The files that a plan names, such as models.
fn named_files(plan: &Plan, folder: &Path) -> impl Iterator<Item = SourceFile> {
    plan.compiled().origin.files.iter().map(|(name, _)| {
        let path = folder.join(name);
        SourceFile { look: look(&path), path }
    })
}

fn load_json(engine: &Engine, file: &Path, folder: &Path) -> Result<Plan, Problems> {
    let shown = file.display().to_string();
    let text = std::fs::read_to_string(file)
        .map_err(|error| Problem::new(&shown, format!("cannot be read: {error}")))?;
    let plan = engine.compile(&text, folder).map_err(|error| match error {
        Error::Plan(problems) => placed(&shown, with_lines(&shown, &text, problems).in_order()),
        error => Problem::new(&shown, error.to_string()).into(),
    })?;
    let warnings = Problems { errors: Vec::new(), warnings: plan.warnings().to_vec() };
    Ok(plan.warned(with_lines(&shown, &text, warnings).in_order().warnings))
}

/// The problems, each with its file: a text that is not JSON at all has only lines.
fn placed(file: &str, mut problems: Problems) -> Problems {
    for problem in problems.errors.iter_mut().filter(|problem| !problem.place.starts_with(file)) {
        problem.place = format!("{file}: {}", problem.place);
    }
    problems
}
