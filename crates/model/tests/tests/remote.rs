//! Models on a scripted server.

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::clock::SystemClock;
use anabranch_engine::retry::Classified;
use anabranch_model::{
    ApiKey, ChatParams, ChatReply, ChatRequest, EmbedRequest, EmbeddingParams, EncodingFormat, Error,
    Generation, HttpClient, HttpSettings, Message, Model, ModelConfig, Params, Provider, ProviderKind,
    RateWindow, Rates, Sampling, connect,
};
use anabranch_testkit::{ModelCall, ModelFault, ModelFaultKind, ModelScript, ModelServer};
use anabranch_value::{Map, Value};
use expect_test::{Expect, expect};

use crate::block_on;

const KEY: &str = "sk-very-secret";

/// A provider and a model of it, to be changed by a test.
pub(crate) struct Setup {
    pub(crate) provider: Provider,
    pub(crate) config: ModelConfig,
    pub(crate) settings: HttpSettings,
}

impl Setup {
    pub(crate) fn new(endpoint: &str, kind: ProviderKind) -> Setup {
        let provider = Provider {
            name: "acme".to_owned(),
            endpoint: endpoint.to_owned(),
            kind,
            api_key: Some(ApiKey::new(KEY)),
            extra_body: Map::new(),
            extra_headers: vec![("x-team".to_owned(), "header-secret".to_owned())],
        };
        let params = Params {
            kind: Generation::Chat(ChatParams::default()),
            max_parallel_requests: 8,
            timeout: Duration::from_secs(20),
            extra_body: Map::new(),
        };
        let config = ModelConfig {
            alias: "text".to_owned(),
            model: "m-1".to_owned(),
            provider: "acme".to_owned(),
            params,
            skip_health_check: true,
        };
        Setup { provider, config, settings: HttpSettings::default() }
    }

    pub(crate) fn model(&self) -> Result<Arc<dyn Model>, Error> {
        let client = HttpClient::new(&self.settings, Arc::new(SystemClock))?;
        connect(&self.provider, &self.config, client, |_| None)
    }
}

fn open_ai(script: ModelScript) -> (ModelServer, Setup) {
    let server = ModelServer::start(script);
    let setup = Setup::new(&server.endpoint(), ProviderKind::OpenAi);
    (server, setup)
}

pub(crate) fn hello() -> ChatRequest {
    ChatRequest::new([Message::system("Be kind."), Message::user("Hello!")])
}

fn person() -> ChatRequest {
    let schema = r#"{"type":"object","properties":{"age":{"type":"integer"}},"required":["age"],"additionalProperties":false}"#;
    hello().with_format("a person", Value::from_json(schema).unwrap())
}

fn map(json: &str) -> Map {
    Value::from_json(json).unwrap().as_map().unwrap().clone()
}

/// A script that answers all calls with this body of a message's text.
fn says(text: &'static str) -> ModelScript {
    ModelScript { reply: Some(Arc::new(move |_: &ModelCall| text.to_owned())), ..ModelScript::default() }
}

