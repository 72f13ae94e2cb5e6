//! The reasons why messages were not delivered. Their texts do not quote the receiver.

/// The reason why a message was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebhookFailure {
    #[error("the URL is not usable or not set")]
    Url,
    #[error("the host name cannot be resolved")]
    UnknownHost,
    #[error("the host name has an address that is not public")]
    NotPublic,
    #[error("connecting failed: {0}")]
    Connection(std::io::ErrorKind),
    #[error("TLS failed")]
    Tls,
    #[error("the response is not HTTP, or the connection was closed before a response")]
    NoAnswer,
    #[error("no response within 10 s")]
    Timeout,
    #[error("response with status {0}")]
    Status(u16),
    #[error("the challenge is not in the response")]
    Challenge,
}

impl WebhookFailure {
    /// Whether other messages to the host would also fail.
    pub const fn is_about_host(self) -> bool {
        !matches!(self, Self::Url | Self::Status(_) | Self::Challenge)
    }
}
