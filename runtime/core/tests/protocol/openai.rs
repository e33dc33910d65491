//! The definitions of `docs/protocol.md` for OpenAI streams that the case file does not hold.

use assize_core::protocol::openai::{Meaning, StreamFault, StreamFold, Summary, classify};

fn fold(prompts: usize, done_due: bool, events: &[&str]) -> Summary {
    let mut fold = StreamFold::new(prompts, done_due);
    for data in events {
        fold.take(b"message", data.as_bytes());
    }
    fold.finish()
}

const TOKEN: &str = r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}"#;
const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const USAGE: &str = r#"{"choices":[],"usage":{"completion_tokens":1}}"#;

#[test]
fn only_usage_may_come_between_finish_and_done() {
    assert_eq!(fold(1, true, &[TOKEN, STOP, USAGE, "[DONE]"]).fault, None);
    for late in [TOKEN, STOP] {
        let summary = fold(1, true, &[TOKEN, STOP, late, "[DONE]"]);
        assert_eq!(summary.fault, Some(StreamFault::Protocol));
        assert_eq!(summary.token_events, 1);
    }
}

#[test]
fn done_is_due_unless_the_engine_sends_none() {
    assert_eq!(
        fold(1, true, &[TOKEN, STOP]).fault,
        Some(StreamFault::Incomplete)
    );
    assert_eq!(fold(1, false, &[TOKEN, STOP]).fault, None);
    assert_eq!(
        fold(1, false, &[TOKEN]).fault,
        Some(StreamFault::Incomplete)
    );
}

#[test]
fn each_prompt_of_a_batch_finishes_once() {
    let other = STOP.replace("\"index\":0", "\"index\":1");
    assert_eq!(fold(2, true, &[STOP, &other, "[DONE]"]).fault, None);
    assert_eq!(
        fold(2, true, &[STOP, "[DONE]"]).fault,
        Some(StreamFault::Incomplete)
    );
    assert_eq!(
        fold(2, true, &[STOP, STOP, &other, "[DONE]"]).fault,
        Some(StreamFault::Protocol)
    );
}

#[test]
fn an_event_must_be_an_object_of_the_due_shape() {
    for data in [
        "",
        "null",
        "[]",
        "1",
        "{",
        "{} {}",
        "[DONE] ",
        ": OPENROUTER PROCESSING",
        r#"{"choices":[[0]]}"#,
        r#"{"choices":{}}"#,
        r#"{"choices":[{"index":"0"}]}"#,
        r#"{"choices":[{"index":-1}]}"#,
        r#"{"choices":[{"delta":{"content":5}}]}"#,
        r#"{"choices":[{"delta":{"content":["a"]}}]}"#,
        r#"{"choices":[{"finish_reason":1}]}"#,
    ] {
        assert!(classify(b"message", data.as_bytes()).is_err(), "{data}");
    }
    // A stream is decoded with U+FFFD before anybody reads it as JSON.
    assert!(classify(b"message", b"{\"x\":\"\xFF\"}").is_ok());
    assert!(classify(b"message", b"{\"x\":\xFF}").is_err());
}

#[test]
fn tokens_and_output_are_told_apart() {
    for (choice, token, output) in [
        (
            r#"{"delta":{"role":"assistant","content":""}}"#,
            false,
            false,
        ),
        (r#"{"delta":{"content":"","token_ids":[1]}}"#, true, false),
        (r#"{"delta":{"content":""},"token_ids":[1]}"#, true, false),
        (r#"{"delta":{"content":""},"token_ids":[]}"#, false, false),
        (r#"{"delta":{"content":" "}}"#, true, true),
        (r#"{"delta":{"reasoning_content":"r"}}"#, true, true),
        (
            r#"{"delta":{"tool_calls":[{"id":"t","function":{"name":"f"}}]}}"#,
            true,
            true,
        ),
        (
            r#"{"delta":{"function_call":{"arguments":"{"}}}"#,
            true,
            true,
        ),
        (r#"{"delta":null,"text":"x"}"#, true, true),
        (r#"{"content_filter_results":{}}"#, false, false),
    ] {
        let data = format!("{{\"choices\":[{choice}]}}");
        let Ok(Meaning::Chunk(chunk)) = classify(b"message", data.as_bytes()) else {
            panic!("{data}");
        };
        assert_eq!(chunk.choices[0].bears_token(), token, "{data}");
        assert_eq!(chunk.choices[0].bears_output(), output, "{data}");
    }
}

#[test]
fn a_ping_is_no_event_of_the_answer_and_an_error_is() {
    assert_eq!(classify(b"ping", b""), Ok(Meaning::Ping));
    let Ok(Meaning::Chunk(chunk)) = classify(b"error", b"{\"message\":\"boom\"}") else {
        panic!("a chunk");
    };
    assert!(chunk.error);
    assert_eq!(
        fold(1, true, &[r#"{"error":null}"#, STOP, "[DONE]"]).fault,
        None
    );
}

#[test]
fn an_unknown_finish_reason_is_a_fault_and_an_empty_one_is_none() {
    let with = |reason: &str| STOP.replace("stop", reason);
    assert_eq!(
        fold(1, true, &[&with("abort"), "[DONE]"]).fault,
        Some(StreamFault::BadFinish)
    );
    assert_eq!(fold(1, true, &[&with(""), STOP, "[DONE]"]).fault, None);
}
