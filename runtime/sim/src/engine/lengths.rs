//! How long an answer becomes, and what its tokens hang on.

use super::Engine;
use super::answer::Choice;
use super::api::{Generate, Prompt, Refusal};
use super::draw::{Purpose, draw, hash_bytes, hash_ids};
use super::fault::Fault;
use super::text;

impl Engine {
    /// A choice for each prompt, or why the request cannot be served.
    pub(super) fn plan_choices(
        &self,
        generate: &Generate,
        fault: Option<&Fault>,
    ) -> Result<Vec<Choice>, Refusal> {
        let waiting = self.scheduler.waiting() + generate.prompts.len();
        let places = self.config.max_seqs as usize - self.scheduler.running();
        if waiting > self.config.queue_limit as usize + places {
            return Err(Refusal::new(503, "The queue is full."));
        }
        let mut choices = Vec::with_capacity(generate.prompts.len());
        for prompt in &generate.prompts {
            let mut choice = self.plan_choice(generate, prompt)?;
            if fault == Some(&Fault::OneTokenShort) && choice.output_tokens > 1 {
                choice.output_tokens -= 1;
            }
            choices.push(choice);
        }
        Ok(choices)
    }

    /// Decides a prompt's lengths and what its tokens hang on.
    fn plan_choice(&self, generate: &Generate, prompt: &Prompt) -> Result<Choice, Refusal> {
        let config = &self.config;
        let (prompt_tokens, hash) = match prompt {
            Prompt::Text(text) => (text::count_tokens(text), hash_bytes(text.as_bytes())),
            Prompt::Ids(ids) => (ids.len() as u64, hash_ids(ids)),
        };
        let limit = match config.kv_tokens {
            0 => u64::from(config.max_model_len),
            kv => kv.min(u64::from(config.max_model_len)),
        };
        let room = limit.saturating_sub(prompt_tokens);
        let max_tokens = generate.max_tokens.map_or(room, u64::from);
        if room == 0 || max_tokens > room {
            let message = format!(
                "This model's maximum context length is {limit} tokens. However, you requested \
                 {max_tokens} output tokens and your prompt contains {prompt_tokens} tokens."
            );
            return Err(Refusal::new(400, message));
        }
        let (output_tokens, reason) = self.output_length(generate, max_tokens, hash);
        let returned = generate.return_token_ids.then(|| match prompt {
            Prompt::Text(text) => text::tokenize(text, config.vocabulary),
            Prompt::Ids(ids) => ids.clone(),
        });
        let seed = draw(config.seed, Purpose::Token, hash);
        let (prompt_tokens, output_tokens) = (prompt_tokens as u32, output_tokens as u32);
        Ok(Choice::new(
            prompt_tokens,
            output_tokens,
            reason,
            seed,
            returned,
        ))
    }

    /// Tokens of the answer and the reason of its end: forced, or natural by the prompt's hash.
    fn output_length(&self, generate: &Generate, max: u64, hash: u64) -> (u64, &'static str) {
        let [shortest, longest] = self.config.natural_tokens.map(u64::from);
        let drawn = draw(self.config.seed, Purpose::Length, hash);
        let natural = shortest + drawn % (longest - shortest + 1);
        let natural = natural.max(u64::from(generate.min_tokens));
        if generate.ignore_eos || natural >= max {
            (max, "length")
        } else {
            (natural, "stop")
        }
    }
}
