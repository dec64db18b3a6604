//! The command line.

use crate::rows;
use anyhow::{Context, bail};
use std::path::PathBuf;

pub(crate) const HELP: &str = "\
bench/compare [FLAGS]: measures the components beside their peers, on this machine.

--quick          3 short rounds, fewer peers, at most 3 minutes
--only ROW       this row; may be given several times
--rounds N       interleaved rounds (7; quick: 3)
--peers A,B      only these: direct floor queue-proxy activator both nginx
                 haproxy knative hyper pingora
--out FOLDER     where compare.json, .md and .svg go (target/compare)
--list           the rows

KNATIVE_QUEUE_PROXY   a binary of Knative's queue-proxy, to measure it too
ZEROSCALE_BIN_DIR     where ours are, instead of building them
";

/// See the module.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) quick: bool,
    /// None at all means every row.
    pub(crate) only: Vec<String>,
    pub(crate) rounds: usize,
    /// None at all means every peer.
    pub(crate) peers: Vec<String>,
    pub(crate) out: PathBuf,
}

impl Options {
    pub(crate) fn parse(arguments: impl IntoIterator<Item = String>) -> anyhow::Result<Options> {
        let mut arguments = arguments.into_iter();
        let (mut quick, mut only, mut rounds, mut peers) = (false, Vec::new(), None, Vec::new());
        let mut out = PathBuf::from("target/compare");
        while let Some(flag) = arguments.next() {
            if flag == "--quick" {
                quick = true;
                continue;
            }
            let value = arguments.next().with_context(|| format!("{flag} needs a value, or is no flag"))?;
            match flag.as_str() {
                "--only" if rows::ALL.iter().any(|row| row.name == value) => only.push(value),
                "--only" => bail!("there is no row {value}; --list names them"),
                "--rounds" => rounds = Some(value.parse().with_context(|| format!("--rounds {value}"))?),
                "--peers" => peers.extend(value.split(',').map(str::to_owned)),
                "--out" => out = PathBuf::from(value),
                _ => bail!("there is no flag {flag}"),
            }
        }
        let rounds = rounds.unwrap_or(if quick { 3 } else { 7 });
        Ok(Options { quick, only, rounds, peers, out })
    }

    pub(crate) fn wants(&self, row: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> anyhow::Result<Options> {
        Options::parse(line.split_ascii_whitespace().map(str::to_owned))
    }

    #[test]
    fn flags() {
        let options = parse("--quick --only get-1k --only limit --peers floor,nginx").unwrap();
        assert!(options.quick && options.wants("limit") && !options.wants("get-0"));
        assert_eq!((options.rounds, options.peers.len()), (3, 2));
        assert!(parse("").unwrap().wants("get-0"));
        assert_eq!(parse("--rounds 9").unwrap().rounds, 9);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in ["--only nothing", "--rounds x", "--rounds", "--what 3"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
