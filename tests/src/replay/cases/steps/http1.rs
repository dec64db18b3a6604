//! Steps on HTTP/1 connections.

use super::super::case::{Port, TIMEOUT_MS, Tls};
use super::super::client::Conn;
use super::super::latin;
use super::super::stage::Stage;
use super::super::tls;
use anyhow::Context;
use serde_json::{Value, json};
use std::io;
use std::time::Duration;

/// Sends on a connection, which is opened at its first use.
pub(super) async fn send(
    stage: &mut Stage,
    name: &str,
    data: &str,
    fill: Option<usize>,
    port: Option<&Port>,
    secured: Option<&Tls>,
) -> anyhow::Result<Value> {
    let mut told = json!({});
    if !stage.conns.contains_key(name) {
        let trust = stage.mounted.as_ref().map(|mounted| &mounted.trust);
        match Conn::open(Port::number(port)?, secured, trust).await {
            Ok((conn, agreed)) => {
                stage.conns.insert(name.to_owned(), conn);
                told = agreed;
            }
            Err(error) if secured.is_some() => return Ok(json!({ "tls_error": tls::error_name(&error) })),
            Err(error) => return Ok(json!({ "send_error": error.to_string() })),
        }
    }
    let bytes = latin::bytes(data, fill)?;
    if let Err(error) = conn(stage, name)?.send(&bytes, Duration::from_millis(TIMEOUT_MS)).await {
        told["send_error"] = json!(error.to_string());
    }
    Ok(told)
}

/// An open connection.
pub(super) fn conn<'a>(stage: &'a mut Stage, name: &str) -> anyhow::Result<&'a mut Conn> {
    stage.conns.get_mut(name).with_context(|| format!("connection {name} is not open"))
}

pub(super) async fn close(stage: &mut Stage, name: &str) -> anyhow::Result<Value> {
    let conn = stage.conns.remove(name).with_context(|| format!("connection {name} is not open"))?;
    conn.close().await;
    Ok(json!({}))
}

/// Opens and closes a connection.
pub(super) async fn connect(port: Option<&Port>) -> anyhow::Result<Value> {
    Ok(match Conn::open(Port::number(port)?, None, None).await {
        Ok((conn, _)) => {
            conn.close().await;
            json!({ "connected": true })
        }
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            json!({ "connected": false, "error": "ConnectionRefusedError" })
        }
        Err(error) => json!({ "connected": false, "error": error.to_string() }),
    })
}
