//! Deep and wide graphs, computed over gRPC.

use std::io;

use super::grpc_server::{Ask, GrpcServer};
use super::nodes::Make;
use super::shapes::{Shape, on_disk};
use super::turns::{Turns, micros};
use crate::content::ground::Ground;
use crate::content::{digits, verdict};
use crate::report::{Report, row};

pub(super) fn report(report: &mut Report, ground: &Ground) -> io::Result<()> {
    report.heading("Depth over gRPC");
    report.say(
        "First get of a chain of `blake3`, whose values all differ, and of `concat` over so many `identity`, on disk, over our service. Linear: \
        a recipe of the deepest takes no more than twice as long as one of 1,000.\n",
    );
    let mut rows = vec![row(["graph", "ms", "ms CPU", "us a recipe", "aim", "met?"])];
    let graphs: [(&str, Make, usize); 6] = [
        ("chain", Shape::chain, 50),
        ("chain", Shape::chain, 1_000),
        ("chain", Shape::chain, 10_000),
        ("chain", Shape::chain, 100_000),
        ("chain", Shape::chain, 1_000_000),
        ("fan", Shape::fan, 100_000),
    ];
    let mut of_a_thousand = f64::INFINITY;
    for (name, make, nodes) in graphs {
        if ground.sizes.quick && nodes > 10_000 {
            continue;
        }
        let mut turns = Turns::default();
        for turn in 0..if nodes > 100_000 { 1 } else { 3 } {
            let folder = ground.folder("depth");
            let executor = on_disk(folder.path());
            let shape = make(nodes, turn);
            shape.add_to(&ground.runtime, &executor);
            let served = GrpcServer::recipes(executor.clone())?;
            let channels = served.connect(&ground.runtime, 1);
            let bytes =
                turns.time(1, || ground.runtime.block_on(Ask::Recipes.call(&channels, 0, shape.tip())));
            assert_eq!(bytes, shape.value_len);
            drop((channels, served));
            ground.close(executor.store().clone());
        }
        let each = turns.wall() / nodes as f64;
        if nodes == 1_000 {
            of_a_thousand = each;
        }
        let millis = |nanos: f64| format!("{:.1}", nanos / 1e6);
        rows.push(row([
            &format!("{name} of {}", digits(nodes as f64)),
            &millis(turns.wall()),
            &millis(turns.cpu()),
            &micros(each),
            "linear",
            verdict(each <= 2.0 * of_a_thousand),
        ]));
    }
    report.table(&rows);
    Ok(())
}
