//! Environment and flags; a flag stands for its variable, and wins.

use crate::transports::{self, Transports};
use autoscaler::ingest::Limits;
use autoscaler::{AFTER_ANSWERS, Config, schedule};
use plumbing::env::Env;
use plumbing::fault::Faults;
use plumbing::telemetry::Format;
use policy::compat::Compat;
use std::ffi::OsString;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

const SNAPSHOTS: &str = "ZEROSCALE_SNAPSHOT_FILE";
const ORDERS: &str = "ZEROSCALE_ORDER_FILE";
const SCHEDULES: &str = "ZEROSCALE_SCHEDULE_FILE";
const STATE: &str = "ZEROSCALE_STATE_FILE";
const HISTORY: &str = "ZEROSCALE_HISTORY_MIB_MAX";
const STATS: &str = "ZEROSCALE_STATS_LISTEN";
const ADMIN: &str = "ZEROSCALE_ADMIN_LISTEN";
const TICK: &str = "ZEROSCALE_TICK";
const CONNECTIONS: &str = "ZEROSCALE_STATS_CONNECTIONS_MAX";
const STREAMS: &str = "ZEROSCALE_STATS_STREAMS_MAX";
const MESSAGE_BYTES: &str = "ZEROSCALE_STATS_MESSAGE_BYTES_MAX";
const RATE: &str = "ZEROSCALE_STATS_RATE_MAX";
const COMPAT: &str = "ZEROSCALE_COMPAT";
const LOG_FORMAT: &str = "ZEROSCALE_LOG_FORMAT";
const LOG_LEVEL: &str = "ZEROSCALE_LOG_LEVEL";

/// Flag, variable, what it is for.
const FLAGS: [(&str, &str, &str); 22] = [
    ("--snapshots", SNAPSHOTS, "the snapshot file"),
    ("--orders", ORDERS, "the order file"),
    ("--stats-listen", STATS, "stats of activators and sidecars (0.0.0.0:8081)"),
    ("--websocket-listen", transports::WEBSOCKET, "the same from the reference's, and the kubelet (0.0.0.0:8080)"),
    ("--admin-listen", ADMIN, "health, status, why, metrics (0.0.0.0:9090)"),
    ("--tick", TICK, "how often each revision is decided on (2s)"),
    ("--stats-connections-max", CONNECTIONS, "connections of reporters (1000)"),
    ("--stats-streams-max", STREAMS, "streams of reporters (200)"),
    ("--stats-message-bytes-max", MESSAGE_BYTES, "bytes of one message (1048576)"),
    ("--stats-rate-max", RATE, "messages a second on one connection (5000)"),
    ("--websocket-message-bytes-max", transports::MESSAGE_BYTES, "bytes of one message there (16777216)"),
    ("--websocket-silence-max", transports::SILENCE, "how long one may say nothing (60s)"),
    ("--scrape-port", transports::SCRAPE, "where pods are asked for their stats; 0 = not (9090)"),
    ("--scrape-max", transports::SCRAPE_MAX, "pods asked at a time (512)"),
    ("--mesh-mode", transports::MESH, "auto, enabled or disabled (auto)"),
    ("--buckets", transports::BUCKETS, "replicas that share the revisions (1)"),
    ("--state", STATE, "a file for what is to be known after a restart (none)"),
    ("--history-mib-max", HISTORY, "MiB of decisions kept of all revisions together (64)"),
    ("--schedules", SCHEDULES, "a file of schedules for a warm floor (none)"),
    ("--compat", COMPAT, "better or strict (better)"),
    ("--log-format", LOG_FORMAT, "text or json (text)"),
    ("--log-level", LOG_LEVEL, "error, warn, info, debug or trace (info)"),
];

/// What the command line asks for.
#[derive(Debug)]
pub(crate) enum Asked {
    Run(Box<Settings>),
    Help(String),
}

#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) snapshots: PathBuf,
    pub(crate) orders: PathBuf,
    pub(crate) state: Option<PathBuf>,
    pub(crate) stats: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) limits: Limits,
    pub(crate) transports: Transports,
    pub(crate) config: Config,
    pub(crate) log: (Format, tracing::Level),
}

/// Reads both.
///
/// # Errors
/// Every fault, each naming its setting.
pub(crate) fn read(
    arguments: impl Iterator<Item = OsString>,
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Result<Asked, Faults> {
    let mut given: Vec<(OsString, OsString)> = variables.collect();
    let mut odd = Vec::new();
    let mut arguments = arguments.map(|argument| argument.to_string_lossy().into_owned());
    while let Some(argument) = arguments.next() {
        if argument == "--help" || argument == "-h" {
            return Ok(Asked::Help(help()));
        }
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (argument, None),
        };
        match FLAGS.iter().find(|(flag, ..)| *flag == name) {
            None => odd.push(format!("{name}: there is no such flag")),
            Some((_, variable, _)) => match value.or_else(|| arguments.next()) {
                // The last one wins.
                Some(value) => given.push((variable.into(), value.into())),
                None => odd.push(format!("{name}: its value is missing")),
            },
        }
    }
    let mut env = Env::new(given);
    odd.into_iter().for_each(|fault| env.fault(fault));
    let settings = settings(&mut env);
    env.finish(settings).map(|settings| Asked::Run(Box::new(settings)))
}

