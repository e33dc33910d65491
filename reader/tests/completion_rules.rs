//! Each rule of "valid completion" in docs/metrics, one stream or answer a rule.

use assize_reader::replay::openai::{
    Asked, Completion, EventKind, Invalid, read_stream, read_whole,
};
use assize_reader::replay::sse;

const PLAIN: Asked = Asked {
    stream: true,
    choices: 1,
    forced_tokens: None,
    done_due: true,
};

fn stream(asked: &Asked, events: &[&str]) -> Completion {
    let events: Vec<String> = events
        .iter()
        .map(|data| format!("data: {data}\n\n"))
        .collect();
    let body = events.concat();
    read_stream(&sse::decode(body.as_bytes()).events, asked, true)
}

fn flaw(asked: &Asked, events: &[&str]) -> Option<(Invalid, Option<usize>)> {
    stream(asked, events)
        .flaw
        .map(|flaw| (flaw.kind, flaw.event))
}

const A: &str = r#"{"choices":[{"index":0,"text":"a","finish_reason":null}]}"#;
const STOP: &str = r#"{"choices":[{"index":0,"text":"","finish_reason":"stop"}]}"#;
const USAGE: &str = r#"{"choices":[],"usage":{"completion_tokens":2}}"#;
const DONE: &str = "[DONE]";

#[test]
fn a_plain_stream_is_valid() {
    assert_eq!(flaw(&PLAIN, &[A, STOP, USAGE, DONE]), None);
}

#[test]
fn what_is_no_chunk_is_malformed() {
    for event in [
        "{",
        "null",
        "[]",
        "1",
        "\"[DONE]\"",
        "[DONE] ",
        r#"[[{"index":0,"text":"a"}]]"#,
        r#"{"choices":[[0,"a"]]}"#,
        r#"{"choices":{}}"#,
        r#"{"choices":[{"text":"a"}]}"#,
        r#"{"choices":[{"index":"0","text":"a"}]}"#,
        r#"{"choices":[{"index":0.0,"text":"a"}]}"#,
        r#"{"choices":[{"index":1,"text":"a"}]}"#,
        r#"{"choices":[{"index":0,"text":["a"]}]}"#,
        r#"{"choices":[{"index":0,"delta":{"content":7}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"function":{"name":{}}}]}}]}"#,
        r#"{"choices":[{"index":0,"text":"a"},{"index":0,"text":"b"}]}"#,
        r#"{"choices":[],"usage":{"completion_tokens":"2"}}"#,
        r#"{"choices":[],"usage":{"completion_tokens":-2}}"#,
    ] {
        let found = flaw(&PLAIN, &[A, event, STOP, DONE]);
        assert_eq!(found, Some((Invalid::MalformedEvent, Some(1))), "{event}");
    }
}

#[test]
fn what_says_nothing_does_no_harm() {
    for event in [
        "{}",
        r#"{"choices":null,"usage":null,"error":null}"#,
        r#"{"choices":[{"index":0}]}"#,
        r#"{"choices":[{"index":0,"delta":null,"finish_reason":null}]}"#,
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":null}}]}"#,
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0}]},"token_ids":[]}]}"#,
        r#"{"object":["x"],"created":1e999,"id":99999999999999999999999}"#,
    ] {
        let completion = stream(&PLAIN, &[event, A, STOP, DONE]);
        assert_eq!(completion.flaw, None, "{event}");
        assert!(!completion.events[0].token_bearing, "{event}");
    }
}

#[test]
fn errors_come_in_several_shapes() {
    for event in [
        r#"{"error":"out of memory"}"#,
        r#"{"error":{"message":"x","code":500}}"#,
        r#"{"error":{}}"#,
        r#"{"choices":[{"index":0,"text":"","finish_reason":"error"}]}"#,
    ] {
        let found = flaw(&PLAIN, &[A, event, DONE]);
        assert_eq!(found, Some((Invalid::ErrorEvent, Some(1))), "{event}");
    }
}

#[test]
fn a_choice_ends_once_and_for_a_supported_reason() {
    let odd = r#"{"choices":[{"index":0,"text":"","finish_reason":"abort"}]}"#;
    assert_eq!(
        flaw(&PLAIN, &[A, odd, DONE]),
        Some((Invalid::BadFinish, Some(1)))
    );
    assert_eq!(
        flaw(&PLAIN, &[A, STOP, A, DONE]),
        Some((Invalid::BadFinish, Some(2)))
    );
    assert_eq!(
        flaw(&PLAIN, &[A, STOP, STOP, DONE]),
        Some((Invalid::BadFinish, Some(2)))
    );
    assert_eq!(flaw(&PLAIN, &[A, DONE]), Some((Invalid::BadFinish, None)));
}

