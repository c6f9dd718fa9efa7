//! Calls a function on bytes in hand, as the executor would.

use bytes::Bytes;

use crate::function::{Call, Fault, Function, Kernel, Open, Out};
use crate::recipe::Params;
use crate::registry::check;

/// What a function gives for these inputs, each in chunks; empty chunks are left out.
///
/// How the inputs are cut must not show in what comes out: a test of a function calls it with several cuts.
///
/// ```
/// # use anabranch_recipe::{Functions, Params, call};
/// let functions = Functions::builtin();
/// let concat = functions.get(&"concat/1.0.0".parse()?).expect("a function of this crate");
/// let given = call(&**concat, &[vec!["all at".into()], vec![" ".into(), "sea".into()]], &Params::new())?;
/// assert_eq!(given.concat(), b"all at sea");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn call(function: &dyn Function, inputs: &[Vec<Bytes>], params: &Params) -> Result<Vec<Bytes>, Fault> {
    check(function.signature(), inputs.len(), params)?;
    let size = |chunks: &Vec<Bytes>| chunks.iter().map(|chunk| chunk.len() as u64).sum();
    let sizes: Vec<u64> = inputs.iter().map(size).collect();
    let mut kernel = function.begin(&Call { params, sizes: &sizes })?;
    let mut left: Vec<_> =
        inputs.iter().map(|chunks| chunks.iter().filter(|chunk| !chunk.is_empty())).collect();
    let mut ended = vec![false; inputs.len()];
    let (mut first, mut out, mut given) = (0, Out::default(), Vec::new());
    while let Some(input) = kernel.wants(&Open { ended: &ended, first }) {
        match left[input].next() {
            Some(chunk) => kernel.push(input, chunk.clone(), &mut out)?,
            None => {
                ended[input] = true;
                first = ended.iter().position(|ended| !ended).unwrap_or(ended.len());
                kernel.end(input, &mut out)?;
            }
        }
        take(&mut *kernel, &mut out, &mut given)?;
    }
    kernel.finish(&mut out)?;
    take(&mut *kernel, &mut out, &mut given)?;
    Ok(given)
}

/// Takes all there is, however often the kernel pauses.
fn take(kernel: &mut dyn Kernel, out: &mut Out, given: &mut Vec<Bytes>) -> Result<(), Fault> {
    loop {
        let (chunks, paused) = out.take();
        given.extend(chunks);
        if !paused {
            return Ok(());
        }
        kernel.resume(out)?;
    }
}
