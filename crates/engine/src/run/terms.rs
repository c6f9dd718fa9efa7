//! A run's options, checked once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::admission::Refused;
use crate::drain::Drain;
use crate::engine::Engine;
use crate::limit::Limits;
use crate::options::{Class, Options, Reserve};

pub(super) struct Terms {
    pub(super) deadline: Option<Instant>,
    pub(super) grace: Duration,
    pub(super) reserve: TailReserve,
    pub(super) class: Class,
    pub(super) in_flight: usize,
    pub(super) inline_threshold: Duration,
    pub(super) table: Option<Limits>,
    pub(super) drain: Option<Drain>,
    pub(super) seed: u64,
}

pub(super) enum TailReserve {
    Fixed(Duration),
    PerNode(Arc<[Duration]>),
}

impl Terms {
    pub(super) fn new(
        engine: &Engine,
        options: &Options,
        node_count: u32,
        now: Instant,
    ) -> Result<Terms, Refused> {
        if options.in_flight == 0 {
            return Err(Refused::ZeroInFlight);
        }
        if let Some(deadline) = options.deadline
            && deadline <= now
        {
            return Err(Refused::DeadlinePassed { ago: now - deadline });
        }
        let reserve = match &options.reserve {
            Reserve::Share => {
                let given = options.deadline.map_or(Duration::ZERO, |deadline| deadline - now);
                TailReserve::Fixed((given / 10).clamp(Duration::from_millis(2), Duration::from_millis(10)))
            }
            Reserve::PerNode(table) if table.len() == node_count as usize => {
                TailReserve::PerNode(Arc::clone(table))
            }
            Reserve::PerNode(table) => {
                return Err(Refused::ReserveCount { entries: table.len(), node_count });
            }
        };
        Ok(Terms {
            deadline: options.deadline,
            grace: options.grace,
            reserve,
            class: options.class,
            in_flight: options.in_flight,
            inline_threshold: options.inline_threshold.unwrap_or(engine.inline_threshold),
            table: options.limits.clone(),
            drain: options.drain.clone(),
            seed: options.seed,
        })
    }
}
