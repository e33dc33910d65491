//! Where evidence lies: a folder, or memory.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use assize_plan::safe_name;

/// A file that is being written.
pub trait StoreFile: Write + Send {
    /// Brings what was written to the disk.
    fn sync(&mut self) -> io::Result<()>;
}

/// A place for evidence. Names are plain and relative, with `/` between folders.
pub trait Store: Send + Sync {
    /// A new file; one that exists is an error.
    fn create(&self, name: &str) -> io::Result<Box<dyn StoreFile>>;

    /// A file's bytes as a stream.
    fn open(&self, name: &str) -> io::Result<Box<dyn Read + Send>>;

    /// A file's size in bytes.
    fn size(&self, name: &str) -> io::Result<u64>;

    /// Every file, sorted by name.
    fn list(&self) -> io::Result<Vec<String>>;

    /// A file's bytes, refused beyond `limit_bytes`.
    fn read(&self, name: &str, limit_bytes: u64) -> io::Result<Vec<u8>> {
        let size = self.size(name)?;
        if size > limit_bytes {
            let why = format!("{name} has {size} bytes, the limit is {limit_bytes}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        let mut bytes = Vec::with_capacity(size as usize);
        self.open(name)?.take(limit_bytes).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes a whole new file and syncs it.
    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.create(name)?;
        file.write_all(bytes)?;
        file.sync()
    }
}

/// Evidence in a folder.
#[derive(Clone, Debug)]
pub struct FolderStore {
    root: PathBuf,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the evidence folder is read and written here, and nowhere else"
)]
mod folder {
    use super::*;

    impl FolderStore {
        /// A new folder, or one that exists and is empty.
        pub fn create_root(root: &Path) -> io::Result<FolderStore> {
            std::fs::create_dir_all(root)?;
            if std::fs::read_dir(root)?.next().is_some() {
                return Err(io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    "the folder is not empty",
                ));
            }
            Ok(FolderStore {
                root: root.to_owned(),
            })
        }

        /// A folder that exists.
        pub fn open_root(root: &Path) -> io::Result<FolderStore> {
            if !root.is_dir() {
                return Err(io::Error::new(io::ErrorKind::NotFound, "no such folder"));
            }
            Ok(FolderStore {
                root: root.to_owned(),
            })
        }
    }

    impl Store for FolderStore {
        fn create(&self, name: &str) -> io::Result<Box<dyn StoreFile>> {
            let path = self.path(name)?;
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            Ok(Box::new(std::fs::File::create_new(path)?))
        }

        fn open(&self, name: &str) -> io::Result<Box<dyn Read + Send>> {
            Ok(Box::new(std::fs::File::open(self.path(name)?)?))
        }

        fn size(&self, name: &str) -> io::Result<u64> {
            Ok(std::fs::symlink_metadata(self.path(name)?)?.len())
        }

        fn list(&self) -> io::Result<Vec<String>> {
            let mut names = Vec::new();
            walk(&self.root, "", &mut names)?;
            names.sort();
            Ok(names)
        }
    }

    fn walk(folder: &Path, prefix: &str, names: &mut Vec<String>) -> io::Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let bad = |why: &str| {
                io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("{}: {why}", entry.path().display()),
                )
            };
            let name = entry
                .file_name()
                .into_string()
                .map_err(|_| bad("the name is not UTF-8"))?;
            let relative = format!("{prefix}{name}");
            let kind = entry.file_type()?;
            if !safe_name(&relative) {
                return Err(bad("the name is not plain"));
            } else if kind.is_dir() {
                walk(&entry.path(), &format!("{relative}/"), names)?;
            } else if kind.is_file() {
                names.push(relative);
            } else {
                return Err(bad("neither a file nor a folder"));
            }
        }
        Ok(())
    }
}

impl FolderStore {
    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn path(&self, name: &str) -> io::Result<PathBuf> {
        if safe_name(name) {
            Ok(self.root.join(name))
        } else {
            Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{name:?} is no plain relative name"),
            ))
        }
    }
}

impl StoreFile for std::fs::File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Evidence in memory: for tests and for runs that leave nothing behind. Clones share the files.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    files: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
}

struct MemoryFile {
    name: String,
    files: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
}

impl MemoryStore {
    /// An empty one.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    /// Puts a file's bytes in place of what was there: how a test tampers.
    pub fn replace(&self, name: &str, bytes: Vec<u8>) {
        self.lock().insert(name.to_owned(), bytes);
    }

    /// Takes a file away.
    pub fn remove(&self, name: &str) -> Option<Vec<u8>> {
        self.lock().remove(name)
    }

    /// A store with the same files, which shares nothing with this one.
    pub fn copy(&self) -> MemoryStore {
        MemoryStore {
            files: Arc::new(Mutex::new(self.lock().clone())),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.files
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        let missing = || io::Error::new(io::ErrorKind::NotFound, format!("{name} is not there"));
        self.lock().get(name).cloned().ok_or_else(missing)
    }
}

impl Store for MemoryStore {
    fn create(&self, name: &str) -> io::Result<Box<dyn StoreFile>> {
        if !safe_name(name) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{name:?} is no plain relative name"),
            ));
        }
        let mut files = self.lock();
        if files.contains_key(name) {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                format!("{name} exists"),
            ));
        }
        files.insert(name.to_owned(), Vec::new());
        Ok(Box::new(MemoryFile {
            name: name.to_owned(),
            files: self.files.clone(),
        }))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(io::Cursor::new(self.get(name)?)))
    }

    fn size(&self, name: &str) -> io::Result<u64> {
        Ok(self.get(name)?.len() as u64)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.lock().keys().cloned().collect())
    }
}

impl Write for MemoryFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut files = self
            .files
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        files
            .entry(self.name.clone())
            .or_default()
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl StoreFile for MemoryFile {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}