#[test]
fn done_comes_exactly_once_where_it_is_due() {
    assert_eq!(flaw(&PLAIN, &[A, STOP]), Some((Invalid::MissingDone, None)));
    assert_eq!(
        flaw(&PLAIN, &[A, STOP, DONE, DONE]),
        Some((Invalid::ExtraAfterDone, Some(3)))
    );
    assert_eq!(
        flaw(&PLAIN, &[A, STOP, DONE, USAGE]),
        Some((Invalid::ExtraAfterDone, Some(3)))
    );
    let without = Asked {
        done_due: false,
        ..PLAIN
    };
    assert_eq!(flaw(&without, &[A, STOP]), None);
    assert_eq!(flaw(&without, &[A, STOP, DONE]), None);
}

#[test]
fn nothing_after_done_counts() {
    let completion = stream(&PLAIN, &[A, STOP, DONE, A, USAGE]);
    assert_eq!(completion.usage_tokens, None);
    assert_eq!(completion.events[3].kind, EventKind::AfterDone);
    assert!(!completion.events[3].token_bearing);
}

#[test]
fn a_forced_length_is_met_exactly_and_shown() {
    let forced = |tokens| Asked {
        forced_tokens: Some(tokens),
        ..PLAIN
    };
    assert_eq!(flaw(&forced(2), &[A, STOP, USAGE, DONE]), None);
    let wrong = Some((Invalid::WrongLength, None));
    assert_eq!(flaw(&forced(3), &[A, STOP, USAGE, DONE]), wrong);
    assert_eq!(flaw(&forced(2), &[A, STOP, DONE]), wrong);
    let ids = r#"{"choices":[{"index":0,"text":"ab","token_ids":[5,6],"finish_reason":"length"}]}"#;
    assert_eq!(flaw(&forced(2), &[ids, DONE]), None);
}

#[test]
fn usage_and_ids_are_both_kept_and_compared() {
    let ids =
        r#"{"choices":[{"index":0,"text":"abc","token_ids":[5,6,7],"finish_reason":"length"}]}"#;
    let completion = stream(&PLAIN, &[ids, USAGE, DONE]);
    assert_eq!(
        (completion.usage_tokens, completion.id_tokens),
        (Some(2), Some(3))
    );
    assert!(completion.counts_disagree());
    assert_eq!(completion.output_tokens(), Some(2));
    // Text without ids beside text with them: the ids do not count the tokens.
    assert_eq!(stream(&PLAIN, &[A, ids, DONE]).id_tokens, None);
}

#[test]
fn a_batch_has_each_index_once() {
    let batch = Asked {
        choices: 2,
        forced_tokens: Some(1),
        ..PLAIN
    };
    let end = |index: u32| {
        format!(
            r#"{{"choices":[{{"index":{index},"text":"x","finish_reason":"length"}}],"usage":{{"completion_tokens":1}}}}"#
        )
    };
    let (first, second) = (end(0), end(1));
    assert_eq!(flaw(&batch, &[&second, &first, DONE]), None);
    assert_eq!(
        flaw(&batch, &[&first, DONE]),
        Some((Invalid::BadFinish, None))
    );
    assert_eq!(
        flaw(&batch, &[&first, &first, DONE]),
        Some((Invalid::BadFinish, Some(1)))
    );
    let third = end(2);
    assert_eq!(
        flaw(&batch, &[&first, &third, DONE]),
        Some((Invalid::MalformedEvent, Some(1)))
    );
}

#[test]
fn an_answer_that_is_no_stream_follows_the_same_rules() {
    let whole = Asked {
        stream: false,
        choices: 2,
        ..PLAIN
    };
    let flaw = |body: &str| {
        read_whole(body.as_bytes(), &whole)
            .flaw
            .map(|flaw| (flaw.kind, flaw.event))
    };
    let both = r#"{"choices":[{"index":1,"text":"b","finish_reason":"stop"},{"index":0,"message":{"content":"a"},"finish_reason":"length"}],"usage":{"completion_tokens":2}}"#;
    assert_eq!(flaw(both), None);
    let completion = read_whole(both.as_bytes(), &whole);
    let said: Vec<&str> = completion
        .outputs
        .iter()
        .map(|output| output.content.as_str())
        .collect();
    assert_eq!((said, completion.usage_tokens), (vec!["a", "b"], Some(2)));
    let twice = r#"{"choices":[{"index":0,"text":"b","finish_reason":"stop"},{"index":0,"text":"b","finish_reason":"stop"}]}"#;
    assert_eq!(flaw(twice), Some((Invalid::BadFinish, None)));
    assert_eq!(flaw("{\"error\":\"x\"}"), Some((Invalid::ErrorEvent, None)));
    assert_eq!(flaw("<html>"), Some((Invalid::MalformedEvent, None)));
    assert_eq!(flaw(""), Some((Invalid::MalformedEvent, None)));
    assert_eq!(flaw("null"), Some((Invalid::MalformedEvent, None)));
}
