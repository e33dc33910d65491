//! What a simulated engine is: its costs, limits and faults.

use assize_units::DurNs;
use serde::{Deserialize, Serialize};

use super::duration::{self, Percent};
use super::fault::{Fault, FaultRule};

/// One simulated engine. Every field has a default; a key that is not known is refused.
///
/// Durations are texts with a unit (`8ms`), shares are percentages (`5%`), everything else counts
/// what its name says. The formulas are in `docs/sim.md`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EngineConfig {
    /// The name under which the model is served. Default `sim`.
    pub model: String,
    /// Cost of a prompt's prefill that does not depend on its length. Default `2ms`.
    #[serde(with = "duration")]
    pub prefill_base: DurNs,
    /// Cost of each prompt token's prefill. Default `20us`.
    #[serde(with = "duration")]
    pub prefill_per_token: DurNs,
    /// Duration of a decode step with one sequence in the batch. Default `8ms`.
    #[serde(with = "duration")]
    pub step: DurNs,
    /// What each further sequence in the batch adds to a decode step. Default `200us`.
    #[serde(with = "duration")]
    pub step_per_seq: DurNs,
    /// Sequences that run at once. Default 64.
    pub max_seqs: u32,
    /// Prompt tokens whose prefill may begin in one step; a single longer prompt still runs,
    /// alone. Default 8192.
    pub max_prefill_tokens: u32,
    /// Sequences that may wait; a request that would exceed it is answered 503. Default 4096.
    pub queue_limit: u32,
    /// Tokens that the key-value cache holds; running out of it preempts the sequence admitted
    /// last. 0 means without limit. Default 0.
    pub kv_tokens: u64,
    /// Tokens of prompt and answer together; a longer request is answered 400. Default 131072.
    pub max_model_len: u32,
    /// Token ids run from 0 to below this. Default 32000.
    pub vocabulary: u32,
    /// Tokens in one streamed event; the first token is always sent alone. Default 1.
    pub tokens_per_event: u32,
    /// Shortest and longest natural answer, in tokens, of a prompt whose length is not forced.
    /// Default `[16, 256]`.
    pub natural_tokens: [u32; 2],
    /// Each step's duration is multiplied by a factor drawn evenly from 1 ± jitter. Default `0%`.
    pub jitter: Percent,
    /// Seed of jitter, token ids, natural lengths, answer ids and faults by probability. Default 0.
    pub seed: u64,
    /// After its start, for this long, every request is answered 503. Default `0s`.
    #[serde(with = "duration")]
    pub startup: DurNs,
    /// An idle connection is closed after this long; `0s` means never. Default `5s`, as uvicorn's.
    #[serde(with = "duration")]
    pub keep_alive: DurNs,
    /// Connections at once; a further one is reset. Default 4096.
    pub max_connections: u32,
    /// Longest request head. Default 65536.
    pub max_head_bytes: u32,
    /// Longest request body; a longer one is answered 413. Default 16777216.
    pub max_body_bytes: u32,
    /// What goes wrong, for which requests. The first rule that applies counts. Default none.
    pub faults: Vec<FaultRule>,
}

impl Default for EngineConfig {
    fn default() -> Self {
        EngineConfig {
            model: "sim".to_owned(),
            prefill_base: DurNs::from_ms(2),
            prefill_per_token: DurNs::from_us(20),
            step: DurNs::from_ms(8),
            step_per_seq: DurNs::from_us(200),
            max_seqs: 64,
            max_prefill_tokens: 8192,
            queue_limit: 4096,
            kv_tokens: 0,
            max_model_len: 131_072,
            vocabulary: 32_000,
            tokens_per_event: 1,
            natural_tokens: [16, 256],
            jitter: Percent::default(),
            seed: 0,
            startup: DurNs::ZERO,
            keep_alive: DurNs::from_s(5),
            max_connections: 4096,
            max_head_bytes: 64 << 10,
            max_body_bytes: 16 << 20,
            faults: Vec::new(),
        }
    }
}

/// Why a configuration cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A count that must be at least one is zero.
    #[error("`{field}` must be at least 1")]
    Zero {
        /// The field's name.
        field: &'static str,
    },
    /// A value is above what the engine supports.
    #[error("`{field}` must be at most {limit}")]
    TooGreat {
        /// The field's name.
        field: &'static str,
        /// The greatest value.
        limit: u64,
    },
    /// The shortest natural answer is longer than the longest.
    #[error("`natural_tokens` must be [shortest, longest]")]
    NaturalOrder,
    /// The model's name cannot stand in JSON and in a metric's label as it is.
    #[error("`model` must be 1 to 128 letters, digits or any of `-_./:`")]
    ModelName,
    /// A `status` fault's code is none that ends an answer.
    #[error("fault rule {index}: `code` must be 300 to 599")]
    StatusCode {
        /// The rule's place in `faults`, from 0.
        index: usize,
    },
    /// A fault rule applies to no request.
    #[error("fault rule {index} names no request: give `requests`, `every` or `probability`")]
    IdleFault {
        /// The rule's place in `faults`, from 0.
        index: usize,
    },
}

