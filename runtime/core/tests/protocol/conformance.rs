//! Every case of the case file, one named test each: whole, byte by byte, and at other edges.

use assize_core::protocol::http1::Http1Error;
use assize_core::protocol::openai::{StreamFault, StreamFold, Summary};
use assize_core::protocol::sse::decode;

use crate::case::{self, Accept, Case, Kind};
use crate::drive::{self, Response};

/// One test a case, and a test that none of the file is missing here.
macro_rules! cases {
    ($file:expr, $missing:ident: $($id:ident)*) => {
        $(
            #[test]
            fn $id() {
                check(&case::by_id(&stringify!($id).replace('_', "-")));
            }
        )*

        #[test]
        fn $missing() {
            let listed = [$(stringify!($id)),*].map(|id| id.replace('_', "-"));
            let filed: Vec<String> = case::of($file).into_iter().map(|case| case.id).collect();
            assert_eq!(filed, listed);
        }
    };
}

cases! {
    case::GATHERED, no_gathered_case_is_missing:
    hs_001 hs_002 hs_004 hs_005 hs_007 hs_008 hs_010 hs_011 hs_013 hs_014 hs_016 hs_017 hs_019
    hs_020 hs_022 hs_023 hs_025 hs_026 hs_028 hs_029 hs_031 hs_032 hs_034 hs_035 hs_037 hs_038
    hs_040 hs_041 hs_043 hs_044 hs_046 hs_047 hs_049 hs_050 hs_052 hs_053 hs_055 hs_056 hs_058
    hs_059 hs_061 hs_062 hs_064 hs_065 hs_067 hs_068 hs_070 hs_071 hs_073 hs_074 hs_076 hs_077
    hs_079 hs_080 hs_082 hs_083 hs_085 hs_086 hs_088 hs_089 hs_091 hs_092 hs_094 hs_095 hs_097
    hs_098 hs_100 hs_101 hs_103 hs_104 hs_106 hs_107 hs_109 hs_110 hs_112 hs_113 hs_115 hs_116
    hs_118 hs_119 hs_121 hs_122 hs_124 hs_125 hs_127 hs_128 hs_130 hs_131 hs_133 hs_134 hs_136
    hs_137 hs_139 hs_140 hs_142 hs_143 hs_145 hs_146 hs_148 hs_149 hs_151 hs_152 hs_154 hs_155
    hs_157 hs_158 hs_160 hs_161 hs_163 hs_164 hs_166 hs_167 hs_169 hs_170 hs_172 hs_173 hs_175
    hs_176 hs_178 hs_179 hs_181 hs_182 hs_184 hs_185 hs_187 hs_188 hs_190 hs_191 hs_193 hs_194
    hs_196 hs_197 hs_199 hs_200 hs_202 hs_203 hs_205 hs_206 hs_208 hs_209 hs_211 hs_212 hs_214
    hs_215 hs_217 hs_218 hs_220 hs_221 hs_223 hs_224 hs_226 hs_227 hs_229 hs_230 hs_232 hs_233
    hs_235 hs_236 hs_238 hs_239 hs_241 hs_242 hs_244 hs_245 hs_247 hs_248 hs_250 hs_251 hs_253
    hs_254 hs_256 hs_257 hs_259 hs_260 hs_262 hs_263 hs_265 hs_266 hs_268
}

cases! {
    case::OWN, no_own_case_is_missing:
    own_001 own_002 own_003 own_004 own_005 own_006 own_007 own_008 own_009 own_010 own_011
    own_012 own_013 own_014 own_015 own_016 own_017 own_018 own_019 own_020 own_021 own_022
    own_023 own_024 own_025 own_026 own_027 own_028 own_029 own_030 own_031 own_032 own_033
    own_034 own_035 own_036 own_037 own_038 own_039 own_040 own_041 own_042 own_043 own_044
    own_045 own_046 own_047 own_048 own_049 own_050 own_051 own_052 own_053 own_054 own_055
    own_056 own_057 own_058 own_059 own_060 own_061 own_062 own_063 own_064 own_065 own_066
    own_067 own_068 own_069 own_070 own_071 own_072 own_073 own_074 own_075 own_076 own_077
    own_078 own_079 own_080 own_081 own_082 own_083 own_084 own_085 own_086 own_087 own_088
    own_089 own_090 own_091 own_092 own_093 own_094 own_095 own_096 own_097 own_098 own_099
    own_100 own_101 own_102 own_103 own_104 own_105 own_106 own_107 own_108 own_109 own_110
    own_111 own_112 own_113 own_114 own_115 own_116 own_117 own_118 own_119 own_120 own_121
    own_122 own_123 own_124 own_125 own_126 own_127 own_128 own_129 own_130 own_131 own_132
    own_133 own_134 own_135 own_136 own_137 own_138 own_139 own_140 own_141 own_142 own_143
    own_144 own_145 own_146 own_147 own_148 own_149 own_150 own_151 own_152 own_153 own_154
    own_155 own_156 own_157 own_158 own_159 own_160 own_161 own_162 own_163 own_164 own_165
    own_166 own_167 own_168 own_169 own_170 own_171 own_172 own_173 own_174 own_175 own_176
    own_177 own_178 own_179 own_180 own_181 own_182 own_183 own_184 own_185 own_186 own_187
    own_188 own_189 own_190 own_191 own_192 own_193 own_194 own_195 own_196
}

