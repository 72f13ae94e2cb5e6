//! All endpoints of a gateway: the 13 endpoints of the specification, followed by the endpoints defined in the settings. Also
//! finds an endpoint by path.

use super::{
    params::decode_segment,
    table::{API_BASE, ENDPOINTS, Endpoint},
};

/// All endpoints, ordered by `Route::index`.
#[derive(Clone, Debug)]
pub struct EndpointTable(Vec<&'static Endpoint>);

/// A row and the raw text that matches `:id`.
#[derive(Clone, Copy, Debug)]
pub struct RouteMatch<'p> {
    /// The row.
    pub endpoint: &'static Endpoint,
    /// The id as received, still percent-encoded.
    pub raw_id: Option<&'p str>,
}

impl Default for EndpointTable {
    /// The endpoints of the specification.
    fn default() -> Self {
        Self(ENDPOINTS.iter().collect())
    }
}

impl EndpointTable {
    /// The endpoints of the specification, followed by these endpoints. The index of an endpoint is its position in the
    /// table.
    #[must_use]
    pub fn with(configured: impl IntoIterator<Item = &'static Endpoint>) -> Self {
        Self(ENDPOINTS.iter().chain(configured).collect())
    }

    /// All endpoints.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'static Endpoint> + Clone + '_ {
        self.0.iter().copied()
    }

    /// The endpoints whose responses are stored. A backend answers requests for these.
    pub fn stored(&self) -> impl Iterator<Item = &'static Endpoint> + Clone + '_ {
        self.iter().filter(|endpoint| endpoint.stored)
    }

    /// The endpoints of the settings.
    pub fn configured(&self) -> impl Iterator<Item = &'static Endpoint> + '_ {
        self.iter().skip(ENDPOINTS.len())
    }

    /// Finds the row of a path. Fixed segments are compared after percent-decoding once. Paths are not normalized: a
    /// trailing slash, `//` or a dot segment matches no row.
    pub fn find<'p>(&self, path: &'p str) -> Option<RouteMatch<'p>> {
        let rest = path.strip_prefix(API_BASE)?.strip_prefix('/')?;
        self.iter().find_map(|endpoint| endpoint.matched(rest))
    }
}

impl Endpoint {
    /// Matches a path below the base against this endpoint.
    fn matched<'p>(&'static self, below_base: &'p str) -> Option<RouteMatch<'p>> {
        let mut raw_id = None;
        let mut parts = below_base.split('/');
        for segment in self.segments {
            let part = parts.next()?;
            if *segment == ":id" {
                // With an empty or dot segment, the path is wrong, not the id.
                if matches!(part, "" | "." | "..") {
                    return None;
                }
                raw_id = Some(part);
            } else if part != *segment && decode_segment(part).as_deref() != Some(*segment) {
                return None;
            }
        }
        parts.next().is_none().then_some(RouteMatch {
            endpoint: self,
            raw_id,
        })
    }

    /// Whether a path can match both endpoints.
    pub fn overlaps(&self, segments: &[&str]) -> bool {
        self.segments.len() == segments.len()
            && self
                .segments
                .iter()
                .zip(segments)
                .all(|(a, b)| a == b || [*a, *b].contains(&":id"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_found_by_its_path() {
        for row in EndpointTable::default().iter() {
            let path = row.documented_path().replace("{id}", "gpt-5");
            let found = EndpointTable::default().find(&path).unwrap();
            assert_eq!(found.endpoint.route, row.route);
            assert_eq!(found.raw_id.is_some(), row.route.names_a_model());
        }
    }

    #[test]
    fn paths_are_never_normalized() {
        for path in [
            "/api/v1",
            "/api/v1/",
            "/api/v1/models/",
            "/api/v1//models",
            "/api/v1/./models",
            "/api/v1/models/..",
            "/API/v1/models",
            "/api/v1/Models",
            "/api/v1/models/x/history/",
            "/api/v1/me/x.css",
            "/api/v1/me;.js",
            "/api/v2/models",
            "//api/v1/models",
            "/api/v1/models/x/y",
            "/api/v1/models/../me",
            "/api/v1/index.html",
        ] {
            assert!(EndpointTable::default().find(path).is_none(), "{path}");
        }
    }
}
