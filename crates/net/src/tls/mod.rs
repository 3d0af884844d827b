//! TLS on connections: which of them are encrypted, with what certificate, and whose certificate the client has shown.
//!
//! rustls does the protocol; bytes go through the connections of `env` as before. One port serves both kinds: the first
//! bytes of a client tell whether it begins a handshake. The certificate, the authorities and the revocation list are files
//! that [`Tls::rotate`] reads again; connections that are there keep what they began with.
//!
//! A client's certificate is checked against the authorities. With `allows_invalid_certificates` a connection may have a bad
//! one, but it then says nothing about who the client is.

mod files;
mod stream;
mod subject;
mod verifier;

pub use subject::subject_of;

use files::Configuration;
use pando_base::{Error, ErrorCode, Result, ensure};
use pando_env::{Connection, Env};
use parking_lot::RwLock;
use rustls::pki_types::{CertificateDer, UnixTime};
use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::ready;
use std::time::Duration;
use stream::{Prefixed, TlsConnection};
use tokio::io::ReadBuf;
use tokio_rustls::TlsAcceptor;

/// How long a handshake may take, unless somebody says otherwise.
pub const HANDSHAKE_TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);

/// Which connections are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsMode {
    /// Those whose client wants it; this node itself does not.
    Allow,
    /// Those whose client wants it; this node itself does.
    Prefer,
    /// All.
    Require,
}

/// A password, which no log shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(pub String);

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("<password>")
    }
}

/// How connections are encrypted (`net.tls`).
#[derive(Clone, Debug)]
pub struct TlsOptions {
    /// Which.
    pub mode: TlsMode,
    /// The file with this node's certificate and its key.
    pub certificate_key_file: PathBuf,
    /// What the key in it is encrypted with, if it is.
    pub certificate_key_password: Option<Password>,
    /// The file with the certificate and the key that this node shows to other members; none for the one that it shows to clients.
    pub member_key_file: Option<PathBuf>,
    /// What the key in that is encrypted with, if it is.
    pub member_key_password: Option<Password>,
    /// The file with the certificates of the authorities that clients' are checked against.
    pub authorities_file: Option<PathBuf>,
    /// The file with what these have revoked.
    pub revocations_file: Option<PathBuf>,
    /// A client may have no certificate.
    pub allows_no_certificate: bool,
    /// A client may have a certificate that is not good.
    pub allows_invalid_certificates: bool,
    /// How long a client may take until it has shown what it wants and gone through the handshake; none for ever.
    pub handshake_timeout: Option<Duration>,
    /// Versions that are not spoken: `TLS1_2`, `TLS1_3`; older ones never are.
    pub disabled_protocols: Vec<String>,
}

/// TLS of a node.
pub struct Tls {
    env: Env,
    options: TlsOptions,
    configuration: RwLock<Arc<Configuration>>,
}

/// A connection that can be served.
pub(crate) struct Accepted {
    pub(crate) stream: Box<dyn Connection>,
    /// The subject of the client's certificate, if it is good.
    pub(crate) subject: Option<String>,
}

impl Tls {
    /// Reads the files.
    pub fn load(env: &Env, options: TlsOptions) -> Result<Tls> {
        let configuration = RwLock::new(Arc::new(Configuration::read(env, &options)?));
        Ok(Tls { env: env.clone(), options, configuration })
    }

    /// Reads the files again. If one is not good, everything stays as it was.
    pub fn rotate(&self) -> Result<()> {
        let read = Arc::new(Configuration::read(&self.env, &self.options)?);
        *self.configuration.write() = read;
        Ok(())
    }

    /// The subject of the certificate that this node shows to other members.
    pub fn member_subject(&self) -> Option<String> {
        self.configuration.read().member_subject.clone()
    }

    /// The subject of the certificate that this node shows to clients, until when it is good in milliseconds since 1970, and
    /// whether it knows authorities to check others against.
    pub fn shown_certificate(&self) -> (Option<String>, Option<i64>, bool) {
        let configuration = self.configuration.read();
        (configuration.subject.clone(), configuration.expires_ms, configuration.clients.is_some())
    }

    /// Agrees with the client on what is spoken, within the time for it: one that says nothing does not hold a connection.
    pub(crate) async fn accept(&self, stream: Box<dyn Connection>) -> Result<Accepted> {
        let Some(timeout) = self.options.handshake_timeout else { return self.shake_hands(stream).await };
        tokio::select! {
            biased;
            accepted = self.shake_hands(stream) => accepted,
            () = self.env.clock().sleep(timeout) => {
                let reason = format!("SSL handshake was not over after {} ms", timeout.as_millis());
                Err(Error::new(ErrorCode::NetworkTimeout, reason))
            }
        }
    }

    /// Looks how the client begins, and goes through the handshake with it if it wants one.
    async fn shake_hands(&self, mut stream: Box<dyn Connection>) -> Result<Accepted> {
        let mut first = Vec::with_capacity(FIRST_BYTES);
        read_first(&mut *stream, &mut first).await?;
        let is_handshake = first.starts_with(&HANDSHAKE);
        let stream = Prefixed::new(stream, first);
        if !is_handshake {
            ensure!(
                self.options.mode != TlsMode::Require,
                ErrorCode::SSLHandshakeFailed,
                "The server is configured to only allow SSL connections"
            );
            return Ok(Accepted { stream: Box::new(stream), subject: None });
        }
        let configuration = Arc::clone(&self.configuration.read());
        let acceptor = TlsAcceptor::from(Arc::clone(&configuration.server));
        let refused =
            |error: std::io::Error| Error::new(ErrorCode::SSLHandshakeFailed, format!("SSL handshake failed: {error}"));
        let stream = acceptor.accept(stream).await.map_err(refused)?;
        let subject = stream.get_ref().1.peer_certificates().and_then(|chain| self.good_subject(&configuration, chain));
        Ok(Accepted { stream: Box::new(TlsConnection::new(stream)), subject })
    }

    /// Bad certificates may be let in, but vouch for nobody.
    fn good_subject(&self, configuration: &Configuration, chain: &[CertificateDer<'_>]) -> Option<String> {
        let (own, others) = chain.split_first()?;
        let now = UnixTime::since_unix_epoch(Duration::from_millis(self.env.clock().wall_ms()));
        let verifier = configuration.clients.as_ref()?;
        verifier.verify_client_cert(own, others, now).ok()?;
        subject_of(own)
    }
}

/// How a handshake begins: its kind, and the first part of its version.
const HANDSHAKE: [u8; 2] = [0x16, 0x03];
/// So much is looked at; a message is longer.
const FIRST_BYTES: usize = 2;

async fn read_first(stream: &mut dyn Connection, first: &mut Vec<u8>) -> Result<()> {
    while first.len() < FIRST_BYTES {
        let mut space = [0; FIRST_BYTES];
        let wanted = space.get_mut(..FIRST_BYTES - first.len()).unwrap_or_default();
        let mut buffer = ReadBuf::new(wanted);
        let read = poll_fn(|context| {
            ready!(Pin::new(&mut *stream).poll_read(context, &mut buffer))?;
            std::task::Poll::Ready(Ok::<(), std::io::Error>(()))
        });
        read.await.map_err(|error| Error::new(ErrorCode::HostUnreachable, error.to_string()))?;
        if buffer.filled().is_empty() {
            return Ok(());
        }
        first.extend_from_slice(buffer.filled());
    }
    Ok(())
}
