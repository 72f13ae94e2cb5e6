//! The parameters and their values. Each value has exactly one spelling, and any other value is an error.
//!
//! Values are compared after percent-decoding once, exactly and case-sensitively. Entitlement, which depends on the
//! caller, is in `gateway::stages::resolve`.

use std::borrow::Cow;

use crate::words;

use super::{
    allowed::AllowedValues,
    codes::ErrorCode,
    own_param::{OwnParam, OwnWords},
};

/// A query or path parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "named by `name`")]
pub enum Param {
    Id,
    Period,
    SortBy,
    Limit,
    /// A parameter of a configured endpoint.
    Own(&'static OwnParam),
}

words! {
    /// The time range of a response, in the order of the specification.
    #[derive(Hash, PartialOrd, Ord)]
    pub enum Period: word {
        /// The newest score. Only for paid plans.
        Latest = "latest",
        /// The last 24 hours.
        Day = "24h",
        /// The last 7 days.
        Week = "7d",
        /// The last month (30 days).
        Month = "1m",
    }
}

words! {
    /// The order of rankings. The variants are in the order of the specification.
    #[derive(Hash, PartialOrd, Ord)]
    #[expect(missing_docs, reason = "named by `word`")]
    pub enum SortBy: word {
        Combined = "combined",
        Reasoning = "reasoning",
        Speed = "speed",
        Price = "price",
        Coding = "coding",
        SevenAxis = "7axis",
        Tooling = "tooling",
    }
}

/// Number of incidents: 1 to 100.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Limit(u8);

/// A parameter that was given twice or has a value that is not allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadParam {
    /// The parameter.
    pub param: Param,
    /// The problem, for the caller.
    pub problem: &'static str,
}

impl BadParam {
    /// The message for a caller who may use these values. It does not repeat anything that the caller sent.
    pub fn message(&self, allowed: &AllowedValues) -> String {
        format!(
            "`{}` {}. Allowed: {allowed}.",
            self.param.name(),
            self.problem
        )
    }
}

/// The parameters of a request. Parameters that the endpoint does not have are ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the parameters' own names")]
pub struct Query {
    pub period: Option<Period>,
    pub sort_by: Option<SortBy>,
    pub limit: Option<Limit>,
    pub own: OwnWords,
}

impl Limit {
    /// The maximum.
    pub const MAX: u8 = 100;
    /// The default.
    pub const DEFAULT: Self = Self(50);

    /// The number.
    pub const fn get(self) -> u8 {
        self.0
    }

    /// Parses a canonical decimal from 1 to 100, without a sign or leading zero.
    pub fn parse(text: &str) -> Option<Self> {
        let canonical =
            !text.starts_with('0') && !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let number: u8 = canonical.then(|| text.parse().ok())??;
        (1..=Self::MAX).contains(&number).then_some(Self(number))
    }
}

impl Param {
    /// The parameters of the specification.
    pub const ALL: [Self; 4] = [Self::Id, Self::Period, Self::SortBy, Self::Limit];

    /// The name in a query.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::Period => "period",
            Self::SortBy => "sortBy",
            Self::Limit => "limit",
            Self::Own(own) => own.name,
        }
    }

    /// The definition of the parameter, if it comes from the settings.
    pub const fn own(self) -> Option<&'static OwnParam> {
        if let Self::Own(own) = self {
            Some(own)
        } else {
            None
        }
    }

    /// The default value, unless it depends on the caller.
    pub fn default_value(self) -> Option<Cow<'static, str>> {
        match self {
            Self::Id | Self::Period => None,
            Self::SortBy => Some(SortBy::Combined.word().into()),
            Self::Limit => Some(Limit::DEFAULT.get().to_string().into()),
            Self::Own(own) => Some(own.default.into()),
        }
    }

    /// The error code for a value that is not allowed.
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::Id => ErrorCode::InvalidModelId,
            Self::Period => ErrorCode::InvalidPeriod,
            Self::SortBy => ErrorCode::InvalidSortBy,
            Self::Limit => ErrorCode::InvalidLimit,
            Self::Own(_) => ErrorCode::InvalidParameter,
        }
    }

    /// The description, including the default.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Id => "Model identifier, as in the models list.",
            Self::Period => {
                "Period of the data. Default: `latest` for a paid key, `24h` for a free one. `latest` needs a paid plan."
            }
            Self::SortBy => "Order of the ranking. Default: `combined`.",
            Self::Limit => "Maximum number of items. Default: 50.",
            Self::Own(own) => own.meaning,
        }
    }

    /// The allowed values, independent of the tier.
    pub fn allowed(self) -> AllowedValues {
        match self {
            Self::Id => AllowedValues::Pattern {
                expression: "[A-Za-z0-9][A-Za-z0-9._:-]{0,127}",
                words: "a letter or digit, then up to 127 letters, digits, dots, underscores, colons or hyphens",
            },
            Self::Period => AllowedValues::Words(Period::ALL.map(Period::word).to_vec()),
            Self::SortBy => AllowedValues::Words(SortBy::ALL.map(SortBy::word).to_vec()),
            Self::Limit => AllowedValues::Range {
                minimum: 1,
                maximum: Limit::MAX,
            },
            Self::Own(own) => AllowedValues::Words(own.words.to_vec()),
        }
    }
}

