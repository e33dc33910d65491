//! `assize-verify` over folders on disk.

use std::path::Path;
use std::process::Command;

fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_assize-verify"))
        .args(arguments)
        .output()
        .expect("the program runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), stderr)
}

#[test]
fn a_wrong_command_line_says_what_is_right() {
    for arguments in [
        &[][..],
        &["--seal"],
        &["--seal", "xyz", "e"],
        &["a", "b"],
        &["--what"],
    ] {
        let (status, stderr) = run(arguments);
        assert_eq!(status, Some(2), "{arguments:?}");
        assert!(stderr.starts_with("usage: assize-verify"));
    }
}

#[test]
fn what_is_no_evidence_is_refused_by_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("none");
    let path = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    assert_eq!(run(&[&path(&missing)]).0, Some(1));
    let (status, stderr) = run(&[&path(folder.path())]);
    assert_eq!(status, Some(1));
    assert!(
        stderr.starts_with("error[E0808]: journal.jsonl: "),
        "{stderr}"
    );
}
