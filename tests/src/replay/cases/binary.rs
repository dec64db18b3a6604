//! Where the shipped sidecar is.

use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

const NAME: &str = "queue-proxy";

/// From `ZEROSCALE_BIN_DIR`, else from beside `replay`, else built.
///
/// # Errors
/// When it is not there and cannot be built.
pub fn find(replay: &Path) -> anyhow::Result<PathBuf> {
    if let Some(folder) = std::env::var_os("ZEROSCALE_BIN_DIR") {
        let path = Path::new(&folder).join(NAME);
        if !path.is_file() {
            bail!("there is no {} (ZEROSCALE_BIN_DIR)", path.display());
        }
        return Ok(path.canonicalize()?);
    }
    let folder = replay.parent().context("replay lies in no folder")?;
    // The programs of a test lie one deeper than what it tests.
    let folder = if folder.ends_with("deps") { folder.parent().unwrap_or(folder) } else { folder };
    let beside = folder.join(NAME);
    if beside.is_file() {
        return Ok(beside);
    }
    build(folder.parent().unwrap_or(folder))
}

fn build(target: &Path) -> anyhow::Result<PathBuf> {
    eprintln!("replay: there is no {NAME} beside it: cargo build --release -p {NAME} (or set ZEROSCALE_BIN_DIR)");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--release", "--package", NAME, "--bin", NAME, "--target-dir"])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .context("running cargo")?;
    let path = target.join("release").join(NAME);
    if !built.success() || !path.is_file() {
        bail!("cargo could not build {NAME}");
    }
    Ok(path)
}
