//! Custom columns: filled by a program outside, in any language.
//!
//! The program is a child process that speaks JSON lines on stdin and stdout, one object per line, or an HTTP endpoint.
//! One process per distinct command serves all columns that name it, and all calls at once. `python/anabranch_worker.py`
//! serves Python functions.
//!
//! # The protocol
//!
//! | from | line | meaning |
//! |---|---|---|
//! | us | `{"anabranch": 1, "functions": ["f"]}` | the first line: the protocol's version and the functions to serve |
//! | worker | `{"ready": true, "functions": {"f": {"required_columns": ["a"], "side_effect_columns": [], "generation_strategy": "cell_by_cell"}}}` | the first answer. Each of the three fields may be left out; a given one must agree with the configuration |
//! | us | `{"id": 7, "function": "f", "column": "c", "params": {}, "row": {"a": 1}}` | fill one row |
//! | us | `{"id": 7, "function": "f", "column": "c", "params": {}, "rows": [{"a": 1}]}` | fill a row group |
//! | worker | `{"id": 7, "values": {"c": 2}}` | the column and its side-effect columns for `row` |
//! | worker | `{"id": 7, "rows": [{"c": 2}, {"error": "why"}]}` | the same for `rows`: one object per row, in order |
//! | worker | `{"id": 7, "error": {"class": "value_error", "message": "why", "transient": false}}` | the call failed; a transient failure is tried again |
//! | worker | `{"id": 7, "ask": 1, "model": "alias", "messages": [{"role": "user", "content": "hi"}]}` | asks a model on behalf of call 7. Questions of a call are numbered by the worker |
//! | us | `{"id": 7, "answer": 1, "text": "hello"}` | the model's reply, or `"error"` as above in place of `"text"` |
//!
//! Answers come in any order. Anything for people goes to stderr, whose last lines are part of error messages. A line
//! has at most 16 MiB. A worker that dies, or says something else, fails its calls in flight as transient faults of
//! class `worker` and is started again, a limited number of times. A call that hears nothing for the column's timeout
//! fails; a worker that said nothing to anyone for that long is killed first. Closing stdin tells a worker to end; its
//! whole process group is killed when the build is done.
//!
//! An HTTP endpoint gets the same call objects, one per `POST`, without the first line, and answers each with the
//! answer object. It cannot ask models.

mod call;
mod generator;
mod group;
mod message;
mod process;
mod worker;

pub use call::{Ask, NoModels, Question};
pub use generator::generators;
pub use worker::WorkerOptions;
