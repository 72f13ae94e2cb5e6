//! The JSON bodies of commands. Unknown fields are rejected. Absent and null are distinct where a field can be removed.

#![expect(
    missing_docs,
    reason = "the fields' names are the JSON's, documented in docs/keys.md and `keys --help`"
)]

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::registry::{FieldChange, NewApplication};
use scoregate_base::clock::Wall;
use scoregate_base::json;
use scoregate_store::{Description, OwnLimits};

use crate::admin::command_problem::{CommandProblem, CommandResult};

/// Request for a new application with its first key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewKey {
    pub name: String,
    pub tier: String,
    pub minute_limit: Option<u32>,
    pub day_limit: Option<u32>,
    pub url: Option<String>,
    pub contact: Option<String>,
    pub note: Option<String>,
    pub expires_at: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RotateBody {
    pub overlap_seconds: u64,
    pub key_name: Option<String>,
    pub expires_at: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevokeBody {
    pub key: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TierBody {
    pub tier: String,
}

/// A change without values.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoBody {}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OwnerTierBody {
    #[serde(default, skip_serializing_if = "FieldChange::is_unchanged")]
    pub(super) tier: FieldChange<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitsBody {
    #[serde(default, skip_serializing_if = "FieldChange::is_unchanged")]
    pub minute_limit: FieldChange<u32>,
    #[serde(default, skip_serializing_if = "FieldChange::is_unchanged")]
    pub day_limit: FieldChange<u32>,
    pub until: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExpiryBody {
    pub key: Option<String>,
    #[serde(default, skip_serializing_if = "FieldChange::is_unchanged")]
    pub expires_at: FieldChange<String>,
}

/// A batch of keys. Each is parsed separately, so that an invalid one does not affect the others.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ImportBody {
    pub(super) keys: Vec<Box<RawValue>>,
}

impl NewKey {
    pub(super) fn into_application(self) -> CommandResult<NewApplication> {
        let Self {
            name,
            tier,
            minute_limit: minute,
            day_limit: day,
            url,
            contact,
            note,
            expires_at,
        } = self;
        let expires_at = expires_at.map(timestamp).transpose()?;
        let description = Description { url, contact, note };
        Ok(NewApplication {
            name,
            tier,
            own: OwnLimits { minute, day },
            description,
            expires_at,
        })
    }
}

/// Writes a body.
pub(super) fn to_json(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).expect("strings and numbers are valid JSON")
}

/// Reads a body.
pub(super) fn read<T: serde::de::DeserializeOwned>(body: &[u8]) -> CommandResult<T> {
    json::read(body).map_err(|bad| CommandProblem::bad(format!("invalid body: {bad}")))
}

/// Reads a timestamp of a body.
#[expect(
    clippy::needless_pass_by_value,
    reason = "used in `map` on an owned value"
)]
pub(super) fn timestamp(text: String) -> CommandResult<Wall> {
    let bad = || {
        CommandProblem::bad(format!(
            "`{text}` must be a timestamp such as 2027-01-31T00:00:00Z"
        ))
    };
    Wall::parse_rfc3339(&text).ok_or_else(bad)
}
