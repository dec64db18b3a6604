//! Loads from files, or of our own, through the shipped decisions.

use super::{Arguments, Failure, Tally};
use crate::loads::{Clients, Figures, Load, Pair, Setting, read, shapes};
use policy::revision::Metric;
use std::io::Write;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

pub(super) const ABOUT: &str = "loads through the shipped decisions, strict and default mode, simulated time
    FILE...         CSV: a line a second, offered concurrency; optionally the seconds that a pod
                    takes to start, from there on (2); a heading is passed over. None = 20 of our own
    --target N      load that one pod should carry (70)
    --total N       requests that a pod serves at a time (100)
    --metric M      concurrency or rps; target and total are for that (concurrency)
    --window S      stable window in seconds (60)
    --delay S       scale-down-delay in seconds (0)
    --pods N        ready pods at the beginning (0)
    --service S     seconds that a request takes at a pod (1)
    --clients K     open: arrivals of offered/service a second, and what is not served is left over;
                    closed: so many clients, each with one request at a time (open)
    --drain S       seconds for which a removed pod stays (0)
    --restart S     the autoscaler is killed in that second and away for 3 (never)
    --trace yes     each second: offered, wanted and ready pods of both modes
  Of each mode: pod-seconds, seconds with fewer ready pods than the offered load needs, the longest
  time from when it needs a number of pods until so many are ready (time to the needed count), most
  pods wanted, changes of the number wanted, requests that wait on average.
  Checked: the default mode takes at most 1.05 of strict's pod-seconds, and is not later at the
  needed count (with restarts: than strict mode with them, or without, the row `calm`). The model: docs/autoscaler.md";

pub(super) fn run(mut arguments: Arguments, out: &mut dyn Write) -> Result<Tally, Failure> {
    let files = arguments.words();
    let default = Setting::default();
    let target: Option<f64> = positive(&mut arguments, "target")?;
    let total: Option<u32> = arguments.take("total")?;
    let change = Change {
        metric: choice(&mut arguments, "metric", &[("concurrency", Metric::Concurrency), ("rps", Metric::Rps)])?,
        window: positive(&mut arguments, "window")?.map(Duration::from_secs_f64),
        delay: positive(&mut arguments, "delay")?.map(Duration::from_secs_f64),
        pods: arguments.take("pods")?,
        service: positive(&mut arguments, "service")?,
        clients: choice(&mut arguments, "clients", &[("open", Clients::Open), ("closed", Clients::Closed)])?,
        drain: positive(&mut arguments, "drain")?,
    };
    let restart: Option<usize> = arguments.take("restart")?;
    let trace = choice(&mut arguments, "trace", &[("yes", true), ("no", false)])?.unwrap_or(false);
    arguments.finish()?;

    let mut tally = Tally::default();
    let mut judge = |mut load: Load, setting: Setting| -> Result<(), Failure> {
        load.restarts.extend(restart);
        let pair = Pair::of(&load, &change.apply(setting));
        tell(&load, &pair, trace, out)?;
        tally.count(pair.faults().is_empty());
        Ok(())
    };
    for file in &files {
        let setting =
            Setting { target: target.unwrap_or(default.target), total: total.unwrap_or(default.total), ..default };
        judge(read(Path::new(file))?, setting)?;
    }
    if files.is_empty() {
        for shape in shapes() {
            judge(shape.load, shape.setting)?;
        }
    }
    Ok(tally)
}

/// What the command line says of the setting.
struct Change {
    metric: Option<Metric>,
    window: Option<Duration>,
    delay: Option<Duration>,
    pods: Option<u32>,
    service: Option<f64>,
    clients: Option<Clients>,
    drain: Option<f64>,
}

impl Change {
    fn apply(&self, of: Setting) -> Setting {
        Setting {
            metric: self.metric.unwrap_or(of.metric),
            window: self.window.unwrap_or(of.window),
            delay: self.delay.unwrap_or(of.delay),
            pods: self.pods.unwrap_or(of.pods),
            service: self.service.unwrap_or(of.service),
            clients: self.clients.unwrap_or(of.clients),
            drain: self.drain.unwrap_or(of.drain),
            ..of
        }
    }
}

fn positive(arguments: &mut Arguments, name: &str) -> Result<Option<f64>, Failure> {
    match arguments.take::<f64>(name)? {
        Some(number) if !(1e-3..=1e6).contains(&number) => {
            Err(Failure::Usage(format!("--{name} lies between 0.001 and 1000000")))
        }
        number => Ok(number),
    }
}

fn choice<T: Copy>(arguments: &mut Arguments, name: &str, all: &[(&str, T)]) -> Result<Option<T>, Failure> {
    let Some(word) = arguments.take::<Word>(name)? else { return Ok(None) };
    let known = all.iter().find(|(known, _)| *known == word.0).map(|(_, value)| *value);
    known.map(Some).ok_or_else(|| Failure::Usage(format!("--{name} {} makes no sense", word.0)))
}

struct Word(String);

impl FromStr for Word {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Word, Self::Err> {
        Ok(Word(text.to_owned()))
    }
}

fn tell(load: &Load, pair: &Pair, trace: bool, out: &mut dyn Write) -> Result<(), Failure> {
    writeln!(out, "== {}, {} s", load.name, load.seconds.len())?;
    writeln!(
        out,
        "  {:<8}{:>13}{:>12}{:>12}{:>8}{:>9}{:>11}",
        "mode", "pod-seconds", "below need", "to needed", "peak", "changes", "waiting"
    )?;
    let rows = [("strict", &pair.strict), ("calm", &pair.undisturbed), ("default", &pair.better)];
    let shown = rows.iter().filter(|(mode, _)| *mode != "calm" || !load.restarts.is_empty());
    for (mode, of) in shown {
        let Figures { pod_seconds, below_need, to_needed, peak, changes, waiting, .. } = of;
        writeln!(
            out,
            "  {mode:<8}{pod_seconds:>13.1}{below_need:>10.2} s{to_needed:>10.2} s{peak:>8}{changes:>9}{waiting:>11.1}"
        )?;
    }
    if trace {
        let Pair { strict, better, .. } = pair;
        for (at, second) in load.seconds.iter().enumerate() {
            writeln!(
                out,
                "    {at:>6} {:>9.2} strict {:>4}/{:<4} default {:>4}/{:<4}",
                second.offered, strict.wanted[at], strict.ready[at], better.wanted[at], better.ready[at]
            )?;
        }
    }
    for fault in pair.faults() {
        writeln!(out, "  FAILED: {fault}")?;
    }
    Ok(())
}
