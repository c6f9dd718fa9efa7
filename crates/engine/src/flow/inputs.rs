//! Inputs of a node: handles, and tuples and lists of them.

use std::any::Any;
use std::marker::PhantomData;
use std::sync::Arc;

use super::node::Node;
use super::work::{Value, Values};
use super::{Error, Flow, Name};
use crate::graph::{Edge, NodeId};

/// The inputs of a node: `()`, a [`Handle`], an [`optional`] one, or a tuple, `Vec`, array or slice of inputs.
pub trait Inputs {
    /// The type that the node's closure receives.
    type Values: Send + 'static;
    #[doc(hidden)]
    type Reader: InputReader<Values = Self::Values>;
    #[doc(hidden)]
    fn attach(self, uses: &mut Uses<'_>) -> Self::Reader;
}

/// One handle: a [`Node`], whose value is moved to its reader, or a `&Node`, whose value is cloned for it.
pub trait Handle {
    /// The type of the node's value.
    type Value: Send + 'static;
    #[doc(hidden)]
    type Reader: ReadOne<Value = Self::Value>;
    #[doc(hidden)]
    fn attach_as(self, edge: Edge, uses: &mut Uses<'_>) -> Self::Reader;
}

/// An input that may be missing; see [`optional`].
#[derive(Debug)]
pub struct Optional<H>(H);

/// Reads a value as an `Option`: `None` if its node failed or was dropped.
///
/// ```
/// use anabranch_engine::flow::optional;
/// # use anabranch_engine::{Config, Engine, Flow};
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let mut flow = Flow::new("optional");
/// let broken = flow.node::<u64>("broken").isolate().future((), |()| async { Err("no".into()) });
/// let sum = flow.node("sum").job(optional(broken), |broken, _| Ok(1 + broken.unwrap_or(0)));
/// let mut results = flow.run(&Engine::new(&Config::default())?).await?;
/// assert_eq!(results.take(sum)?, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
/// ```
pub fn optional<H: Handle>(handle: H) -> Optional<H> {
    Optional(handle)
}

/// Collects the edges of a node in the making.
pub struct Uses<'f> {
    pub(super) flow: &'f mut Flow,
    pub(super) name: &'f Name,
    pub(super) edges: Vec<(NodeId, Edge)>,
}

/// Reads the values of inputs when their node starts.
pub trait InputReader: Send + 'static {
    /// The values that the node's closure gets.
    type Values;
    /// Takes or clones them.
    fn read(&mut self, values: &mut Values) -> Self::Values;
}

/// Reads one value, if it exists.
pub trait ReadOne: Send + 'static {
    /// The value that the node's closure gets.
    type Value;
    /// Takes or clones it; `None` if the input failed or was dropped.
    fn read_one(&mut self, values: &mut Values) -> Option<Self::Value>;
}

/// Reads the value itself.
pub struct TakeValue<T>(NodeId, PhantomData<fn() -> T>);

/// Reads a clone of the value.
pub struct CloneValue<T>(NodeId, PhantomData<fn() -> T>);

/// Reads a value that must be there.
pub struct RequiredValue<R>(R);

/// Reads a value that may be missing.
pub struct Maybe<R>(R);

impl Flow {
    /// Whether a handle belongs to this flow. If not, the mistake is recorded.
    pub(super) fn owns<T>(&mut self, node: &Node<T>, reader: &Name) -> bool {
        let owns = Arc::ptr_eq(&self.identity, &node.flow);
        if !owns {
            self.mistake.get_or_insert_with(|| Error::OtherFlow { node: reader.clone() });
        }
        owns
    }
}

impl Uses<'_> {
    fn add<T>(&mut self, node: &Node<T>, edge: Edge) -> Option<NodeId> {
        let owns = self.flow.owns(node, self.name);
        owns.then(|| {
            self.edges.push((node.id, edge));
            node.id
        })
    }
}

impl<T: Send + 'static> Handle for Node<T> {
    type Value = T;
    type Reader = TakeValue<T>;

    fn attach_as(self, edge: Edge, uses: &mut Uses<'_>) -> TakeValue<T> {
        if let Some(node) = uses.add(&self, edge) {
            uses.flow.work.values.moved(node);
        }
        TakeValue(self.id, PhantomData)
    }
}

impl<T: Clone + Send + 'static> Handle for &Node<T> {
    type Value = T;
    type Reader = CloneValue<T>;

    fn attach_as(self, edge: Edge, uses: &mut Uses<'_>) -> CloneValue<T> {
        if let Some(node) = uses.add(self, edge) {
            uses.flow.work.values.shared(node, clone::<T>);
        }
        CloneValue(self.id, PhantomData)
    }
}

