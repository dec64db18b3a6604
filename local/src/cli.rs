//! The command line: every flag, its default, and what it means.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Runs services that sleep at zero processes and wake on the first request.
#[derive(Debug, Parser)]
#[command(name = "zeroscale", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve one command: started on the first request, scaled with the load, gone when idle.
    Run(Box<RunFlags>),
    /// Show the whole loop with a built-in app and load, from zero up and back to zero.
    Demo(DemoFlags),
    /// Show what running instances do, and why.
    Status(StatusFlags),
    /// Show why a service has the pods that it has, or had, and what would change it.
    Why(WhyFlags),
    /// Write down what a running autoscaler takes in and decides.
    Record(RecordFlags),
    /// Decide on a recording once more: what was decided, why, and what differs now.
    Explain(ExplainFlags),
    /// The app that `demo` serves.
    #[command(name = "__sample-app", hide = true)]
    SampleApp,
}

/// What load is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetricFlag {
    /// Requests in progress.
    Concurrency,
    /// Requests per second.
    Rps,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Whose rules apply where the reference's have known flaws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompatFlag {
    /// The better outcome (docs/compatibility.md).
    Better,
    /// Exactly as Knative decides.
    Strict,
}

fn duration(text: &str) -> Result<Duration, String> {
    plumbing::duration::parse(text)
}

#[derive(Debug, Args)]
pub(crate) struct RunFlags {
    /// Name of the service [default: the command's base name]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Address to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    pub(crate) listen: SocketAddr,

    /// Requests at one instance at a time; 0 = no limit
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Scaling")]
    pub(crate) container_concurrency: u32,
    /// Load that one instance can carry [default: the container concurrency, else 100; 200 for rps]
    #[arg(long, value_name = "N", help_heading = "Scaling")]
    pub(crate) target: Option<f64>,
    /// Percentage of that load to aim for
    #[arg(long, value_name = "PERCENT", default_value_t = 70.0, help_heading = "Scaling")]
    pub(crate) target_utilization_percentage: f64,
    /// What load is measured in
    #[arg(long, value_enum, default_value_t = MetricFlag::Concurrency, help_heading = "Scaling")]
    pub(crate) metric: MetricFlag,
    /// Instances that always run
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Scaling")]
    pub(crate) min_scale: u32,
    /// Instances at most; 0 = no bound of its own
    #[arg(long, value_name = "N", default_value_t = 10, help_heading = "Scaling")]
    pub(crate) max_scale: u32,
    /// Instances to start when the first is needed
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Scaling")]
    pub(crate) activation_scale: u32,
    /// Time over which load is averaged (6s to 1h)
    #[arg(long, value_name = "D", default_value = "60s", value_parser = duration, help_heading = "Scaling")]
    pub(crate) window: Duration,
    /// Length of the panic window, as a percentage of the window
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0, help_heading = "Scaling")]
    pub(crate) panic_window_percentage: f64,
    /// Load over the panic window that starts a panic, as a percentage of what is ready
    #[arg(long, value_name = "PERCENT", default_value_t = 200.0, help_heading = "Scaling")]
    pub(crate) panic_threshold_percentage: f64,
    /// How long a lower load must last before instances go
    #[arg(long, value_name = "D", default_value = "0s", value_parser = duration, help_heading = "Scaling")]
    pub(crate) scale_down_delay: Duration,
    /// Spare load to keep before requests bypass the queue; 0 = bypass always, -1 = never
    #[arg(long, value_name = "N", default_value_t = 211.0, allow_negative_numbers = true, help_heading = "Scaling")]
    pub(crate) target_burst_capacity: f64,
    /// Wait between turning idle and stopping the last instance
    #[arg(long, value_name = "D", default_value = "0s", value_parser = duration, help_heading = "Scaling")]
    pub(crate) grace: Duration,
    /// How long the last instance stays after the load ended, at least
    #[arg(long, value_name = "D", default_value = "0s", value_parser = duration, help_heading = "Scaling")]
    pub(crate) retention: Duration,
    /// Instances of all services together; 0 = no bound
    #[arg(long, value_name = "N", default_value_t = 64, help_heading = "Scaling")]
    pub(crate) max_pods: u32,
    /// Whose rules apply where Knative's have known flaws
    #[arg(long, value_enum, default_value_t = CompatFlag::Better, env = "ZEROSCALE_COMPAT", help_heading = "Scaling")]
    pub(crate) compat: CompatFlag,

    /// Ready when a GET of this path answers 200 to 399 [default: when the port accepts]
    #[arg(long, value_name = "PATH", help_heading = "Processes")]
    pub(crate) readiness_path: Option<String>,
    /// A start that takes longer has failed, and is tried again
    #[arg(long, value_name = "D", default_value = "60s", value_parser = duration, help_heading = "Processes")]
    pub(crate) start_timeout: Duration,
    /// From TERM to KILL
    #[arg(long, value_name = "D", default_value = "10s", value_parser = duration, help_heading = "Processes")]
    pub(crate) stop_timeout: Duration,
    /// When zeroscale itself ends: how long requests may take to finish
    #[arg(long, value_name = "D", default_value = "10s", value_parser = duration, help_heading = "Processes")]
    pub(crate) shutdown_timeout: Duration,

    /// Longest time for one request, once an instance has it
    #[arg(long, value_name = "D", default_value = "300s", value_parser = duration, help_heading = "Requests")]
    pub(crate) timeout: Duration,
    /// Longest time to the first byte of an answer [default: off]
    #[arg(long, value_name = "D", value_parser = duration, help_heading = "Requests")]
    pub(crate) response_start_timeout: Option<Duration>,
    /// Longest silence within an answer [default: off]
    #[arg(long, value_name = "D", value_parser = duration, help_heading = "Requests")]
    pub(crate) idle_timeout: Option<Duration>,
    /// Longest life of a websocket or other upgraded connection; 0 = no limit [default: the timeout]
    #[arg(long, value_name = "D", value_parser = duration, help_heading = "Requests")]
    pub(crate) upgrade_timeout: Option<Duration>,
    /// Longest wait for an instance
    #[arg(long, value_name = "D", default_value = "300s", value_parser = duration, help_heading = "Requests")]
    pub(crate) wait_limit: Duration,
    /// Requests held while there is no room, for this service
    #[arg(long, value_name = "N", default_value_t = 10_000, help_heading = "Requests")]
    pub(crate) held_max: usize,
    /// Requests held in all
    #[arg(long, value_name = "N", default_value_t = 20_000, help_heading = "Requests")]
    pub(crate) held_all_max: usize,
    /// MiB of bodies kept of requests held for this service
    #[arg(long, value_name = "MIB", default_value_t = 32, help_heading = "Requests")]
    pub(crate) held_mib_max: usize,
    /// MiB of bodies kept of held requests in all
    #[arg(long, value_name = "MIB", default_value_t = 64, help_heading = "Requests")]
    pub(crate) held_mib_all_max: usize,
    /// Count the wait for an instance toward the limits of a request, as Knative does
    #[arg(long, help_heading = "Requests")]
    pub(crate) charge_wait: bool,
    /// Times per second that one caller may wake a service [default: no bound]
    #[arg(long, value_name = "N", help_heading = "Requests")]
    pub(crate) wakes_per_caller: Option<u32>,
    /// Address ranges whose X-Forwarded-* headers are believed (comma-separated) [default: none]
    #[arg(long, value_name = "CIDRS", env = "ZEROSCALE_TRUSTED_PROXIES", help_heading = "Requests")]
    pub(crate) trusted_proxies: Option<String>,

    /// Threads that serve requests [default: the cores, 4 at most]
    #[arg(long, value_name = "N", help_heading = "Process")]
    pub(crate) workers: Option<usize>,
    /// How log lines are written
    #[arg(long, value_enum, default_value_t = LogFormat::Text, help_heading = "Process")]
    pub(crate) log_format: LogFormat,
    /// error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", default_value = "info", help_heading = "Process")]
    pub(crate) log_level: String,

    /// The command that serves HTTP on the port in $PORT, or on {port} in its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct DemoFlags {
    /// Seconds of load before the way back to zero
    #[arg(long, value_name = "D", default_value = "30s", value_parser = duration)]
    pub(crate) load: Duration,
}

