//! Columns that are computed from others by a template.

use anabranch_template::Bounds;
use anabranch_value::Value;

use crate::column_type::ColumnType;
use crate::config::{Dtype, TemplateText};
use crate::fault::Fault;
use crate::generator::{Cells, Contract, Generator, Grain, Output, Row, Work};

/// A template whose text is cast to a type. A cell starts as soon as its row has the values that it reads.
pub(crate) struct Expression {
    contract: Contract,
    expr: TemplateText,
    dtype: Dtype,
}

impl Expression {
    pub(crate) fn new(name: &str, expr: TemplateText, dtype: Dtype) -> Expression {
        let column_type = match dtype {
            Dtype::Int => ColumnType::Int,
            Dtype::Float => ColumnType::Float,
            Dtype::Str => ColumnType::Text,
            Dtype::Bool => ColumnType::Bool,
        };
        let contract = Contract {
            grain: Grain::Cell,
            reads: expr.template.variables().to_vec(),
            fills: vec![Output { name: name.to_owned(), column_type }],
            stateful: false,
        };
        Expression { contract, expr, dtype }
    }
}

impl Generator for Expression {
    fn contract(&self) -> &Contract {
        &self.contract
    }

    fn cell(&self, row: Row<'_>) -> Work<Cells> {
        let rendered = self.expr.template.render(row.values, Bounds::default());
        let rendered = rendered.map_err(|error| template_fault(&self.expr, &error));
        Work::Ready(rendered.and_then(|text| Ok(std::iter::once(cast(&text, self.dtype)?).collect())))
    }
}

/// The fault of a template that failed on a row.
pub(super) fn template_fault(template: &TemplateText, error: &anabranch_template::Error) -> Fault {
    Fault::permanent("template", format!("{}: {error}", template.place))
}

/// A rendered text as a value of a type.
fn cast(text: &str, dtype: Dtype) -> Result<Value, Fault> {
    let trimmed = text.trim();
    if trimmed.is_empty() || trimmed == "None" {
        return Err(Fault::permanent("empty", "the expression rendered to nothing"));
    }
    let number = || {
        let number = trimmed.replace('_', "").parse::<f64>().ok().filter(|number| number.is_finite());
        number.ok_or_else(|| Fault::permanent("cast", format!("{trimmed:?} is not a number")))
    };
    match dtype {
        Dtype::Str => Ok(text.into()),
        Dtype::Float => number().map(Value::Float),
        Dtype::Int => match trimmed.parse::<i64>() {
            Ok(int) => Ok(Value::Int(int)),
            // A fraction is cut off.
            Err(_) => match number()?.trunc() {
                whole if whole.abs() < 9.2e18 => Ok(Value::Int(whole as i64)),
                _ => Err(Fault::permanent("cast", format!("{trimmed:?} does not fit into 64 bits"))),
            },
        },
        Dtype::Bool => match number() {
            Ok(number) => Ok(Value::Bool(number.trunc() != 0.0)),
            Err(_) if trimmed.eq_ignore_ascii_case("true") => Ok(Value::Bool(true)),
            Err(_) if trimmed.eq_ignore_ascii_case("false") => Ok(Value::Bool(false)),
            Err(_) => Err(Fault::permanent("cast", format!("{trimmed:?} is neither true nor false"))),
        },
    }
}
