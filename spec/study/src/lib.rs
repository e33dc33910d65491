//! The study language: source, spans, tree, expressions, AST, diagnostics.
