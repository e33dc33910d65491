//! Diagnostic codes and their pages.
//!
//! One file in `pages/` is one code: its first line is `# E0206: title`, its second
//! `Kind: diagnostic`, `refusal` or `failure`. The build script makes a constant of each, so a
//! code without a page cannot exist. The first two digits are the block:
//!
//! | block | what |
//! | --- | --- |
//! | 01 | syntax |
//! | 02 | names and modules |
//! | 03 | units and types |
//! | 04 | design and order |
//! | 05 | load, draws, pilots, flow |
//! | 06 | rules and statistics |
//! | 07 | freezing, bundle, seal, refusals of `run` |
//! | 08 | evidence, verification |
//! | 09 | host, servers, drivers |
//! | 10 | command line and `bench` |
//!
//! A page of a diagnostic holds a `## Wrong` and a `## Mended` example of the study language, which
//! a test of `cli/verbs` runs; the other kinds say what happened and what to do.

use std::fmt;

/// What kind of error a code stands for. The kinds are never mixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The author's text is wrong; the error has a span.
    Diagnostic,
    /// Drift, a broken seal or lost integrity; the error has the two values that differ.
    Refusal,
    /// The world failed; the error has an operation, a subject and often an error number.
    Failure,
}

impl Kind {
    /// The word in JSON output.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Diagnostic => "diagnostic",
            Kind::Refusal => "refusal",
            Kind::Failure => "failure",
        }
    }
}

/// A stable code such as `E0206`, its title and its page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// `E` (error) or `W` (warning) and four digits.
    pub id: &'static str,
    /// The page's title.
    pub title: &'static str,
    /// What kind of error it is.
    pub kind: Kind,
    /// The whole page, Markdown.
    pub page: &'static str,
}

impl Code {
    /// Whether the code is a warning.
    pub fn is_warning(self) -> bool {
        self.id.starts_with('W')
    }

    /// Finds a code by its id, in either case.
    pub fn find(id: &str) -> Option<Code> {
        ALL.iter()
            .copied()
            .find(|code| code.id.eq_ignore_ascii_case(id))
    }

    /// The fenced example under the heading `## name`, if the page has one.
    pub fn example(self, name: &str) -> Option<&'static str> {
        let section = self
            .page
            .split("\n## ")
            .find_map(|part| part.strip_prefix(name)?.strip_prefix('\n'))?;
        let fenced = section.split_once("```yaml\n")?.1;
        Some(fenced.split_once("```")?.0)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id)
    }
}

include!(concat!(env!("OUT_DIR"), "/codes.rs"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_well_formed_and_ordered() {
        for pair in ALL.windows(2) {
            assert!(pair[0].id < pair[1].id);
        }
        for code in ALL {
            let (letter, digits) = code.id.split_at(1);
            assert!(matches!(letter, "E" | "W"), "{code}");
            assert!(
                digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit()),
                "{code}"
            );
            assert!(
                ("01".."11").contains(&&digits[..2]),
                "{code} is in no block"
            );
        }
    }

    #[test]
    fn a_page_says_what_to_do() {
        for code in ALL {
            assert!(code.page.len() > 120, "{code} says too little");
            let mended = code.page.contains("\n## Mended") || code.page.contains("\n## What to do");
            assert!(mended, "{code} has neither `## Mended` nor `## What to do`");
        }
    }

    #[test]
    fn a_code_is_found_in_either_case() {
        let first = ALL[0];
        assert_eq!(Code::find(&first.id.to_lowercase()), Some(first));
        assert_eq!(Code::find("E9999"), None);
    }
}
