//! Correction turns and restarts.

use std::sync::{Arc, Mutex};

use anabranch_engine::retry::{Classified, Severity};
use anabranch_engine::workload::BoxFuture;
use anabranch_model::conversation::{Turns, converse};
use anabranch_model::reply::ReplyProblem;
use anabranch_model::{
    ChatReply, ChatRequest, EmbedReply, EmbedRequest, Error, Finish, Identity, Message, Model, Usage,
};
use expect_test::{Expect, expect};

use crate::block_on;

/// Answers `reply 0`, `reply 1`, ..., and keeps the requests.
struct NumberingModel {
    identity: Identity,
    requests: Mutex<Vec<ChatRequest>>,
    fails_at: Option<usize>,
    refuses_at: &'static [usize],
    blank_at: Option<usize>,
}

impl NumberingModel {
    fn new(fails_at: Option<usize>) -> NumberingModel {
        let identity = Identity { provider: "test".into(), model: "counting".into() };
        NumberingModel { identity, requests: Mutex::default(), fails_at, refuses_at: &[], blank_at: None }
    }

    fn refusing(refuses_at: &'static [usize]) -> NumberingModel {
        NumberingModel { refuses_at, ..NumberingModel::new(None) }
    }

    /// The attempts of the requests.
    fn attempts(&self) -> Vec<u32> {
        self.requests.lock().unwrap().iter().map(|request| request.attempt).collect()
    }

