//! The steps of a case: each does something and tells what came of it, as
//! rows write it.

pub mod h2;
mod http1;
mod metrics;
mod process;

use super::case::{Op, Step};
use super::stage::Stage;
use serde_json::{Value, json};
use std::time::Duration;

/// Takes one step.
///
/// # Errors
/// When the step makes no sense, or what it needs is not there.
pub async fn take(stage: &mut Stage, step: &Step) -> anyhow::Result<Value> {
    let conn = step.op.conn().unwrap_or_default();
    Ok(match &step.op {
        Op::Send { data, fill, port, tls, .. } => {
            http1::send(stage, conn, data, *fill, port.as_ref(), tls.as_ref()).await?
        }
        Op::Recv { timeout_ms, head, .. } => {
            let stays = !step.expect["connection"].is_null();
            http1::conn(stage, conn)?.recv(*head, stays, millis(*timeout_ms)).await
        }
        Op::RecvHead { timeout_ms, .. } => http1::conn(stage, conn)?.recv_head(millis(*timeout_ms)).await,
        Op::RecvRaw { timeout_ms, bytes, .. } => http1::conn(stage, conn)?.recv_raw(*bytes, millis(*timeout_ms)).await,
        Op::Close { .. } => http1::close(stage, conn).await?,
        Op::HalfClose { .. } => {
            http1::conn(stage, conn)?.half_close().await;
            json!({})
        }
        Op::Connect { port } => http1::connect(port.as_ref()).await?,
        Op::Sleep { ms } => {
            tokio::time::sleep(Duration::from_millis(*ms)).await;
            json!({})
        }
        Op::Signal { signal } => {
            stage.sidecar.signal(signal)?;
            json!({})
        }
        Op::WaitExit { timeout_ms } => process::wait_exit(&mut stage.sidecar, millis(*timeout_ms)).await,
        Op::WaitTick => metrics::wait_tick().await?,
        Op::Stat => metrics::stat(&stage.sidecar).await?,
        Op::Text { port, path, grep } => {
            metrics::text(port.as_ref(), path.as_deref().unwrap_or("/metrics"), grep.as_deref()).await?
        }
        Op::Stdout { grep } => process::lines(stage.sidecar.stdout(), grep.as_deref())?,
        Op::Stderr { grep } => process::lines(stage.sidecar.stderr(), grep.as_deref())?,
        Op::H2(h2) => h2::requests(stage, conn, h2).await?,
        Op::Upstream => json!({ "requests": stage.log.requests(), "connections": stage.log.connections() }),
        Op::UpstreamCount => json!({ "count": stage.log.count() }),
        Op::StopApp => {
            stage.apps.iter().for_each(super::app::Running::stop);
            json!({})
        }
    })
}

/// Whether looking again may tell more: logs lag behind what they log.
pub fn lags(op: &Op) -> bool {
    matches!(op, Op::Stdout { .. } | Op::Stderr { .. } | Op::Upstream | Op::UpstreamCount)
}

fn millis(timeout: Option<u64>) -> Duration {
    Duration::from_millis(timeout.unwrap_or(super::case::TIMEOUT_MS))
}