/// The cases that the RFC leaves open and that are refused here, with the name of the refusal.
/// All other `may` cases are taken. `docs/protocol.md` gives the reasons.
const REFUSED: &[(&str, &str)] = &[
    ("hs-125", "bad_content_length"),
    ("hs-131", "ambiguous_framing"),
    ("hs-143", "bad_chunk_size"),
    ("hs-145", "bad_chunk"),
    ("hs-146", "bad_chunk"),
    ("hs-161", "incomplete_body"),
    ("hs-166", "incomplete_body"),
    ("hs-167", "incomplete_body"),
    ("hs-169", "bad_transfer_encoding"),
    ("hs-170", "bad_transfer_encoding"),
    ("hs-172", "bad_transfer_encoding"),
    ("hs-173", "bad_transfer_encoding"),
    ("hs-178", "bad_status_line"),
    ("hs-200", "bad_header"),
    ("hs-209", "bad_status_line"),
    ("hs-214", "header_limit"),
    ("hs-215", "bad_status_line"),
    ("own-002", "bad_chunk_size"),
    ("own-004", "incomplete_body"),
    ("own-010", "bad_chunk"),
    ("own-021", "bad_chunk"),
    ("own-026", "chunk_line_limit"),
    ("own-029", "bad_trailer"),
    ("own-033", "bad_trailer"),
    ("own-034", "bad_trailer"),
    ("own-036", "incomplete_body"),
    ("own-037", "bad_transfer_encoding"),
    ("own-040", "bad_transfer_encoding"),
    ("own-041", "bad_transfer_encoding"),
    ("own-042", "bad_transfer_encoding"),
    ("own-043", "bad_transfer_encoding"),
    ("own-048", "ambiguous_framing"),
    ("own-049", "bad_content_length"),
    ("own-056", "body_limit"),
    ("own-060", "bad_content_length"),
    ("own-071", "interim_limit"),
    ("own-083", "bad_status_line"),
    ("own-087", "bad_header"),
    ("own-092", "bad_header"),
    ("own-095", "header_limit"),
];

fn check(case: &Case) {
    let input = case.input();
    match case.kind {
        Kind::Sse => check_sse(case, &input),
        Kind::Http => check_http(case, &input),
    }
}

fn check_sse(case: &Case, input: &[u8]) {
    check_decoded(case, input);
    check_scanned(case, input);
    check_openai(case, input);
}

fn check_decoded(case: &Case, input: &[u8]) {
    let decoded = decode(input);
    if let Some(events) = &case.expect.events {
        assert_eq!(decoded.events.len(), events.len(), "events");
        for (got, due) in decoded.events.iter().zip(events) {
            assert_eq!(got.event, due.event.as_bytes());
            assert_eq!(got.last_event_id, due.last_event_id.as_bytes());
            match (&due.data, due.data_len) {
                // The algorithm decodes what is not UTF-8 as U+FFFD; here the bytes are kept.
                (Some(data), _) => assert_eq!(String::from_utf8_lossy(&got.data), *data),
                (None, Some(len)) => assert_eq!(got.data.len(), len),
                (None, None) => panic!("a case without data"),
            }
        }
    }
    if let Some(comments) = case.expect.comments {
        assert_eq!(decoded.comments, comments, "comments");
    }
    if let Some(retry_ms) = case.expect.retry_ms {
        assert_eq!(decoded.retry_ms, Some(retry_ms));
    }
    if let Some(pending) = case.expect.pending_at_eof {
        assert_eq!(decoded.pending, pending, "pending at the end");
    }
}