#[test]
fn open_ai_bodies() {
    let (server, mut setup) = open_ai(says("hi"));
    setup.config.params.extra_body = map(r#"{"top_k": 3, "n": 4, "top_p": 0.1, "a": "model"}"#);
    setup.provider.extra_body = map(r#"{"a": "provider", "c": 1}"#);
    let request = ChatRequest {
        sampling: Sampling { temperature: Some(0.5), top_p: Some(0.9), max_tokens: Some(100) },
        extra_body: Some(Arc::new(map(r#"{"a": "call", "b": "call"}"#))),
        ..person()
    };
    let reply = block_on(setup.model().unwrap().chat(request)).unwrap();
    assert_eq!((&*reply.text, reply.usage.input_tokens, reply.demo), ("hi", 2, false));
    let call = &server.requests()[0];
    assert_eq!(call.path, "/v1/chat/completions");
    assert_eq!(call.header("authorization"), Some("Bearer sk-very-secret"));
    assert_eq!(
        (call.header("x-team"), call.header("content-type")),
        (Some("header-secret"), Some("application/json"))
    );
    expect![[r#"{"model":"m-1","messages":[{"role":"system","content":[{"type":"text","text":"Be kind."}]},{"role":"user","content":[{"type":"text","text":"Hello!"}]}],"temperature":0.5,"top_p":0.1,"max_tokens":100,"response_format":{"type":"json_schema","json_schema":{"name":"a_person","schema":{"type":"object","properties":{"age":{"type":"integer"}},"required":["age"],"additionalProperties":false},"strict":true}},"top_k":3,"a":"provider","b":"call","c":1}"#]].assert_eq(&call.body.to_json());
}

#[test]
fn bodies_are_json_whatever_the_extra_headers_say() {
    let (server, mut setup) = open_ai(says("hi"));
    setup.provider.extra_headers = vec![("Content-Type".to_owned(), "text/plain".to_owned())];
    block_on(setup.model().unwrap().chat(hello())).unwrap();
    assert_eq!(server.requests()[0].header("content-type"), Some("application/json"));
}

#[test]
fn anthropic_bodies() {
    for endpoint_end in ["/v1", ""] {
        let server = ModelServer::start(ModelScript::default());
        let endpoint = server.endpoint().replace("/v1", endpoint_end);
        let setup = Setup::new(&endpoint, ProviderKind::Anthropic);
        let model = setup.model().unwrap();
        let reply = block_on(model.chat(person())).unwrap();
        assert!(Value::from_json(&reply.text).unwrap().get("age").is_some(), "{}", reply.text);
        let call = &server.requests()[0];
        assert_eq!(call.path, "/v1/messages");
        assert_eq!(
            (call.header("x-api-key"), call.header("anthropic-version")),
            (Some(KEY), Some("2023-06-01"))
        );
        assert_eq!(call.header("authorization"), None);
        expect![[r#"{"model":"m-1","max_tokens":4096,"system":"Be kind.","messages":[{"role":"user","content":[{"type":"text","text":"Hello!"}]}],"tools":[{"name":"a_person","description":"Takes the reply.","input_schema":{"type":"object","properties":{"age":{"type":"integer"}},"required":["age"],"additionalProperties":false}}],"tool_choice":{"type":"tool","name":"a_person"}}"#]].assert_eq(&call.body.to_json());
        let error =
            block_on(model.embed(EmbedRequest { texts: Arc::from(["a".into()]), sample: 0 })).unwrap_err();
        assert_eq!(error.class(), "unsupported");
        expect!["acme/m-1: Anthropic has no embeddings; use an embedding model of another provider"]
            .assert_eq(&error.to_string());
    }
}

#[test]
fn a_server_without_schemas_is_remembered() {
    for kind in [ProviderKind::OpenAi, ProviderKind::Anthropic] {
        let server = ModelServer::start(ModelScript { refuses_schemas: true, ..says("{}") });
        let model = Setup::new(&server.endpoint(), kind).model().unwrap();
        block_on(async {
            model.chat(person()).await.unwrap();
            model.chat(person()).await.unwrap();
        });
        let native: Vec<bool> = server
            .requests()
            .iter()
            .map(|call| call.body.get("response_format").or(call.body.get("tools")).is_some())
            .collect();
        assert_eq!(native, [true, false, false]);
    }
}

fn embed(format: EncodingFormat, dimensions: Option<u32>) -> (ModelServer, Vec<Vec<f64>>) {
    let (server, mut setup) = open_ai(ModelScript::default());
    setup.config.params.kind = Generation::Embedding(EmbeddingParams { encoding_format: format, dimensions });
    let texts = ["one", "two", "three"].map(Into::into);
    let reply =
        block_on(setup.model().unwrap().embed(EmbedRequest { texts: Arc::from(texts), sample: 0 })).unwrap();
    assert_eq!(reply.usage.input_tokens, 3);
    (server, reply.vectors)
}

#[test]
fn vectors_come_in_the_order_of_the_texts() {
    let (server, floats) = embed(EncodingFormat::Float, None);
    let (_, base64) = embed(EncodingFormat::Base64, None);
    assert_eq!(floats, base64);
    assert_eq!((floats.len(), floats[0].len()), (3, 8));
    expect![[r#"{"model":"m-1","input":["one","two","three"],"encoding_format":"float"}"#]]
        .assert_eq(&server.requests()[0].body.to_json());
    let (server, vectors) = embed(EncodingFormat::Float, Some(5));
    assert_eq!(vectors[0].len(), 5);
    assert_eq!(server.requests()[0].body.get("dimensions"), Some(&Value::Int(5)));
}

#[test]
fn parameters_have_what_is_sent() {
    let check = |change: &dyn Fn(&mut Setup), expected: Expect| {
        let mut setup = Setup::new("http://127.0.0.1:1/v1", ProviderKind::OpenAi);
        change(&mut setup);
        expected.assert_eq(&Value::from(setup.model().unwrap().parameters()).to_json());
    };
    check(&|_| {}, expect!["{}"]);
    check(
        &|setup| {
            setup.config.params.extra_body = map(r#"{"top_k": 3, "n": 4, "stream": true, "a": "model"}"#);
            setup.provider.extra_body = map(r#"{"a": "provider", "n": 2}"#);
        },
        expect![[r#"{"model_body":{"top_k":3},"provider_body":{"a":"provider"}}"#]],
    );
    check(
        &|setup| {
            let params = EmbeddingParams { encoding_format: EncodingFormat::Base64, dimensions: Some(5) };
            setup.config.params.kind = Generation::Embedding(params);
        },
        expect![[r#"{"encoding_format":"base64","dimensions":5}"#]],
    );
}

#[test]
fn connections_are_kept() {
    let (server, setup) =
        open_ai(ModelScript { latency: Duration::from_millis(1), ..ModelScript::default() });
    let model = setup.model().unwrap();
    block_on(async {
        for _ in 0..20 {
            let calls = (0..8).map(|_| model.chat(hello()));
            for reply in futures_util::future::join_all(calls).await {
                reply.unwrap();
            }
        }
    });
    assert_eq!(server.calls(), 160);
    assert!(server.connections() <= 16, "{} connections for 8 calls at a time", server.connections());
    assert!(server.most_in_flight() <= 8);
}

fn fault(kind: ModelFaultKind) -> ModelScript {
    ModelScript { faults: vec![ModelFault { percent: 100, times: None, kind }], ..ModelScript::default() }
}

/// The class, severity and message of a call's error, which contains no secret.
fn failure(script: ModelScript, timeout: Duration) -> String {
    let (_server, mut setup) = open_ai(script);
    setup.config.params.timeout = timeout;
    let error = block_on(setup.model().unwrap().chat(hello())).unwrap_err();
    let shown = format!("{error:?}");
    assert!(!shown.contains(KEY) && !shown.contains("header-secret"), "{shown}");
    format!("{} {:?}: {error}", error.class(), error.severity())
}

#[test]
fn statuses_are_classified() {
    let later = "Sun, 06 Nov 1994 08:49:52 GMT";
    let tomorrow = "Mon, 07 Nov 1994 08:49:37 GMT";
    let throttled =
        [(429, None), (429, Some("1.5")), (429, Some(later)), (429, Some(tomorrow)), (503, Some("3"))];
    let others = [529, 503, 500, 408, 409, 425, 400, 401, 402, 404, 302].map(|status| (status, None));
    let lines = throttled.into_iter().chain(others).map(|(status, retry_after)| {
        let kind = ModelFaultKind::Status(status, retry_after.map(str::to_owned));
        let line = failure(fault(kind), Duration::from_secs(20));
        line.replace(&format!(": scripted status {status}"), "").replace("acme/m-1: ", "")
    });
    expect![[r#"
        rate_limited Throttled { retry_after: None }: too many requests (429)
        rate_limited Throttled { retry_after: Some(1.5s) }: too many requests (429)
        rate_limited Throttled { retry_after: Some(15s) }: too many requests (429)
        rate_limited Throttled { retry_after: Some(3600s) }: too many requests (429)
        rate_limited Throttled { retry_after: Some(3s) }: too many requests (503)
        rate_limited Throttled { retry_after: None }: too many requests (529)
        server_error Transient: server error (503)
        server_error Transient: server error (500)
        timeout Transient: server error (408)
        server_error Transient: server error (409)
        server_error Transient: server error (425)
        bad_request Permanent: request not accepted (400)
        auth Permanent: no access (401)
        quota Permanent: out of quota (402)
        not_found Permanent: not found (404)
        bad_request Permanent: redirects are not followed (302)"#]]
    .assert_eq(&lines.collect::<Vec<_>>().join("\n"));
}

/// A server that sends these headers, with good replies and with 429s.
fn with_headers(headers: &'static [(&str, &str)], script: ModelScript) -> ModelScript {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let headers: Vec<(String, String)> = headers.collect();
    ModelScript { headers: Some(Arc::new(move |_, _| headers.clone())), ..script }
}

#[test]
fn replies_have_the_rate_limits_of_the_server() {
    let headers = &[
        ("X-RateLimit-Limit-Requests", "60"),
        ("x-ratelimit-remaining-requests", "59"),
        ("x-ratelimit-reset-requests", "1s"),
        ("anthropic-ratelimit-tokens-remaining", "5"),
        ("anthropic-ratelimit-tokens-reset", "1994-11-06T08:49:40Z"),
    ];
    let requests = RateWindow { limit: Some(60), remaining: 59, full_after: Some(Duration::from_secs(1)) };
    let tokens = RateWindow { limit: None, remaining: 5, full_after: Some(Duration::from_secs(3)) };
    let rates = Some(Box::new(Rates { requests: Some(requests), tokens: Some(tokens) }));
    for kind in [ProviderKind::OpenAi, ProviderKind::Anthropic] {
        let server = ModelServer::start(with_headers(headers, ModelScript::default()));
        let model = Setup::new(&server.endpoint(), kind).model().unwrap();
        assert_eq!(block_on(model.chat(hello())).unwrap().rates, rates);
    }
    let texts = || EmbedRequest { texts: Arc::from(["a".into()]), sample: 0 };
    let (_server, setup) = open_ai(with_headers(headers, ModelScript::default()));
    assert_eq!(block_on(setup.model().unwrap().embed(texts())).unwrap().rates, rates);
    let (_server, setup) = open_ai(ModelScript::default());
    let model = setup.model().unwrap();
    block_on(async {
        assert_eq!(model.chat(hello()).await.unwrap().rates, None);
        assert_eq!(model.embed(texts()).await.unwrap().rates, None);
    });
}

#[test]
fn a_429_without_a_pause_takes_it_from_an_empty_window() {
    let check = |retry_after: Option<&str>, headers, expected: Expect| {
        let script = fault(ModelFaultKind::Status(429, retry_after.map(str::to_owned)));
        let failure = failure(with_headers(headers, script), Duration::from_secs(20));
        expected.assert_eq(failure.split(':').nth(1).unwrap().trim_matches([' ', '}']));
    };
    const EMPTY: &[(&str, &str)] = &[
        ("x-ratelimit-remaining-requests", "3"),
        ("x-ratelimit-reset-requests", "50s"),
        ("x-ratelimit-remaining-tokens", "0"),
        ("x-ratelimit-reset-tokens", "7s"),
    ];
    check(None, EMPTY, expect!["Some(7s)"]);
    check(Some("2"), EMPTY, expect!["Some(2s)"]);
    // A date that cannot be is no pause.
    check(Some("Sun, 06 Nov 1994 9223372036854775807:00:00 GMT"), EMPTY, expect!["Some(7s)"]);
    check(
        None,
        &[
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-reset-requests", "9s"),
            ("x-ratelimit-remaining-tokens", "0"),
            ("x-ratelimit-reset-tokens", "7s"),
        ],
        expect!["Some(9s)"],
    );
    check(None, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "86400")], expect!["Some(3600s)"]);
    check(None, &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "0")], expect!["None"]);
    check(None, &[("x-ratelimit-remaining", "0")], expect!["None"]);
    check(None, &[("x-ratelimit-remaining", "1"), ("x-ratelimit-reset", "5")], expect!["None"]);
}

#[test]
fn broken_replies_are_transient() {
    let long = Duration::from_secs(20);
    expect!["malformed_reply Transient: acme/m-1: the reply is not readable: not JSON: expected value at line 1 column 26, in `{\"choices\": [{\"message\": oops`"].assert_eq(&failure(fault(ModelFaultKind::Malformed), long));
    expect!["connection Transient: acme/m-1: the reply broke off: error reading a body from connection: end of file before message length reached"].assert_eq(&failure(fault(ModelFaultKind::Truncated), long));
    expect!["timeout Transient: acme/m-1: no reply within 50 ms"]
        .assert_eq(&failure(fault(ModelFaultKind::Hang), Duration::from_millis(50)));
    let reset = failure(fault(ModelFaultKind::Reset), long);
    assert!(reset.starts_with("connection Transient: acme/m-1: client error (SendRequest)"), "{reset}");
    let mut setup = Setup::new("http://127.0.0.1:1/v1", ProviderKind::OpenAi);
    setup.config.params.timeout = long;
    let refused = block_on(setup.model().unwrap().chat(hello())).unwrap_err();
    assert_eq!(refused.class(), "connection");
}

#[test]
fn a_full_server_asks_to_slow_down() {
    let script = ModelScript {
        latency: Duration::from_millis(100),
        limit: Some(2),
        retry_after: Some("2".to_owned()),
        ..ModelScript::default()
    };
    let (server, setup) = open_ai(script);
    let model = setup.model().unwrap();
    let replies: Vec<Result<ChatReply, Error>> =
        block_on(async { futures_util::future::join_all((0..6).map(|_| model.chat(hello()))).await });
    let throttled = replies.iter().filter(|reply| matches!(reply, Err(Error::Throttled { .. }))).count();
    assert!(throttled >= 1 && replies.iter().any(Result::is_ok));
    assert_eq!(server.calls(), 6);
}

#[test]
fn faults_pass_after_some_tries() {
    let mut script = fault(ModelFaultKind::Status(500, None));
    script.faults[0].times = Some(2);
    let (_server, setup) = open_ai(script);
    let model = setup.model().unwrap();
    let outcomes: Vec<bool> = block_on(async {
        let mut outcomes = Vec::new();
        for _ in 0..3 {
            outcomes.push(model.chat(hello()).await.is_ok());
        }
        outcomes
    });
    assert_eq!(outcomes, [false, false, true]);
}

#[test]
fn setups_that_cannot_work_are_errors() {
    let check = |change: &dyn Fn(&mut Setup), expected: Expect| {
        let mut setup = Setup::new("http://127.0.0.1:1/v1", ProviderKind::OpenAi);
        change(&mut setup);
        expected.assert_eq(&setup.model().err().unwrap().to_string());
    };
    check(
        &|setup| setup.provider.endpoint = "localhost:8000/v1".to_owned(),
        expect![
            "the endpoint `localhost:8000/v1` of provider `acme` is not usable: it should be a URL such as `https://api.openai.com/v1`"
        ],
    );
    check(
        &|setup| setup.provider.api_key = Some(ApiKey::new("ACME_KEY")),
        expect![
            "the environment variable `ACME_KEY` is not set: it should hold the API key of provider `acme`"
        ],
    );
    check(
        &|setup| setup.provider.extra_headers = vec![("bad name".to_owned(), "x".to_owned())],
        expect!["the header `bad name` of provider `acme` has a wrong name"],
    );
    check(
        &|setup| setup.settings.ca_file = Some("/no/such/file.pem".into()),
        expect![
            "the CA file `/no/such/file.pem` cannot be read: I/O error: No such file or directory (os error 2)"
        ],
    );
    let setup = Setup::new("http://127.0.0.1:1/v1", ProviderKind::OpenAi);
    let shown = format!("{:?}", setup.provider);
    assert!(!shown.contains(KEY) && !shown.contains("header-secret"), "{shown}");
}
