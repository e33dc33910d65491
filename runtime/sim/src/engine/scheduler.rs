//! Continuous batching in virtual time: which sequence gets its next token when.
//!
//! The engine works in steps. A step that begins with `d` decoding sequences and newly admitted
//! prompts of `p₁ … pₘ` tokens lasts
//!
//! > jitter · ( [d > 0] · (step + step_per_seq · (d − 1)) + Σᵢ (prefill_base + prefill_per_token · pᵢ) )
//!
//! and at its end each of the `d + m` sequences has one more token. The next step begins at the
//! very instant at which one ends, however late the caller comes to say so.

use std::collections::VecDeque;

use assize_units::{DurNs, MonoNs};

use super::config::EngineConfig;
use super::draw::{Purpose, draw};
use super::slab::Slab;

/// Continuous batching over abstract sequences.
#[derive(Debug)]
pub(super) struct Scheduler {
    costs: Costs,
    seqs: Slab<Seq>,
    waiting: VecDeque<u32>,
    running: Vec<u32>,
    step_end: Option<MonoNs>,
    steps: u64,
    preemptions: u64,
    kv_used: u64,
}

/// A sequence to be generated.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeqSpec {
    /// Tokens of the prompt.
    pub(super) prompt_tokens: u32,
    /// Tokens of the answer, at least one.
    pub(super) output_tokens: u32,
    /// Whom the tokens belong to.
    pub(super) owner: Owner,
}

/// The choice of an answer to which a sequence belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) answer: u32,
    pub(super) choice: u32,
}

/// One token of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Emission {
    pub(super) owner: Owner,
    /// The token's number in the answer, from 0.
    pub(super) token: u32,
    /// Whether the sequence is finished by it.
    pub(super) last: bool,
}

#[derive(Debug)]
struct Costs {
    prefill_base: u64,
    prefill_per_token: u64,
    step: u64,
    step_per_seq: u64,
    max_seqs: usize,
    max_prefill_tokens: u64,
    kv_tokens: u64,
    jitter_millionths: u64,
    seed: u64,
}

#[derive(Debug)]
struct Seq {
    spec: SeqSpec,
    generated: u32,
    cancelled: bool,
}

impl Seq {
    /// Tokens that a prefill must compute and the cache then holds.
    fn context(&self) -> u64 {
        u64::from(self.spec.prompt_tokens) + u64::from(self.generated)
    }
}

impl Scheduler {
    pub(super) fn new(config: &EngineConfig) -> Scheduler {
        Scheduler {
            costs: Costs {
                prefill_base: config.prefill_base.0,
                prefill_per_token: config.prefill_per_token.0,
                step: config.step.0,
                step_per_seq: config.step_per_seq.0,
                max_seqs: config.max_seqs as usize,
                max_prefill_tokens: u64::from(config.max_prefill_tokens),
                kv_tokens: match config.kv_tokens {
                    0 => u64::MAX,
                    limit => limit,
                },
                jitter_millionths: u64::from(config.jitter.millionths()),
                seed: config.seed,
            },
            seqs: Slab::new(),
            waiting: VecDeque::new(),
            running: Vec::new(),
            step_end: None,
            steps: 0,
            preemptions: 0,
            kv_used: 0,
        }
    }

    /// Queues a sequence and returns its key. Call [`Scheduler::start`] when all that arrived at
    /// this instant is queued.
    pub(super) fn submit(&mut self, spec: SeqSpec) -> u32 {
        let key = self.seqs.insert(Seq {
            spec,
            generated: 0,
            cancelled: false,
        });
        self.waiting.push_back(key);
        key
    }

    /// Begins a step at `now` if none is under way and there is work.
    pub(super) fn start(&mut self, now: MonoNs) {
        if self.step_end.is_none() {
            self.begin_step(now);
        }
    }

