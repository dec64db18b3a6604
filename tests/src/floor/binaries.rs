//! Where the binaries under test are.
//!
//! `ZEROSCALE_BIN_DIR` names their folder. Without it cargo is asked to build
//! them beside this program, in its profile: a no-op when they are fresh, and
//! never yesterday's binary under today's test.

use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// `zeroscale`.
///
/// # Errors
/// When it is not there and cannot be built.
pub fn zeroscale() -> anyhow::Result<PathBuf> {
    find("zeroscale")
}

/// The app of `tests::testapp`.
///
/// # Errors
/// When it is not there and cannot be built.
pub fn testapp() -> anyhow::Result<PathBuf> {
    find("testapp")
}

fn find(name: &str) -> anyhow::Result<PathBuf> {
    static FOLDER: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| folder().map_err(|error| format!("{error:#}")));
    let path = folder.as_ref().map_err(|error| anyhow::anyhow!("{error}"))?.join(name);
    // One folder by hand may hold only what is shipped.
    let beside = || Some(own_folder().ok()?.join(name)).filter(|path| path.is_file());
    match path.is_file() {
        true => Ok(path),
        false => beside().with_context(|| format!("there is no {}", path.display())),
    }
}

fn folder() -> anyhow::Result<PathBuf> {
    match std::env::var_os("ZEROSCALE_BIN_DIR") {
        Some(folder) => Ok(folder.into()),
        None => build(),
    }
}

/// The profile's folder: tests lie in its `deps`, programs in itself.
fn own_folder() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let folder = program.parent().filter(|folder| folder.file_name() == Some("deps".as_ref()));
    let folder = folder.unwrap_or(&program).parent();
    Ok(folder.context("this program lies in no folder")?.to_owned())
}

fn build() -> anyhow::Result<PathBuf> {
    let folder = own_folder()?;
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") => "dev",
        Some(profile) => profile,
        None => bail!("{} is no folder of cargo's", folder.display()),
    };
    let target = folder.parent().unwrap_or(Path::new("target"));
    eprintln!("building zeroscale and testapp in {} (or set ZEROSCALE_BIN_DIR)", folder.display());
    // Cargo itself lets one build at a time into a target folder.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--quiet", "--locked", "--package", "local", "--package", "tests"])
        .args(["--bin", "zeroscale", "--bin", "testapp", "--profile", profile, "--target-dir"])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .context("running cargo")?;
    if !built.success() {
        bail!("cargo could not build zeroscale and testapp");
    }
    Ok(folder)
}
