//! Whose code speaks HTTP/1, with clients and with apps and pods.

use crate::env::Env;

/// The setting that says so.
pub const SETTING: &str = "ZEROSCALE_HTTP1";

/// Whose it is. All above it (chain, limiter, accounting) is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Http1 {
    /// Ours: [`crate::h1`].
    #[default]
    Own,
    /// Hyper's: a way out, should ours have a fault. What it cannot do:
    /// docs/queue-proxy.md.
    #[cfg(feature = "hyper-http1")]
    Hyper,
}

impl Http1 {
    /// As `ZEROSCALE_HTTP1` says: `own`, `hyper`, or ours where it says nothing.
    pub fn read(env: &mut Env) -> Http1 {
        env.own(SETTING, Http1::parse).unwrap_or_default()
    }

    fn parse(text: &str) -> Result<Http1, String> {
        match text {
            "own" => Ok(Http1::Own),
            #[cfg(feature = "hyper-http1")]
            "hyper" => Ok(Http1::Hyper),
            #[cfg(not(feature = "hyper-http1"))]
            "hyper" => Err("hyper is not in this build: `cargo build --features hyper-http1` makes one".to_owned()),
            other => Err(format!("`{other}` is neither `own` nor `hyper`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_ours_unless_told_and_a_fault_names_the_setting() {
        let read = |value: Option<&str>| {
            let mut env = Env::new(value.map(|value| (SETTING.into(), value.into())));
            let http1 = Http1::read(&mut env);
            env.finish(http1).map_err(|faults| faults.to_string())
        };
        assert_eq!([None, Some(""), Some("own")].map(read), [const { Ok(Http1::Own) }; 3]);
        assert!(read(Some("Hyper")).unwrap_err().contains("ZEROSCALE_HTTP1: `Hyper` is neither"));
        match read(Some("hyper")) {
            Ok(other) => assert!(cfg!(feature = "hyper-http1") && other != Http1::Own),
            Err(fault) => assert!(fault.contains("ZEROSCALE_HTTP1: ") && fault.contains("--features hyper-http1")),
        }
    }
}
