//! Models that XGBoost saved as JSON.

use serde::Deserialize;

use crate::forest::{Absent, Ending, Link, Split, Test, Tree, Trees};

/// The parts of the file that matter.
#[derive(Deserialize)]
struct File {
    learner: Learner,
}

#[derive(Deserialize)]
struct Learner {
    #[serde(default)]
    feature_names: Vec<String>,
    gradient_booster: Booster,
    learner_model_param: ModelParam,
    objective: Objective,
}

#[derive(Deserialize)]
struct Objective {
    name: String,
}

#[derive(Deserialize)]
struct ModelParam {
    base_score: String,
    num_class: String,
    num_feature: String,
    #[serde(default)]
    num_target: Option<String>,
}

#[derive(Deserialize)]
struct Booster {
    name: String,
    model: Option<BoosterModel>,
}

#[derive(Deserialize)]
struct BoosterModel {
    trees: Vec<FileTree>,
    #[serde(default)]
    cats: Encodings,
}

/// The encoding of a data frame's categories.
#[derive(Default, Deserialize)]
struct Encodings {
    #[serde(default)]
    enc: Vec<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct FileTree {
    left_children: Vec<i32>,
    right_children: Vec<i32>,
    split_indices: Vec<u32>,
    /// Thresholds of splits, values of leaves.
    split_conditions: Vec<f32>,
    default_left: Vec<Flag>,
    #[serde(default)]
    split_type: Vec<u8>,
    #[serde(default)]
    categories: Vec<u32>,
    #[serde(default)]
    categories_nodes: Vec<u32>,
    #[serde(default)]
    categories_segments: Vec<usize>,
    #[serde(default)]
    categories_sizes: Vec<usize>,
}

/// True or false, or 1 or 0, by the version that wrote it.
#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Flag {
    Bool(bool),
    Number(u8),
}

/// The largest valid category.
const MAX_CATEGORY: u32 = 1 << 24;
/// The most words of all sets of categories of a tree.
const MAX_WORDS: usize = 1 << 22;

/// Parses a model.
pub(crate) fn parse(text: &str) -> Result<Trees, String> {
    let file: File =
        serde_json::from_str(text).map_err(|error| format!("not an XGBoost JSON model: {error}"))?;
    let Learner { mut feature_names, gradient_booster, learner_model_param: param, objective } = file.learner;
    let model = match (&*gradient_booster.name, gradient_booster.model) {
        ("gbtree", Some(model)) => model,
        ("gbtree", None) => return Err("gradient_booster: there is no `model`".to_owned()),
        (other, _) => {
            return Err(format!("gradient_booster, `name`: `{other}`; only `gbtree` is understood"));
        }
    };
    if !matches!(&*param.num_class, "0" | "1") {
        return Err(format!(
            "learner_model_param, `num_class`: {}; a score is of one class",
            param.num_class
        ));
    }
    if param.num_target.as_deref().is_some_and(|count| count != "1") {
        return Err("learner_model_param, `num_target`: a score is of one target".to_owned());
    }
    if !model.cats.enc.is_empty() {
        return Err("its categories are those of a data frame; train it on their numbers instead".to_owned());
    }
    let count: usize = param.num_feature.parse().ok().filter(|count| *count <= 1 << 20).ok_or_else(|| {
        format!("learner_model_param, `num_feature`: `{}` is not a number that fits", param.num_feature)
    })?;
    if feature_names.is_empty() {
        feature_names = (0..count).map(|number| format!("f{number}")).collect();
    }
    if feature_names.len() != count {
        return Err(format!("feature_names: {} names for {count} features", feature_names.len()));
    }
    let ending = ending(&objective.name, &param.base_score)?;
    let read =
        |(number, tree): (usize, &FileTree)| tree.read().map_err(|what| format!("tree {number}: {what}"));
    let trees = model.trees.iter().enumerate().map(read).collect::<Result<_, _>>()?;
    Ok(Trees { features: feature_names, trees, ending })
}

/// The initial value and the transformation of sums.
fn ending(objective: &str, base_score: &str) -> Result<Ending, String> {
    let base: Option<f32> = base_score.trim_start_matches('[').trim_end_matches(']').parse().ok();
    let base = base.filter(|base| base.is_finite());
    let base =
        base.ok_or_else(|| format!("learner_model_param, `base_score`: `{base_score}` is not a number"))?;
    let logit = -(1.0 / base - 1.0).ln();
    let (base, link) = match objective {
        "binary:logistic" | "reg:logistic" => (logit, Link::Sigmoid(1.0)),
        "binary:hinge" => (base, Link::Positive),
        "count:poisson" | "reg:gamma" | "reg:tweedie" => (base.ln(), Link::Exp),
        "reg:squarederror"
        | "reg:linear"
        | "reg:squaredlogerror"
        | "reg:absoluteerror"
        | "reg:pseudohubererror"
        | "reg:quantileerror"
        | "rank:pairwise"
        | "rank:ndcg"
        | "rank:map" => (base, Link::Identity),
        other => return Err(format!("objective, `name`: `{other}` is not one that is understood")),
    };
    if !base.is_finite() {
        return Err(format!("learner_model_param, `base_score`: `{base_score}` does not suit `{objective}`"));
    }
    Ok(Ending { base: f64::from(base), single: true, divisor: 1.0, link })
}

