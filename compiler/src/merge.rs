//! `like`, `same_as` and `abstract`: sections of complete entries.

use std::collections::BTreeMap;

use assize_codes as codes;
use assize_study::ast::{Arm, BlockSet, Cell, Decision, Named, Request, Section};
use assize_study::diagnostic::Diagnostic;
use assize_study::expr::Name;
use assize_study::inherit::Inherit;

use crate::context::Context;

/// Entries that `like` may lead through.
const MAX_CHAIN: usize = 32;

/// An entry of a section in which `like` may stand.
pub(crate) trait Entry: Inherit + Clone {
    /// What one is called.
    const NOUN: &'static str;

    fn like(&self) -> Option<&Name>;

    fn is_abstract(&self) -> bool;

    /// The entry that this one equals in everything but its label.
    fn same_as(&self) -> Option<&Name> {
        None
    }

    /// The entry that this one equals, with this one's label.
    fn relabelled(&self, other: &Self) -> Self {
        other.clone()
    }
}

macro_rules! entry {
    ($ty:ty, $noun:literal) => {
        impl Entry for $ty {
            const NOUN: &'static str = $noun;

            fn like(&self) -> Option<&Name> {
                self.like.as_ref()
            }

            fn is_abstract(&self) -> bool {
                self.is_abstract
            }
        }
    };
}

entry!(Request, "request");
entry!(Cell, "cell");
entry!(BlockSet, "block set");
entry!(Decision, "family of hypotheses");

impl Entry for Arm {
    const NOUN: &'static str = "arm";

    fn like(&self) -> Option<&Name> {
        self.like.as_ref()
    }

    fn is_abstract(&self) -> bool {
        self.is_abstract
    }

    fn same_as(&self) -> Option<&Name> {
        self.same_as.as_ref()
    }

    fn relabelled(&self, other: &Arm) -> Arm {
        Arm {
            label: self.label.clone(),
            ..other.clone()
        }
    }
}

/// A section after merging: what is not abstract, by name.
pub(crate) struct Entries<T> {
    pub list: Vec<Named<T>>,
    abstracts: Vec<String>,
}

impl<T: Entry> Entries<T> {
    /// The entry of a name; one that is not there is reported.
    pub fn find(&self, context: &Context<'_>, name: &Name) -> Option<&Named<T>> {
        let found = self.get(&name.text);
        if found.is_some() {
            return found;
        }
        if self.abstracts.contains(&name.text) {
            context.report(
                Diagnostic::new(
                    codes::E0211,
                    name.span,
                    format!("`{name}` is abstract: only there to be completed by `like`"),
                )
                .help("name an entry that completes it"),
            );
        } else {
            context.unknown(T::NOUN, name, self.names());
        }
        None
    }

    pub fn get(&self, name: &str) -> Option<&Named<T>> {
        self.list.iter().find(|entry| entry.name.text == name)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|entry| entry.name.text.as_str())
    }
}

/// Completes the entries of `sections` (the study's first, then its modules').
pub(crate) fn resolve<T: Entry>(context: &Context<'_>, sections: &[&Section<T>]) -> Entries<T> {
    let mut written: BTreeMap<&str, &Named<T>> = BTreeMap::new();
    for entry in sections.iter().flat_map(|section| section.iter()) {
        if let Some(first) = written.get(entry.name.text.as_str()) {
            clash(context, &first.name, &entry.name);
            continue;
        }
        written.insert(&entry.name.text, entry);
    }
    let mut entries = Entries {
        list: Vec::new(),
        abstracts: Vec::new(),
    };
    let mut is_told = false;
    for entry in written.values() {
        if entry.item.is_abstract() {
            entries.abstracts.push(entry.name.text.clone());
        }
        if let Some(item) = complete(context, &written, entry, &mut Vec::new(), &mut is_told)
            && !entry.item.is_abstract()
        {
            entries.list.push(Named {
                name: entry.name.clone(),
                item,
            });
        }
    }
    entries
}

fn complete<'e, T: Entry>(
    context: &Context<'_>,
    written: &BTreeMap<&str, &'e Named<T>>,
    entry: &'e Named<T>,
    chain: &mut Vec<&'e str>,
    is_told: &mut bool,
) -> Option<T> {
    let Some(parent) = entry.item.same_as().or(entry.item.like()) else {
        return Some(entry.item.clone());
    };
    if chain.contains(&entry.name.text.as_str()) {
        chain.push(&entry.name.text);
        context.report(
            Diagnostic::new(
                codes::E0214,
                parent.span,
                format!("`like` leads back to itself: {}", chain.join(" → ")),
            )
            .help("one entry of the chain must stand without `like`"),
        );
        return None;
    }
    if chain.len() == MAX_CHAIN {
        if !std::mem::replace(is_told, true) {
            context.report(
                Diagnostic::new(
                    codes::E0113,
                    parent.span,
                    format!("`like` leads through more than {MAX_CHAIN} entries"),
                )
                .help("let entries complete one that stands nearer to the top"),
            );
        }
        return None;
    }
    chain.push(&entry.name.text);
    let Some(parent_entry) = written.get(parent.text.as_str()) else {
        context.unknown(T::NOUN, parent, written.keys().copied());
        return None;
    };
    let complete_parent = complete(context, written, parent_entry, chain, is_told)?;
    // The lowering has refused whatever stands beside `same_as`, but a label.
    Some(if entry.item.same_as().is_some() {
        entry.item.relabelled(&complete_parent)
    } else {
        entry.item.inherit(&complete_parent)
    })
}

/// Reports a name that two declarations want.
pub(crate) fn clash(context: &Context<'_>, first: &Name, second: &Name) {
    context.report(
        Diagnostic::new(
            codes::E0213,
            second.span,
            format!("`{second}` is declared twice"),
        )
        .also(first.span, "the other declaration")
        .help("rename one: nothing shadows another name"),
    );
}
