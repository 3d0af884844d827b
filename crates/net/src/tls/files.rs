//! From files to what a handshake needs.

use super::subject::{expiry_of, subject_of};
use super::verifier::TakesAny;
use super::{Password, TlsOptions};
use pando_base::{Error, ErrorCode, Result, ensure};
use pando_env::Env;
use pkcs8::der::Decode;
use pkcs8::{EncryptedPrivateKeyInfoRef, SecretDocument};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::time_provider::TimeProvider;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What the files say.
pub(super) struct Configuration {
    pub(super) server: Arc<ServerConfig>,
    /// Checks clients' certificates; none without authorities.
    pub(super) clients: Option<Arc<dyn ClientCertVerifier>>,
    /// The subject of the certificate that is shown to clients.
    pub(super) subject: Option<String>,
    /// Until when it is good, in milliseconds since 1970.
    pub(super) expires_ms: Option<i64>,
    /// The subject of the certificate that is shown to other members.
    pub(super) member_subject: Option<String>,
}

/// The time of the environment.
struct EnvTime(Env);

impl std::fmt::Debug for EnvTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the environment's clock")
    }
}

impl TimeProvider for EnvTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_millis(self.0.clock().wall_ms())))
    }
}

impl Configuration {
    pub(super) fn read(env: &Env, options: &TlsOptions) -> Result<Configuration> {
        let own = read(env, &options.certificate_key_file)?;
        let chain = certificates(&own, &options.certificate_key_file)?;
        let key = private_key(&own, &options.certificate_key_file, options.certificate_key_password.as_ref())?;
        let member_subject = match &options.member_key_file {
            Some(path) => member_subject(env, path, options.member_key_password.as_ref())?,
            None => chain.first().and_then(|certificate| subject_of(certificate)),
        };
        let subject = chain.first().and_then(|certificate| subject_of(certificate));
        let expires_ms = chain.first().and_then(|certificate| expiry_of(certificate));
        let clients = client_verifier(env, options)?;
        let provider = Arc::new(ring::default_provider());
        let versions = versions(&options.disabled_protocols)?;
        let builder = ServerConfig::builder_with_details(provider, Arc::new(EnvTime(env.clone())))
            .with_protocol_versions(&versions)
            .map_err(|error| refused(&error.to_string()))?;
        let builder = match &clients {
            Some(verifier) if options.allows_invalid_certificates => {
                builder.with_client_cert_verifier(Arc::new(TakesAny(Arc::clone(verifier))))
            }
            Some(verifier) => builder.with_client_cert_verifier(Arc::clone(verifier)),
            None => builder.with_no_client_auth(),
        };
        let server = builder
            .with_single_cert(chain, key)
            .map_err(|error| wrong(&options.certificate_key_file, &error.to_string()))?;
        Ok(Configuration { server: Arc::new(server), clients, subject, expires_ms, member_subject })
    }
}

const ENCRYPTED_BEGIN: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
const ENCRYPTED_END: &str = "-----END ENCRYPTED PRIVATE KEY-----";

/// The subject of the certificate for other members. That its key can be used is seen now, not when the first member comes.
fn member_subject(env: &Env, path: &Path, password: Option<&Password>) -> Result<Option<String>> {
    let pem = read(env, path)?;
    let chain = certificates(&pem, path)?;
    private_key(&pem, path, password)?;
    Ok(chain.first().and_then(|certificate| subject_of(certificate)))
}

/// The key of a file, which a password may protect.
fn private_key(pem: &[u8], path: &Path, password: Option<&Password>) -> Result<PrivateKeyDer<'static>> {
    let text = String::from_utf8_lossy(pem);
    let Some(section) = text.find(ENCRYPTED_BEGIN).and_then(|from| text.get(from..)) else {
        return PrivateKeyDer::from_pem_slice(pem).map_err(|error| wrong(path, &format!("no private key: {error}")));
    };
    let section = section.find(ENCRYPTED_END).and_then(|end| section.get(..end + ENCRYPTED_END.len()));
    let section = section.ok_or_else(|| wrong(path, "the encrypted private key has no end"))?;
    let Some(password) = password else {
        return Err(wrong(path, "the private key is encrypted, and no password is given"));
    };
    let decrypted = SecretDocument::from_pem(section).and_then(|(_, document)| {
        let encrypted = EncryptedPrivateKeyInfoRef::from_der(document.as_bytes())?;
        encrypted.decrypt(&password.0).map_err(|_| pkcs8::der::ErrorKind::Failed.into())
    });
    let key = decrypted.map_err(|_| wrong(path, "the private key cannot be decrypted; is the password right?"))?;
    Ok(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec()).into())
}

fn client_verifier(env: &Env, options: &TlsOptions) -> Result<Option<Arc<dyn ClientCertVerifier>>> {
    let Some(path) = &options.authorities_file else {
        ensure!(
            options.revocations_file.is_none(),
            ErrorCode::InvalidSSLConfiguration,
            "a revocation list needs the authorities that made it: tlsCAFile"
        );
        return Ok(None);
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&read(env, path)?, path)? {
        roots.add(certificate).map_err(|error| wrong(path, &error.to_string()))?;
    }
    let provider = Arc::new(ring::default_provider());
    let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    if let Some(path) = &options.revocations_file {
        let lists: std::result::Result<Vec<_>, _> =
            CertificateRevocationListDer::pem_slice_iter(&read(env, path)?).collect();
        let lists = lists.map_err(|error| wrong(path, &error.to_string()))?;
        builder = builder.with_crls(lists).allow_unknown_revocation_status();
    }
    if options.allows_no_certificate {
        builder = builder.allow_unauthenticated();
    }
    builder.build().map(Some).map_err(|error| refused(&error.to_string()))
}

/// The versions that are spoken. Those before 1.2 never are.
fn versions(disabled: &[String]) -> Result<Vec<&'static SupportedProtocolVersion>> {
    for name in disabled {
        let is_known = matches!(name.as_str(), "TLS1_0" | "TLS1_1" | "TLS1_2" | "TLS1_3" | "none");
        ensure!(is_known, ErrorCode::InvalidSSLConfiguration, "Unrecognized disabledProtocols '{name}'");
    }
    let is_spoken = |name: &str| !disabled.iter().any(|other| other == name);
    let known = [("TLS1_2", &rustls::version::TLS12), ("TLS1_3", &rustls::version::TLS13)];
    let spoken: Vec<_> = known.into_iter().filter(|(name, _)| is_spoken(name)).map(|(_, version)| version).collect();
    ensure!(!spoken.is_empty(), ErrorCode::InvalidSSLConfiguration, "All versions of TLS are disabled");
    Ok(spoken)
}

fn certificates(pem: &[u8], path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let found: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|error| wrong(path, &error.to_string()))?;
    ensure!(!found.is_empty(), ErrorCode::InvalidSSLConfiguration, "{}: no certificate in it", path.display());
    Ok(found)
}

fn read(env: &Env, path: &Path) -> Result<Vec<u8>> {
    env.disk().read_all(path).map_err(|error| wrong(path, &error.to_string()))
}

fn wrong(path: &Path, reason: &str) -> Error {
    refused(&format!("{}: {reason}", path.display()))
}

fn refused(reason: &str) -> Error {
    Error::new(ErrorCode::InvalidSSLConfiguration, reason)
}
