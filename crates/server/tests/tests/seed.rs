//! What the seed document asks of a server with many callers at once.

use anabranch_server::Settings;

use crate::deriva_wire::{Deriva, Invalidate, InvalidateAnswer, Nothing, StatusAnswer};
use crate::support::{Gate, OpenOnDrop, Server, beside, soon, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gets_at_the_same_time() {
    let server = Server::start().await;
    let deriva = Deriva(server.channel().await);
    let mut gets = Vec::new();
    for number in 0..5 {
        let leaf = deriva.leaf(format!("leaf {number}")).await;
        let recipe = deriva.recipe("uppercase", &[&leaf]).await;
        let deriva = deriva.clone();
        gets.push((number, beside(async move { deriva.get(&recipe).await })));
    }
    for (number, get) in gets {
        assert_eq!(get.done().await.unwrap(), format!("LEAF {number}").into_bytes());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_get_does_not_hold_up_puts() {
    let gate = Gate::default();
    let _open = OpenOnDrop(gate.clone());
    let server = Server::with(gate.functions(), Settings::default()).await;
    let deriva = Deriva(server.channel().await);
    let leaf = deriva.leaf(vec![7; 4096]).await;
    let slow = deriva.recipe("gate", &[&leaf]).await;
    let get = {
        let (deriva, slow) = (deriva.clone(), slow.clone());
        beside(async move { deriva.get(&slow).await })
    };
    until(|| server.executor.status().computing == 1).await;
    let other = soon(deriva.leaf("quick")).await;
    let recipe = soon(deriva.recipe("uppercase", &[&other])).await;
    assert_eq!(soon(deriva.get(&recipe)).await.unwrap(), b"QUICK");
    assert_eq!(server.executor.status().computing, 1);
    gate.open();
    assert_eq!(get.done().await.unwrap(), vec![7; 4096]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalidation_during_gets() {
    let server = Server::start().await;
    let deriva = Deriva(server.channel().await);
    let leaf = deriva.leaf("x").await;
    let recipe = deriva.recipe("uppercase", &[&leaf]).await;
    deriva.get(&recipe).await.unwrap();
    let gets: Vec<_> = (0..4)
        .map(|_| {
            let (deriva, recipe) = (deriva.clone(), recipe.clone());
            beside(async move {
                for _ in 0..50 {
                    assert_eq!(deriva.get(&recipe).await.unwrap(), b"X");
                }
            })
        })
        .collect();
    for _ in 0..50 {
        let request = Invalidate { addr: recipe.clone(), cascade: true };
        let _: InvalidateAnswer = soon(deriva.call("Invalidate", request)).await.unwrap();
    }
    for get in gets {
        get.done().await;
    }
    assert_eq!(server.executor.status().computing, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn status_under_load() {
    let gate = Gate::default();
    let _open = OpenOnDrop(gate.clone());
    let server = Server::with(gate.functions(), Settings::default()).await;
    let deriva = Deriva(server.channel().await);
    let mut gets = Vec::new();
    for number in 0..100u8 {
        let leaf = deriva.leaf(vec![number; 4096]).await;
        let recipe = deriva.recipe("gate", &[&leaf]).await;
        if number < 50 {
            let deriva = deriva.clone();
            gets.push((number, beside(async move { deriva.get(&recipe).await })));
        }
    }
    until(|| server.executor.status().computing > 0).await;
    let status: StatusAnswer = soon(deriva.call("Status", Nothing {})).await.unwrap();
    assert_eq!((status.cache_entries, status.verification_mode), (0, "off".to_owned()));
    assert_eq!(status.recipe_count, 100);
    gate.open();
    for (number, get) in gets {
        assert_eq!(get.done().await.unwrap(), vec![number; 4096]);
    }
    let status: StatusAnswer = soon(deriva.call("Status", Nothing {})).await.unwrap();
    assert_eq!(status.cache_entries, 50);
}
