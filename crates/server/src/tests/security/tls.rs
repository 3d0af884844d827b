//! Encrypted connections, and certificates as proofs.
//!
//! The certificates beside are for tests only: an authority, a node and a client of it, a client that it has revoked, and a
//! client of the same name whom another authority vouches for.

use super::*;
use pando_env::OpenMode;
use pando_net::{HANDSHAKE_TIMEOUT_DEFAULT, Password, Tls, TlsMode, TlsOptions};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use tokio_rustls::TlsConnector;

const AUTHORITY: &[u8] = include_bytes!("certificates/authority.pem");
const SERVER: &[u8] = include_bytes!("certificates/server.pem");
/// The same, its key encrypted with the password "secret".
const ENCRYPTED: &[u8] = include_bytes!("certificates/encrypted.pem");
const CLIENT: &[u8] = include_bytes!("certificates/client.pem");
const REVOKED: &[u8] = include_bytes!("certificates/revoked.pem");
const STRANGER: &[u8] = include_bytes!("certificates/stranger.pem");
const REVOCATIONS: &[u8] = include_bytes!("certificates/revocations.pem");
/// The subject of the client's certificate.
const SUBJECT: &str = "CN=client,OU=tests,O=Pando\\, Inc.,C=DE";

fn tls(mode: TlsMode) -> TlsOptions {
    TlsOptions {
        mode,
        certificate_key_file: "server.pem".into(),
        certificate_key_password: None,
        member_key_file: None,
        member_key_password: None,
        authorities_file: Some("authority.pem".into()),
        revocations_file: Some("revocations.pem".into()),
        allows_no_certificate: false,
        allows_invalid_certificates: false,
        // Simulated time passes as soon as somebody waits.
        handshake_timeout: None,
        disabled_protocols: Vec::new(),
    }
}

async fn start_encrypted(tls: TlsOptions) -> Fixture {
    start_encrypted_with(tls, secured()).await
}

async fn start_encrypted_with(tls: TlsOptions, mut options: ServerOptions) -> Fixture {
    let simulation = Simulation::new(5);
    let env = simulation.env();
    write_certificates(&env);
    options.net.tls = Some(tls);
    let engine: Arc<dyn Engine> = ModelEngine::open(&ModelDisk::new(), Mode::ReplicaSet).unwrap();
    let control = Arc::new(ProcessControl::new(Arc::new(Nowhere)));
    let machine = Arc::new(SimulatedMachine::new("node1"));
    let started = Server::start(&env, machine, Some(engine), options, Log::silent(), Arc::clone(&control)).await;
    Fixture { simulation, env, server: Arc::new(started.unwrap()), control }
}

fn write_certificates(env: &Env) {
    let files = [("server.pem", SERVER), ("encrypted.pem", ENCRYPTED), ("authority.pem", AUTHORITY)];
    for (name, bytes) in files.into_iter().chain([("revocations.pem", REVOCATIONS), ("member.pem", CLIENT)]) {
        write(env, name, bytes);
    }
}

fn write(env: &Env, name: &str, bytes: &[u8]) {
    let path = Path::new(name);
    let mode = if env.disk().exists(path).unwrap() { OpenMode::ReadWrite } else { OpenMode::CreateNew };
    let file = env.disk().open(path, mode).unwrap();
    file.write_at(bytes, 0).unwrap();
    file.set_length(bytes.len() as u64).unwrap();
}

/// Goes through the handshake as a client with this certificate, and asks something, since TLS 1.3 tells late.
async fn connect(fixture: &Fixture, certificate: Option<&[u8]>) -> std::io::Result<Client> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(AUTHORITY).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let builder = builder.with_root_certificates(roots);
    let config = match certificate {
        None => builder.with_no_client_auth(),
        Some(pem) => {
            let chain = vec![CertificateDer::from_pem_slice(pem).unwrap()];
            builder.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(pem).unwrap()).unwrap()
        }
    };
    let plain = fixture.env.network().connect(ADDRESS).await?;
    let name = ServerName::try_from("node1").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, plain).await?;
    let mut client = Client { stream: Box::new(Encrypted(stream)), last_id: 0 };
    match client.try_ask(doc! { "ping": 1, "$db": "admin" }).await {
        Some(_) => Ok(client),
        None => Err(std::io::ErrorKind::ConnectionReset.into()),
    }
}

