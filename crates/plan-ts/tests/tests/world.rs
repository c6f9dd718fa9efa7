//! Sources in a folder of their own, and an engine with the example registry.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anabranch_plan::source::{Fault, Memory, MemoryData, Source};
use anabranch_plan::{Config, Engine, Problems, Registries};
use anabranch_plan_ts::{CompiledPlan, Compiler};
use anabranch_testkit::Sim;

/// How long trips take, in milliseconds, by how their keys begin.
const DELAYS: [(&str, u64); 4] = [("user:", 9), ("follow:", 14), ("recommendation:", 19), ("media:", 24)];

pub(crate) fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/plans")
}

/// An engine on the virtual clock, with the data of the examples and a store at some distance.
pub(crate) fn engine(sim: &Sim) -> Engine {
    let config = config(sim);
    let runs = sim.engine(&config.runs);
    Engine::on(runs, config)
}

/// The parts of such an engine.
pub(crate) fn config(sim: &Sim) -> Config {
    let (registries, _) = Registries::load(&examples().join("registry"), None).unwrap();
    let mut data = MemoryData::default();
    data.add_file(&examples().join("data.json"), None).unwrap();
    let memory = Memory::new("ep_0001", Arc::new(data), sim.clock());
    let slow = |memory: Memory, (prefix, delay): (&str, u64)| {
        memory.with_fault(prefix, Fault { delay: Duration::from_millis(delay), ..Fault::default() })
    };
    let source: Arc<dyn Source> = Arc::new(DELAYS.into_iter().fold(memory, slow));
    Config::new(registries, vec![source])
}

/// A folder with these files in it, and nothing else.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(test: &str, files: &[(&str, &str)]) -> Folder {
        // Tests run at once, each in a thread that is called as it is.
        let thread = std::thread::current().name().unwrap_or_default().replace("::", "-");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("plan-ts").join(thread).join(test);
        let _ = std::fs::remove_dir_all(&folder);
        for (name, text) in files {
            let file = folder.join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        Folder(folder)
    }

    /// Compiles one of them.
    pub(crate) fn compile(&self, name: &str) -> Result<CompiledPlan, Problems> {
        let sim = Sim::new(1);
        Compiler::in_place().compile(&engine(&sim), &self.0.join(name), &self.0).built
    }

    /// The lines that the code of one of them prints.
    pub(crate) fn printed(&self, name: &str) -> Vec<String> {
        let outcome = Compiler::in_place().compile(&engine(&Sim::new(1)), &self.0.join(name), &self.0);
        let folder = format!("{}/", self.0.display());
        outcome.printed.iter().map(|line| line.replace(&folder, "")).collect()
    }

    /// The errors of one of them, as a user sees them.
    pub(crate) fn problems(&self, name: &str) -> String {
        match self.compile(name) {
            Ok(built) => {
                let warnings = built.plan.warnings().to_vec();
                self.told(&Problems { warnings, ..Problems::default() })
            }
            Err(problems) => self.told(&problems),
        }
    }

    fn told(&self, problems: &Problems) -> String {
        let mut text = String::new();
        let errors = problems.errors.iter().map(|problem| ("error", problem));
        for (kind, problem) in errors.chain(problems.warnings.iter().map(|problem| ("warning", problem))) {
            text.push_str(&format!("{}\n", problem.report(kind)));
        }
        text.replace(&format!("{}/", self.0.display()), "")
    }
}

/// The errors of a plan called `a` whose `build` has this body, below the line that imports everything.
pub(crate) fn problems_of(test: &str, body: &str) -> String {
    Folder::new(test, &[("a.plan.ts", &plan(body))]).problems("a.plan.ts")
}

/// The JSON of a plan called `a` whose `build` has this body, but for how it was built.
pub(crate) fn json_of(test: &str, body: &str) -> serde_json::Value {
    let folder = Folder::new(test, &[("a.plan.ts", &plan(body))]);
    let built = match folder.compile("a.plan.ts") {
        Ok(built) => built,
        Err(problems) => panic!("{}", folder.told(&problems)),
    };
    let mut json: serde_json::Value = serde_json::from_str(&built.text).unwrap();
    json.as_object_mut().unwrap().remove("built_by");
    json
}

fn plan(body: &str) -> String {
    format!(
        "import {{ definePlan, E, Pred }} from \"anabranch\";\n\
         export default definePlan({{ name: \"a\", build: (ctx) => {{\n\
         const v = ctx.viewer({{ endpoint: EP.redis.redis_default }});\n\
         {body}\n}} }});\n"
    )
}
