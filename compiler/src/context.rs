//! What every step of a compilation shares: the world, the sources, the diagnostics.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use assize_codes as codes;
use assize_plan::Hash;
use assize_study::diagnostic::{Diagnostic, Diagnostics};
use assize_study::expr::Name;
use assize_study::source::{Source, SourceId, Sources, Span};
use assize_study::suggest::nearest;

use crate::world::World;

/// The shared state of one compilation.
pub(crate) struct Context<'w> {
    pub world: &'w dyn World,
    sources: RefCell<Sources>,
    diagnostics: RefCell<Diagnostics>,
    objects: RefCell<BTreeMap<Hash, Vec<u8>>>,
    partial: Cell<bool>,
}

impl<'w> Context<'w> {
    pub fn new(world: &'w dyn World) -> Context<'w> {
        Context {
            world,
            sources: RefCell::default(),
            diagnostics: RefCell::default(),
            objects: RefCell::default(),
            partial: Cell::new(false),
        }
    }

    pub fn into_parts(self) -> (Sources, Diagnostics, BTreeMap<Hash, Vec<u8>>) {
        (
            self.sources.into_inner(),
            self.diagnostics.into_inner(),
            self.objects.into_inner(),
        )
    }

    /// From here on the files are known in part alone, where reading them has reported errors. What
    /// is absent may then have been dropped, so only faults of types are reported further.
    pub fn files_are_read(&self) {
        self.partial.set(self.has_errors());
    }

    pub fn report(&self, diagnostic: Diagnostic) {
        if self.partial.get() && !diagnostic.code.id.starts_with("E03") {
            return;
        }
        self.diagnostics.borrow_mut().push(diagnostic);
    }

    pub fn has_errors(&self) -> bool {
        self.diagnostics.borrow().has_errors()
    }

    /// Takes a text in and reads it by `read`.
    pub fn parse<T>(
        &self,
        name: &str,
        text: &str,
        read: impl FnOnce(&Source, SourceId, &mut Diagnostics) -> Option<T>,
    ) -> Option<T> {
        let source = Source::new(name, text);
        let id = self.sources.borrow_mut().add(source.clone());
        read(&source, id, &mut self.diagnostics.borrow_mut())
    }

    /// The text at a place.
    pub fn text(&self, span: Span) -> String {
        self.sources.borrow().slice(span).to_owned()
    }

    /// Keeps an object and names it.
    pub fn keep(&self, bytes: Vec<u8>) -> Hash {
        let hash = Hash::of(&bytes);
        self.objects.borrow_mut().insert(hash, bytes);
        hash
    }

    /// The bytes of a file that the study names at `span`.
    pub fn file(&self, path: &str, span: Span) -> Option<Vec<u8>> {
        match self.world.file(path) {
            Ok(bytes) => Some(bytes),
            Err(error) => {
                self.report(
                    Diagnostic::new(codes::E0216, span, format!("`{path}`: {error}"))
                        .help("paths are relative to the study's folder"),
                );
                None
            }
        }
    }

    /// The text of a file that the study names at `span`.
    pub fn text_file(&self, path: &str, span: Span) -> Option<String> {
        let bytes = self.file(path, span)?;
        match String::from_utf8(bytes) {
            Ok(text) => Some(text),
            Err(error) => {
                let at = error.utf8_error().valid_up_to();
                let before = &error.as_bytes()[..at];
                let line = before.split(|byte| *byte == b'\n').count();
                self.report(
                    Diagnostic::new(
                        codes::E0216,
                        span,
                        format!("`{path}` is not UTF-8: byte {at}, on line {line}, fits nothing"),
                    )
                    .help("save the file as UTF-8"),
                );
                None
            }
        }
    }

    /// Reports a name that nothing of its kind has.
    pub fn unknown<'n>(&self, noun: &str, name: &Name, known: impl IntoIterator<Item = &'n str>) {
        let known: Vec<&str> = known.into_iter().collect();
        let mut diagnostic = Diagnostic::new(
            codes::E0211,
            name.span,
            format!("no {noun} is called `{name}`"),
        );
        if let Some(near) = nearest(&name.text, known.iter().copied()) {
            diagnostic = diagnostic.help_edit(format!("did you mean `{near}`?"), name.span, near);
        } else if !known.is_empty() {
            diagnostic = diagnostic.help(format!("there are: {}", known.join(", ")));
        }
        self.report(diagnostic);
    }
}
