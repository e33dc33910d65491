//! Facts of the host, for `host.json` and for whoever asks whether the host is fit.
//!
//! Each group is a pure function of the texts that the kernel shows in `/proc` and `/sys`; one
//! edge, [`SystemFiles`], reads them. A fact that cannot be had is recorded as [`NOT_AVAILABLE`] and
//! never an error: what is missing is itself worth knowing, and hosts differ. No fact holds a
//! value of the environment, a host's name, an address or a serial number. `docs/host-facts.md`
//! says of each why it matters.

mod cgroup;
mod cpu;
mod kernel;
mod load;
mod memory;
mod network;
mod sandbox;

use std::io::Read;

use assize_evidence::HostFacts;

pub use assize_evidence::NOT_AVAILABLE;

/// Longest text that is read: `/proc/cpuinfo` of a host with a thousand processors.
const TEXT_BYTES: u64 = 4 << 20;

/// What the kernel shows as files.
pub trait HostFiles {
    /// The text of a file, if there is one and it may be read.
    fn text(&self, path: &str) -> Option<String>;

    /// The names in a folder; none where it cannot be read.
    fn names(&self, folder: &str) -> Vec<String>;
}

/// The files of this host.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemFiles;

impl HostFiles for SystemFiles {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where facts are read"
    )]
    fn text(&self, path: &str) -> Option<String> {
        let mut bytes = Vec::new();
        let file = std::fs::File::open(path).ok()?;
        file.take(TEXT_BYTES).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where facts are read"
    )]
    fn names(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        names
    }
}

/// All facts of this host, now.
pub fn gather() -> HostFacts {
    gather_from(&SystemFiles)
}

/// All facts, as far as `files` tell them.
pub fn gather_from(files: &dyn HostFiles) -> HostFacts {
    let mut facts = HostFacts::default();
    for (group, read) in GROUPS {
        for (name, value) in read(files) {
            facts.set(group, name, value.unwrap_or_else(|| NOT_AVAILABLE.into()));
        }
    }
    facts
}

/// A fact's name and value.
type Fact = (&'static str, Option<String>);

type Group = fn(&dyn HostFiles) -> Vec<Fact>;

const GROUPS: [(&str, Group); 9] = [
    ("cpu", cpu::facts),
    ("kernel", kernel::facts),
    ("clock", kernel::clock_facts),
    ("memory", memory::facts),
    ("cgroup", cgroup::facts),
    ("limits", kernel::limit_facts),
    ("network", network::facts),
    ("load", load::facts),
    ("sandbox", sandbox::facts),
];

/// A file's one line, with blanks of any kind as one; an empty file is an empty list: `none`.
fn one_line(files: &dyn HostFiles, path: &str) -> Option<String> {
    let text = files.text(path)?;
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    if words.is_empty() {
        return Some("none".to_owned());
    }
    Some(words.join(" "))
}

/// What follows `key` and a colon in a text of such lines.
fn after_colon<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim_end() == key).then(|| value.trim())
    })
}

/// The word in brackets: the choice made in `always [madvise] never`.
fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

/// `0` and `1`, `N` and `Y` in words.
fn on_off(text: &str) -> Option<&'static str> {
    match text.trim() {
        "1" | "Y" => Some("on"),
        "0" | "N" => Some("off"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    /// Texts in memory.
    pub(super) struct Given(BTreeMap<&'static str, &'static str>);

    impl Given {
        pub fn new(texts: &[(&'static str, &'static str)]) -> Given {
            Given(texts.iter().copied().collect())
        }
    }

    impl HostFiles for Given {
        fn text(&self, path: &str) -> Option<String> {
            self.0.get(path).map(|text| (*text).to_owned())
        }

        fn names(&self, folder: &str) -> Vec<String> {
            let inside = |path: &&str| {
                let rest = path.strip_prefix(folder)?.strip_prefix('/')?;
                Some(rest.split('/').next()?.to_owned())
            };
            let names: BTreeSet<String> = self.0.keys().filter_map(inside).collect();
            names.into_iter().collect()
        }
    }

    /// The facts of one group, `name: value`, in the group's order.
    pub(super) fn written(facts: &[Fact]) -> Vec<String> {
        let line = |(name, value): &Fact| format!("{name}: {}", value.as_deref().unwrap_or("-"));
        facts.iter().map(line).collect()
    }

    #[test]
    fn a_host_that_tells_nothing_has_every_fact_as_not_available() {
        let facts = gather_from(&Given::new(&[]));
        for (group, names) in &facts.groups {
            for (name, value) in names {
                assert_eq!(value, NOT_AVAILABLE, "{group}.{name}");
            }
        }
        assert_eq!(facts.groups.len(), GROUPS.len());
    }

    #[test]
    fn the_documents_table_names_every_fact_and_no_other() {
        let document = include_str!("../../../docs/host-facts.md");
        let documented: BTreeSet<String> = document
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
            .map(|(name, _)| name.to_owned())
            // What the driver tells is not gathered here.
            .filter(|name| !name.starts_with("driver."))
            .collect();
        let facts = gather_from(&Given::new(&[]));
        let gathered: BTreeSet<String> = facts
            .groups
            .iter()
            .flat_map(|(group, names)| names.keys().map(move |name| format!("{group}.{name}")))
            .collect();
        assert_eq!(documented, gathered);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_host_tells_what_every_linux_does() {
        let facts = gather();
        for (group, name) in [
            ("cpu", "online"),
            ("cpu", "affinity"),
            ("kernel", "release"),
            ("limits", "open_files"),
            ("memory", "total_bytes"),
            ("load", "average"),
        ] {
            let value = facts.get(group, name).unwrap();
            assert_ne!(value, NOT_AVAILABLE, "{group}.{name}");
        }
    }

    #[test]
    fn texts_of_the_kernel_are_read_as_they_are_written() {
        assert_eq!(chosen("always [madvise] never\n").unwrap(), "madvise");
        assert_eq!(chosen("always"), None);
        assert_eq!(after_colon("a : 1\nab\t: x: y\n", "ab"), Some("x: y"));
        assert_eq!(after_colon("ab: 1", "a"), None);
        assert_eq!(
            (on_off("1\n"), on_off("N\n"), on_off("?")),
            (Some("on"), Some("off"), None)
        );
    }

    proptest::proptest! {
        #[test]
        fn no_text_can_fail(text in ".{0,200}", lines in "([a-zA-Z0-9_:./\\[\\] \t-]{0,40}\n){0,8}") {
            struct Same(String);
            impl HostFiles for Same {
                fn text(&self, _: &str) -> Option<String> {
                    Some(self.0.clone())
                }
                fn names(&self, _: &str) -> Vec<String> {
                    self.0.lines().map(str::to_owned).collect()
                }
            }
            gather_from(&Same(text));
            gather_from(&Same(lines));
        }
    }
}
