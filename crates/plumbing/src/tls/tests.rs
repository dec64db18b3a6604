//! Handshakes over real sockets, and certificates that change meanwhile.

use super::current::Found;
use super::*;
use base64::prelude::{BASE64_STANDARD, Engine};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ProtocolVersion, RootCertStore};
use std::fs;
use std::os::unix::fs::symlink;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsConnector;

const NAME: &str = "x.local";

/// A certificate with its key, as PEM.
struct Made {
    der: CertificateDer<'static>,
    certificate: String,
    key: String,
}

fn made() -> Made {
    let rcgen::CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed([NAME.to_owned()]).unwrap();
    let (certificate, key) = (pem("CERTIFICATE", cert.der()), pem("PRIVATE KEY", &signing_key.serialize_der()));
    Made { der: cert.der().clone(), certificate, key }
}

fn pem(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", BASE64_STANDARD.encode(der))
}

fn write(folder: &Path, made: &Made) {
    fs::write(folder.join("tls.crt"), &made.certificate).unwrap();
    fs::write(folder.join("tls.key"), &made.key).unwrap();
}

/// A folder with `made` in it, looked at each time.
fn mounted(made: &Made) -> (TempDir, Settings) {
    let folder = TempDir::new().unwrap();
    write(folder.path(), made);
    let settings = Settings { check_every: Duration::ZERO, ..Settings::of(folder.path()) };
    (folder, settings)
}

fn wheel() -> Wheel {
    let wheel = Wheel::new();
    tokio::spawn(wheel.clone().drive());
    wheel
}

/// A client's end and ours.
async fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    (client, listener.accept().await.unwrap().0)
}

/// What a client wants.
struct Wants<'a> {
    shown: &'a CertificateDer<'static>,
    versions: &'a [&'static SupportedProtocolVersion],
    alpn: &'a [&'a str],
}

impl<'a> Wants<'a> {
    fn of(shown: &'a CertificateDer<'static>) -> Wants<'a> {
        Wants { shown, versions: rustls::ALL_VERSIONS, alpn: &[] }
    }
}

