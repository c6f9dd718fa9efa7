//! The binary as people and scripts see it.
#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

mod bench;
mod binary;
mod build;
mod capture;
mod check;
mod damage;
mod dataset;
mod dataset_build;
mod dataset_edit;
mod dataset_diff;
mod dataset_examples;
mod dataset_help;
mod dataset_kill;
mod dataset_spend;
mod dataset_plan;
mod dataset_report;
mod dataset_resume;
mod dataset_why;
mod demo;
mod explain;
mod gate;
mod help;
mod project;
mod rankd;
mod recipe;
mod recipe_health;
mod recipe_aliases;
mod recipe_served;
mod redis;
mod run;
mod scaffold;
mod shipped;
mod soak;
mod why;
