//! The files of a recording: each can be read by itself, and the oldest go.

use anyhow::{Context, bail};
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

/// How a file begins.
const HEAD: &[u8] = b"{\"head\":";
/// How a gap is marked.
const GAP: &[u8] = b"{\"gap\":";

/// Bytes of a line that has no end yet.
const LINE_MAX: usize = autoscaler::explain::LINE_MAX;

pub(super) struct Files {
    folder: PathBuf,
    /// How many are kept.
    most: usize,
    kept: VecDeque<PathBuf>,
    file: Option<File>,
    /// The beginning of a line whose end has not come yet.
    begun: Vec<u8>,
    pub(super) counts: Counts,
}

/// Of all files, those that went included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) files: u64,
    pub(super) lines: u64,
    pub(super) bytes: u64,
    pub(super) gaps: u64,
}

impl Files {
    /// In a folder that is made, or holds no recording yet.
    pub(super) fn new(folder: &Path, most: usize) -> anyhow::Result<Files> {
        std::fs::create_dir_all(folder).with_context(|| format!("making the folder {}", folder.display()))?;
        if !of(folder)?.is_empty() {
            bail!("{} holds a recording already", folder.display());
        }
        let (folder, kept) = (folder.to_owned(), VecDeque::new());
        Ok(Files { folder, most, kept, file: None, begun: Vec::new(), counts: Counts::default() })
    }

    /// Writes the whole lines of what came, at once: whenever this ends, the
    /// files end with a whole line, or nearly so.
    pub(super) fn write(&mut self, mut came: &[u8]) -> anyhow::Result<()> {
        while let Some(end) = came.iter().position(|byte| *byte == b'\n') {
            // All lines up to the next head go together.
            let mut end = end + 1;
            if self.begun.is_empty() {
                self.note(&came[..end])?;
                while let Some(more) = came[end..].iter().position(|byte| *byte == b'\n') {
                    let line = &came[end..=end + more];
                    if line.starts_with(HEAD) {
                        break;
                    }
                    self.note(line)?;
                    end += more + 1;
                }
                self.put(&came[..end])?;
            } else {
                let mut line = std::mem::take(&mut self.begun);
                line.extend_from_slice(&came[..end]);
                self.note(&line)?;
                self.put(&line)?;
            }
            came = &came[end..];
        }
        if self.begun.len() + came.len() > LINE_MAX {
            bail!("a line is longer than {LINE_MAX} bytes");
        }
        self.begun.extend_from_slice(came);
        Ok(())
    }

    /// Counts a line; begins a file with a head.
    fn note(&mut self, line: &[u8]) -> anyhow::Result<()> {
        if line.starts_with(HEAD) || self.file.is_none() {
            self.begin()?;
        }
        self.counts.lines += 1;
        self.counts.gaps += u64::from(line.starts_with(GAP));
        Ok(())
    }

    fn begin(&mut self) -> anyhow::Result<()> {
        self.close()?;
        self.counts.files += 1;
        let path = self.folder.join(format!("{:06}.jsonl", self.counts.files));
        self.file = Some(File::create_new(&path).with_context(|| format!("making {}", path.display()))?);
        self.kept.push_back(path);
        while self.kept.len() > self.most {
            if let Some(oldest) = self.kept.pop_front() {
                std::fs::remove_file(&oldest).with_context(|| format!("removing {}", oldest.display()))?;
            }
        }
        Ok(())
    }

    fn put(&mut self, lines: &[u8]) -> anyhow::Result<()> {
        self.counts.bytes += lines.len() as u64;
        let file = self.file.as_mut().context("a line before its file")?;
        file.write_all(lines).with_context(|| format!("writing in {}", self.folder.display()))
    }

    /// Nothing more will come.
    pub(super) fn close(&mut self) -> anyhow::Result<()> {
        match self.file.take() {
            Some(file) => file.sync_all().with_context(|| format!("writing in {}", self.folder.display())),
            None => Ok(()),
        }
    }
}

/// The files of a recording, in their order.
///
/// # Errors
/// When the folder cannot be read.
pub(crate) fn of(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("reading the folder {}", folder.display()))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<Vec<_>>>();
    let mut paths = paths.with_context(|| format!("reading the folder {}", folder.display()))?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_begin_with_heads_and_the_oldest_go() {
        let here = tempfile::tempdir().unwrap();
        let folder = here.path().join("recording");
        let text = "{\"head\":1}\n{\"a\"}\n{\"gap\":1}\n{\"head\":2}\n{\"b\"}\n{\"head\":3}\n{\"c\"}\n";
        let half = "{\"never whole";
        // In pieces of every size, whole lines or not.
        for size in 1..text.len() {
            let mut files = Files::new(&folder, 2).unwrap();
            let bytes = [text.as_bytes(), half.as_bytes()].concat();
            bytes.chunks(size).for_each(|chunk| files.write(chunk).unwrap());
            files.close().unwrap();
            let counts = Counts { files: 3, lines: 7, bytes: text.len() as u64, gaps: 1 };
            assert_eq!(files.counts, counts, "{size}");
            let left: Vec<String> =
                of(&folder).unwrap().iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
            assert_eq!(left, ["{\"head\":2}\n{\"b\"}\n", "{\"head\":3}\n{\"c\"}\n"], "{size}");
            assert!(Files::new(&folder, 2).err().unwrap().to_string().contains("a recording already"));
            std::fs::remove_dir_all(&folder).unwrap();
        }
    }
}
