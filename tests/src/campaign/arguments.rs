//! What follows a campaign's name: options, `--name value` or `--name=value`,
//! and words, as names of files.

use super::Failure;
use std::str::FromStr;

/// Options and words that were not taken yet.
pub struct Arguments {
    left: Vec<(String, Option<String>)>,
    words: Vec<String>,
}

impl Arguments {
    /// From what follows the campaign's name. Every option has a value, so
    /// what follows one without `=` is that.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Arguments {
        let (mut left, mut words) = (Vec::<(String, Option<String>)>::new(), Vec::new());
        for argument in arguments {
            let option = argument.strip_prefix("--");
            match (option.and_then(|option| option.split_once('=')), option, left.last_mut()) {
                (Some((name, value)), ..) => left.push((name.to_owned(), Some(value.to_owned()))),
                (None, Some(name), _) => left.push((name.to_owned(), None)),
                (None, None, Some((_, place @ None))) => *place = Some(argument),
                _ => words.push(argument),
            }
        }
        Arguments { left, words }
    }

    /// All words.
    pub fn words(&mut self) -> Vec<String> {
        std::mem::take(&mut self.words)
    }

    /// The value of an option, if it is given.
    ///
    /// # Errors
    /// [`Failure::Usage`] without a value, or with one that makes no sense.
    pub fn take<T: FromStr>(&mut self, name: &str) -> Result<Option<T>, Failure> {
        let Some(at) = self.left.iter().position(|(option, _)| option == name) else { return Ok(None) };
        let value = self.left.remove(at).1;
        match value.as_deref().map(str::parse) {
            Some(Ok(value)) => Ok(Some(value)),
            _ => Err(Failure::Usage(format!("--{name} needs a value that makes sense"))),
        }
    }

    /// Nothing else may be given.
    ///
    /// # Errors
    /// [`Failure::Usage`] naming an option or a word that nobody took.
    pub fn finish(self) -> Result<(), Failure> {
        match (self.left.first(), self.words.first()) {
            (Some((name, _)), _) => Err(Failure::Usage(format!("there is no option --{name} here"))),
            (None, Some(word)) => Err(Failure::Usage(format!("{word} is no option"))),
            (None, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Arguments {
        Arguments::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn both_ways_to_write_a_value_are_taken() {
        let mut arguments = parse("--seed 7 a.csv --histories=9 b.csv");
        assert_eq!(arguments.words(), ["a.csv", "b.csv"]);
        assert_eq!(arguments.take::<u64>("histories").unwrap(), Some(9));
        assert_eq!(arguments.take::<u64>("seed").unwrap(), Some(7));
        assert_eq!(arguments.take::<u64>("other").unwrap(), None);
        assert!(arguments.finish().is_ok());
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(parse("seed").finish().is_err());
        assert!(parse("--seed x").take::<u64>("seed").is_err());
        assert!(parse("--seed").take::<u64>("seed").is_err());
        assert!(parse("--what 1").finish().is_err());
    }
}
