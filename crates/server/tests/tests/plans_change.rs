//! Plans that change while they are served.

use std::sync::Arc;
use std::time::Duration;

use anabranch_server::CanarySettings;
use hyper::Method;
use serde_json::{Value, json};

use crate::http::JSON;
use crate::plans::{PROJECT, Shop, plan};
use crate::support::{TestClock, beside, soon, timed_executor, until};

fn request(user: u64) -> Value {
    json!({"user_id": user, "candidates": [101, 102, 103]})
}

async fn change(shop: &Shop, path: &str) -> crate::http::Answer {
    shop.http.send(Method::POST, path, &[JSON], "").await
}

/// The plan with its rows the other way round.
fn turned(name: &str) -> String {
    plan(name, "product", "").replace(r#"{"by": "price"}"#, r#"{"by": "price", "order": "desc"}"#)
}

#[tokio::test]
async fn a_plan_that_does_not_load_is_listed_and_the_others_serve() {
    let shop = Shop::start().await;
    shop.write("wrong.plan.json", &plan("wrong", "product", "\"timeuot_ms\": 3,"));
    let refused = change(&shop, "/v1/plans/reload").await;
    assert_eq!((refused.status, refused.error().0.as_str()), (409, "failed_precondition"));
    assert!(refused.error().1.contains("wrong.plan.json"), "{}", refused.error().1);
    let listed = shop.http.get("/v1/plans", &[]).await.json();
    let wrong = listed["plans"].as_array().unwrap().iter().find(|plan| plan["name"] == "wrong").unwrap();
    assert!(wrong["problem"].as_str().unwrap().contains("timeuot_ms"), "{wrong}");
    let answer = shop.run("wrong", &request(1)).await;
    assert_eq!(answer.status, 503);
    assert!(answer.error().1.contains("cannot be served"), "{}", answer.error().1);
    assert_eq!(shop.run("rank", &request(1)).await.status, 200);
    let text = shop.plans.metrics();
    assert!(text.contains("anabranch_plan_load_problem{plan=\"wrong\"} 1\n"), "{text}");
}

#[tokio::test]
async fn good_files_are_taken_over_and_bad_ones_change_nothing() {
    let shop = Shop::start().await;
    let first = shop.describe("rank").await["version"].clone();
    let ids = async || {
        let answer = shop.run("rank", &request(1)).await.json();
        answer["candidates"].as_array().unwrap().iter().map(|row| row["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids().await, [103, 101, 102]);

    shop.write("rank.plan.json", "{\"schema_version\": 1,");
    let refused = change(&shop, "/v1/plans/rank/reload").await;
    assert_eq!(refused.status, 409);
    let page = shop.describe("rank").await;
    assert_eq!(page["version"], first);
    assert!(page["problem"].is_string());
    assert_eq!(ids().await, [103, 101, 102]);

    shop.write("rank.plan.json", &turned("rank"));
    let changed = change(&shop, "/v1/plans/rank/reload").await;
    assert_eq!((changed.status, changed.json()), (200, json!({"changed": ["rank"]})));
    let page = shop.describe("rank").await;
    assert_eq!(page["problem"], Value::Null);
    assert_ne!(page["version"], first);
    assert_eq!(ids().await, [102, 101, 103]);

    let same = change(&shop, "/v1/plans/reload").await.json();
    assert_eq!(same, json!({"changed": []}));
    shop.write("rank.plan.json", &plan("rank", "product", ""));
    assert_eq!(shop.plans.reload().await.unwrap(), ["rank"]);
    assert_eq!(shop.describe("rank").await["version"], first);
    let unknown = change(&shop, "/v1/plans/rnak/reload").await;
    assert_eq!(unknown.status, 404);
    assert!(unknown.error().1.contains("did you mean `rank`?"), "{}", unknown.error().1);
}

#[tokio::test]
async fn a_changed_registry_is_taken_over_as_a_whole_or_not_at_all() {
    let shop = Shop::start().await;
    let keys = shop.folder.path().join("registry/keys.toml");
    let text = std::fs::read_to_string(&keys).unwrap();
    std::fs::write(&keys, text.replace("\"stock\"", "\"stocks\"")).unwrap();
    // Also if it is asked for again, and nothing was mended meanwhile.
    for _ in 0..2 {
        assert_eq!(change(&shop, "/v1/plans/reload").await.status, 409);
    }
    let listed = shop.http.get("/v1/plans", &[]).await.json();
    assert!(listed["problem"].as_str().unwrap().contains("stock"), "{}", listed["problem"]);
    assert_eq!(shop.run("rank", &request(1)).await.status, 200);
    std::fs::write(&keys, text + "\n# as before\n").unwrap();
    assert_eq!(change(&shop, "/v1/plans/reload").await.status, 200);
    assert_eq!(shop.http.get("/v1/plans", &[]).await.json()["problem"], Value::Null);
    assert_eq!(shop.run("rank", &request(1)).await.status, 200);
}

#[tokio::test]
async fn files_are_watched() {
    let shop = Shop::with(|settings| settings.watch_every = Some(Duration::from_millis(5))).await;
    let first = shop.describe("rank").await["version"].clone();
    shop.write("added.plan.json", &plan("added", "product", ""));
    shop.write("rank.plan.json", "{\"not\": \"a plan\"}");
    let problem = |name: &str| {
        let all = shop.plans.problems();
        all.into_iter().find(|(other, _)| other == name).map(|(_, problem)| problem)
    };
    until(|| problem("added") == Some(None) && problem("rank").flatten().is_some()).await;
    assert_eq!(shop.run("added", &request(1)).await.status, 200);
    assert_eq!(shop.describe("rank").await["version"], first);
    shop.write("rank.plan.json", &turned("rank"));
    std::fs::remove_file(shop.folder.path().join("plans/added.plan.json")).unwrap();
    until(|| problem("added").is_none() && problem("rank") == Some(None)).await;
    assert_ne!(shop.describe("rank").await["version"], first);
}

/// Whatever is changed meanwhile, every request has a whole answer of one version.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_go_on_while_plans_change() {
    let shop = Arc::new(Shop::start().await);
    let clients: Vec<_> = (0..4)
        .map(|client| {
            let shop = Arc::clone(&shop);
            beside(async move {
                for user in 1..=50 {
                    let answer = shop.run("rank", &request(client * 50 + user)).await;
                    assert_eq!(answer.status, 200);
                    let rows = answer.json()["candidates"].clone();
                    let ids: Vec<_> = rows.as_array().unwrap().iter().map(|row| row["id"].as_u64()).collect();
                    let both = [[Some(103), Some(101), Some(102)], [Some(102), Some(101), Some(103)]];
                    assert!(both.iter().any(|one| ids == one), "{ids:?}");
                }
            })
        })
        .collect();
    for round in 0..10 {
        let text = if round % 2 == 0 { turned("rank") } else { plan("rank", "product", "") };
        shop.write("rank.plan.json", &text);
        assert_eq!(shop.plans.reload().await.unwrap(), ["rank"]);
        shop.write("rank.plan.json", "{");
        assert!(shop.plans.reload().await.is_err());
    }
    for client in clients {
        client.done().await;
    }
}

#[tokio::test]
async fn a_canary_has_its_share_of_the_users_until_it_is_promoted_or_rolled_back() {
    let canary = CanarySettings { share: 0.25, trial: Duration::from_secs(3600) };
    let shop = Shop::with(|settings| settings.canary = Some(canary)).await;
    let before = shop.describe("rank").await["version"].clone();
    shop.write("rank.plan.json", &turned("rank"));
    assert_eq!(change(&shop, "/v1/plans/reload").await.json(), json!({"changed": ["rank"]}));
    let page = shop.describe("rank").await;
    let after = page["canary"]["version"].clone();
    assert_eq!((&page["version"], &page["canary"]["share"]), (&before, &json!(0.25)));
    assert!(after.is_string() && after != before);

    let mut tried = Vec::new();
    for user in 1..=200 {
        let answer = shop.run("rank", &request(user)).await;
        if after == answer.header("x-plan-version") {
            assert_eq!(answer.json()["candidates"][0]["id"], 102);
            tried.push(user);
        }
    }
    assert!((30..=70).contains(&tried.len()), "{}", tried.len());
    for user in &tried[..5] {
        assert_eq!(after, shop.run("rank", &request(*user)).await.header("x-plan-version"));
    }
    let seen = shop.describe("rank").await["canary"]["requests"].as_u64().unwrap();
    assert_eq!(seen, tried.len() as u64 + 5);
    let line = format!("version={after},role=\"canary\"}} 0.25");
    assert!(shop.plans.metrics().contains(&line), "{line}");

    let rolled_back = change(&shop, "/v1/plans/rank/rollback").await;
    assert_eq!(rolled_back.status, 200);
    let page = shop.describe("rank").await;
    assert_eq!((&page["version"], &page["canary"]), (&before, &Value::Null));
    assert!(page["problem"].as_str().unwrap().contains("rolled back by request"));
    assert_eq!(change(&shop, "/v1/plans/rank/promote").await.status, 409);

    assert_eq!(change(&shop, "/v1/plans/rank/reload").await.status, 200);
    assert_eq!(change(&shop, "/v1/plans/rank/promote").await.status, 200);
    let page = shop.describe("rank").await;
    assert_eq!((&page["version"], &page["canary"], &page["problem"]), (&after, &Value::Null, &Value::Null));
}

/// The watcher does not wait for the end of the trial of a version that fails always.
#[tokio::test]
async fn a_canary_that_clearly_fails_is_rolled_back_early() {
    let canary = CanarySettings { share: 1.0, trial: Duration::from_secs(3600) };
    let shop = Shop::with(|settings| {
        settings.canary = Some(canary);
        settings.watch_every = Some(Duration::from_millis(5));
    })
    .await;
    let before = shop.describe("rank").await["version"].clone();
    // It fails always, the old one never did.
    shop.write("rank.plan.json", &plan("rank", "broken", ""));
    until(|| shop.plans.metrics().contains("plan=\"rank\",version=") && has_canary(&shop)).await;
    for user in 1..=20 {
        assert_eq!(shop.run("rank", &request(user)).await.status, 502);
    }
    until(|| !has_canary(&shop)).await;
    let page = shop.describe("rank").await;
    assert_eq!(page["version"], before);
    let problem = page["problem"].as_str().unwrap();
    assert!(problem.contains("100.0% of its requests failed, 0.0% of the others"), "{problem}");
}

/// A trial that is over at once is judged by the watcher.
#[tokio::test]
async fn a_canary_is_judged_when_its_trial_is_over() {
    let canary = CanarySettings { share: 1.0, trial: Duration::ZERO };
    let shop = Shop::with(|settings| {
        settings.canary = Some(canary);
        settings.watch_every = Some(Duration::from_millis(5));
    })
    .await;
    let before = shop.describe("rank").await["version"].clone();
    shop.write("rank.plan.json", &format!("{}\n", plan("rank", "product", "")));
    until(|| has_canary(&shop)).await;
    for user in 1..=100 {
        assert_eq!(shop.run("rank", &request(user)).await.status, 200);
    }
    until(|| !has_canary(&shop)).await;
    let page = shop.describe("rank").await;
    assert_ne!(page["version"], before);
    assert_eq!(page["problem"], Value::Null);
}

/// The reads of the new version take 200 ms of the test's clock, those of the old one no time.
#[tokio::test]
async fn a_canary_that_is_slower_is_rolled_back() {
    let clock = Arc::new(TestClock::default());
    let executor = timed_executor(&clock);
    let late = PROJECT.replace("faults = [", "faults = [{ prefix = \"late:\", delay_ms = 200 }, ");
    let folder = Shop::files(&late);
    let mut settings = Shop::settings(&folder);
    // Longer than all steps of the clock together.
    let trial = Duration::from_secs(10 * 365 * 24 * 3600);
    settings.canary = Some(CanarySettings { share: 0.8, trial });
    settings.watch_every = Some(Duration::from_millis(5));
    let shop = Shop::serving(folder, settings, executor, |service| service).await;
    let before = shop.describe("rank").await["version"].clone();
    shop.write("rank.plan.json", &plan("rank", "late", ""));
    until(|| has_canary(&shop)).await;
    let is_new = async |request: Value| {
        let answer = shop.run("rank", &request).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        before != answer.header("x-plan-version")
    };
    // A first trial, in which nothing is read, says which users get the new version.
    let (mut chosen, mut others) = (Vec::new(), Vec::new());
    for user in 1..=160 {
        match soon(is_new(json!({"user_id": user, "candidates": []}))).await {
            true => chosen.push(user),
            false => others.push(user),
        }
    }
    assert!(chosen.len() > 100 && others.len() > 10, "{} and {}", chosen.len(), others.len());
    assert_eq!(change(&shop, "/v1/plans/rank/rollback").await.status, 200);
    assert_eq!(change(&shop, "/v1/plans/rank/reload").await.status, 200);
    for user in others {
        assert!(!soon(is_new(request(user))).await, "{user}");
    }
    // Time passes only in requests for the new version, once they have all arrived.
    let slow = futures_util::future::join_all(chosen.iter().map(|user| is_new(request(*user))));
    let steps = async {
        until(|| shop.http.server.service.load().calls == chosen.len()).await;
        loop {
            clock.advance(Duration::from_millis(50));
            tokio::task::yield_now().await;
        }
    };
    let slow = tokio::select! {
        slow = soon(slow) => slow,
        () = steps => unreachable!("time does not end"),
    };
    assert!(slow.iter().all(|is_new| *is_new), "{slow:?}");
    assert!(has_canary(&shop), "the trial goes on");
    clock.advance(trial);
    until(|| !has_canary(&shop)).await;
    // Connections were idle for years, so it is not asked for over one of them.
    let problems = shop.plans.problems();
    let problem =
        problems.iter().find(|(name, _)| name == "rank").and_then(|(_, problem)| problem.as_deref());
    assert!(problem.is_some_and(|problem| problem.contains("its 99th percentile is ")), "{problem:?}");
}

fn has_canary(shop: &Shop) -> bool {
    shop.plans
        .metrics()
        .lines()
        .any(|line| line.contains("plan=\"rank\"") && line.contains("role=\"canary\""))
}

/// Asks for the changed plan, and for the registry with a new comment.
async fn touch_registry(shop: &Shop) {
    let keys = shop.folder.path().join("registry/keys.toml");
    let text = std::fs::read_to_string(&keys).unwrap();
    std::fs::write(&keys, text + "# changed\n").unwrap();
    assert_eq!(change(shop, "/v1/plans/reload").await.status, 200);
}

/// The first id in the answer: 103 of the old plan, 102 of the turned one.
async fn first_id(shop: &Shop, user: u64) -> Value {
    let answer = shop.run("rank", &request(user)).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    answer.json()["candidates"][0]["id"].clone()
}

const EVERYBODY: CanarySettings = CanarySettings { share: 1.0, trial: Duration::from_secs(3600) };

#[tokio::test]
async fn a_rolled_back_version_does_not_return_with_a_changed_registry_or_a_reload() {
    let shop = Shop::with(|settings| settings.canary = Some(EVERYBODY)).await;
    shop.write("rank.plan.json", &turned("rank"));
    assert_eq!(change(&shop, "/v1/plans/reload").await.status, 200);
    assert_eq!(first_id(&shop, 1).await, 102);
    assert_eq!(change(&shop, "/v1/plans/rank/rollback").await.status, 200);

    assert_eq!(change(&shop, "/v1/plans/reload").await.json(), json!({"changed": []}));
    touch_registry(&shop).await;
    // The file is written again, with the same text.
    shop.write("rank.plan.json", &turned("rank"));
    assert_eq!(change(&shop, "/v1/plans/reload").await.json(), json!({"changed": []}));
    let page = shop.describe("rank").await;
    assert_eq!((&page["canary"], first_id(&shop, 1).await), (&Value::Null, json!(103)), "{page}");
    let problem = page["problem"].as_str().unwrap();
    assert!(problem.contains("rolled back by request") && problem.contains("change its file"), "{problem}");

    // With the served version in its file again, there is no problem. The bad one would be tried once more.
    shop.write("rank.plan.json", &plan("rank", "product", ""));
    assert_eq!(change(&shop, "/v1/plans/reload").await.status, 200);
    assert_eq!(shop.describe("rank").await["problem"], Value::Null);
    touch_registry(&shop).await;
    assert_eq!(first_id(&shop, 1).await, 103);
}

#[tokio::test]
async fn a_version_on_trial_stays_on_trial_when_the_registry_changes() {
    let canary = CanarySettings { share: 0.25, ..EVERYBODY };
    let shop = Shop::with(|settings| settings.canary = Some(canary)).await;
    shop.write("rank.plan.json", &turned("rank"));
    assert_eq!(change(&shop, "/v1/plans/reload").await.status, 200);
    let tried = async || {
        let mut tried = Vec::new();
        for user in 1..=100 {
            tried.extend((first_id(&shop, user).await == 102).then_some(user));
        }
        tried
    };
    let before = tried().await;
    assert!((10..=40).contains(&before.len()), "{before:?}");
    touch_registry(&shop).await;
    let page = shop.describe("rank").await;
    assert_eq!(page["canary"]["share"], json!(0.25), "{page}");
    // The trial goes on with the same users, and with what it knows.
    assert_eq!(page["canary"]["requests"], json!(before.len()), "{page}");
    assert_eq!(tried().await, before);
    // Both were compiled for the changed registry.
    assert_eq!(change(&shop, "/v1/plans/rank/promote").await.status, 200);
    assert_eq!(first_id(&shop, 1).await, 102);
}

#[tokio::test]
async fn a_registry_that_the_served_version_does_not_fit_is_refused_while_its_file_has_another() {
    let shop = Shop::with(|settings| settings.canary = Some(EVERYBODY)).await;
    shop.write("rank.plan.json", &turned("rank").replace("\"stock\", ", ""));
    assert_eq!(change(&shop, "/v1/plans/reload").await.status, 200);
    assert_eq!(change(&shop, "/v1/plans/rank/rollback").await.status, 200);
    for name in ["patient", "broken", "guarded"] {
        std::fs::remove_file(shop.folder.path().join(format!("plans/{name}.plan.json"))).unwrap();
    }
    let keys = shop.folder.path().join("registry/keys.toml");
    let text = std::fs::read_to_string(&keys).unwrap();
    std::fs::write(&keys, text.replace("\"stock\"", "\"stocks\"")).unwrap();
    let refused = change(&shop, "/v1/plans/reload").await;
    assert_eq!(refused.status, 409, "{:?}", refused.body);
    let message = refused.error().1;
    assert!(message.contains("stock") && message.contains("plan `rank`"), "{message}");
    assert_eq!(first_id(&shop, 1).await, 103);
}
