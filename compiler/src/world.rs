//! What a study reads beside its own text: everything comes through a [`World`].

use std::collections::BTreeMap;

use assize_plan::Hash;
use assize_units::Bytes;

/// Why a file cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorldError {
    /// There is no such file.
    #[error("there is no such file")]
    NotFound,
    /// The path is not one that a study may name.
    #[error("the path is not allowed: {0}")]
    Forbidden(String),
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
}

/// The files and modules that a study may name. Compiling is a pure function of the study and this.
pub trait World {
    /// The bytes of a file, by its path from the study's folder.
    fn file(&self, path: &str) -> Result<Vec<u8>, WorldError>;

    /// The text of a library module, such as `std/rules/paired-sign`.
    fn module(&self, name: &str) -> Option<String>;

    /// The names of the library's modules, for a misspelt one.
    fn module_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// The hash and the size of a file that is named and not carried.
    fn external(&self, path: &str) -> Result<(Hash, Bytes), WorldError> {
        let bytes = self.file(path)?;
        Ok((Hash::of(&bytes), Bytes(bytes.len() as u64)))
    }
}

/// A world in memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryWorld {
    files: BTreeMap<String, Vec<u8>>,
    modules: BTreeMap<String, String>,
}

impl MemoryWorld {
    /// A world without files.
    pub fn new() -> MemoryWorld {
        MemoryWorld::default()
    }

    /// The same world with one more file.
    pub fn with_file(mut self, path: &str, bytes: impl Into<Vec<u8>>) -> MemoryWorld {
        self.files.insert(path.to_owned(), bytes.into());
        self
    }

    /// The same world with one more library module.
    pub fn with_module(mut self, name: &str, text: &str) -> MemoryWorld {
        self.modules.insert(name.to_owned(), text.to_owned());
        self
    }
}

impl World for MemoryWorld {
    fn file(&self, path: &str) -> Result<Vec<u8>, WorldError> {
        self.files.get(path).cloned().ok_or(WorldError::NotFound)
    }

    fn module(&self, name: &str) -> Option<String> {
        self.modules.get(name).cloned()
    }

    fn module_names(&self) -> Vec<String> {
        self.modules.keys().cloned().collect()
    }
}
