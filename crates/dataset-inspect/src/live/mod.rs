//! A running build: its pace, its spend, and its events as JSON.

mod events;
mod pace;
mod spend;

pub use events::{end_event, errors_event, start_event, stopping_event};
pub use pace::{Figures, Pace, rounded};
pub use spend::{LiveSpend, cost};
