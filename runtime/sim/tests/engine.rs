//! The engine's answers: their bytes, and in virtual time their instants.

mod support;

use assize_sim::{ConnId, Engine, EngineConfig};
use assize_units::{DurNs, MonoNs};
use serde_json::Value;
use support::{CONN, World, answers, ask, get, post};

const MS: u64 = 1_000_000;

/// 3 ms to the first token of 100 ids, then 8 ms a token.
fn config() -> EngineConfig {
    EngineConfig {
        prefill_base: DurNs::from_ms(2),
        prefill_per_token: DurNs::from_us(10),
        step: DurNs::from_ms(8),
        step_per_seq: DurNs::from_ms(1),
        ..EngineConfig::default()
    }
}

fn completion(tokens: u32, more: &str) -> Vec<u8> {
    let ids: Vec<u32> = (0..100).collect();
    let body = format!(
        r#"{{"model":"sim","prompt":{ids:?},"max_tokens":{tokens},"ignore_eos":true,
            "stream":true,"stream_options":{{"include_usage":true}}{more}}}"#
    );
    post("/v1/completions", &body)
}

#[test]
fn a_streamed_completion_has_vllm_s_shape_and_the_model_s_instants() {
    let received = ask(config(), &completion(3, ""));
    let instants: Vec<u64> = received.writes.iter().map(|write| write.0).collect();
    // The head at once; the idle connection is closed 5 s after the end.
    assert_eq!(instants, [0, 3 * MS, 11 * MS, 19 * MS]);
    assert_eq!(received.closed, Some((5_019 * MS, false)));
    let [answer] = &answers(&received.bytes())[..] else {
        panic!("one answer");
    };
    assert!(answer.complete);
    assert_eq!(answer.status, 200);
    let content_type = answer.header("content-type");
    assert_eq!(content_type, Some("text/event-stream; charset=utf-8"));
    assert_eq!(answer.header("x-request-id"), Some("open-1-00007"));
    let events = answer.events();
    assert_eq!(events.len(), 4);
    let expected: Value = serde_json::from_str(
        r#"{"id":"cmpl-8c33b3ff9f1c1a51","object":"text_completion","created":0,"model":"sim",
            "choices":[{"index":0,"text":" x","logprobs":null,"finish_reason":null,
            "stop_reason":null,"prompt_token_ids":null,"token_ids":null}]}"#,
    )
    .unwrap();
    let keys = |value: &Value| {
        value
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(keys(&events[0]), keys(&expected));
    assert_eq!(
        keys(&events[0]["choices"][0]),
        keys(&expected["choices"][0])
    );
    assert_eq!(events[1]["choices"][0]["finish_reason"], Value::Null);
    assert_eq!(events[2]["choices"][0]["finish_reason"], "length");
    assert_eq!(events[3]["choices"], serde_json::json!([]));
    let usage = serde_json::json!({"prompt_tokens":100,"total_tokens":103,"completion_tokens":3});
    assert_eq!(events[3]["usage"], usage);
}

