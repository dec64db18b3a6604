//! `zeroscale record`: what a running autoscaler takes in and decides, as files
//! that `zeroscale explain` reads.
//!
//! Ends by itself after `--for`, at Ctrl-C or TERM, or with the autoscaler: exit
//! 0. When the connection breaks off, or nothing can be recorded: exit 1. What
//! came until then is in the files.

mod client;
pub(crate) mod files;

use crate::cli::RecordFlags;
use crate::run;
use anyhow::Context;
use autoscaler::record::Ask;
use files::{Counts, Files};
use http_body_util::BodyExt;
use plumbing::clock;
use plumbing::signals::Signals;
use std::future::pending;
use std::io::Write;
use std::path::PathBuf;
use std::pin::pin;
use std::process::ExitCode;

pub(crate) fn main(flags: &RecordFlags) -> ExitCode {
    match run::on_runtime(record(flags)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("zeroscale: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn record(flags: &RecordFlags) -> anyhow::Result<()> {
    let mut signals = Signals::new()?;
    let ask = Ask { services: flags.service.clone(), file_bytes: flags.file_mib << 20 };
    let port = client::find(flags.admin.as_deref(), &flags.service).await?;
    let mut lines = client::begin(&port, &ask).await?;
    let folder = flags.out.clone().unwrap_or_else(by_time);
    let mut files = Files::new(&folder, usize::try_from(flags.files)?)?;
    eprintln!("zeroscale: recording into {}; Ctrl-C ends it", folder.display());
    let mut over = pin!(async {
        match flags.length {
            Some(length) => tokio::time::sleep(length).await,
            None => pending().await,
        }
    });
    let ended = loop {
        tokio::select! {
            frame = lines.frame() => match frame {
                Some(Ok(frame)) => files.write(frame.data_ref().map_or(&[][..], |data| data))?,
                Some(Err(error)) => break Err(anyhow::Error::from(error).context("the recording broke off")),
                None => break Ok(()),
            },
            () = &mut over => break Ok(()),
            _ = signals.next() => break Ok(()),
        }
    };
    files.close()?;
    let Counts { files, lines, bytes, gaps } = files.counts;
    let gaps = if gaps == 0 { "without a gap".to_owned() } else { format!("{gaps} gaps, since writing was too slow") };
    // Whoever started us may have closed it.
    let _ = writeln!(
        std::io::stdout(),
        "{lines} lines, {bytes} bytes, {files} {} in {}, {gaps}",
        if files == 1 { "file" } else { "files" },
        folder.display(),
    );
    ended.context("what came before is kept")
}

fn by_time() -> PathBuf {
    format!("zeroscale-recording-{}", clock::now().unix_seconds()).into()
}
