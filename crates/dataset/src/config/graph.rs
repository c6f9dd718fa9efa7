//! The graph of columns: which columns each one reads.

use std::collections::HashMap;

use anabranch_engine::Dag;
use anabranch_sampler::Sampler;

use super::types::{Column, ColumnKind, Config, ConstraintRhs, TemplateText, Trace};

/// The producer of a name's value: a column or the seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Producer {
    /// The column of that number.
    Column(usize),
    /// An additional column of the column with this number.
    SideEffect(usize),
    /// The seed's column of that number.
    Seed(usize),
}

impl Producer {
    /// The column that fills it, if it is not of the seed.
    pub fn column(self) -> Option<usize> {
        match self {
            Producer::Column(column) | Producer::SideEffect(column) => Some(column),
            Producer::Seed(_) => None,
        }
    }
}

/// The columns that each column reads, and an order in which they can be filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependencies {
    /// One per column of the configuration.
    pub columns: Vec<ColumnInputs>,
    /// The column numbers, each after the columns that it reads, otherwise in the order of the file.
    pub order: Vec<usize>,
}

/// The inputs of one column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ColumnInputs {
    /// The names that it reads, each once: columns, side effects, columns of the seed.
    pub names: Vec<String>,
    /// The numbers of the columns that fill them, each once, ascending.
    pub columns: Vec<usize>,
}

impl Column {
    /// The names that the column reads, each once, those of its skip condition last.
    pub fn reads(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        let mut found: Vec<&str> = Vec::new();
        match &self.kind {
            ColumnKind::Sampler(sampler) => {
                let samplers = sampler.conditional.iter().map(|(_, sampler)| sampler);
                for sampler in std::iter::once(&sampler.sampler).chain(samplers) {
                    match sampler {
                        Sampler::Subcategory(subcategory) => found.push(&subcategory.category),
                        Sampler::Timedelta(timedelta) => found.push(&timedelta.reference_column_name),
                        _ => {}
                    }
                }
                sampler.conditional.iter().for_each(|(when, _)| found.extend(variables(when)));
            }
            ColumnKind::Llm(llm) => {
                found.extend(variables(&llm.prompt));
                llm.system_prompt.iter().for_each(|prompt| found.extend(variables(prompt)));
            }
            ColumnKind::Expression { expr, .. } => found.extend(variables(expr)),
            ColumnKind::Validation(validation) => {
                found.extend(validation.target_columns.iter().map(String::as_str));
            }
            ColumnKind::Embedding { target_column, .. } => found.push(target_column),
            ColumnKind::Custom(custom) => found.extend(custom.required_columns.iter().map(String::as_str)),
        }
        self.skip.iter().for_each(|skip| found.extend(variables(&skip.when)));
        for name in found {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// The additional columns that it fills.
    pub fn side_effects(&self) -> Vec<String> {
        match &self.kind {
            ColumnKind::Llm(llm) => {
                let trace = (llm.with_trace != Trace::None).then(|| format!("{}{TRACE}", self.name));
                let reasoning = llm.extract_reasoning_content.then(|| format!("{}{REASONING}", self.name));
                trace.into_iter().chain(reasoning).collect()
            }
            ColumnKind::Custom(custom) => custom.side_effect_columns.clone(),
            _ => Vec::new(),
        }
    }

    /// True if it may make several rows out of one, or none.
    pub fn resizes(&self) -> bool {
        matches!(&self.kind, ColumnKind::Custom(custom) if custom.resizes)
    }

    /// The aliases of the models that it calls.
    pub fn model_aliases(&self) -> Vec<&str> {
        match &self.kind {
            ColumnKind::Llm(llm) => vec![&llm.model_alias],
            ColumnKind::Embedding { model_alias, .. } => vec![model_alias],
            ColumnKind::Custom(custom) => custom.model_aliases.iter().map(String::as_str).collect(),
            _ => Vec::new(),
        }
    }
}

/// The suffixes of the side-effect columns of model calls.
pub(super) const TRACE: &str = "__trace";
pub(super) const REASONING: &str = "__reasoning_content";

fn variables(text: &TemplateText) -> impl Iterator<Item = &str> {
    text.template.variables().iter().map(String::as_str)
}

/// The producer of each name. Columns and seed columns take precedence over side effects.
#[derive(Debug, Default)]
pub(super) struct Names(HashMap<String, Producer>);

impl Names {
    pub(super) fn get(&self, name: &str) -> Option<Producer> {
        self.0.get(name).copied()
    }

    /// Adds a name unless it exists; then its producer is returned.
    pub(super) fn add(&mut self, name: &str, producer: Producer) -> Option<Producer> {
        let found = self.get(name);
        if found.is_none() {
            self.0.insert(name.to_owned(), producer);
        }
        found
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl Config {
    /// The producer of a name's value: a column or the seed.
    pub fn producer(&self, name: &str) -> Option<Producer> {
        let column = self.columns.iter().position(|column| column.name == name).map(Producer::Column);
        let seed =
            || self.seed_columns.iter().flatten().position(|column| column == name).map(Producer::Seed);
        let fills = |column: &Column| column.side_effects().iter().any(|effect| effect == name);
        column.or_else(seed).or_else(|| self.columns.iter().position(fills).map(Producer::SideEffect))
    }

    /// The graph of columns.
    pub fn dependencies(&self) -> Dependencies {
        let mut names = Names::default();
        let numbered = || self.columns.iter().enumerate();
        numbered().for_each(|(number, column)| _ = names.add(&column.name, Producer::Column(number)));
        for (number, name) in self.seed_columns.iter().flatten().enumerate() {
            names.add(name, Producer::Seed(number));
        }
        for (number, column) in numbered() {
            column.side_effects().iter().for_each(|name| _ = names.add(name, Producer::SideEffect(number)));
        }
        let inputs = |(number, column): (usize, &Column)| {
            let mut reads: Vec<String> = column.reads().into_iter().map(str::to_owned).collect();
            for constraint in self.constraints.iter().filter(|found| found.target_column == column.name) {
                if let ConstraintRhs::Column(name) = &constraint.rhs
                    && !reads.contains(name)
                {
                    reads.push(name.clone());
                }
            }
            let mut columns: Vec<usize> = reads
                .iter()
                .filter_map(|name| names.get(name)?.column())
                .filter(|read| *read != number)
                .collect();
            columns.sort_unstable();
            columns.dedup();
            ColumnInputs { names: reads, columns }
        };
        let columns: Vec<ColumnInputs> = numbered().map(inputs).collect();
        let edges: Vec<Vec<usize>> = columns.iter().map(|inputs| inputs.columns.clone()).collect();
        let order = Dag::sort(&edges, |_| {});
        Dependencies { columns, order }
    }
}
