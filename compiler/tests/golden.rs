//! Whole studies whose plan hash is pinned. A hash that changes is a new meaning: never mend one
//! here without a new language version, once a version is published.

mod support;

use assize_plan::{Bundle, Hash};
use support::output;
use support::studies::{CLOSED, HELLO, OPEN, PAIR, frozen};

#[test]
fn the_hashes_of_whole_studies_are_pinned() {
    let hashes: Vec<String> = [HELLO, CLOSED, OPEN, PAIR]
        .iter()
        .map(|text| frozen(text).hash.hex())
        .collect();
    assert_eq!(
        hashes,
        [
            "148c72b13f687c99a6fb3126fbd705c0acad8e91323f8ae57a5bcb2903cadaca",
            "8f8b06808f7e133a0bfbdcc151b701eaaffb06ac148671ccbce67d0718e468d7",
            "dcd032de4e4d623d9814b116212aaba53a84f620a2457005dbf8d7eaebc60638",
            "ab3c7bc5969769283305cdfb69717b07997262a4cc51ee67b0d17bcba9b6f986",
        ]
    );
}

#[test]
fn a_bundle_opens_again_and_freezing_twice_is_the_same() {
    for text in [HELLO, CLOSED, OPEN, PAIR] {
        let first = frozen(text).to_files();
        assert_eq!(first, frozen(text).to_files());
        let opened = Bundle::from_files(&first).expect("a bundle");
        assert_eq!(opened.hash, Hash::of(&first["plan.json"]));
    }
}

