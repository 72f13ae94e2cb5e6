//! The fields of `/me`, which the gateway itself answers.

use crate::limits::LimitRule;

use super::field::{
    FieldShape::{Instant, Integer, Object, Objects, Text, Texts, Words},
    ItemField, field, maybe, nullable,
};

const APPLICATION: &[ItemField] = &[
    field("id", Text, "Identifier of the application."),
    field("name", Text, "Display name."),
];

const ALLOWANCE: &[ItemField] = &[
    field(
        "name",
        Words(LimitRule::WORDS.split_at(LimitRule::WORDS.len() - 1).0),
        "Name of the limit. All tiers have `minute` and `day`; the others are optional.",
    ),
    field("limit", Integer, "Allowed requests per window."),
    field("window_seconds", Integer, "Window in seconds."),
    field("used", Integer, "Requests used in the current window."),
    field("remaining", Integer, "Remaining requests."),
    field(
        "reset_at",
        Instant,
        "Time when the full limit is available again.",
    ),
];

/// The item of `/me`.
pub const ME: &[ItemField] = &[
    field(
        "application",
        Object(APPLICATION),
        "The application that the key belongs to.",
    ),
    field(
        "key_prefix",
        Text,
        "First characters of the key, to tell keys apart. The key itself is never returned.",
    ),
    field("tier", Text, "Tier of the application."),
    field(
        "limits",
        Objects(ALLOWANCE),
        "The limits and the remaining requests.",
    ),
    nullable(
        "key_expires_at",
        Instant,
        "Expiry of the key; null if it does not expire.",
    ),
    nullable(
        "next_refresh_at",
        Instant,
        "Time of the next expected change of the data.",
    ),
    field(
        "suggested_poll_seconds",
        Integer,
        "Polling interval that keeps the data current without exceeding the limits of this key.",
    ),
    maybe(
        "advice",
        Texts,
        "How to get the same data with fewer requests, based on the current hour. Absent if there is no advice.",
    ),
];
