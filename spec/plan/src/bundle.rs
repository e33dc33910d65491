//! The bundle `NAME.plan/`: the plan, its circumstances, its objects, and the list of hashes.

#![expect(
    clippy::disallowed_methods,
    reason = "the bundle's folder is read and written here, and nowhere else"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{Hash, Plan, PlanError, ServerDef, TraceObject};

/// The list of every file's hash.
pub const SUMS_FILE: &str = "SHA256SUMS";
/// The page for a person.
pub const README_FILE: &str = "README.txt";

/// Files by plain relative name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The circumstances of a freeze: everything that decides nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Freeze {
    /// `assize-freeze/1`.
    pub format: String,
    /// The plan's hash.
    pub plan: Hash,
    /// The tool and its version.
    pub tool: String,
    /// The study's text, as an object.
    pub study_text: Option<Hash>,
    /// The study file's name, without folders.
    pub study_file: Option<String>,
    /// The modules that it used.
    pub modules: Vec<ModuleText>,
    /// The git state of the study's folder, where it has one.
    pub git: Option<GitState>,
    /// Wall time of freezing, RFC 3339, UTC: a label.
    pub frozen_at: String,
}

/// A module's text, as an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModuleText {
    /// As written under `use`.
    pub name: String,
    /// Its text.
    pub text: Hash,
}

/// The state of a git work tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GitState {
    /// The commit.
    pub commit: String,
    /// Whether nothing was changed against it.
    pub clean: bool,
}

/// A plan with every object that it names.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// The plan.
    pub plan: Plan,
    /// The SHA-256 of `plan.json`.
    pub hash: Hash,
    /// The circumstances.
    pub freeze: Freeze,
    /// Objects by hash.
    pub objects: BTreeMap<Hash, Vec<u8>>,
    /// The page for a person.
    pub readme: String,
}

/// Why a bundle is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleRefusal {
    /// A file differs from its listed hash.
    #[error("{file} differs from SHA256SUMS: listed {listed}, found {found}")]
    Differs {
        /// The file.
        file: String,
        /// The hash in the list.
        listed: Hash,
        /// The hash of what is there.
        found: Hash,
    },
    /// A listed file is not there.
    #[error("{0} is listed in SHA256SUMS and is not there")]
    Missing(String),
    /// A file is there that is not listed.
    #[error("{0} is not listed in SHA256SUMS")]
    Unlisted(String),
    /// The list itself cannot be read.
    #[error("SHA256SUMS, line {0}: not `HASH  NAME` with a plain relative name")]
    BadList(usize),
    /// The plan's hash is not the one in `freeze.json`.
    #[error("freeze.json names plan {listed}, plan.json is {found}")]
    WrongPlan {
        /// The hash in `freeze.json`.
        listed: Hash,
        /// The hash of `plan.json`.
        found: Hash,
    },
    /// An object that the plan names is not in the bundle, or has other bytes.
    #[error("object {0} is not in the bundle")]
    NoObject(Hash),
    /// The plan cannot be read.
    #[error("plan.json: {0}")]
    Plan(#[from] PlanError),
    /// An object or `freeze.json` cannot be read.
    #[error("{file}: {why}")]
    Content {
        /// The file.
        file: String,
        /// What is wrong.
        why: String,
    },
    /// The folder cannot be read.
    #[error("{file}: {source}")]
    Io {
        /// The file or folder.
        file: String,
        /// What the system says.
        source: io::Error,
    },
}

impl Bundle {
    /// All files of the bundle, with the list of their hashes.
    pub fn to_files(&self) -> Files {
        let mut files = Files::new();
        files.insert(
            "plan.json".into(),
            self.plan
                .to_canonical()
                .expect("a plan in a bundle is canonical"),
        );
        let mut freeze =
            serde_json::to_vec_pretty(&self.freeze).expect("plain data has a JSON form");
        freeze.push(b'\n');
        files.insert("freeze.json".into(), freeze);
        files.insert(README_FILE.into(), self.readme.clone().into_bytes());
        for (hash, bytes) in &self.objects {
            files.insert(format!("objects/{}", hash.hex()), bytes.clone());
        }
        let sums = render_sums(
            files
                .iter()
                .map(|(name, bytes)| (name.as_str(), Hash::of(bytes))),
        );
        files.insert(SUMS_FILE.into(), sums.into_bytes());
        files
    }

