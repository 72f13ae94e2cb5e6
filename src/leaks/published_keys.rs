//! The public keys that verify reports, from a list in the format of GitHub.

use std::collections::HashMap;

use arc_swap::ArcSwap;
use data_encoding::BASE64;
use rustls::{
    SignatureScheme,
    crypto::ring,
    pki_types::{SignatureVerificationAlgorithm, SubjectPublicKeyInfoDer, pem::PemObject as _},
};
use serde::Deserialize;
use x509_cert::{
    der::{
        Decode as _,
        asn1::{SequenceOf, UintRef},
    },
    spki::SubjectPublicKeyInfoRef,
};

/// The first byte and the length of an uncompressed point on P-256.
const POINT: (u8, usize) = (4, 65);

/// The public keys by identifier.
#[derive(Debug, Default)]
pub struct PublishedKeys(ArcSwap<HashMap<String, Vec<u8>>>);

/// The reason why a list of keys cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPublishedKeys {
    /// The text is not a list of keys.
    #[error(
        "expected JSON such as {{\"public_keys\": [{{\"key_identifier\": …, \"key\": …}}]}}: {0}"
    )]
    Invalid(String),
    /// A key is not a P-256 key in PEM.
    #[error("key `{0}` is not a P-256 public key in PEM")]
    Key(String),
    /// The list is empty.
    #[error("the list has no keys")]
    Empty,
}

#[derive(Deserialize)]
struct PublishedList {
    public_keys: Vec<PublishedKey>,
}

#[derive(Deserialize)]
struct PublishedKey {
    key_identifier: String,
    key: String,
}

impl PublishedKeys {
    /// Replaces the keys with the keys in a list. If the list is unusable, nothing changes.
    pub fn replace(&self, list: &[u8]) -> Result<(), BadPublishedKeys> {
        let list: PublishedList = serde_json::from_slice(list)
            .map_err(|error| BadPublishedKeys::Invalid(error.to_string()))?;
        let keys = list
            .public_keys
            .into_iter()
            .map(
                |PublishedKey {
                     key_identifier,
                     key,
                 }| match point(&key) {
                    Some(point) => Ok((key_identifier, point)),
                    None => Err(BadPublishedKeys::Key(key_identifier)),
                },
            )
            .collect::<Result<HashMap<_, _>, _>>()?;
        if keys.is_empty() {
            return Err(BadPublishedKeys::Empty);
        }
        self.0.store(keys.into());
        Ok(())
    }

    /// Whether there is a key with this identifier.
    pub(super) fn has(&self, identifier: &str) -> bool {
        self.0.load().contains_key(identifier)
    }

    /// Whether a text has this signature (ECDSA with SHA-256, DER in Base64) by the key with this identifier.
    pub(super) fn verify(&self, identifier: &str, signature: &str, text: &[u8]) -> bool {
        let keys = self.0.load();
        let signature = BASE64.decode(signature.as_bytes());
        if let Some(point) = keys.get(identifier)
            && let Ok(signature) = signature
            && let Some(algorithm) = algorithm()
        {
            return algorithm.verify_signature(point, text, &signature).is_ok();
        }
        false
    }
}

/// Whether a string has the form of a signature: two DER-encoded integers in Base64.
pub fn has_form(signature: &str) -> bool {
    let der = BASE64.decode(signature.as_bytes()).unwrap_or_default();
    SequenceOf::<UintRef<'_>, 2>::from_der(&der).is_ok_and(|pair| pair.len() == 2)
}

/// The implementation of ECDSA on P-256 with SHA-256 in ring.
fn algorithm() -> Option<&'static dyn SignatureVerificationAlgorithm> {
    let supported = ring::default_provider().signature_verification_algorithms;
    let (_, of_p256) = supported
        .mapping
        .iter()
        .find(|(scheme, _)| *scheme == SignatureScheme::ECDSA_NISTP256_SHA256)?;
    of_p256.first().copied()
}

