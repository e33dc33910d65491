//! By what the peers of `https` arms prove who they are.
//!
//! The system's roots are where its TLS libraries look for them (`SSL_CERT_FILE` and `SSL_CERT_DIR`
//! among the places). They are no part of a plan, so their number and hash go into `host.json`.

use std::collections::BTreeMap;
use std::sync::Arc;

use assize_codes::E0912;
use assize_core::{TlsSetupError, TlsTarget, certificates_from_pem};
use assize_plan::{Arm, ArmTarget, Bundle, Hash, Tls};

use crate::address::Base;
use crate::servers::WorldFailure;

/// By what the peer of an address proves who it is, for a question outside of any plan: by the
/// certificates (PEM) in `ca`, else by the system's, or not at all. `None` where it is spoken to in
/// cleartext. Certificates are judged as of `wall_ns`.
pub fn tls_of_endpoint(
    base: &Base,
    ca: Option<&[u8]>,
    insecure: bool,
    wall_ns: u64,
) -> Result<Option<TlsTarget>, WorldFailure> {
    if !base.tls {
        return Ok(None);
    }
    let trust = match ca {
        _ if insecure => Trust::in_nobody(),
        Some(pem) => Trust {
            roots: Some(read_roots(&base.host, pem)?),
            words: String::new(),
        },
        None => Trust::of_system()?,
    };
    trust.target(base, wall_ns).map(Some)
}

/// What the certificate of one arm's peer is held against.
#[derive(Clone, Debug)]
pub(crate) struct Trust {
    /// Certificates (DER); none where nothing is verified.
    roots: Option<Arc<[Vec<u8>]>>,
    /// The same for `host.json`.
    words: String,
}

impl Trust {
    /// Of each `https` arm of a plan. What cannot be used is told before anything is sent.
    pub fn of_arms(bundle: &Bundle, wall_ns: u64) -> Result<BTreeMap<String, Trust>, WorldFailure> {
        let mut found = BTreeMap::new();
        let mut system = None;
        for arm in &bundle.plan.arms {
            let Some(tls) = arm.tls else { continue };
            let trust = match (tls, &system) {
                (Tls::Roots(_), Some(known)) => Trust::clone(known),
                (Tls::Roots(_), None) => system.insert(Trust::of_system()?).clone(),
                (Tls::Ca(object), _) => Trust::of_object(bundle, arm, object)?,
                (Tls::Insecure, _) => Trust::in_nobody(),
            };
            if let ArmTarget::Endpoint { base } = &arm.target
                && let Some(base) = Base::parse(base)
            {
                trust.target(&base, wall_ns)?;
            }
            found.insert(arm.name.clone(), trust);
        }
        Ok(found)
    }

    /// What `host.json` says of it.
    pub fn words(&self) -> &str {
        &self.words
    }

    /// What connections to `base` are to prove. Certificates are judged as of `wall_ns`.
    pub fn target(&self, base: &Base, wall_ns: u64) -> Result<TlsTarget, WorldFailure> {
        let wall_clock_s = wall_ns / 1_000_000_000;
        match &self.roots {
            Some(roots) => TlsTarget::verified(&base.host, roots.iter(), wall_clock_s),
            None => TlsTarget::insecure(&base.host, wall_clock_s),
        }
        .map_err(|error| unusable(&base.host, &error))
    }

    fn in_nobody() -> Trust {
        Trust {
            roots: None,
            words: "NOT VERIFIED: any certificate is taken".to_owned(),
        }
    }

    fn of_system() -> Result<Trust, WorldFailure> {
        let loaded = rustls_native_certs::load_native_certs();
        let mut roots: Vec<Vec<u8>> = loaded.certs.iter().map(|root| root.to_vec()).collect();
        if roots.is_empty() {
            let why: Vec<String> = loaded.errors.iter().map(ToString::to_string).collect();
            return Err(WorldFailure {
                code: E0912,
                operation: "loading".into(),
                subject: "the system's root certificates".into(),
                message: if why.is_empty() {
                    "there are none".to_owned()
                } else {
                    why.join("; ")
                },
                errno: 0,
            });
        }
        roots.sort_unstable();
        let words = format!(
            "verified by {} roots of the system, together {}",
            roots.len(),
            Hash::of(&roots.concat())
        );
        Ok(Trust {
            roots: Some(roots.into()),
            words,
        })
    }

    fn of_object(bundle: &Bundle, arm: &Arm, object: Hash) -> Result<Trust, WorldFailure> {
        let bytes = bundle
            .object(object)
            .map_err(|error| unusable(&arm.name, &error))?;
        Ok(Trust {
            words: format!("verified by the plan's certificates {object}"),
            roots: Some(read_roots(&arm.name, bytes)?),
        })
    }
}

fn read_roots(subject: &str, pem: &[u8]) -> Result<Arc<[Vec<u8>]>, WorldFailure> {
    let roots =
        certificates_from_pem(pem).map_err(|error: TlsSetupError| unusable(subject, &error))?;
    Ok(roots.into())
}

fn unusable(subject: &str, why: &dyn std::error::Error) -> WorldFailure {
    WorldFailure {
        code: E0912,
        operation: "preparing to verify".into(),
        subject: subject.to_owned(),
        message: why.to_string(),
        errno: 0,
    }
}
