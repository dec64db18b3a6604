//! Where the binaries under test are.
//!
//! `ZEROSCALE_BIN_DIR` names their folder. Without it cargo is asked to build
//! them beside this program, in its profile: a no-op when they are fresh, and
//! never yesterday's binary under today's test. Each by itself: two packages in
//! one command are built with the features of both, which would make cargo
//! build everything anew, back and forth.

use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Looked for once in a process.
type Found = OnceLock<Result<PathBuf, String>>;

/// `zeroscale`.
///
/// # Errors
/// When it is not there and cannot be built.
pub fn zeroscale() -> anyhow::Result<PathBuf> {
    static PATH: Found = OnceLock::new();
    find(&PATH, "local", "zeroscale")
}

/// `queue-proxy`.
///
/// # Errors
/// When it is not there and cannot be built.
pub fn queue_proxy() -> anyhow::Result<PathBuf> {
    static PATH: Found = OnceLock::new();
    find(&PATH, "queue-proxy", "queue-proxy")
}

/// `activator`.
///
/// # Errors
/// When it is not there and cannot be built.
pub fn activator() -> anyhow::Result<PathBuf> {
    static PATH: Found = OnceLock::new();
    find(&PATH, "activator", "activator")
}

/// `autoscaler`.
///
/// # Errors
/// When it is not there and cannot be built.
pub fn autoscaler() -> anyhow::Result<PathBuf> {
    static PATH: Found = OnceLock::new();
    find(&PATH, "autoscaler", "autoscaler")
}

/// An activator on the file platform.
///
/// # Errors
/// When it is not there and cannot be built.
pub fn fileactivator() -> anyhow::Result<PathBuf> {
    static PATH: Found = OnceLock::new();
    find(&PATH, env!("CARGO_PKG_NAME"), "fileactivator")
}

/// The app of `tests::testapp`.
///
/// # Errors
/// When it is not there and cannot be built.
pub fn testapp() -> anyhow::Result<PathBuf> {
    static PATH: Found = OnceLock::new();
    find(&PATH, env!("CARGO_PKG_NAME"), "testapp")
}

/// The activator of `tests::front`.
///
/// # Errors
/// When it is not there and cannot be built.
pub fn front() -> anyhow::Result<PathBuf> {
    static PATH: Found = OnceLock::new();
    find(&PATH, env!("CARGO_PKG_NAME"), "front")
}

fn find(found: &Found, package: &str, name: &str) -> anyhow::Result<PathBuf> {
    let found = found.get_or_init(|| look(package, name).map_err(|error| format!("{error:#}")));
    found.clone().map_err(anyhow::Error::msg)
}

fn look(package: &str, name: &str) -> anyhow::Result<PathBuf> {
    let place = Place::of(&std::env::current_exe()?)?;
    let own = place.folder.join(name);
    if let Some(folder) = std::env::var_os("ZEROSCALE_BIN_DIR") {
        // That folder may hold only what is shipped.
        let given = Path::new(&folder).join(name);
        let found = [given, own].into_iter().find(|path| path.is_file());
        return found.with_context(|| format!("there is no {name} in {}", folder.display()));
    }
    // Cargo builds a package's own programs together with its tests.
    if !(place.is_test && package == env!("CARGO_PKG_NAME") && own.is_file()) {
        build(&place, package, name)?;
    }
    Ok(own)
}

/// Where this program lies in cargo's target folder.
struct Place {
    /// Of the programs of its profile.
    folder: PathBuf,
    /// Tests lie one deeper, in `deps`.
    is_test: bool,
}

impl Place {
    fn of(program: &Path) -> anyhow::Result<Place> {
        let folder = program.parent().context("this program lies in no folder")?;
        match folder.parent().filter(|_| folder.ends_with("deps")) {
            Some(folder) => Ok(Place { folder: folder.to_owned(), is_test: true }),
            None => Ok(Place { folder: folder.to_owned(), is_test: false }),
        }
    }
}

fn build(place: &Place, package: &str, name: &str) -> anyhow::Result<()> {
    let Place { folder, .. } = place;
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") => "dev",
        Some(profile) => profile,
        None => bail!("{} is no folder of cargo's", folder.display()),
    };
    let target = folder.parent().unwrap_or(Path::new("target"));
    eprintln!("building {name} in {}, if it is not fresh (or set ZEROSCALE_BIN_DIR)", folder.display());
    // Cargo itself lets one build at a time into a target folder.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--quiet", "--locked", "--package", package, "--bin", name])
        .args(["--profile", profile, "--target-dir"])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .context("running cargo")?;
    if !built.success() {
        bail!("cargo could not build {name}");
    }
    Ok(())
}
