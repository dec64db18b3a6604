//! The options of a campaign: `--name value` or `--name=value`.

use super::Failure;
use std::str::FromStr;

/// Options that were not taken yet.
pub struct Arguments {
    left: Vec<(String, Option<String>)>,
}

impl Arguments {
    /// From what follows the campaign's name.
    ///
    /// # Errors
    /// [`Failure::Usage`] for anything that is no option.
    pub fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Arguments, Failure> {
        let mut left: Vec<(String, Option<String>)> = Vec::new();
        for argument in arguments {
            let option = argument.strip_prefix("--");
            match (option.and_then(|option| option.split_once('=')), option, left.last_mut()) {
                (Some((name, value)), ..) => left.push((name.to_owned(), Some(value.to_owned()))),
                (None, Some(name), _) => left.push((name.to_owned(), None)),
                (None, None, Some((_, place @ None))) => *place = Some(argument),
                _ => return Err(Failure::Usage(format!("{argument} is no option"))),
            }
        }
        Ok(Arguments { left })
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
    /// [`Failure::Usage`] naming an option that nobody took.
    pub fn finish(self) -> Result<(), Failure> {
        match self.left.first() {
            Some((name, _)) => Err(Failure::Usage(format!("there is no option --{name} here"))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, Failure> {
        Arguments::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn both_ways_to_write_a_value_are_taken() {
        let mut arguments = parse("--seed 7 --histories=9").unwrap();
        assert_eq!(arguments.take::<u64>("histories").unwrap(), Some(9));
        assert_eq!(arguments.take::<u64>("seed").unwrap(), Some(7));
        assert_eq!(arguments.take::<u64>("other").unwrap(), None);
        assert!(arguments.finish().is_ok());
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(parse("seed").is_err() && parse("--seed 1 2").is_err());
        assert!(parse("--seed x").unwrap().take::<u64>("seed").is_err());
        assert!(parse("--seed").unwrap().take::<u64>("seed").is_err());
        assert!(parse("--what 1").unwrap().finish().is_err());
    }
}