/// Percent-decodes a path segment once. `None` if an escape is incomplete or not hexadecimal, or the result is not
/// UTF-8. A plus sign is not changed.
pub fn decode_segment(raw: &str) -> Option<Cow<'_, str>> {
    decode(raw, false)
}

fn decode(raw: &str, plus_is_space: bool) -> Option<Cow<'_, str>> {
    if !raw
        .bytes()
        .any(|b| b == b'%' || (plus_is_space && b == b'+'))
    {
        return Some(Cow::Borrowed(raw));
    }
    let mut decoded = Vec::with_capacity(raw.len());
    let mut bytes = raw.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => hex(bytes.next()?)? << 4 | hex(bytes.next()?)?,
            b'+' if plus_is_space => b' ',
            other => other,
        });
    }
    String::from_utf8(decoded).ok().map(Cow::Owned)
}

fn hex(digit: u8) -> Option<u8> {
    (digit as char)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}

/// Parses the query of an endpoint with these parameters. Unknown parameters are ignored. It is an error if the value
/// of a known parameter is malformed or not allowed, or if the parameter is repeated. The first error in the order of
/// `takes` is reported, so that the response does not depend on the order in the query.
pub fn decode_query(raw: Option<&str>, takes: &[Param]) -> Result<Query, BadParam> {
    let mut query = Query::default();
    let Some(raw) = raw else { return Ok(query) };
    for param in takes {
        if let Some(value) = sole_value(raw, *param)? {
            query.set(*param, &value)?;
        }
    }
    Ok(query)
}

/// The names of a query's parameters, decoded once. Names that cannot be decoded are omitted.
pub fn query_names(raw: &str) -> impl Iterator<Item = Cow<'_, str>> {
    raw.split('&')
        .filter_map(|pair| decode(pair.split_once('=').map_or(pair, |(name, _)| name), true))
}

fn sole_value(raw: &str, param: Param) -> Result<Option<Cow<'_, str>>, BadParam> {
    let mut found = None;
    for pair in raw.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        if !is_spelled(name, param.name()) {
            continue;
        }
        let Some(value) = decode(value, true) else {
            return Err(BadParam {
                param,
                problem: "contains a malformed percent escape",
            });
        };
        if found.replace(value).is_some() {
            return Err(BadParam {
                param,
                problem: "is given more than once",
            });
        }
    }
    Ok(found)
}

/// Whether a raw name in a query is this name. Encoding can only make a name longer.
fn is_spelled(raw: &str, name: &str) -> bool {
    raw == name || (raw.len() > name.len() && decode(raw, true).as_deref() == Some(name))
}

impl Query {
    fn set(&mut self, param: Param, value: &str) -> Result<(), BadParam> {
        let bad = BadParam {
            param,
            problem: "has a value that is not allowed",
        };
        match param {
            Param::Period => {
                self.period = Some(Period::parse(value).ok_or(bad)?);
            }
            Param::SortBy => {
                self.sort_by = Some(SortBy::parse(value).ok_or(bad)?);
            }
            Param::Limit => self.limit = Some(Limit::parse(value).ok_or(bad)?),
            Param::Own(own) => self.own = self.own.with(own, value).ok_or(bad)?,
            Param::Id => {} // in the path; never in the query
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: &[Param] = &[Param::Period, Param::SortBy];

    fn period(raw: &str) -> Result<Option<Period>, BadParam> {
        decode_query(Some(raw), BOTH).map(|query| query.period)
    }

    #[test]
    fn percent_decoding_is_applied_once() {
        assert_eq!(period("period=%32%34h"), Ok(Some(Period::Day)));
        assert_eq!(period("p%65riod=7d"), Ok(Some(Period::Week)));
        assert!(period("period=%2532%2534h").is_err());
    }

    #[test]
    fn only_exact_values_are_accepted() {
        for raw in [
            "period=7D",
            "period=",
            "period",
            "period=24h;x",
            "period=latest%00",
            "period=+7d",
            "period=7d ",
            "period=%zz",
            "period=%",
            "period=24h&period=24h",
            "period=24h&period=latest",
            "period=%ff",
        ] {
            assert!(period(raw).is_err(), "{raw}");
        }
    }

    #[test]
    fn unknown_names_are_ignored() {
        for raw in [
            "PERIOD=7d",
            "period[]=7d",
            "%ZZ=1",
            "x=%zz",
            "",
            "&&&",
            "=",
            "period;=1",
            "limit=0",
        ] {
            assert_eq!(period(raw), Ok(None), "{raw}");
        }
    }

    #[test]
    fn a_limit_is_a_canonical_decimal_from_1_to_100() {
        assert_eq!(Limit::parse("1").map(Limit::get), Some(1));
        assert_eq!(Limit::parse("100").map(Limit::get), Some(100));
        for bad in [
            "", "0", "-1", "05", "+5", "5.0", "101", "256", "1e1", " 1", "١",
        ] {
            assert_eq!(Limit::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_plus_is_a_plus_in_a_path_and_a_space_in_a_query() {
        assert_eq!(decode_segment("a+b").as_deref(), Some("a+b"));
        assert_eq!(decode("a+b", true).as_deref(), Some("a b"));
        assert_eq!(decode_segment("%c0%af"), None);
    }
}
