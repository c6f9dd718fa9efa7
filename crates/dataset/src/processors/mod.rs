//! The built-in processors, one file each.

mod schema_transform;

pub(crate) use schema_transform::SchemaTransform;