fn check_scanned(case: &Case, input: &[u8]) {
    let decoded = decode(input);
    let due: Vec<bool> = decoded
        .events
        .iter()
        .map(|e| *e.data == *b"[DONE]")
        .collect();
    let every_byte: Vec<usize> = (1..input.len()).collect();
    let bytewise = drive::scan(&drive::reads(input, &every_byte));
    let done: Vec<bool> = bytewise.events.iter().map(|&(done, _)| done).collect();
    assert_eq!(done, due, "events by the scanner");
    assert_eq!(bytewise.pending, decoded.pending, "pending by the scanner");
    for cuts in case.cuts(input.len()) {
        assert_eq!(
            drive::scan(&drive::reads(input, &cuts)),
            drive::regroup(&bytewise, &cuts, input.len()),
            "cut at {cuts:?}"
        );
    }
}

fn check_http(case: &Case, input: &[u8]) {
    let eof = case.expect.eof_after_input;
    let mut parser = drive::parser();
    let whole = drive::respond(&mut parser, &[input], eof);
    check_response(case, &whole);
    for cuts in case.cuts(input.len()) {
        parser.reset();
        let cut = drive::respond(&mut parser, &drive::reads(input, &cuts), eof);
        assert_eq!(cut, whole, "cut at {cuts:?}");
    }
}

fn check_response(case: &Case, response: &Response) {
    let expect = &case.expect;
    let refusal = REFUSED
        .iter()
        .find(|(id, _)| *id == case.id)
        .map(|(_, name)| *name);
    let due = match expect.accept.expect("accept") {
        Accept::May => refusal,
        _ => expect.error.as_deref(),
    };
    let error = response.error.map(Http1Error::name);
    assert_eq!(error, due, "{response:?}");
    if let (Some(_), Some(ok)) = (refusal, &expect.error_ok) {
        assert_eq!(error, Some(ok.as_str()));
    }
    if expect.accept == Some(Accept::Never) {
        return;
    }
    let status = response.head.map(|head| head.status);
    if error.is_none() {
        assert!(response.end.is_some(), "no end: {response:?}");
        if expect.status.is_some() {
            assert_eq!(status, expect.status);
        }
        if let Some(body) = &expect.body_b64 {
            assert_eq!(response.body, case::unbase64(body));
        }
    } else if expect.accept == Some(Accept::Must) {
        assert_eq!(status, expect.status);
        assert_eq!(response.end, None);
        if let Some(body) = &expect.partial_body_b64 {
            assert_eq!(response.body, case::unbase64(body));
        }
    }
    if let Some(keep_alive) = expect.keep_alive {
        let reusable = response.end == Some(true) && response.leftover.is_empty();
        assert_eq!(reusable, keep_alive, "{response:?}");
    }
    if let Some(leftover) = &expect.leftover_b64 {
        assert_eq!(response.leftover, case::unbase64(leftover));
    }
    assert_eq!(response.informational, expect.informational);
    check_verdict(case, response);
    check_openai(case, &response.body);
}

/// The verdicts that the head alone gives; those of the stream are the classifier's.
fn check_verdict(case: &Case, response: &Response) {
    let Some(head) = response.head else { return };
    match case.expect.verdict.as_deref() {
        Some("failed:http_status") => assert!(!(200..300).contains(&head.status)),
        Some("failed:not_event_stream") => assert!(!head.event_stream),
        Some("failed:content_encoding") => assert!(head.encoded),
        Some(other) => panic!("an unknown verdict: {other}"),
        None => {}
    }
}

/// The counts, and whether the stream is valid. The classes of faults are advice of the file.
fn check_openai(case: &Case, body: &[u8]) {
    let Some(expect) = &case.expect.openai else {
        return;
    };
    let mut fold = StreamFold::new(1, true);
    for event in decode(body).events {
        fold.take(event.event, &event.data);
    }
    let got = fold.finish();
    let due = Summary {
        events: expect.events,
        token_events: expect.token_events,
        empty_choice_events: expect.empty_choice_events,
        content: expect.content.clone(),
        reasoning: expect.reasoning.clone(),
        tool_args: expect.tool_args.clone(),
        done: expect.done,
        finish_reason: expect.finish_reason.clone(),
        completion_tokens: expect.usage,
        fault: match expect.verdict.as_str() {
            "ok" => None,
            "failed:server_error" => Some(StreamFault::ErrorEvent),
            "failed:malformed_json" => Some(StreamFault::MalformedEvent),
            "failed:protocol" => Some(StreamFault::Protocol),
            "failed:bad_finish" => Some(StreamFault::BadFinish),
            "failed:incomplete" => Some(StreamFault::Incomplete),
            other => panic!("an unknown verdict: {other}"),
        },
    };
    assert_eq!(got, due);
}
