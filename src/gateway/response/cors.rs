//! CORS: the origins that may read responses in a browser, as prepared header values.
//!
//! CORS affects only browsers; API keys control access. Credentials that the browser adds, such as cookies, are never
//! allowed. `config` validates origins.

use std::time::Duration;

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD,
    HeaderMap, HeaderValue, ORIGIN, VARY,
};

use crate::gateway::refusal::whole_seconds;
use scoregate_base::routes::headers::{
    VARY_BY_KEY_AND_ORIGIN, VARY_FOR_ALL, VARY_FOR_ALL_BY_ORIGIN, for_scripts,
};

const ANY: HeaderValue = HeaderValue::from_static("*");
/// The methods and request headers of the API.
const READING: CorsGrant = CorsGrant {
    methods: HeaderValue::from_static("GET, HEAD"),
    fields: HeaderValue::from_static("Authorization, X-API-Key, If-None-Match, X-Request-Id"),
};
/// Methods and headers that pages of allowed origins may use.
#[derive(Debug)]
pub struct CorsGrant {
    /// The methods.
    pub methods: HeaderValue,
    /// Headers that are allowed in addition to the headers that every page may send.
    pub fields: HeaderValue,
}

/// CORS policy.
#[derive(Clone, Debug)]
pub struct CorsPolicy {
    allowed: AllowedOrigins,
    /// Response headers that scripts may read.
    exposed: HeaderValue,
    /// Seconds a browser may cache a preflight response.
    max_age: HeaderValue,
}

#[derive(Clone, Debug)]
enum AllowedOrigins {
    Any,
    Listed(Vec<HeaderValue>),
}

impl CorsPolicy {
    /// Allows all origins.
    pub fn any(max_age: Duration) -> Self {
        Self::new(AllowedOrigins::Any, max_age)
    }

    /// Allows these origins, written as browsers send them.
    pub fn listed(origins: Vec<HeaderValue>, max_age: Duration) -> Self {
        Self::new(AllowedOrigins::Listed(origins), max_age)
    }

    fn new(allowed: AllowedOrigins, max_age: Duration) -> Self {
        let exposed = HeaderValue::try_from(for_scripts())
            .expect("header names and commas are visible ASCII");
        Self {
            allowed,
            exposed,
            max_age: HeaderValue::from(whole_seconds(max_age)),
        }
    }

    /// Adds CORS headers to a response. `options` marks a response to OPTIONS, which may be a preflight request.
    pub(crate) fn write(
        &self,
        request_headers: &HeaderMap,
        options: bool,
        headers: &mut HeaderMap,
    ) {
        self.write_with(request_headers, &READING, options, headers);
    }