fn settings(env: &mut Env) -> Settings {
    let default = Limits::default();
    let mut config = Config::default();
    if let Some(compat) = env.own(COMPAT, compat) {
        config.compat = compat;
    }
    if let Some(tick) = env.own(TICK, tick) {
        config.tick = tick;
    }
    let limits = Limits {
        connections: positive(env, CONNECTIONS).unwrap_or(default.connections),
        streams: positive(env, STREAMS).unwrap_or(default.streams),
        message_bytes: positive(env, MESSAGE_BYTES).unwrap_or(default.message_bytes),
        rate: positive(env, RATE).and_then(|rate| rate.try_into().ok()).unwrap_or(default.rate),
    };
    let transports = transports::read(env, config.compat, (limits.connections, limits.rate));
    if transports.scrape.is_some() {
        config.after_reports = AFTER_ANSWERS;
    }
    if let Some(mib) = positive(env, HISTORY) {
        config.history_bytes_max = mib.saturating_mul(1 << 20);
    }
    if let Some(schedules) = env.own(SCHEDULES, |path| schedule::read(Path::new(path))) {
        config.schedules = schedules.into();
    }
    Settings {
        snapshots: file(env, SNAPSHOTS),
        orders: file(env, ORDERS),
        state: Some(env.text(STATE)).filter(|path| !path.is_empty()).map(PathBuf::from),
        stats: env.own_form(STATS, "address").unwrap_or(SocketAddr::from(([0, 0, 0, 0], 8081))),
        admin: env.own_form(ADMIN, "address").unwrap_or(SocketAddr::from(([0, 0, 0, 0], 9090))),
        limits,
        transports,
        config,
        log: (
            env.own(LOG_FORMAT, format).unwrap_or(Format::Text),
            env.own_form(LOG_LEVEL, "log level").unwrap_or(tracing::Level::INFO),
        ),
    }
}

fn file(env: &mut Env, name: &str) -> PathBuf {
    let path = env.text(name);
    if path.is_empty() {
        env.fault(format!("{name}: the path of a file must be given"));
    }
    path.into()
}

fn positive(env: &mut Env, name: &str) -> Option<usize> {
    env.own(name, |text| match text.parse() {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(format!("`{text}` is no number above 0")),
    })
}

fn tick(text: &str) -> Result<Duration, String> {
    let tick = plumbing::duration::parse(text)?;
    let fits = (Duration::from_millis(100)..=Duration::from_secs(60)).contains(&tick);
    if fits { Ok(tick) } else { Err(format!("`{text}` does not lie between 100ms and 60s")) }
}

fn compat(text: &str) -> Result<Compat, String> {
    match text {
        "better" => Ok(Compat::Better),
        "strict" => Ok(Compat::Strict),
        _ => Err(format!("`{text}` is neither better nor strict")),
    }
}

fn format(text: &str) -> Result<Format, String> {
    match text {
        "text" => Ok(Format::Text),
        "json" => Ok(Format::Json),
        _ => Err(format!("`{text}` is neither text nor json")),
    }
}

fn help() -> String {
    let mut text = String::from("autoscaler: says how many pods each revision of a snapshot file should have\n\n");
    for (flag, variable, what) in FLAGS {
        let _ = writeln!(text, "  {flag:<31} {what}\n  {:<31} or {variable}", "");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(flags: &[&str], variables: &[(&str, &str)]) -> Result<Asked, Faults> {
        let variables = variables.iter().map(|(name, value)| (name.into(), value.into()));
        super::read(flags.iter().map(OsString::from), variables)
    }

    #[test]
    fn a_flag_wins_over_its_variable() {
        let variables = [
            (SNAPSHOTS, "a"),
            (ORDERS, "b"),
            (RATE, "7"),
            (COMPAT, "strict"),
            ("POD_NAME", "autoscaler-1"),
            ("POD_IP", "10.0.0.1"),
        ];
        let Ok(Asked::Run(settings)) = read(&["--snapshots", "c", "--tick=500ms"], &variables) else {
            panic!("no fault")
        };
        assert_eq!((settings.snapshots.to_str(), settings.orders.to_str()), (Some("c"), Some("b")));
        assert_eq!((settings.limits.rate, settings.config.compat), (7, Compat::Strict));
        assert_eq!(settings.config.tick, Duration::from_millis(500));
    }

    #[test]
    fn all_faults_are_told_by_name_together() {
        let variables = [(RATE, "0"), (STATS, "nowhere"), (COMPAT, "x"), (TICK, "1h"), (LOG_LEVEL, "loud")];
        let faults = read(&["--colour", "red", "--orders"], &variables).unwrap_err().to_string();
        for name in [RATE, STATS, COMPAT, TICK, LOG_LEVEL, SNAPSHOTS, ORDERS, "--colour", "--orders"] {
            assert!(faults.contains(&format!("{name}: ")), "{name}: {faults}");
        }
    }
}
