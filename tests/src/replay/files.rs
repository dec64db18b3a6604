//! From paths to vector files.

use super::known::{self, Driver, Judge};
use std::path::{Path, PathBuf};

/// A vector file.
#[derive(Clone, Debug)]
pub enum Found {
    /// One with a judge.
    Known {
        /// As named, or as found in a named folder.
        path: PathBuf,
        /// Judges one row of it.
        judge: Judge,
    },
    /// One whose rows are driven against binaries.
    Driven {
        /// As named, or as found in a named folder.
        path: PathBuf,
        /// Runs all its rows.
        driver: Driver,
    },
    /// One in a folder, without a judge.
    Unknown {
        /// As found.
        path: PathBuf,
    },
}

/// All vector files that were named.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// In the order in which they were named; by name within a folder.
    pub files: Vec<Found>,
}

/// This folder is used otherwise, and never listed.
const NOT_FOR_REPLAY: &str = "knative-cluster";

impl Listing {
    /// All files in `paths`, and in folders among them.
    ///
    /// # Errors
    /// One sentence for people when a path cannot be read, or when a file
    /// named directly has no judge.
    pub fn of(paths: &[PathBuf]) -> Result<Listing, String> {
        let mut listing = Listing::default();
        for path in paths {
            let real = path.canonicalize().map_err(|error| cannot_read(path, &error))?;
            if real.components().any(|part| part.as_os_str() == NOT_FOR_REPLAY) {
                continue;
            }
            if real.is_dir() {
                listing.folder(path)?;
                continue;
            }
            match found(path, &real) {
                Found::Unknown { path } => return Err(format!("{}: not a vector file that is known", path.display())),
                known => listing.files.push(known),
            }
        }
        Ok(listing)
    }

    fn folder(&mut self, folder: &Path) -> Result<(), String> {
        let mut inside = Vec::new();
        for entry in folder.read_dir().map_err(|error| cannot_read(folder, &error))? {
            inside.push(entry.map_err(|error| cannot_read(folder, &error))?.path());
        }
        inside.sort();
        for path in inside {
            if path.is_dir() {
                if path.file_name().is_some_and(|name| name != NOT_FOR_REPLAY) {
                    self.folder(&path)?;
                }
            } else if is_vector(&path) {
                let real = path.canonicalize().map_err(|error| cannot_read(&path, &error))?;
                self.files.push(found(&path, &real));
            }
        }
        Ok(())
    }
}

fn is_vector(path: &Path) -> bool {
    path.extension().is_some_and(|kind| kind == "jsonl" || kind == "json")
}

/// A file is known by the folder it lies in and its own name.
fn found(path: &Path, real: &Path) -> Found {
    let name = |path: Option<&Path>| Some(path?.file_name()?.to_str()?.to_owned());
    let (folder, file) = (name(real.parent()).unwrap_or_default(), name(Some(real)).unwrap_or_default());
    let path = path.to_owned();
    match (known::judge(&folder, &file), known::driver(&folder, &file)) {
        (Some(judge), _) => Found::Known { path, judge },
        (None, Some(driver)) => Found::Driven { path, driver },
        (None, None) => Found::Unknown { path },
    }
}

fn cannot_read(path: &Path, error: &std::io::Error) -> String {
    format!("{}: cannot be read: {error}", path.display())
}
