//! The study language: source, spans, tree, expressions, AST, diagnostics.

pub mod ast;
pub mod diagnostic;
pub mod expr;
pub mod inherit;
pub mod lower;
pub mod source;
pub mod suggest;
pub mod tree;
