//! Tree to AST: every error is reported, and the lowering goes on.

mod body;
mod entries;
mod fields;
mod rules;
mod scalar;
mod server;
mod shape;
mod unsupported;

pub use shape::Shape;
pub use unsupported::{Place, TABLE as UNSUPPORTED, Unsupported};

use assize_codes as codes;

use crate::ast::{
    Declarations, Document, Driver, Interrupted, Module, Named, Section, ServerFile, Study,
};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::expr::{Name, Parsed};
use crate::source::{Source, SourceId, Span, Spanned};
use crate::tree::{self, Node, NodeKind};
use fields::Fields;

/// The version of the language that this build reads.
pub const LANGUAGE: u32 = 1;

/// Reads a study or a module. The document is there as far as it could be understood; it may be
/// used where `diagnostics` has no errors.
pub fn parse_document(
    source: &Source,
    id: SourceId,
    diagnostics: &mut Diagnostics,
) -> Option<Document> {
    lower_with(source, id, diagnostics, |lowering, node| {
        lowering.document(node)
    })
}

/// Reads a server file, as [`parse_document`] reads a study.
pub fn parse_server_file(
    source: &Source,
    id: SourceId,
    diagnostics: &mut Diagnostics,
) -> Option<ServerFile> {
    lower_with(source, id, diagnostics, |lowering, node| {
        lowering.server_file(node)
    })
}

fn lower_with<T>(
    source: &Source,
    id: SourceId,
    diagnostics: &mut Diagnostics,
    lower: impl FnOnce(&mut Lowering<'_>, &Node) -> Option<T>,
) -> Option<T> {
    let node = tree::parse(source, id, diagnostics)?;
    let mut lowering = Lowering {
        source,
        diagnostics,
    };
    if node.kind == NodeKind::Empty {
        lowering.push(
            Diagnostic::new(codes::E0111, Span::new(id, 0, 0), "the file says nothing")
                .help("begin with `assize: 1` and `study: my-study`"),
        );
        return None;
    }
    lower(&mut lowering, &node)
}

/// The lowering of one file.
struct Lowering<'a> {
    source: &'a Source,
    diagnostics: &'a mut Diagnostics,
}

