//! `like`: mappings merge, lists append, scalars replace. `abstract` and `like` are not inherited.

use crate::ast::{
    Arm, BlockSet, Body, BodyValue, Cell, CellSettings, Decision, Gate, Request, Text,
};
use crate::source::Spanned;

/// An entry that another can complete.
pub trait Inherit {
    /// The entry completed by `parent`, which must itself be complete (chains end at the top).
    /// Nothing inherited is lost unless it is restated.
    fn inherit(&self, parent: &Self) -> Self;
}

fn scalar<T: Clone>(own: &Option<T>, parent: &Option<T>) -> Option<T> {
    own.clone().or_else(|| parent.clone())
}

fn list<T: Clone>(own: &[T], parent: &[T]) -> Vec<T> {
    parent.iter().chain(own).cloned().collect()
}

fn spanned_list<T: Clone>(
    own: &Option<Spanned<Vec<T>>>,
    parent: &Option<Spanned<Vec<T>>>,
) -> Option<Spanned<Vec<T>>> {
    match (own, parent) {
        (Some(own), Some(parent)) => Some(Spanned::new(list(&own.value, &parent.value), own.span)),
        _ => scalar(own, parent),
    }
}

fn pairs(own: &[(Text, Text)], parent: &[(Text, Text)]) -> Vec<(Text, Text)> {
    let restated = |key: &Text| own.iter().any(|(other, _)| other.value == key.value);
    let mut merged: Vec<(Text, Text)> = parent
        .iter()
        .filter(|(key, _)| !restated(key))
        .chain(own)
        .cloned()
        .collect();
    merged.sort_by(|a, b| a.0.value.cmp(&b.0.value));
    merged
}

fn body(own: &Body, parent: &Body) -> Body {
    let mut entries = parent.entries.clone();
    for (key, value) in &own.entries {
        let place = entries
            .iter()
            .position(|(known, _)| known.value == key.value);
        let Some(place) = place else {
            entries.push((key.clone(), value.clone()));
            continue;
        };
        let merged = match (value, &entries[place].1) {
            (BodyValue::Object(own), BodyValue::Object(parent)) => {
                BodyValue::Object(Spanned::new(body(&own.value, &parent.value), own.span))
            }
            (BodyValue::List(own), BodyValue::List(parent)) => {
                BodyValue::List(Spanned::new(list(&own.value, &parent.value), own.span))
            }
            _ => value.clone(),
        };
        entries[place] = (key.clone(), merged);
    }
    Body { entries }
}

impl Inherit for Arm {
    fn inherit(&self, parent: &Arm) -> Arm {
        // A server that is started and an endpoint that is there are one choice.
        let has_place = self.server.is_some() || self.endpoint.is_some();
        let place = if has_place { self } else { parent };
        // So are certificates and none.
        let has_trust = self.ca.is_some() || self.insecure.is_some();
        let trust = if has_trust { self } else { parent };
        Arm {
            engine: scalar(&self.engine, &parent.engine),
            server: place.server.clone(),
            endpoint: place.endpoint.clone(),
            ca: trust.ca.clone(),
            insecure: trust.insecure,
            args: list(&self.args, &parent.args),
            env: pairs(&self.env, &parent.env),
            model: scalar(&self.model, &parent.model),
            key: scalar(&self.key, &parent.key),
            headers: pairs(&self.headers, &parent.headers),
            quota: scalar(&self.quota, &parent.quota),
            label: scalar(&self.label, &parent.label),
            provenance: scalar(&self.provenance, &parent.provenance),
            discloses: scalar(&self.discloses, &parent.discloses),
            like: None,
            same_as: None,
            is_abstract: self.is_abstract,
        }
    }
}

impl Inherit for Request {
    fn inherit(&self, parent: &Request) -> Request {
        Request {
            api: scalar(&self.api, &parent.api),
            prompt: scalar(&self.prompt, &parent.prompt),
            output: scalar(&self.output, &parent.output),
            body: match (&self.body, &parent.body) {
                (Some(own), Some(parent)) => Some(body(own, parent)),
                (own, parent) => scalar(own, parent),
            },
            timeout: scalar(&self.timeout, &parent.timeout),
            headers: pairs(&self.headers, &parent.headers),
            turns: scalar(&self.turns, &parent.turns),
            think: scalar(&self.think, &parent.think),
            like: None,
            is_abstract: self.is_abstract,
        }
    }
}