#[derive(Debug, Args)]
pub(crate) struct StatusFlags {
    /// Only this service
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WhyFlags {
    /// A service, or one revision of it
    #[arg(value_name = "SERVICE")]
    pub(crate) service: String,
    /// At that time: 2026-05-04T09:30:00Z (RFC 3339), -5m (five minutes ago), or 9:30 (the last) [default: now]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) at: Option<String>,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Ask the `autoscaler` program with this admin port (host:port), not the running instances
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) admin: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct RecordFlags {
    /// Folder for the files; made if need be [default: zeroscale-recording-TIME]
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: Option<PathBuf>,
    /// Only this service or revision; can be given several times [default: all]
    #[arg(long, value_name = "NAME")]
    pub(crate) service: Vec<String>,
    /// How long [default: until Ctrl-C, or the end of the autoscaler]
    #[arg(long = "for", value_name = "D", value_parser = duration)]
    pub(crate) length: Option<Duration>,
    /// Where it is asked: HOST:PORT of the admin port of `autoscaler`, or the path of an admin socket
    /// [default: the socket of the running zeroscale]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) admin: Option<String>,
    /// MiB of a file; then the next one begins
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub(crate) file_mib: u64,
    /// Files to keep; the oldest go
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) files: u64,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainFlags {
    /// Files of a recording in their order, or its folder
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Decide in this mode [default: as recorded]
    #[arg(long, value_enum)]
    pub(crate) mode: Option<ModeFlag>,
    /// Only this service or revision; can be given several times [default: all]
    #[arg(long, value_name = "NAME")]
    pub(crate) service: Vec<String>,
    /// Decide with another setting, as target=50 or stable-window=30s; can be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Each decision as a line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A mode of decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeFlag {
    /// With the better rules.
    Default,
    /// Exactly as Knative decides.
    Strict,
}
