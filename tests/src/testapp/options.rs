//! The command line: `--name value` or a bare `--name`.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// What the app is told to do.
#[derive(Debug, Default)]
pub struct Options {
    /// Where it listens (`--port`, else `$PORT`).
    pub port: u16,
    /// It opens its port so late, in milliseconds (`--open-after 300`), or by a
    /// draw between two bounds (`--open-after 0-2`).
    pub open_after_ms: (f64, f64),
    /// It opens its port only when this file is there (`--open-when`).
    pub open_when: Option<PathBuf>,
    /// How long each request takes (`--work`, in milliseconds).
    pub work: Duration,
    /// Where it writes what happens (`--log`).
    pub log: Option<PathBuf>,
    /// It exits instead of serving.
    pub exit: Option<Exit>,
    /// It leaves a process behind that calls setsid (`--daemon`).
    pub daemon: bool,
}

/// An early end.
#[derive(Debug)]
pub struct Exit {
    /// With this code (`--exit`).
    pub code: u8,
    /// After so long (`--exit-after`, in milliseconds).
    pub after: Duration,
    /// But not while this file is there (`--exit-unless`).
    pub unless: Option<PathBuf>,
}

impl Options {
    /// Reads the command line and `$PORT`.
    ///
    /// # Errors
    /// For an option that is none, or has no value that makes sense.
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> io::Result<Options> {
        let mut options = Options::default();
        let (mut code, mut after, mut unless) = (None, Duration::ZERO, None);
        if let Some(port) = std::env::var_os("PORT") {
            options.port = number("PORT", Some(port))?;
        }
        let mut arguments = arguments.into_iter();
        while let Some(name) = arguments.next() {
            let name = name.to_string_lossy().into_owned();
            let mut value = || arguments.next();
            match name.as_str() {
                "--port" => options.port = number(&name, value())?,
                "--open-after" => options.open_after_ms = bounds(&text(&name, value())?)?,
                "--open-when" => options.open_when = value().map(PathBuf::from),
                "--work" => options.work = millis(&name, value())?,
                "--log" => options.log = value().map(PathBuf::from),
                "--exit" => code = Some(number(&name, value())?),
                "--exit-after" => after = millis(&name, value())?,
                "--exit-unless" => unless = value().map(PathBuf::from),
                "--daemon" => options.daemon = true,
                _ => return Err(fault(format!("there is no option {name}"))),
            }
        }
        options.exit = code.map(|code| Exit { code, after, unless });
        Ok(options)
    }

    /// How late the port opens this time.
    pub fn open_after(&self) -> Duration {
        let (low, high) = self.open_after_ms;
        // The clock's last digits are draw enough.
        let share = (super::monotonic_ns() / 7 % 1000) as f64 / 1000.0;
        Duration::from_secs_f64((low + (high - low) * share) / 1000.0)
    }
}

fn bounds(text: &str) -> io::Result<(f64, f64)> {
    let parse = |part: &str| part.parse::<f64>().map_err(|_| fault(format!("{text} are no milliseconds")));
    match text.split_once('-') {
        Some((low, high)) => Ok((parse(low)?, parse(high)?)),
        None => parse(text).map(|both| (both, both)),
    }
}

fn millis(name: &str, value: Option<OsString>) -> io::Result<Duration> {
    number(name, value).map(Duration::from_millis)
}

fn number<T: std::str::FromStr>(name: &str, value: Option<OsString>) -> io::Result<T> {
    text(name, value)?.parse().map_err(|_| fault(format!("{name} needs a number")))
}

fn text(name: &str, value: Option<OsString>) -> io::Result<String> {
    value.and_then(|value| value.into_string().ok()).ok_or_else(|| fault(format!("{name} needs a value")))
}

fn fault(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> io::Result<Options> {
        Options::parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn a_delay_is_one_figure_or_a_draw() {
        let options = parse("--port 1 --open-after 0-2 --work 50 --daemon").unwrap();
        assert_eq!((options.port, options.open_after_ms, options.daemon), (1, (0.0, 2.0), true));
        assert!(options.open_after() <= Duration::from_millis(2));
        assert_eq!(parse("--open-after 300").unwrap().open_after(), Duration::from_millis(300));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in ["--nonsense", "--work", "--work soon", "--open-after x-2"] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