/// The client's side of an encrypted connection.
struct Encrypted(tokio_rustls::client::TlsStream<Box<dyn Connection>>);

mod encrypted {
    use super::*;
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

    impl AsyncRead for Encrypted {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_read(context, buffer)
        }
    }

    impl AsyncWrite for Encrypted {
        fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            Pin::new(&mut self.0).poll_write(context, bytes)
        }

        fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_flush(context)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut self.0).poll_shutdown(context)
        }
    }

    impl Connection for Encrypted {
        fn peer_address(&self) -> io::Result<pando_env::Address> {
            self.0.get_ref().0.peer_address()
        }

        fn local_address(&self) -> io::Result<pando_env::Address> {
            self.0.get_ref().0.local_address()
        }
    }
}

fn by_certificate() -> Doc {
    doc! { "authenticate": 1, "mechanism": "MONGODB-X509" }
}

#[test]
fn u10_a_certificate_proves_who_a_client_is() {
    run(async {
        let fixture = start_encrypted(tls(TlsMode::Require)).await;
        let mut client = connect(&fixture, Some(CLIENT)).await.unwrap();
        let create = doc! { "createUser": SUBJECT, "roles": (roles(&[("root", "admin")])) };
        client.ok("$external", create).await;
        assert_eq!(
            client.code("$external", doc! { "authenticate": 1, "mechanism": "MONGODB-X509", "user": "CN=other" }).await,
            18
        );
        client.ok("$external", by_certificate()).await;
        assert_eq!(client.who().await, [SUBJECT]);
        client.ok("d", doc! { "find": "c" }).await;
        let mut other = connect(&fixture, Some(CLIENT)).await.unwrap();
        let speculative = doc! { "authenticate": 1, "mechanism": "MONGODB-X509", "db": "$external" };
        other.ok("admin", doc! { "hello": 1, "speculativeAuthenticate": (speculative) }).await;
        assert_eq!(other.who().await, [SUBJECT]);
        client.make_user("root", roles(&[("root", "admin")])).await;
        connect(&fixture, Some(CLIENT)).await.unwrap().log_in("root", "root").await;
    });
}

#[test]
fn u10_who_must_encrypt_and_show_a_certificate_cannot_do_without() {
    run(async {
        let fixture = start_encrypted(tls(TlsMode::Require)).await;
        let mut plain = fixture.connect().await;
        assert!(plain.try_ask(doc! { "ping": 1, "$db": "admin" }).await.is_none());
        for certificate in [None, Some(REVOKED), Some(STRANGER)] {
            assert!(connect(&fixture, certificate).await.is_err());
        }
        for mode in [TlsMode::Allow, TlsMode::Prefer] {
            let fixture = start_encrypted(TlsOptions { allows_no_certificate: true, ..tls(mode) }).await;
            fixture.connect().await.ok("admin", doc! { "ping": 1 }).await;
            let mut client = connect(&fixture, None).await.unwrap();
            client.ok("$external", doc! { "createUser": SUBJECT, "roles": (roles(&[("root", "admin")])) }).await;
            assert_eq!(client.code("$external", by_certificate()).await, 18);
        }
    });
}

#[test]
fn u10_a_client_that_begins_no_handshake_is_not_waited_for() {
    run(async {
        let impatient = TlsOptions { handshake_timeout: Some(HANDSHAKE_TIMEOUT_DEFAULT), ..tls(TlsMode::Require) };
        let fixture = start_encrypted(impatient).await;
        let begun_ns = fixture.env.clock().monotonic_ns();
        let mut silent = fixture.connect().await;
        assert!(silent.read().await.is_none());
        let waited_ns = fixture.env.clock().monotonic_ns() - begun_ns;
        assert_eq!(u128::from(waited_ns), HANDSHAKE_TIMEOUT_DEFAULT.as_nanos());
        // One that begins and then stops is no better.
        let mut halting = fixture.connect().await;
        halting.send_bytes(&[0x16, 0x03, 0x01]).await;
        assert!(halting.read().await.is_none());
    });
}