    /// Opens a bundle: every hash, the plan's form, and every object that the plan names.
    pub fn from_files(files: &Files) -> Result<Bundle, BundleRefusal> {
        check_sums(files)?;
        let plan_bytes = file(files, "plan.json")?;
        let hash = Hash::of(plan_bytes);
        let freeze: Freeze = serde_json::from_slice(file(files, "freeze.json")?)
            .map_err(|error| content("freeze.json", &error.to_string()))?;
        if freeze.plan != hash {
            return Err(BundleRefusal::WrongPlan {
                listed: freeze.plan,
                found: hash,
            });
        }
        let plan = Plan::from_canonical(plan_bytes)?;
        let mut objects = BTreeMap::new();
        for (name, bytes) in files {
            let Some(listed) = name.strip_prefix("objects/") else {
                continue;
            };
            let listed =
                Hash::from_hex(listed).ok_or_else(|| content(name, "no object has such a name"))?;
            let found = Hash::of(bytes);
            if listed != found {
                return Err(BundleRefusal::Differs {
                    file: name.clone(),
                    listed,
                    found,
                });
            }
            objects.insert(listed, bytes.clone());
        }
        let readme = String::from_utf8_lossy(file(files, README_FILE)?).into_owned();
        let bundle = Bundle {
            plan,
            hash,
            freeze,
            objects,
            readme,
        };
        bundle.check_objects()?;
        Ok(bundle)
    }

    fn check_objects(&self) -> Result<(), BundleRefusal> {
        for hash in self.plan.object_hashes() {
            self.object(hash)?;
        }
        for unit in &self.plan.units {
            for cell in unit.warmup.iter().chain(&unit.cells) {
                let name = format!("objects/{}", cell.load.trace().hex());
                let trace = self.trace(cell.load.trace())?;
                if trace.len() != cell.requests as usize {
                    return Err(content(
                        &name,
                        "the trace has another number of requests than its cell",
                    ));
                }
                if trace.offsets_ns.is_some() != cell.load.is_open() {
                    return Err(content(
                        &name,
                        "an open load has offsets, a closed one has none",
                    ));
                }
                for index in 0..trace.len() {
                    let class = cell
                        .classes
                        .get(trace.class_of(index) as usize)
                        .and_then(|n| self.plan.class(*n));
                    if class.is_none_or(|class| trace.prompts[index] as usize >= class.bodies.len())
                    {
                        return Err(content(
                            &name,
                            "the trace names a class or a prompt that does not exist",
                        ));
                    }
                }
            }
        }
        Ok(())
    }

    /// An object's bytes.
    pub fn object(&self, hash: Hash) -> Result<&[u8], BundleRefusal> {
        self.objects
            .get(&hash)
            .map(Vec::as_slice)
            .ok_or(BundleRefusal::NoObject(hash))
    }

    /// A trace.
    pub fn trace(&self, hash: Hash) -> Result<TraceObject, BundleRefusal> {
        TraceObject::from_bytes(self.object(hash)?)
            .map_err(|error| content(&format!("objects/{}", hash.hex()), &error.to_string()))
    }

    /// A server definition.
    pub fn server(&self, hash: Hash) -> Result<ServerDef, BundleRefusal> {
        ServerDef::from_bytes(self.object(hash)?)
            .map_err(|error| content(&format!("objects/{}", hash.hex()), &error.to_string()))
    }
}

/// `HASH  NAME` lines, sorted by name, as `sha256sum -c` reads them.
pub fn render_sums<'n>(entries: impl Iterator<Item = (&'n str, Hash)>) -> String {
    let mut entries: Vec<(&str, Hash)> = entries.filter(|(name, _)| *name != SUMS_FILE).collect();
    entries.sort_unstable();
    entries.iter().fold(String::new(), |mut out, (name, hash)| {
        writeln!(out, "{hash}  {name}").expect("a string takes all");
        out
    })
}

