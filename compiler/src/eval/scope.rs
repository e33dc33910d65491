//! The names that expressions see.

use std::collections::{BTreeMap, BTreeSet};

use assize_codes as codes;
use assize_study::ast::Let;
use assize_study::diagnostic::Diagnostic;
use assize_study::expr::Name;

use super::{FUNCTIONS, is_metric_name};
use crate::context::Context;
use crate::merge::clash;
use crate::program::Program;

/// The names of `let`, of the study and of its modules, and the request classes.
pub(crate) struct Scope<'p> {
    pub lets: BTreeMap<&'p str, &'p Let>,
    /// Those of the study itself, sorted.
    pub own: Vec<&'p str>,
    pub classes: BTreeSet<String>,
}

impl<'p> Scope<'p> {
    pub fn new(
        context: &Context<'_>,
        program: &'p Program,
        classes: BTreeSet<String>,
    ) -> Scope<'p> {
        let mut lets: BTreeMap<&'p str, &'p Let> = BTreeMap::new();
        let study = &program.study.declarations.lets;
        let modules = program
            .modules
            .iter()
            .flat_map(|loaded| &loaded.module.declarations.lets);
        for entry in study.iter().chain(modules) {
            let name = &entry.item.key.name;
            if is_taken(&name.text) {
                report_taken(context, name);
            } else if let Some(first) = lets.get(name.text.as_str()) {
                clash(context, &first.key.name, name);
            } else {
                lets.insert(&name.text, &entry.item);
            }
        }
        let mut own: Vec<&str> = study
            .iter()
            .map(|entry| entry.item.key.name.text.as_str())
            .collect();
        own.sort_unstable();
        Scope { lets, own, classes }
    }

    /// Whether the library has the name.
    pub fn is_taken(name: &str) -> bool {
        is_taken(name)
    }
}

fn is_taken(name: &str) -> bool {
    FUNCTIONS.contains(&name) || is_metric_name(name) || crate::load::PROCESSES.contains(&name)
}

fn report_taken(context: &Context<'_>, name: &Name) {
    context.report(
        Diagnostic::new(
            codes::E0213,
            name.span,
            format!("`{name}` is a name of the language, and nothing shadows another name"),
        )
        .help("rename it"),
    );
}
