//! Every case of `http_sse_cases.jsonl`, by its id: bytes and what must come out, gathered from
//! public specifications, peers' test suites and field reports. Nobody here wrote the originals.
//! Those of `own_http_sse_cases.jsonl` are argued from the specifications' text.

use assize_reader::replay::answer::{Answer, read_answer};
use assize_reader::replay::http::{Ending, Limits, Part, Response, read_response};
use assize_reader::replay::openai::{Asked, Completion, EventKind, Finish, Invalid, read_stream};
use assize_reader::replay::sse::{self, SseStream};
use base64::Engine as _;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

struct Case {
    id: String,
    input: Vec<u8>,
    expect: Value,
}

fn cases(kind: &str) -> Vec<Case> {
    let gathered = include_str!("fixtures/http_sse_cases.jsonl").lines();
    gathered
        .chain(include_str!("fixtures/own_http_sse_cases.jsonl").lines())
        .map(|line| serde_json::from_str::<Value>(line).expect("a JSON line"))
        .filter(|case| case["kind"] == kind)
        .map(|case| Case {
            id: case["id"].as_str().expect("an id").to_owned(),
            input: input(&case),
            expect: case["expect"].clone(),
        })
        .collect()
}

fn input(case: &Value) -> Vec<u8> {
    if let Some(text) = case["input_b64"].as_str() {
        return decode(text);
    }
    let parts = case["input_parts"].as_array().expect("parts");
    parts
        .iter()
        .flat_map(|part| {
            let times = part["n"].as_u64().expect("a count") as usize;
            decode(part["b64"].as_str().expect("base64")).repeat(times)
        })
        .collect()
}

fn decode(text: &str) -> Vec<u8> {
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .expect("base64")
}

/// What is wrong with a case's outcome, if anything.
type Complaint = Result<(), String>;

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: T, wanted: T) -> Complaint {
    if found == wanted {
        Ok(())
    } else {
        Err(format!("{what}: found {found:?}, wanted {wanted:?}"))
    }
}

fn run(kind: &str, least: usize, check: impl Fn(&Case) -> Complaint) {
    let cases = cases(kind);
    assert!(cases.len() >= least, "only {} cases of {kind}", cases.len());
    let complaints: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let complaint = check(case).err()?;
            Some(format!("{}: {complaint}", case.id))
        })
        .collect();
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

#[test]
fn every_sse_case() {
    run("sse", 70, |case| {
        let stream = sse::decode(&case.input);
        if !case.expect["events"].is_null() {
            check_events(&stream, &case.expect)?;
        }
        if !case.expect["openai"].is_null() {
            let completion = read_stream(&stream.events, &Asked::default(), true);
            check_completion(&completion, &case.expect["openai"])?;
        }
        check_prefixes(&case.input, &stream)
    });
}

fn check_events(stream: &SseStream<'_>, expect: &Value) -> Complaint {
    let wanted = expect["events"].as_array().expect("events");
    same("events", stream.events.len(), wanted.len())?;
    for (event, wanted) in stream.events.iter().zip(wanted) {
        let name = if event.name.is_empty() {
            "message".into()
        } else {
            String::from_utf8_lossy(event.name)
        };
        same("event", Some(name.as_ref()), wanted["event"].as_str())?;
        let id = String::from_utf8_lossy(event.last_event_id);
        same("id", Some(id.as_ref()), wanted["last_event_id"].as_str())?;
        if let Some(text) = wanted["data"].as_str() {
            same("data", String::from_utf8_lossy(&event.data).as_ref(), text)?;
        } else {
            let length = wanted["data_len"].as_u64();
            same("data_len", Some(event.data.len() as u64), length)?;
            let hash = format!("{:x}", Sha256::digest(&event.data));
            same(
                "data_sha256",
                Some(hash.as_str()),
                wanted["data_sha256"].as_str(),
            )?;
        }
    }
    if let Some(comments) = expect["comments"].as_u64() {
        same("comments", stream.comments, comments)?;
    }
    if let Some(retry) = expect["retry_ms"].as_u64() {
        same("retry_ms", stream.retry_ms, Some(retry))?;
    }
    if let Some(pending) = expect["pending_at_eof"].as_bool() {
        same("pending_at_eof", stream.pending_at_eof, pending)?;
    }
    Ok(())
}

