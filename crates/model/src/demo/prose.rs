//! Prose that mentions the subject of the prompt.

use super::random::Random;

const OPENINGS: &[&str] = &[
    "Here is a short take on",
    "Let us look at",
    "A few words about",
    "Picture this:",
    "In brief, about",
    "One way to see",
];
const MIDDLES: &[&str] = &[
    "The first thing that stands out is how small details change the whole picture.",
    "Most people notice it only when something is missing.",
    "It works best when each part has one clear purpose.",
    "There is a simple version and a careful version, and both have their place.",
    "A good example says more than a long definition.",
    "What matters in the end is whether it helps somebody.",
    "The numbers are modest, and the effect is not.",
    "It took a few attempts to get this right.",
];
const ENDINGS: &[&str] = &[
    "This is demo text, written offline without a language model.",
    "Please note that this is demo text and not a model's answer.",
    "All of this is demo text from an offline stand-in.",
];

/// A few sentences about the longest words of a prompt.
pub(super) fn text(prompt: &str, random: &mut Random) -> String {
    let topic = topic(prompt, random);
    let mut sentences = vec![format!("{} {topic}.", random.choose(OPENINGS))];
    let first = random.below(MIDDLES.len());
    for step in 0..1 + random.below(3) {
        sentences.push(MIDDLES[(first + step) % MIDDLES.len()].to_owned());
    }
    sentences.push((*random.choose(ENDINGS)).to_owned());
    sentences.join(" ")
}

/// Words of prompts that are hardly their topic.
const DULL: &[&str] = &[
    "about",
    "after",
    "based",
    "before",
    "between",
    "could",
    "create",
    "every",
    "first",
    "following",
    "generate",
    "given",
    "include",
    "might",
    "other",
    "please",
    "reply",
    "return",
    "should",
    "their",
    "there",
    "these",
    "those",
    "under",
    "where",
    "which",
    "while",
    "would",
    "write",
    "written",
];

/// One to three words of the prompt, in their order.
fn topic(prompt: &str, random: &mut Random) -> String {
    let words: Vec<&str> = prompt
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().count() > 4 && word.chars().count() < 24)
        .filter(|word| !DULL.contains(&word.to_lowercase().as_str()))
        .take(200)
        .collect();
    if words.is_empty() {
        return "the topic".to_owned();
    }
    let count = (1 + random.below(3)).min(words.len());
    let first = random.below(words.len() - count + 1);
    words[first..first + count].join(" ").to_lowercase()
}

const WORDS: &[&str] = &[
    "amber", "river", "quiet", "signal", "harbor", "meadow", "copper", "lantern", "orbit", "pebble", "cedar",
    "ripple", "summit", "velvet", "willow", "zephyr",
];

/// A short label for a field of this name.
pub(super) fn label(name: &str, random: &mut Random) -> String {
    let known: Option<&[&str]> = match name.to_ascii_lowercase().as_str() {
        "name" | "full_name" | "customer_name" | "author" => {
            Some(&["Ada Demo", "Ben Sample", "Chloe Demo", "Dan Sample"])
        }
        "first_name" => Some(&["Ada", "Ben", "Chloe", "Dan"]),
        "last_name" => Some(&["Demo", "Sample", "Trial"]),
        "city" => Some(&["Demoville", "Sampleton", "Trialburg"]),
        "country" => Some(&["Norway", "Kenya", "Chile", "Japan"]),
        "email" | "email_address" => Some(&["ada@example.com", "ben@example.org"]),
        "currency" => Some(&["EUR", "USD", "JPY"]),
        "reasoning" | "explanation" | "rationale" => Some(&[
            "Demo text: the option was drawn at random.",
            "Demo text: no text was read to come to this score.",
        ]),
        _ => None,
    };
    match known {
        Some(known) => (*random.choose(known)).to_owned(),
        None => format!("demo {} {}", random.choose(WORDS), random.choose(WORDS)),
    }
}
