//! TLS, with certificates that openssl makes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use anabranch_recipe::Functions;
use anabranch_server::{Client, ServerAddress, Settings, Tls};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::support::{Server, folder, soon};

/// Writes a certificate for localhost that vouches for itself, and its key.
fn certificate(folder: &Path) -> [PathBuf; 2] {
    let [key, certificate] = ["key.pem", "certificate.pem"].map(|name| folder.join(name));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
        ])
        .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    [certificate, key]
}

async fn handshake(
    server: &Server,
    certificate: &Path,
    protocol: &str,
) -> std::io::Result<TlsStream<tokio::net::TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let name = ServerName::try_from("localhost").unwrap();
    soon(TlsConnector::from(Arc::new(config)).connect(name, server.connect().await)).await
}

#[tokio::test]
async fn both_protocols_over_tls() {
    let folder = folder("tls");
    let [certificate, key] = certificate(&folder);
    let tls = Tls::open(&certificate, &key).unwrap();
    let server =
        Server::set_up(Functions::builtin(), Settings::default(), |service| service.with_tls(tls)).await;
    let url = server.url.replace("http://127.0.0.1", "https://localhost");
    let address = ServerAddress { authorities: Some(certificate.clone()), ..ServerAddress::new(&url) };
    let client = Client::connect_to(&address).await.unwrap();
    let put = client.put("over TLS").await.unwrap();
    assert_eq!(client.get(put.address, 0..u64::MAX, None).await.unwrap().bytes().await.unwrap(), "over TLS");

    let mut stream = handshake(&server, &certificate, "http/1.1").await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    // A server need not say goodbye.
    let _ = soon(stream.read_to_string(&mut answer)).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");

    // Whoever is not vouched for, or speaks without TLS, gets nothing.
    assert!(Client::connect(&url).await.is_err());
    assert!(
        Client::connect(&server.url).await.is_err() || {
            let plain = Client::connect(&server.url).await.unwrap();
            plain.status().await.is_err()
        }
    );
}

/// Loopback names belong to all programs of a machine.
#[tokio::test]
async fn browsers_are_told_to_use_only_tls_unless_the_host_is_loopback() {
    let folder = folder("tls_only");
    let [certificate, key] = certificate(&folder);
    let tls = Tls::open(&certificate, &key).unwrap();
    let settings = Settings { allowed_hosts: vec!["shop.example".parse().unwrap()], ..Settings::default() };
    let server = Server::set_up(Functions::builtin(), settings, |service| service.with_tls(tls)).await;
    for (host, is_told) in [("shop.example", true), ("localhost", false)] {
        let mut stream = handshake(&server, &certificate, "http/1.1").await.unwrap();
        let request = format!("GET /healthz HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let _ = soon(stream.read_to_string(&mut answer)).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert_eq!(answer.contains("strict-transport-security: max-age=31536000\r\n"), is_told, "{answer}");
    }
}

#[tokio::test]
async fn a_certificate_is_replaced_while_the_server_runs() {
    let folder = folder("tls_again");
    let [file, key] = certificate(&folder);
    let tls = Tls::open(&file, &key).unwrap();
    let server =
        Server::set_up(Functions::builtin(), Settings::default(), |service| service.with_tls(tls)).await;
    let shown = async || {
        let bytes = std::fs::read(&file).unwrap();
        let stream = handshake(&server, &file, "h2").await.ok()?;
        let shown = stream.get_ref().1.peer_certificates().unwrap()[0].clone();
        Some(shown == CertificateDer::from_pem_slice(&bytes).unwrap())
    };
    assert_eq!(shown().await, Some(true));
    certificate(&folder);
    server.clock.advance(Duration::from_secs(10));
    assert_eq!(shown().await, Some(true));
    let good = std::fs::read(&file).unwrap();
    let kept = folder.join("kept.pem");
    std::fs::write(&kept, &good).unwrap();
    std::fs::write(&key, "nonsense").unwrap();
    server.clock.advance(Duration::from_secs(10));
    assert!(handshake(&server, &kept, "h2").await.is_ok(), "the certificate before stays");
}

#[test]
fn wrong_files_are_told() {
    let folder = folder("tls_wrong");
    let [file, key] = certificate(&folder);
    let told = |certificate: &Path, key: &Path| Tls::open(certificate, key).unwrap_err().to_string();
    assert!(told(&folder.join("none.pem"), &key).contains("No such file"));
    assert!(told(&key, &key).contains("found no certificate"));
    assert!(told(&file, &file).contains("not a private key as PEM"));
    let other = folder.join("other");
    std::fs::create_dir_all(&other).unwrap();
    let [_, other_key] = certificate(&other);
    assert!(told(&file, &other_key).contains("does not fit the certificate"));
}
