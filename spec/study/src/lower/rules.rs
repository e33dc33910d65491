//! Block sets, families of hypotheses, comparisons, and what stands beside the run.

use super::Lowering;
use super::shape::Shape;
use crate::ast::{
    ArmOrder, BlockSet, CellOrder, Compare, Control, Decision, Engine, EngineOutput, Expectation,
    Gate, Limits, OnDrift, Pilot, Profile, Requirement, Watch,
};
use crate::expr::{Expr, Name};
use crate::source::Span;
use crate::tree::Node;

impl Lowering<'_> {
    pub(super) fn limits(&mut self, node: &Node, key: Span) -> Option<Limits> {
        let fields = self.fields(node, Shape::Limits, key)?;
        Some(Limits {
            duration: self.expr_of(&fields, "duration"),
            requests: self.expr_of(&fields, "requests"),
            output: self.expr_of(&fields, "output"),
        })
    }

    pub(super) fn block_set(&mut self, node: &Node, name: &Name) -> Option<BlockSet> {
        let fields = self.fields(node, Shape::Blocks, name.span)?;
        Some(BlockSet {
            repeat: self.expr_of(&fields, "repeat"),
            arms: fields
                .get("arms")
                .and_then(|node| self.names(node, "`arms`")),
            cells: fields
                .get("cells")
                .and_then(|node| self.list(node, "`cells`", Self::cell_ref)),
            arm_order: fields
                .get("arm_order")
                .and_then(|node| self.word(node, "`arm_order`", ArmOrder::WORDS)),
            cell_order: fields
                .get("cell_order")
                .and_then(|node| self.word(node, "`cell_order`", CellOrder::WORDS)),
            every: self.expr_of(&fields, "every"),
            excluded: self.flag_of(&fields, "excluded"),
            restart: self.flag_of(&fields, "restart"),
            like: self.name_of(&fields, "like"),
            is_abstract: self.is_abstract(&fields),
        })
    }

    pub(super) fn decision(&mut self, node: &Node, name: &Name) -> Option<Decision> {
        let fields = self.fields(node, Shape::Decision, name.span)?;
        let is_abstract = self.is_abstract(&fields);
        if !is_abstract {
            if !fields.has("like") {
                self.require(&fields, "test", "sign(ties = nonwins)");
            }
            self.require(&fields, "hypotheses", "[…]");
        }
        Some(Decision {
            test: fields.get("test").and_then(|node| self.call(node)),
            correct: fields.get("correct").and_then(|node| self.call(node)),
            interval: fields.get("interval").and_then(|node| self.call(node)),
            valid: fields
                .get("valid")
                .and_then(|node| self.list(node, "`valid`", Self::expr))
                .map_or(Vec::new(), |list| list.value),
            hypotheses: fields
                .get("hypotheses")
                .and_then(|node| self.list(node, "`hypotheses`", Self::sentence))
                .map_or(Vec::new(), |list| list.value),
            expect: fields
                .get("expect")
                .and_then(|node| self.word(node, "`expect`", Expectation::WORDS)),
            scope: self.text_of(&fields, "scope"),
            discloses: self.text_of(&fields, "discloses"),
            like: self.name_of(&fields, "like"),
            is_abstract,
        })
    }

    pub(super) fn compare(&mut self, node: &Node, name: &Name) -> Option<Compare> {
        let fields = self.fields(node, Shape::Compare, name.span)?;
        self.require(&fields, "arms", "[left, right]");
        self.require(&fields, "differ", "[args]");
        let arms = fields
            .get("arms")
            .and_then(|node| self.names(node, "`arms`"));
        let differ = fields
            .get("differ")
            .and_then(|node| self.texts(node, "`differ`"));
        Some(Compare {
            arms: arms?,
            differ: differ?,
        })
    }

    pub(super) fn pilot(&mut self, node: &Node, name: &Name) -> Option<Pilot> {
        let fields = self.fields(node, Shape::Pilot, name.span)?;
        self.exclude(&fields, &["cell", "load"], "a pilot runs one thing");
        Some(Pilot {
            arms: fields
                .get("arms")
                .and_then(|node| self.names(node, "`arms`"))
                .map_or(Vec::new(), |list| list.value),
            cell: self.name_of(&fields, "cell"),
            load: fields.get("load").and_then(|node| self.load(node)),
            requests: self.expr_of(&fields, "requests"),
            declared: fields
                .get("declared")
                .map_or(Vec::new(), |node| self.declared(node)),
        })
    }

    /// Figures that are stated: metric, arm, value.
    fn declared(&mut self, node: &Node) -> Vec<(Name, Vec<(Name, Expr)>)> {
        let metrics = self.named(node, |lowering, value| {
            Some(lowering.named(value, Self::expr))
        });
        metrics.into_iter().collect()
    }

    /// Values under free names, sorted by name.
    fn named<T>(
        &mut self,
        node: &Node,
        mut lower: impl FnMut(&mut Self, &Node) -> Option<T>,
    ) -> Vec<(Name, T)> {
        let mut list = Vec::new();
        for field in self.entries(node, "this").unwrap_or_default() {
            let Some(name) = self.key_name(&field) else {
                continue;
            };
            if let Some(item) = field.value.and_then(|value| lower(self, value)) {
                list.push((name, item));
            }
        }
        list.sort_by(|a, b| a.0.text.cmp(&b.0.text));
        list
    }

    pub(super) fn gate(&mut self, node: &Node, name: &Name) -> Option<Gate> {
        let fields = self.fields(node, Shape::Gate, name.span)?;
        self.exclude(&fields, &["rule", "command"], "a gate is decided one way");
        Some(Gate {
            rule: fields.get("rule").and_then(|node| self.call(node)),
            send: self.name_of(&fields, "send"),
            items: self.text_of(&fields, "items"),
            reference: self.text_of(&fields, "reference"),
            score: self.name_of(&fields, "score"),
            command: self.texts_of(&fields, "command"),
            discloses: self.text_of(&fields, "discloses"),
            like: self.name_of(&fields, "like"),
            is_abstract: self.is_abstract(&fields),
        })
    }

    pub(super) fn watch(&mut self, node: &Node, name: &Name) -> Option<Watch> {
        let fields = self.fields(node, Shape::Watch, name.span)?;
        self.exclude(
            &fields,
            &["from", "command", "file"],
            "a sampler has one source",
        );
        Some(Watch {
            from: self.name_of(&fields, "from"),
            command: self.texts_of(&fields, "command"),
            file: self.text_of(&fields, "file"),
            every: self.expr_of(&fields, "every"),
            keep: self.texts_of(&fields, "keep"),
            join: self.text_of(&fields, "join"),
        })
    }

    pub(super) fn profile(&mut self, node: &Node, key: Span) -> Option<Profile> {
        let fields = self.fields(node, Shape::Profile, key)?;
        Some(Profile {
            when: self.expr_of(&fields, "when"),
            prelude: self.name_of(&fields, "prelude"),
            cell: self.name_of(&fields, "cell"),
            requests: self.expr_of(&fields, "requests"),
            start: fields.get("start").and_then(|node| self.http_call(node)),
            stop: fields.get("stop").and_then(|node| self.http_call(node)),
        })
    }

    pub(super) fn control(&mut self, node: &Node, name: &Name) -> Option<Control> {
        let fields = self.fields(node, Shape::Control, name.span)?;
        self.exclude(&fields, &["cell", "command"], "a control has one source");
        Some(Control {
            cell: fields.get("cell").and_then(|node| self.cell_ref(node)),
            metric: self.expr_of(&fields, "metric"),
            command: self.texts_of(&fields, "command"),
            at: self.text_of(&fields, "at"),
            tolerance: self.expr_of(&fields, "tolerance"),
            on_drift: fields
                .get("on_drift")
                .and_then(|node| self.word(node, "`on_drift`", OnDrift::WORDS)),
        })
    }

    pub(super) fn requirement(&mut self, node: &Node, name: &Name) -> Option<Requirement> {
        let fields = self.fields(node, Shape::Requirement, name.span)?;
        self.require(&fields, "evidence", "other.evidence");
        self.require(&fields, "verdict", "supported");
        let evidence = self.text_of(&fields, "evidence");
        let verdict = self.text_of(&fields, "verdict");
        Some(Requirement {
            evidence: evidence?,
            verdict: verdict?,
        })
    }

    pub(super) fn engine(&mut self, node: &Node, name: &Name) -> Option<Engine> {
        let fields = self.fields(node, Shape::Engine, name.span)?;
        let metrics = fields
            .get("metrics")
            .map_or(Vec::new(), |node| self.named(node, Self::text));
        Some(Engine {
            done: self.flag_of(&fields, "done"),
            eviction: fields.get("eviction").and_then(|node| self.http_call(node)),
            metrics,
            output: fields
                .get("output")
                .and_then(|node| self.engine_output(node))
                .unwrap_or_default(),
        })
    }

    fn engine_output(&mut self, node: &Node) -> Option<EngineOutput> {
        let fields = self.fields(node, Shape::EngineOutput, node.span)?;
        Some(EngineOutput {
            exactly: fields.get("exactly").and_then(|node| self.body(node)),
            at_most: fields.get("at_most").and_then(|node| self.body(node)),
        })
    }
}
