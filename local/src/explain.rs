//! `zeroscale explain`: decides on a recording once more.
//!
//! Exit 0 when nothing differs from what is recorded, 1 when something does, 2
//! when a file makes no sense.

mod show;

use crate::EXIT_USAGE;
use crate::cli::{ExplainFlags, ModeFlag};
use crate::record::files;
use anyhow::{Context, bail};
use autoscaler::explain::changes::Changes;
use autoscaler::explain::{Fault, LINE_MAX, Replay, Step, Told};
use policy::compat::Compat;
use show::Show;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Something differs.
const EXIT_DIFFERS: u8 = 1;
/// A file makes no sense.
const EXIT_BAD_FILE: u8 = 2;

pub(crate) fn main(flags: &ExplainFlags) -> ExitCode {
    let mut changes = Changes::default();
    changes.compat = flags.mode.map(|mode| match mode {
        ModeFlag::Default => Compat::Better,
        ModeFlag::Strict => Compat::Strict,
    });
    for set in &flags.set {
        if let Err(fault) = changes.set(set) {
            eprintln!("zeroscale: --set: {fault}");
            return ExitCode::from(EXIT_USAGE);
        }
    }
    let mut show = Show::new(flags.json, changes.is_none() && changes.compat.is_none());
    match explain(flags, Replay::new(changes), &mut show) {
        Ok(()) if show.end() => ExitCode::SUCCESS,
        Ok(()) => ExitCode::from(EXIT_DIFFERS),
        Err(error) => {
            show.flush();
            eprintln!("zeroscale: {error:#}");
            ExitCode::from(EXIT_BAD_FILE)
        }
    }
}

fn explain(flags: &ExplainFlags, mut replay: Replay, show: &mut Show) -> anyhow::Result<()> {
    let wanted = |step: &Step| {
        let is_it = |name: &String| {
            *name == *step.service
                || *name == step.revision
                || step.revision.split_once('/').is_some_and(|(_, short)| short == name)
        };
        flags.service.is_empty() || flags.service.iter().any(is_it)
    };
    for path in all(&flags.files)? {
        read(&path, |line| {
            match replay.line(line)? {
                Told::Decision(step) if !wanted(&step) => {}
                told => show.tell(&told),
            }
            Ok(())
        })?;
    }
    Ok(())
}

/// The files, those of folders in their order.
fn all(given: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for path in given {
        if path.is_dir() {
            let found = files::of(path)?;
            if found.is_empty() {
                bail!("there is no recording in {}", path.display());
            }
            paths.extend(found);
        } else {
            paths.push(path.clone());
        }
    }
    Ok(paths)
}

/// Gives each whole line of a file; what a killed recorder has left of its last
/// one is told of and passed over.
fn read(path: &Path, mut take: impl FnMut(&[u8]) -> Result<(), Fault>) -> anyhow::Result<()> {
    let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
    let mut lines = BufReader::new(file);
    let mut line = Vec::new();
    for number in 1_u64.. {
        line.clear();
        let mut bounded = (&mut lines).take(LINE_MAX as u64);
        let length = bounded.read_until(b'\n', &mut line).with_context(|| format!("reading {}", path.display()))?;
        if length == 0 {
            if number == 1 {
                bail!("{}: it is empty", path.display());
            }
            break;
        }
        if line.pop_if(|byte| *byte == b'\n').is_none() {
            if length == LINE_MAX {
                bail!("{}:{number}: longer than {LINE_MAX} bytes", path.display());
            }
            if number == 1 {
                bail!("{}: there is no whole line in it", path.display());
            }
            eprintln!("zeroscale: {}:{number}: the recording was cut off in this line", path.display());
            break;
        }
        if let Err(Fault { column, what }) = take(&line) {
            let column = column.map(|column| format!(":{column}")).unwrap_or_default();
            bail!("{}:{number}{column}: {what}", path.display());
        }
    }
    Ok(())
}
