//! Persona texts, put together from templates. They are English in every locale.

use anabranch_value::Value;

use super::FIELDS;
use super::PLAIN_FIELDS;
use super::facts::{EDUCATION, Facts};
use crate::draw::normal;
use crate::params::Sex;
use crate::stream::Stream;

/// A trait with its words for low, average and high.
type Words = [&'static str; 3];

const TRAITS: [Words; 5] = [
    ["prefers what is proven", "balances the new and the familiar", "is drawn to new ideas"],
    ["takes each day as it comes", "plans when it matters", "is organized and thorough"],
    ["recharges alone", "enjoys company in moderation", "seeks out people"],
    ["is direct and competitive", "cooperates but holds a line", "is warm and trusting"],
    ["stays calm under pressure", "worries now and then", "feels stress keenly"],
];
const LABELS: Words = ["low", "average", "high"];

const HOBBIES: [&str; 32] = [
    "gardening",
    "long walks",
    "board games",
    "baking bread",
    "bird watching",
    "photography",
    "choir singing",
    "chess",
    "hiking",
    "watercolor painting",
    "reading history",
    "crime novels",
    "woodworking",
    "cycling",
    "video games",
    "volunteering",
    "home repairs",
    "knitting",
    "fishing",
    "podcasts",
    "yoga",
    "dancing",
    "collecting records",
    "crosswords",
    "camping",
    "playing the guitar",
    "local theater",
    "swimming",
    "genealogy",
    "restoring furniture",
    "street food markets",
    "astronomy",
];

const SKILLS: [[&str; 6]; 3] = [
    [
        "working with their hands",
        "reliability",
        "physical stamina",
        "teamwork",
        "keeping order",
        "patience with people",
    ],
    [
        "customer contact",
        "scheduling",
        "safety procedures",
        "troubleshooting",
        "record keeping",
        "training newcomers",
    ],
    [
        "project planning",
        "data analysis",
        "public speaking",
        "written communication",
        "negotiation",
        "mentoring",
    ],
];

const MONEY: [&str; 6] = [
    "keeps a written budget and saves a fixed share every month",
    "saves when there is something left and avoids debt",
    "invests small amounts regularly in broad funds",
    "spends freely on family and worries about it later",
    "compares prices with care and waits for sales",
    "is paying off a loan and plans one large purchase at a time",
];
const HEALTH: [&str; 6] = [
    "goes to every yearly check-up",
    "sees a doctor only when something hurts",
    "watches blood pressure and walks daily",
    "reads labels and cooks with less salt",
    "manages a mild chronic condition with routine",
    "sleeps too little and knows it",
];
const SPORTS: [&str; 6] = [
    "follows a local team and rarely misses a match",
    "swims twice a week",
    "runs short distances before breakfast",
    "has little interest in sports beyond the big finals",
    "plays in an amateur league on weekends",
    "prefers hiking to anything with a score",
];
const ARTS: [&str; 6] = [
    "visits a museum whenever it rains",
    "listens to music at every chore",
    "sketches but shows it to no one",
    "likes films that end well",
    "goes to concerts of bands from their youth",
    "reads poetry in small doses",
];
const TRAVEL: [&str; 6] = [
    "returns to the same quiet place every summer",
    "travels by train and packs light",
    "dreams of one long journey abroad",
    "plans each trip in a spreadsheet",
    "visits relatives rather than sights",
    "takes short trips on impulse",
];
const FOOD: [&str; 6] = [
    "cooks the dishes of the family by heart",
    "tries a new recipe every week",
    "eats simply and early",
    "is proud of one signature dish",
    "orders in more often than planned",
    "shops at the market and cooks what is in season",
];
const GOALS: [&str; 6] = [
    "wants to lead a small team",
    "hopes to learn a second trade",
    "aims for steady work close to home",
    "would like to start a business one day",
    "wants to teach what experience taught",
    "looks for a better balance of work and family",
];

/// The values of the persona fields, in the order of [`FIELDS`].
pub(crate) fn values(facts: &Facts<'_>, stream: &mut Stream) -> Vec<Value> {
    let scores = TRAITS.map(|_| (50.0 + 10.0 * normal(stream)).clamp(20.0, 80.0).round() as i64);
    let levels = scores.map(|score| if score < 45 { 0 } else { usize::from(score > 55) + 1 });
    let hobbies = several(&HOBBIES, 3, stream);
    let skills =
        several(&SKILLS[usize::from(facts.education >= 3) + usize::from(facts.education >= 5)], 3, stream);
    let life = Life { facts, name: facts.first.text, work: work(facts) };
    let summary = life.summary(&levels);
    let detail = life.detail(&hobbies, &levels, stream);
    let goal = stream.pick(&GOALS);
    let mut values: Vec<Value> = Vec::with_capacity(FIELDS.len() - PLAIN_FIELDS);
    values.push(summary.into());
    values.push(detail.into());
    values.push(format!("{} {} and {}.", life.name, life.work, TRAITS[1][levels[1]]).into());
    for sentences in [&MONEY, &HEALTH, &SPORTS, &ARTS, &TRAVEL, &FOOD] {
        values.push(format!("{} {}.", life.name, stream.pick(sentences)).into());
    }
    values.push(life.background().into());
    values.push(format!("{} is good at {}.", life.name, list(&skills)).into());
    values.push(skills.join(", ").into());
    values.push(format!("In free time {} enjoys {}.", life.name, list(&hobbies)).into());
    values.push(hobbies.join(", ").into());
    values.push(format!("{} {goal}.", life.name).into());
    for (index, score) in scores.iter().enumerate() {
        let level = levels[index];
        values.push(Value::map([
            ("t_score", Value::Int(*score)),
            ("label", LABELS[level].into()),
            ("description", format!("{} {}.", life.name, TRAITS[index][level]).into()),
        ]));
    }
    values
}

struct Life<'a> {
    facts: &'a Facts<'a>,
    name: &'static str,
    work: String,
}

