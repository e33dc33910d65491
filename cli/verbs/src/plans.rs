//! Bundles on disk.

use std::path::{Path, PathBuf};

use assize_codes::{E0702, E0703};
use assize_plan::{Bundle, read_folder, write_folder};

use crate::problem::Problem;

/// Opens a bundle and checks its seal.
pub fn open(folder: &Path) -> Result<Bundle, Problem> {
    if !folder.is_dir() {
        return Err(
            Problem::world(E0702, format!("{}: no such folder", folder.display()))
                .help("a plan is the folder that `assize freeze` wrote: NAME.plan"),
        );
    }
    Ok(Bundle::from_files(&read_folder(folder)?)?)
}

/// Writes a bundle into a new folder. A folder that already holds this very plan is left as it is.
pub fn write(folder: &Path, bundle: &Bundle) -> Result<(), Problem> {
    if folder.exists() {
        return match open(folder) {
            Ok(there) if there.hash == bundle.hash => Ok(()),
            Ok(there) => Err(Problem::refusal(
                E0703,
                format!("{} holds another plan, {}", folder.display(), there.hash.short()),
            )
            .help("a frozen plan is never overwritten: choose another folder with --out, or remove it yourself")),
            Err(_) => Err(Problem::refusal(E0703, format!("{} exists and is no sound plan", folder.display()))
                .help("choose another folder with --out, or remove it yourself")),
        };
    }
    write_folder(folder, &bundle.to_files())
        .map_err(|error| Problem::world(E0702, format!("writing {}: {error}", folder.display())))
}

/// Where the evidence of a plan goes unless it is said: `NAME.plan` → `NAME.evidence`, beside it.
pub fn evidence_folder(plan: &Path) -> PathBuf {
    let name = plan
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let name = name.strip_suffix(".plan").unwrap_or(&name).to_owned();
    plan.with_file_name(format!("{name}.evidence"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_lies_beside_its_plan() {
        assert_eq!(
            evidence_folder(Path::new("a/hello.plan")),
            Path::new("a/hello.evidence")
        );
        assert_eq!(
            evidence_folder(Path::new("hello.plan/")),
            Path::new("hello.evidence")
        );
    }
}