#[test]
fn key_order_comments_and_layout_decide_nothing() {
    let shuffled = "\
# A comment.
study: hello
assize: 1   # the version
cells: { four: { requests: 64, load: \"closed( 4 )\" } }
arms:
  theirs:
    model: llama-3.1-8b
    endpoint: 'http://127.0.0.1:8000/v1'
requests:
  ask:
    prompt: mine
    output: at_most( 128 )
    api: openai/chat

prompts: { mine: { file: prompts.jsonl } }
";
    assert_eq!(frozen(HELLO).hash, frozen(shuffled).hash);
    let mut parts: Vec<&str> = PAIR.split_inclusive('\n').collect();
    let arms = parts.iter().position(|line| *line == "arms:\n").unwrap();
    // `whole` and `chunked` change places, and so do two names of `let`.
    parts.swap(arms + 2, arms + 3);
    parts.swap(arms + 5, arms + 6);
    assert_ne!(parts.concat(), PAIR);
    assert_eq!(frozen(PAIR).hash, frozen(&parts.concat()).hash);
}

#[test]
fn every_arm_of_a_block_has_the_same_trace_and_the_same_ids() {
    let bundle = frozen(PAIR);
    for pair in bundle.plan.units.chunks(2) {
        let mut sides: Vec<Vec<_>> = pair
            .iter()
            .map(|unit| {
                unit.cells
                    .iter()
                    .map(|cell| (cell.load.trace(), cell.id_prefix.clone()))
                    .collect()
            })
            .collect();
        let second = sides.pop().unwrap();
        assert_eq!(sides.pop().unwrap(), second);
    }
    let first = &bundle.plan.units[0];
    assert_eq!(first.path, format!("confirmation/00/{}", first.arm));
    assert_eq!(first.cells[1].id_prefix, "near-8");
    assert_eq!(
        first.warmup.as_ref().unwrap().id_prefix,
        "warmup.confirmation-8"
    );
    assert_eq!(bundle.plan.units[2].cells[0].id_prefix, "near-9");
}

#[test]
fn the_near_load_of_the_published_study() {
    let bundle = frozen(PAIR);
    let value = |name: &str| {
        let found = bundle
            .plan
            .values
            .iter()
            .find(|value| value.name == name)
            .unwrap();
        (found.formula.clone(), found.value.to_string())
    };
    assert_eq!(
        value("near"),
        ("floor_to(90% * slower, 0.1/s)".to_owned(), "2.9".to_owned())
    );
    assert_eq!(value("count").1, "16");
    assert_eq!(bundle.plan.values.len(), 3, "`tail` is no number");
}

#[test]
fn bodies_are_exact_bytes() {
    let bundle = frozen(PAIR);
    let class = bundle
        .plan
        .requests
        .iter()
        .find(|class| class.name == "generate")
        .unwrap();
    assert_eq!(class.path, "/v1/completions");
    let body = bundle.object(class.bodies[0]).unwrap();
    assert_eq!(
        std::str::from_utf8(body).unwrap(),
        r#"{"ignore_eos":true,"max_tokens":32,"min_tokens":32,"model":"small","prompt":"Say 0.","stream":true,"stream_options":{"include_usage":true},"temperature":0}"#
    );
    let chat = frozen(HELLO);
    let body = chat.object(chat.plan.requests[0].bodies[1]).unwrap();
    assert_eq!(
        std::str::from_utf8(body).unwrap(),
        r#"{"max_tokens":128,"messages":[{"content":"Say 1.","role":"user"}],"model":"llama-3.1-8b","stream":true,"stream_options":{"include_usage":true}}"#
    );
    let batch = frozen(CLOSED);
    let class = batch
        .plan
        .requests
        .iter()
        .find(|class| class.choices == 4)
        .unwrap();
    let body = batch.object(class.bodies[0]).unwrap();
    assert_eq!(
        std::str::from_utf8(body).unwrap(),
        r#"{"ignore_eos":true,"max_tokens":16,"min_tokens":16,"model":"small","prompt":[[1,2,3],[4,5,6],[1,2,3],[4,5,6]],"temperature":0}"#
    );
    assert!(!class.stream);
}

#[test]
fn an_arms_args_and_env_are_merged_into_its_server() {
    let bundle = frozen(PAIR);
    let arm = bundle.plan.arm("chunked").unwrap();
    let assize_plan::ArmTarget::Server { object } = arm.target else {
        panic!("a server");
    };
    let server = bundle.server(object).unwrap();
    let assize_plan::ServerKind::Command {
        command,
        env,
        stop_signal,
        ..
    } = server.kind
    else {
        panic!("a command");
    };
    assert_eq!(
        command.join(" "),
        "vllm serve model --port 8000 --max-num-seqs 96 --chunks"
    );
    assert_eq!((env["LOG"].as_str(), env["MODE"].as_str()), ("quiet", "b"));
    assert_eq!(stop_signal, "INT");
    assert_eq!(bundle.plan.external[0].path, "weights.bin");
    assert_eq!(bundle.plan.external[0].bytes.0, 7);
}

#[test]
fn the_readme_says_what_a_person_asks() {
    let readme = frozen(PAIR).readme;
    for part in [
        "Does the flag shorten the tail?",
        "confirmation: 10 blocks",
        "10 blocks; supported from 9 wins on; smallest p 0.0009765625",
        "valid only if: failed == 0",
        "observer: 1 blocks (excluded",
        "arm chunked: starts `vllm serve model --port 8000 --max-num-seqs 96 --chunks` with the variables LOG, MODE, HF_HOME and speaks to http://127.0.0.1:8000/v1",
    ] {
        assert!(readme.contains(part), "{part}\n{readme}");
    }
}

#[test]
fn the_readme_says_whose_peer_is_not_verified() {
    let words = "NOT VERIFIED: any certificate is taken of whoever answers for the arm theirs.";
    let verified = HELLO.replace("endpoint: http://", "endpoint: https://");
    assert!(!frozen(&verified).readme.contains("NOT VERIFIED"));
    let insecure = verified.replace(
        ", model: llama-3.1-8b",
        ", insecure: true, model: llama-3.1-8b",
    );
    let readme = frozen(&insecure).readme;
    assert!(readme.contains(words), "{readme}");
}

#[test]
fn the_preview_counts() {
    let preview = output(HELLO).preview;
    assert_eq!(
        (preview.requests, preview.units, preview.closed_cells),
        (64, 1, 1)
    );
    assert_eq!(preview.output_tokens, Some(64 * 128));
}