#[test]
fn the_last_token_usage_done_and_the_end_leave_in_one_write() {
    let received = ask(config(), &completion(2, ""));
    let last = String::from_utf8(received.writes[2].1.clone()).unwrap();
    assert!(last.contains(r#""finish_reason":"length""#));
    assert!(
        last.ends_with("}\n\n\r\ne\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"),
        "{last}"
    );
}

#[test]
fn token_ids_come_when_asked_for_and_agree_with_the_answer_that_is_not_streamed() {
    let streamed = ask(config(), &completion(5, r#","return_token_ids":true"#));
    let events = answers(&streamed.bytes())[0].events();
    let first = &events[0]["choices"][0];
    assert_eq!(first["prompt_token_ids"].as_array().unwrap().len(), 100);
    assert_eq!(events[1]["choices"][0]["prompt_token_ids"], Value::Null);
    let ids: Vec<Value> = events[..5]
        .iter()
        .flat_map(|event| event["choices"][0]["token_ids"].as_array().unwrap().clone())
        .collect();
    let text: String = events[..5]
        .iter()
        .map(|event| event["choices"][0]["text"].as_str().unwrap())
        .collect();

    let prompt: Vec<u32> = (0..100).collect();
    let body = format!(
        r#"{{"prompt":{prompt:?},"max_tokens":5,"ignore_eos":true,"return_token_ids":true}}"#
    );
    let whole = ask(config(), &post("/v1/completions", &body));
    assert_eq!(whole.writes.len(), 1);
    assert_eq!(whole.writes[0].0, (3 + 4 * 8) * MS);
    let answer = answers(&whole.bytes())[0].json();
    assert_eq!(answer["choices"][0]["token_ids"], Value::Array(ids));
    assert_eq!(answer["choices"][0]["text"], text);
    assert_eq!(answer["usage"]["total_tokens"], 105);
}

#[test]
fn a_chat_begins_with_its_role() {
    let body = r#"{"messages":[{"role":"user","content":"bada keko"}],"max_tokens":3,
        "ignore_eos":true,"stream":true,"stream_options":{"include_usage":true}}"#;
    let received = ask(config(), &post("/v1/chat/completions", body));
    // The role's event comes with the first token, as vLLM's does.
    assert_eq!(received.writes.len(), 4);
    let events = answers(&received.bytes())[0].events();
    let delta = |n: usize| events[n]["choices"][0]["delta"].clone();
    assert_eq!(
        delta(0),
        serde_json::json!({"role":"assistant","content":""})
    );
    assert_eq!(events[0]["object"], "chat.completion.chunk");
    assert!(delta(1)["content"].as_str().unwrap().starts_with(' '));
    assert_eq!(events[3]["choices"][0]["finish_reason"], "length");
    assert_eq!(events[4]["usage"]["completion_tokens"], 3);

    let body =
        r#"{"messages":[{"role":"user","content":"bada keko"}],"max_tokens":3,"ignore_eos":true}"#;
    let whole = ask(config(), &post("/v1/chat/completions", body));
    let answer = answers(&whole.bytes())[0].json();
    assert_eq!(answer["object"], "chat.completion");
    let message = &answer["choices"][0]["message"];
    let text: String = (1..4)
        .map(|n| delta(n)["content"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(message["content"], text);
}

#[test]
fn a_batch_of_prompts_finishes_each_index_once() {
    let body = r#"{"prompt":[[1,2],[3],[4,5,6]],"max_tokens":4,"ignore_eos":true,"stream":true,
        "stream_options":{"include_usage":true}}"#;
    let events = answers(&ask(config(), &post("/v1/completions", body)).bytes())[0].events();
    let mut finished: Vec<u64> = events
        .iter()
        .filter(|event| event["choices"][0]["finish_reason"] == "length")
        .map(|event| event["choices"][0]["index"].as_u64().unwrap())
        .collect();
    finished.sort_unstable();
    assert_eq!(finished, [0, 1, 2]);
    assert_eq!(events.last().unwrap()["usage"]["completion_tokens"], 12);
    assert_eq!(events.last().unwrap()["usage"]["prompt_tokens"], 6);
}

#[test]
fn several_tokens_may_share_an_event() {
    let config = EngineConfig {
        tokens_per_event: 4,
        ..config()
    };
    let received = ask(config, &completion(11, r#","return_token_ids":true"#));
    let events = answers(&received.bytes())[0].events();
    let counts: Vec<usize> = events[..events.len() - 1]
        .iter()
        .map(|event| event["choices"][0]["token_ids"].as_array().unwrap().len())
        .collect();
    assert_eq!(counts, [1, 4, 4, 2]);
}

#[test]
fn a_natural_length_hangs_on_the_prompt_alone() {
    let length = |prompt: &str, more: &str| {
        let body = format!(r#"{{"prompt":"{prompt}","max_tokens":4096{more}}}"#);
        let answer = answers(&ask(config(), &post("/v1/completions", &body)).bytes())[0].json();
        let reason = answer["choices"][0]["finish_reason"]
            .as_str()
            .unwrap()
            .to_owned();
        (
            answer["usage"]["completion_tokens"].as_u64().unwrap(),
            reason,
        )
    };
    let (tokens, reason) = length("a prompt", "");
    assert!((16..=256).contains(&tokens));
    assert_eq!(reason, "stop");
    assert_eq!(length("a prompt", r#","temperature":0"#).0, tokens);
    assert_ne!(length("another prompt", "").0, tokens);
    assert_eq!(
        length("a prompt", r#","min_tokens":300"#),
        (300, "stop".to_owned())
    );
    assert_eq!(
        length("a prompt", r#","ignore_eos":true"#),
        (4096, "length".to_owned())
    );
}

#[test]
fn errors_are_json_in_openai_s_shape() {
    let mut framed = post("/v1/completions", "{}");
    framed.splice(0..4, *b"PUT");
    let cases: Vec<(Vec<u8>, u16)> = vec![
        (get("/v1/nothing"), 404),
        (get("/v1/completions"), 405),
        (framed, 405),
        (post("/v1/completions", "{\"model\": "), 400),
        (
            post("/v1/completions", r#"{"prompt":"a","model":"gpt"}"#),
            404,
        ),
        (post("/v1/completions", r#"{"prompt":"a","n":2}"#), 422),
        (
            post("/v1/completions", r#"{"prompt":"a","max_tokens":200000}"#),
            400,
        ),
        (b"rubbish\r\n\r\n".to_vec(), 400),
        (
            b"POST / HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n".to_vec(),
            413,
        ),
    ];
    for (bytes, status) in cases {
        let received = ask(config(), &bytes);
        let [answer] = &answers(&received.bytes())[..] else {
            panic!("one answer to {:?}", String::from_utf8_lossy(&bytes));
        };
        assert_eq!(
            answer.status,
            status,
            "{:?}",
            String::from_utf8_lossy(&bytes)
        );
        assert_eq!(answer.json()["error"]["code"], status);
        assert!(answer.json()["error"]["message"].is_string());
    }
}

#[test]
fn the_other_endpoints_answer() {
    let mut world = World::new(config());
    world.send(0, CONN, &get("/health"));
    world.send(0, CONN, &get("/v1/models"));
    world.send(0, ConnId(2), &completion(2, ""));
    world.send(MS, CONN, &get("/metrics"));
    world.run_until(100 * MS);
    world.send(100 * MS, CONN, &get("/metrics"));
    let found = answers(&world.received[&CONN.0].bytes());
    assert_eq!(found[0].body, b"");
    assert_eq!(found[1].json()["data"][0]["id"], "sim");
    let metric = |n: usize, name: &str| {
        let page = String::from_utf8(found[n].body.clone()).unwrap();
        let line = page
            .lines()
            .find(|line| line.starts_with(name))
            .unwrap()
            .to_owned();
        line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    let running = |n| metric(n, "vllm:num_requests_running{");
    assert!((running(2) - 1.0).abs() < 1e-9 && running(3).abs() < 1e-9);
    assert!((metric(3, "vllm:generation_tokens_total{") - 2.0).abs() < 1e-9);
    assert!((metric(3, "vllm:prompt_tokens_total{") - 100.0).abs() < 1e-9);
    let length = "vllm:request_success_total{engine=\"0\",finished_reason=\"length\"";
    assert!((metric(3, length) - 1.0).abs() < 1e-9);
}

#[test]
fn pipelined_requests_are_answered_in_order_and_any_split_gives_the_same_bytes() {
    let mut bytes = completion(2, "");
    bytes.extend(get("/health"));
    bytes.extend(post(
        "/v1/completions",
        r#"{"prompt":"a","max_tokens":2,"ignore_eos":true}"#,
    ));
    bytes.extend(b"GET /v1/models HTTP/1.1\r\nConnection: close\r\n\r\n");
    let whole = ask(config(), &bytes);
    let found = answers(&whole.bytes());
    assert_eq!(found.len(), 4);
    assert_eq!(found[0].events().len(), 3);
    assert_eq!(found[2].json()["usage"]["completion_tokens"], 2);
    assert_eq!(found[3].header("connection"), Some("close"));
    assert_eq!(whole.closed.map(|closed| closed.1), Some(false));
    for size in [1, 2, 7, 100] {
        let mut world = World::new(config());
        for piece in bytes.chunks(size) {
            world.send(0, CONN, piece);
        }
        world.run_until(3_600_000 * MS);
        assert_eq!(
            world.received[&CONN.0].bytes(),
            whole.bytes(),
            "pieces of {size}"
        );
    }
}

#[test]
fn http_1_0_and_an_expectation_are_served() {
    let body = r#"{"prompt":"a","max_tokens":2,"ignore_eos":true,"stream":true}"#;
    let old = format!(
        "POST /v1/completions HTTP/1.0\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let received = ask(config(), old.as_bytes());
    let answer = &answers(&received.bytes())[0];
    assert_eq!(answer.header("transfer-encoding"), None);
    assert_eq!(answer.events().len(), 2);
    assert!(received.closed.is_some());

    let head = format!(
        "POST /v1/completions HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut world = World::new(config());
    world.send(0, CONN, head.as_bytes());
    assert_eq!(answers(&world.received[&CONN.0].bytes())[0].status, 100);
    world.send(MS, CONN, body.as_bytes());
    world.run_until(1000 * MS);
    let found = answers(&world.received[&CONN.0].bytes());
    assert_eq!((found.len(), found[1].status), (2, 200));
}

#[test]
fn a_client_that_leaves_frees_its_place() {
    let mut world = World::new(EngineConfig {
        max_seqs: 1,
        ..config()
    });
    world.send(0, ConnId(1), &completion(1000, ""));
    world.send(0, ConnId(2), &completion(1, ""));
    world.engine.handle_closed(MonoNs(MS), ConnId(1));
    world.run_until(20 * MS);
    // The step under way ends at 3 ms; then the second prompt has its 3 ms.
    let instants: Vec<u64> = world.received[&2].writes.iter().map(|w| w.0).collect();
    assert_eq!(instants, [0, 6 * MS]);
    assert_eq!(world.received[&1].closed, None);
}

#[test]
fn a_full_queue_and_a_full_house_are_refused() {
    let mut world = World::new(EngineConfig {
        max_seqs: 1,
        queue_limit: 1,
        max_connections: 3,
        ..config()
    });
    for conn in 1..=4 {
        world.send(0, ConnId(conn), &completion(5, ""));
    }
    let status = |world: &World, conn: u64| answers(&world.received[&conn].bytes())[0].status;
    assert_eq!([1, 2, 3].map(|conn| status(&world, conn)), [200, 200, 503]);
    assert_eq!(world.received[&4].closed, Some((0, true)));
}

#[test]
fn until_it_has_started_everything_is_503() {
    let mut world = World::new(EngineConfig {
        startup: DurNs::from_s(2),
        ..config()
    });
    world.send(1999 * MS, CONN, &get("/health"));
    world.send(2000 * MS, CONN, &get("/health"));
    let found = answers(&world.received[&CONN.0].bytes());
    assert_eq!([found[0].status, found[1].status], [503, 200]);
}

#[test]
fn a_late_host_moves_no_instant_of_the_model() {
    let run = |late: u64| {
        let mut engine = Engine::new(config(), MonoNs(0)).unwrap();
        engine.handle_open(MonoNs(0), CONN);
        engine.handle_received(MonoNs(0), CONN, &completion(50, ""));
        let mut ends = Vec::new();
        while let Some(due) = engine.poll_timeout() {
            ends.push(due.0);
            engine.handle_timeout(MonoNs(due.0 + late));
            while engine.poll_output().is_some() {}
        }
        ends
    };
    // The last deadline is the idle connection's, which starts when the answer has left.
    let (punctual, late) = (run(0), run(MS));
    assert_eq!(punctual, late);
    assert_eq!(punctual[49], (3 + 49 * 8) * MS);
}

proptest::proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(
        pieces in proptest::collection::vec(proptest::collection::vec(proptest::num::u8::ANY, 0..60), 0..8),
    ) {
        let mut world = World::new(config());
        for piece in &pieces {
            world.send(0, CONN, piece);
        }
        world.run_until(60_000 * MS);
    }

    #[test]
    fn arbitrary_bodies_never_panic(body in "[\\[\\]{}\":,a-z0-9 .-]{0,80}", chat in proptest::bool::ANY) {
        let path = if chat { "/v1/chat/completions" } else { "/v1/completions" };
        let received = ask(config(), &post(path, &body));
        let found = answers(&received.bytes());
        proptest::prop_assert_eq!(found.len(), 1);
    }
}