/// Wherever the bytes are cut, the events before the cut are those that it completed: an event
/// neither waits for what follows it nor changes by it.
fn check_prefixes(input: &[u8], whole: &SseStream<'_>) -> Complaint {
    let step = 1 + input.len() / 2_000;
    for cut in (0..input.len()).step_by(step) {
        let complete = whole
            .events
            .partition_point(|event| event.completed_at < cut);
        let stream = sse::decode(&input[..cut]);
        same(
            "events before a cut",
            &stream.events[..],
            &whole.events[..complete],
        )?;
    }
    Ok(())
}

fn check_completion(completion: &Completion, expect: &Value) -> Complaint {
    let count = |want: fn(&&assize_reader::replay::openai::EventMeaning) -> bool| {
        completion.events.iter().filter(want).count() as u64
    };
    let number = |name: &str| expect[name].as_u64().expect("a count");
    same("events", completion.events.len() as u64, number("events"))?;
    let tokens = count(|event| event.token_bearing);
    same("token_events", tokens, number("token_events"))?;
    let empty = count(|event| event.kind == EventKind::NoChoice);
    let named_error = count(|event| event.kind == EventKind::Error);
    // One case counts an event named `error` whose object has no choices among the empty ones.
    let wanted = number("empty_choice_events");
    if empty != wanted && empty + named_error != wanted {
        return Err(format!("empty_choice_events: {empty}, wanted {wanted}"));
    }
    let output = &completion.outputs[0];
    same(
        "content",
        Some(output.content.as_str()),
        expect["content"].as_str(),
    )?;
    same(
        "reasoning",
        Some(output.reasoning.as_str()),
        expect["reasoning"].as_str(),
    )?;
    same(
        "tool_args",
        Some(output.tool_arguments.as_str()),
        expect["tool_args"].as_str(),
    )?;
    same(
        "done",
        Some(completion.done_event.is_some()),
        expect["done"].as_bool(),
    )?;
    let finish = output.finish.as_ref().map(Finish::name);
    same("finish_reason", finish, expect["finish_reason"].as_str())?;
    same("usage", completion.usage_tokens, expect["usage"].as_u64())?;
    check_verdict(completion, expect)
}

fn check_verdict(completion: &Completion, expect: &Value) -> Complaint {
    let verdict = expect["verdict"].as_str().expect("a verdict");
    let flaw = completion.flaw.map(|flaw| flaw.kind);
    let fits = match (verdict, flaw) {
        ("ok", flaw) => flaw.is_none(),
        (_, None) => false,
        ("failed:server_error", Some(kind)) => {
            matches!(kind, Invalid::ErrorEvent | Invalid::BadFinish)
        }
        ("failed:incomplete", Some(kind)) => {
            matches!(kind, Invalid::MissingDone | Invalid::BadFinish)
        }
        ("failed:protocol", Some(kind)) => {
            matches!(
                kind,
                Invalid::MalformedEvent | Invalid::ExtraAfterDone | Invalid::BadFinish
            )
        }
        ("failed:bad_finish", Some(kind)) => kind == Invalid::BadFinish,
        ("failed:malformed_json", Some(kind)) => kind == Invalid::MalformedEvent,
        ("failed:http_status", Some(kind)) => kind == Invalid::HttpStatus,
        ("failed:not_event_stream", Some(kind)) => kind == Invalid::WrongContentType,
        _ => false,
    };
    if fits {
        Ok(())
    } else {
        Err(format!("verdict: found {flaw:?}, wanted {verdict}"))
    }
}

