//! The base of every draw.

use assize_codes as codes;
use assize_study::diagnostic::Diagnostic;
use assize_study::source::{Span, Spanned};

use crate::context::Context;

/// The study's seed, or its absence.
pub(crate) struct Seed<'s>(pub &'s Option<Spanned<u64>>);

impl Seed<'_> {
    /// The seed of a block: the declared seed and the block's number, or the number alone.
    pub fn block(&self, block: u32) -> u128 {
        let base = self.0.as_ref().map_or(0, |seed| u128::from(seed.value));
        base + u128::from(block)
    }

    /// Reports that something is drawn, where nothing decides the draws.
    pub fn need(&self, context: &Context<'_>, span: Span, what: &str) {
        if self.0.is_none() {
            context.report(
                Diagnostic::new(
                    codes::E0501,
                    span,
                    format!("{what} is drawn, and the study has no `seed`"),
                )
                .help("add a whole number at top level: `seed: 2026101900`"),
            );
        }
    }
}