impl Lowering<'_> {
    fn document(&mut self, node: &Node) -> Option<Document> {
        let place = self.first_line(node.span);
        let NodeKind::Map(entries) = &node.kind else {
            self.wrong_kind(node, "a study is a mapping");
            return None;
        };
        let has = |wanted: &str| {
            entries.iter().find_map(|(key, _)| match &key.kind {
                NodeKind::Scalar(scalar) if scalar.text == wanted => Some(key.span),
                _ => None,
            })
        };
        match (has("study"), has("module")) {
            (Some(study), Some(module)) => {
                self.push(
                    Diagnostic::new(
                        codes::E0111,
                        module,
                        "a file is a study or a module, and this one says both",
                    )
                    .also(study, "the other key")
                    .help("remove one of them"),
                );
                None
            }
            (None, None) => {
                self.push(
                    Diagnostic::new(
                        codes::E0111,
                        place,
                        "the file says neither `study:` nor `module:`",
                    )
                    .help("name the study: `study: my-study`"),
                );
                let fields = self.fields(node, Shape::Study, place)?;
                self.study(&fields);
                None
            }
            (Some(key), None) => {
                let fields = self.fields(node, Shape::Study, key)?;
                let study = self.study(&fields)?;
                Some(Document::Study(Box::new(study)))
            }
            (None, Some(key)) => {
                let fields = self.fields(node, Shape::Module, key)?;
                let module = self.module(&fields)?;
                Some(Document::Module(Box::new(module)))
            }
        }
    }

    fn study(&mut self, fields: &Fields<'_>) -> Option<Study> {
        let version = self.version(fields);
        let name = self.name_of(fields, "study");
        for (key, example) in [
            ("prompts", "{ docs: { file: prompts.jsonl } }"),
            ("requests", "{ ask: { … } }"),
            ("arms", "{ mine: { … } }"),
            ("cells", "{ busy: { … } }"),
        ] {
            self.require(fields, key, example);
        }
        let study = Study {
            version: version.unwrap_or(Spanned::new(LANGUAGE, fields.place)),
            name: name
                .clone()
                .unwrap_or_else(|| Name::new(String::new(), fields.place)),
            question: self.text_of(fields, "question"),
            uses: self.texts_of(fields, "use"),
            seed: fields
                .get("seed")
                .and_then(|node| self.whole(node, "`seed`")),
            limits: self
                .keyed(fields, "limits", Self::limits)
                .unwrap_or_default(),
            requires: self.section(fields, "requires", Self::requirement),
            provenance: fields.get("provenance").and_then(|node| self.facts(node)),
            prompts: self.section(fields, "prompts", Self::prompts),
            declarations: self.declarations(fields),
            pilots: self.section(fields, "pilots", Self::pilot),
            warmup: self.keyed(fields, "warmup", Self::warmup),
            settings: self.settings(fields),
            send: fields
                .get("send")
                .and_then(|node| self.send(node, Shape::Study, fields.key_span("send"))),
            compare: self.section(fields, "compare", Self::compare),
            watch: self.section(fields, "watch", Self::watch),
            profile: self.keyed(fields, "profile", Self::profile),
            driver: fields
                .get("driver")
                .and_then(|node| self.word(node, "`driver`", Driver::WORDS)),
            spin: self.expr_of(fields, "spin"),
            host: fields.get("host").and_then(|node| self.facts(node)),
            interrupted: fields
                .get("interrupted")
                .and_then(|node| self.word(node, "`interrupted`", Interrupted::WORDS)),
            max_response: self.expr_of(fields, "max_response"),
            scope: self.text_of(fields, "scope"),
            control: self.section(fields, "control", Self::control),
            external: self.texts_of(fields, "external"),
            replicates: self.text_of(fields, "replicates"),
        };
        (version.is_some() && name.is_some()).then_some(study)
    }

    fn module(&mut self, fields: &Fields<'_>) -> Option<Module> {
        let version = self.version(fields);
        self.require(fields, "doc", "One sentence on what the module holds.");
        let name = self.name_of(fields, "module");
        let doc = self.text_of(fields, "doc");
        let uses = self.texts_of(fields, "use");
        let declarations = self.declarations(fields);
        let engines = self.section(fields, "engines", Self::engine);
        let profiles = self.section(fields, "profiles", |lowering, node, _| {
            lowering.texts(node, "a profile").map(|list| list.value)
        });
        self.only_abstract(&declarations.requests, |item| item.is_abstract);
        self.only_abstract(&declarations.arms, |item| item.is_abstract);
        self.only_abstract(&declarations.cells, |item| item.is_abstract);
        self.only_abstract(&declarations.blocks, |item| item.is_abstract);
        self.only_abstract(&declarations.gates, |item| item.is_abstract);
        self.only_abstract(&declarations.decide, |item| item.is_abstract);
        Some(Module {
            version: version?,
            name: name?,
            doc: doc?,
            uses,
            declarations,
            engines,
            profiles,
        })
    }

    fn declarations(&mut self, fields: &Fields<'_>) -> Declarations {
        Declarations {
            lets: self.lets(fields),
            requests: self.section(fields, "requests", Self::request),
            arms: self.section(fields, "arms", Self::arm),
            cells: self.section(fields, "cells", Self::cell),
            blocks: self.section(fields, "blocks", Self::block_set),
            gates: self.section(fields, "gates", Self::gate),
            decide: self.section(fields, "decide", Self::decision),
        }
    }

    /// The one mapping under a key, lowered with the key's place.
    fn keyed<T>(
        &mut self,
        fields: &Fields<'_>,
        key: &str,
        lower: impl FnOnce(&mut Self, &Node, Span) -> Option<T>,
    ) -> Option<T> {
        let node = fields.get(key)?;
        let place = fields.key_span(key)?;
        lower(self, node, place)
    }

    fn version(&mut self, fields: &Fields<'_>) -> Option<Spanned<u32>> {
        self.require(fields, "assize", "1");
        let version = self.whole(fields.get("assize")?, "`assize`")?;
        if version.value == u64::from(LANGUAGE) {
            return Some(version.map(|_| LANGUAGE));
        }
        self.push(
            Diagnostic::new(
                codes::E0112,
                version.span,
                format!(
                    "the file is written in version {} of the language; this build reads version {LANGUAGE}",
                    version.value
                ),
            )
            .help(format!("write `assize: {LANGUAGE}`, or take a build that reads it")),
        );
        None
    }

    fn only_abstract<T>(&mut self, section: &Section<T>, is_abstract: impl Fn(&T) -> bool) {
        let named: Vec<&Named<T>> = section
            .iter()
            .filter(|entry| !is_abstract(&entry.item))
            .collect();
        for entry in named {
            self.push(
                Diagnostic::new(
                    codes::E0121,
                    entry.name.span,
                    format!(
                        "`{}` is not abstract, and a module runs nothing",
                        entry.name
                    ),
                )
                .help("add `abstract: true`, and complete it in a study with `like:`"),
            );
        }
    }

    fn push(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// What was parsed, or its fault reported.
    fn keep<T>(&mut self, parsed: Parsed<T>) -> Option<T> {
        match parsed {
            Ok(value) => Some(value),
            Err(fault) => {
                self.push(*fault);
                None
            }
        }
    }

    fn line_of(&self, span: Span) -> usize {
        self.source.position(span.start as usize).line
    }

    /// The part of a place on its first line: a caret under a whole mapping helps nobody.
    fn first_line(&self, span: Span) -> Span {
        let text = self.source.slice(span);
        let end = text.find('\n').unwrap_or(text.len());
        let end = text[..end].trim_end().len();
        Span::new(span.source, span.start as usize, span.start as usize + end)
    }
}
