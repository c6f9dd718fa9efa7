//! Models that LightGBM saved as text.

use std::collections::BTreeMap;
use std::str::FromStr;

use crate::forest::{Absent, Ending, Link, Split, Test, Tree, Trees};

/// Bits of a split's `decision_type`.
const CATEGORY: u8 = 1;
const DEFAULT_LEFT: u8 = 2;

/// `name=value` lines of one part of the file, with their line numbers.
struct Block<'a> {
    /// Its name in error messages.
    title: String,
    fields: BTreeMap<&'a str, (usize, &'a str)>,
}

/// Parses a model.
pub(crate) fn parse(text: &str) -> Result<Trees, String> {
    let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim())).peekable();
    if lines.next().map(|(_, line)| line) != Some("tree") {
        return Err("line 1: a LightGBM model begins with the line `tree`".to_owned());
    }
    let mut blocks = vec![Block::new("header".to_owned())];
    let mut ended = false;
    for (number, line) in lines.by_ref() {
        if line == "end of trees" {
            ended = true;
            break;
        }
        if let Some(tree) = line.strip_prefix("Tree=") {
            if tree.parse() != Ok(blocks.len() - 1) {
                return Err(format!("line {number}: `{line}` where tree {} should begin", blocks.len() - 1));
            }
            blocks.push(Block::new(format!("tree {tree}")));
            continue;
        }
        let block = blocks.last_mut().expect("there is a header");
        match line.split_once('=') {
            Some((name, value)) => _ = block.fields.insert(name, (number, value)),
            None if line.is_empty() => {}
            None => _ = block.fields.insert(line, (number, "")),
        }
    }
    if !ended {
        return Err("it ends before the line `end of trees`: the file is not whole".to_owned());
    }
    let data_frame = lines.find_map(|(_, line)| line.strip_prefix("pandas_categorical:"));
    let header = blocks.remove(0);
    let (features, ending) = read_header(&header, blocks.len())?;
    let trees: Vec<Tree> = blocks.iter().map(read_tree).collect::<Result<_, _>>()?;
    let has_sets = trees.iter().any(|tree| !tree.sets.is_empty());
    if has_sets && !matches!(data_frame, None | Some("null" | "[]")) {
        return Err("its categories are those of a data frame; train it on their numbers instead".to_owned());
    }
    Ok(Trees { features, trees, ending })
}

fn read_header(header: &Block<'_>, trees: usize) -> Result<(Vec<String>, Ending), String> {
    let (line, version) = header.get("version")?;
    if !["v2", "v3", "v4"].contains(&version) {
        return Err(format!("line {line}: version `{version}`; v2, v3 and v4 are understood"));
    }
    for name in ["num_class", "num_tree_per_iteration"] {
        let count: u32 = header.number(name)?;
        if count != 1 {
            return Err(header.wrong(name, &format!("{count}; a score is of one class")));
        }
    }
    let features: Vec<String> = header.get("feature_names")?.1.split(' ').map(str::to_owned).collect();
    let last: usize = header.number("max_feature_idx")?;
    if features.len() != last + 1 {
        return Err(
            header.wrong("feature_names", &format!("{} names for {} features", features.len(), last + 1))
        );
    }
    let averaged = header.fields.contains_key("average_output");
    let divisor = if averaged { trees.max(1) as f64 } else { 1.0 };
    Ok((features, Ending { base: 0.0, single: false, divisor, link: link(header)? }))
}

/// The transformation of a sum of leaves by the objective.
fn link(header: &Block<'_>) -> Result<Link, String> {
    let Some((_, objective)) = header.fields.get("objective") else { return Ok(Link::Identity) };
    let mut words = objective.split_whitespace();
    let name = words.next().unwrap_or_default();
    let options: Vec<&str> = words.collect();
    Ok(match name {
        "regression" if options.contains(&"sqrt") => Link::Square,
        "regression" | "regression_l1" | "huber" | "fair" | "quantile" | "mape" | "lambdarank"
        | "rank_xendcg" | "custom" => Link::Identity,
        "binary" => {
            let factor = options.iter().find_map(|option| option.strip_prefix("sigmoid:"));
            let factor: Option<f64> = factor.map_or(Some(1.0), |factor| factor.parse().ok());
            let factor = factor.filter(|factor| factor.is_finite() && *factor > 0.0);
            Link::Sigmoid(
                factor.ok_or_else(|| header.wrong("objective", "its `sigmoid` is not a positive number"))?,
            )
        }
        "cross_entropy" => Link::Sigmoid(1.0),
        "cross_entropy_lambda" => Link::LogOnePlusExp,
        "poisson" | "gamma" | "tweedie" => Link::Exp,
        other => return Err(header.wrong("objective", &format!("`{other}` is not one that is understood"))),
    })
}

