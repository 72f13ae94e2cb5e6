//! The path of a document at the backend: a path and query with placeholders for the document's parameters.
//!
//! Only validated values, which need no encoding, are inserted. `http` adds the base address.

use std::borrow::Cow;

use scoregate_base::routes::{DocumentKey, Endpoint, Param};

/// A path and query below the backend's base address. It contains a placeholder for every parameter of its endpoint
/// except parameters that the backend does not support, so different documents cannot share a target by accident.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathTemplate(Vec<TemplatePart>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum TemplatePart {
    Text(String),
    Value(Param),
}

/// The reason why a path is invalid. The message is for the operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTemplate {
    #[error("begin the path with `/`; it is relative to upstream.url")]
    /// There is no slash at the beginning.
    NoSlash,
    /// A character that must be encoded in a path or query.
    #[error("encode the character {0:?}: a path is visible ASCII, with %XX for other bytes")]
    Character(char),
    /// A percent sign without two hexadecimal digits.
    #[error("write two hexadecimal digits after each `%`")]
    Percent,
    /// A brace that is not part of a placeholder.
    #[error("write placeholders as {{name}}; other braces are not allowed")]
    Brace,
    /// A placeholder for which the endpoint has no value.
    #[error("this endpoint has no placeholder {{{name}}}; it has {has}")]
    NoPlaceholder {
        /// The text between the braces.
        name: String,
        /// The valid placeholders.
        has: String,
    },
    /// There is no placeholder for the model.
    #[error("add {{id}} to the path; without it all models have the same path")]
    NoId,
    /// There is no placeholder for a parameter.
    #[error(
        "add {{{0}}} to the path, or, if the backend has no such parameter, write unsupported = [\"{0}\"]: every value then gets the same data"
    )]
    NoParameter(&'static str),
    /// A placeholder for a parameter that is configured as unsupported.
    #[error("remove {{{0}}} from the path or from `unsupported`")]
    Unsupported(&'static str),
}

impl PathTemplate {
    /// The path of the endpoint in this API, with all its parameters except the parameters in `without`.
    pub fn canonical(endpoint: &Endpoint, without: &[Param]) -> Self {
        let mut pieces = Vec::new();
        for segment in endpoint.segments {
            pieces.push(TemplatePart::Text("/".into()));
            pieces.push(match *segment {
                ":id" => TemplatePart::Value(Param::Id),
                fixed => TemplatePart::Text(fixed.into()),
            });
        }
        let takes = endpoint
            .takes
            .iter()
            .filter(|param| !without.contains(param));
        for (separator, param) in std::iter::once('?')
            .chain(std::iter::repeat('&'))
            .zip(takes)
        {
            pieces.push(TemplatePart::Text(format!("{separator}{}=", param.name())));
            pieces.push(TemplatePart::Value(*param));
        }
        Self(pieces)
    }

    /// Parses a path for an endpoint, or reports all its errors.
    pub fn parse(
        endpoint: &Endpoint,
        text: &str,
        without: &[Param],
    ) -> Result<Self, Vec<BadTemplate>> {
        let has = parameters(endpoint);
        let mut pieces = Vec::new();
        let mut bad = Vec::new();
        let mut rest = text;
        if !text.starts_with('/') {
            bad.push(BadTemplate::NoSlash);
        }
        while let Some((before, after)) = rest.split_once('{') {
            pieces.push(TemplatePart::Text(before.to_owned()));
            let Some((name, after)) = after.split_once('}') else {
                bad.push(BadTemplate::Brace);
                rest = "";
                break;
            };
            match has.iter().find(|param| param.name() == name) {
                Some(param) => pieces.push(TemplatePart::Value(*param)),
                None => bad.push(BadTemplate::NoPlaceholder {
                    name: name.to_owned(),
                    has: named(&has),
                }),
            }
            rest = after;
        }
        pieces.push(TemplatePart::Text(rest.to_owned()));
        bad.extend(
            has.iter()
                .filter_map(|param| placeholder_problem(*param, &pieces, without)),
        );
        bad.extend(pieces.iter().filter_map(text_problem));
        if bad.is_empty() {
            Ok(Self(pieces))
        } else {
            Err(bad)
        }
    }

    /// Whether the path has a placeholder for a parameter.
    pub(super) fn sends(&self, param: Param) -> bool {
        self.0.contains(&TemplatePart::Value(param))
    }

    /// The path and query of a document. `None` if the document lacks a parameter.
    pub(super) fn target(&self, key: &DocumentKey) -> Option<String> {
        self.0.iter().map(|piece| piece.fill(key)).collect()
    }
}

impl TemplatePart {
    fn fill<'a>(&'a self, key: &'a DocumentKey) -> Option<Cow<'a, str>> {
        Some(match self {
            Self::Text(text) => text.into(),
            Self::Value(param) => key.value(*param)?,
        })
    }
}

/// All parameters that distinguish the documents of an endpoint.
fn parameters(endpoint: &Endpoint) -> Vec<Param> {
    let id = endpoint.route.names_a_model().then_some(Param::Id);
    id.into_iter()
        .chain(endpoint.takes.iter().copied())
        .collect()
}

fn named(params: &[Param]) -> String {
    let names: Vec<String> = params
        .iter()
        .map(|param| format!("{{{}}}", param.name()))
        .collect();
    if names.is_empty() {
        "none".into()
    } else {
        names.join(", ")
    }
}

/// The problem with a parameter's placeholder or with its absence.
fn placeholder_problem(
    param: Param,
    pieces: &[TemplatePart],
    without: &[Param],
) -> Option<BadTemplate> {
    let has_place = pieces.contains(&TemplatePart::Value(param));
    if param == Param::Id {
        // The placeholder is required, because otherwise the response would not be about the requested model.
        return (!has_place).then_some(BadTemplate::NoId);
    }
    match (has_place, without.contains(&param)) {
        (true, true) => Some(BadTemplate::Unsupported(param.name())),
        (false, false) => Some(BadTemplate::NoParameter(param.name())),
        (true, false) | (false, true) => None,
    }
}

/// The problem with fixed text.
fn text_problem(piece: &TemplatePart) -> Option<BadTemplate> {
    let TemplatePart::Text(text) = piece else {
        return None;
    };
    if text.contains('}') {
        return Some(BadTemplate::Brace);
    }
    let odd = text
        .chars()
        .find(|c| !c.is_ascii_alphanumeric() && !"-._~!$&'()*+,;=:@/?%[]".contains(*c));
    if let Some(odd) = odd {
        return Some(BadTemplate::Character(odd));
    }
    (!text.split('%').skip(1).all(|after| {
        let mut digits = after.bytes().take(2).filter(u8::is_ascii_hexdigit);
        digits.next().is_some() && digits.next().is_some()
    }))
    .then_some(BadTemplate::Percent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use scoregate_base::routes::{ENDPOINTS, Limit, ModelId, Period, Query, Route};

    const NONE: &[Param] = &[];

    fn parse(
        route: Route,
        text: &str,
        without: &[Param],
    ) -> Result<PathTemplate, Vec<BadTemplate>> {
        PathTemplate::parse(route.endpoint(), text, without)
    }

    fn key(route: Route) -> DocumentKey {
        let query = Query {
            limit: Limit::parse("7"),
            period: Some(Period::Week),
            ..Query::default()
        };
        DocumentKey::new(route, ModelId::new("a:b.c"), query, Period::Day)
    }

    #[test]
    fn the_canonical_path_is_the_one_that_callers_write_with_every_parameter() {
        for (route, without, expected) in [
            (Route::Models, NONE, "/models?period=7d&sortBy=combined"),
            (Route::History, NONE, "/models/a:b.c/history?period=7d"),
            (Route::Incidents, NONE, "/incidents?period=7d&limit=7"),
            (Route::Incidents, &[Param::Period], "/incidents?limit=7"),
            (Route::Index, NONE, "/index"),
        ] {
            let template = PathTemplate::canonical(route.endpoint(), without);
            assert_eq!(template.target(&key(route)).as_deref(), Some(expected));
        }
        for row in &ENDPOINTS {
            let documented = row.documented_path();
            let target = PathTemplate::canonical(row, row.takes)
                .target(&key(row.route))
                .unwrap();
            assert_eq!(
                format!("/api/v1{target}"),
                documented.replace("{id}", "a:b.c")
            );
        }
    }

    #[test]
    fn a_path_of_the_operator_s_own_is_filled_with_the_document_s_values() {
        for (route, text, expected) in [
            (
                Route::Models,
                "/d/s?sortBy={sortBy}&period={period}",
                "/d/s?sortBy=combined&period=7d",
            ),
            (
                Route::Incidents,
                "/{period}/x%20y?n={limit}&v[]=2",
                "/7d/x%20y?n=7&v[]=2",
            ),
            (
                Route::Model,
                "/m?id={id}&again={id}",
                "/m?id=a:b.c&again=a:b.c",
            ),
            (Route::Index, "/", "/"),
        ] {
            assert_eq!(
                parse(route, text, NONE)
                    .unwrap()
                    .target(&key(route))
                    .as_deref(),
                Some(expected)
            );
        }
        let nameless = DocumentKey::new(Route::Model, None, Query::default(), Period::Day);
        assert_eq!(
            parse(Route::Model, "/m/{id}", NONE)
                .unwrap()
                .target(&nameless),
            None
        );
    }

    #[test]
    fn all_problems_of_a_path_are_reported_at_once() {
        let none = |name: &str, has: &str| BadTemplate::NoPlaceholder {
            name: name.into(),
            has: has.into(),
        };
        let spaced = BadTemplate::Character(' ');
        for (route, text, without, expected) in [
            (Route::Index, "index", NONE, vec![BadTemplate::NoSlash]),
            (Route::Index, "", NONE, vec![BadTemplate::NoSlash]),
            (Route::Index, "/a b", NONE, vec![spaced.clone()]),
            (
                Route::Index,
                "/a\u{7}",
                NONE,
                vec![BadTemplate::Character('\u{7}')],
            ),
            (
                Route::Index,
                "/a#b",
                NONE,
                vec![BadTemplate::Character('#')],
            ),
            (Route::Index, "/é", NONE, vec![BadTemplate::Character('é')]),
            (Route::Index, "/%4", NONE, vec![BadTemplate::Percent]),
            (
                Route::Index,
                "/%é1",
                NONE,
                vec![BadTemplate::Character('é')],
            ),
            (Route::Index, "/a}", NONE, vec![BadTemplate::Brace]),
            (Route::Index, "/{id", NONE, vec![BadTemplate::Brace]),
            (Route::Index, "/{}", NONE, vec![none("", "none")]),
            (
                Route::Index,
                "/?p={period}",
                NONE,
                vec![none("period", "none")],
            ),
            (Route::Model, "/model", NONE, vec![BadTemplate::NoId]),
            (
                Route::Model,
                "/model",
                &[Param::Id],
                vec![BadTemplate::NoId],
            ),
            (
                Route::History,
                "/{ID}",
                NONE,
                vec![
                    none("ID", "{id}, {period}"),
                    BadTemplate::NoId,
                    BadTemplate::NoParameter("period"),
                ],
            ),
            (
                Route::Alerts,
                "a b{x}",
                NONE,
                vec![BadTemplate::NoSlash, none("x", "none"), spaced],
            ),
            (Route::Incidents, "/i?p={period}", &[Param::Limit], vec![]),
            (
                Route::Transparency,
                "/t?p={period}",
                &[Param::Period],
                vec![BadTemplate::Unsupported("period")],
            ),
        ] {
            assert_eq!(
                parse(route, text, without).err().unwrap_or_default(),
                expected,
                "{text}"
            );
        }
    }
}
