//! The command line of `replay`.

use policy::compat::Compat;
use std::path::PathBuf;

/// What to print when the command line makes no sense.
pub const USAGE: &str = "usage: replay [--mode strict|default] [--verdict match] [--skip-unknown] \
     [--case NAME]... [--jobs N] [-v] PATH...";

/// What to judge, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Files and folders.
    pub paths: Vec<PathBuf>,
    /// One mode for all rows; `None` = the one that each verdict is for.
    pub mode: Option<Compat>,
    /// Judge only rows whose verdict is `match`.
    pub only_match: bool,
    /// Unknown files in folders are no error.
    pub skip_unknown: bool,
    /// Of rows that drive binaries, only these, step by step.
    pub cases: Vec<String>,
    /// How many of those run at once; `None` = four a core.
    pub jobs: Option<usize>,
    /// All of those step by step.
    pub verbose: bool,
}

impl Options {
    /// From the arguments after the program's name.
    ///
    /// # Errors
    /// One sentence for people when they make no sense.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Options, String> {
        let mut options = Options::default();
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            let (flag, mut inline) = match argument.split_once('=') {
                Some((flag, value)) if flag.starts_with("--") => (flag.to_owned(), Some(value.to_owned())),
                _ => (argument, None),
            };
            let mut value = || {
                let value = inline.take().or_else(|| arguments.next());
                value.ok_or_else(|| format!("{flag} needs a value"))
            };
            match flag.as_str() {
                "--mode" => options.mode = Some(mode(&value()?)?),
                "--verdict" => options.only_match = verdict(&value()?)?,
                "--skip-unknown" => options.skip_unknown = true,
                "--case" => options.cases.push(value()?),
                "--jobs" => options.jobs = Some(jobs(&value()?)?),
                "-v" | "--verbose" => options.verbose = true,
                unknown if unknown.starts_with('-') => {
                    return Err(format!("there is no option {unknown}"));
                }
                path => options.paths.push(PathBuf::from(path)),
            }
        }
        if options.paths.is_empty() {
            return Err("no file or folder was named".to_owned());
        }
        Ok(options)
    }
}

fn mode(value: &str) -> Result<Compat, String> {
    match value {
        "strict" => Ok(Compat::Strict),
        "default" => Ok(Compat::Better),
        other => Err(format!("--mode is strict or default, not {other}")),
    }
}

fn jobs(value: &str) -> Result<usize, String> {
    match value.parse() {
        Ok(jobs @ 1..) => Ok(jobs),
        _ => Err(format!("--jobs is a number from 1, not {value}")),
    }
}

fn verdict(value: &str) -> Result<bool, String> {
    match value {
        "match" => Ok(true),
        other => Err(format!("--verdict can only be match, not {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options, String> {
        Options::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn flags_and_paths_mix() {
        let options = parse("a --mode strict --skip-unknown --verdict=match b").unwrap();
        assert_eq!(options.paths, [PathBuf::from("a"), PathBuf::from("b")]);
        assert_eq!(options.mode, Some(Compat::Strict));
        assert!(options.skip_unknown && options.only_match);
    }

    #[test]
    fn cases_can_be_picked_by_name() {
        let options = parse("--case a --case=b --jobs 3 -v x").unwrap();
        assert_eq!(options.cases, ["a", "b"]);
        assert_eq!((options.jobs, options.verbose), (Some(3), true));
    }

    #[test]
    fn nonsense_is_refused() {
        for line in ["", "--jobs 0 x", "--case", "-x y", "--mode", "--mode odd x", "--verdict flaw x", "--what x"] {
            assert!(parse(line).is_err(), "{line:?}");
        }
    }
}
