//! An answer's events and bodies as JSON, in the order of keys in which vLLM writes them.

use super::{Answer, Setting, Shape};
use crate::engine::api::Api;
use crate::engine::fault::Fault;
use crate::engine::wire::{write_decimal, write_ids};

impl Answer {
    pub(super) fn render_role_event(&mut self) {
        let event = &mut self.scratch;
        event.clear();
        event.extend_from_slice(&self.prefix);
        event.extend_from_slice(
            br#"0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":"#,
        );
        let prompt_ids = self.choices.first_mut().and_then(|c| c.prompt_ids.take());
        write_ids(prompt_ids.as_deref(), event);
        event.extend_from_slice(b",\"prompt_text\":null}\n\n");
    }

    pub(super) fn render_token_event(&mut self, choice: u32, last: bool) {
        let shape = self.shape;
        let chat = shape.api == Api::Chat;
        let Some(place) = self.choices.get_mut(choice as usize) else {
            return;
        };
        let event = &mut self.scratch;
        event.clear();
        event.extend_from_slice(&self.prefix);
        write_decimal(u64::from(choice), event);
        event.extend_from_slice(if chat {
            br#","delta":{"content":""#.as_slice()
        } else {
            br#","text":""#.as_slice()
        });
        event.append(&mut place.text);
        event.extend_from_slice(if chat {
            br#""},"logprobs":null,"finish_reason":"#.as_slice()
        } else {
            br#"","logprobs":null,"finish_reason":"#.as_slice()
        });
        let reason =
            (last && self.fault != Some(Fault::MissingFinish)).then_some(place.finish_reason);
        write_reason(reason, event);
        if !chat {
            event.extend_from_slice(br#","stop_reason":null,"prompt_token_ids":"#);
            write_ids(place.prompt_ids.take().as_deref(), event);
        } else if last {
            event.extend_from_slice(br#","stop_reason":null"#);
        }
        event.extend_from_slice(br#","token_ids":"#);
        write_ids(shape.return_token_ids.then_some(&place.ids), event);
        event.extend_from_slice(b"}]");
        place.ids.clear();
        place.pending = 0;
        if shape.continuous_usage {
            let (prompt, generated) = (u64::from(place.prompt_tokens), u64::from(place.generated));
            event.extend_from_slice(b",");
            write_usage(prompt, generated, event);
        }
        event.extend_from_slice(b"}\n\n");
    }

    pub(super) fn render_usage_event(&mut self) {
        let event = &mut self.scratch;
        event.clear();
        // The prefix ends within the first choice; the usage event has none.
        let opening = self.prefix.len() - br#"{"index":"#.len();
        event.extend_from_slice(&self.prefix[..opening]);
        event.extend_from_slice(b"],");
        write_usage(self.prompt_tokens, self.completion_tokens, event);
        event.extend_from_slice(b",\"system_fingerprint\":\"assize-sim\"}\n\n");
    }

    pub(super) fn render_whole(&mut self) -> Vec<u8> {
        let shape = self.shape;
        let chat = shape.api == Api::Chat;
        let mut body = Vec::with_capacity(1024);
        // The prefix without `data: ` and the first choice's beginning.
        let opening = self.prefix.len() - br#"{"index":"#.len();
        body.extend_from_slice(&self.prefix[b"data: ".len()..opening]);
        for (index, choice) in self.choices.iter().enumerate() {
            if index > 0 {
                body.push(b',');
            }
            body.extend_from_slice(br#"{"index":"#);
            write_decimal(index as u64, &mut body);
            body.extend_from_slice(if chat {
                br#","message":{"role":"assistant","content":""#.as_slice()
            } else {
                br#","text":""#.as_slice()
            });
            body.extend_from_slice(&choice.text);
            body.extend_from_slice(if chat {
                br#""},"logprobs":null,"finish_reason":"#.as_slice()
            } else {
                br#"","logprobs":null,"finish_reason":"#.as_slice()
            });
            let finished = self.fault != Some(Fault::MissingFinish);
            write_reason(finished.then_some(choice.finish_reason), &mut body);
            body.extend_from_slice(br#","stop_reason":null,"token_ids":"#);
            write_ids(shape.return_token_ids.then_some(&choice.ids), &mut body);
            if !chat {
                body.extend_from_slice(br#","prompt_token_ids":"#);
                write_ids(choice.prompt_ids.as_deref(), &mut body);
            }
            body.push(b'}');
        }
        body.extend_from_slice(br#"],"system_fingerprint":"assize-sim","#);
        write_usage(self.prompt_tokens, self.completion_tokens, &mut body);
        if chat {
            body.extend_from_slice(br#","prompt_token_ids":"#);
            let first = self.choices.first();
            write_ids(first.and_then(|c| c.prompt_ids.as_deref()), &mut body);
        }
        body.push(b'}');
        body
    }
}

/// What all events of an answer begin with, up to the first choice's index.
pub(super) fn render_prefix(shape: Shape, setting: Setting<'_>) -> Vec<u8> {
    let (kind, object) = match (shape.api, shape.stream) {
        (Api::Completions, _) => ("cmpl", "text_completion"),
        (Api::Chat, true) => ("chatcmpl", "chat.completion.chunk"),
        (Api::Chat, false) => ("chatcmpl", "chat.completion"),
    };
    format!(
        r#"data: {{"id":"{kind}-{:016x}","object":"{object}","created":{},"model":"{}","choices":[{{"index":"#,
        setting.id, setting.created_s, setting.model
    )
    .into_bytes()
}

fn write_reason(reason: Option<&str>, out: &mut Vec<u8>) {
    match reason {
        None => out.extend_from_slice(b"null"),
        Some(reason) => {
            out.push(b'"');
            out.extend_from_slice(reason.as_bytes());
            out.push(b'"');
        }
    }
}

fn write_usage(prompt: u64, completion: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(br#""usage":{"prompt_tokens":"#);
    write_decimal(prompt, out);
    out.extend_from_slice(br#","total_tokens":"#);
    write_decimal(prompt + completion, out);
    out.extend_from_slice(br#","completion_tokens":"#);
    write_decimal(completion, out);
    out.push(b'}');
}
