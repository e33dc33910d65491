//! The definitions of docs/metrics against timelines whose figures were worked out elsewhere.

use assize_reader::metrics::{Origin, Timeline};
use assize_units::{DurNs, MonoNs, Rate};
use serde_json::Value;

fn oracle() -> Value {
    serde_json::from_str(include_str!("fixtures/metrics_oracle.json")).expect("JSON")
}

/// "TTFT = first_token − (sent | intended). TPOT = (last_token − first_token) / (output tokens − 1),
/// per request; undefined for fewer than 2 tokens. E2E = done − (sent | intended)."
#[test]
fn each_timeline_has_its_figures() {
    let oracle = oracle();
    for case in oracle["metrics_timelines"]["cases"]
        .as_array()
        .expect("cases")
    {
        let name = case["name"].as_str().expect("a name");
        let timeline = timeline(case);
        let ns = |value: Option<DurNs>| value.map(|value| value.0);
        let wanted = |key: &str| case[key].as_u64();
        assert_eq!(
            ns(timeline.ttft(Origin::Sent)),
            wanted("ttft_send_ns"),
            "{name}"
        );
        assert_eq!(
            ns(timeline.ttft(Origin::Intended)),
            wanted("ttft_intended_ns"),
            "{name}"
        );
        assert_eq!(
            ns(timeline.e2e(Origin::Sent)),
            wanted("e2e_send_ns"),
            "{name}"
        );
        assert_eq!(
            ns(timeline.e2e(Origin::Intended)),
            wanted("e2e_intended_ns"),
            "{name}"
        );
        let tpot = timeline
            .tpot_ns()
            .map(|tpot| format!("{}/{}", tpot.num(), tpot.den()));
        assert_eq!(tpot.as_deref(), case["tpot_ns"].as_str(), "{name}");
        let gaps: Vec<u64> = timeline.gaps().map(|gap| gap.0).collect();
        let listed = case["event_gaps_ns"].as_array().expect("gaps");
        let listed: Vec<u64> = listed.iter().filter_map(Value::as_u64).collect();
        assert_eq!(gaps, listed, "{name}");
    }
}

fn timeline(case: &Value) -> Timeline {
    let at = |value: &Value| value.as_u64().map(MonoNs);
    let tokens = case["events"]
        .as_array()
        .expect("events")
        .iter()
        .filter(|event| event["tokens"].as_u64() > Some(0))
        .filter_map(|event| at(&event["t_ns"]))
        .collect();
    Timeline {
        intended: at(&case["intended_ns"]).expect("an instant"),
        sent: at(&case["send_ns"]),
        tokens,
        done: at(&case["done_ns"]),
        output_tokens: case["usage_completion_tokens"].as_u64(),
        ..Timeline::default()
    }
}

/// "throughput = valid completed requests / observation interval (cell origin to the end of the
/// drain); output_throughput the same with tokens."
#[test]
fn throughput_is_over_the_whole_interval_with_its_drain() {
    let oracle = oracle();
    for case in oracle["throughput"]["cases"].as_array().expect("cases") {
        let interval = DurNs(
            case["last_done_ns"].as_u64().expect("an end")
                - case["first_intended_ns"].as_u64().expect("a beginning"),
        );
        let rate = |count: &Value| {
            let rate = Rate::per_interval(count.as_u64().expect("a count"), interval);
            rate.expect("an interval").as_f64()
        };
        let wanted = case["throughput_including_drain_rps"]
            .as_f64()
            .expect("a rate");
        assert!((rate(&case["valid_completed"]) - wanted).abs() < 1e-12);
        if let Some(wanted) = case["tokens_per_s_including_drain"].as_f64() {
            assert!((rate(&case["output_tokens"]) - wanted).abs() < 1e-9);
        }
    }
}