#[test]
fn every_http_case() {
    run("http", 100, |case| {
        let eof = case.expect["eof_after_input"].as_bool().expect("a flag");
        let answer = read_answer(&case.input, eof, &Asked::default(), &Limits::default());
        let fault = answer.response.fault().map(|fault| fault.kind.name());
        match case.expect["accept"].as_str() {
            Some("must_reject") => same("error", fault, case.expect["error"].as_str())?,
            Some("must_accept") => check_taken(&case.input, &answer, &case.expect)?,
            // Implementations differ. We refuse each of these that we do not take.
            Some("may") if fault.is_some() => {}
            Some("may") => check_taken(&case.input, &answer, &case.expect)?,
            other => return Err(format!("accept is {other:?}")),
        }
        check_http_prefixes(&case.input, &answer.response)
    });
}

fn check_taken(input: &[u8], answer: &Answer, expect: &Value) -> Complaint {
    let response = &answer.response;
    let fault = response.fault().map(|fault| fault.kind.name());
    same("error", fault, expect["error"].as_str())?;
    if fault.is_none() && !response.is_complete() {
        return Err(format!("ending: {:?}", response.ending));
    }
    same(
        "status",
        response.status().map(u64::from),
        expect["status"].as_u64(),
    )?;
    if let Some(wanted) = expect["informational"].as_array() {
        let wanted: Vec<u64> = wanted.iter().filter_map(Value::as_u64).collect();
        let found: Vec<u64> = response
            .interim
            .iter()
            .map(|code| u64::from(*code))
            .collect();
        same("informational", found, wanted)?;
    }
    for (name, value) in expect["headers"].as_object().into_iter().flatten() {
        let found = response.values(input, name).next();
        same("header", found, value.as_str().map(str::as_bytes))?;
    }
    for key in ["body_b64", "partial_body_b64"] {
        if let Some(body) = expect[key].as_str() {
            same(key, response.body.bytes(input).into_owned(), decode(body))?;
        }
    }
    if let Some(keep_alive) = expect["keep_alive"].as_bool() {
        same("keep_alive", response.keep_alive, keep_alive)?;
    }
    if let Some(leftover) = expect["leftover_b64"].as_str() {
        let found = input[response.leftover.clone()].to_vec();
        same("leftover", found, decode(leftover))?;
    }
    if let Some(retry) = expect.get("retry_after") {
        let text = response.values(input, "retry-after").next();
        let seconds = text
            .and_then(|text| std::str::from_utf8(text).ok())
            .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|text| text.parse::<u64>().ok());
        same("retry_after", seconds, retry.as_u64())?;
    }
    if !expect["openai"].is_null() {
        check_completion_of(answer, &expect["openai"])?;
    }
    match expect["verdict"].as_str() {
        Some("failed:content_encoding") => same("encoded", answer.encoded, true),
        Some(_) => check_verdict(&answer.completion, expect),
        None => Ok(()),
    }
}

/// An incomplete message keeps its meaning so far; its verdict is the framing's.
fn check_completion_of(answer: &Answer, expect: &Value) -> Complaint {
    if answer.response.is_complete() {
        return check_completion(&answer.completion, expect);
    }
    let mut expect = expect.clone();
    expect["verdict"] = "ok".into();
    check_completion(&answer.completion, &expect)
}

/// A beginning of a message that will be taken is never refused, and its body is a beginning of
/// the whole one.
fn check_http_prefixes(input: &[u8], whole: &Response) -> Complaint {
    if whole.fault().is_some() {
        return Ok(());
    }
    let body = whole.body.bytes(input);
    let step = 1 + input.len() / 500;
    for cut in (0..input.len()).step_by(step) {
        let part = read_response(&input[..cut], false, &Limits::default());
        match part.ending {
            Ending::Complete { end } => {
                same("an early end", Ending::Complete { end }, whole.ending)?;
            }
            Ending::Unfinished(Part::BeforeHead | Part::Head | Part::Body) => {}
            Ending::Failed(fault) => return Err(format!("refused at {cut}: {fault:?}")),
        }
        if !body.starts_with(&part.body.bytes(&input[..cut])) {
            return Err(format!("the body of the first {cut} bytes is no beginning"));
        }
    }
    Ok(())
}