    /// Forgets a sequence: it emits nothing more. One that runs leaves the batch with the step.
    pub(super) fn cancel(&mut self, key: u32) {
        if let Some(place) = self.waiting.iter().position(|waiting| *waiting == key) {
            self.waiting.remove(place);
            self.seqs.remove(key);
        } else if let Some(seq) = self.seqs.get_mut(key) {
            seq.cancelled = true;
        }
    }

    /// When the step under way ends.
    pub(super) fn poll_timeout(&self) -> Option<MonoNs> {
        self.step_end
    }

    /// Ends the step under way, appends its tokens in order of admission to `out`, and begins the
    /// next step at the same instant.
    pub(super) fn finish_step(&mut self, out: &mut Vec<Emission>) {
        let Some(end) = self.step_end.take() else {
            return;
        };
        let mut running = std::mem::take(&mut self.running);
        running.retain(|key| self.emit(*key, out));
        self.running = running;
        self.begin_step(end);
    }

    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn preemptions(&self) -> u64 {
        self.preemptions
    }

    pub(super) fn kv_used(&self) -> u64 {
        self.kv_used
    }

    /// Gives a running sequence its token; false when it leaves the batch.
    fn emit(&mut self, key: u32, out: &mut Vec<Emission>) -> bool {
        let Some(seq) = self.seqs.get_mut(key) else {
            return false;
        };
        let mut last = true;
        if !seq.cancelled {
            seq.generated += 1;
            self.kv_used += 1;
            last = seq.generated >= seq.spec.output_tokens;
            out.push(Emission {
                owner: seq.spec.owner,
                token: seq.generated - 1,
                last,
            });
        }
        if last {
            self.kv_used -= seq.context();
            self.seqs.remove(key);
        }
        !last
    }

    fn begin_step(&mut self, now: MonoNs) {
        self.make_room();
        let decoding = self.running.len() as u64;
        let (admitted, prompt_tokens) = self.admit();
        if self.running.is_empty() {
            return;
        }
        let decode = match decoding {
            0 => 0,
            d => self.costs.step + self.costs.step_per_seq * (d - 1),
        };
        let prefill =
            self.costs.prefill_base * admitted + self.costs.prefill_per_token * prompt_tokens;
        let duration = self.jittered(decode.saturating_add(prefill));
        self.steps += 1;
        self.step_end = Some(now.after(DurNs(duration.max(1))));
    }

    /// Preempts the sequence admitted last until each running one has room for a token.
    fn make_room(&mut self) {
        while self.running.len() > 1
            && self.kv_used + self.running.len() as u64 > self.costs.kv_tokens
        {
            let Some(key) = self.running.pop() else {
                return;
            };
            if let Some(seq) = self.seqs.get(key) {
                self.kv_used -= seq.context();
                self.preemptions += 1;
                self.waiting.push_front(key);
            }
        }
    }

    /// Admits from the head of the queue; returns how many, and their tokens to prefill.
    fn admit(&mut self) -> (u64, u64) {
        let (mut admitted, mut tokens) = (0, 0);
        while let Some(key) = self.waiting.front().copied() {
            let Some(seq) = self.seqs.get(key) else {
                self.waiting.pop_front();
                continue;
            };
            let context = seq.context();
            if !self.may_admit(context, admitted, tokens) {
                break;
            }
            self.waiting.pop_front();
            self.running.push(key);
            self.kv_used += context;
            admitted += 1;
            tokens += context;
        }
        (admitted, tokens)
    }

    fn may_admit(&self, context: u64, admitted: u64, tokens: u64) -> bool {
        if self.running.len() >= self.costs.max_seqs {
            return false;
        }
        if admitted > 0 && tokens + context > self.costs.max_prefill_tokens {
            return false;
        }
        let next_tokens = self.running.len() as u64 + 1;
        let needed = self.kv_used + context + next_tokens;
        self.running.is_empty() || needed <= self.costs.kv_tokens
    }

