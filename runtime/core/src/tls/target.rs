//! Whom a TLS connection must prove to be.

use std::sync::Arc;
use std::time::Duration;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// Whom the connections to one target must prove to be, and by what.
#[derive(Clone, Debug)]
pub struct TlsTarget {
    pub(super) name: ServerName<'static>,
    pub(super) config: Arc<ClientConfig>,
    verified: bool,
}

/// A TLS target cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsSetupError {
    /// Neither a DNS name nor an IP address.
    #[error("{0:?} is no name that a certificate can have")]
    Name(String),
    /// Among the given certificates none can be a root.
    #[error("none of {0} root certificates can be used")]
    NoRoots(usize),
    /// Not PEM, or PEM that holds no certificate.
    #[error("no certificate in PEM: {0}")]
    Pem(String),
    /// This build has no TLS, or its provider lacks a protocol version.
    #[error("TLS is not available: {0}")]
    Unavailable(String),
}

impl TlsTarget {
    /// A target whose certificate must lead to one of `roots` (DER) and be valid for `name` at
    /// `wall_clock_s`, seconds since 1970. Roots that cannot be read are passed over, as systems
    /// carry some, but at least one must be left.
    pub fn verified<R: AsRef<[u8]>>(
        name: &str,
        roots: impl IntoIterator<Item = R>,
        wall_clock_s: u64,
    ) -> Result<TlsTarget, TlsSetupError> {
        let mut store = RootCertStore::empty();
        let given = roots
            .into_iter()
            .map(|root| CertificateDer::from(root.as_ref().to_vec()));
        let (usable, unusable) = store.add_parsable_certificates(given);
        if usable == 0 {
            return Err(TlsSetupError::NoRoots(unusable));
        }
        let config = versions(wall_clock_s)?
            .with_root_certificates(store)
            .with_no_client_auth();
        TlsTarget::new(name, config, true)
    }

    /// A target of which nothing is asked but that it holds the key of the certificate it shows,
    /// whatever that certificate says.
    pub fn insecure(name: &str, wall_clock_s: u64) -> Result<TlsTarget, TlsSetupError> {
        let algorithms = ring::default_provider().signature_verification_algorithms;
        let config = versions(wall_clock_s)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate { algorithms }))
            .with_no_client_auth();
        TlsTarget::new(name, config, false)
    }

    /// Whether certificates are verified.
    pub fn is_verified(&self) -> bool {
        self.verified
    }

    fn new(name: &str, mut config: ClientConfig, verified: bool) -> Result<Self, TlsSetupError> {
        config.resumption = Resumption::disabled();
        let name = ServerName::try_from(name.to_owned())
            .map_err(|_| TlsSetupError::Name(name.to_owned()))?;
        Ok(TlsTarget {
            name,
            config: Arc::new(config),
            verified,
        })
    }
}

/// The certificates (DER) of a PEM text.
pub fn certificates_from_pem(pem: &[u8]) -> Result<Vec<Vec<u8>>, TlsSetupError> {
    let certificates = CertificateDer::pem_slice_iter(pem)
        .map(|certificate| certificate.map(|der| der.as_ref().to_vec()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| TlsSetupError::Pem(error.to_string()))?;
    if certificates.is_empty() {
        return Err(TlsSetupError::Pem("none found".to_owned()));
    }
    Ok(certificates)
}

type WantsVerifier = rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>;

fn versions(wall_clock_s: u64) -> Result<WantsVerifier, TlsSetupError> {
    let time = FixedTime(UnixTime::since_unix_epoch(Duration::from_secs(
        wall_clock_s,
    )));
    ClientConfig::builder_with_details(provider(), Arc::new(time))
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsSetupError::Unavailable(error.to_string()))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// The wall clock that was given: a core reads none.
#[derive(Debug)]
struct FixedTime(UnixTime);

impl TimeProvider for FixedTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(self.0)
    }
}

/// Takes any certificate; the signature of the handshake must still be of its key.
#[derive(Debug)]
struct AnyCertificate {
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
