//! Runs the code of a plan: the only place that knows the JavaScript engine.
