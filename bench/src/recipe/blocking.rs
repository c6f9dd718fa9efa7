//! A blocking call beside the same call awaited, and a computed get beside its function alone.

use std::io;

use anabranch_recipe::{Address, Get, Params, call};

use super::shapes::{Shape, get, in_memory};
use super::turns::{Turns, micros};
use crate::content::callers::SMALL;
use crate::content::ground::Ground;
use crate::content::{digits, verdict};
use crate::report::{Report, row};

const HITS: u64 = 100_000;
const COMPUTED: usize = 5_000;

/// A computed get alone takes at most so many nanoseconds more than its function.
const OVER_FUNCTION_MOST: f64 = 30_000.0;

pub(super) fn report(report: &mut Report, ground: &Ground) -> io::Result<()> {
    report.heading("Blocking calls");
    report.say(format_args!(
        "The store is in memory. Hits: one value of 1 KiB, {} times. Computed: {} recipes over blobs of 1 KiB, one \
        call each. `entered each time` awaits the same call, but enters a runtime for each. `function alone` calls the \
        function of the recipes on the same blobs, in place.\n",
        digits(HITS as f64),
        digits(COMPUTED as f64)
    ));
    let mut hits: [Turns; 3] = Default::default();
    let mut computed: [Turns; 3] = Default::default();
    let mut alone = Turns::default();
    let executor = in_memory();
    let blocking = executor.blocking().map_err(io::Error::other)?;
    let runtime = &ground.runtime;
    let identity = "identity/1.0.0".parse().expect("it is an id");
    let function = executor.functions().get(&identity).expect("it is built in");
    for turn in 0..=ground.sizes.turns {
        for way in 0..3 {
            let shape = Shape::pairs(COMPUTED, SMALL, 1 + 3 * turn as u64 + way as u64);
            shape.add_to(runtime, &executor);
            let one = [shape.addresses()[0]];
            let again: Vec<&Address> = one.iter().cycle().take(HITS as usize).collect();
            let fresh: Vec<&Address> = shape.addresses().iter().collect();
            for (addresses, turns) in [(fresh, &mut computed[way]), (again, &mut hits[way])] {
                turns.time(addresses.len() as u64, || match way {
                    0 => runtime.block_on(async {
                        for address in addresses {
                            get(&executor, address).await;
                        }
                    }),
                    1 => addresses
                        .into_iter()
                        .for_each(|address| drop(runtime.block_on(get(&executor, address)))),
                    _ => addresses.into_iter().for_each(|address| {
                        drop(blocking.get(address, &Get::default()).expect("it can be computed"));
                    }),
                });
            }
        }
        let leaves = Shape::pairs(COMPUTED, SMALL, 1 + 3 * turn as u64).leaves;
        alone.time(COMPUTED as u64, || {
            for leaf in &leaves {
                call(function, &[vec![leaf.clone()]], &Params::new()).expect("it can be computed");
            }
        });
        if turn == 0 {
            hits.iter_mut().chain(&mut computed).chain([&mut alone]).for_each(Turns::forget);
        }
    }
    report.table(&rows(&hits, &computed, &alone));
    ground.close(executor.store().clone());
    Ok(())
}

/// The table of the report.
fn rows(hits: &[Turns; 3], computed: &[Turns; 3], alone: &Turns) -> Vec<Vec<String>> {
    let mut rows = vec![row([
        "what",
        "how",
        "us each",
        "us CPU each",
        "more than awaited, us",
        "more than its function, us",
        "aim",
        "met?",
    ])];
    for (what, turns) in [("hit", hits), ("computed", computed)] {
        for (place, (how, own)) in ["awaited", "entered each time", "blocking"].iter().zip(turns).enumerate()
        {
            let more = micros(own.wall() - turns[0].wall());
            let over = own.wall() - alone.wall();
            let (over_function, aim, met) = match (what, place) {
                ("computed", 0) => (micros(over), "<= 30 us", verdict(over <= OVER_FUNCTION_MOST)),
                ("computed", _) => (micros(over), "", "-"),
                _ => (String::new(), "", "-"),
            };
            let (wall, cpu) = (micros(own.wall()), micros(own.cpu()));
            rows.push(row([what, how, &wall, &cpu, &more, &over_function, aim, met]));
        }
    }
    let (wall, cpu) = (micros(alone.wall()), micros(alone.cpu()));
    rows.push(row(["function", "alone", &wall, &cpu, "", "", "", "-"]));
    rows
}