impl FileTree {
    /// Separates splits from leaves.
    fn read(&self) -> Result<Tree, String> {
        let count = self.left_children.len();
        let lengths = [
            ("right_children", self.right_children.len()),
            ("split_indices", self.split_indices.len()),
            ("split_conditions", self.split_conditions.len()),
            ("default_left", self.default_left.len()),
            ("split_type", if self.split_type.is_empty() { count } else { self.split_type.len() }),
        ];
        if let Some((name, length)) = lengths.iter().find(|(_, length)| *length != count) {
            return Err(format!("`{name}` has {length} values for {count} nodes"));
        }
        if count == 0 {
            return Err("it has no nodes".to_owned());
        }
        let mut tree = Tree { splits: Vec::new(), leaves: Vec::new(), sets: Vec::new() };
        // The index of each node: a split, or the complement of a leaf.
        let mut place: Vec<i32> = Vec::with_capacity(count);
        for node in 0..count {
            if self.left_children[node] == -1 {
                place.push(!(tree.leaves.len() as i32));
                tree.leaves.push(f64::from(self.split_conditions[node]));
            } else {
                place.push((place.len() - tree.leaves.len()) as i32);
            }
        }
        let way = |node: usize, child: i32| {
            let at = usize::try_from(child).ok().and_then(|child| place.get(child));
            at.copied().ok_or_else(|| format!("node {node} leads to node {child}, which is not there"))
        };
        for node in (0..count).filter(|node| self.left_children[*node] != -1) {
            let (left, right) = (way(node, self.left_children[node])?, way(node, self.right_children[node])?);
            let split = self
                .split(node, left, right, &mut tree.sets)
                .map_err(|what| format!("node {node}: {what}"))?;
            tree.splits.push(split);
        }
        // A root that is a leaf ends the tree: the others were pruned.
        if place[0] < 0 {
            tree.leaves.truncate(1);
            tree.splits.clear();
        }
        Ok(tree)
    }

    fn split(&self, node: usize, left: i32, right: i32, sets: &mut Vec<u32>) -> Result<Split, String> {
        let to_left = match self.default_left[node] {
            Flag::Bool(to_left) => to_left,
            Flag::Number(number) => number != 0,
        };
        let feature = self.split_indices[node];
        match self.split_type.get(node) {
            None | Some(0) => {
                // Numbers below the threshold go left, which are those up to the one before it.
                let threshold = f64::from(self.split_conditions[node].next_down());
                Ok(Split {
                    feature,
                    threshold,
                    left,
                    right,
                    test: Test::Number { absent: Absent::Nan, to_left },
                })
            }
            Some(1) => {
                let (start, words) = self.set(node, sets)?;
                // Categories of the set go right. Negative numbers are not categories.
                let test = Test::Category { start, words, to_left: !to_left };
                Ok(Split { feature, threshold: -f64::MIN_POSITIVE, left: right, right: left, test })
            }
            Some(other) => Err(format!("`split_type` {other} is not one that is understood")),
        }
    }

    /// Writes the categories of a split as a set: where it begins and its words.
    fn set(&self, node: usize, sets: &mut Vec<u32>) -> Result<(u32, u32), String> {
        let missing = || "its `categories` are not there".to_owned();
        let at =
            self.categories_nodes.iter().position(|other| *other as usize == node).ok_or_else(missing)?;
        let start = *self.categories_segments.get(at).ok_or_else(missing)?;
        let size = *self.categories_sizes.get(at).ok_or_else(missing)?;
        let end = start.checked_add(size).ok_or_else(missing)?;
        let categories = self.categories.get(start..end).ok_or_else(missing)?;
        if let Some(category) = categories.iter().find(|category| **category >= MAX_CATEGORY) {
            return Err(format!("category {category} is too large"));
        }
        let words = categories.iter().max().map_or(0, |most| most / 32 + 1);
        let begin = sets.len();
        if begin + words as usize > MAX_WORDS {
            return Err("its sets of categories are too large".to_owned());
        }
        sets.resize(begin + words as usize, 0);
        for category in categories {
            sets[begin + (category / 32) as usize] |= 1 << (category % 32);
        }
        Ok((begin as u32, words))
    }
}
