//! Reads a file whole, or says why it is of no use.

use crate::file::resolve::{self, World};
use crate::file::schema;
use std::fmt;
use std::io::Read;
use std::path::Path;

/// Largest file that is read: about 40,000 pods.
const BYTES_MAX: u64 = 8 << 20;

/// The last line: YAML's own mark of a document's end. Without it, half a file
/// is as good a file as a whole one, with half of the pods.
pub(super) const END: &str = "...";

/// Why a file is of no use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It may be in the middle of being written.
    Unfinished(String),
    /// It says nothing that makes sense.
    Bad(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Fault::Unfinished(why) | Fault::Bad(why)) = self;
        f.write_str(why)
    }
}

/// What a file says of the world.
pub(super) fn world(path: &Path) -> Result<World, Fault> {
    let text = text(path)?;
    let file: schema::File = parse(&text)?;
    resolve::world(file).map_err(Fault::Bad)
}

/// The text of a file that is there in full.
pub(super) fn text(path: &Path) -> Result<String, Fault> {
    let bad = |error: std::io::Error| Fault::Bad(error.to_string());
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(bad)?;
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(bad)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(Fault::Bad(format!("it is longer than {BYTES_MAX} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| Fault::Bad("it is no UTF-8 text".to_owned()))?;
    if text.trim().is_empty() {
        return Err(Fault::Unfinished("it is empty".to_owned()));
    }
    if text.trim_end().lines().next_back() != Some(END) {
        let why = format!("its last line is not `{END}`, so it may be half of a file");
        return Err(Fault::Unfinished(why));
    }
    Ok(text)
}

/// Parses YAML of a known form.
pub(super) fn parse<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Fault> {
    serde_saphyr::from_str(text).map_err(|error| Fault::Bad(first_line(&error.to_string())))
}

/// The parser shows the place in further lines; a log line has one.
fn first_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}