/// A client that takes no other certificate than the one wanted, and says `hi`.
async fn shake(acceptor: &Acceptor, wants: &Wants<'_>) -> io::Result<(Option<ProtocolVersion>, Option<Vec<u8>>)> {
    let mut roots = RootCertStore::empty();
    roots.add(wants.shown.clone()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(wants.versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = wants.alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    let (client, ours) = pair().await;
    let connector = TlsConnector::from(Arc::new(config));
    let asked = async {
        let mut stream = connector.connect(ServerName::try_from(NAME).unwrap(), client).await?;
        stream.write_all(b"hi").await?;
        let mut answer = [0; 2];
        stream.read_exact(&mut answer).await?;
        assert_eq!(&answer, b"ho");
        let session = stream.get_ref().1;
        Ok((session.protocol_version(), session.alpn_protocol().map(<[u8]>::to_vec)))
    };
    let wheel = wheel();
    let served = async {
        let mut stream = acceptor.accept(ours, &wheel).await?;
        let mut said = [0; 2];
        stream.read_exact(&mut said).await?;
        stream.write_all(b"ho").await?;
        stream.flush().await?;
        io::Result::Ok(())
    };
    let (asked, served) = tokio::join!(asked, served);
    asked.and_then(|asked| served.map(|()| asked))
}

#[tokio::test]
async fn version_and_protocol_are_agreed_on_as_settings_allow() {
    let made = made();
    let (_folder, settings) = mounted(&made);
    let newest = Acceptor::new(&settings).unwrap();
    for (alpn, agreed) in [
        (&[][..], None),
        (&["http/1.1"], Some("http/1.1")),
        (&["http/1.1", "h2"], Some("h2")),
        (&["x", "h2"], Some("h2")),
    ] {
        let got = shake(&newest, &Wants { alpn, ..Wants::of(&made.der) }).await.unwrap();
        let agreed = agreed.map(|name: &str| name.as_bytes().to_vec());
        assert_eq!(got, (Some(ProtocolVersion::TLSv1_3), agreed), "{alpn:?}");
    }
    let old = Wants { versions: &[&TLS12], ..Wants::of(&made.der) };
    let refused = shake(&newest, &old).await.unwrap_err();
    assert!(refused.to_string().contains("ProtocolVersion"), "{refused}");
    let suite = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384".to_owned();
    let (min, cipher_suites) = (Version::Tls12, vec![suite]);
    let both = Acceptor::new(&Settings { min, cipher_suites, curves: vec!["P-256".to_owned()], ..settings.clone() });
    let both = both.unwrap();
    assert_eq!(shake(&both, &old).await.unwrap().0, Some(ProtocolVersion::TLSv1_2));
    assert_eq!(shake(&both, &Wants::of(&made.der)).await.unwrap().0, Some(ProtocolVersion::TLSv1_3));
    let max = Version::Tls12;
    let oldest = Acceptor::new(&Settings { min, max, ..settings }).unwrap();
    assert_eq!(shake(&oldest, &Wants::of(&made.der)).await.unwrap().0, Some(ProtocolVersion::TLSv1_2));
}

#[tokio::test]
async fn what_is_of_no_use_at_the_start_is_told() {
    let (one, other) = (made(), made());
    let (folder, settings) = mounted(&Made { key: other.key.clone(), ..made() });
    let fault = |settings: &Settings| Acceptor::new(settings).map(drop).unwrap_err();
    assert!(fault(&settings).contains("do not make a pair"), "{}", fault(&settings));
    write(folder.path(), &Made { certificate: String::new(), ..made() });
    assert!(fault(&settings).contains("no certificate"), "{}", fault(&settings));
    write(folder.path(), &Made { key: "nonsense".to_owned(), ..one });
    assert!(fault(&settings).contains("the key cannot be read"), "{}", fault(&settings));
    fs::remove_file(folder.path().join("tls.key")).unwrap();
    assert!(fault(&settings).contains("tls.key: No such file"), "{}", fault(&settings));
    let curves = vec!["P-521".to_owned()];
    assert!(fault(&Settings { curves, ..settings }).contains("none of these curves"));
}

/// A folder as Kubernetes mounts a secret: the names lead through one link,
/// which is swapped.
#[tokio::test]
async fn a_folder_that_is_swapped_is_noticed_by_the_next_client() {
    let (one, other) = (made(), made());
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (version, made) in [("..1", &one), ("..2", &other)] {
        fs::create_dir(at(version)).unwrap();
        write(&at(version), made);
    }
    symlink("..1", at("..data")).unwrap();
    for name in ["tls.crt", "tls.key"] {
        symlink(Path::new("..data").join(name), at(name)).unwrap();
    }
    let acceptor = Acceptor::new(&Settings { check_every: Duration::ZERO, ..Settings::of(folder.path()) }).unwrap();
    assert!(shake(&acceptor, &Wants::of(&one.der)).await.is_ok());
    symlink("..2", at("..data_tmp")).unwrap();
    fs::rename(at("..data_tmp"), at("..data")).unwrap();
    assert!(shake(&acceptor, &Wants::of(&other.der)).await.is_ok());
    assert!(shake(&acceptor, &Wants::of(&one.der)).await.is_err(), "the old one is gone");
}

#[tokio::test]
async fn a_broken_pair_leaves_the_old_one_and_is_told_once() {
    let (one, other) = (made(), made());
    let (folder, settings) = mounted(&one);
    let acceptor = Acceptor::new(&settings).unwrap();
    let look = || acceptor.shared.current.look();
    assert_eq!(look(), Found::Same);
    let broken = [
        Made { key: one.key.clone(), ..made() },
        Made { certificate: "nonsense".to_owned(), ..made() },
        Made { key: String::new(), ..made() },
    ];
    for broken in &broken {
        write(folder.path(), broken);
        assert_eq!([look(), look(), look()], [Found::Broken, Found::Same, Found::Same]);
        assert!(shake(&acceptor, &Wants::of(&one.der)).await.is_ok());
    }
    fs::remove_file(folder.path().join("tls.crt")).unwrap();
    assert_eq!([look(), look()], [Found::Broken, Found::Same]);
    assert!(shake(&acceptor, &Wants::of(&one.der)).await.is_ok());
    write(folder.path(), &other);
    assert_eq!([look(), look()], [Found::Another, Found::Same]);
    assert!(shake(&acceptor, &Wants::of(&other.der)).await.is_ok());
}

#[tokio::test]
async fn changes_within_one_tick_of_the_file_systems_clock_are_seen() {
    let (folder, settings) = mounted(&made());
    let acceptor = Acceptor::new(&settings).unwrap();
    for round in 0..50 {
        let made = made();
        write(folder.path(), &made);
        assert_eq!(acceptor.shared.current.look(), Found::Another, "round {round}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_files_are_looked_at_only_now_and_then() {
    let (folder, settings) = mounted(&made());
    let acceptor = Acceptor::new(&Settings { check_every: CHECK_EVERY_STRICT, ..settings }).unwrap();
    let look = || acceptor.shared.current.look();
    write(folder.path(), &made());
    tokio::time::advance(Duration::from_secs(59)).await;
    assert_eq!(look(), Found::Same);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(look(), Found::Another);
    write(folder.path(), &made());
    assert_eq!(look(), Found::Same);
}

#[tokio::test]
async fn a_silent_client_is_cut_off_and_gives_its_place_back() {
    let made = made();
    let (_folder, settings) = mounted(&made);
    let limits = Settings { handshake_timeout: Duration::from_millis(100), handshakes_max: 2, ..settings };
    let acceptor = Acceptor::new(&limits).unwrap();
    let wheel = wheel();
    let mut silent = Vec::new();
    let mut ours = Vec::new();
    for said in [&b""[..], b"\x16\x03\x01", b""] {
        let (mut client, our_end) = pair().await;
        client.write_all(said).await.unwrap();
        silent.push(client);
        ours.push(our_end);
    }
    let mut accept = |acceptor: &Acceptor| {
        let (acceptor, our_end, wheel) = (acceptor.clone(), ours.remove(0), wheel.clone());
        tokio::spawn(async move { acceptor.accept(our_end, &wheel).await.map(drop).unwrap_err().kind() })
    };
    let (first, second) = (accept(&acceptor), accept(&acceptor));
    while acceptor.under_way() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(accept(&acceptor).await.unwrap(), ErrorKind::ResourceBusy);
    assert_eq!(silent[2].read(&mut [0; 8]).await.unwrap_or(0), 0, "closed at once");
    assert_eq!((first.await.unwrap(), second.await.unwrap()), (ErrorKind::TimedOut, ErrorKind::TimedOut));
    assert_eq!(silent[0].read(&mut [0; 8]).await.unwrap_or(0), 0);
    assert_eq!(acceptor.under_way(), 0);
    assert!(shake(&acceptor, &Wants::of(&made.der)).await.is_ok());
}

#[tokio::test]
async fn http_to_the_tls_port_is_answered_in_http_and_nothing_else_is() {
    let (_folder, settings) = mounted(&made());
    let acceptor = Acceptor::new(&settings).unwrap();
    let wheel = wheel();
    let long = format!("PUT / HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n", "y".repeat(30_000));
    for (said, answered) in [
        ("GET / HTTP/1.1\r\nhost: a\r\n\r\n", true),
        ("OPTIONS * HTTP/1.1\r\n", true),
        (long.as_str(), true),
        ("GETTY", false),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", false),
        ("quit\r\n", false),
    ] {
        let (mut client, ours) = pair().await;
        let accepted = acceptor.accept(ours, &wheel);
        let asked = async {
            client.write_all(said.as_bytes()).await.unwrap();
            let mut answer = Vec::new();
            let _ = client.read_to_end(&mut answer).await;
            String::from_utf8_lossy(&answer).into_owned()
        };
        let (accepted, answer) = tokio::join!(accepted, asked);
        assert!(accepted.is_err(), "{said:.20}");
        let expected = "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n";
        assert_eq!(answer == expected, answered, "{said:.20}: {answer:?}");
    }
}
