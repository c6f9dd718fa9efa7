//! A second table whose rows are rendered from templates.

use anabranch_template::Bounds;
use anabranch_value::Value;

use crate::column_type::ColumnType;
use crate::config::TransformNode;
use crate::fault::Fault;
use crate::processor::{Points, Processor, Table, TableColumn};

/// Renders each row into another format, which is written to additional files.
pub(crate) struct SchemaTransform {
    name: String,
    /// The columns of the other format.
    columns: Vec<(String, TransformNode)>,
}

impl SchemaTransform {
    pub(crate) fn new(name: &str, template: &TransformNode) -> SchemaTransform {
        let columns = match template {
            TransformNode::Map(columns) => columns.clone(),
            other => vec![("value".to_owned(), other.clone())],
        };
        SchemaTransform { name: name.to_owned(), columns }
    }
}

impl Processor for SchemaTransform {
    fn name(&self) -> &str {
        &self.name
    }

    fn points(&self) -> Points {
        Points::default()
    }

    fn extract(&self, table: &Table) -> Result<Option<Table>, Fault> {
        let column = |(name, node): &(String, TransformNode)| {
            let values =
                (0..table.ids.len()).map(|row| render(node, table, row)).collect::<Result<_, Fault>>()?;
            Ok(TableColumn { name: name.clone(), column_type: type_of(node), values })
        };
        let columns = self.columns.iter().map(column).collect::<Result<_, Fault>>()?;
        Ok(Some(Table { ids: table.ids.clone(), columns }))
    }
}

/// The type of a rendered node: texts are text, the rest is as it is written.
fn type_of(node: &TransformNode) -> ColumnType {
    match node {
        TransformNode::Text(_) | TransformNode::Fixed(Value::Text(_)) => ColumnType::Text,
        TransformNode::Fixed(Value::Bool(_)) => ColumnType::Bool,
        TransformNode::Fixed(Value::Int(_)) => ColumnType::Int,
        TransformNode::Fixed(Value::Float(_)) => ColumnType::Float,
        TransformNode::Fixed(_) => ColumnType::Json,
        TransformNode::Map(fields) if fields.is_empty() => ColumnType::Json,
        TransformNode::Map(fields) => {
            ColumnType::Struct(fields.iter().map(|(name, node)| (name.clone(), type_of(node))).collect())
        }
        TransformNode::List(items) => {
            let mut types = items.iter().map(type_of);
            match types.next() {
                Some(first) if types.all(|other| other == first) => ColumnType::List(Box::new(first)),
                _ => ColumnType::Json,
            }
        }
    }
}

fn render(node: &TransformNode, table: &Table, row: usize) -> Result<Value, Fault> {
    match node {
        TransformNode::Fixed(value) => Ok(value.clone()),
        TransformNode::List(items) => items
            .iter()
            .map(|item| render(item, table, row))
            .collect::<Result<Vec<Value>, Fault>>()
            .map(Value::from),
        TransformNode::Map(fields) => {
            let field = |(name, node): &(String, TransformNode)| {
                Ok((name.as_str().into(), render(node, table, row)?))
            };
            fields.iter().map(field).collect::<Result<anabranch_value::Map, Fault>>().map(Value::from)
        }
        TransformNode::Text(text) => {
            let find = |name: &String| {
                let column = table.columns.iter().find(|column| column.name == *name);
                column.map(|column| column.values[row].clone()).unwrap_or_default()
            };
            let values: Vec<Value> = text.template.variables().iter().map(find).collect();
            let rendered = text.template.render(&values, Bounds::default());
            let place = table.ids[row].map_or_else(String::new, |row| format!("row {row}: "));
            let rendered = rendered
                .map_err(|error| Fault::permanent("template", format!("{place}{}: {error}", text.place)))?;
            Ok(rendered.into())
        }
    }
}
