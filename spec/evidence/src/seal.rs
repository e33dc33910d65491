//! The seal: a list of every file's hash, and the hash of that list.

use std::io::{self, Read};

use assize_plan::{Hash, parse_sums, render_sums};
use sha2::{Digest, Sha256};

use crate::layout::SUMS_FILE;
use crate::store::Store;

/// The seal of an evidence folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seal {
    /// The SHA-256 of `SHA256SUMS`.
    pub hash: Hash,
    /// Files that it covers.
    pub files: usize,
}

/// Why a seal does not hold.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SealError {
    /// A file differs.
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
    /// The store failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Hashes every file and writes the list.
pub fn write_seal(store: &dyn Store) -> io::Result<Seal> {
    let mut entries = Vec::new();
    for name in store.list()? {
        entries.push((name.clone(), hash_file(store, &name)?));
    }
    let sums = render_sums(entries.iter().map(|(name, hash)| (name.as_str(), *hash)));
    store.write(SUMS_FILE, sums.as_bytes())?;
    Ok(Seal {
        hash: Hash::of(sums.as_bytes()),
        files: entries.len(),
    })
}

/// Checks every file against the list; `None` where there is no list (an unsealed folder).
pub fn check_seal(store: &dyn Store) -> Result<Option<Seal>, SealError> {
    let names = store.list()?;
    if !names.iter().any(|name| name == SUMS_FILE) {
        return Ok(None);
    }
    let list = store.read(SUMS_FILE, 256 << 20)?;
    let hash = Hash::of(&list);
    let mut listed = parse_sums(&list).map_err(SealError::BadList)?;
    for name in names.iter().filter(|name| *name != SUMS_FILE) {
        let Some(listed) = listed.remove(name) else {
            return Err(SealError::Unlisted(name.clone()));
        };
        let found = hash_file(store, name)?;
        if found != listed {
            return Err(SealError::Differs {
                file: name.clone(),
                listed,
                found,
            });
        }
    }
    match listed.into_keys().next() {
        Some(missing) => Err(SealError::Missing(missing)),
        None => Ok(Some(Seal {
            hash,
            files: names.len() - 1,
        })),
    }
}

fn hash_file(store: &dyn Store, name: &str) -> io::Result<Hash> {
    let mut file = store.open(name)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(Hash(hasher.finalize().into())),
            read => hasher.update(&buffer[..read]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::MemoryStore;

    #[test]
    fn a_flipped_byte_an_added_and_a_missing_file_are_found() {
        let store = MemoryStore::new();
        store.write("a/one", b"1").unwrap();
        store.write("two", b"2").unwrap();
        assert!(check_seal(&store).unwrap().is_none());
        let seal = write_seal(&store).unwrap();
        assert_eq!(check_seal(&store).unwrap(), Some(seal));

        let flipped = store.copy();
        flipped.replace("two", b"3".to_vec());
        assert!(
            matches!(check_seal(&flipped), Err(SealError::Differs { file, .. }) if file == "two")
        );
        let added = store.copy();
        added.replace("three", vec![]);
        assert!(matches!(check_seal(&added), Err(SealError::Unlisted(file)) if file == "three"));
        let removed = store.copy();
        removed.remove("a/one");
        assert!(matches!(check_seal(&removed), Err(SealError::Missing(file)) if file == "a/one"));
    }
}
