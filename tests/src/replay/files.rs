//! From paths to vector files.

use super::known::{self, Judge};
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
            let judge =
                judge_of(&real).ok_or_else(|| format!("{}: not a vector file that is known", path.display()))?;
            listing.files.push(Found::Known { path: path.clone(), judge });
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
                self.files.push(match judge_of(&real) {
                    Some(judge) => Found::Known { path, judge },
                    None => Found::Unknown { path },
                });
            }
        }
        Ok(())
    }
}

fn is_vector(path: &Path) -> bool {
    path.extension().is_some_and(|kind| kind == "jsonl" || kind == "json")
}

/// A file is known by the folder it lies in and its own name.
fn judge_of(path: &Path) -> Option<Judge> {
    let folder = path.parent()?.file_name()?.to_str()?;
    known::judge(folder, path.file_name()?.to_str()?)
}

fn cannot_read(path: &Path, error: &std::io::Error) -> String {
    format!("{}: cannot be read: {error}", path.display())
}
