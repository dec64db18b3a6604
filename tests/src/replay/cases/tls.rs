//! Certificates of the cases, and clients that speak TLS.

use super::case::Tls;
use anyhow::Context;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{AlertDescription, ClientConfig, ProtocolVersion, RootCertStore, SupportedProtocolVersion};
use serde_json::{Value, json};
use std::io;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The name in the certificate.
const NAME: &str = "x.local";

/// A folder with `tls.crt` and `tls.key`, and the trust in what is there.
pub struct Mounted {
    folder: TempDir,
    /// What a client must believe.
    pub trust: Trust,
}

/// The one certificate that a client accepts.
pub struct Trust(CertificateDer<'static>);

impl Mounted {
    /// Makes a certificate and its key.
    ///
    /// # Errors
    /// When they cannot be made or written.
    pub fn new() -> anyhow::Result<Mounted> {
        let folder = TempDir::with_prefix("zeroscale-certificates-")?;
        Ok(Mounted { trust: write_pair(folder.path())?, folder })
    }

    /// Puts another pair in their place; the trust in the one before.
    ///
    /// # Errors
    /// When it cannot be made or written.
    pub fn renew(&mut self) -> anyhow::Result<Trust> {
        let trust = write_pair(self.folder.path())?;
        Ok(std::mem::replace(&mut self.trust, trust))
    }

    /// Where they are.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// Makes a certificate and its key, and writes both.
fn write_pair(folder: &Path) -> anyhow::Result<Trust> {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).context("making a certificate")?;
    let write = |name: &str, label: &str, der: &[u8]| std::fs::write(folder.join(name), pem(label, der));
    write("tls.crt", "CERTIFICATE", made.cert.der())?;
    write("tls.key", "PRIVATE KEY", &made.signing_key.serialize_der())?;
    Ok(Trust(made.cert.der().clone()))
}

/// Speaks TLS over `stream`; what was agreed is told as rows write it.
///
/// # Errors
/// When nothing can be agreed.
pub async fn secure(
    stream: TcpStream,
    wanted: &Tls,
    trust: Option<&Trust>,
) -> io::Result<(TlsStream<TcpStream>, Value)> {
    let config = config(wanted, trust).map_err(io::Error::other)?;
    let name = ServerName::try_from(NAME).map_err(io::Error::other)?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    let (_, agreed) = stream.get_ref();
    let version = match agreed.protocol_version() {
        Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
        Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
        _ => "unknown",
    };
    let alpn = agreed.alpn_protocol().map(|protocol| String::from_utf8_lossy(protocol).into_owned());
    let told = json!({ "tls_version": version, "alpn": alpn });
    Ok((stream, told))
}

/// What rows call a failure.
pub fn error_name(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::AlertReceived(AlertDescription::ProtocolVersion)) => {
            "TLSV1_ALERT_PROTOCOL_VERSION".to_owned()
        }
        _ => error.to_string(),
    }
}

fn config(wanted: &Tls, trust: Option<&Trust>) -> anyhow::Result<ClientConfig> {
    const ALL: &[&SupportedProtocolVersion] = &[&TLS12, &TLS13];
    const OLD: &[&SupportedProtocolVersion] = &[&TLS12];
    let versions = if wanted.max.as_deref() == Some("1.2") { OLD } else { ALL };
    let Trust(certificate) = trust.context("malformed row: TLS without `tls`")?;
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone())?;
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(versions)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = wanted.alpn.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    Ok(config)
}

fn pem(label: &str, der: &[u8]) -> String {
    use base64::Engine;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let mut lines = vec![format!("-----BEGIN {label}-----")];
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, more) = rest.split_at(rest.len().min(64));
        lines.push(line.to_owned());
        rest = more;
    }
    lines.push(format!("-----END {label}-----\n"));
    lines.join("\n")
}
