//! A fault rule as one word of a command line: `hang@3`, `stall(4, 200ms)@every:7`, `reset_before_head@5%`.

use std::str::FromStr;

use serde_json::{Map, Value};

use super::duration::Percent;
use super::fault::{Fault, FaultRule};

/// Why a text is no fault rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no fault: {why}")]
pub struct FaultTextError {
    text: String,
    why: String,
}

impl FromStr for FaultRule {
    type Err = FaultTextError;

    /// `NAME[(ARGUMENT, …)]@REQUESTS`. Names and arguments are those of [`Fault`], in their order;
    /// requests are numbers from 0 (`3` or `3,5`), `every:7`, or a share (`5%`).
    fn from_str(text: &str) -> Result<FaultRule, FaultTextError> {
        let wrong = |why: &str| FaultTextError {
            text: text.to_owned(),
            why: why.to_owned(),
        };
        let (fault, requests) = text
            .rsplit_once('@')
            .ok_or_else(|| wrong("write NAME@REQUESTS, such as hang@3"))?;
        let (name, arguments) = match fault.split_once('(') {
            None => (fault, Vec::new()),
            Some((name, rest)) => {
                let inner = rest
                    .strip_suffix(')')
                    .ok_or_else(|| wrong("a `)` is missing"))?;
                (name, inner.split(',').map(str::trim).collect())
            }
        };
        let fault = read_fault(name, &arguments).map_err(|why| wrong(&why))?;
        let mut rule = FaultRule {
            fault,
            requests: Vec::new(),
            every: 0,
            probability: Percent::default(),
        };
        let numbers = "requests are `3`, `3,5`, `every:7` or `5%`";
        if let Some(every) = requests.strip_prefix("every:") {
            rule.every = every
                .parse()
                .ok()
                .filter(|every| *every > 0)
                .ok_or_else(|| wrong(numbers))?;
        } else if requests.ends_with('%') {
            rule.probability = Percent::parse(requests).ok_or_else(|| wrong(numbers))?;
        } else {
            let parsed: Result<Vec<u64>, _> = requests
                .split(',')
                .map(|number| number.trim().parse())
                .collect();
            rule.requests = parsed.map_err(|_| wrong(numbers))?;
        }
        Ok(rule)
    }
}

/// The names of a fault's arguments, in order.
fn argument_names(name: &str) -> &'static [&'static str] {
    match name {
        "stall" => &["after_events", "time"],
        "slow_head" => &["time"],
        "status" => &["code"],
        "close_mid_stream" | "reset_mid_stream" | "hang_mid_stream" | "malformed_chunk"
        | "malformed_event" | "error_event" => &["after_events"],
        _ => &[],
    }
}

fn read_fault(name: &str, arguments: &[&str]) -> Result<Fault, String> {
    let names = argument_names(name);
    if names.len() != arguments.len() {
        return Err(format!(
            "`{name}` takes {} arguments: ({})",
            names.len(),
            names.join(", ")
        ));
    }
    let value = |text: &str| {
        text.parse::<u64>()
            .map_or_else(|_| Value::from(text), Value::from)
    };
    let fields: Map<String, Value> = names
        .iter()
        .zip(arguments)
        .map(|(name, text)| ((*name).to_owned(), value(text)))
        .collect();
    let fault = if names.is_empty() {
        Value::from(name)
    } else {
        Value::Object(Map::from_iter([(name.to_owned(), Value::Object(fields))]))
    };
    serde_json::from_value(fault).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use assize_units::DurNs;

    use super::*;

    #[test]
    fn each_form_is_read() {
        let rule = |text: &str| text.parse::<FaultRule>().unwrap();
        let plain = rule("hang@3,5");
        assert_eq!((plain.fault, plain.requests), (Fault::Hang, vec![3, 5]));
        let stall = rule("stall(4, 200ms)@every:7");
        assert_eq!(
            stall.fault,
            Fault::Stall {
                after_events: 4,
                time: DurNs::from_ms(200)
            }
        );
        assert_eq!(stall.every, 7);
        let status = rule("status(503)@5%");
        assert_eq!(
            (status.fault, status.probability.millionths()),
            (Fault::Status { code: 503 }, 50_000)
        );
    }

    #[test]
    fn what_is_wrong_is_told() {
        for text in [
            "hang",
            "hang@",
            "hang@x",
            "hang(1)@3",
            "stall(4)@3",
            "nothing@3",
            "status(503@3",
            "hang@every:0",
        ] {
            let error = text.parse::<FaultRule>().unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
