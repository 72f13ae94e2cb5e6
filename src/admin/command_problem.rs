//! The error of a command: a message for the operator and a status for programs.

use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{admin::paths, registry::RegistrarError, status::StatusMessageError};
use scoregate_store::{OwnerRefusal, StoreError};

/// The error of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandProblem {
    /// The HTTP status on the side port.
    pub status: u16,
    /// The reason and the remedy.
    pub error: String,
}

/// The result of a command on the side port, which is JSON by default.
pub type CommandResult<T = Value> = Result<T, CommandProblem>;

impl CommandProblem {
    pub(in crate::admin) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self {
            status: status.as_u16(),
            error: error.into(),
        }
    }

    /// Creates the error for invalid operator input.
    pub fn bad(error: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    pub(in crate::admin) fn fault(error: &str) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, error)
    }

    pub(in crate::admin) fn forbidden(error: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, error)
    }

    pub(in crate::admin) fn too_large(limit: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body is too large: the limit of this path is {limit} bytes"),
        )
    }

    /// Returns whether the connection must be closed, because the body was not read completely.
    pub(in crate::admin) const fn closes(&self) -> bool {
        self.status == StatusCode::PAYLOAD_TOO_LARGE.as_u16()
            || self.status == StatusCode::REQUEST_TIMEOUT.as_u16()
    }

    pub(in crate::admin) fn not_found() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            format!("not found; the paths are {}", paths::PATHS),
        )
    }

    pub(in crate::admin) const fn is_not_found(&self) -> bool {
        self.status == StatusCode::NOT_FOUND.as_u16()
    }

    /// Returns whether the operator can correct the error.
    pub fn is_input(&self) -> bool {
        self.status < 500
    }
}

impl From<RegistrarError> for CommandProblem {
    fn from(error: RegistrarError) -> Self {
        let status = match &error {
            RegistrarError::UnknownTier { .. }
            | RegistrarError::BadText(_)
            | RegistrarError::BadLimit(_)
            | RegistrarError::BadExpiry
            | RegistrarError::BadUntil
            | RegistrarError::NoInvitations => StatusCode::BAD_REQUEST,
            RegistrarError::NoSuchKey { .. }
            | RegistrarError::Store(
                StoreError::UnknownApplication(_)
                | StoreError::UnknownKey(_)
                | StoreError::UnknownIncident(_)
                | StoreError::Owner(OwnerRefusal::Unknown(_)),
            ) => StatusCode::NOT_FOUND,
            RegistrarError::NoneInForce(_)
            | RegistrarError::SeveralInForce(..)
            | RegistrarError::Store(
                StoreError::Exists(_)
                | StoreError::IncidentResolved(_)
                | StoreError::Owner(
                    OwnerRefusal::Suspended(_)
                    | OwnerRefusal::TooManyApplications(_)
                    | OwnerRefusal::QuotaUsedToday(_)
                    | OwnerRefusal::KeysChanged(_)
                    | OwnerRefusal::TooManyActiveKeys(_)
                    | OwnerRefusal::TooManyNewKeys(_)
                    | OwnerRefusal::HasApplications(_)
                    | OwnerRefusal::Owned(..)
                    | OwnerRefusal::NotOwned(_),
                ),
            ) => StatusCode::CONFLICT,
            RegistrarError::Store(
                StoreError::Unavailable { .. }
                | StoreError::Damaged { .. }
                | StoreError::Newer { .. }
                | StoreError::Transfer(_),
            )
            | RegistrarError::NoRandomness(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, error.to_string())
    }
}

impl From<StoreError> for CommandProblem {
    fn from(error: StoreError) -> Self {
        RegistrarError::from(error).into()
    }
}

impl From<StatusMessageError> for CommandProblem {
    fn from(error: StatusMessageError) -> Self {
        match error {
            StatusMessageError::BadText(bad) => RegistrarError::from(bad).into(),
            StatusMessageError::Store(error) => error.into(),
        }
    }
}