fn clone<T: Clone + Send + 'static>(value: &dyn Any) -> Value {
    Box::new(value.downcast_ref::<T>().expect("a handle has the type of its node's value").clone())
}

impl<H: Handle> Inputs for H {
    type Values = H::Value;
    type Reader = RequiredValue<H::Reader>;

    fn attach(self, uses: &mut Uses<'_>) -> Self::Reader {
        RequiredValue(self.attach_as(Edge::Needs, uses))
    }
}

impl<H: Handle> Inputs for Optional<H> {
    type Values = Option<H::Value>;
    type Reader = Maybe<H::Reader>;

    fn attach(self, uses: &mut Uses<'_>) -> Self::Reader {
        Maybe(self.0.attach_as(Edge::After, uses))
    }
}

impl<I: Inputs> Inputs for Vec<I> {
    type Values = Vec<I::Values>;
    type Reader = Vec<I::Reader>;

    fn attach(self, uses: &mut Uses<'_>) -> Self::Reader {
        self.into_iter().map(|input| input.attach(uses)).collect()
    }
}

impl<'a, T> Inputs for &'a [T]
where
    &'a T: Inputs,
{
    type Values = Vec<<&'a T as Inputs>::Values>;
    type Reader = Vec<<&'a T as Inputs>::Reader>;

    fn attach(self, uses: &mut Uses<'_>) -> Self::Reader {
        self.iter().map(|input| input.attach(uses)).collect()
    }
}

impl<'a, T> Inputs for &'a Vec<T>
where
    &'a T: Inputs,
{
    type Values = Vec<<&'a T as Inputs>::Values>;
    type Reader = Vec<<&'a T as Inputs>::Reader>;

    fn attach(self, uses: &mut Uses<'_>) -> Self::Reader {
        self.as_slice().attach(uses)
    }
}

impl<I: Inputs, const N: usize> Inputs for [I; N] {
    type Values = [I::Values; N];
    type Reader = [I::Reader; N];

    fn attach(self, uses: &mut Uses<'_>) -> Self::Reader {
        self.map(|input| input.attach(uses))
    }
}

impl<T: 'static> ReadOne for TakeValue<T> {
    type Value = T;

    fn read_one(&mut self, values: &mut Values) -> Option<T> {
        values.take(self.0)
    }
}

impl<T: Clone + 'static> ReadOne for CloneValue<T> {
    type Value = T;

    fn read_one(&mut self, values: &mut Values) -> Option<T> {
        values.get::<T>(self.0).cloned()
    }
}

impl<R: ReadOne> InputReader for RequiredValue<R> {
    type Values = R::Value;

    fn read(&mut self, values: &mut Values) -> R::Value {
        self.0.read_one(values).expect("a needed input has finished")
    }
}

impl<R: ReadOne> InputReader for Maybe<R> {
    type Values = Option<R::Value>;

    fn read(&mut self, values: &mut Values) -> Option<R::Value> {
        self.0.read_one(values)
    }
}

impl<R: InputReader> InputReader for Vec<R> {
    type Values = Vec<R::Values>;

    fn read(&mut self, values: &mut Values) -> Self::Values {
        self.iter_mut().map(|reader| reader.read(values)).collect()
    }
}

impl<R: InputReader, const N: usize> InputReader for [R; N] {
    type Values = [R::Values; N];

    fn read(&mut self, values: &mut Values) -> Self::Values {
        self.each_mut().map(|reader| reader.read(values))
    }
}

macro_rules! tuples {
    ($(($($input:ident),*))*) => {$(
        #[allow(non_snake_case, clippy::unused_unit, reason = "a macro for tuples of every length")]
        impl<$($input: Inputs),*> Inputs for ($($input,)*) {
            type Values = ($($input::Values,)*);
            type Reader = ($($input::Reader,)*);

            fn attach(self, _uses: &mut Uses<'_>) -> Self::Reader {
                let ($($input,)*) = self;
                ($($input.attach(_uses),)*)
            }
        }

        #[allow(non_snake_case, clippy::unused_unit, reason = "a macro for tuples of every length")]
        impl<$($input: InputReader),*> InputReader for ($($input,)*) {
            type Values = ($($input::Values,)*);

            fn read(&mut self, _values: &mut Values) -> Self::Values {
                let ($($input,)*) = self;
                ($($input.read(_values),)*)
            }
        }
    )*};
}

tuples! { () (A) (A, B) (A, B, C) (A, B, C, D) (A, B, C, D, E) (A, B, C, D, E, F) }