    /// `duration` times a factor drawn evenly from 1 ± jitter, in whole millionths.
    fn jittered(&self, duration: u64) -> u64 {
        let jitter = self.costs.jitter_millionths;
        if jitter == 0 {
            return duration;
        }
        let drawn = draw(self.costs.seed, Purpose::Jitter, self.steps) % (2 * jitter + 1);
        let factor = u128::from(1_000_000 - jitter + drawn);
        u64::try_from(u128::from(duration) * factor / 1_000_000).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::duration::Percent;

    const MS: u64 = 1_000_000;

    fn config() -> EngineConfig {
        EngineConfig {
            prefill_base: DurNs::from_ms(2),
            prefill_per_token: DurNs::from_us(10),
            step: DurNs::from_ms(8),
            step_per_seq: DurNs::from_ms(1),
            ..EngineConfig::default()
        }
    }

    fn spec(prompt_tokens: u32, output_tokens: u32, answer: u32) -> SeqSpec {
        let owner = Owner { answer, choice: 0 };
        SeqSpec {
            prompt_tokens,
            output_tokens,
            owner,
        }
    }

    /// Runs until idle: (instant in ns, answer, token, last) of each token.
    fn drain(scheduler: &mut Scheduler) -> Vec<(u64, u32, u32, bool)> {
        let mut shown = Vec::new();
        let mut out = Vec::new();
        while let Some(end) = scheduler.poll_timeout() {
            scheduler.finish_step(&mut out);
            let of = |e: Emission| (end.0, e.owner.answer, e.token, e.last);
            shown.extend(out.drain(..).map(of));
        }
        shown
    }

    #[test]
    fn one_sequence_prefills_then_decodes() {
        let mut scheduler = Scheduler::new(&config());
        scheduler.submit(spec(100, 3, 0));
        scheduler.start(MonoNs(5));
        // 2 ms + 100 · 10 µs = 3 ms to the first token, then 8 ms a token.
        let expected = [
            (5 + 3 * MS, 0, 0, false),
            (5 + 11 * MS, 0, 1, false),
            (5 + 19 * MS, 0, 2, true),
        ];
        assert_eq!(drain(&mut scheduler), expected);
        assert_eq!((scheduler.running(), scheduler.kv_used()), (0, 0));
    }

    #[test]
    fn a_later_prompt_joins_the_batch_and_slows_it() {
        let mut scheduler = Scheduler::new(&config());
        scheduler.submit(spec(100, 3, 0));
        scheduler.start(MonoNs(0));
        // Arrives during the first step: waits for its end.
        scheduler.submit(spec(200, 2, 1));
        scheduler.start(MonoNs(1));
        let expected = [
            (3 * MS, 0, 0, false),
            // 8 ms decode of one + 2 ms + 200 · 10 µs prefill = 12 ms.
            (15 * MS, 0, 1, false),
            (15 * MS, 1, 0, false),
            // Two decode: 8 ms + 1 ms.
            (24 * MS, 0, 2, true),
            (24 * MS, 1, 1, true),
        ];
        assert_eq!(drain(&mut scheduler), expected);
    }

    #[test]
    fn no_more_than_max_seqs_run_and_the_queue_is_first_in_first_out() {
        let mut scheduler = Scheduler::new(&EngineConfig {
            max_seqs: 1,
            ..config()
        });
        for answer in 0..3 {
            scheduler.submit(spec(100, 1, answer));
        }
        scheduler.start(MonoNs(0));
        assert_eq!((scheduler.running(), scheduler.waiting()), (1, 2));
        let expected = [
            (3 * MS, 0, 0, true),
            (6 * MS, 1, 0, true),
            (9 * MS, 2, 0, true),
        ];
        assert_eq!(drain(&mut scheduler), expected);
    }

    #[test]
    fn the_prefill_budget_spreads_prompts_over_steps() {
        let mut scheduler = Scheduler::new(&EngineConfig {
            max_prefill_tokens: 150,
            ..config()
        });
        scheduler.submit(spec(400, 1, 0));
        scheduler.submit(spec(100, 1, 1));
        scheduler.submit(spec(50, 1, 2));
        scheduler.start(MonoNs(0));
        // A prompt above the budget runs alone; the two that fit run together: 4 ms + 150 · 10 µs.
        let expected = [
            (6 * MS, 0, 0, true),
            (11 * MS + MS / 2, 1, 0, true),
            (11 * MS + MS / 2, 2, 0, true),
        ];
        assert_eq!(drain(&mut scheduler), expected);
    }

    #[test]
    fn a_full_cache_preempts_the_last_and_computes_it_again() {
        let mut scheduler = Scheduler::new(&EngineConfig {
            kv_tokens: 205,
            ..config()
        });
        scheduler.submit(spec(100, 4, 0));
        scheduler.submit(spec(100, 4, 1));
        scheduler.start(MonoNs(0));
        let shown = drain(&mut scheduler);
        assert_eq!(scheduler.preemptions(), 1);
        assert_eq!(scheduler.kv_used(), 0);
        let expected = [
            (6 * MS, 0, 0, false),
            (6 * MS, 1, 0, false),
            (15 * MS, 0, 1, false),
            (15 * MS, 1, 1, false),
            // 204 + 2 would exceed 205: the second sequence leaves; one decodes alone.
            (23 * MS, 0, 2, false),
            (31 * MS, 0, 3, true),
            // Its prompt and its two tokens are prefilled anew: 2 ms + 102 · 10 µs.
            (34 * MS + 20_000, 1, 2, false),
            (42 * MS + 20_000, 1, 3, true),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_cancelled_sequence_emits_nothing_and_frees_its_place() {
        let mut scheduler = Scheduler::new(&EngineConfig {
            max_seqs: 1,
            ..config()
        });
        let first = scheduler.submit(spec(100, 9, 0));
        let second = scheduler.submit(spec(100, 9, 1));
        scheduler.submit(spec(100, 1, 2));
        scheduler.start(MonoNs(0));
        scheduler.cancel(first);
        scheduler.cancel(second);
        assert_eq!(scheduler.waiting(), 1);
        assert_eq!(drain(&mut scheduler), [(6 * MS, 2, 0, true)]);
        assert_eq!(scheduler.kv_used(), 0);
    }

    #[test]
    fn jitter_is_bounded_and_repeats_by_its_seed() {
        let run = |seed| {
            let mut scheduler = Scheduler::new(&EngineConfig {
                jitter: Percent::parse("10%").unwrap(),
                seed,
                ..config()
            });
            scheduler.submit(spec(100, 200, 0));
            scheduler.start(MonoNs(0));
            drain(&mut scheduler)
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
        let shown = run(1);
        for pair in shown.windows(2) {
            let gap = pair[1].0 - pair[0].0;
            assert!((7_200_000..=8_800_000).contains(&gap), "{gap}");
        }
    }

    proptest::proptest! {
        #[test]
        fn every_sequence_gets_exactly_its_tokens(
            specs in proptest::collection::vec((1u32..300, 1u32..20), 1..20),
            max_seqs in 1u32..5,
            kv_tokens in 320u64..900,
        ) {
            let mut scheduler = Scheduler::new(&EngineConfig { max_seqs, kv_tokens, ..config() });
            for (answer, (prompt, output)) in specs.iter().enumerate() {
                scheduler.submit(spec(*prompt, *output, answer as u32));
            }
            scheduler.start(MonoNs(0));
            let shown = drain(&mut scheduler);
            for (answer, (_, output)) in specs.iter().enumerate() {
                let tokens: Vec<u32> =
                    shown.iter().filter(|e| e.1 == answer as u32).map(|e| e.2).collect();
                proptest::prop_assert_eq!(tokens, (0..*output).collect::<Vec<_>>());
            }
            proptest::prop_assert_eq!(scheduler.kv_used(), 0);
        }
    }
}
