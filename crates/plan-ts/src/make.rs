//! Makes a plan of its sources: finds them, rewrites them, runs them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::job::{At, Fault, Files, ImportResolution, Job, JobOutput, Site};
use crate::sandbox::{self, Program, ProgramFault, ProgramOutput, Target};
use crate::surface::{PACKAGES, TYPES};
use crate::syntax::{self, Import, Scan, Unit};

/// The most files of a plan.
const MAX_FILES: usize = 200;

/// Does a job in this process. Untrusted code should run in its own process instead.
pub(crate) fn make(job: &Job, files: &mut dyn Files) -> JobOutput {
    let mut found = PlanFiles::default();
    found.find(job, files);
    let mut sites = Vec::new();
    let units = match found.rewrite(job, &mut sites) {
        Ok(units) if found.faults.is_empty() => units,
        other => {
            let faults = [found.faults, other.err().unwrap_or_default()].concat();
            return JobOutput { faults, ..JobOutput::default() };
        }
    };
    let modules = units.iter().map(|(number, unit)| (*number, unit.code.clone())).collect();
    let recorded = sandbox::run(job, Program { modules, imports: found.targets.clone() });
    let ProgramOutput { faults, plan, printed } = recorded;
    let faults = faults.into_iter().map(|said| found.place(said, &units, &sites)).collect();
    let printed = printed.into_iter().map(|line| {
        let at = line.stack.and_then(|(file, row, column)| {
            let start = units.get(&file)?.original(row, column);
            Some(At { file, start, end: start })
        });
        (at, line.text)
    });
    JobOutput { faults, plan, sites, printed: printed.collect() }
}

/// The files of a plan, by number.
#[derive(Default)]
struct PlanFiles {
    sources: BTreeMap<u32, Source>,
    targets: BTreeMap<(u32, String), Target>,
    faults: Vec<Fault>,
}

struct Source {
    name: String,
    text: String,
    scan: Scan,
}

impl PlanFiles {
    /// Finds all files, beginning with the first, and reports their problems.
    fn find(&mut self, job: &Job, files: &mut dyn Files) {
        let mut queue = VecDeque::from([(0, job.file.clone(), job.text.clone())]);
        let mut known = BTreeSet::from([0]);
        while let Some((number, name, text)) = queue.pop_front() {
            let scan = match syntax::scan(number, &text) {
                Ok(scan) => scan,
                Err(faults) => {
                    self.faults.extend(faults);
                    continue;
                }
            };
            for import in &scan.imports {
                let new = self.import(number, import, files).filter(|(number, ..)| known.insert(*number));
                if known.len() > MAX_FILES {
                    let what = format!("a plan is made of at most {MAX_FILES} files");
                    self.faults.push(Fault::new(import.at, what));
                    return;
                }
                queue.extend(new);
            }
            self.sources.insert(number, Source { name, text, scan });
        }
    }

    /// Resolves an import. Returns the file if it is new.
    fn import(&mut self, from: u32, import: &Import, files: &mut dyn Files) -> Option<(u32, String, String)> {
        let key = (from, import.specifier.clone());
        if PACKAGES.contains(&import.specifier.as_str()) {
            self.targets.insert(key, Target::Package);
            return None;
        }
        match files.import(from, &import.specifier) {
            ImportResolution::File { number, name, text } => {
                self.targets.insert(key, Target::File(number));
                text.map(|text| (number, name, text))
            }
            ImportResolution::Refused { what, help } => {
                self.faults.push(Fault { what, help, at: Some(import.at) });
                None
            }
        }
    }

    /// All files as JavaScript, or everything wrong with any of them.
    fn rewrite(&self, job: &Job, sites: &mut Vec<Site>) -> Result<BTreeMap<u32, Unit>, Vec<Fault>> {
        let (mut units, mut faults) = (BTreeMap::new(), Vec::new());
        for (&number, source) in &self.sources {
            let is_type = |specifier: &str, name: &str| self.is_type(number, specifier, name);
            match syntax::rewrite(number, &source.text, &job.methods, &is_type, sites) {
                Ok(unit) => {
                    units.insert(number, unit);
                }
                Err(found) => faults.extend(found),
            }
        }
        if faults.is_empty() { Ok(units) } else { Err(faults) }
    }