impl Life<'_> {
    fn summary(&self, levels: &[usize; 5]) -> String {
        let Facts { age, place, .. } = self.facts;
        let (name, city, work) = (self.name, place.city(), &self.work);
        format!("{name}, {age}, from {city}, {work}, {} and {}.", TRAITS[0][levels[0]], TRAITS[3][levels[3]])
    }

    fn detail(&self, hobbies: &[&str], levels: &[usize; 5], stream: &mut Stream) -> String {
        let Facts { age, place, first, last, sex, marital, education, .. } = self.facts;
        let pronoun = if *sex == Sex::Female { "She" } else { "He" };
        let school = match EDUCATION[*education] {
            "graduate" => "has a graduate degree",
            "bachelors" => "has a bachelor's degree",
            "associates" => "has an associate degree",
            "some_college" => "went to college for a while",
            "high_school" => "finished high school",
            _ if *age < 18 => "goes to school",
            _ => "left school early",
        };
        let home = match *marital {
            "married_present" => "lives with a spouse",
            "widowed" => "is widowed",
            "divorced" => "is divorced",
            "separated" => "lives apart from a spouse",
            _ => "has never married",
        };
        format!(
            "{} {} is {age} years old and lives in {}. {pronoun} {}, {school} and {home}. {pronoun} {}, {}, and {}. \
             In free time {} enjoys {}. {} {}.",
            first.text,
            last.text,
            place.city(),
            self.work,
            TRAITS[0][levels[0]],
            TRAITS[2][levels[2]],
            TRAITS[4][levels[4]],
            pronoun.to_lowercase(),
            list(hobbies),
            self.name,
            stream.pick(&FOOD),
        )
    }

    fn background(&self) -> String {
        let Facts { place, table, .. } = self.facts;
        let region = if place.region.is_empty() { place.city() } else { place.region };
        format!("{} grew up with the customs of {region}, {}.", self.name, table.country)
    }
}

fn work(facts: &Facts<'_>) -> String {
    if facts.works {
        let vowel = facts.occupation.starts_with(['a', 'e', 'i', 'o', 'u', 'A', 'E', 'I', 'O', 'U']);
        let article = match facts.occupation.chars().next() {
            Some(letter) if !letter.is_ascii() => "",
            _ if vowel => "an ",
            _ => "a ",
        };
        format!("works as {article}{}", facts.occupation)
    } else {
        format!("has no job at present ({})", facts.occupation)
    }
}

/// Different items of a list, in random order.
fn several(items: &[&'static str], count: usize, stream: &mut Stream) -> Vec<&'static str> {
    let mut left = items.to_vec();
    (0..count.min(items.len())).map(|_| left.swap_remove(stream.below(left.len() as u64) as usize)).collect()
}

fn list(items: &[&str]) -> String {
    match items {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
