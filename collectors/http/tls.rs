//! The TLS configuration of one HTTP target. Its provider is named here and nothing is installed process-wide.

use super::Settings;
use crate::api::{Fault, FaultKind};
use crate::settings::expand_home;
use rustls::ClientConfig;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls_platform_verifier::BuilderVerifierExt;
use std::path::Path;
use std::sync::Arc;

/// Whom to trust: with `ca_file` that authority alone, else those of the system; and who we are, where a certificate is
/// given. `https` says whether TLS is spoken at all: without it no certificate store is read, since a small machine may
/// have none.
pub fn config(what: &str, settings: &Settings, https: bool) -> Result<ClientConfig, Fault> {
    let wrong = |why: String| Fault::new(FaultKind::Config, format!("{what}: {why}"));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|why| wrong(format!("cannot speak TLS: {why}")))?;
    let builder = match &settings.ca_file {
        Some(file) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(what, "ca_file", file)? {
                roots.add(certificate).map_err(|why| wrong(format!("ca_file {}: {why}", file.display())))?;
            }
            builder.with_root_certificates(roots)
        }
        None if https => builder.with_platform_verifier().map_err(|why| {
            wrong(format!("cannot read the system's certificate authorities: {why}")).hint("name the target's own with ca_file")
        })?,
        None => builder.with_root_certificates(RootCertStore::empty()),
    };
    match (&settings.cert_file, &settings.key_file) {
        (None, None) => Ok(builder.with_no_client_auth()),
        (Some(certificate), key) => {
            let key = key.as_ref().unwrap_or(certificate);
            let chain = certificates(what, "cert_file", certificate)?;
            let private = PrivateKeyDer::from_pem_slice(&read(what, "key_file", key)?)
                .map_err(|why| wrong(format!("key_file {}: no private key in PEM form: {why}", key.display())))?;
            builder
                .with_client_auth_cert(chain, private)
                .map_err(|why| wrong(format!("cert_file {}: {why}", certificate.display())))
        }
        (None, Some(_)) => Err(wrong("key_file is given without cert_file".to_owned())),
    }
}

fn certificates(what: &str, key: &str, file: &Path) -> Result<Vec<CertificateDer<'static>>, Fault> {
    let bytes = read(what, key, file)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(Fault::new(FaultKind::Config, format!("{what}: {key} {}: no certificate in PEM form", file.display()))),
        Err(why) => Err(Fault::new(FaultKind::Config, format!("{what}: {key} {}: {why}", file.display()))),
    }
}

fn read(what: &str, key: &str, file: &Path) -> Result<Vec<u8>, Fault> {
    std::fs::read(expand_home(file))
        .map_err(|why| Fault::new(FaultKind::Config, format!("{what}: cannot read {key} {}: {why}", file.display())))
}
