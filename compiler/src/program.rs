//! The study and the modules that it uses.

use assize_codes as codes;
use assize_study::ast::{Document, Module, Study, Text};
use assize_study::diagnostic::Diagnostic;
use assize_study::lower::parse_document;
use assize_study::suggest::nearest;

use crate::context::Context;

/// Modules that one study may use, those of its modules included.
const MAX_MODULES: usize = 64;

/// A study with everything that it uses.
pub(crate) struct Program {
    pub study: Study,
    pub text: String,
    pub modules: Vec<Loaded>,
}

/// A module that was read.
pub(crate) struct Loaded {
    /// As written under `use`.
    pub name: String,
    pub text: String,
    pub module: Module,
}

/// Reads the study at `path` and its modules.
pub(crate) fn load(context: &Context<'_>, path: &str, text: String) -> Option<Program> {
    let document = context.parse(path, &text, parse_document)?;
    let study = match document {
        Document::Study(study) => *study,
        Document::Module(module) => {
            context.report(
                Diagnostic::new(
                    codes::E0212,
                    module.name.span,
                    format!("`{}` is a module, and a module runs nothing", module.name),
                )
                .help("compile a study that uses it"),
            );
            return None;
        }
    };
    let mut modules = Vec::new();
    for written in &study.uses {
        use_module(context, written, "", &mut modules);
    }
    modules.sort_by(|a: &Loaded, b: &Loaded| a.name.cmp(&b.name));
    Some(Program {
        study,
        text,
        modules,
    })
}

fn use_module(context: &Context<'_>, written: &Text, folder: &str, modules: &mut Vec<Loaded>) {
    let name = if written.value.starts_with("std/") {
        written.value.clone()
    } else {
        format!("{folder}{}", written.value.trim_start_matches("./"))
    };
    if modules.iter().any(|known| known.name == name) {
        return;
    }
    if modules.len() == MAX_MODULES {
        context.report(Diagnostic::new(
            codes::E0212,
            written.span,
            format!("a study uses at most {MAX_MODULES} modules"),
        ));
        return;
    }
    let Some(text) = module_text(context, &name, written) else {
        return;
    };
    let Some(document) = context.parse(&name, &text, parse_document) else {
        return;
    };
    let Document::Module(module) = document else {
        context.report(Diagnostic::new(
            codes::E0212,
            written.span,
            format!("`{name}` is a study; `use` takes modules"),
        ));
        return;
    };
    let inner = name
        .rsplit_once('/')
        .map_or(String::new(), |(folder, _)| format!("{folder}/"));
    let uses = module.uses.clone();
    modules.push(Loaded {
        name,
        text,
        module: *module,
    });
    for written in &uses {
        use_module(context, written, &inner, modules);
    }
}

fn module_text(context: &Context<'_>, name: &str, written: &Text) -> Option<String> {
    if !name.starts_with("std/") {
        return context.text_file(name, written.span);
    }
    let text = context.world.module(name);
    if text.is_none() {
        let mut diagnostic = Diagnostic::new(
            codes::E0212,
            written.span,
            format!("the library has no module `{name}`"),
        );
        let known = context.world.module_names();
        if let Some(near) = nearest(name, known.iter().map(String::as_str)) {
            diagnostic =
                diagnostic.help_edit(format!("did you mean `{near}`?"), written.span, near);
        } else if !known.is_empty() {
            diagnostic = diagnostic.help(format!("there are: {}", known.join(", ")));
        }
        context.report(diagnostic);
    }
    text
}
