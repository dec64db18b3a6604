//! A part of a processor for some processes, by control groups.

use anyhow::{Context, bail};
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = "/sys/fs/cgroup";
const PERIOD_US: u64 = 100_000;

/// A group; it goes when it is dropped, if its processes have gone.
pub(crate) struct Quota(PathBuf);

impl Quota {
    /// Gives these processes, all threads of each together, so much of a processor.
    pub(crate) fn of(name: &str, share: f64, processes: &[u32]) -> anyhow::Result<Quota> {
        let quota = (share * PERIOD_US as f64) as u64;
        let root = Path::new(ROOT);
        let controllers = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
        let group = if controllers.split_ascii_whitespace().any(|controller| controller == "cpu") {
            // Refused where it is on already, or where we are not to decide.
            let _ = fs::write(root.join("cgroup.subtree_control"), "+cpu");
            let group = made(root.join(name))?;
            fs::write(group.join("cpu.max"), format!("{quota} {PERIOD_US}")).context("cpu.max cannot be written")?;
            group
        } else if root.join("cpu/cpu.cfs_quota_us").is_file() || root.join("cpu/cgroup.procs").is_file() {
            let group = made(root.join("cpu").join(name))?;
            fs::write(group.join("cpu.cfs_period_us"), PERIOD_US.to_string())?;
            fs::write(group.join("cpu.cfs_quota_us"), quota.to_string())?;
            group
        } else {
            bail!("no control group for processors under {ROOT}");
        };
        for process in processes {
            fs::write(group.join("cgroup.procs"), process.to_string())?;
        }
        Ok(Quota(group))
    }
}

fn made(group: PathBuf) -> anyhow::Result<PathBuf> {
    // Left by a run that was killed.
    let _ = fs::remove_dir(&group);
    fs::create_dir(&group).with_context(|| format!("control groups cannot be made: {}", group.display()))?;
    Ok(group)
}

impl Drop for Quota {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
