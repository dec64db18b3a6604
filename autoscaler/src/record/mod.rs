//! A recording: all that the decisions of a running autoscaler take in, in the
//! order in which they do, and what they make of it. [`crate::explain`] makes
//! the same decisions of it again.
//!
//! | job | module |
//! | --- | --- |
//! | between the decisions and whoever reads | `tap` |
//! | the stream that is read | [`stream`], over HTTP by [`answer()`] |
//! | what stands in it | `line`, `view`, `decided`, and `decider::held` |
//!
//! The decisions never wait for a reader. What it leaves unread is bounded
//! ([`stream::UNREAD_MAX`]); beyond that inputs are lost, which is counted and
//! marked, and a revision of which one was lost begins anew, with all that it
//! remembers. So is each one at the beginning of a file.

pub mod answer;
pub(crate) mod decided;
pub(crate) mod line;
pub(crate) mod number;
pub mod stream;
pub(crate) mod tap;
pub(crate) mod view;

pub use answer::answer;
pub use stream::Recording;

/// What to record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Only these services, by name, or revisions (`name` or
    /// `namespace/name`); all without any.
    pub services: Vec<String>,
    /// A new file begins after so many bytes: one that can be read without
    /// those before it.
    pub file_bytes: u64,
}

/// [`Ask::file_bytes`] where nothing else is said.
pub const FILE_BYTES: u64 = 64 << 20;
/// The fewest that can be asked for.
pub const FILE_BYTES_MIN: u64 = 64 << 10;
/// Recordings at a time.
pub const RECORDINGS_MAX: usize = 4;

impl Default for Ask {
    fn default() -> Ask {
        Ask { services: Vec::new(), file_bytes: FILE_BYTES }
    }
}

impl Ask {
    /// From the query of a URL: `service=NAME`, any number of times, and
    /// `file-bytes=N`.
    ///
    /// # Errors
    /// What there is not, in words.
    pub fn parse(query: &str) -> Result<Ask, String> {
        let mut ask = Ask::default();
        for part in query.split('&').filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some(("service", name)) if !name.is_empty() => ask.services.push(name.to_owned()),
                Some(("file-bytes", bytes)) => match bytes.parse() {
                    Ok(bytes @ FILE_BYTES_MIN..) => ask.file_bytes = bytes,
                    _ => return Err(format!("`{part}`: no number from {FILE_BYTES_MIN} on")),
                },
                _ => return Err(format!("`{part}`: there are service=NAME and file-bytes=N")),
            }
        }
        Ok(ask)
    }

    /// As [`Ask::parse`] reads it.
    pub fn query(&self) -> String {
        let services = self.services.iter().map(|name| format!("&service={name}"));
        format!("file-bytes={}{}", self.file_bytes, services.collect::<String>())
    }
}

/// Why there is no recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There are [`RECORDINGS_MAX`] already.
    TooMany,
    /// The autoscaler ends.
    Ending,
}

impl Refused {
    /// In words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Refused::TooMany => "there are too many recordings already",
            Refused::Ending => "the autoscaler is ending",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_read_as_it_was_written() {
        let ask = Ask { services: vec!["shop".into(), "default/blog-00001".into()], file_bytes: 1 << 20 };
        assert_eq!(Ask::parse(&ask.query()), Ok(ask));
        assert_eq!(Ask::parse(""), Ok(Ask::default()));
        for odd in ["service", "service=", "file-bytes=1", "file-bytes=-1", "colour=red", "file-bytes=1e9"] {
            assert!(Ask::parse(odd).unwrap_err().contains(odd), "{odd}");
        }
    }
}