#[test]
fn u10_a_bad_certificate_that_is_let_in_proves_nothing() {
    run(async {
        let lenient = TlsOptions { allows_invalid_certificates: true, ..tls(TlsMode::Require) };
        let fixture = start_encrypted(lenient).await;
        let mut client = connect(&fixture, Some(CLIENT)).await.unwrap();
        client.ok("$external", doc! { "createUser": SUBJECT, "roles": (roles(&[("root", "admin")])) }).await;
        client.ok("$external", by_certificate()).await;
        let mut stranger = connect(&fixture, Some(STRANGER)).await.unwrap();
        assert_eq!(stranger.code("$external", by_certificate()).await, 18);
        let claim = doc! { "authenticate": 1, "mechanism": "MONGODB-X509", "user": SUBJECT };
        assert_eq!(stranger.code("$external", claim).await, 18);
    });
}

#[test]
fn u10_certificates_are_changed_while_the_node_runs() {
    run(async {
        let fixture = start_encrypted(tls(TlsMode::Require)).await;
        let mut client = connect(&fixture, Some(CLIENT)).await.unwrap();
        client.ok("$external", doc! { "createUser": SUBJECT, "roles": (roles(&[("root", "admin")])) }).await;
        client.ok("$external", by_certificate()).await;
        // What cannot be read changes nothing.
        write(&fixture.env, "server.pem", b"nonsense");
        assert_eq!(number(&client.on("admin", doc! { "rotateCertificates": 1 }).await, "ok"), 0.0);
        connect(&fixture, Some(CLIENT)).await.unwrap();
        write(&fixture.env, "server.pem", SERVER);
        write(&fixture.env, "authority.pem", STRANGER);
        client.ok("admin", doc! { "rotateCertificates": 1 }).await;
        assert!(connect(&fixture, Some(CLIENT)).await.is_err());
        client.ok("d", doc! { "find": "c" }).await;
    });
}

#[test]
fn u10_the_key_of_the_node_may_be_encrypted() {
    run(async {
        let with_password = |password: Option<&str>| TlsOptions {
            certificate_key_file: "encrypted.pem".into(),
            certificate_key_password: password.map(|password| Password(password.to_owned())),
            ..tls(TlsMode::Require)
        };
        let fixture = start_encrypted(with_password(Some("secret"))).await;
        let mut client = connect(&fixture, Some(CLIENT)).await.unwrap();
        client.ok("admin", doc! { "hello": 1 }).await;
        for (password, reason) in [(None, "no password is given"), (Some("wrong"), "is the password right?")] {
            let refused = Tls::load(&fixture.env, with_password(password)).map(|_| ()).unwrap_err();
            assert!(refused.reason().contains(reason), "{refused}");
        }
    });
}

#[test]
fn u10_certificates_of_members_are_no_users() {
    run(async {
        // The client's certificate has the names of the node's own for other members.
        let encrypted = |mode: &'static str| async move {
            let mut tls = tls(TlsMode::Require);
            tls.member_key_file = Some("member.pem".into());
            let mut options = secured();
            options.parameters.push(("clusterAuthMode".into(), mode.into()));
            start_encrypted_with(tls, options).await
        };
        let login = doc! { "authenticate": 1, "mechanism": "MONGODB-X509", "$db": "$external" };
        let fixture = encrypted("keyFile").await;
        let mut client = connect(&fixture, Some(CLIENT)).await.unwrap();
        assert_eq!(number(&client.ask(login.clone()).await, "code"), 18.0);

        let fixture = encrypted("sendX509").await;
        let mut client = connect(&fixture, Some(CLIENT)).await.unwrap();
        assert_eq!(number(&client.ask(login).await, "ok"), 1.0);
        let status = client.ask(doc! { "connectionStatus": 1, "$db": "admin" }).await;
        assert!(status.to_string().contains("__system"), "{status}");
        let user = doc! { "createUser": SUBJECT, "roles": [], "$db": "$external" };
        assert_eq!(number(&client.ask(user).await, "code"), 2.0);
        let set = |mode: &str| doc! { "setParameter": 1, "clusterAuthMode": mode, "$db": "admin" };
        for wrong in ["keyFile", "sendKeyFile", "none"] {
            assert_eq!(number(&client.ask(set(wrong)).await, "code"), 2.0, "{wrong}");
        }
        assert_eq!(number(&client.ask(set("x509")).await, "ok"), 1.0);
    });
}
