//! `autoscaler/forwarder`: when a stat that cannot be forwarded is tried again.

use super::row::{Miss, Verdict, at, int, list, located, part, same, time};
use policy::compat::Compat;
use policy::forward::{ATTEMPTS_MAX, Outbox};
use serde_json::Value;

/// Where the original's own bound ends. It is not kept there, and kept here,
/// so what comes later is compared only where the stat was delivered before.
const BOUND_MS: i64 = 15_100;

pub(super) fn judge(row: &Value, _mode: Compat) -> Verdict {
    if row["kind"] != "retry" {
        return Err(Miss::NotJudged);
    }
    let delivered_at: u32 = part(&row["ok_at_attempt"])?;
    let within = (1..=ATTEMPTS_MAX).contains(&delivered_at);
    let mut outbox = Outbox::new(1);
    let mut attempts = 0;
    let _ = outbox.put((), at(0));
    for entry in list(&row["attempts_by_ms"])? {
        if !within && int(&entry[0])? > BOUND_MS {
            break;
        }
        let until = time(&entry[0])?;
        while let Some(due) = outbox.due().filter(|due| *due <= until) {
            let Some(parcel) = outbox.next(due) else { break };
            attempts += 1;
            if attempts != delivered_at {
                let _ = outbox.failed(parcel, due);
            }
        }
        located(|| format!("at {} ms", entry[0]), same("attempts", part(&entry[1])?, attempts))?;
    }
    Ok(())
}