/// The point of a public key in PEM.
fn point(pem: &str) -> Option<Vec<u8>> {
    let der = SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes()).ok()?;
    let info = SubjectPublicKeyInfoRef::from_der(der.as_ref()).ok()?;
    let point = info.subject_public_key.as_bytes()?.to_vec();
    (point.first().copied().zip(Some(point.len())) == Some(POINT)).then_some(point)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example body in GitHub's documentation of the partner program.
    const BODY: &str = r#"[{"source":"commit","token":"some_token","type":"some_type","url":"https://example.com/base-repo-url/"}]"#;

    fn list(key: &str) -> Vec<u8> {
        serde_json::json!({"public_keys": [{"key_identifier": "one", "key": key, "is_current": true}]})
            .to_string()
            .into_bytes()
    }

    /// A public key of GitHub, and the signature of [`BODY`] in the documentation.
    const KEY_OF_GITHUB: &str = "-----BEGIN PUBLIC KEY-----\n\
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEYAGMWO8XgCamYKMJS6jc/qgvSlAd\n\
        AjPuDPRcXU22YxgBrz+zoN19MzuRyW87qEt9/AmtoNP5GrobzUvQSyJFVw==\n-----END PUBLIC KEY-----\n";
    const SIGNATURE_OF_GITHUB: &str = "MEQCIQDaMKqrGnE27S0kgMrEK0eYBmyG0LeZismAEz/BgZyt7AIfXt9fErtRS4XaeSt/\
                                       AO1RtBY66YcAdjxji410VQV4xg==";

    #[test]
    fn the_documented_signature_of_github_is_valid() {
        let keys = PublishedKeys::default();
        keys.replace(&list(KEY_OF_GITHUB)).unwrap();
        assert!(keys.verify("one", SIGNATURE_OF_GITHUB, BODY.as_bytes()));
        assert!(has_form(SIGNATURE_OF_GITHUB));
        assert!(!keys.verify("one", SIGNATURE_OF_GITHUB, format!("{BODY}\n").as_bytes()));
    }

    #[test]
    fn a_signature_is_valid_for_its_text_and_its_key_only() {
        use rcgen::SigningKey as _;
        let pair = rcgen::KeyPair::generate().unwrap();
        let other = rcgen::KeyPair::generate().unwrap();
        let keys = PublishedKeys::default();
        keys.replace(&list(&pair.public_key_pem())).unwrap();
        let signed = |pair: &rcgen::KeyPair| BASE64.encode(&pair.sign(BODY.as_bytes()).unwrap());
        let signature = signed(&pair);
        assert!(keys.has("one") && keys.verify("one", &signature, BODY.as_bytes()));
        assert!(!keys.has("two") && !keys.verify("two", &signature, BODY.as_bytes()));
        assert!(!keys.verify("one", &signed(&other), BODY.as_bytes()));
        assert!(has_form(&signed(&other)));
        for text in [
            "",
            "?",
            "x",
            "MEQ=",
            "MAYCAQECAQ==",
            "MAMCAQE=",
            &signature.to_lowercase(),
        ] {
            assert!(!has_form(text), "{text}");
        }
        for (signature, text) in [
            (signature.as_str(), BODY.trim_end_matches(']')),
            (signature.as_str(), ""),
            ("", BODY),
            ("MEQ=", BODY),
            ("?", BODY),
        ] {
            assert!(
                !keys.verify("one", signature, text.as_bytes()),
                "{signature} {text}"
            );
        }
    }

    #[test]
    fn an_unusable_list_leaves_the_keys_as_they_are() {
        let pair = rcgen::KeyPair::generate().unwrap();
        let keys = PublishedKeys::default();
        keys.replace(&list(&pair.public_key_pem())).unwrap();
        let p384 = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
        for bad in [
            b"".to_vec(),
            b"[]".to_vec(),
            br#"{"public_keys": []}"#.to_vec(),
            list("x"),
            list(&p384.public_key_pem()),
        ] {
            assert!(
                keys.replace(&bad).is_err(),
                "{}",
                String::from_utf8_lossy(&bad)
            );
        }
        assert!(keys.has("one"));
    }
}