    /// The requests as roles and texts.
    fn log(&self) -> String {
        let requests = self.requests.lock().unwrap();
        let line = |request: &ChatRequest| {
            let messages = request
                .messages
                .iter()
                .map(|message| format!("{}:{}", message.role.as_str(), message.text.replace('\n', " ")));
            format!("{}.{} {}", request.sample, request.attempt, messages.collect::<Vec<_>>().join(" | "))
        };
        requests.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

impl Model for NumberingModel {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<ChatReply, Error> {
        let mut requests = self.requests.lock().unwrap();
        let number = requests.len();
        requests.push(request);
        let fails = self.fails_at == Some(number);
        let refuses = self.refuses_at.contains(&number);
        let text = if self.blank_at == Some(number) { " ".into() } else { format!("reply {number}").into() };
        Box::pin(async move {
            if refuses {
                return Err(Error::Refused { endpoint: "test".into(), message: format!("no {number}") });
            }
            if fails {
                return Err(Error::Timeout {
                    endpoint: "test".into(),
                    after: std::time::Duration::from_secs(1),
                });
            }
            Ok(ChatReply {
                text,
                reasoning: Some("thinking".into()),
                finish: if number == 3 { Finish::Length } else { Finish::Stop },
                usage: Usage { input_tokens: 10, output_tokens: 1, cached_tokens: None },
                bytes: 0,
                demo: false,
                rates: None,
            })
        })
    }

    fn embed(&self, _: EmbedRequest) -> BoxFuture<EmbedReply, Error> {
        Box::pin(async { Err(Error::Setup("no".to_owned())) })
    }
}

fn accepts(wanted: usize) -> impl Fn(&ChatReply) -> Result<Arc<str>, ReplyProblem> + Send + Sync {
    move |reply| {
        let fits = *reply.text == format!("reply {wanted}");
        if fits { Ok(Arc::clone(&reply.text)) } else { Err(ReplyProblem("not what was wanted".to_owned())) }
    }
}

fn request() -> ChatRequest {
    ChatRequest { sample: 7, ..ChatRequest::new([Message::system("s"), Message::user("p")]) }
}

#[test]
fn corrections_come_before_restarts() {
    let model = NumberingModel::new(None);
    let turns = Turns { corrections: 1, restarts: 1, rounds: 0 };
    let conversed = block_on(converse(&model, request(), accepts(3), turns)).unwrap();
    assert_eq!((conversed.calls, conversed.usage.input_tokens, conversed.usage.output_tokens), (4, 40, 4));
    expect![[r#"
        7.0 system:s | user:p
        7.0 system:s | user:p | assistant:reply 0 | user:This reply cannot be used: not what was wanted.  Send the whole reply again with this put right.
        7.1 system:s | user:p
        7.1 system:s | user:p | assistant:reply 2 | user:This reply cannot be used: not what was wanted.  Send the whole reply again with this put right."#]].assert_eq(&model.log());
    let trace: Vec<String> = conversed.trace.iter().map(|message| message.to_value().to_json()).collect();
    expect![[r#"
        {"role":"system","content":[{"type":"text","text":"s"}]}
        {"role":"user","content":[{"type":"text","text":"p"}]}
        {"role":"assistant","content":[{"type":"text","text":"reply 2"}],"reasoning_content":"thinking"}
        {"role":"user","content":[{"type":"text","text":"This reply cannot be used: not what was wanted.\n\nSend the whole reply again with this put right."}]}
        {"role":"assistant","content":[{"type":"text","text":"reply 3"}],"reasoning_content":"thinking"}"#]].assert_eq(&trace.join("\n"));
}

#[test]
fn a_blank_reply_is_traced_but_not_sent() {
    let model = NumberingModel { blank_at: Some(1), ..NumberingModel::new(None) };
    let turns = Turns { corrections: 3, restarts: 0, rounds: 0 };
    let conversed = block_on(converse(&model, request(), accepts(3), turns)).unwrap();
    let short = |text: &str| text.split(':').next().unwrap().to_owned();
    let trace: Vec<String> = conversed.trace.iter().map(|message| short(&message.content)).collect();
    let correction = "This reply cannot be used";
    assert_eq!(trace, ["s", "p", "reply 0", correction, " ", "reply 2", correction, "reply 3"]);
    let requests = model.requests.lock().unwrap();
    let sent: Vec<String> = requests[3].messages.iter().map(|message| short(&message.text)).collect();
    assert_eq!(sent, ["s", "p", "reply 0", correction, "reply 2", correction]);
    assert_eq!(requests[2].messages, requests[1].messages);
}

#[test]
fn a_reply_that_never_fits_is_a_permanent_failure() {
    let model = NumberingModel::new(None);
    let turns = Turns { corrections: 1, restarts: 1, rounds: 0 };
    let error = block_on(converse(&model, request(), accepts(99), turns)).unwrap_err();
    assert_eq!((error.class(), error.attempts(), error.severity()), ("reply_format", 4, Severity::Permanent));
    expect!["test/counting: no reply of 4 calls fits: the reply is cut off after 1 tokens (raise `max_tokens`): not what was wanted"].assert_eq(&error.to_string());
    let once = Turns { corrections: 0, restarts: 0, rounds: 0 };
    assert_eq!(
        block_on(converse(&NumberingModel::new(None), request(), accepts(9), once)).unwrap_err().attempts(),
        1
    );
}

#[test]
fn errors_of_the_transport_end_it_at_once() {
    fn can_be_sent<F: Future + Send>(future: F) -> F {
        future
    }
    let model = NumberingModel::new(Some(1));
    let conversed = can_be_sent(converse(&model, request(), accepts(5), Turns::default()));
    let error = block_on(conversed).unwrap_err();
    assert_eq!((error.class(), model.requests.lock().unwrap().len()), ("timeout", 2));
}

#[test]
fn rounds_go_on_after_replies_that_do_not_fit() {
    let turns = Turns { corrections: 1, restarts: 1, rounds: 2 };
    let model = NumberingModel::new(None);
    let conversed = block_on(converse(&model, request(), accepts(9), turns)).unwrap();
    assert_eq!((conversed.calls, conversed.usage.input_tokens), (10, 100));
    assert_eq!(model.attempts(), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
    assert!(model.requests.lock().unwrap().iter().all(|request| request.sample == 7));

    let model = NumberingModel::new(None);
    let error = block_on(converse(&model, request(), accepts(99), turns)).unwrap_err();
    assert_eq!((error.class(), error.attempts()), ("reply_format", 12));
    assert_eq!(model.attempts(), [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
}

#[test]
fn a_refusal_ends_its_round() {
    let turns = Turns { corrections: 0, restarts: 2, rounds: 1 };
    let check = |refuses_at, wanted, expected: Expect| {
        let model = NumberingModel::refusing(refuses_at);
        let ended = match block_on(converse(&model, request(), accepts(wanted), turns)) {
            Ok(conversed) => format!("{} of {} calls", conversed.value, conversed.calls),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&format!("{:?} {ended}", model.attempts()));
    };
    check(&[1], 3, expect!["[0, 1, 3, 4] reply 3 of 4 calls"]);
    check(
        &[0],
        9,
        expect![
            "[0, 3, 4, 5] test/counting: no reply of 4 calls fits: the reply is cut off after 1 tokens (raise `max_tokens`): not what was wanted"
        ],
    );
    check(&[0, 1], 9, expect!["[0, 3] test: the model refused: no 1"]);
    check(&[3], 9, expect!["[0, 1, 2, 3] test: the model refused: no 3"]);
    // Without a further round a refusal is the answer.
    let model = NumberingModel::refusing(&[0]);
    let once = Turns { rounds: 0, ..turns };
    let error = block_on(converse(&model, request(), accepts(1), once)).unwrap_err();
    assert_eq!((error.class(), model.attempts()), ("refused", vec![0]));
}

#[test]
fn other_errors_end_all_rounds() {
    let turns = Turns { corrections: 0, restarts: 0, rounds: 5 };
    let model = NumberingModel::new(Some(2));
    let error = block_on(converse(&model, request(), accepts(9), turns)).unwrap_err();
    assert_eq!((error.class(), model.attempts()), ("timeout", vec![0, 1, 2]));
}

#[test]
fn the_numbers_of_attempts_are_bounded() {
    let turns = Turns { corrections: 0, restarts: u32::MAX, rounds: u32::MAX };
    let model = NumberingModel::refusing(&[0, 1, 2]);
    assert!(block_on(converse(&model, request(), accepts(3), turns)).is_ok());
    assert_eq!(model.attempts(), [0, u32::MAX, u32::MAX, u32::MAX]);
}
