//! The study language: source, spans, tree, expressions, AST, diagnostics.

pub mod ast;
pub mod expr;
pub mod source;
