//! The folder of the admin sockets: one file an instance, `<pid>.sock`.
//!
//! Whoever can write here could pose as an instance, so a folder that is not
//! ours alone is refused, never repaired.

use anyhow::{Context, bail};
use std::ffi::OsStr;
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The folder, made if need be.
///
/// # Errors
/// When it cannot be made, or somebody else could write in it.
pub(crate) fn own() -> anyhow::Result<PathBuf> {
    let folder = place();
    match DirBuilder::new().mode(0o700).create(&folder) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error).with_context(|| format!("making the folder {}", folder.display())),
    }
    check(&folder)?;
    Ok(folder)
}

/// The sockets that are there, by age of their process numbers; none when
/// there is no folder.
///
/// # Errors
/// When somebody else could write in the folder, or it cannot be read.
pub(crate) fn sockets() -> anyhow::Result<Vec<PathBuf>> {
    let folder = place();
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error).with_context(|| format!("reading the folder {}", folder.display())),
    };
    check(&folder)?;
    let mut found: Vec<(u32, PathBuf)> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            Some((pid_of(&entry.file_name())?, entry.path()))
        })
        .collect();
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// The file of a process.
pub(crate) fn file_name(pid: u32) -> String {
    format!("{pid}.sock")
}

fn pid_of(name: &OsStr) -> Option<u32> {
    name.to_str()?.strip_suffix(".sock")?.parse().ok()
}

fn place() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    place_in(runtime.as_deref(), &std::env::temp_dir(), uid())
}

/// The runtime folder must be absolute (its specification says so) and there;
/// the one of the temporary folder carries the user's number, since that
/// folder is everybody's.
fn place_in(runtime: Option<&Path>, temporary: &Path, uid: u32) -> PathBuf {
    match runtime.filter(|folder| folder.is_absolute() && folder.is_dir()) {
        Some(folder) => folder.join("zeroscale"),
        None => temporary.join(format!("zeroscale-{uid}")),
    }
}

fn check(folder: &Path) -> anyhow::Result<()> {
    // Of the link itself: a link is somebody's way to lead us elsewhere.
    let seen = folder.symlink_metadata().with_context(|| format!("looking at {}", folder.display()))?;
    if !seen.is_dir() {
        bail!("{} is not a folder", folder.display());
    }
    if seen.uid() != uid() {
        bail!("{} belongs to user {}, not to us", folder.display(), seen.uid());
    }
    if seen.mode() & 0o077 != 0 {
        bail!("{} can be opened by others (mode {:o}, not 700)", folder.display(), seen.mode() & 0o777);
    }
    Ok(())
}

fn uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn the_runtime_folder_comes_first_if_it_is_one() {
        let here = tempfile::tempdir().unwrap();
        let temporary = Path::new("/tmp");
        assert_eq!(place_in(Some(here.path()), temporary, 7), here.path().join("zeroscale"));
        for no in [None, Some(Path::new("")), Some(Path::new("relative")), Some(Path::new("/no/such/folder"))] {
            assert_eq!(place_in(no, temporary, 7), Path::new("/tmp/zeroscale-7"));
        }
    }

    #[test]
    fn a_folder_that_others_could_write_in_is_refused() {
        let here = tempfile::tempdir().unwrap();
        let folder = here.path().join("zeroscale");
        DirBuilder::new().mode(0o700).create(&folder).unwrap();
        check(&folder).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o750)).unwrap();
        assert!(check(&folder).unwrap_err().to_string().contains("mode 750"));
        let link = here.path().join("link");
        symlink(here.path(), &link).unwrap();
        assert!(check(&link).unwrap_err().to_string().contains("not a folder"));
    }

    #[test]
    fn only_names_that_are_process_numbers_are_sockets() {
        assert_eq!(pid_of(OsStr::new("17.sock")), Some(17));
        assert_eq!(pid_of(OsStr::new(&file_name(17))), Some(17));
        for other in ["17", "x.sock", ".sock", "-1.sock", "17.sock.old"] {
            assert_eq!(pid_of(OsStr::new(other)), None, "{other}");
        }
    }
}