impl EngineConfig {
    /// Checks every limit.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let named = |symbol: u8| symbol.is_ascii_alphanumeric() || b"-_./:".contains(&symbol);
        let length = self.model.len();
        if length == 0 || length > 128 || !self.model.bytes().all(named) {
            return Err(ConfigError::ModelName);
        }
        self.validate_counts()?;
        self.validate_durations()?;
        if self.natural_tokens[0] > self.natural_tokens[1] {
            return Err(ConfigError::NaturalOrder);
        }
        for (index, rule) in self.faults.iter().enumerate() {
            if rule.is_idle() {
                return Err(ConfigError::IdleFault { index });
            }
            if matches!(rule.fault, Fault::Status { code } if !(300..600).contains(&code)) {
                return Err(ConfigError::StatusCode { index });
            }
        }
        Ok(())
    }

    fn validate_counts(&self) -> Result<(), ConfigError> {
        let counts = [
            ("max_seqs", self.max_seqs, 65_536),
            ("max_prefill_tokens", self.max_prefill_tokens, 1 << 30),
            ("max_model_len", self.max_model_len, 1 << 24),
            ("vocabulary", self.vocabulary, 1 << 24),
            ("tokens_per_event", self.tokens_per_event, 1 << 16),
            ("natural_tokens", self.natural_tokens[0], 1 << 24),
            ("natural_tokens", self.natural_tokens[1], 1 << 24),
            ("max_connections", self.max_connections, 1 << 20),
            ("max_head_bytes", self.max_head_bytes, 1 << 20),
            ("max_body_bytes", self.max_body_bytes, 1 << 30),
        ];
        for (field, value, limit) in counts {
            at_least_one(field, u64::from(value))?;
            at_most(field, u64::from(value), limit)?;
        }
        at_most("queue_limit", u64::from(self.queue_limit), 1 << 20)?;
        at_most("faults", self.faults.len() as u64, 1024)
    }

    fn validate_durations(&self) -> Result<(), ConfigError> {
        const HOUR_NS: u64 = 3_600_000_000_000;
        for (field, value) in [
            ("prefill_base", self.prefill_base),
            ("prefill_per_token", self.prefill_per_token),
            ("step", self.step),
            ("step_per_seq", self.step_per_seq),
            ("startup", self.startup),
            ("keep_alive", self.keep_alive),
        ] {
            at_most(field, value.0, HOUR_NS)?;
        }
        at_least_one("step", self.step.0)
    }
}

fn at_least_one(field: &'static str, value: u64) -> Result<(), ConfigError> {
    if value == 0 {
        return Err(ConfigError::Zero { field });
    }
    Ok(())
}

fn at_most(field: &'static str, value: u64, limit: u64) -> Result<(), ConfigError> {
    if value > limit {
        return Err(ConfigError::TooGreat { field, limit });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_file_s_words_are_read() {
        let text = r#"{"step":"5ms","jitter":"2.5%","faults":[
            {"fault":"hang","requests":[3]},
            {"fault":{"stall":{"after_events":2,"time":"200ms"}},"probability":"1%"}]}"#;
        let config: EngineConfig = serde_json::from_str(text).unwrap();
        assert_eq!(config.step, DurNs::from_ms(5));
        assert_eq!(config.max_seqs, 64);
        assert_eq!(config.faults.len(), 2);
        config.validate().unwrap();
        let again = serde_json::to_string(&config).unwrap();
        assert_eq!(
            serde_json::from_str::<EngineConfig>(&again).unwrap(),
            config
        );
    }

    #[test]
    fn an_unknown_key_and_a_bare_number_are_refused() {
        for text in [r#"{"stpe":"5ms"}"#, r#"{"step":5}"#, r#"{"jitter":0.1}"#] {
            assert!(
                serde_json::from_str::<EngineConfig>(text).is_err(),
                "{text}"
            );
        }
    }

    #[test]
    fn what_cannot_run_is_named() {
        let refused = |text: &str| {
            serde_json::from_str::<EngineConfig>(text)
                .unwrap()
                .validate()
                .unwrap_err()
        };
        assert_eq!(
            refused(r#"{"max_seqs":0}"#),
            ConfigError::Zero { field: "max_seqs" }
        );
        assert_eq!(refused(r#"{"model":"a\"b"}"#), ConfigError::ModelName);
        assert_eq!(
            refused(r#"{"natural_tokens":[9,3]}"#),
            ConfigError::NaturalOrder
        );
        assert_eq!(
            refused(r#"{"faults":[{"fault":"hang"}]}"#),
            ConfigError::IdleFault { index: 0 }
        );
        assert_eq!(
            refused(r#"{"faults":[{"fault":{"status":{"code":200}},"every":1}]}"#),
            ConfigError::StatusCode { index: 0 }
        );
        assert_eq!(
            refused(r#"{"step":"2h"}"#),
            ConfigError::TooGreat {
                field: "step",
                limit: 3_600_000_000_000
            }
        );
    }
}
