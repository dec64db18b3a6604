//! Starts one process of a pod, and says why when it cannot.

use super::protocol::Spawn;
use super::{MARK, raw};
use crate::process::words;
use rustix::process::{Pid, getpid};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Starts it as leader of a group of its own, with these as stdout and stderr.
/// The error is one sentence for people.
pub(super) fn spawn(spawn: &Spawn, stdout: OwnedFd, stderr: OwnedFd) -> Result<Pid, String> {
    let mut command = Command::new(&spawn.program);
    command
        .args(&spawn.args)
        .envs(spawn.env.iter().map(|(name, value)| (name, value)))
        .env(MARK, &spawn.pod)
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(stderr)
        .process_group(0);
    if let Some(cwd) = &spawn.cwd {
        command.current_dir(cwd);
    }
    raw::bind_to_parent(&mut command, getpid(), spawn.soft_nofile);
    // Dropping the child neither kills nor reaps it: the ward does.
    let child = command.spawn().map_err(|error| explain(spawn, &error))?;
    Ok(Pid::from_child(&child))
}

fn explain(spawn: &Spawn, error: &io::Error) -> String {
    let command = words::command_line(&spawn.program, &spawn.args);
    let cwd = spawn.cwd.as_deref();
    if let Some(cwd) = cwd.filter(|cwd| !cwd.is_dir()) {
        return format!("cannot run `{command}`: no directory {}", cwd.display());
    }
    let program = Path::new(&spawn.program);
    let is_path = program.components().count() > 1;
    let found = cwd.map_or_else(|| program.to_path_buf(), |cwd| cwd.join(program)).exists();
    if error.kind() == io::ErrorKind::NotFound && is_path && found {
        return format!("cannot run `{command}`: the file is there, the interpreter that it names is not");
    }
    format!("cannot run `{command}`: {error}")
}
