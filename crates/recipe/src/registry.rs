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
    /// An empty set of functions.
    pub fn none() -> Functions {
        Functions::default()
    }

    /// The functions built into this crate.
    pub fn builtin() -> Functions {
        let mut functions = Functions::none();
        crate::functions::add_all(&mut functions);
        functions
    }

    /// Adds a function.
    ///
    /// # Panics
    ///
    /// If there is already a function with this id, because the values of both would have the same address. Use another
    /// name or version.
    pub fn add(&mut self, function: impl Function) -> &mut Functions {
        let function: Arc<dyn Function> = Arc::new(function);
        let id = function.signature().id.clone();
        let before = self.by_id.insert(id.clone(), function);
        assert!(before.is_none(), "there is a function `{id}` already; choose another name or version");
        self
    }

    /// Adds a function of whole inputs that accepts any parameters. It may be slow, because it runs on a thread for
    /// blocking work.
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

    /// Adds a function of whole inputs with this signature. Parameters are checked before the body is called. Omitted
    /// parameters have their default values. A body that runs long calls [`Arguments::check_budget`] now and then, so
    /// that it stops when no caller waits for it any more or its time is over.
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
            Ok(Box::new(move |inputs, budget| {
                body(&inputs, &Arguments::new(&declared, &given).within(budget))
            }))
        }))
    }

    /// The function with this id.
    pub fn get(&self, id: &FunctionId) -> Option<&Arc<dyn Function>> {
        self.by_id.get(id)
    }

    /// The function with the most similar name: another version, or a name that differs by a letter or two.
    pub fn near(&self, id: &FunctionId) -> Option<FunctionId> {
        let name = closest(&id.name, self.by_id.keys().map(|id| id.name.as_str()))?;
        self.by_id.keys().rfind(|id| id.name == name).cloned()
    }

    /// All functions, sorted by name.
    pub fn list(&self) -> impl Iterator<Item = &Arc<dyn Function>> {
        self.by_id.values()
    }
}

/// A placeholder for an address that is not used.
pub(crate) const NO_ADDRESS: Address = Address::from_bytes([0; 32]);

/// Joins chunks. A single chunk is not copied.
pub(crate) fn join(mut chunks: Chunks) -> Bytes {
    match chunks.len() {
        0 => Bytes::new(),
        1 => chunks.remove(0),
        _ => chunks.concat().into(),
    }
}

/// Checks the inputs and parameters of a call against the signature, as far as possible without the inputs' bytes.
pub fn check(signature: &Signature, inputs: usize, params: &Params) -> Result<(), Fault> {
    check_known(signature, params)?;
    check_declared(signature, inputs, params)
}

/// Checks the number of inputs and the declared parameters: none is missing, and each has an allowed value.
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

/// Checks that the function declares all parameters. A recipe of ours with other parameters is not added. In Deriva's
/// recipes they are ignored, as Deriva does.
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

/// Checks that a call could begin. This includes the checks by the function itself.
pub fn check_call(function: &dyn Function, inputs: usize, params: &Params) -> Result<(), Fault> {
    check(function.signature(), inputs, params)?;
    // The sizes of the inputs are not known yet, as in a fused run.
    let (sizes, addresses) = (vec![u64::MAX; inputs], vec![NO_ADDRESS; inputs]);
    let budget = CallBudget::unlimited();
    let call = Call::new(function.signature(), params, &sizes, &budget).of(&addresses);
    match function.begin(&call) {
        Err(fault @ Fault::Param { .. }) => Err(fault),
        // Problems that depend on the inputs are reported once the inputs exist.
        Ok(_) | Err(_) => Ok(()),
    }
}
