//! `host.json`: facts of the machine, by group, as text. Unknown groups are kept.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What stands for a fact that the host does not tell.
pub const NOT_AVAILABLE: &str = "not available";

/// Facts of the host at the start of a run: group → name → what was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// `cpu`, `kernel`, `clock`, `limits`, `driver`, … each with its facts.
    pub groups: BTreeMap<String, BTreeMap<String, String>>,
}

impl HostFacts {
    /// Adds one fact.
    pub fn set(&mut self, group: &str, name: &str, value: impl Into<String>) {
        self.groups
            .entry(group.to_owned())
            .or_default()
            .insert(name.to_owned(), value.into());
    }

    /// One fact.
    pub fn get(&self, group: &str, name: &str) -> Option<&str> {
        self.groups.get(group)?.get(name).map(String::as_str)
    }
    /// One fact that the host tells: none where it is [`NOT_AVAILABLE`].
    pub fn told(&self, group: &str, name: &str) -> Option<&str> {
        self.get(group, name)
            .filter(|value| *value != NOT_AVAILABLE)
    }
}