fn read_tree(block: &Block<'_>) -> Result<Tree, String> {
    let leaf_count: usize = block.number("num_leaves")?;
    if leaf_count == 0 {
        return Err(block.wrong("num_leaves", "0; a tree has a leaf"));
    }
    if block.fields.get("is_linear").is_some_and(|(_, value)| *value != "0") {
        return Err(block.wrong("is_linear", "trees with linear leaves are not understood"));
    }
    let count = leaf_count - 1;
    let leaves = block.numbers("leaf_value", leaf_count)?;
    if count == 0 {
        return Ok(Tree { splits: Vec::new(), leaves, sets: Vec::new() });
    }
    let features: Vec<u32> = block.numbers("split_feature", count)?;
    let thresholds: Vec<f64> = block.numbers("threshold", count)?;
    let decisions: Vec<u8> = block.numbers("decision_type", count)?;
    let left: Vec<i32> = block.numbers("left_child", count)?;
    let right: Vec<i32> = block.numbers("right_child", count)?;
    let sets = Sets::read(block)?;
    let split = |at: usize| {
        let (threshold, test) = decision(block, decisions[at], thresholds[at], &sets)?;
        Ok(Split { feature: features[at], threshold, left: left[at], right: right[at], test })
    };
    let splits = (0..count).map(split).collect::<Result<_, String>>()?;
    Ok(Tree { splits, leaves, sets: sets.words })
}

fn decision(block: &Block<'_>, bits: u8, threshold: f64, sets: &Sets) -> Result<(f64, Test), String> {
    if bits & CATEGORY != 0 {
        let set = sets.bounds.windows(2).nth(threshold as usize).filter(|_| threshold >= 0.0);
        let [start, end] = set.ok_or_else(|| block.wrong("threshold", "it names a set that is not there"))?
        else {
            unreachable!("windows of two");
        };
        // A category is the integer part of the number, so anything above -1 is a category.
        return Ok((-1.0, Test::Category { start: *start, words: end - start, to_left: false }));
    }
    let absent = match (bits >> 2) & 3 {
        0 => Absent::Never,
        1 => Absent::Zero,
        2 => Absent::Nan,
        _ => return Err(block.wrong("decision_type", &format!("{bits} is none"))),
    };
    Ok((threshold, Test::Number { absent, to_left: bits & DEFAULT_LEFT != 0 }))
}

/// The sets of categories of a tree.
struct Sets {
    words: Vec<u32>,
    /// The start of each set, and the end of the last one.
    bounds: Vec<u32>,
}

impl Sets {
    fn read(block: &Block<'_>) -> Result<Sets, String> {
        let count: usize = block.number("num_cat")?;
        if count == 0 {
            return Ok(Sets { words: Vec::new(), bounds: Vec::new() });
        }
        let bounds: Vec<u32> = block.numbers("cat_boundaries", count.saturating_add(1))?;
        let end = *bounds.last().expect("at least two") as usize;
        if bounds[0] != 0 || !bounds.is_sorted() {
            return Err(block.wrong("cat_boundaries", "they do not ascend from 0"));
        }
        Ok(Sets { words: block.numbers("cat_threshold", end)?, bounds })
    }
}

impl<'a> Block<'a> {
    fn new(title: String) -> Block<'a> {
        Block { title, fields: BTreeMap::new() }
    }

    fn get(&self, name: &str) -> Result<(usize, &'a str), String> {
        self.fields.get(name).copied().ok_or_else(|| format!("{}: there is no line `{name}=`", self.title))
    }

    fn number<T: FromStr>(&self, name: &str) -> Result<T, String> {
        let (_, value) = self.get(name)?;
        value.parse().map_err(|_| self.wrong(name, &format!("`{value}` is not a number that fits")))
    }

    /// A list of exactly `count` numbers.
    fn numbers<T: FromStr>(&self, name: &str, count: usize) -> Result<Vec<T>, String> {
        let (_, value) = self.get(name)?;
        let found = value.split_whitespace().count();
        if found != count {
            return Err(self.wrong(name, &format!("{found} numbers where {count} are needed")));
        }
        let parse = |word: &str| {
            word.parse().map_err(|_| self.wrong(name, &format!("`{word}` is not a number that fits")))
        };
        value.split_whitespace().map(parse).collect()
    }

    fn wrong(&self, name: &str, what: &str) -> String {
        let line = self.fields.get(name).map_or(0, |(line, _)| *line);
        format!("line {line}: {}, `{name}`: {what}", self.title)
    }
}
