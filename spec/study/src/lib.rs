//! The study language: source, spans, tree, expressions, AST, diagnostics.
//!
//! Text becomes a generic tree with the place of every key and value ([`tree`]), the tree becomes
//! a typed AST by a lowering that reports every error and goes on ([`lower`]), and the checks of
//! names, types and designs are the compiler's. `docs/language.md` is the reference.
//!
//! ```
//! use assize_study::diagnostic::{Diagnostics, render_human};
//! use assize_study::lower::parse_document;
//! use assize_study::source::{Source, Sources};
//!
//! let mut sources = Sources::new();
//! let id = sources.add(Source::new("study.yaml", "assize: 1\nstudy: hello\nsettle: 5m\n"));
//! let mut diagnostics = Diagnostics::new();
//! let document = parse_document(sources.get(id).unwrap(), id, &mut diagnostics);
//! assert!(document.is_some() && diagnostics.has_errors());
//! assert!(render_human(&diagnostics, &sources, false).contains("error[E0301]"));
//! ```

pub mod ast;
pub mod diagnostic;
pub mod expr;
pub mod inherit;
pub mod lower;
pub mod source;
pub mod suggest;
pub mod tree;