    /// Adds CORS headers to a response of a service outside the API, whose clients may send other methods and headers.
    pub fn write_with(
        &self,
        request_headers: &HeaderMap,
        grant: &CorsGrant,
        options: bool,
        headers: &mut HeaderMap,
    ) {
        if let AllowedOrigins::Listed(_) = self.allowed {
            // This is needed even if the request has no origin: caches must not reuse the response for a request that
            // has one.
            let is_for_all = headers.get(VARY).is_some_and(|by| *by == VARY_FOR_ALL);
            let varies = if is_for_all {
                VARY_FOR_ALL_BY_ORIGIN
            } else {
                VARY_BY_KEY_AND_ORIGIN
            };
            headers.insert(VARY, HeaderValue::from_static(varies));
        }
        let Some(origin) = self.allows(request_headers) else {
            return;
        };
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, self.exposed.clone());
        // The request is a preflight request only if it has both fields.
        if options
            && request_headers.contains_key(ORIGIN)
            && request_headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
        {
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, grant.methods.clone());
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, grant.fields.clone());
            headers.insert(ACCESS_CONTROL_MAX_AGE, self.max_age.clone());
        }
    }

    /// The value of `Access-Control-Allow-Origin`. A request with two origins is treated as a request without one;
    /// browsers never send two. If all origins are allowed, the value does not depend on the request, so caches can
    /// reuse the response.
    pub fn allows(&self, request_headers: &HeaderMap) -> Option<HeaderValue> {
        let mut origins = request_headers.get_all(ORIGIN).iter();
        let origin = origins.next();
        if origins.next().is_some() {
            return None;
        }
        match &self.allowed {
            AllowedOrigins::Any => Some(ANY),
            AllowedOrigins::Listed(listed) => {
                listed.iter().find(|known| origin == Some(*known)).cloned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn listed() -> CorsPolicy {
        let origins =
            ["https://dash.example.org", "http://localhost:3000"].map(HeaderValue::from_static);
        CorsPolicy::listed(origins.to_vec(), HOUR)
    }

    /// The headers added for a request with these fields.
    fn added(
        cors: &CorsPolicy,
        fields: &[(&'static str, &'static str)],
        options: bool,
    ) -> Vec<(String, String)> {
        added_to(HeaderMap::new(), cors, fields, options)
    }

    /// Like `added`, for a response that already has these headers.
    fn added_to(
        mut headers: HeaderMap,
        cors: &CorsPolicy,
        fields: &[(&'static str, &'static str)],
        options: bool,
    ) -> Vec<(String, String)> {
        let mut request_headers = HeaderMap::new();
        for (name, value) in fields {
            request_headers.append(*name, HeaderValue::from_static(value));
        }
        cors.write(&request_headers, options, &mut headers);
        let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
        headers
            .iter()
            .map(|(name, value)| (name.to_string(), text(value)))
            .collect()
    }

    fn allowed(cors: &CorsPolicy, origins: &[&'static str]) -> Option<String> {
        let fields: Vec<_> = origins.iter().map(|origin| ("origin", *origin)).collect();
        let added = added(cors, &fields, false);
        added
            .into_iter()
            .find(|(name, _)| name == "access-control-allow-origin")
            .map(|(_, value)| value)
    }

    #[test]
    fn only_exactly_listed_origins_are_allowed() {
        for origin in ["https://dash.example.org", "http://localhost:3000"] {
            assert_eq!(allowed(&listed(), &[origin]).as_deref(), Some(origin));
        }
        for other in [
            "",
            "null",
            "*",
            "http://dash.example.org",
            "https://dash.example.org:443",
            "https://dash.example.org/",
            "https://DASH.example.org",
            "https://dash.example.org.evil.example",
            "https://evil.example/https://dash.example.org",
            "https://dash.example.or",
            "http://localhost",
        ] {
            assert_eq!(allowed(&listed(), &[other]), None, "{other}");
        }
        assert_eq!(allowed(&listed(), &[]), None);
    }

    #[test]
    fn two_origin_headers_are_rejected() {
        let one = "https://dash.example.org";
        assert_eq!(allowed(&listed(), &[one, one]), None);
        assert_eq!(allowed(&listed(), &[one, "https://evil.example"]), None);
        assert_eq!(allowed(&CorsPolicy::any(HOUR), &[one, one]), None);
    }

    #[test]
    fn responses_vary_by_origin_only_with_listed_origins() {
        let vary = |before: &'static str| {
            let before = HeaderMap::from_iter([(VARY, HeaderValue::from_static(before))]);
            added_to(before, &listed(), &[], false)
        };
        let by_key = [(
            "vary".into(),
            "Accept-Encoding, Authorization, X-API-Key, Origin".into(),
        )];
        assert_eq!(vary("Accept-Encoding, Authorization, X-API-Key"), by_key);
        assert_eq!(
            vary("Accept-Encoding"),
            [("vary".into(), "Accept-Encoding, Origin".into())]
        );
        let any = added(
            &CorsPolicy::any(HOUR),
            &[("origin", "https://any.example")],
            false,
        );
        assert_eq!(any, added(&CorsPolicy::any(HOUR), &[], false));
        assert_eq!(any[0], ("access-control-allow-origin".into(), "*".into()));
    }

    #[test]
    fn a_preflight_is_an_options_request_with_origin_and_method() {
        let origin = ("origin", "http://localhost:3000");
        let method = ("access-control-request-method", "GET");
        let has_methods = |fields: &[(&'static str, &'static str)], options| {
            let added = added(&listed(), fields, options);
            added
                .iter()
                .any(|(name, _)| name == "access-control-allow-methods")
        };
        assert!(has_methods(&[origin, method], true));
        assert!(!has_methods(&[origin, method], false));
        assert!(!has_methods(&[origin], true));
        assert!(!has_methods(&[method], true));
    }
}
