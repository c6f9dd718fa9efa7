//! The functions that recipes may name.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_content::Address;
use anabranch_text::closest;
use bytes::Bytes;

use crate::arguments::{Arguments, missing};
use crate::budget::CallBudget;
use crate::function::{Call, Chunks, Fault, Function};
use crate::param::Param;
use crate::recipe::{FunctionId, Params};
use crate::signature::{Arity, Signature};
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

    /// Adds a function of whole inputs that takes any parameters. It may take its time: it is called on a thread for
    /// such work.
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
        body: impl Fn(&[Bytes], &Arguments<'_>) -> Result<Bytes, Fault> + Send + Sync + 'static,
    ) -> &mut Functions {
        let signature = Signature::new(FunctionId::new(name, version), "A function of whole inputs.");
        let signature = signature.inputs(inputs).nanos_per_kib(Signature::OPAQUE);
        self.add_whole_as(Signature { other_params: true, ..signature }, body)
    }

    /// Adds a function of whole inputs with this signature. Parameters are checked before the body is called, and those
    /// that a recipe leaves out have their defaults.
    ///
    /// ```
    /// # use anabranch_recipe::{Functions, FunctionId, ParamKind, Signature};
    /// let signature = Signature::new(FunctionId::new("indent", "1"), "The text, moved to the right.")
    ///     .may("width", ParamKind::int(0, 80), 4, "how many spaces");
    /// Functions::builtin().add_whole_as(signature, |inputs, arguments| {
    ///     Ok([" ".repeat(arguments.count("width")?).as_bytes(), &inputs[0]].concat().into())
    /// });
    /// ```
    pub fn add_whole_as(
        &mut self,
        signature: Signature,
        body: impl Fn(&[Bytes], &Arguments<'_>) -> Result<Bytes, Fault> + Send + Sync + 'static,
    ) -> &mut Functions {
        let (body, declared) = (Arc::new(body), Arc::new(signature.params.clone()));
        self.add(whole(signature, move |call| {
            let (body, declared, given) = (Arc::clone(&body), Arc::clone(&declared), call.given().clone());
            Ok(Box::new(move |inputs, _| body(&inputs, &Arguments::new(&declared, &given))))
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
    check_declared(signature, inputs, params)
}

/// Checks the number of inputs, and the declared parameters: none is missing, and each is of its kind and within its
/// bounds.
pub(crate) fn check_declared(signature: &Signature, inputs: usize, params: &Params) -> Result<(), Fault> {
    if !signature.inputs.takes(inputs) {
        return Err(Fault::Inputs { takes: signature.inputs, got: inputs });
    }
    let check = |param: &Param| match params.get(&*param.name) {
        Some(value) => param.check(value),
        None if param.is_needed() => Err(missing(param)),
        None => Ok(()),
    };
    signature.params.iter().try_for_each(check)
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
    let budget = CallBudget::unlimited();
    let call = Call::new(function.signature(), params, &sizes, &budget).of(&addresses);
    match function.begin(&call) {
        Err(fault @ Fault::Param { .. }) => Err(fault),
        // What depends on inputs is found out when they are there.
        Ok(_) | Err(_) => Ok(()),
    }
}