    /// True if a name that a file imports is a type, wherever it is declared.
    fn is_type(&self, from: u32, specifier: &str, name: &str) -> bool {
        let mut seen = BTreeSet::new();
        let mut left = vec![(from, specifier, name)];
        while let Some((from, specifier, name)) = left.pop() {
            let number = match self.targets.get(&(from, specifier.to_owned())) {
                Some(Target::File(number)) => number,
                Some(Target::Package) if TYPES.contains(&name) => return true,
                _ => continue,
            };
            let Some(Source { scan, .. }) = self.sources.get(number) else { continue };
            if scan.types.contains(name) {
                return true;
            }
            if scan.values.contains(name) || !seen.insert((*number, name)) {
                continue;
            }
            left.extend(scan.forwards.iter().filter_map(|forward| match &forward.names {
                Some((there, here)) if here == name => {
                    Some((*number, forward.specifier.as_str(), there.as_str()))
                }
                Some(_) => None,
                // Everything is everything but the default.
                None => (name != "default").then_some((*number, forward.specifier.as_str(), name)),
            }));
        }
        false
    }

    /// A fault of the running code, with its place in the sources.
    fn place(&self, said: ProgramFault, units: &BTreeMap<u32, Unit>, sites: &[Site]) -> Fault {
        let option = |site: &Site| {
            let (_, _, value) = site.options.iter().find(|(name, ..)| Some(name) == said.option.as_ref())?;
            Some(*value)
        };
        let site = said.site.and_then(|site| sites.get(site as usize));
        let at = site.map(|site| option(site).unwrap_or(site.at));
        let at = at.or_else(|| {
            let (file, line, column) = said.stack?;
            let (text, start) = (&self.sources.get(&file)?.text, units.get(&file)?.original(line, column));
            let found = said.word.as_ref().and_then(|wanted| find(file, start, text, wanted));
            Some(found.unwrap_or_else(|| word(file, start, text)))
        });
        let fault = Fault { what: said.what, help: said.help, at };
        self.missing_export(&fault.what).unwrap_or(fault)
    }

    /// The JavaScript engine's error about a name that a module does not export, in our words: the engine knows neither
    /// the place nor the names of files.
    fn missing_export(&self, what: &str) -> Option<Fault> {
        let (name, module) =
            what.strip_prefix("SyntaxError: Could not find export '")?.split_once("' in module '")?;
        let module = module.strip_suffix('\'')?;
        let (target, module) = match module.strip_prefix("file:") {
            None => (Target::Package, module),
            Some(number) => {
                let number = number.parse().ok()?;
                (Target::File(number), self.sources.get(&number)?.name.as_str())
            }
        };
        let importers = self.sources.iter().filter(|(_, source)| source.text.contains(name));
        let mut imports = importers.flat_map(|(&number, source)| {
            source.scan.imports.iter().map(move |import| ((number, import.specifier.clone()), import.at))
        });
        let at = imports.find(|(key, _)| self.targets.get(key) == Some(&target)).map(|(_, at)| at);
        Some(Fault::maybe(at, format!("`{module}` does not export `{name}`")))
    }
}

/// The word that begins there, or the letter.
fn word(file: u32, start: u32, text: &str) -> At {
    let rest = text.get(start as usize..).unwrap_or_default();
    let length: usize = rest.chars().take_while(|letter| is_part(*letter)).map(char::len_utf8).sum();
    let length = length.max(rest.chars().next().map_or(0, char::len_utf8));
    At { file, start, end: start + length as u32 }
}

/// The first such word from there on.
fn find(file: u32, start: u32, text: &str, wanted: &str) -> Option<At> {
    let rest = text.get(start as usize..).filter(|_| !wanted.is_empty())?;
    let is_whole = |at: usize| {
        let (before, after) = (rest[..at].chars().next_back(), rest[at + wanted.len()..].chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    };
    let (at, _) = rest.match_indices(wanted).find(|(at, _)| is_whole(*at))?;
    let start = start + at as u32;
    Some(At { file, start, end: start + wanted.len() as u32 })
}

/// True if a letter can be part of a name.
fn is_part(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '$')
}

#[cfg(test)]
mod tests;
