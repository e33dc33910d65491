//! Cells by their references: `near`, `sweep(4/s)`.

use assize_codes as codes;
use assize_study::diagnostic::Diagnostic;
use assize_study::expr::{CellRef, Name};

use super::{Group, Member};
use crate::eval::{Evaluator, Value};

/// The cells of a study.
pub(crate) struct Cells {
    pub groups: Vec<Group>,
    /// Cells that are there and have errors of their own.
    pub faulty: Vec<String>,
}

impl Cells {
    /// The cell or family of a name; one that is not there is reported.
    pub fn group(&self, eval: &Evaluator<'_>, name: &Name) -> Option<&Group> {
        let found = self
            .groups
            .iter()
            .find(|group| group.name.text == name.text);
        if found.is_none() && !self.faulty.contains(&name.text) {
            let known = self.groups.iter().map(|group| group.name.text.as_str());
            eval.context.unknown("cell", name, known);
        }
        found
    }

    /// One cell: a family's name alone is reported.
    pub fn one(&self, eval: &Evaluator<'_>, reference: &CellRef) -> Option<&Member> {
        let group = self.group(eval, &reference.name)?;
        match (&reference.args, group.is_family) {
            (None, false) => group.members.first(),
            (Some(_), true) => self.member(eval, group, reference),
            (None, true) => {
                let names: Vec<&str> = group
                    .members
                    .iter()
                    .map(|member| member.name.as_str())
                    .collect();
                let last = names.last().copied().unwrap_or_default();
                eval.context.report(
                    Diagnostic::new(
                        codes::E0401,
                        reference.span,
                        format!(
                            "`{}` is {} cells: {}",
                            group.name,
                            names.len(),
                            names.join(", ")
                        ),
                    )
                    .help_edit(
                        format!("name one: `{last}`"),
                        reference.span,
                        last,
                    ),
                );
                None
            }
            (Some(args), false) => {
                eval.context.report(
                    Diagnostic::new(
                        codes::E0407,
                        args.span,
                        format!("`{}` is one cell and has no members", group.name),
                    )
                    .help_edit(
                        format!("write `{}`", group.name),
                        reference.span,
                        group.name.text.clone(),
                    ),
                );
                None
            }
        }
    }

    /// The members that a reference of a block set stands for.
    pub fn several(&self, eval: &Evaluator<'_>, reference: &CellRef) -> Option<Vec<&Member>> {
        if reference.args.is_some() {
            return self.one(eval, reference).map(|member| vec![member]);
        }
        let group = self.group(eval, &reference.name)?;
        Some(group.members.iter().collect())
    }

    fn member<'g>(
        &self,
        eval: &Evaluator<'_>,
        group: &'g Group,
        reference: &CellRef,
    ) -> Option<&'g Member> {
        let args = reference.args.as_ref()?;
        let mut wanted = Vec::new();
        for arg in &args.items {
            match eval.written(&arg.value, &[])? {
                Value::Number(number) => wanted.push(number),
                other => {
                    eval.context.report(Diagnostic::new(
                        codes::E0407,
                        arg.value.span(),
                        format!("a member is named by numbers, found {}", other.describe()),
                    ));
                    return None;
                }
            }
        }
        let alike = |member: &&Member| {
            member.values.len() == wanted.len()
                && member
                    .values
                    .iter()
                    .zip(&wanted)
                    .all(|(a, b)| a.value == b.value && a.kind == b.kind)
        };
        let found = group.members.iter().find(alike);
        if found.is_none() {
            let names: Vec<&str> = group
                .members
                .iter()
                .map(|member| member.name.as_str())
                .collect();
            eval.context.report(
                Diagnostic::new(
                    codes::E0407,
                    reference.span,
                    format!(
                        "`{}` has no member `{}`",
                        group.name,
                        eval.context.text(reference.span)
                    ),
                )
                .help(format!("its members are: {}", names.join(", "))),
            );
        }
        found
    }
}