impl Inherit for CellSettings {
    fn inherit(&self, parent: &CellSettings) -> CellSettings {
        CellSettings {
            settle: scalar(&self.settle, &parent.settle),
            drain: scalar(&self.drain, &parent.drain),
            timeout: scalar(&self.timeout, &parent.timeout),
            connections: scalar(&self.connections, &parent.connections),
            cache: scalar(&self.cache, &parent.cache),
            record: scalar(&self.record, &parent.record),
            receive: scalar(&self.receive, &parent.receive),
        }
    }
}

impl Inherit for Cell {
    fn inherit(&self, parent: &Cell) -> Cell {
        Cell {
            family: scalar(&self.family, &parent.family),
            load: scalar(&self.load, &parent.load),
            requests: scalar(&self.requests, &parent.requests),
            sessions: scalar(&self.sessions, &parent.sessions),
            send: scalar(&self.send, &parent.send),
            stream: scalar(&self.stream, &parent.stream),
            settings: self.settings.inherit(&parent.settings),
            like: None,
            is_abstract: self.is_abstract,
        }
    }
}

impl Inherit for BlockSet {
    fn inherit(&self, parent: &BlockSet) -> BlockSet {
        BlockSet {
            repeat: scalar(&self.repeat, &parent.repeat),
            arms: spanned_list(&self.arms, &parent.arms),
            cells: spanned_list(&self.cells, &parent.cells),
            arm_order: scalar(&self.arm_order, &parent.arm_order),
            cell_order: scalar(&self.cell_order, &parent.cell_order),
            every: scalar(&self.every, &parent.every),
            excluded: scalar(&self.excluded, &parent.excluded),
            restart: scalar(&self.restart, &parent.restart),
            like: None,
            is_abstract: self.is_abstract,
        }
    }
}

impl Inherit for Decision {
    fn inherit(&self, parent: &Decision) -> Decision {
        Decision {
            test: scalar(&self.test, &parent.test),
            correct: scalar(&self.correct, &parent.correct),
            interval: scalar(&self.interval, &parent.interval),
            valid: list(&self.valid, &parent.valid),
            hypotheses: list(&self.hypotheses, &parent.hypotheses),
            expect: scalar(&self.expect, &parent.expect),
            scope: scalar(&self.scope, &parent.scope),
            discloses: scalar(&self.discloses, &parent.discloses),
            like: None,
            is_abstract: self.is_abstract,
        }
    }
}

impl Inherit for Gate {
    fn inherit(&self, parent: &Gate) -> Gate {
        Gate {
            rule: scalar(&self.rule, &parent.rule),
            send: scalar(&self.send, &parent.send),
            items: scalar(&self.items, &parent.items),
            reference: scalar(&self.reference, &parent.reference),
            score: scalar(&self.score, &parent.score),
            command: list(&self.command, &parent.command),
            discloses: scalar(&self.discloses, &parent.discloses),
            like: None,
            is_abstract: self.is_abstract,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{SourceId, Span};

    fn text(text: &str) -> Text {
        Spanned::new(text.to_owned(), Span::new(SourceId(0), 0, 0))
    }

    #[test]
    fn mappings_merge_lists_append_and_scalars_replace() {
        let parent = Arm {
            model: Some(text("small")),
            args: vec![text("--a")],
            env: vec![(text("A"), text("1")), (text("B"), text("1"))],
            is_abstract: true,
            ..Arm::default()
        };
        let own = Arm {
            model: Some(text("large")),
            args: vec![text("--b")],
            env: vec![(text("B"), text("2"))],
            ..Arm::default()
        };
        let merged = own.inherit(&parent);
        assert_eq!(merged.model, Some(text("large")));
        assert_eq!(merged.args, [text("--a"), text("--b")]);
        assert_eq!(merged.env, [(text("A"), text("1")), (text("B"), text("2"))]);
        assert!(!merged.is_abstract);
    }

    #[test]
    fn a_place_of_ones_own_replaces_the_inherited_one() {
        let parent = Arm {
            server: Some(text("servers/a.yaml")),
            ..Arm::default()
        };
        let own = Arm {
            endpoint: Some(text("http://127.0.0.1:8000/v1")),
            ..Arm::default()
        };
        let merged = own.inherit(&parent);
        assert_eq!(
            (merged.server.is_some(), merged.endpoint.is_some()),
            (false, true)
        );
    }
}
