//! The settings of a backend over the network: its addresses, its credential and timeouts.

use std::{sync::Arc, time::Duration};

use ::http::{
    header::AUTHORIZATION,
    {HeaderMap, HeaderName, HeaderValue, Uri},
};

use scoregate_base::secret::SecretSetting;

use super::{mapping::Mapping, tls::BackendTlsSettings};

/// The settings of the backend.
#[derive(Clone, Debug)]
pub struct HttpConfig {
    /// Base address, such as `http://127.0.0.1:4000/api/v1`; paths of documents are appended.
    pub base: String,
    /// A service credential, sent in every request.
    pub credential: Option<SecretSetting>,
    /// The header of the credential. `Authorization` has the scheme `Bearer`; other headers contain only the
    /// credential.
    pub credential_header: HeaderName,
    /// Further headers of every request.
    pub headers: HeaderMap,
    /// Connect timeout.
    pub connect: Duration,
    /// Timeout for the response head, from the start of the request.
    pub first_byte: Duration,
    /// Timeout for the whole response.
    pub total: Duration,
    /// Maximum size of a body.
    pub max_bytes: usize,
    /// Time for which an idle connection is pooled. It must be below the idle timeout of the backend.
    pub idle: Duration,
    /// TLS to the backend.
    pub tls: BackendTlsSettings,
    /// Paths and shapes of documents.
    pub mapping: Mapping,
    /// Further base addresses. Each is used while the addresses before it fail.
    pub more: Vec<String>,
}

/// The address of the backend is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadUpstreamUrl(String);

impl HttpConfig {
    /// Validates address and credential.
    pub fn check(&self) -> Result<(), BadUpstreamUrl> {
        let base: Uri = self
            .base
            .parse()
            .map_err(|_| BadUpstreamUrl("it is not a valid address".into()))?;
        let known_scheme = matches!(base.scheme_str(), Some("http" | "https"));
        if !known_scheme || base.authority().is_none() || base.query().is_some() {
            return Err(BadUpstreamUrl(
                "write http://host:port/path, without a query".into(),
            ));
        }
        // The user name would never be sent, but would be printed together with the address.
        if base
            .authority()
            .is_some_and(|authority| authority.as_str().contains('@'))
        {
            return Err(BadUpstreamUrl(
                "remove the part before the @; set upstream.credential instead".into(),
            ));
        }
        self.credential_value().map(drop)
    }

    /// The settings of each address, in order of preference.
    pub fn each(&self) -> impl Iterator<Item = Self> {
        let all = [&self.base].into_iter().chain(&self.more);
        all.map(|base| Self {
            base: base.clone(),
            ..self.clone()
        })
    }

    /// Host and port of the address.
    pub fn name(&self) -> Arc<str> {
        let uri = self.base.parse::<Uri>().unwrap_or_default();
        let default = if uri.scheme_str() == Some("https") {
            443
        } else {
            80
        };
        format!(
            "{}:{}",
            uri.host().unwrap_or_default(),
            uri.port_u16().unwrap_or(default)
        )
        .into()
    }

    /// The name that is added to the validators of this address; `None` if there is no other address.
    pub(super) fn origin(&self) -> Option<Arc<str>> {
        (!self.more.is_empty()).then(|| self.name())
    }

    /// The value of the header that contains the current credential.
    pub(super) fn credential_value(&self) -> Result<Option<HeaderValue>, BadUpstreamUrl> {
        let Some(credential) = &self.credential else {
            return Ok(None);
        };
        let scheme = if self.credential_header == AUTHORIZATION {
            "Bearer "
        } else {
            ""
        };
        let mut value = HeaderValue::try_from(format!("{scheme}{}", credential.current().expose()))
            .map_err(|_| {
                BadUpstreamUrl(
                    "the credential contains characters that are not allowed in a header".into(),
                )
            })?;
        value.set_sensitive(true);
        Ok(Some(value))
    }
}
