//! Response bodies as data: the envelope of a success and the flat object of an error.
//!
//! The API description and the docs page are generated from these descriptions, and tests validate responses against
//! them.

use crate::limits::LimitRule;

use super::field::{
    FieldShape::{Flag, Instant, Integer, Object, Objects, Text, Texts, Words},
    ItemField, field, nullable,
};

/// The fields of every successful response, in order. All fields are always present.
pub const ENVELOPE: &[ItemField] = &[
    field("success", Flag, "`true`."),
    field(
        "version",
        Text,
        "Version of the data API: three numbers with dots.",
    ),
    field(
        "generated_at",
        Instant,
        "When the data was generated, according to its source. It changes only when the data does.",
    ),
    field(
        "license",
        Text,
        "Attribution notice: citing the service as the source is required.",
    ),
    nullable(
        "period",
        Text,
        "The period applied; `null` if the endpoint has none.",
    ),
    nullable(
        "sort_by",
        Text,
        "The sort key applied; `null` if the endpoint has none.",
    ),
    field("count", Integer, "Number of items in `data`."),
    field(
        "data",
        Objects(&[]),
        "The items. Always an array, even for a single item.",
    ),
];

/// The fields of every error, in order.
pub const ERROR: &[ItemField] = &[
    field("success", Flag, "`false`."),
    field(
        "version",
        Text,
        "Version of the data API: three numbers with dots.",
    ),
    field("status", Integer, "The HTTP status."),
    field(
        "code",
        Text,
        "The code for programs. Its meaning never changes.",
    ),
    field(
        "message",
        Text,
        "A few sentences for people, which begin with the remedy. Not for programs: the wording may change.",
    ),
    field(
        "request_id",
        Text,
        "Id of the request, for bug reports. Also in `X-Request-Id`.",
    ),
    field(
        "docs",
        Text,
        "Link to the description of the code on the docs page.",
    ),
];

/// Additional fields of some errors.
pub const ERROR_SOMETIMES: &[ItemField] = &[
    field(
        "limit",
        Object(LIMIT),
        "On 429: the exhausted limit, and when to retry.",
    ),
    field(
        PARAM,
        Text,
        "On 400 and 403 because of a parameter: its name.",
    ),
    field(
        ALLOWED,
        Texts,
        "With `param`, if its values are words: the values that this key may use.",
    ),
    field(
        MINIMUM,
        Integer,
        "With `param`, if the parameter is a number: the smallest allowed value.",
    ),
    field(
        MAXIMUM,
        Integer,
        "With `param`, if the parameter is a number: the largest allowed value.",
    ),
    field(
        PATTERN,
        Text,
        "With `param`, if the parameter is an id: a regular expression that allowed values match.",
    ),
    field(
        SIGN_UP,
        Text,
        "On 401, if people can sign up and `service.base_url` is set: the address of the sign-up page.",
    ),
    field(
        UPGRADE,
        Text,
        "On 403 and 429 because of a plan: an address where larger plans are available, if one is configured.",
    ),
    field(
        TIER,
        Text,
        "On 403 `plan_required`: a tier with the missing right, if there is one.",
    ),
];

/// Name of the field with the URL for signing up.
pub const SIGN_UP: &str = "sign_up";
/// Name of the field with the URL of larger plans.
pub const UPGRADE: &str = "upgrade";
/// Name of the field with the name of a parameter.
pub const PARAM: &str = "param";
/// Names of the fields that describe the allowed values.
pub(super) const ALLOWED: &str = "allowed";
pub(super) const MINIMUM: &str = "minimum";
pub(super) const MAXIMUM: &str = "maximum";
pub(super) const PATTERN: &str = "pattern";
/// Name of the field with a tier that grants the missing right.
pub const TIER: &str = "tier";

/// The fields of `limit`.
pub const LIMIT: &[ItemField] = &[
    field("name", Words(&LimitRule::WORDS), "Name of the limit."),
    field("quota", Integer, "Allowed requests."),
    field("remaining", Integer, "Remaining requests."),
    field("window_seconds", Integer, "Window in seconds."),
    field(
        "reset_at",
        Instant,
        "Time when the next request can be granted: for the daily limit, the next midnight UTC; for the monthly limit, the midnight UTC at which the month ends; for other limits, the time of the next token.",
    ),
    field(
        "retry_after",
        Integer,
        "Seconds until the next request can be granted, as in `Retry-After`.",
    ),
];

/// Additional fields of `application/problem+json` (RFC 9457).
pub const PROBLEM: &[ItemField] = &[
    field(
        "type",
        Text,
        "URI that identifies the kind of problem and leads to its description.",
    ),
    field(
        "title",
        Text,
        "The kind of problem in a few words, the same for every occurrence.",
    ),
    field("detail", Text, "Same as `message`."),
    field("instance", Text, "URI of this occurrence."),
];
