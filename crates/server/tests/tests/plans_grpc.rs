//! Plans over gRPC: the same answers and failures as over HTTP.

use std::time::Duration;

use anabranch_server::proto::plans as proto;
use anabranch_server::proto::plans::plans_client::PlansClient;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tonic::Code;
use tonic::transport::Channel;

use crate::plans::{Shop, plan};
use crate::support::soon;

pub(crate) fn request(plan: &str) -> proto::RunRequest {
    proto::RunRequest {
        plan: plan.to_owned(),
        user: Some(proto::run_request::User::UserId(7)),
        request_id: "r1".to_owned(),
        candidates: Some(proto::Rows { ids: vec![101, 102, 103, 104], columns: Vec::new() }),
        ..proto::RunRequest::default()
    }
}

pub(crate) async fn client(shop: &Shop) -> PlansClient<Channel> {
    PlansClient::new(shop.http.server.channel().await)
}

fn json_value(value: &proto::Value) -> Value {
    use proto::value::Kind;
    match value.kind.as_ref().unwrap() {
        Kind::Int(value) => json!(value),
        Kind::Float(value) => json!(value),
        Kind::Bool(value) => json!(value),
        Kind::Text(value) => json!(value),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn answers_are_those_of_http() {
    let shop = Shop::start().await;
    let body = json!({"user_id": 7, "request_id": "r1", "candidates": [101, 102, 103, 104]});
    let over_http = shop.run("rank", &body).await;
    let version = over_http.header("x-plan-version").to_owned();
    let over_http = over_http.json();
    let mut client = client(&shop).await;
    let answer = client.run(request("rank")).await.unwrap().into_inner();
    assert_eq!((answer.request_id.as_str(), answer.version), ("r1", version));
    let rows = answer.candidates.iter().map(|row| {
        let fields: serde_json::Map<_, _> =
            row.fields.iter().map(|(name, value)| (name.clone(), json_value(value))).collect();
        json!({"id": row.id, "fields": fields})
    });
    assert_eq!(Value::from_iter(rows), over_http["candidates"]);

    let columns = proto::RunRequest { form: proto::Form::Columns.into(), ..request("rank") };
    let answer = client.run(columns).await.unwrap().into_inner();
    let rows = answer.outputs[0].rows.as_ref().unwrap();
    assert_eq!((answer.outputs[0].name.as_str(), &rows.ids[..]), ("sorted", &[103, 101, 102, 104][..]));
    let price = rows.columns.iter().find(|column| column.name == "price").unwrap();
    let prices = proto::Floats { values: vec![8.5, 25.0, 40.0, 0.0] };
    assert_eq!(price.values, Some(proto::column::Values::Floats(prices)));
    assert_eq!(price.present, [true, true, true, false]);

    let degraded = client.run(request("guarded")).await.unwrap().into_inner();
    let entry = &degraded.ledger[0];
    assert_eq!((entry.node.as_str(), entry.reason.as_str()), ("items", "timeout"));
    assert_eq!((entry.fallback.as_str(), entry.rows), ("pass", 4));
}

#[tokio::test]
async fn failures_are_those_of_http() {
    let shop = Shop::start().await;
    let mut client = client(&shop).await;
    let mut check = async |request: tonic::Request<proto::RunRequest>, code: Code, message: &str| {
        let status = client.run(request).await.unwrap_err();
        assert_eq!(status.code(), code, "{status}");
        assert!(status.message().contains(message), "{status}");
    };
    let of = |request: proto::RunRequest| tonic::Request::new(request);
    check(of(request("rnak")), Code::NotFound, "did you mean `rank`?").await;
    check(of(request("broken")), Code::Unavailable, "items").await;
    let nobody = proto::RunRequest { user: None, ..request("rank") };
    check(of(nobody), Code::InvalidArgument, "`user_id` is missing").await;
    let zero = proto::RunRequest { user: Some(proto::run_request::User::UserId(0)), ..request("rank") };
    check(of(zero), Code::InvalidArgument, "user_id").await;
    let text = proto::Value { kind: Some(proto::value::Kind::Text("x".to_owned())) };
    let wrong = proto::RunRequest { params: [("budget".to_owned(), text)].into(), ..request("rank") };
    check(of(wrong), Code::InvalidArgument, "`budget` must be a finite float").await;
    let column = |name: &str, count: usize| proto::Column {
        name: name.to_owned(),
        values: Some(proto::column::Values::Ints(proto::Ints { values: vec![1; count] })),
        present: Vec::new(),
    };
    for (columns, message) in [
        (vec![column("prize", 1)], "there is no key `prize` (did you mean `price`?)"),
        (vec![column("price", 2)], "has 2 values for 1 ids"),
        (vec![column("price", 1), column("price", 1)], "is there twice"),
        (vec![column("title", 1)], "title"),
    ] {
        let rows = proto::Rows { ids: vec![101], columns };
        let wrong = proto::RunRequest { candidates: Some(rows), ..request("rank") };
        check(of(wrong), Code::InvalidArgument, message).await;
    }
}

#[tokio::test]
async fn a_request_has_one_id() {
    let shop = Shop::start().await;
    let mut client = client(&shop).await;
    let id = |metadata: &tonic::metadata::MetadataMap| {
        metadata.get("x-request-id").unwrap().to_str().unwrap().to_owned()
    };
    for (header, message, expected) in [(Some("h"), "m", "h"), (Some("h"), "", "h"), (None, "m", "m")] {
        for plan in ["rank", "broken"] {
            let message = proto::RunRequest { request_id: message.to_owned(), ..request(plan) };
            let mut call = tonic::Request::new(message);
            header.into_iter().for_each(|header| {
                call.metadata_mut().insert("x-request-id", header.parse().unwrap());
            });
            match client.run(call).await {
                Ok(answer) => {
                    assert_eq!(
                        (id(answer.metadata()), &*answer.get_ref().request_id),
                        (expected.to_owned(), expected)
                    );
                }
                Err(status) => assert_eq!(id(status.metadata()), expected, "{plan}"),
            }
        }
    }
    let none = proto::RunRequest { request_id: String::new(), ..request("rank") };
    let answer = client.run(none).await.unwrap();
    assert_eq!(id(answer.metadata()), answer.get_ref().request_id);
}

#[tokio::test]
async fn many_requests_in_one_stream() {
    let shop = Shop::start().await;
    let third = proto::RunRequest { request_id: String::new(), ..request("rank") };
    let requests = futures_util::stream::iter([request("rank"), request("rnak"), third]);
    let mut call = tonic::Request::new(requests);
    call.metadata_mut().insert("x-request-id", "of-the-call".parse().unwrap());
    let answers = client(&shop).await.run_many(call).await.unwrap().into_inner();
    let answers: Vec<_> = answers.map(Result::unwrap).collect().await;
    let places: Vec<u64> = answers.iter().map(|answer| answer.place).collect();
    assert_eq!(places, [0, 1, 2]);
    use proto::run_many_response::Result::{Error, Response};
    assert!(matches!(&answers[0].result, Some(Response(answer)) if answer.candidates.len() == 4));
    assert!(matches!(&answers[0].result, Some(Response(answer)) if answer.request_id == "r1"));
    assert!(matches!(&answers[1].result, Some(Error(error)) if error.code == i32::from(Code::NotFound)));
    assert!(matches!(&answers[2].result, Some(Response(answer)) if answer.request_id == "of-the-call"));
}

/// A client that keeps a stream open for later requests does not hold a shutdown.
#[tokio::test]
async fn a_stream_ends_when_the_server_shuts_down() {
    let mut shop = Shop::start().await;
    let (sender, requests) = tokio::sync::mpsc::channel(4);
    let requests =
        futures_util::stream::unfold(requests, async |mut requests| Some((requests.recv().await?, requests)));
    let mut answers = client(&shop).await.run_many(requests).await.unwrap().into_inner();
    for _ in 0..3 {
        sender.send(request("rank")).await.unwrap();
        soon(answers.message()).await.unwrap().unwrap();
    }
    shop.http.server.stop();
    let end = soon(answers.message()).await.unwrap_err();
    assert_eq!(end.code(), Code::Unavailable);
    assert!(end.message().contains("requests that have no response"), "{end}");
    assert_eq!(shop.http.server.served().await.cut, 0);
}

#[tokio::test]
async fn lists_descriptions_and_reloads() {
    let shop = Shop::with(|settings| settings.watch_every = Some(Duration::from_secs(3600))).await;
    let mut client = client(&shop).await;
    let listed = client.list(proto::ListRequest {}).await.unwrap().into_inner();
    let names: Vec<&str> = listed.plans.iter().map(|plan| plan.name.as_str()).collect();
    assert_eq!(names, ["broken", "guarded", "patient", "rank"]);
    let one = proto::DescribeRequest { plan: "rank".to_owned() };
    let described = client.describe(one).await.unwrap().into_inner();
    let page: Value = serde_json::from_str(&described.json).unwrap();
    assert_eq!(page["version"], described.summary.unwrap().version);
    shop.write("rank.plan.json", &plan("rank", "slow", ""));
    let all = proto::ReloadRequest { plan: String::new() };
    let reloaded = client.reload(all.clone()).await.unwrap().into_inner();
    assert_eq!(reloaded.changed, ["rank"]);
    shop.write("rank.plan.json", "{");
    let refused = client.reload(all).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().contains("rank.plan.json"), "{refused}");
}

#[tokio::test]
async fn a_traced_request_is_kept_as_over_http() {
    let shop = Shop::start().await;
    let value = |kind| proto::Value { kind: Some(kind) };
    let prices = proto::Column {
        name: "price".to_owned(),
        values: Some(proto::column::Values::Floats(proto::Floats { values: vec![1.5, 0.0] })),
        present: vec![true, false],
    };
    let params = [
        ("budget".to_owned(), value(proto::value::Kind::Float(30.0))),
        ("title_like".to_owned(), value(proto::value::Kind::Null(proto::Null {}))),
    ];
    let traced = proto::RunRequest {
        trace: true,
        params: params.into(),
        candidates: Some(proto::Rows { ids: vec![101, 102], columns: vec![prices] }),
        ..request("rank")
    };
    let answer = client(&shop).await.run(traced).await.unwrap().into_inner();
    let run = shop.http.get(&format!("/v1/runs/{}", answer.run_id), &[]).await.json();
    assert_eq!(
        run["request"],
        json!({
            "user_id": 7, "request_id": "r1", "param_overrides": {"budget": 30.0, "title_like": null},
            "candidates": [{"id": 101, "price": 1.5}, {"id": 102}],
        })
    );
    // The same request can be sent over HTTP.
    let again = shop.run("rank", &run["request"]).await;
    assert_eq!(again.status, 200, "{:?}", again.body);
}

#[tokio::test]
async fn requests_are_kept_if_the_server_is_to_keep_them() {
    let shop = Shop::with(|settings| settings.keep_requests = true).await;
    client(&shop).await.run(request("broken")).await.unwrap_err();
    let listed = shop.http.get("/v1/runs?state=failed", &[]).await.json();
    let id = listed["runs"][0]["id"].as_str().unwrap();
    let run = shop.http.get(&format!("/v1/runs/{id}"), &[]).await.json();
    assert_eq!(run["request"]["candidates"], json!([101, 102, 103, 104]));
}
