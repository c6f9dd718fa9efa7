//! The functions that recipes may name.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_content::Address;
use anabranch_text::closest;
use bytes::Bytes;

use crate::budget::CallBudget;
use crate::function::{Arity, BeginCost, Call, Chunks, Fault, Function, Holds, MemoryNeed, Param, Signature};
use crate::recipe::{FunctionId, Params};
use crate::whole::whole;

/// Functions by id.
#[derive(Clone, Default)]
pub struct Functions {
    by_id: BTreeMap<FunctionId, Arc<dyn Function>>,
}

impl Functions {
    /// None.
    pub fn none() -> Functions {
        Functions::default()
    }

    /// Those that come with this crate.
    pub fn builtin() -> Functions {
        let mut functions = Functions::none();
        crate::functions::add_all(&mut functions);
        functions
    }

    /// Adds a function.
    ///
    /// # Panics
    ///
    /// If there is a function with the same id: the values of both would have the same address. Another function needs
    /// another name or version.
    pub fn add(&mut self, function: impl Function) -> &mut Functions {
        let function: Arc<dyn Function> = Arc::new(function);
        let id = function.signature().id.clone();
        let before = self.by_id.insert(id.clone(), function);
        assert!(before.is_none(), "there is a function `{id}` already; choose another name or version");
        self
    }

    /// Adds a function of whole inputs. It may take its time: it is called on a thread for such work.
    ///
    /// ```
    /// # use anabranch_recipe::{Arity, Functions};
    /// let mut functions = Functions::none();
    /// functions.add_whole("first", "1", Arity::at_least(1), |inputs, _| Ok(inputs[0].clone()));
    /// assert_eq!(functions.list().count(), 1);
    /// ```
    pub fn add_whole(
        &mut self,
        name: &str,
        version: &str,
        inputs: Arity,
        body: impl Fn(&[Bytes], &Params) -> Result<Bytes, Fault> + Send + Sync + 'static,
    ) -> &mut Functions {
        let signature = Signature {
            id: FunctionId::new(name, version),
            about: "A function of whole inputs.".into(),
            inputs,
            params: Vec::new(),
            other_params: true,
            holds: Holds::Everything,
            nanos_per_kib: Signature::OPAQUE,
            begin: BeginCost::Trifling,
            memory: MemoryNeed::WHOLE,
        };
        let body = Arc::new(body);
        self.add(whole(signature, move |call| {
            let (body, params) = (Arc::clone(&body), call.params.clone());
            Ok(Box::new(move |inputs, _| body(&inputs, &params)))
        }))
    }

    /// The function with this id.
    pub fn get(&self, id: &FunctionId) -> Option<&Arc<dyn Function>> {
        self.by_id.get(id)
    }

    /// The one whose name is nearest: another version, or a letter or two away.
    pub fn near(&self, id: &FunctionId) -> Option<FunctionId> {
        let name = closest(&id.name, self.by_id.keys().map(|id| id.name.as_str()))?;
        self.by_id.keys().rfind(|id| id.name == name).cloned()
    }

    /// All of them, by name.
    pub fn list(&self) -> impl Iterator<Item = &Arc<dyn Function>> {
        self.by_id.values()
    }
}

/// Chunks as one; a single one is not copied.
pub(crate) fn join(mut chunks: Chunks) -> Bytes {
    match chunks.len() {
        0 => Bytes::new(),
        1 => chunks.remove(0),
        _ => chunks.concat().into(),
    }
}

/// Checks that a call has the inputs and parameters of the signature, as far as that can be told before its inputs are
/// there.
pub fn check(signature: &Signature, inputs: usize, params: &Params) -> Result<(), Fault> {
    check_known(signature, params)?;
    check_needed(signature, inputs, params)
}

/// Checks the number of inputs, and that no parameter is missing.
pub(crate) fn check_needed(signature: &Signature, inputs: usize, params: &Params) -> Result<(), Fault> {
    if !signature.inputs.takes(inputs) {
        return Err(Fault::Inputs { takes: signature.inputs, got: inputs });
    }
    let missing = |param: &&Param| param.needed && !params.contains_key(&*param.name);
    match signature.params.iter().find(missing) {
        Some(param) => Err(Fault::param(&param.name, format!("missing: {}", param.about))),
        None => Ok(()),
    }
}

/// Checks that the function takes all parameters. A recipe of ours that has others is not added; a function ignores
/// those of Deriva's recipes, as Deriva does.
pub(crate) fn check_known(signature: &Signature, params: &Params) -> Result<(), Fault> {
    let known = |name: &str| signature.params.iter().any(|param| param.name == name);
    let Some(name) = params.keys().find(|name| !signature.other_params && !known(name)) else {
        return Ok(());
    };
    let names: Vec<&str> = signature.params.iter().map(|param| &*param.name).collect();
    let has =
        if names.is_empty() { "it takes none".to_owned() } else { format!("it takes {}", names.join(", ")) };
    Err(Fault::param(name, format!("unknown; {has}")))
}

/// Whether a call could begin: also what a function itself finds wrong with its parameters.
pub fn check_call(function: &dyn Function, inputs: usize, params: &Params) -> Result<(), Fault> {
    check(function.signature(), inputs, params)?;
    // How large inputs are is not known yet, as inside a fused run.
    let (sizes, addresses) = (vec![u64::MAX; inputs], vec![Address::of(b""); inputs]);
    let call = Call { params, inputs: &addresses, sizes: &sizes, budget: &CallBudget::unlimited() };
    match function.begin(&call) {
        Err(fault @ Fault::Param { .. }) => Err(fault),
        // What depends on inputs is found out when they are there.
        Ok(_) | Err(_) => Ok(()),
    }
}
