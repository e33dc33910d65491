//! What one choice of one event, or of a whole answer, says.

use super::Finish;
use super::shape::{Choice, Delta, Function, Object, Text};

/// What one choice of one event said.
pub(super) struct Said {
    /// Nothing says which choice it is.
    pub(super) lacks_index: bool,
    pub(super) content: String,
    pub(super) reasoning: String,
    tool_name: String,
    pub(super) tool_arguments: String,
    pub(super) token_ids: Option<Vec<u64>>,
    pub(super) finish: Option<Finish>,
}

impl Said {
    pub(super) fn of(choice: Choice) -> Said {
        // An empty reason is none: some servers send it with every chunk but the last.
        let finish = choice.finish_reason.map(|Text(reason)| reason);
        let mut said = Said {
            lacks_index: choice.index.is_none(),
            content: choice.text.unwrap_or_default().0,
            reasoning: String::new(),
            tool_name: String::new(),
            tool_arguments: String::new(),
            token_ids: choice.token_ids,
            finish: finish
                .filter(|reason| !reason.is_empty())
                .map(Finish::parse),
        };
        for Object(delta) in [choice.delta, choice.message].into_iter().flatten() {
            said.take_delta(delta);
        }
        said
    }

    fn take_delta(&mut self, delta: Delta) {
        self.content += &delta.content.unwrap_or_default().0;
        // Servers that send both repeat themselves: the first that says something is taken.
        let reasoning = [delta.reasoning_content, delta.reasoning];
        let said = reasoning
            .into_iter()
            .flatten()
            .find(|Text(text)| !text.is_empty());
        self.reasoning += &said.unwrap_or_default().0;
        for Object(call) in delta.tool_calls.into_iter().flatten() {
            self.take_function(call.function);
        }
        self.take_function(delta.function_call);
        self.token_ids = self.token_ids.take().or(delta.token_ids);
    }

    fn take_function(&mut self, function: Option<Object<Function>>) {
        if let Some(Object(function)) = function {
            self.tool_name += &function.name.unwrap_or_default().0;
            self.tool_arguments += &function.arguments.unwrap_or_default().0;
        }
    }

    pub(super) fn has_output(&self) -> bool {
        ![
            &self.content,
            &self.reasoning,
            &self.tool_name,
            &self.tool_arguments,
        ]
        .iter()
        .all(|text| text.is_empty())
    }
}