/// Reads `HASH  NAME` lines: each ended by a newline, with a plain relative name that stands once. The
/// error is the number of the first line that is not so, from 1.
pub fn parse_sums(list: &[u8]) -> Result<BTreeMap<String, Hash>, usize> {
    let mut listed = BTreeMap::new();
    for (place, line) in list.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let entry = std::str::from_utf8(line)
            .ok()
            .and_then(|line| line.strip_suffix('\n')?.split_once("  "))
            .and_then(|(hash, name)| Some((Hash::from_hex(hash)?, name)))
            .filter(|(_, name)| safe_name(name));
        let Some((hash, name)) = entry else {
            return Err(place + 1);
        };
        if listed.insert(name.to_owned(), hash).is_some() {
            return Err(place + 1);
        }
    }
    Ok(listed)
}

/// Whether a name is plain and relative: no empty part, no `.`, `..`, backslash, colon or control.
pub fn safe_name(name: &str) -> bool {
    let plain = |part: &str| {
        !part.is_empty()
            && part != "."
            && part != ".."
            && part.len() <= 255
            && !part
                .chars()
                .any(|c| c.is_control() || c == '\\' || c == ':')
    };
    name.len() <= 1024 && name.split('/').all(plain)
}

/// Reads every file below a folder; links and unsafe names are refused.
pub fn read_folder(folder: &Path) -> Result<Files, BundleRefusal> {
    fn walk(folder: &Path, prefix: &str, files: &mut Files) -> Result<(), BundleRefusal> {
        let io = |source| BundleRefusal::Io {
            file: folder.display().to_string(),
            source,
        };
        for entry in std::fs::read_dir(folder).map_err(io)? {
            let entry = entry.map_err(io)?;
            let name = entry
                .file_name()
                .into_string()
                .ok()
                .filter(|name| safe_name(name));
            let Some(name) = name else {
                return Err(content(
                    &entry.path().display().to_string(),
                    "the name is not plain",
                ));
            };
            let relative = format!("{prefix}{name}");
            let kind = entry.file_type().map_err(io)?;
            if kind.is_dir() {
                walk(&entry.path(), &format!("{relative}/"), files)?;
            } else if kind.is_file() {
                let bytes = std::fs::read(entry.path()).map_err(|source| BundleRefusal::Io {
                    file: relative.clone(),
                    source,
                })?;
                files.insert(relative, bytes);
            } else {
                return Err(content(&relative, "neither a file nor a folder"));
            }
        }
        Ok(())
    }
    let mut files = Files::new();
    walk(folder, "", &mut files)?;
    Ok(files)
}

/// Writes files into a new folder; an existing folder that is not empty is refused.
pub fn write_folder(folder: &Path, files: &Files) -> io::Result<()> {
    if folder.exists() && std::fs::read_dir(folder)?.next().is_some() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "the folder exists and is not empty",
        ));
    }
    for (name, bytes) in files {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, bytes)?;
    }
    Ok(())
}

fn check_sums(files: &Files) -> Result<(), BundleRefusal> {
    let list = file(files, SUMS_FILE)?;
    let listed = parse_sums(list).map_err(BundleRefusal::BadList)?;
    for (name, hash) in &listed {
        let bytes = files
            .get(name)
            .ok_or_else(|| BundleRefusal::Missing(name.clone()))?;
        let found = Hash::of(bytes);
        if found != *hash {
            return Err(BundleRefusal::Differs {
                file: name.clone(),
                listed: *hash,
                found,
            });
        }
    }
    match files
        .keys()
        .find(|name| *name != SUMS_FILE && !listed.contains_key(name.as_str()))
    {
        Some(name) => Err(BundleRefusal::Unlisted(name.clone())),
        None => Ok(()),
    }
}

fn file<'f>(files: &'f Files, name: &str) -> Result<&'f [u8], BundleRefusal> {
    files
        .get(name)
        .map(Vec::as_slice)
        .ok_or_else(|| BundleRefusal::Missing(name.to_owned()))
}

fn content(file: &str, why: &str) -> BundleRefusal {
    BundleRefusal::Content {
        file: file.to_owned(),
        why: why.to_owned(),
    }
}
