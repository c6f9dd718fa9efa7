//! Functions of any bytes.

use bytes::Bytes;

use crate::function::{Arity, Call, Fault, Function, Holds, Kernel, Out, Signature};
use crate::recipe::FunctionId;
use crate::registry::Functions;

pub(super) fn add(functions: &mut Functions) {
    functions.add(Joined(signature("identity", "The input as it is.", Arity::exactly(1))));
    functions.add(Joined(signature("concat", "All inputs, end to end.", Arity::at_least(0))));
}

fn signature(name: &'static str, about: &'static str, inputs: Arity) -> Signature {
    Signature {
        id: FunctionId::new(name, "1.0.0"),
        about: about.into(),
        inputs,
        params: Vec::new(),
        other_params: false,
        holds: Holds::Chunks,
        nanos_per_kib: 5,
    }
}

/// Gives all inputs, one behind the other.
struct Joined(Signature);

impl Function for Joined {
    fn signature(&self) -> &Signature {
        &self.0
    }

    fn begin(&self, _: &Call<'_>) -> Result<Box<dyn Kernel>, Fault> {
        Ok(Box::new(Passing))
    }
}

struct Passing;

impl Kernel for Passing {
    fn push(&mut self, _: usize, chunk: Bytes, out: &mut Out) -> Result<(), Fault> {
        out.push(chunk);
        Ok(())
    }
}
