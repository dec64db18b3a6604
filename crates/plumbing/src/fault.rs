//! What is wrong with a configuration: collected, and told all at once, since
//! an operator should not have to start a program five times to learn of five
//! mistakes.

use std::fmt;

/// Faults of a configuration, one line each; a line names its setting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    lines: Vec<String>,
}

impl Faults {
    /// None yet.
    pub fn new() -> Faults {
        Faults::default()
    }

    /// Adds one. Line breaks in it (of a value that is quoted, say) become blanks.
    pub fn add(&mut self, line: impl Into<String>) {
        self.lines.push(line.into().replace(['\n', '\r'], " "));
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// The lines.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// The value, unless there are faults.
    ///
    /// # Errors
    /// The faults, if there are any.
    pub fn unless<T>(self, value: T) -> Result<T, Faults> {
        if self.is_empty() { Ok(value) } else { Err(self) }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_come_a_line_each_whatever_they_quote() {
        assert_eq!(Faults::new().unless(7), Ok(7));
        let mut faults = Faults::new();
        faults.add("A is missing");
        faults.add("B is `x\ny`");
        assert_eq!(faults.to_string(), "A is missing\nB is `x y`\n");
        assert_eq!(faults.clone().unless(7), Err(faults));
    }
}
